//! `OpenAI`'s Responses API: responses.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::WORD;
use crate::assembly::Assembly;
use crate::decode::{Codec, Event, Trouble};
use crate::message::{Kind, Part};
use crate::reply::{Delta, Stop, Usage};

/// A response as far as it was read.
#[derive(Debug, Default)]
pub(crate) struct Responses {
    items: BTreeMap<u64, Item>,
    status: Option<String>,
    why_incomplete: String,
}

/// One item of the output.
#[derive(Debug, Default)]
struct Item {
    /// Its value when it was added or, later, when it was done.
    value: Value,
    is_done: bool,
    /// Its index among the answer's calls.
    call: Option<usize>,
    text: String,
    refusal: String,
    thinking: String,
    arguments: String,
}

impl Item {
    /// Returns true if it is this item of the whole response. Some providers number items differently there.
    fn is(&self, item: &Value) -> bool {
        let same = |name: &str| !item[name].is_null() && self.value[name] == item[name];
        self.is_done && same("type") && (same("id") || same("content") || same("call_id"))
    }
}

impl Codec for Responses {
    fn take(&mut self, event: &Event<'_>, into: &mut Assembly) -> Result<(), Trouble> {
        let value = event.value;
        let kind = value["type"].as_str().unwrap_or_default();
        if kind.is_empty() && value["object"] == "response" {
            return self.response(value, into);
        }
        let index = value["output_index"].as_u64().unwrap_or_default();
        let delta = value["delta"].as_str().unwrap_or_default();
        match kind {
            "error" => return Err(Trouble::Told(value.clone())),
            "response.created" | "response.in_progress" => about(&value["response"], into),
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled" => return self.response(&value["response"], into),
            "response.output_item.added" => self.added(index, &value["item"], into)?,
            "response.output_item.done" => self.done(index, &value["item"], into)?,
            "response.output_text.delta" => {
                self.item(index, into)?.text.push_str(delta);
                tell(Delta::Text, delta, into);
            }
            "response.refusal.delta" => {
                self.item(index, into)?.refusal.push_str(delta);
                tell(Delta::Refusal, delta, into);
            }
            "response.reasoning_summary_part.added" => {
                let item = self.item(index, into)?;
                if !item.thinking.is_empty() {
                    item.thinking.push_str("\n\n");
                    tell(Delta::Thinking, "\n\n", into);
                }
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.item(index, into)?.thinking.push_str(delta);
                tell(Delta::Thinking, delta, into);
            }
            "response.function_call_arguments.delta" => self.arguments(index, delta, into)?,
            "response.function_call_arguments.done" => {
                let whole = value["arguments"].as_str().unwrap_or_default();
                self.rest(index, whole, into)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn stop(&mut self, into: &mut Assembly) -> Result<Option<Stop>, Trouble> {
        let Some(status) = self.status.take() else { return Ok(None) };
        let calls: Vec<Part> = std::mem::take(&mut into.parts);
        let mut refused = false;
        for item in std::mem::take(&mut self.items).into_values() {
            let call = item.call.and_then(|call| calls.get(call)).cloned();
            for part in parts(item, call) {
                refused |= matches!(part.kind, Kind::Refusal { .. });
                into.parts.push(part);
            }
        }
        let has_calls = into.calls() > 0;
        Ok(Some(match (&*status, &*self.why_incomplete) {
            ("completed", _) if refused && !has_calls => Stop::Refusal,
            ("completed", _) => Stop::End,
            ("incomplete", "max_output_tokens") => Stop::Length,
            ("incomplete", "content_filter") => Stop::ContentFilter,
            (status, "") => Stop::Other(status.to_owned()),
            (status, why) => Stop::Other(format!("{status}: {why}")),
        }))
    }

    fn is_over(&self) -> bool {
        self.status.is_some()
    }
}

impl Responses {
    /// Returns an item by its index, within the limit of items.
    fn item(&mut self, index: u64, into: &Assembly) -> Result<&mut Item, Trouble> {
        if self.items.len() > into.limits.events.min(10_000) {
            return Err(Trouble::Broken("an answer of more than 10000 items".to_owned()));
        }
        Ok(self.items.entry(index).or_default())
    }

    fn added(&mut self, index: u64, value: &Value, into: &mut Assembly) -> Result<(), Trouble> {
        let item = self.item(index, into)?;
        item.value = value.clone();
        if value["type"] == "function_call" && item.call.is_none() {
            let text = |name: &str| value[name].as_str().unwrap_or_default();
            let id = if text("call_id").is_empty() { text("id") } else { text("call_id") };
            if text("name").is_empty() {
                return Err(Trouble::Broken("a call without the name of a tool".to_owned()));
            }
            item.call = Some(into.call(id, text("name"))?);
            self.rest(index, text("arguments"), into)?;
        }
        Ok(())
    }

    /// Completes an item: emits everything that did not arrive as a delta.
    fn done(&mut self, index: u64, value: &Value, into: &mut Assembly) -> Result<(), Trouble> {
        self.added(index, value, into)?;
        if let Some(whole) =
            value["arguments"].as_str().filter(|_| value["type"] == "function_call")
        {
            self.rest(index, whole, into)?;
        }
        let item = self.item(index, into)?;
        item.is_done = true;
        let (said, thought) = (item.text.is_empty(), item.thinking.is_empty());
        if said && item.refusal.is_empty() {
            for content in value["content"].as_array().into_iter().flatten() {
                match content["type"].as_str() {
                    Some("output_text") => tell(Delta::Text, text(&content["text"]), into),
                    Some("refusal") => tell(Delta::Refusal, text(&content["refusal"]), into),
                    _ => {}
                }
            }
        }
        if thought && value["type"] == "reasoning" {
            tell(Delta::Thinking, &thoughts(value), into);
        }
        Ok(())
    }

    fn arguments(&mut self, index: u64, delta: &str, into: &mut Assembly) -> Result<(), Trouble> {
        let item = self.item(index, into)?;
        item.arguments.push_str(delta);
        match item.call {
            Some(call) => Ok(into.arguments(call, delta)?),
            None => Err(Trouble::Broken("arguments of no call".to_owned())),
        }
    }

    /// Emits the rest of the arguments, after those that arrived as deltas.
    fn rest(&mut self, index: u64, whole: &str, into: &mut Assembly) -> Result<(), Trouble> {
        let had = &self.item(index, into)?.arguments;
        match whole.strip_prefix(had.as_str()).map(str::to_owned) {
            Some(rest) if !rest.is_empty() => self.arguments(index, &rest, into),
            _ => Ok(()),
        }
    }

    /// Takes the whole response: the last event, or the only one.
    fn response(&mut self, response: &Value, into: &mut Assembly) -> Result<(), Trouble> {
        about(response, into);
        if response["status"] == "failed" || response["error"].is_object() {
            return Err(Trouble::Told(response["error"].clone()));
        }
        for (index, item) in response["output"].as_array().into_iter().flatten().enumerate() {
            let index = index as u64;
            let is_done = self.items.get(&index).is_some_and(|item| item.is_done);
            if !is_done && !self.items.values().any(|known| known.is(item)) {
                self.done(index, item, into)?;
            }
        }
        let usage = &response["usage"];
        if usage.is_object() {
            let number = |value: &Value| value.as_u64().unwrap_or_default();
            into.spend(Usage {
                input: number(&usage["input_tokens"]),
                output: number(&usage["output_tokens"]),
                cached_read: number(&usage["input_tokens_details"]["cached_tokens"]),
                cached_write: number(&usage["input_tokens_details"]["cache_write_tokens"]),
                reasoning: number(&usage["output_tokens_details"]["reasoning_tokens"]),
            });
        }
        text(&response["incomplete_details"]["reason"]).clone_into(&mut self.why_incomplete);
        let status = response["status"].as_str().unwrap_or("completed");
        self.status = Some(status.to_owned());
        Ok(())
    }
}

/// Returns the parts of an item, with the opaque data to send back.
fn parts(item: Item, call: Option<Part>) -> Vec<Part> {
    let value = &item.value;
    let kept = |except: &[&str]| -> Map<String, Value> {
        let members = value.as_object().into_iter().flatten();
        let members =
            members.filter(|(name, value)| !except.contains(&&***name) && !value.is_null());
        members.map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    let with = |kind: Kind, kept: Map<String, Value>| {
        let part = Part::from(kind);
        if kept.is_empty() { part } else { part.with_opaque(WORD, kept.into()) }
    };
    if let Some(mut part) = call {
        let kept = kept(&["type", "call_id", "name", "arguments", "status"]);
        if !kept.is_empty() {
            part.opaque.set(WORD, kept.into());
        }
        return vec![part];
    }
    match value["type"].as_str().unwrap_or("message") {
        "reasoning" => {
            let text = if item.is_done { thoughts(value) } else { item.thinking };
            let redacted = text.is_empty() && value["encrypted_content"].is_string();
            vec![with(Kind::Thinking { text, redacted }, kept(&["status"]))]
        }
        "message" => {
            let kept = kept(&["type", "role", "content", "status"]);
            let mut parts = Vec::new();
            for content in
                value["content"].as_array().into_iter().flatten().filter(|_| item.is_done)
            {
                let kind = match content["type"].as_str() {
                    Some("refusal") => Kind::Refusal { text: text(&content["refusal"]).to_owned() },
                    _ => Kind::Text { text: text(&content["text"]).to_owned() },
                };
                parts.push(with(kind, kept.clone()));
            }
            if !item.is_done && !item.text.is_empty() {
                parts.push(with(Kind::Text { text: item.text }, kept.clone()));
            }
            if !item.is_done && !item.refusal.is_empty() {
                parts.push(with(Kind::Refusal { text: item.refusal }, kept));
            }
            parts
        }
        _ => vec![with(Kind::Foreign, kept(&[]))],
    }
}

/// Returns the summary of a reasoning item, or its text if that is included.
fn thoughts(item: &Value) -> String {
    let texts = |name: &str| -> Vec<&str> {
        let list = item[name].as_array().into_iter().flatten();
        list.filter_map(|piece| piece["text"].as_str()).collect()
    };
    let summary = texts("summary");
    let all = if summary.is_empty() { texts("content") } else { summary };
    all.join("\n\n")
}

fn about(response: &Value, into: &mut Assembly) {
    if let Some(id) = response["id"].as_str() {
        id.clone_into(&mut into.id);
    }
    if let Some(model) = response["model"].as_str() {
        model.clone_into(&mut into.model);
    }
}

fn tell(delta: impl FnOnce(String) -> Delta, text: &str, into: &mut Assembly) {
    if !text.is_empty() {
        into.tell(delta(text.to_owned()));
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
