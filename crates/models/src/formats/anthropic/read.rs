//! Anthropic's Messages API: responses.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::WORD;
use crate::assembly::Assembly;
use crate::decode::{Codec, Event, Trouble};
use crate::message::{Kind, Part};
use crate::reply::{Stop, Usage};

/// A response as far as it was read.
#[derive(Debug, Default)]
pub(crate) struct Anthropic {
    blocks: HashMap<u64, Block>,
    stop: Option<String>,
    /// Counts of each kind of token; later events repeat only some of them.
    usage: Counts,
    is_over: bool,
}

/// Destination of a content block's deltas.
#[derive(Debug)]
enum Block {
    /// Text or thinking: the part.
    Words(usize),
    /// A call: its index among the calls.
    Call(usize),
    /// An unknown block: the part, and its input as far as it arrived.
    Foreign(usize, String),
}

#[derive(Debug, Default)]
struct Counts {
    input: u64,
    output: u64,
    read: u64,
    write: u64,
    thinking: u64,
}

impl Codec for Anthropic {
    fn take(&mut self, event: &Event<'_>, into: &mut Assembly) -> Result<(), Trouble> {
        let value = event.value;
        let index = value["index"].as_u64().unwrap_or_default();
        match value["type"].as_str().unwrap_or_default() {
            "message" => self.whole(event, into)?,
            "message_start" => self.start(&value["message"], into),
            "content_block_start" => {
                let written = event.written("/content_block/input");
                let input = written.filter(|json| json.as_str() != "{}");
                let input = input.as_ref().map_or("", |json| json.as_str());
                self.open(index, &value["content_block"], input, into)?;
            }
            "content_block_delta" => self.delta(index, &value["delta"], into)?,
            "content_block_stop" => self.close(index, into),
            "message_delta" => {
                self.count(&value["usage"], into);
                self.stopped(&value["delta"], into);
            }
            "message_stop" => self.is_over = true,
            _ => {}
        }
        Ok(())
    }

    fn stop(&mut self, _: &mut Assembly) -> Result<Option<Stop>, Trouble> {
        Ok(match self.stop.as_deref() {
            None => None,
            Some("end_turn" | "stop_sequence" | "tool_use") => Some(Stop::End),
            Some("max_tokens" | "model_context_window_exceeded") => Some(Stop::Length),
            Some("refusal") => Some(Stop::Refusal),
            Some("pause_turn") => Some(Stop::Paused),
            Some(other) => Some(Stop::Other(other.to_owned())),
        })
    }

    fn is_over(&self) -> bool {
        self.is_over
    }
}

impl Anthropic {
    fn whole(&mut self, event: &Event<'_>, into: &mut Assembly) -> Result<(), Trouble> {
        self.start(event.value, into);
        let blocks = event.value["content"].as_array().into_iter().flatten();
        for (index, block) in blocks.enumerate() {
            let written = event.written(&format!("/content/{index}/input"));
            let input = written.as_ref().map_or("", |json| json.as_str());
            self.open(index as u64, block, input, into)?;
        }
        self.stopped(event.value, into);
        self.is_over = true;
        Ok(())
    }

    fn start(&mut self, message: &Value, into: &mut Assembly) {
        text(&message["id"]).clone_into(&mut into.id);
        text(&message["model"]).clone_into(&mut into.model);
        self.count(&message["usage"], into);
    }

    fn stopped(&mut self, with: &Value, into: &mut Assembly) {
        if let Some(stop) = with["stop_reason"].as_str() {
            self.stop = Some(stop.to_owned());
            let why = text(&with["stop_details"]["explanation"]);
            if stop == "refusal" && !why.is_empty() {
                into.open(Kind::Refusal { text: why.to_owned() }.into());
            }
        }
    }

    fn open(
        &mut self,
        index: u64,
        block: &Value,
        input: &str,
        into: &mut Assembly,
    ) -> Result<(), Trouble> {
        if self.blocks.len() > 10_000 {
            return Err(Trouble::Broken("an answer of more than 10000 blocks".to_owned()));
        }
        let opened = match text(&block["type"]) {
            "text" => {
                Block::Words(into.open(Kind::Text { text: text(&block["text"]).to_owned() }.into()))
            }
            "thinking" => {
                let thought = text(&block["thinking"]).to_owned();
                let at = into.open(Kind::Thinking { text: thought, redacted: false }.into());
                sign(at, text(&block["signature"]), into);
                Block::Words(at)
            }
            "redacted_thinking" => {
                let part = Part::from(Kind::Thinking { text: String::new(), redacted: true });
                let kept = json!({ "data": text(&block["data"]) });
                Block::Words(into.open(part.with_opaque(WORD, kept)))
            }
            "tool_use" => {
                let name = text(&block["name"]);
                if name.is_empty() {
                    return Err(Trouble::Broken("a call without the name of a tool".to_owned()));
                }
                let call = into.call(text(&block["id"]), name)?;
                into.arguments(call, input)?;
                Block::Call(call)
            }
            _ => {
                let part = Part::from(Kind::Foreign).with_opaque(WORD, block.clone());
                Block::Foreign(into.open(part), String::new())
            }
        };
        self.blocks.insert(index, opened);
        Ok(())
    }

    fn delta(&mut self, index: u64, delta: &Value, into: &mut Assembly) -> Result<(), Trouble> {
        let Some(block) = self.blocks.get_mut(&index) else {
            return Err(Trouble::Broken("a piece of no block".to_owned()));
        };
        match (text(&delta["type"]), block) {
            ("text_delta", Block::Words(at)) => into.extend(*at, text(&delta["text"])),
            ("thinking_delta", Block::Words(at)) => into.extend(*at, text(&delta["thinking"])),
            ("signature_delta", Block::Words(at)) => sign(*at, text(&delta["signature"]), into),
            ("input_json_delta", Block::Call(call)) => {
                into.arguments(*call, text(&delta["partial_json"]))?;
            }
            ("input_json_delta", Block::Foreign(_, input)) => {
                input.push_str(text(&delta["partial_json"]));
            }
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, index: u64, into: &mut Assembly) {
        if let Some(Block::Foreign(at, input)) = self.blocks.get(&index)
            && let Ok(input) = serde_json::from_str::<Value>(input)
        {
            into.parts[*at].opaque.set_member(WORD, "input", input);
        }
    }

    fn count(&mut self, usage: &Value, into: &mut Assembly) {
        let update = |count: &mut u64, value: &Value| *count = value.as_u64().unwrap_or(*count);
        let counts = &mut self.usage;
        update(&mut counts.input, &usage["input_tokens"]);
        update(&mut counts.output, &usage["output_tokens"]);
        update(&mut counts.read, &usage["cache_read_input_tokens"]);
        update(&mut counts.write, &usage["cache_creation_input_tokens"]);
        update(&mut counts.thinking, &usage["output_tokens_details"]["thinking_tokens"]);
        let input = counts.input.saturating_add(counts.read).saturating_add(counts.write);
        into.spend(Usage {
            input,
            output: counts.output,
            cached_read: counts.read,
            cached_write: counts.write,
            reasoning: counts.thinking,
        });
    }
}

/// Appends to the signature of a thinking part.
fn sign(at: usize, signature: &str, into: &mut Assembly) {
    if signature.is_empty() {
        return;
    }
    let opaque = &mut into.parts[at].opaque;
    let had = opaque.member(WORD, "signature").and_then(Value::as_str).unwrap_or_default();
    let whole = format!("{had}{signature}");
    opaque.set_member(WORD, "signature", whole.into());
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
