//! Anthropic's Messages API: requests.

use std::borrow::Cow;

use crate::dialect::{ToolDialect, legal_name};
use serde_json::{Map, Value, json};

use super::media::{BorrowedMedia, PartView};
use super::turns::{AnsweredCall, ConversationTurn, turns};
use super::{arguments_object, present_members};
use crate::message::{MessagePart, PartContent};
use crate::request::{
    CacheMarks, MediaHandling, ModelRequest, ParallelCalls, ReasoningEffort, ReplyDelivery,
    ToolChoice,
};
use crate::tool_names::ToolNameMap;

pub(crate) mod decode;
mod version;

use version::ClaudeVersion;

/// Key of this wire format in [`OpaqueData`](crate::OpaqueData).
const OPAQUE_KEY: &str = "anthropic";

/// Image types that the API accepts.
const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

pub(crate) fn body(request: &ModelRequest, names: &ToolNameMap) -> Map<String, Value> {
    let mut system = Vec::new();
    let mut messages: Vec<(&str, Vec<Value>)> = Vec::new();
    for turn in &turns(&request.messages) {
        let (role, blocks) = match turn {
            // The wire has one place for them, whenever they were said.
            ConversationTurn::System(parts) => {
                system.extend(blocks(parts.iter().copied(), MediaHandling::Described));
                continue;
            }
            ConversationTurn::User(parts) => {
                ("user", blocks(parts.iter().map(AsRef::as_ref), request.images))
            }
            ConversationTurn::Results(results) => {
                ("user", results.iter().map(|answered| result(answered, request.images)).collect())
            }
            ConversationTurn::Assistant { parts, .. } => {
                ("assistant", parts.iter().filter_map(|part| assistant(part, names)).collect())
            }
        };
        if blocks.is_empty() {
            continue;
        }
        match messages.last_mut() {
            Some((last, all)) if *last == role => all.extend(blocks),
            _ => messages.push((role, blocks)),
        }
    }
    trim_end(&mut messages);
    let works_without_thoughts = lacks_thinking(&messages);
    if request.cache == CacheMarks::Set {
        let last_user = messages.iter_mut().rev().find(|(role, _)| *role == "user");
        let last = last_user.and_then(|(_, blocks)| blocks.last_mut());
        [system.last_mut(), last].into_iter().flatten().for_each(set_cache_mark);
    }
    let messages: Vec<Value> = messages
        .into_iter()
        .map(|(role, content)| json!({ "role": role, "content": content }))
        .collect();
    let choice = if request.tools.is_empty() { None } else { choice(request, names) };
    let version = ClaudeVersion::of(&request.model);
    let thinking = thinking(request, version, choice.as_ref())
        .filter(|thinking| thinking["type"] != "enabled" || !works_without_thoughts);
    let thinks = thinking.as_ref().is_some_and(|thinking| thinking["type"] != "disabled");
    present_members([
        ("model", Some(json!(request.model))),
        ("max_tokens", Some(json!(max_tokens(request, version)))),
        ("system", (!system.is_empty()).then(|| system.into())),
        ("messages", Some(messages.into())),
        ("tool_choice", choice),
        // A model that thinks takes none.
        (
            "temperature",
            request.temperature.filter(|_| !thinks && !version.is_adaptive()).map(Into::into),
        ),
        ("stop_sequences", (!request.stop.is_empty()).then(|| json!(request.stop))),
        ("thinking", thinking),
        ("output_config", output(request, version)),
        ("stream", (request.delivery == ReplyDelivery::Stream).then_some(json!(true))),
    ])
}

/// The tools, the last of them with a cache mark if caching is requested.
pub(crate) fn tools(mut definitions: Vec<Value>, cache: CacheMarks) -> Value {
    if cache == CacheMarks::Set {
        definitions.last_mut().into_iter().for_each(set_cache_mark);
    }
    definitions.into()
}

fn set_cache_mark(block: &mut Value) {
    block["cache_control"] = json!({ "type": "ephemeral" });
}

/// Returns `max_tokens`. Thinking counts as output, so its budget is added.
fn max_tokens(request: &ModelRequest, version: ClaudeVersion<'_>) -> u32 {
    let most = request.max_tokens.unwrap_or_else(|| version.max_tokens());
    match request.reasoning.and_then(|reasoning| version.budget(reasoning)) {
        Some(budget) if budget >= most => most.saturating_add(budget),
        _ => most,
    }
}

/// Returns the `thinking` member; a model that is forced to call a tool cannot think before.
fn thinking(
    request: &ModelRequest,
    version: ClaudeVersion<'_>,
    choice: Option<&Value>,
) -> Option<Value> {
    let is_forced =
        choice.is_some_and(|choice| choice["type"] == "any" || choice["type"] == "tool");
    match request.reasoning {
        Some(reasoning) if reasoning.effort() == ReasoningEffort::Off => version.thinking_off(),
        _ if is_forced => None,
        None => version.thinks_by_default().then(|| version.thinking()),
        Some(reasoning) => Some(match version.budget(reasoning) {
            Some(budget) => json!({ "type": "enabled", "budget_tokens": budget }),
            None => version.thinking(),
        }),
    }
}

fn output(request: &ModelRequest, version: ClaudeVersion<'_>) -> Option<Value> {
    let effort = match request.reasoning {
        Some(reasoning) if version.budget(reasoning).is_some() => None,
        Some(reasoning) => match reasoning.effort() {
            // Who cannot but think thinks little.
            ReasoningEffort::Off => version.thinking_off().is_none().then_some("low"),
            ReasoningEffort::Minimal | ReasoningEffort::Low => Some("low"),
            ReasoningEffort::Medium => Some("medium"),
            ReasoningEffort::High => Some("high"),
            ReasoningEffort::Max => Some("max"),
        },
        None => None,
    };
    let format = request.response_schema.as_ref().map(|response| {
        let schema: Value = response.schema.read().unwrap_or_default();
        json!({ "type": "json_schema", "schema": schema })
    });
    let output = present_members([("effort", effort.map(Into::into)), ("format", format)]);
    (!output.is_empty()).then(|| output.into())
}

fn choice(request: &ModelRequest, names: &ToolNameMap) -> Option<Value> {
    let mut choice = match &request.tool_choice {
        ToolChoice::Auto if request.parallel_calls == ParallelCalls::Several => return None,
        ToolChoice::Auto => json!({ "type": "auto" }),
        ToolChoice::None => return Some(json!({ "type": "none" })),
        ToolChoice::Required => json!({ "type": "any" }),
        ToolChoice::Named(name) => json!({ "type": "tool", "name": names.provider_name(name) }),
    };
    if request.parallel_calls == ParallelCalls::One {
        choice["disable_parallel_tool_use"] = json!(true);
    }
    Some(choice)
}

/// Returns a legal call id, also for one that another provider assigned.
fn legal_id(id: &str) -> Cow<'_, str> {
    legal_name(ToolDialect::Anthropic, id)
}

fn blocks<'a>(parts: impl Iterator<Item = &'a MessagePart>, images: MediaHandling) -> Vec<Value> {
    parts.filter_map(|part| PartView::of(part, images)).filter_map(block).collect()
}

/// Returns the content block, or a text in its place if the format has none; `None` for empty text, which the API
/// refuses.
fn block(view: PartView<'_>) -> Option<Value> {
    let source = |source: &BorrowedMedia<'_>| match source {
        BorrowedMedia::Data { mime, data } => {
            json!({ "type": "base64", "media_type": mime, "data": data })
        }
        BorrowedMedia::Url { url, .. } => json!({ "type": "url", "url": url }),
    };
    Some(match view {
        PartView::Image(ref image @ BorrowedMedia::Data { mime, .. }) if IMAGES.contains(&mime) => {
            json!({ "type": "image", "source": source(image) })
        }
        PartView::Image(ref image @ BorrowedMedia::Url { .. }) => {
            json!({ "type": "image", "source": source(image) })
        }
        PartView::File {
            source: ref file @ BorrowedMedia::Data { mime: "application/pdf", .. },
            ..
        } => {
            json!({ "type": "document", "source": source(file) })
        }
        view => {
            let text = view.into_text();
            if text.trim().is_empty() {
                return None;
            }
            json!({ "type": "text", "text": text })
        }
    })
}

fn result(answered: &AnsweredCall<'_>, images: MediaHandling) -> Value {
    let content = blocks(answered.result.parts.iter(), images);
    let members = present_members([
        ("type", Some(json!("tool_result"))),
        ("tool_use_id", Some(json!(legal_id(&answered.call.id)))),
        ("content", (!content.is_empty()).then(|| content.into())),
        ("is_error", answered.result.is_error.then_some(json!(true))),
    ]);
    members.into()
}

fn assistant(part: &MessagePart, names: &ToolNameMap) -> Option<Value> {
    let kept = |name: &str| part.opaque.member(OPAQUE_KEY, name).filter(|value| value.is_string());
    match &part.content {
        // Only thoughts that it signed are its own.
        PartContent::Thinking { redacted: true, .. } => {
            Some(json!({ "type": "redacted_thinking", "data": kept("data")? }))
        }
        PartContent::Thinking { text, .. } => {
            Some(json!({ "type": "thinking", "thinking": text, "signature": kept("signature")? }))
        }
        PartContent::ToolCall(call) => Some(json!({
            "type": "tool_use",
            "id": legal_id(&call.id),
            "name": names.provider_name(&call.name),
            "input": arguments_object(&call.arguments),
        })),
        PartContent::Foreign => {
            part.opaque.get(OPAQUE_KEY).filter(|block| block.is_object()).cloned()
        }
        _ => block(PartView::Text(PartView::of(part, MediaHandling::Described)?.into_text())),
    }
}

/// Returns true if the last turn is results of calls without thinking before them, such as calls of another model: a
/// request with a thinking budget would be refused.
fn lacks_thinking(messages: &[(&str, Vec<Value>)]) -> bool {
    let Some([(_, said), (_, results)]) = messages.last_chunk() else { return false };
    let is = |block: Option<&Value>, kind: &str| block.is_some_and(|block| block["type"] == kind);
    is(results.first(), "tool_result")
        && !is(said.first(), "thinking")
        && !is(said.first(), "redacted_thinking")
}

/// Removes trailing white space from a last assistant message, which the API refuses.
fn trim_end(messages: &mut [(&str, Vec<Value>)]) {
    if let Some(("assistant", blocks)) = messages.last_mut()
        && let Some(Value::String(text)) = blocks.last_mut().and_then(|last| last.get_mut("text"))
    {
        text.truncate(text.trim_end().len());
    }
}

#[cfg(test)]
pub(crate) mod tests;
