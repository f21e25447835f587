//! Chat completions: requests.

use consort_core::Tool;
use serde_json::{Value, json};

use super::part::content;
use super::reading::{At, chosen, effort, push_result, response, wishes};
use super::{ApiError, Asked, Format};
use consort_models::{
    ChatMessage, MessagePart, MessageRole, PartContent, ReplyDelivery, ToolCall, ToolCallResult,
    ToolChoice,
};

pub(super) fn read(body: &Value) -> Result<Asked, ApiError> {
    let body = At::root(body);
    if body.maybe_count("n")?.is_some_and(|count| count > 1) {
        return Err(ApiError::invalid(Some("n"), "`n` is not supported: there is one answer"));
    }
    body.without("functions", "send `tools`")?;
    body.without("audio", "answers are text")?;
    let mut wishes = wishes(&body)?;
    wishes.choice = choice(&body)?;
    if let Some(format) = body.get("response_format") {
        wishes.response = response(&format, Some("json_schema"))?;
    }
    let most = body.maybe_count("max_completion_tokens")?;
    let most = most.map_or_else(|| body.maybe_count("max_tokens"), |most| Ok(Some(most)))?;
    let stream = body.flag("stream")?;
    let options = body.get("stream_options");
    let include_usage = options.map(|at| at.flag("include_usage")).transpose()?.unwrap_or_default();
    Ok(Asked {
        format: Format::Chat,
        model: body.need("model")?.text()?.to_owned(),
        messages: messages(&body.need("messages")?)?,
        tools: tools(&body)?,
        wishes,
        max_tokens: most,
        temperature: body.maybe_number("temperature")?,
        reasoning: body.get("reasoning_effort").map(|at| effort(&at)).transpose()?,
        delivery: if stream { ReplyDelivery::Stream } else { ReplyDelivery::Whole },
        include_usage,
        echoed: json!({}),
    })
}

fn messages(at: &At<'_>) -> Result<Vec<ChatMessage>, ApiError> {
    let mut messages = Vec::new();
    for at in at.items()? {
        let role = at.need("role")?;
        let said = |role| Ok(ChatMessage::new(role, content(&at.need("content")?)?));
        match role.text()? {
            "system" | "developer" => messages.push(said(MessageRole::System)?),
            "user" => messages.push(said(MessageRole::User)?),
            "assistant" => messages.push(assistant(&at)?),
            "tool" => {
                let call = at.need("tool_call_id")?.text()?.to_owned();
                let parts = content(&at.need("content")?)?;
                push_result(&mut messages, ToolCallResult { call, parts, is_error: false });
            }
            _ => {
                return Err(
                    role.wrong("must be `system`, `developer`, `user`, `assistant` or `tool`")
                );
            }
        }
    }
    if messages.is_empty() {
        return Err(at.wrong("is empty: say something"));
    }
    Ok(messages)
}

fn assistant(at: &At<'_>) -> Result<ChatMessage, ApiError> {
    let mut parts = at.get("content").map(|at| content(&at)).transpose()?.unwrap_or_default();
    if let Some(text) = at.maybe_text("refusal")? {
        parts.push(PartContent::Refusal { text: text.to_owned() }.into());
    }
    if let Some(calls) = at.get("tool_calls") {
        for call in calls.items()? {
            let function = call.need("function")?;
            let name = function.need("name")?.text()?.to_owned();
            let arguments = function.need("arguments")?.text()?.into();
            let id = call.need("id")?.text()?.to_owned();
            parts.push(MessagePart::from(PartContent::ToolCall(ToolCall { id, name, arguments })));
        }
    }
    Ok(ChatMessage::new(MessageRole::Assistant, parts))
}

fn tools(body: &At<'_>) -> Result<Vec<Tool>, ApiError> {
    let Some(tools) = body.get("tools") else { return Ok(Vec::new()) };
    let tool = |at: At<'_>| {
        if at.need("type")?.text()? != "function" {
            return Err(at.wrong("must be of type `function`"));
        }
        let function = at.need("function")?;
        function.need("name")?.text()?;
        Tool::from_openai(at.value).ok_or_else(|| at.wrong("is not a function"))
    };
    tools.items()?.map(tool).collect()
}

fn choice(body: &At<'_>) -> Result<ToolChoice, ApiError> {
    let Some(at) = body.get("tool_choice") else { return Ok(ToolChoice::Auto) };
    match chosen(&at)? {
        Some(choice) => Ok(choice),
        None => match at.get("function") {
            Some(function) => Ok(ToolChoice::Named(function.need("name")?.text()?.to_owned())),
            None => Ok(ToolChoice::Auto),
        },
    }
}
