//! `OpenAI`'s Responses API: responses.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::OPAQUE_KEY;
use crate::assembly::ReplyAssembly;
use crate::decode::{DecodeError, ResponseDecoder, ResponseEvent};
use crate::message::{MessagePart, PartContent};
use crate::reply::{ReplyDelta, StopReason, TokenUsage};

/// A response as far as it was read.
#[derive(Debug, Default)]
pub(crate) struct ResponsesDecoder {
    items: BTreeMap<u64, OutputItem>,
    status: Option<String>,
    why_incomplete: String,
}

/// One item of the output.
#[derive(Debug, Default)]
struct OutputItem {
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

impl OutputItem {
    /// Returns true if it is this item of the whole response. Some providers number items differently there.
    fn is_type(&self, item: &Value) -> bool {
        let same = |name: &str| !item[name].is_null() && self.value[name] == item[name];
        self.is_done && same("type") && (same("id") || same("content") || same("call_id"))
    }
}

impl ResponseDecoder for ResponsesDecoder {
    fn decode(
        &mut self,
        event: &ResponseEvent<'_>,
        into: &mut ReplyAssembly,
    ) -> Result<(), DecodeError> {
        let value = event.value;
        let kind = value["type"].as_str().unwrap_or_default();
        if kind.is_empty() && value["object"] == "response" {
            return self.response(value, into);
        }
        let index = value["output_index"].as_u64().unwrap_or_default();
        let delta = value["delta"].as_str().unwrap_or_default();
        match kind {
            "error" => return Err(DecodeError::Reported(value.clone())),
            "response.created" | "response.in_progress" => read_header(&value["response"], into),
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled" => return self.response(&value["response"], into),
            "response.output_item.added" => self.start_item(index, &value["item"], into)?,
            "response.output_item.done" => self.finish_item(index, &value["item"], into)?,
            "response.output_text.delta" => {
                self.item(index, into)?.text.push_str(delta);
                emit_text(ReplyDelta::Text, delta, into);
            }
            "response.refusal.delta" => {
                self.item(index, into)?.refusal.push_str(delta);
                emit_text(ReplyDelta::Refusal, delta, into);
            }
            "response.reasoning_summary_part.added" => {
                let item = self.item(index, into)?;
                if !item.thinking.is_empty() {
                    item.thinking.push_str("\n\n");
                    emit_text(ReplyDelta::Thinking, "\n\n", into);
                }
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.item(index, into)?.thinking.push_str(delta);
                emit_text(ReplyDelta::Thinking, delta, into);
            }
            "response.function_call_arguments.delta" => self.arguments(index, delta, into)?,
            "response.function_call_arguments.done" => {
                let whole = value["arguments"].as_str().unwrap_or_default();
                self.emit_rest(index, whole, into)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(&mut self, into: &mut ReplyAssembly) -> Result<Option<StopReason>, DecodeError> {
        let Some(status) = self.status.take() else { return Ok(None) };
        let calls: Vec<MessagePart> = std::mem::take(&mut into.parts);
        let mut refused = false;
        for item in std::mem::take(&mut self.items).into_values() {
            let call = item.call.and_then(|call| calls.get(call)).cloned();
            for part in parts(item, call) {
                refused |= matches!(part.content, PartContent::Refusal { .. });
                into.parts.push(part);
            }
        }
        let has_calls = into.calls() > 0;
        Ok(Some(match (&*status, &*self.why_incomplete) {
            ("completed", _) if refused && !has_calls => StopReason::Refusal,
            ("completed", _) => StopReason::End,
            ("incomplete", "max_output_tokens") => StopReason::Length,
            ("incomplete", "content_filter") => StopReason::ContentFilter,
            (status, "") => StopReason::Other(status.to_owned()),
            (status, why) => StopReason::Other(format!("{status}: {why}")),
        }))
    }

    fn is_complete(&self) -> bool {
        self.status.is_some()
    }
}

impl ResponsesDecoder {
    /// Returns an item by its index, within the limit of items.
    fn item(&mut self, index: u64, into: &ReplyAssembly) -> Result<&mut OutputItem, DecodeError> {
        if self.items.len() > into.limits.events.min(10_000) {
            return Err(DecodeError::Malformed("more than 10000 output items".to_owned()));
        }
        Ok(self.items.entry(index).or_default())
    }

    fn start_item(
        &mut self,
        index: u64,
        value: &Value,
        into: &mut ReplyAssembly,
    ) -> Result<(), DecodeError> {
        let item = self.item(index, into)?;
        item.value = value.clone();
        if value["type"] == "function_call" && item.call.is_none() {
            let text = |name: &str| value[name].as_str().unwrap_or_default();
            let id = if text("call_id").is_empty() { text("id") } else { text("call_id") };
            if text("name").is_empty() {
                return Err(DecodeError::Malformed("a tool call without a tool name".to_owned()));
            }
            item.call = Some(into.start_call(id, text("name"))?);
            self.emit_rest(index, text("arguments"), into)?;
        }
        Ok(())
    }

    /// Completes an item: emits everything that did not arrive as a delta.
    fn finish_item(
        &mut self,
        index: u64,
        value: &Value,
        into: &mut ReplyAssembly,
    ) -> Result<(), DecodeError> {
        self.start_item(index, value, into)?;
        if let Some(whole) =
            value["arguments"].as_str().filter(|_| value["type"] == "function_call")
        {
            self.emit_rest(index, whole, into)?;
        }
        let item = self.item(index, into)?;
        item.is_done = true;
        let (said, thought) = (item.text.is_empty(), item.thinking.is_empty());
        if said && item.refusal.is_empty() {
            for content in value["content"].as_array().into_iter().flatten() {
                match content["type"].as_str() {
                    Some("output_text") => {
                        emit_text(ReplyDelta::Text, text(&content["text"]), into);
                    }
                    Some("refusal") => {
                        emit_text(ReplyDelta::Refusal, text(&content["refusal"]), into);
                    }
                    _ => {}
                }
            }
        }
        if thought && value["type"] == "reasoning" {
            emit_text(ReplyDelta::Thinking, &thoughts(value), into);
        }
        Ok(())
    }

    fn arguments(
        &mut self,
        index: u64,
        delta: &str,
        into: &mut ReplyAssembly,
    ) -> Result<(), DecodeError> {
        let item = self.item(index, into)?;
        item.arguments.push_str(delta);
        match item.call {
            Some(call) => Ok(into.append_arguments(call, delta)?),
            None => Err(DecodeError::Malformed("arguments without a tool call".to_owned())),
        }
    }

    /// Emits the rest of the arguments, after those that arrived as deltas.
    fn emit_rest(
        &mut self,
        index: u64,
        whole: &str,
        into: &mut ReplyAssembly,
    ) -> Result<(), DecodeError> {
        let had = &self.item(index, into)?.arguments;
        match whole.strip_prefix(had.as_str()).map(str::to_owned) {
            Some(rest) if !rest.is_empty() => self.arguments(index, &rest, into),
            _ => Ok(()),
        }
    }

    /// Takes the whole response: the last event, or the only one.
    fn response(&mut self, response: &Value, into: &mut ReplyAssembly) -> Result<(), DecodeError> {
        read_header(response, into);
        if response["status"] == "failed" || response["error"].is_object() {
            return Err(DecodeError::Reported(response["error"].clone()));
        }
        for (index, item) in response["output"].as_array().into_iter().flatten().enumerate() {
            let index = index as u64;
            let is_done = self.items.get(&index).is_some_and(|item| item.is_done);
            if !is_done && !self.items.values().any(|known| known.is_type(item)) {
                self.finish_item(index, item, into)?;
            }
        }
        let usage = &response["usage"];
        if usage.is_object() {
            let number = |value: &Value| value.as_u64().unwrap_or_default();
            into.set_usage(TokenUsage {
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
fn parts(item: OutputItem, call: Option<MessagePart>) -> Vec<MessagePart> {
    let value = &item.value;
    let kept = |except: &[&str]| -> Map<String, Value> {
        let members = value.as_object().into_iter().flatten();
        let members =
            members.filter(|(name, value)| !except.contains(&&***name) && !value.is_null());
        members.map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    let with = |kind: PartContent, kept: Map<String, Value>| {
        let part = MessagePart::from(kind);
        if kept.is_empty() { part } else { part.with_opaque(OPAQUE_KEY, kept.into()) }
    };
    if let Some(mut part) = call {
        let kept = kept(&["type", "call_id", "name", "arguments", "status"]);
        if !kept.is_empty() {
            part.opaque.set(OPAQUE_KEY, kept.into());
        }
        return vec![part];
    }
    match value["type"].as_str().unwrap_or("message") {
        "reasoning" => {
            let text = if item.is_done { thoughts(value) } else { item.thinking };
            let redacted = text.is_empty() && value["encrypted_content"].is_string();
            vec![with(PartContent::Thinking { text, redacted }, kept(&["status"]))]
        }
        "message" => {
            let kept = kept(&["type", "role", "content", "status"]);
            let mut parts = Vec::new();
            for content in
                value["content"].as_array().into_iter().flatten().filter(|_| item.is_done)
            {
                let kind = match content["type"].as_str() {
                    Some("refusal") => {
                        PartContent::Refusal { text: text(&content["refusal"]).to_owned() }
                    }
                    _ => PartContent::Text { text: text(&content["text"]).to_owned() },
                };
                parts.push(with(kind, kept.clone()));
            }
            if !item.is_done && !item.text.is_empty() {
                parts.push(with(PartContent::Text { text: item.text }, kept.clone()));
            }
            if !item.is_done && !item.refusal.is_empty() {
                parts.push(with(PartContent::Refusal { text: item.refusal }, kept));
            }
            parts
        }
        _ => vec![with(PartContent::Foreign, kept(&[]))],
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

fn read_header(response: &Value, into: &mut ReplyAssembly) {
    if let Some(id) = response["id"].as_str() {
        id.clone_into(&mut into.id);
    }
    if let Some(model) = response["model"].as_str() {
        model.clone_into(&mut into.model);
    }
}

fn emit_text(delta: impl FnOnce(String) -> ReplyDelta, text: &str, into: &mut ReplyAssembly) {
    if !text.is_empty() {
        into.emit(delta(text.to_owned()));
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
