//! Pieces of a response as events of a stream.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::super::ApiFormat;
use super::super::error::ApiError;
use super::super::item::{ItemStage, ResponseItem};
use super::super::whole_response::{completion_usage, run_extension};
use super::{ApiResponse, ResponseUpdate};
use crate::step::{RunReport, RunStatus};

impl ApiResponse {
    /// Emits the first events.
    pub(super) fn begin(&mut self, out: &mut String) {
        match self.format {
            ApiFormat::Chat => self.emit_chunk(&json!({ "role": "assistant", "content": "" }), out),
            ApiFormat::Responses => {
                for kind in ["response.created", "response.in_progress"] {
                    let response = self.response(None, None);
                    self.emit_event(kind, json!({ "response": response }), out);
                }
            }
        }
    }

    /// Emits an update.
    pub(super) fn emit(&mut self, new: &ResponseUpdate<'_>, out: &mut String) {
        match self.format {
            ApiFormat::Chat => self.emit_chat(new, out),
            ApiFormat::Responses => self.emit_response(new, out),
        }
    }

    /// Emits the last events.
    pub(super) fn emit_end(
        &mut self,
        report: &RunReport,
        error: Option<&ApiError>,
        out: &mut String,
    ) {
        if self.format == ApiFormat::Responses {
            let kind = match report.status {
                _ if error.is_some() => "response.failed",
                RunStatus::LimitReached | RunStatus::Denied => "response.incomplete",
                _ => "response.completed",
            };
            let response = self.response(Some(report), error);
            self.emit_event(kind, json!({ "response": response }), out);
            return;
        }
        if let Some(error) = error {
            write_data(&error.json(), out);
            return;
        }
        let mut last = self.base(&json!({}), Some(self.finish_reason(report)));
        last["consort"] = run_extension(report);
        self.emitted += 1;
        write_data(&last, out);
        if self.include_usage {
            let mut usage = self.base(&json!({}), None);
            usage["choices"] = json!([]);
            usage["usage"] = completion_usage(&report.usage);
            write_data(&usage, out);
        }
        out.push_str("data: [DONE]\n\n");
    }

    fn emit_chat(&mut self, new: &ResponseUpdate<'_>, out: &mut String) {
        match new {
            ResponseUpdate::Extension(aside)
            | ResponseUpdate::Progress(_, aside)
            | ResponseUpdate::CallResult(_, aside) => {
                self.emit_extension(aside.clone(), out);
            }
            ResponseUpdate::ThinkingDelta(text) => {
                self.emit_chunk(&json!({ "reasoning_content": text }), out);
            }
            ResponseUpdate::TextDelta(text) => match self.items.last() {
                Some(ResponseItem::Refusal(_)) => self.emit_chunk(&json!({ "refusal": text }), out),
                _ => self.emit_chunk(&json!({ "content": text }), out),
            },
            // What is said in a later turn is a new paragraph.
            ResponseUpdate::TextStarted(at) => {
                let before = self.items[..*at].iter();
                let before = before.filter(|item| matches!(item, ResponseItem::Text(_))).count();
                if before > 0 && matches!(self.items[*at], ResponseItem::Text(_)) {
                    self.emit_chunk(&json!({ "content": "\n\n" }), out);
                }
            }
            ResponseUpdate::TextEnded(_) => {}
            ResponseUpdate::CallStarted(at) => {
                if let ResponseItem::ServerCall(server_call) = &self.items[*at] {
                    let called = json!({
                        "event": "called", "call": server_call.call.id, "name": server_call.call.name,
                        "tool": server_call.tool, "arguments": server_call.call.arguments.as_str(),
                    });
                    self.emit_extension(called, out);
                }
            }
            ResponseUpdate::ClientCall(at) => {
                let suspended = |item: &&ResponseItem| matches!(item, ResponseItem::ClientCall(_));
                let index = self.items[..*at].iter().filter(suspended).count();
                if let ResponseItem::ClientCall(call) = &self.items[*at] {
                    let function =
                        json!({ "name": call.name, "arguments": call.arguments.as_str() });
                    let call = json!({
                        "index": index, "id": call.id, "type": "function", "function": function,
                    });
                    self.emit_chunk(&json!({ "tool_calls": [call] }), out);
                }
            }
        }
    }

    fn emit_response(&mut self, new: &ResponseUpdate<'_>, out: &mut String) {
        match new {
            ResponseUpdate::Extension(_) | ResponseUpdate::ThinkingDelta(_) => {}
            ResponseUpdate::TextStarted(at) => {
                self.emit_item("response.output_item.added", *at, ItemStage::Started, out);
                let part = self.items[*at].part(ItemStage::Started);
                self.emit_part("response.content_part.added", *at, [("part", part)], out);
            }
            ResponseUpdate::TextDelta(text) => {
                let at = self.items.len() - 1;
                let text = [("delta", json!(text)), ("logprobs", json!([]))];
                self.emit_part(&format!("response.{}.delta", self.content_type(at)), at, text, out);
            }
            ResponseUpdate::TextEnded(at) => {
                let (kind, text) = match &self.items[*at] {
                    ResponseItem::Refusal(text) => ("refusal", text),
                    ResponseItem::Text(text) => ("text", text),
                    _ => return,
                };
                let text = [(kind, json!(text)), ("logprobs", json!([]))];
                self.emit_part(
                    &format!("response.{}.done", self.content_type(*at)),
                    *at,
                    text,
                    out,
                );
                let part = self.items[*at].part(ItemStage::Done);
                self.emit_part("response.content_part.done", *at, [("part", part)], out);
                self.emit_item("response.output_item.done", *at, ItemStage::Done, out);
            }
            ResponseUpdate::CallStarted(at) => {
                self.emit_item("response.output_item.added", *at, ItemStage::Started, out);
                self.emit_part("response.mcp_call.in_progress", *at, [], out);
                self.emit_arguments("mcp_call", *at, out);
            }
            ResponseUpdate::Progress(at, progress) => {
                let more = [("consort", progress.clone())];
                self.emit_part("response.mcp_call.in_progress", *at, more, out);
            }
            ResponseUpdate::CallResult(at, summary) => {
                let failed = summary["is_error"] == true;
                let kind = if failed { "failed" } else { "completed" };
                let more = [("consort", summary.clone())];
                self.emit_part(&format!("response.mcp_call.{kind}"), *at, more, out);
                self.emit_item("response.output_item.done", *at, ItemStage::Done, out);
            }
            ResponseUpdate::ClientCall(at) => {
                self.emit_item("response.output_item.added", *at, ItemStage::Started, out);
                self.emit_arguments("function_call", *at, out);
                self.emit_item("response.output_item.done", *at, ItemStage::Done, out);
            }
        }
    }

    fn content_type(&self, at: usize) -> &'static str {
        if matches!(self.items[at], ResponseItem::Refusal(_)) { "refusal" } else { "output_text" }
    }

    /// Emits the arguments of a call, which are known at once.
    fn emit_arguments(&mut self, kind: &str, at: usize, out: &mut String) {
        let (ResponseItem::ClientCall(call)
        | ResponseItem::ServerCall(super::ServerCall { call, .. })) = &self.items[at]
        else {
            return;
        };
        let (name, arguments) = (json!(call.name), json!(call.arguments.as_str()));
        let delta = [("delta", arguments.clone())];
        self.emit_part(&format!("response.{kind}_arguments.delta"), at, delta, out);
        let mut done = vec![("arguments", arguments)];
        if kind == "function_call" {
            done.push(("name", name));
        }
        self.emit_part(&format!("response.{kind}_arguments.done"), at, done, out);
    }

    /// Emits an event about a whole item.
    fn emit_item(&mut self, kind: &str, at: usize, stage: ItemStage, out: &mut String) {
        let item = self.items[at].json(&self.id, at, stage);
        self.emit_event(kind, json!({ "output_index": at, "item": item }), out);
    }

    /// Emits an event about a part of an item.
    fn emit_part(
        &mut self,
        kind: &str,
        at: usize,
        more: impl IntoIterator<Item = (&'static str, Value)>,
        out: &mut String,
    ) {
        let mut body = Map::new();
        body.insert("item_id".to_owned(), self.items[at].id(&self.id, at).into());
        body.insert("output_index".to_owned(), at.into());
        if matches!(self.items[at], ResponseItem::Text(_) | ResponseItem::Refusal(_)) {
            body.insert("content_index".to_owned(), 0.into());
        }
        body.extend(more.into_iter().map(|(name, value)| (name.to_owned(), value)));
        self.emit_event(kind, body.into(), out);
    }

    fn emit_event(&mut self, kind: &str, mut body: Value, out: &mut String) {
        body["type"] = kind.into();
        body["sequence_number"] = self.emitted.into();
        self.emitted += 1;
        let _ = writeln!(out, "event: {kind}");
        write_data(&body, out);
    }

    fn emit_chunk(&mut self, delta: &Value, out: &mut String) {
        self.emitted += 1;
        write_data(&self.base(delta, None), out);
    }

    /// Emits a chunk without content, with an extension of Consort.
    fn emit_extension(&mut self, aside: Value, out: &mut String) {
        let mut chunk = self.base(&json!({}), None);
        chunk["consort"] = aside;
        self.emitted += 1;
        write_data(&chunk, out);
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

fn write_data(value: &Value, out: &mut String) {
    let _ = write!(out, "data: {value}\n\n");
}
