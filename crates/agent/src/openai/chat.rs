//! Chat completions: requests.

use consort_core::Tool;
use serde_json::{Value, json};

use super::part::content;
use super::request_value::{
    RequestValue, effort, named_choice, push_result, request_options, response,
};
use super::{ApiError, ApiFormat, ApiRequest};
use consort_models::{
    ChatMessage, MessagePart, MessageRole, PartContent, ReplyDelivery, ToolCall, ToolCallResult,
    ToolChoice,
};

pub(super) fn read(body: &Value) -> Result<ApiRequest, ApiError> {
    let body = RequestValue::root(body);
    if body.optional_count("n")?.is_some_and(|count| count > 1) {
        return Err(ApiError::invalid(Some("n"), "only `n` = 1 is supported"));
    }
    body.without("functions", "send `tools`")?;
    body.without("audio", "only text output is supported")?;
    let mut options = request_options(&body)?;
    options.tool_choice = choice(&body)?;
    if let Some(format) = body.get("response_format") {
        options.response_schema = response(&format, Some("json_schema"))?;
    }
    let most = body.optional_count("max_completion_tokens")?;
    let most = most.map_or_else(|| body.optional_count("max_tokens"), |most| Ok(Some(most)))?;
    let stream = body.flag("stream")?;
    let stream_options = body.get("stream_options");
    let include_usage =
        stream_options.map(|at| at.flag("include_usage")).transpose()?.unwrap_or_default();
    Ok(ApiRequest {
        format: ApiFormat::Chat,
        model: body.require("model")?.text()?.to_owned(),
        messages: messages(&body.require("messages")?)?,
        tools: tools(&body)?,
        options,
        max_tokens: most,
        temperature: body.optional_number("temperature")?,
        reasoning: body.get("reasoning_effort").map(|at| effort(&at)).transpose()?,
        delivery: if stream { ReplyDelivery::Stream } else { ReplyDelivery::Complete },
        include_usage,
        echoed: json!({}),
    })
}

fn messages(at: &RequestValue<'_>) -> Result<Vec<ChatMessage>, ApiError> {
    let mut messages = Vec::new();
    for at in at.items()? {
        let role = at.require("role")?;
        let said = |role| Ok(ChatMessage::new(role, content(&at.require("content")?)?));
        match role.text()? {
            "system" | "developer" => messages.push(said(MessageRole::System)?),
            "user" => messages.push(said(MessageRole::User)?),
            "assistant" => messages.push(assistant(&at)?),
            "tool" => {
                let call = at.require("tool_call_id")?.text()?.to_owned();
                let parts = content(&at.require("content")?)?;
                push_result(&mut messages, ToolCallResult { call, parts, is_error: false });
            }
            _ => {
                return Err(
                    role.error("must be `system`, `developer`, `user`, `assistant` or `tool`")
                );
            }
        }
    }
    if messages.is_empty() {
        return Err(at.error("must not be empty"));
    }
    Ok(messages)
}

fn assistant(at: &RequestValue<'_>) -> Result<ChatMessage, ApiError> {
    let mut parts = at.get("content").map(|at| content(&at)).transpose()?.unwrap_or_default();
    if let Some(text) = at.optional_text("refusal")? {
        parts.push(PartContent::Refusal { text: text.to_owned() }.into());
    }
    if let Some(calls) = at.get("tool_calls") {
        for call in calls.items()? {
            let function = call.require("function")?;
            let name = function.require("name")?.text()?.to_owned();
            let arguments = function.require("arguments")?.text()?.into();
            let id = call.require("id")?.text()?.to_owned();
            parts.push(MessagePart::from(PartContent::ToolCall(ToolCall { id, name, arguments })));
        }
    }
    Ok(ChatMessage::new(MessageRole::Assistant, parts))
}

fn tools(body: &RequestValue<'_>) -> Result<Vec<Tool>, ApiError> {
    let Some(tools) = body.get("tools") else { return Ok(Vec::new()) };
    let tool = |at: RequestValue<'_>| {
        if at.require("type")?.text()? != "function" {
            return Err(at.error("must be of type `function`"));
        }
        let function = at.require("function")?;
        function.require("name")?.text()?;
        Tool::from_openai(at.value).ok_or_else(|| at.error("is not a function"))
    };
    tools.items()?.map(tool).collect()
}

fn choice(body: &RequestValue<'_>) -> Result<ToolChoice, ApiError> {
    let Some(at) = body.get("tool_choice") else { return Ok(ToolChoice::Auto) };
    match named_choice(&at)? {
        Some(choice) => Ok(choice),
        None => match at.get("function") {
            Some(function) => Ok(ToolChoice::Named(function.require("name")?.text()?.to_owned())),
            None => Ok(ToolChoice::Auto),
        },
    }
}
