//! Pieces of a response as events of a stream.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::super::Format;
use super::super::error::ApiError;
use super::super::item::{Item, Stage};
use super::super::whole::{completion_usage, over};
use super::{Answer, New};
use crate::step::{Report, Status};

impl Answer {
    /// Emits the first events.
    pub(super) fn begin(&mut self, out: &mut String) {
        match self.format {
            Format::Chat => self.chunk(&json!({ "role": "assistant", "content": "" }), out),
            Format::Responses => {
                for kind in ["response.created", "response.in_progress"] {
                    let response = self.response(None, None);
                    self.event(kind, json!({ "response": response }), out);
                }
            }
        }
    }

    /// Emits an update.
    pub(super) fn put(&mut self, new: &New<'_>, out: &mut String) {
        match self.format {
            Format::Chat => self.put_chat(new, out),
            Format::Responses => self.put_response(new, out),
        }
    }

    /// Emits the last events.
    pub(super) fn finished(&mut self, report: &Report, error: Option<&ApiError>, out: &mut String) {
        if self.format == Format::Responses {
            let kind = match report.status {
                _ if error.is_some() => "response.failed",
                Status::LimitReached | Status::Denied => "response.incomplete",
                _ => "response.completed",
            };
            let response = self.response(Some(report), error);
            self.event(kind, json!({ "response": response }), out);
            return;
        }
        if let Some(error) = error {
            data(&error.json(), out);
            return;
        }
        let mut last = self.base(&json!({}), Some(self.finish(report)));
        last["consort"] = over(report);
        self.told += 1;
        data(&last, out);
        if self.include_usage {
            let mut usage = self.base(&json!({}), None);
            usage["choices"] = json!([]);
            usage["usage"] = completion_usage(&report.usage);
            data(&usage, out);
        }
        out.push_str("data: [DONE]\n\n");
    }

    fn put_chat(&mut self, new: &New<'_>, out: &mut String) {
        match new {
            New::Aside(aside) | New::Progress(_, aside) | New::Came(_, aside) => {
                self.aside(aside.clone(), out);
            }
            New::Thought(text) => self.chunk(&json!({ "reasoning_content": text }), out),
            New::Words(text) => match self.items.last() {
                Some(Item::Refusal(_)) => self.chunk(&json!({ "refusal": text }), out),
                _ => self.chunk(&json!({ "content": text }), out),
            },
            // What is said in a later turn is a new paragraph.
            New::Begun(at) => {
                let before = self.items[..*at].iter();
                let before = before.filter(|item| matches!(item, Item::Text(_))).count();
                if before > 0 && matches!(self.items[*at], Item::Text(_)) {
                    self.chunk(&json!({ "content": "\n\n" }), out);
                }
            }
            New::Ended(_) => {}
            New::Called(at) => {
                if let Item::Own(own) = &self.items[*at] {
                    let called = json!({
                        "event": "called", "call": own.call.id, "name": own.call.name,
                        "tool": own.tool, "arguments": own.call.arguments.as_str(),
                    });
                    self.aside(called, out);
                }
            }
            New::Handed(at) => {
                let handed = |item: &&Item| matches!(item, Item::Handed(_));
                let index = self.items[..*at].iter().filter(handed).count();
                if let Item::Handed(call) = &self.items[*at] {
                    let function =
                        json!({ "name": call.name, "arguments": call.arguments.as_str() });
                    let call = json!({
                        "index": index, "id": call.id, "type": "function", "function": function,
                    });
                    self.chunk(&json!({ "tool_calls": [call] }), out);
                }
            }
        }
    }

    fn put_response(&mut self, new: &New<'_>, out: &mut String) {
        match new {
            New::Aside(_) | New::Thought(_) => {}
            New::Begun(at) => {
                self.item("response.output_item.added", *at, Stage::Begun, out);
                let part = self.items[*at].part(Stage::Begun);
                self.of("response.content_part.added", *at, [("part", part)], out);
            }
            New::Words(text) => {
                let at = self.items.len() - 1;
                let text = [("delta", json!(text)), ("logprobs", json!([]))];
                self.of(&format!("response.{}.delta", self.word(at)), at, text, out);
            }
            New::Ended(at) => {
                let (kind, text) = match &self.items[*at] {
                    Item::Refusal(text) => ("refusal", text),
                    Item::Text(text) => ("text", text),
                    _ => return,
                };
                let text = [(kind, json!(text)), ("logprobs", json!([]))];
                self.of(&format!("response.{}.done", self.word(*at)), *at, text, out);
                let part = self.items[*at].part(Stage::Done);
                self.of("response.content_part.done", *at, [("part", part)], out);
                self.item("response.output_item.done", *at, Stage::Done, out);
            }
            New::Called(at) => {
                self.item("response.output_item.added", *at, Stage::Begun, out);
                self.of("response.mcp_call.in_progress", *at, [], out);
                self.arguments("mcp_call", *at, out);
            }
            New::Progress(at, progress) => {
                let more = [("consort", progress.clone())];
                self.of("response.mcp_call.in_progress", *at, more, out);
            }
            New::Came(at, told) => {
                let failed = told["is_error"] == true;
                let kind = if failed { "failed" } else { "completed" };
                let more = [("consort", told.clone())];
                self.of(&format!("response.mcp_call.{kind}"), *at, more, out);
                self.item("response.output_item.done", *at, Stage::Done, out);
            }
            New::Handed(at) => {
                self.item("response.output_item.added", *at, Stage::Begun, out);
                self.arguments("function_call", *at, out);
                self.item("response.output_item.done", *at, Stage::Done, out);
            }
        }
    }

    fn word(&self, at: usize) -> &'static str {
        if matches!(self.items[at], Item::Refusal(_)) { "refusal" } else { "output_text" }
    }

    /// Emits the arguments of a call, which are known at once.
    fn arguments(&mut self, kind: &str, at: usize, out: &mut String) {
        let (Item::Handed(call) | Item::Own(super::Own { call, .. })) = &self.items[at] else {
            return;
        };
        let (name, arguments) = (json!(call.name), json!(call.arguments.as_str()));
        let delta = [("delta", arguments.clone())];
        self.of(&format!("response.{kind}_arguments.delta"), at, delta, out);
        let mut done = vec![("arguments", arguments)];
        if kind == "function_call" {
            done.push(("name", name));
        }
        self.of(&format!("response.{kind}_arguments.done"), at, done, out);
    }

    /// Emits an event about a whole item.
    fn item(&mut self, kind: &str, at: usize, stage: Stage, out: &mut String) {
        let item = self.items[at].json(&self.id, at, stage);
        self.event(kind, json!({ "output_index": at, "item": item }), out);
    }

    /// Emits an event about a part of an item.
    fn of(
        &mut self,
        kind: &str,
        at: usize,
        more: impl IntoIterator<Item = (&'static str, Value)>,
        out: &mut String,
    ) {
        let mut body = Map::new();
        body.insert("item_id".to_owned(), self.items[at].id(&self.id, at).into());
        body.insert("output_index".to_owned(), at.into());
        if matches!(self.items[at], Item::Text(_) | Item::Refusal(_)) {
            body.insert("content_index".to_owned(), 0.into());
        }
        body.extend(more.into_iter().map(|(name, value)| (name.to_owned(), value)));
        self.event(kind, body.into(), out);
    }

    fn event(&mut self, kind: &str, mut body: Value, out: &mut String) {
        body["type"] = kind.into();
        body["sequence_number"] = self.told.into();
        self.told += 1;
        let _ = writeln!(out, "event: {kind}");
        data(&body, out);
    }

    fn chunk(&mut self, delta: &Value, out: &mut String) {
        self.told += 1;
        data(&self.base(delta, None), out);
    }

    /// Emits a chunk without content, with an extension of Consort.
    fn aside(&mut self, aside: Value, out: &mut String) {
        let mut chunk = self.base(&json!({}), None);
        chunk["consort"] = aside;
        self.told += 1;
        data(&chunk, out);
    }

    fn base(&self, delta: &Value, finish: Option<&str>) -> Value {
        let choice =
            json!({ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish });
        let mut chunk = json!({
            "id": format!("chatcmpl-{}", self.id), "object": "chat.completion.chunk",
            "created": self.created, "model": self.model, "choices": [choice],
        });
        if self.include_usage {
            chunk["usage"] = Value::Null;
        }
        chunk
    }
}

fn data(value: &Value, out: &mut String) {
    let _ = write!(out, "data: {value}\n\n");
}
