//! `OpenAI`'s Responses API: requests.

use serde_json::{Map, Value, json};

use super::chat::{arguments, file_name, id, schema, word};
use super::media::{Source, View, words};
use super::object;
use super::turns::{Turn, turns};
use crate::message::{Kind, Part};
use crate::names::Names;
use crate::request::{Ask, Calls, Choice, Delivery, Effort, Images};

pub(crate) mod read;

/// Maximum length of a call id that it accepts.
const ID: usize = 64;

/// Key of this wire format in [`Opaque`](crate::Opaque).
const WORD: &str = "openai-responses";

/// Builds the body. The provider stores nothing: its state returns to the client, encrypted.
pub(crate) fn body(ask: &Ask, names: &Names) -> Map<String, Value> {
    let mut input = Vec::new();
    let mut instructions = Vec::new();
    for (place, turn) in turns(&ask.messages).iter().enumerate() {
        match turn {
            Turn::System(parts) if place == 0 => instructions.push(words(parts.iter().copied())),
            turn => write(turn, ask.images, names, &mut input),
        }
    }
    let has_tools = !ask.tools.is_empty();
    let reasoning = ask.reasoning.map(
        |reasoning| json!({ "effort": word(reasoning.effort(), &ask.model), "summary": "auto" }),
    );
    object([
        ("model", Some(json!(ask.model))),
        ("instructions", instructions.pop().filter(|text| !text.is_empty()).map(Into::into)),
        ("input", Some(input.into())),
        ("tool_choice", has_tools.then(|| choice(&ask.choice, names)).flatten()),
        ("parallel_tool_calls", (has_tools && ask.calls == Calls::One).then_some(json!(false))),
        ("max_output_tokens", ask.max_tokens.map(Into::into)),
        ("temperature", ask.temperature.map(Into::into)),
        ("reasoning", reasoning),
        (
            "text",
            ask.response.as_ref().map(|response| {
                let mut format = schema(response);
                format["type"] = json!("json_schema");
                json!({ "format": format })
            }),
        ),
        ("store", Some(json!(false))),
        ("include", reasons(ask).then(|| json!(["reasoning.encrypted_content"]))),
        ("stream", (ask.delivery == Delivery::Stream).then_some(json!(true))),
    ])
}

fn choice(choice: &Choice, names: &Names) -> Option<Value> {
    Some(match choice {
        Choice::Auto => return None,
        Choice::None => json!("none"),
        Choice::Required => json!("required"),
        Choice::Named(name) => json!({ "type": "function", "name": names.there(name) }),
    })
}

fn write(turn: &Turn<'_>, images: Images, names: &Names, input: &mut Vec<Value>) {
    match turn {
        Turn::System(parts) => {
            let text = words(parts.iter().copied());
            if !text.is_empty() {
                input.push(json!({ "role": "developer", "content": text }));
            }
        }
        Turn::User(parts) => {
            let content = content(parts.iter().map(AsRef::as_ref), images);
            if !content.is_empty() {
                input.push(json!({ "role": "user", "content": content }));
            }
        }
        Turn::Assistant { parts, .. } => assistant(parts, names, input),
        Turn::Results(results) => {
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
                let call = id(&answered.call.id, ID);
                input.push(
                    json!({ "type": "function_call_output", "call_id": call, "output": output }),
                );
            }
        }
    }
}

fn content<'a>(parts: impl Iterator<Item = &'a Part>, images: Images) -> Vec<Value> {
    let views = parts.filter_map(|part| View::of(part, images));
    let pieces = views.filter_map(|view| {
        Some(match view {
            View::Image(source) => {
                json!({ "type": "input_image", "image_url": source.url(), "detail": "auto" })
            }
            View::File { uri, source: source @ Source::Data { mime: "application/pdf", .. } } => {
                let name = file_name(uri);
                json!({ "type": "input_file", "filename": name, "file_data": source.url() })
            }
            view => {
                let text = view.words();
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
fn assistant(parts: &[&Part], names: &Names, input: &mut Vec<Value>) {
    // The message that the last item is, if it is one.
    let mut message = None;
    for part in parts {
        let kept = part.opaque.get(WORD);
        let mut item = kept.and_then(Value::as_object).cloned().unwrap_or_default();
        let of = item.get("id").cloned();
        if part.kind != Kind::Foreign {
            item.remove("id");
        }
        let said = match &part.kind {
            Kind::Thinking { .. }
                if item.get("encrypted_content").is_some_and(Value::is_string) =>
            {
                None
            }
            Kind::Thinking { .. } => continue,
            Kind::Foreign if item.is_empty() => continue,
            Kind::Foreign => None,
            Kind::ToolCall(call) => {
                item.extend(object([
                    ("type", Some(json!("function_call"))),
                    ("call_id", Some(json!(id(&call.id, ID)))),
                    ("name", Some(json!(names.there(&call.name)))),
                    ("arguments", Some(json!(arguments(&call.arguments)))),
                ]));
                None
            }
            Kind::Refusal { text } => Some(json!({ "type": "refusal", "refusal": text })),
            _ => match View::of(part, Images::Named).map(View::words) {
                Some(text) if !text.is_empty() => {
                    Some(json!({ "type": "output_text", "text": text }))
                }
                _ => continue,
            },
        };
        let Some(said) = said else {
            message = None;
            input.push(item.into());
            continue;
        };
        // Several parts of one message are one item again.
        if message.as_ref() == Some(&of)
            && let Some(Value::Array(content)) = input.last_mut().map(|last| &mut last["content"])
        {
            content.push(said);
            continue;
        }
        message = Some(of);
        item.extend(object([
            ("type", Some(json!("message"))),
            ("role", Some(json!("assistant"))),
            ("content", Some(json!([said]))),
        ]));
        input.push(item.into());
    }
}

/// Returns true if the model reasons: other models refuse to be asked for reasoning.
fn reasons(ask: &Ask) -> bool {
    let name = ask.model.rsplit('/').next().unwrap_or_default();
    let number = |rest: &str| {
        rest.split(|one: char| !one.is_ascii_digit())
            .next()
            .and_then(|text| text.parse::<u32>().ok())
    };
    let is_o = name.strip_prefix('o').and_then(number).is_some();
    let is_new = name.strip_prefix("gpt-").and_then(number).is_some_and(|number| number >= 5);
    let is_chat = name.contains("-chat");
    ask.reasoning.is_some_and(|reasoning| reasoning.effort() != Effort::Off)
        || is_o
        || is_new && !is_chat
        || name.contains("codex")
        || name.starts_with("gpt-oss")
}

#[cfg(test)]
pub(crate) mod tests;
