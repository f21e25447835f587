//! Responses: requests.

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

const NOT_STORED: &str = "responses are not stored; send the whole conversation as `input`";

/// Members of the request that the response repeats.
const ECHOED: [&str; 8] = [
    "instructions",
    "max_output_tokens",
    "metadata",
    "parallel_tool_calls",
    "temperature",
    "tool_choice",
    "tools",
    "top_p",
];

pub(super) fn read(body: &Value) -> Result<ApiRequest, ApiError> {
    let body = RequestValue::root(body);
    body.without("previous_response_id", NOT_STORED)?;
    body.without("conversation", NOT_STORED)?;
    body.without("background", "background responses are not supported")?;
    body.without("prompt", "send `instructions` and `input`")?;
    let mut options = request_options(&body)?;
    options.tool_choice = choice(&body)?;
    if let Some(format) = body.get("text").and_then(|text| text.get("format")) {
        options.response_schema = response(&format, None)?;
    }
    let mut messages = Vec::new();
    if let Some(instructions) = body.optional_text("instructions")? {
        messages.push(ChatMessage::system(instructions));
    }
    input(&body.require("input")?, &mut messages)?;
    let thinks = body.get("reasoning").and_then(|reasoning| reasoning.get("effort"));
    let stream = body.flag("stream")?;
    let echoed = ECHOED.iter().filter_map(|name| Some(((*name).to_owned(), body.get(name)?)));
    Ok(ApiRequest {
        format: ApiFormat::Responses,
        model: body.require("model")?.text()?.to_owned(),
        messages,
        tools: tools(&body)?,
        options,
        max_tokens: body.optional_count("max_output_tokens")?,
        temperature: body.optional_number("temperature")?,
        reasoning: thinks.map(|at| effort(&at)).transpose()?,
        delivery: if stream { ReplyDelivery::Stream } else { ReplyDelivery::Complete },
        include_usage: true,
        echoed: Value::Object(echoed.map(|(name, at)| (name, at.value.clone())).collect()),
    })
}

/// Parses the input: a string, or a list of items.
fn input(at: &RequestValue<'_>, messages: &mut Vec<ChatMessage>) -> Result<(), ApiError> {
    if let Some(text) = at.value.as_str() {
        messages.push(ChatMessage::user(text));
        return Ok(());
    }
    let before = messages.len();
    for at in at.items()? {
        item(&at, messages)?;
    }
    if messages.len() == before {
        return Err(at.error("must not be empty"));
    }
    Ok(())
}

fn item(at: &RequestValue<'_>, messages: &mut Vec<ChatMessage>) -> Result<(), ApiError> {
    match at.optional_text("type")?.unwrap_or("message") {
        "message" => {
            let role = at.require("role")?;
            let parts = content(&at.require("content")?)?;
            match role.text()? {
                "system" | "developer" => {
                    messages.push(ChatMessage::new(MessageRole::System, parts));
                }
                "user" => messages.push(ChatMessage::new(MessageRole::User, parts)),
                "assistant" => parts.into_iter().for_each(|part| push_message(messages, part)),
                _ => {
                    let known = "must be `system`, `developer`, `user` or `assistant`";
                    return Err(role.error(known));
                }
            }
        }
        "function_call" => {
            push_message(
                messages,
                PartContent::ToolCall(call(at, &at.require("call_id")?)?).into(),
            );
        }
        "function_call_output" => {
            let call = at.require("call_id")?.text()?.to_owned();
            let parts = content(&at.require("output")?)?;
            push_result(messages, ToolCallResult { call, parts, is_error: false });
        }
        // What we showed of our own calls, and get back.
        "mcp_call" => {
            let call = call(at, &at.require("id")?)?;
            let result = match (at.get("output"), at.get("error")) {
                (_, Some(error)) => ToolCallResult::error(&call.id, text_of(error.value)),
                (output, None) => {
                    let text = output.map(|at| at.text()).transpose()?.unwrap_or_default();
                    let parts = vec![MessagePart::text(text)];
                    ToolCallResult { call: call.id.clone(), parts, is_error: false }
                }
            };
            push_message(messages, PartContent::ToolCall(call).into());
            push_result(messages, result);
        }
        // Thoughts of another model are of no use to this one.
        "reasoning" | "mcp_list_tools" => {}
        "item_reference" => return Err(at.error(format!("cannot be resolved: {NOT_STORED}"))),
        other => {
            return Err(at.error(format!("is of the unknown type `{}`", other.escape_debug())));
        }
    }
    Ok(())
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn call(at: &RequestValue<'_>, id: &RequestValue<'_>) -> Result<ToolCall, ApiError> {
    Ok(ToolCall {
        id: id.text()?.to_owned(),
        name: at.require("name")?.text()?.to_owned(),
        arguments: at.require("arguments")?.text()?.into(),
    })
}

/// Adds a part to the model's last message, or begins one.
fn push_message(messages: &mut Vec<ChatMessage>, part: MessagePart) {
    match messages.last_mut() {
        Some(last) if last.role == MessageRole::Assistant => last.parts.push(part),
        _ => messages.push(ChatMessage::new(MessageRole::Assistant, vec![part])),
    }
}

fn tools(body: &RequestValue<'_>) -> Result<Vec<Tool>, ApiError> {
    let Some(tools) = body.get("tools") else { return Ok(Vec::new()) };
    let tool = |at: RequestValue<'_>| {
        if at.require("type")?.text()? != "function" {
            return Err(at.error(
                "must be of type `function`: built-in tools are configured in the gateway",
            ));
        }
        at.require("name")?.text()?;
        Tool::from_openai(at.value).ok_or_else(|| at.error("is not a function"))
    };
    tools.items()?.map(tool).collect()
}

fn choice(body: &RequestValue<'_>) -> Result<ToolChoice, ApiError> {
    let Some(at) = body.get("tool_choice") else { return Ok(ToolChoice::Auto) };
    match named_choice(&at)? {
        Some(choice) => Ok(choice),
        None if at.optional_text("type")? == Some("function") => {
            Ok(ToolChoice::Named(at.require("name")?.text()?.to_owned()))
        }
        None => Ok(ToolChoice::Auto),
    }
}

/// Returns the members that every response has.
pub(super) fn default_members() -> Value {
    json!({
        "error": null, "incomplete_details": null, "instructions": null, "metadata": {},
        "parallel_tool_calls": true, "temperature": null, "tool_choice": "auto", "tools": [],
        "top_p": null, "max_output_tokens": null, "previous_response_id": null, "store": false,
        "truncation": "disabled", "usage": null,
    })
}
