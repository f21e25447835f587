//! Anthropic's Messages API: requests.

use std::borrow::Cow;

use crate::dialect::{Dialect, legal_name};
use serde_json::{Map, Value, json};

use super::media::{Source, View};
use super::turns::{Answered, Turn, turns};
use super::{input, object};
use crate::message::{Kind, Part};
use crate::names::Names;
use crate::request::{Ask, CacheMarks, Calls, Choice, Delivery, Effort, Images};

pub(crate) mod read;
mod version;

use version::Version;

/// Key of this wire format in [`Opaque`](crate::Opaque).
const WORD: &str = "anthropic";

/// Image types that the API accepts.
const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

pub(crate) fn body(ask: &Ask, names: &Names) -> Map<String, Value> {
    let mut system = Vec::new();
    let mut messages: Vec<(&str, Vec<Value>)> = Vec::new();
    for turn in &turns(&ask.messages) {
        let (role, blocks) = match turn {
            // The wire has one place for them, whenever they were said.
            Turn::System(parts) => {
                system.extend(blocks(parts.iter().copied(), Images::Named));
                continue;
            }
            Turn::User(parts) => ("user", blocks(parts.iter().map(AsRef::as_ref), ask.images)),
            Turn::Results(results) => {
                ("user", results.iter().map(|answered| result(answered, ask.images)).collect())
            }
            Turn::Assistant { parts, .. } => {
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
    let works_without_thoughts = works_without_thoughts(&messages);
    if ask.cache == CacheMarks::Set {
        let last_user = messages.iter_mut().rev().find(|(role, _)| *role == "user");
        let last = last_user.and_then(|(_, blocks)| blocks.last_mut());
        [system.last_mut(), last].into_iter().flatten().for_each(mark);
    }
    let messages: Vec<Value> = messages
        .into_iter()
        .map(|(role, content)| json!({ "role": role, "content": content }))
        .collect();
    let choice = if ask.tools.is_empty() { None } else { choice(ask, names) };
    let version = Version::of(&ask.model);
    let thinking = thinking(ask, version, choice.as_ref())
        .filter(|thinking| thinking["type"] != "enabled" || !works_without_thoughts);
    let thinks = thinking.as_ref().is_some_and(|thinking| thinking["type"] != "disabled");
    object([
        ("model", Some(json!(ask.model))),
        ("max_tokens", Some(json!(max_tokens(ask, version)))),
        ("system", (!system.is_empty()).then(|| system.into())),
        ("messages", Some(messages.into())),
        ("tool_choice", choice),
        // A model that thinks takes none.
        (
            "temperature",
            ask.temperature.filter(|_| !thinks && !version.is_adaptive()).map(Into::into),
        ),
        ("stop_sequences", (!ask.stop.is_empty()).then(|| json!(ask.stop))),
        ("thinking", thinking),
        ("output_config", output(ask, version)),
        ("stream", (ask.delivery == Delivery::Stream).then_some(json!(true))),
    ])
}

/// The tools, the last of them with a cache mark if caching is requested.
pub(crate) fn tools(mut definitions: Vec<Value>, cache: CacheMarks) -> Value {
    if cache == CacheMarks::Set {
        definitions.last_mut().into_iter().for_each(mark);
    }
    definitions.into()
}

fn mark(block: &mut Value) {
    block["cache_control"] = json!({ "type": "ephemeral" });
}

/// Returns `max_tokens`. Thinking counts as output, so its budget is added.
fn max_tokens(ask: &Ask, version: Version<'_>) -> u32 {
    let most = ask.max_tokens.unwrap_or_else(|| version.max_tokens());
    match ask.reasoning.and_then(|reasoning| version.budget(reasoning)) {
        Some(budget) if budget >= most => most.saturating_add(budget),
        _ => most,
    }
}

/// Returns the `thinking` member; a model that is forced to call a tool cannot think before.
fn thinking(ask: &Ask, version: Version<'_>, choice: Option<&Value>) -> Option<Value> {
    let is_forced =
        choice.is_some_and(|choice| choice["type"] == "any" || choice["type"] == "tool");
    match ask.reasoning {
        Some(reasoning) if reasoning.effort() == Effort::Off => version.no_thinking(),
        _ if is_forced => None,
        None => version.thinks().then(|| version.thinking()),
        Some(reasoning) => Some(match version.budget(reasoning) {
            Some(budget) => json!({ "type": "enabled", "budget_tokens": budget }),
            None => version.thinking(),
        }),
    }
}

fn output(ask: &Ask, version: Version<'_>) -> Option<Value> {
    let effort = match ask.reasoning {
        Some(reasoning) if version.budget(reasoning).is_some() => None,
        Some(reasoning) => match reasoning.effort() {
            // Who cannot but think thinks little.
            Effort::Off => version.no_thinking().is_none().then_some("low"),
            Effort::Minimal | Effort::Low => Some("low"),
            Effort::Medium => Some("medium"),
            Effort::High => Some("high"),
            Effort::Max => Some("max"),
        },
        None => None,
    };
    let format = ask.response.as_ref().map(|response| {
        let schema: Value = response.schema.read().unwrap_or_default();
        json!({ "type": "json_schema", "schema": schema })
    });
    let output = object([("effort", effort.map(Into::into)), ("format", format)]);
    (!output.is_empty()).then(|| output.into())
}

fn choice(ask: &Ask, names: &Names) -> Option<Value> {
    let mut choice = match &ask.choice {
        Choice::Auto if ask.calls == Calls::Several => return None,
        Choice::Auto => json!({ "type": "auto" }),
        Choice::None => return Some(json!({ "type": "none" })),
        Choice::Required => json!({ "type": "any" }),
        Choice::Named(name) => json!({ "type": "tool", "name": names.there(name) }),
    };
    if ask.calls == Calls::One {
        choice["disable_parallel_tool_use"] = json!(true);
    }
    Some(choice)
}

/// Returns a legal call id, also for one that another provider assigned.
fn id(id: &str) -> Cow<'_, str> {
    legal_name(Dialect::Anthropic, id)
}

fn blocks<'a>(parts: impl Iterator<Item = &'a Part>, images: Images) -> Vec<Value> {
    parts.filter_map(|part| View::of(part, images)).filter_map(block).collect()
}

/// Returns the content block, or a text in its place if the format has none; `None` for empty text, which the API
/// refuses.
fn block(view: View<'_>) -> Option<Value> {
    let source = |source: &Source<'_>| match source {
        Source::Data { mime, data } => {
            json!({ "type": "base64", "media_type": mime, "data": data })
        }
        Source::Url { url, .. } => json!({ "type": "url", "url": url }),
    };
    Some(match view {
        View::Image(ref image @ Source::Data { mime, .. }) if IMAGES.contains(&mime) => {
            json!({ "type": "image", "source": source(image) })
        }
        View::Image(ref image @ Source::Url { .. }) => {
            json!({ "type": "image", "source": source(image) })
        }
        View::File { source: ref file @ Source::Data { mime: "application/pdf", .. }, .. } => {
            json!({ "type": "document", "source": source(file) })
        }
        view => {
            let text = view.words();
            if text.trim().is_empty() {
                return None;
            }
            json!({ "type": "text", "text": text })
        }
    })
}

fn result(answered: &Answered<'_>, images: Images) -> Value {
    let content = blocks(answered.result.parts.iter(), images);
    let members = object([
        ("type", Some(json!("tool_result"))),
        ("tool_use_id", Some(json!(id(&answered.call.id)))),
        ("content", (!content.is_empty()).then(|| content.into())),
        ("is_error", answered.result.is_error.then_some(json!(true))),
    ]);
    members.into()
}

fn assistant(part: &Part, names: &Names) -> Option<Value> {
    let kept = |name: &str| part.opaque.member(WORD, name).filter(|value| value.is_string());
    match &part.kind {
        // Only thoughts that it signed are its own.
        Kind::Thinking { redacted: true, .. } => {
            Some(json!({ "type": "redacted_thinking", "data": kept("data")? }))
        }
        Kind::Thinking { text, .. } => {
            Some(json!({ "type": "thinking", "thinking": text, "signature": kept("signature")? }))
        }
        Kind::ToolCall(call) => Some(json!({
            "type": "tool_use",
            "id": id(&call.id),
            "name": names.there(&call.name),
            "input": input(&call.arguments),
        })),
        Kind::Foreign => part.opaque.get(WORD).filter(|block| block.is_object()).cloned(),
        _ => block(View::Text(View::of(part, Images::Named)?.words())),
    }
}

/// Returns true if the last turn is results of calls without thinking before them, such as calls of another model: a
/// request with a thinking budget would be refused.
fn works_without_thoughts(messages: &[(&str, Vec<Value>)]) -> bool {
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
