//! `OpenAI`'s chat completions, as many providers implement them: responses.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::OPAQUE_KEY;
use crate::assembly::ReplyAssembly;
use crate::decode::{DecodeError, ResponseDecoder, ResponseEvent};
use crate::message::PartContent;
use crate::reply::{StopReason, TokenUsage};

/// A response as far as it was read.
#[derive(Debug, Default)]
pub(crate) struct ChatDecoder {
    calls: Vec<PartialCall>,
    /// Calls by their `index`.
    by_index: HashMap<u64, usize>,
    finish: Option<String>,
    is_refused: bool,
    is_done: bool,
}

/// A call as far as it was read.
#[derive(Debug, Default)]
struct PartialCall {
    id: String,
    name: String,
    /// Arguments that arrived before the name.
    pending_arguments: String,
    extra: Option<Value>,
    /// Its index among the answer's calls, once it has a name.
    index: Option<usize>,
}

impl ResponseDecoder for ChatDecoder {
    fn decode(
        &mut self,
        event: &ResponseEvent<'_>,
        into: &mut ReplyAssembly,
    ) -> Result<(), DecodeError> {
        let value = event.value;
        if value == "[DONE]" {
            self.is_done = true;
            return Ok(());
        }
        if value["object"] == "error" {
            return Err(DecodeError::Reported(value.clone()));
        }
        if let Some(id) = value["id"].as_str().filter(|_| into.id.is_empty()) {
            id.clone_into(&mut into.id);
        }
        if let Some(model) = value["model"].as_str().filter(|_| into.model.is_empty()) {
            model.clone_into(&mut into.model);
        }
        for usage in [&value["usage"], &value["x_groq"]["usage"]] {
            if usage.is_object() {
                into.set_usage(self::usage(usage));
            }
        }
        let choices = value["choices"].as_array().into_iter().flatten().enumerate();
        // Others than the first were not asked for.
        let first = choices.filter(|(_, choice)| choice["index"].as_u64().unwrap_or_default() == 0);
        for (place, choice) in first {
            let streams = choice["delta"].is_object();
            // Perplexity writes both into every choice: in a stream the message is all that was said so far.
            let is_delta = streams && !(event.is_whole && choice["message"].is_object());
            let key = if is_delta { "delta" } else { "message" };
            let at = format!("/choices/{place}/{key}");
            if event.is_whole || streams || into.parts.is_empty() {
                self.delta(&choice[key], &at, event, into)?;
            } else {
                self.snapshot(&choice[key], &at, event, into)?;
            }
            if let Some(finish) = choice["finish_reason"].as_str().filter(|text| !text.is_empty()) {
                self.finish = Some(finish.to_owned());
            }
        }
        Ok(())
    }

    fn finish(&mut self, into: &mut ReplyAssembly) -> Result<Option<StopReason>, DecodeError> {
        if self.calls.iter().any(|piece| piece.index.is_none()) {
            return Err(DecodeError::Malformed("a tool call without a tool name".to_owned()));
        }
        let has_calls = into.calls() > 0;
        Ok(match self.finish.as_deref() {
            None if self.is_done && (has_calls || !into.parts.is_empty()) => Some(StopReason::End),
            None => None,
            Some("stop" | "eos" | "tool_calls" | "function_call")
                if !self.is_refused || has_calls =>
            {
                Some(StopReason::End)
            }
            Some("stop" | "eos" | "refusal" | "tool_calls" | "function_call") => {
                Some(StopReason::Refusal)
            }
            Some("length" | "max_tokens" | "model_length") => Some(StopReason::Length),
            Some("content_filter") => Some(StopReason::ContentFilter),
            Some(other) => Some(StopReason::Other(other.to_owned())),
        })
    }
}

impl ChatDecoder {
    fn delta(
        &mut self,
        delta: &Value,
        at: &str,
        event: &ResponseEvent<'_>,
        into: &mut ReplyAssembly,
    ) -> Result<(), DecodeError> {
        let field = ["reasoning_content", "reasoning"]
            .into_iter()
            .find_map(|field| Some((field, delta[field].as_str()?)));
        if let Some((field, text)) = field {
            add_reasoning(field, text, into);
        }
        if let Some(details) = delta["reasoning_details"].as_array().filter(|all| !all.is_empty()) {
            into.opaque.extend_member(OPAQUE_KEY, "reasoning_details", details);
        }
        content(&delta["content"], into);
        if let Some(refusal) = delta["refusal"].as_str().filter(|text| !text.is_empty()) {
            self.is_refused = true;
            into.append_text(PartContent::Refusal { text: refusal.to_owned() });
        }
        for (place, call) in delta["tool_calls"].as_array().into_iter().flatten().enumerate() {
            let at = format!("{at}/tool_calls/{place}/function/arguments");
            if !is_blank(call) {
                let slot = self.slot(call);
                self.call(slot, call, &at, event, into)?;
            }
        }
        let call = json!({ "index": 0, "function": delta["function_call"] });
        if delta["function_call"].is_object() && !is_blank(&call) {
            let slot = self.slot(&call);
            self.call(slot, &call, &format!("{at}/function_call/arguments"), event, into)?;
        }
        Ok(())
    }

    /// Takes a complete message in a stream after its deltas: text that the deltas carried is not repeated.
    fn snapshot(
        &mut self,
        message: &Value,
        at: &str,
        event: &ResponseEvent<'_>,
        into: &mut ReplyAssembly,
    ) -> Result<(), DecodeError> {
        let emitted: String = into
            .parts
            .iter()
            .filter_map(|part| match &part.content {
                PartContent::Text { text } => Some(text.as_str()),
                _ => None,
            })
            .collect();
        if let Some(rest) = message["content"].as_str().map(|text| text.strip_prefix(&*emitted)) {
            // A piece under another name, where it does not begin with what was said.
            let whole = message["content"].as_str().unwrap_or_default();
            into.append_text(PartContent::Text { text: rest.unwrap_or(whole).to_owned() });
        }
        for (place, call) in message["tool_calls"].as_array().into_iter().flatten().enumerate() {
            let id = call["id"].as_str().unwrap_or_default();
            let is_known = self.calls.iter().any(|piece| piece.id == id);
            if !is_known && !is_blank(call) {
                let slot = self.slot(call);
                let at = format!("{at}/tool_calls/{place}/function/arguments");
                self.call(slot, call, &at, event, into)?;
            }
        }
        Ok(())
    }

    /// Returns the call that a delta belongs to. Some providers send no index, or a wrong one.
    fn slot(&mut self, call: &Value) -> usize {
        let id = call["id"].as_str().unwrap_or_default();
        let name = call["function"]["name"].as_str().unwrap_or_default();
        let index = call["index"].as_u64();
        let known = match index {
            Some(index) => self.by_index.get(&index).copied().filter(|slot| {
                let piece = &self.calls[*slot];
                let other = !id.is_empty() && !piece.id.is_empty() && id != piece.id;
                !other || name.is_empty()
            }),
            None if !id.is_empty() => self.calls.iter().position(|piece| piece.id == id),
            None if name.is_empty() => self.calls.len().checked_sub(1),
            None => None,
        };
        let slot = known.unwrap_or(self.calls.len());
        if known.is_none() {
            self.calls.push(PartialCall::default());
        }
        if let Some(index) = index {
            self.by_index.insert(index, slot);
        }
        slot
    }

    fn call(
        &mut self,
        slot: usize,
        call: &Value,
        at: &str,
        event: &ResponseEvent<'_>,
        into: &mut ReplyAssembly,
    ) -> Result<(), DecodeError> {
        let piece = &mut self.calls[slot];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if piece.id.is_empty() {
            piece.id = text(&call["id"]);
        }
        if piece.name.is_empty() {
            piece.name = text(&call["function"]["name"]);
        }
        if call["extra_content"].is_object() {
            piece.extra = Some(call["extra_content"].clone());
        }
        let fragment = match &call["function"]["arguments"] {
            Value::String(text) => text.clone(),
            Value::Object(_) => {
                event.raw_at(at).map(|json| json.as_str().to_owned()).unwrap_or_default()
            }
            _ => String::new(),
        };
        piece.pending_arguments.push_str(&fragment);
        if piece.index.is_none() && !piece.name.is_empty() {
            piece.index = Some(into.start_call(&piece.id, &piece.name)?);
        }
        let Some(index) = piece.index else { return Ok(()) };
        into.append_arguments(index, &std::mem::take(&mut piece.pending_arguments))?;
        if let (Some(extra), Some(part)) = (piece.extra.take(), into.call_part(index)) {
            part.opaque.set_member(OPAQUE_KEY, "extra_content", extra);
        }
        Ok(())
    }
}

/// Returns true if a call's delta is empty: Snowflake writes one into every choice.
fn is_blank(call: &Value) -> bool {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        _ => false,
    };
    let function = &call["function"];
    is_empty(&call["id"]) && is_empty(&function["name"]) && is_empty(&function["arguments"])
}

/// Adds reasoning, with the name of the field it arrived in.
fn add_reasoning(field: &str, text: &str, into: &mut ReplyAssembly) {
    if text.is_empty() {
        return;
    }
    let last =
        into.parts.last().is_some_and(|last| matches!(last.content, PartContent::Thinking { .. }));
    if last {
        into.append_to_part(into.parts.len() - 1, text);
    } else {
        let at =
            into.add_part(PartContent::Thinking { text: text.to_owned(), redacted: false }.into());
        into.parts[at].opaque.set_member(OPAQUE_KEY, "field", field.into());
    }
}

/// Adds text, or a list of text and reasoning chunks, as Mistral writes it.
fn content(content: &Value, into: &mut ReplyAssembly) {
    match content {
        Value::String(text) => into.append_text(PartContent::Text { text: text.clone() }),
        Value::Array(chunks) => {
            for chunk in chunks {
                if let Some(text) = chunk["text"].as_str() {
                    into.append_text(PartContent::Text { text: text.to_owned() });
                }
                for thought in chunk["thinking"].as_array().into_iter().flatten() {
                    let text = thought["text"].as_str().unwrap_or_default().to_owned();
                    into.append_text(PartContent::Thinking { text, redacted: false });
                }
            }
        }
        _ => {}
    }
}

fn usage(usage: &Value) -> TokenUsage {
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    let cached = &usage["prompt_tokens_details"];
    TokenUsage {
        input: number(&usage["prompt_tokens"]),
        output: number(&usage["completion_tokens"]),
        cached_read: number(&cached["cached_tokens"])
            .max(number(&usage["prompt_cache_hit_tokens"])),
        cached_write: number(&cached["cache_write_tokens"]),
        reasoning: number(&usage["completion_tokens_details"]["reasoning_tokens"]),
    }
}
