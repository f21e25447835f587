//! Anthropic's Messages API: responses.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::OPAQUE_KEY;
use crate::assembly::ReplyAssembly;
use crate::decode::{DecodeError, ResponseDecoder, ResponseEvent};
use crate::message::{MessagePart, PartContent};
use crate::reply::{StopReason, TokenUsage};

/// A response as far as it was read.
#[derive(Debug, Default)]
pub(crate) struct AnthropicDecoder {
    blocks: HashMap<u64, BlockTarget>,
    stop: Option<String>,
    /// Counts of each kind of token; later events repeat only some of them.
    usage: AnthropicUsage,
    is_complete: bool,
}

/// Destination of a content block's deltas.
#[derive(Debug)]
enum BlockTarget {
    /// Text or thinking: the part.
    Words(usize),
    /// A call: its index among the calls.
    Call(usize),
    /// An unknown block: the part, and its input as far as it arrived.
    Foreign(usize, String),
}

#[derive(Debug, Default)]
struct AnthropicUsage {
    input: u64,
    output: u64,
    read: u64,
    write: u64,
    thinking: u64,
}

impl ResponseDecoder for AnthropicDecoder {
    fn decode(
        &mut self,
        event: &ResponseEvent<'_>,
        into: &mut ReplyAssembly,
    ) -> Result<(), DecodeError> {
        let value = event.value;
        let index = value["index"].as_u64().unwrap_or_default();
        match value["type"].as_str().unwrap_or_default() {
            "message" => self.decode_whole(event, into)?,
            "message_start" => self.start(&value["message"], into),
            "content_block_start" => {
                let written = event.raw_at("/content_block/input");
                let input = written.filter(|json| json.as_str() != "{}");
                let input = input.as_ref().map_or("", |json| json.as_str());
                self.open_block(index, &value["content_block"], input, into)?;
            }
            "content_block_delta" => self.delta(index, &value["delta"], into)?,
            "content_block_stop" => self.close_block(index, into),
            "message_delta" => {
                self.count(&value["usage"], into);
                self.set_stop(&value["delta"], into);
            }
            "message_stop" => self.is_complete = true,
            _ => {}
        }
        Ok(())
    }

    fn finish(&mut self, _: &mut ReplyAssembly) -> Result<Option<StopReason>, DecodeError> {
        Ok(match self.stop.as_deref() {
            None => None,
            Some("end_turn" | "stop_sequence" | "tool_use") => Some(StopReason::End),
            Some("max_tokens" | "model_context_window_exceeded") => Some(StopReason::Length),
            Some("refusal") => Some(StopReason::Refusal),
            Some("pause_turn") => Some(StopReason::Paused),
            Some(other) => Some(StopReason::Other(other.to_owned())),
        })
    }

    fn is_complete(&self) -> bool {
        self.is_complete
    }
}

impl AnthropicDecoder {
    fn decode_whole(
        &mut self,
        event: &ResponseEvent<'_>,
        into: &mut ReplyAssembly,
    ) -> Result<(), DecodeError> {
        self.start(event.value, into);
        let blocks = event.value["content"].as_array().into_iter().flatten();
        for (index, block) in blocks.enumerate() {
            let written = event.raw_at(&format!("/content/{index}/input"));
            let input = written.as_ref().map_or("", |json| json.as_str());
            self.open_block(index as u64, block, input, into)?;
        }
        self.set_stop(event.value, into);
        self.is_complete = true;
        Ok(())
    }

    fn start(&mut self, message: &Value, into: &mut ReplyAssembly) {
        text(&message["id"]).clone_into(&mut into.id);
        text(&message["model"]).clone_into(&mut into.model);
        self.count(&message["usage"], into);
    }

    fn set_stop(&mut self, with: &Value, into: &mut ReplyAssembly) {
        if let Some(stop) = with["stop_reason"].as_str() {
            self.stop = Some(stop.to_owned());
            let why = text(&with["stop_details"]["explanation"]);
            if stop == "refusal" && !why.is_empty() {
                into.add_part(PartContent::Refusal { text: why.to_owned() }.into());
            }
        }
    }

    fn open_block(
        &mut self,
        index: u64,
        block: &Value,
        input: &str,
        into: &mut ReplyAssembly,
    ) -> Result<(), DecodeError> {
        if self.blocks.len() > 10_000 {
            return Err(DecodeError::Malformed("more than 10000 content blocks".to_owned()));
        }
        let opened = match text(&block["type"]) {
            "text" => BlockTarget::Words(
                into.add_part(PartContent::Text { text: text(&block["text"]).to_owned() }.into()),
            ),
            "thinking" => {
                let thought = text(&block["thinking"]).to_owned();
                let at =
                    into.add_part(PartContent::Thinking { text: thought, redacted: false }.into());
                sign(at, text(&block["signature"]), into);
                BlockTarget::Words(at)
            }
            "redacted_thinking" => {
                let part = MessagePart::from(PartContent::Thinking {
                    text: String::new(),
                    redacted: true,
                });
                let opaque = json!({ "data": text(&block["data"]) });
                BlockTarget::Words(into.add_part(part.with_opaque(OPAQUE_KEY, opaque)))
            }
            "tool_use" => {
                let name = text(&block["name"]);
                if name.is_empty() {
                    return Err(DecodeError::Malformed(
                        "a tool call without a tool name".to_owned(),
                    ));
                }
                let call = into.start_call(text(&block["id"]), name)?;
                into.append_arguments(call, input)?;
                BlockTarget::Call(call)
            }
            _ => {
                let part =
                    MessagePart::from(PartContent::Foreign).with_opaque(OPAQUE_KEY, block.clone());
                BlockTarget::Foreign(into.add_part(part), String::new())
            }
        };
        self.blocks.insert(index, opened);
        Ok(())
    }

    fn delta(
        &mut self,
        index: u64,
        delta: &Value,
        into: &mut ReplyAssembly,
    ) -> Result<(), DecodeError> {
        let Some(block) = self.blocks.get_mut(&index) else {
            return Err(DecodeError::Malformed("a delta for an unknown content block".to_owned()));
        };
        match (text(&delta["type"]), block) {
            ("text_delta", BlockTarget::Words(at)) => {
                into.append_to_part(*at, text(&delta["text"]));
            }
            ("thinking_delta", BlockTarget::Words(at)) => {
                into.append_to_part(*at, text(&delta["thinking"]));
            }
            ("signature_delta", BlockTarget::Words(at)) => {
                sign(*at, text(&delta["signature"]), into);
            }
            ("input_json_delta", BlockTarget::Call(call)) => {
                into.append_arguments(*call, text(&delta["partial_json"]))?;
            }
            ("input_json_delta", BlockTarget::Foreign(_, input)) => {
                input.push_str(text(&delta["partial_json"]));
            }
            _ => {}
        }
        Ok(())
    }

    fn close_block(&mut self, index: u64, into: &mut ReplyAssembly) {
        if let Some(BlockTarget::Foreign(at, input)) = self.blocks.get(&index)
            && let Ok(input) = serde_json::from_str::<Value>(input)
        {
            into.parts[*at].opaque.set_member(OPAQUE_KEY, "input", input);
        }
    }

    fn count(&mut self, usage: &Value, into: &mut ReplyAssembly) {
        let update = |count: &mut u64, value: &Value| *count = value.as_u64().unwrap_or(*count);
        let counts = &mut self.usage;
        update(&mut counts.input, &usage["input_tokens"]);
        update(&mut counts.output, &usage["output_tokens"]);
        update(&mut counts.read, &usage["cache_read_input_tokens"]);
        update(&mut counts.write, &usage["cache_creation_input_tokens"]);
        update(&mut counts.thinking, &usage["output_tokens_details"]["thinking_tokens"]);
        let input = counts.input.saturating_add(counts.read).saturating_add(counts.write);
        into.set_usage(TokenUsage {
            input,
            output: counts.output,
            cached_read: counts.read,
            cached_write: counts.write,
            reasoning: counts.thinking,
        });
    }
}

/// Appends to the signature of a thinking part.
fn sign(at: usize, signature: &str, into: &mut ReplyAssembly) {
    if signature.is_empty() {
        return;
    }
    let opaque = &mut into.parts[at].opaque;
    let had = opaque.member(OPAQUE_KEY, "signature").and_then(Value::as_str).unwrap_or_default();
    let whole = format!("{had}{signature}");
    opaque.set_member(OPAQUE_KEY, "signature", whole.into());
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
