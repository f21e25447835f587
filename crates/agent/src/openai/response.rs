//! Conversion of a run's events into a response.

mod stream;

use serde_json::{Value, json};

use super::error::ApiError;
use super::item::{ResponseItem, ServerCall};
use super::{ApiFormat, ApiRequest};
use crate::event::RunEvent;
use crate::step::RunReport;
use consort_models::{ChatMessage, ReplyDelta, ToolCall, ToolCallResult};

/// A response as it is produced: streamed, or whole at the end. The model's text over several turns is one response;
/// calls of Consort's tools are part of it, calls of the client's tools end it.
#[derive(Debug)]
pub struct ApiResponse {
    pub(super) format: ApiFormat,
    pub(super) id: String,
    pub(super) created: u64,
    pub(super) model: String,
    pub(super) echoed: Value,
    pub(super) items: Vec<ResponseItem>,
    /// True if the last item is text that continues.
    open: bool,
    text_emission: TextEmission,
    include_usage: bool,
    client_tools: Vec<String>,
    /// True if the model produced output in this turn.
    has_output: bool,
    /// The calls of this turn.
    calls: Vec<ToolCall>,
    /// Number of chunks emitted.
    emitted: u64,
}

/// Time at which text is emitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextEmission {
    /// As it arrives.
    Now,
    /// Once it is known to be the final text, since it follows a schema.
    Last,
}

/// An update to be emitted.
enum ResponseUpdate<'a> {
    /// An extension of Consort that is not part of the response.
    Extension(Value),
    /// A piece of the model's thinking.
    ThinkingDelta(&'a str),
    /// Text that begins at this item.
    TextStarted(usize),
    /// More text of the last item.
    TextDelta(&'a str),
    /// The end of this item's text.
    TextEnded(usize),
    /// The start of a call of Consort.
    CallStarted(usize),
    /// Progress of a call of Consort.
    Progress(usize, Value),
    /// The result of a call of Consort.
    CallResult(usize, Value),
    /// A call for the client.
    ClientCall(usize),
}

impl ApiResponse {
    /// Creates a response with this id and time, in seconds since 1970.
    pub fn new(request: &ApiRequest, id: impl Into<String>, created: u64) -> Self {
        Self {
            format: request.format,
            id: id.into(),
            created,
            model: request.model.clone(),
            echoed: request.echoed.clone(),
            items: Vec::new(),
            open: false,
            text_emission: match request.options.response_schema {
                Some(_) => TextEmission::Last,
                None => TextEmission::Now,
            },
            include_usage: request.include_usage,
            client_tools: request.tools.iter().map(consort_core::Tool::name).collect(),
            has_output: false,
            calls: Vec::new(),
            emitted: 0,
        }
    }

    /// Takes an event, and returns the chunks of the stream for it, possibly none.
    pub fn push_event(&mut self, event: &RunEvent) -> String {
        let mut out = String::new();
        if self.emitted == 0 {
            self.begin(&mut out);
        }
        match event {
            RunEvent::Requesting { .. } => self.has_output = false,
            RunEvent::Delta { delta: ReplyDelta::Text(text) }
                if self.text_emission == TextEmission::Now =>
            {
                self.append_text(text, ResponseItem::Text(String::new()), &mut out);
            }
            RunEvent::Delta { delta: ReplyDelta::Refusal(text) }
                if self.text_emission == TextEmission::Now =>
            {
                self.append_text(text, ResponseItem::Refusal(String::new()), &mut out);
            }
            RunEvent::Delta { delta: ReplyDelta::Thinking(text) } => {
                self.emit(&ResponseUpdate::ThinkingDelta(text), &mut out);
            }
            RunEvent::Reply { message, .. } => self.push_message(message, &mut out),
            RunEvent::CallStarted { call, tool } => {
                let server_call =
                    ServerCall { call: call.clone(), tool: Some(tool.clone()), result: None };
                self.items.push(ResponseItem::ServerCall(server_call));
                self.emit(&ResponseUpdate::CallStarted(self.items.len() - 1), &mut out);
            }
            RunEvent::Progress { call, .. } => {
                if let (Some(at), Ok(progress)) =
                    (self.open_call(call), serde_json::to_value(event))
                {
                    self.emit(&ResponseUpdate::Progress(at, progress), &mut out);
                }
            }
            RunEvent::Result { result, error, duration_ms: took } => {
                self.push_result(result, error.as_deref(), *took, &mut out);
            }
            RunEvent::Retrying { error, wait_ms: after } => {
                let again = json!({ "event": "again", "error": error, "after": after });
                self.emit(&ResponseUpdate::Extension(again), &mut out);
            }
            _ => {}
        }
        out
    }

    /// Returns the last chunks of a stream. If the run failed, the text emitted so far stands.
    pub fn finish(&mut self, report: &RunReport, error: Option<&ApiError>) -> String {
        let mut out = String::new();
        if self.emitted == 0 {
            self.begin(&mut out);
        }
        self.close_text(&mut out);
        self.emit_end(report, error, &mut out);
        out
    }

    /// Returns the whole response, once the run has ended without an error.
    pub fn to_json(&self, report: &RunReport) -> Value {
        match self.format {
            ApiFormat::Chat => self.completion(report),
            ApiFormat::Responses => self.response(Some(report), None),
        }
    }

    /// Adds text, of the same kind as `like`.
    fn append_text(&mut self, text: &str, like: ResponseItem, out: &mut String) {
        if text.is_empty() {
            return;
        }
        self.has_output = true;
        let same = self.open
            && self
                .items
                .last()
                .is_some_and(|last| std::mem::discriminant(last) == std::mem::discriminant(&like));
        if !same {
            self.close_text(out);
            self.items.push(like);
            self.open = true;
            self.emit(&ResponseUpdate::TextStarted(self.items.len() - 1), out);
        }
        if let Some(ResponseItem::Text(words) | ResponseItem::Refusal(words)) =
            self.items.last_mut()
        {
            words.push_str(text);
        }
        self.emit(&ResponseUpdate::TextDelta(text), out);
    }

    /// Takes a complete message of the model.
    fn push_message(&mut self, message: &ChatMessage, out: &mut String) {
        self.calls = message.calls().cloned().collect();
        // Words of a turn that calls are not in the form that was asked for.
        if !self.has_output && (self.text_emission == TextEmission::Now || self.calls.is_empty()) {
            self.append_text(&message.text(), ResponseItem::Text(String::new()), out);
            for part in &message.parts {
                if let consort_models::PartContent::Refusal { text } = &part.content {
                    self.append_text(text, ResponseItem::Refusal(String::new()), out);
                }
            }
        }
        self.close_text(out);
        for call in self.calls.clone() {
            if self.client_tools.contains(&call.name) {
                self.items.push(ResponseItem::ClientCall(call));
                self.emit(&ResponseUpdate::ClientCall(self.items.len() - 1), out);
            }
        }
    }

    /// Takes the result of a call of Consort, which may never have been sent.
    fn push_result(
        &mut self,
        result: &ToolCallResult,
        error: Option<&str>,
        took: u64,
        out: &mut String,
    ) {
        let at = match self.open_call(&result.call) {
            Some(at) => at,
            None => {
                let Some(call) = self.calls.iter().find(|call| call.id == result.call) else {
                    return;
                };
                let server_call = ServerCall { call: call.clone(), tool: None, result: None };
                self.items.push(ResponseItem::ServerCall(server_call));
                let at = self.items.len() - 1;
                self.emit(&ResponseUpdate::CallStarted(at), out);
                at
            }
        };
        if let ResponseItem::ServerCall(server_call) = &mut self.items[at] {
            server_call.result = Some(result.clone());
        }
        let mut summary = json!({
            "event": "result", "call": result.call, "is_error": result.is_error, "took": took,
        });
        if let Some(error) = error {
            summary["error"] = error.into();
        }
        self.emit(&ResponseUpdate::CallResult(at, summary), out);
    }

    /// Returns the call of Consort with this id that has no result yet.
    fn open_call(&self, id: &str) -> Option<usize> {
        let open = |item: &ResponseItem| matches!(item, ResponseItem::ServerCall(server_call) if server_call.call.id == id && server_call.result.is_none());
        self.items.iter().position(open)
    }

    /// Ends text that continues.
    fn close_text(&mut self, out: &mut String) {
        if std::mem::take(&mut self.open) {
            self.emit(&ResponseUpdate::TextEnded(self.items.len() - 1), out);
        }
    }
}
