//! `OpenAI`'s Responses API: requests.

use serde_json::{Map, Value, json};

use super::chat::{arguments, effort_name, file_name, legal_id, schema};
use super::media::{BorrowedMedia, PartView, text_of};
use super::present_members;
use super::turns::{ConversationTurn, turns};
use crate::message::{MessagePart, PartContent};
use crate::request::{
    MediaHandling, ModelRequest, ParallelCalls, ReasoningEffort, ReplyDelivery, ToolChoice,
};
use crate::tool_names::ToolNameMap;

pub(crate) mod decode;

/// Maximum length of a call id that it accepts.
const ID: usize = 64;

/// Key of this wire format in [`OpaqueData`](crate::OpaqueData).
const OPAQUE_KEY: &str = "openai-responses";

/// Builds the body. The provider stores nothing: its state returns to the client, encrypted.
pub(crate) fn body(request: &ModelRequest, names: &ToolNameMap) -> Map<String, Value> {
    let mut input = Vec::new();
    let mut instructions = Vec::new();
    for (place, turn) in turns(&request.messages).iter().enumerate() {
        match turn {
            ConversationTurn::System(parts) if place == 0 => {
                instructions.push(text_of(parts.iter().copied()));
            }
            turn => write_turn(turn, request.images, names, &mut input),
        }
    }
    let has_tools = !request.tools.is_empty();
    let reasoning = request.reasoning.map(
        |reasoning| json!({ "effort": effort_name(reasoning.effort(), &request.model), "summary": "auto" }),
    );
    present_members([
        ("model", Some(json!(request.model))),
        ("instructions", instructions.pop().filter(|text| !text.is_empty()).map(Into::into)),
        ("input", Some(input.into())),
        ("tool_choice", has_tools.then(|| choice(&request.tool_choice, names)).flatten()),
        (
            "parallel_tool_calls",
            (has_tools && request.parallel_calls == ParallelCalls::One).then_some(json!(false)),
        ),
        ("max_output_tokens", request.max_tokens.map(Into::into)),
        ("temperature", request.temperature.map(Into::into)),
        ("reasoning", reasoning),
        (
            "text",
            request.response_schema.as_ref().map(|response| {
                let mut format = schema(response);
                format["type"] = json!("json_schema");
                json!({ "format": format })
            }),
        ),
        ("store", Some(json!(false))),
        ("include", reasons(request).then(|| json!(["reasoning.encrypted_content"]))),
        ("stream", (request.delivery == ReplyDelivery::Stream).then_some(json!(true))),
    ])
}

fn choice(choice: &ToolChoice, names: &ToolNameMap) -> Option<Value> {
    Some(match choice {
        ToolChoice::Auto => return None,
        ToolChoice::None => json!("none"),
        ToolChoice::Required => json!("required"),
        ToolChoice::Named(name) => json!({ "type": "function", "name": names.provider_name(name) }),
    })
}

fn write_turn(
    turn: &ConversationTurn<'_>,
    images: MediaHandling,
    names: &ToolNameMap,
    input: &mut Vec<Value>,
) {
    match turn {
        ConversationTurn::System(parts) => {
            let text = text_of(parts.iter().copied());
            if !text.is_empty() {
                input.push(json!({ "role": "developer", "content": text }));
            }
        }
        ConversationTurn::User(parts) => {
            let content = content(parts.iter().map(AsRef::as_ref), images);
            if !content.is_empty() {
                input.push(json!({ "role": "user", "content": content }));
            }
        }
        ConversationTurn::Assistant { parts, .. } => assistant(parts, names, input),
        ConversationTurn::Results(results) => {
            for answered in results {
                let mut output = content(answered.result.parts.iter(), images);
                if answered.result.is_error {
                    match output.first_mut().and_then(|first| first.get_mut("text")) {
                        Some(Value::String(text)) => text.insert_str(0, "Error: "),
                        _ => output.insert(0, json!({ "type": "input_text", "text": "Error" })),
                    }
                }
                let has_media = output.iter().any(|piece| piece["type"] != "input_text");
                let output = if has_media {
                    Value::from(output)
                } else {
                    let texts = output.iter().filter_map(|piece| piece["text"].as_str());
                    texts.collect::<Vec<_>>().join("\n").into()
                };
                let call = legal_id(&answered.call.id, ID);
                input.push(
                    json!({ "type": "function_call_output", "call_id": call, "output": output }),
                );
            }
        }
    }
}

fn content<'a>(parts: impl Iterator<Item = &'a MessagePart>, images: MediaHandling) -> Vec<Value> {
    let views = parts.filter_map(|part| PartView::of(part, images));
    let pieces = views.filter_map(|view| {
        Some(match view {
            PartView::Image(source) => {
                json!({ "type": "input_image", "image_url": source.url(), "detail": "auto" })
            }
            PartView::File {
                uri,
                source: source @ BorrowedMedia::Data { mime: "application/pdf", .. },
            } => {
                let name = file_name(uri);
                json!({ "type": "input_file", "filename": name, "file_data": source.url() })
            }
            view => {
                let text = view.into_text();
                if text.is_empty() {
                    return None;
                }
                json!({ "type": "input_text", "text": text })
            }
        })
    });
    pieces.collect()
}

/// Adds the model's turn as the items it arrived in, without their ids: the provider stores nothing that they could
/// refer to.
fn assistant(parts: &[&MessagePart], names: &ToolNameMap, input: &mut Vec<Value>) {
    // The message that the last item is, if it is one.
    let mut message = None;
    for part in parts {
        let stored = part.opaque.get(OPAQUE_KEY);
        let mut item = stored.and_then(Value::as_object).cloned().unwrap_or_default();
        let of = item.get("id").cloned();
        if part.content != PartContent::Foreign {
            item.remove("id");
        }
        let block = match &part.content {
            PartContent::Thinking { .. }
                if item.get("encrypted_content").is_some_and(Value::is_string) =>
            {
                None
            }
            PartContent::Thinking { .. } => continue,
            PartContent::Foreign if item.is_empty() => continue,
            PartContent::Foreign => None,
            PartContent::ToolCall(call) => {
                item.extend(present_members([
                    ("type", Some(json!("function_call"))),
                    ("call_id", Some(json!(legal_id(&call.id, ID)))),
                    ("name", Some(json!(names.provider_name(&call.name)))),
                    ("arguments", Some(json!(arguments(&call.arguments)))),
                ]));
                None
            }
            PartContent::Refusal { text } => Some(json!({ "type": "refusal", "refusal": text })),
            _ => match PartView::of(part, MediaHandling::Described).map(PartView::into_text) {
                Some(text) if !text.is_empty() => {
                    Some(json!({ "type": "output_text", "text": text }))
                }
                _ => continue,
            },
        };
        let Some(block) = block else {
            message = None;
            input.push(item.into());
            continue;
        };
        // Several parts of one message are one item again.
        if message.as_ref() == Some(&of)
            && let Some(Value::Array(content)) = input.last_mut().map(|last| &mut last["content"])
        {
            content.push(block);
            continue;
        }
        message = Some(of);
        item.extend(present_members([
            ("type", Some(json!("message"))),
            ("role", Some(json!("assistant"))),
            ("content", Some(json!([block]))),
        ]));
        input.push(item.into());
    }
}

/// Returns true if the model reasons: other models refuse to be asked for reasoning.
fn reasons(request: &ModelRequest) -> bool {
    let name = request.model.rsplit('/').next().unwrap_or_default();
    let number = |rest: &str| {
        rest.split(|one: char| !one.is_ascii_digit())
            .next()
            .and_then(|text| text.parse::<u32>().ok())
    };
    let is_o = name.strip_prefix('o').and_then(number).is_some();
    let is_new = name.strip_prefix("gpt-").and_then(number).is_some_and(|number| number >= 5);
    let is_chat = name.contains("-chat");
    request.reasoning.is_some_and(|reasoning| reasoning.effort() != ReasoningEffort::Off)
        || is_o
        || is_new && !is_chat
        || name.contains("codex")
        || name.starts_with("gpt-oss")
}

#[cfg(test)]
pub(crate) mod tests;
