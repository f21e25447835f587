//! Google's Gemini API: requests.

use serde_json::{Map, Value, json};

use super::media::{BorrowedMedia, PartView, text_of};
use super::turns::{AnsweredCall, ConversationTurn, turns};
use super::{arguments_object, present_members};
use crate::message::{MessagePart, PartContent};
use crate::request::{
    MediaHandling, ModelRequest, ReasoningAmount, ReasoningEffort, ReplyDelivery, ToolChoice,
};
use crate::tool_names::ToolNameMap;

pub(crate) mod decode;
mod partial;

/// Key of this wire format in [`OpaqueData`](crate::OpaqueData).
const OPAQUE_KEY: &str = "gemini";

/// Substitute for the signature of a call that another model made: newer models refuse a call without one.
const UNSIGNED: &str = "skip_thought_signature_validator";

/// Returns the path for a model, percent-encoded.
pub(crate) fn path(request: &ModelRequest) -> String {
    let mut model = String::new();
    for byte in request.model.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' | b'/' => {
                model.push(char::from(byte));
            }
            _ => model.extend(format!("%{byte:02X}").chars()),
        }
    }
    let folder = if model.contains('/') { "" } else { "models/" };
    match request.delivery {
        ReplyDelivery::Stream => format!("/{folder}{model}:streamGenerateContent?alt=sse"),
        ReplyDelivery::Complete => format!("/{folder}{model}:generateContent"),
    }
}

pub(crate) fn body(request: &ModelRequest, names: &ToolNameMap) -> Map<String, Value> {
    let is_new = generation(&request.model) >= 3;
    let mut system = Vec::new();
    let mut contents: Vec<(&str, Vec<Value>)> = Vec::new();
    for turn in &turns(&request.messages) {
        let (role, parts) = match turn {
            // The wire has one place for them, whenever they were said.
            ConversationTurn::System(parts) => {
                let text = text_of(parts.iter().copied());
                system.extend((!text.is_empty()).then(|| json!({ "text": text })));
                continue;
            }
            ConversationTurn::User(parts) => {
                ("user", content_parts(parts.iter().map(AsRef::as_ref), request.images))
            }
            ConversationTurn::Results(results) => {
                ("user", write_results(results, request.images, is_new, names))
            }
            ConversationTurn::Assistant { parts, .. } => ("model", model(parts, is_new, names)),
        };
        if parts.is_empty() {
            continue;
        }
        match contents.last_mut() {
            Some((last, all)) if *last == role => all.extend(parts),
            _ => contents.push((role, parts)),
        }
    }
    let contents: Vec<Value> =
        contents.into_iter().map(|(role, parts)| json!({ "role": role, "parts": parts })).collect();
    let has_tools = !request.tools.is_empty();
    let generation = generation_config(request);
    present_members([
        ("systemInstruction", (!system.is_empty()).then(|| json!({ "parts": system }))),
        ("contents", Some(contents.into())),
        ("toolConfig", has_tools.then(|| choice(&request.tool_choice, names)).flatten()),
        ("generationConfig", (!generation.is_empty()).then(|| generation.into())),
    ])
}

/// Returns the tools, as one group.
pub(crate) fn tools(definitions: &[Value]) -> Value {
    json!([{ "functionDeclarations": definitions }])
}

/// Returns the number after `gemini-` in a model's name; 0 if there is none.
fn generation(model: &str) -> u32 {
    let name = model.rsplit('/').next().unwrap_or_default();
    let rest = name.strip_prefix("gemini-").unwrap_or_default();
    let digits = rest.split(|one: char| !one.is_ascii_digit()).next().unwrap_or_default();
    digits.parse().unwrap_or_default()
}

/// Returns true for the first Flash models of the third generation, which know `minimal`; others think a little more.
fn knows_minimal(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or_default();
    let rest = name.strip_prefix("gemini-3").unwrap_or_default();
    let minor = rest.strip_prefix('.').and_then(|rest| rest.split('-').next()?.parse().ok());
    rest.contains("-flash") && minor.unwrap_or(0) <= 6
}

fn generation_config(request: &ModelRequest) -> Map<String, Value> {
    let schema =
        request.response_schema.as_ref().and_then(|response| response.schema.read::<Value>().ok());
    present_members([
        ("maxOutputTokens", request.max_tokens.map(Into::into)),
        ("temperature", request.temperature.map(Into::into)),
        ("stopSequences", (!request.stop.is_empty()).then(|| json!(request.stop))),
        ("thinkingConfig", request.reasoning.map(|reasoning| thinking(reasoning, &request.model))),
        ("responseMimeType", schema.as_ref().map(|_| json!("application/json"))),
        ("responseJsonSchema", schema),
    ])
}

/// Returns the thinking config: a level for newer models, a token budget for older ones, by Google's own mapping.
fn thinking(reasoning: ReasoningAmount, model: &str) -> Value {
    let generation = generation(model);
    // Of those that take a word, only some know one for hardly at all.
    let least = if knows_minimal(model) { "minimal" } else { "low" };
    let budget = match reasoning {
        ReasoningAmount::Budget(budget) => Some(budget),
        ReasoningAmount::Effort(effort) if (1..3).contains(&generation) => Some(match effort {
            ReasoningEffort::Off => 0,
            ReasoningEffort::Minimal | ReasoningEffort::Low => 1024,
            ReasoningEffort::Medium => 8192,
            ReasoningEffort::High | ReasoningEffort::Max => 24_576,
        }),
        ReasoningAmount::Effort(_) => None,
    };
    match (budget, reasoning.effort()) {
        (Some(0), _) => json!({ "thinkingBudget": 0 }),
        (Some(budget), _) => json!({ "thinkingBudget": budget, "includeThoughts": true }),
        // Newer models think at least a little.
        (None, ReasoningEffort::Off) => json!({ "thinkingLevel": least }),
        (None, effort) => {
            let level = match effort {
                ReasoningEffort::Off | ReasoningEffort::Minimal => least,
                ReasoningEffort::Low => "low",
                ReasoningEffort::Medium => "medium",
                ReasoningEffort::High | ReasoningEffort::Max => "high",
            };
            json!({ "thinkingLevel": level, "includeThoughts": true })
        }
    }
}

fn choice(choice: &ToolChoice, names: &ToolNameMap) -> Option<Value> {
    let config = match choice {
        ToolChoice::Auto => return None,
        ToolChoice::None => json!({ "mode": "NONE" }),
        ToolChoice::Required => json!({ "mode": "ANY" }),
        ToolChoice::Named(name) => {
            json!({ "mode": "ANY", "allowedFunctionNames": [names.provider_name(name)] })
        }
    };
    Some(json!({ "functionCallingConfig": config }))
}

fn content_parts<'a>(
    parts: impl Iterator<Item = &'a MessagePart>,
    images: MediaHandling,
) -> Vec<Value> {
    let views = parts.filter_map(|part| PartView::of(part, images));
    let shown = views.filter_map(|view| match media_part(&view) {
        Some(medium) => Some(medium),
        None => {
            let text = view.into_text();
            (!text.is_empty()).then(|| json!({ "text": text }))
        }
    });
    shown.collect()
}

/// Returns media in the format's form; `None` for text.
fn media_part(view: &PartView<'_>) -> Option<Value> {
    let (PartView::Image(source) | PartView::Audio(source) | PartView::File { source, .. }) = view
    else {
        return None;
    };
    Some(match source {
        BorrowedMedia::Data { mime, data } => {
            json!({ "inlineData": { "mimeType": mime, "data": data } })
        }
        BorrowedMedia::Url { url, mime } => {
            let members = present_members([
                ("fileUri", Some(json!(url))),
                ("mimeType", mime.map(Into::into)),
            ]);
            json!({ "fileData": members })
        }
    })
}

/// Writes results, all of them before their media: only newer models take media within a result.
fn write_results(
    results: &[AnsweredCall<'_>],
    images: MediaHandling,
    is_new: bool,
    names: &ToolNameMap,
) -> Vec<Value> {
    let mut parts = Vec::new();
    let mut beside = Vec::new();
    for answered in results {
        let result = &answered.result;
        let key = if result.is_error { "error" } else { "output" };
        let mut response = present_members([
            ("name", Some(json!(names.provider_name(&answered.call.name)))),
            ("id", answered.opaque.member(OPAQUE_KEY, "id").cloned()),
            ("response", Some(json!({ key: text_of(&result.parts) }))),
        ]);
        let views = result.parts.iter().filter_map(|part| PartView::of(part, images));
        let media: Vec<Value> = views.filter_map(|view| media_part(&view)).collect();
        if is_new && !media.is_empty() {
            response.insert("parts".to_owned(), media.into());
        } else {
            beside.extend(media);
        }
        parts.push(json!({ "functionResponse": response }));
    }
    parts.extend(beside);
    parts
}

/// Returns the model's turn, each part with its original signature.
fn model(parts: &[&MessagePart], is_new: bool, names: &ToolNameMap) -> Vec<Value> {
    let is_call = |part: &&&MessagePart| matches!(part.content, PartContent::ToolCall(_));
    let signed = |part: &&MessagePart| part.opaque.member(OPAQUE_KEY, "thoughtSignature").is_some();
    let mut first = is_new && !parts.iter().filter(is_call).any(signed);
    let mut written = Vec::new();
    for part in parts {
        let signature = part.opaque.member(OPAQUE_KEY, "thoughtSignature");
        let mut content = match &part.content {
            PartContent::Foreign => {
                written
                    .extend(part.opaque.get(OPAQUE_KEY).filter(|part| part.is_object()).cloned());
                continue;
            }
            // Thoughts without a signature are a summary for people.
            PartContent::Thinking { text, .. } if signature.is_some() => {
                json!({ "text": text, "thought": true })
            }
            PartContent::Thinking { .. } => continue,
            PartContent::ToolCall(call) => {
                let function = present_members([
                    ("name", Some(json!(names.provider_name(&call.name)))),
                    ("id", part.opaque.member(OPAQUE_KEY, "id").cloned()),
                    ("args", Some(arguments_object(&call.arguments))),
                ]);
                json!({ "functionCall": function })
            }
            _ => match PartView::of(part, MediaHandling::Sent) {
                Some(view) => match media_part(&view) {
                    Some(medium) => medium,
                    None => json!({ "text": view.into_text() }),
                },
                None => continue,
            },
        };
        match signature {
            Some(signature) => content["thoughtSignature"] = signature.clone(),
            None if content["text"] == "" => continue,
            None if content.get("functionCall").is_some() && std::mem::take(&mut first) => {
                content["thoughtSignature"] = json!(UNSIGNED);
            }
            None => {}
        }
        written.push(content);
    }
    written
}

#[cfg(test)]
pub(crate) mod tests;
