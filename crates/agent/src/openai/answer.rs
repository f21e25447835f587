//! Conversion of a run's events into a response.

mod stream;

use serde_json::{Value, json};

use super::error::ApiError;
use super::item::{Item, Own};
use super::{Asked, Format};
use crate::event::Event;
use crate::step::Report;
use consort_models::{ChatMessage, ReplyDelta, ToolCall, ToolCallResult};

/// A response as it is produced: streamed, or whole at the end. The model's text over several turns is one response;
/// calls of Consort's tools are part of it, calls of the client's tools end it.
#[derive(Debug)]
pub struct Answer {
    pub(super) format: Format,
    pub(super) id: String,
    pub(super) created: u64,
    pub(super) model: String,
    pub(super) echoed: Value,
    pub(super) items: Vec<Item>,
    /// True if the last item is text that continues.
    open: bool,
    tellable: Tellable,
    include_usage: bool,
    foreign: Vec<String>,
    /// True if the model produced output in this turn.
    heard: bool,
    /// The calls of this turn.
    calls: Vec<ToolCall>,
    /// Number of chunks emitted.
    told: u64,
}

/// Time at which text is emitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tellable {
    /// As it arrives.
    Now,
    /// Once it is known to be the final text, since it follows a schema.
    Last,
}

/// An update to be emitted.
enum New<'a> {
    /// An extension of Consort that is not part of the response.
    Aside(Value),
    /// A piece of the model's thinking.
    Thought(&'a str),
    /// Text that begins at this item.
    Begun(usize),
    /// More text of the last item.
    Words(&'a str),
    /// The end of this item's text.
    Ended(usize),
    /// The start of a call of Consort.
    Called(usize),
    /// Progress of a call of Consort.
    Progress(usize, Value),
    /// The result of a call of Consort.
    Came(usize, Value),
    /// A call for the client.
    Handed(usize),
}

impl Answer {
    /// Creates a response with this id and time, in seconds since 1970.
    pub fn new(asked: &Asked, id: impl Into<String>, created: u64) -> Self {
        Self {
            format: asked.format,
            id: id.into(),
            created,
            model: asked.model.clone(),
            echoed: asked.echoed.clone(),
            items: Vec::new(),
            open: false,
            tellable: match asked.wishes.response {
                Some(_) => Tellable::Last,
                None => Tellable::Now,
            },
            include_usage: asked.include_usage,
            foreign: asked.tools.iter().map(consort_core::Tool::name).collect(),
            heard: false,
            calls: Vec::new(),
            told: 0,
        }
    }

    /// Takes an event, and returns the chunks of the stream for it, possibly none.
    pub fn tell(&mut self, event: &Event) -> String {
        let mut out = String::new();
        if self.told == 0 {
            self.begin(&mut out);
        }
        match event {
            Event::Asking { .. } => self.heard = false,
            Event::Delta { delta: ReplyDelta::Text(text) } if self.tellable == Tellable::Now => {
                self.words(text, Item::Text(String::new()), &mut out);
            }
            Event::Delta { delta: ReplyDelta::Refusal(text) } if self.tellable == Tellable::Now => {
                self.words(text, Item::Refusal(String::new()), &mut out);
            }
            Event::Delta { delta: ReplyDelta::Thinking(text) } => {
                self.put(&New::Thought(text), &mut out);
            }
            Event::Said { message, .. } => self.said(message, &mut out),
            Event::Called { call, tool } => {
                let own = Own { call: call.clone(), tool: Some(tool.clone()), result: None };
                self.items.push(Item::Own(own));
                self.put(&New::Called(self.items.len() - 1), &mut out);
            }
            Event::Progress { call, .. } => {
                if let (Some(at), Ok(progress)) = (self.own(call), serde_json::to_value(event)) {
                    self.put(&New::Progress(at, progress), &mut out);
                }
            }
            Event::Result { result, error, took } => {
                self.came(result, error.as_deref(), *took, &mut out);
            }
            Event::Again { error, after } => {
                let again = json!({ "event": "again", "error": error, "after": after });
                self.put(&New::Aside(again), &mut out);
            }
            _ => {}
        }
        out
    }

    /// Returns the last chunks of a stream. If the run failed, the text emitted so far stands.
    pub fn end(&mut self, report: &Report, error: Option<&ApiError>) -> String {
        let mut out = String::new();
        if self.told == 0 {
            self.begin(&mut out);
        }
        self.close(&mut out);
        self.finished(report, error, &mut out);
        out
    }

    /// Returns the whole response, once the run has ended without an error.
    pub fn whole(&self, report: &Report) -> Value {
        match self.format {
            Format::Chat => self.completion(report),
            Format::Responses => self.response(Some(report), None),
        }
    }

    /// Adds text, of the same kind as `like`.
    fn words(&mut self, text: &str, like: Item, out: &mut String) {
        if text.is_empty() {
            return;
        }
        self.heard = true;
        let same = self.open
            && self
                .items
                .last()
                .is_some_and(|last| std::mem::discriminant(last) == std::mem::discriminant(&like));
        if !same {
            self.close(out);
            self.items.push(like);
            self.open = true;
            self.put(&New::Begun(self.items.len() - 1), out);
        }
        if let Some(Item::Text(words) | Item::Refusal(words)) = self.items.last_mut() {
            words.push_str(text);
        }
        self.put(&New::Words(text), out);
    }

    /// Takes a complete message of the model.
    fn said(&mut self, message: &ChatMessage, out: &mut String) {
        self.calls = message.calls().cloned().collect();
        // Words of a turn that calls are not in the form that was asked for.
        if !self.heard && (self.tellable == Tellable::Now || self.calls.is_empty()) {
            self.words(&message.text(), Item::Text(String::new()), out);
            for part in &message.parts {
                if let consort_models::PartContent::Refusal { text } = &part.content {
                    self.words(text, Item::Refusal(String::new()), out);
                }
            }
        }
        self.close(out);
        for call in self.calls.clone() {
            if self.foreign.contains(&call.name) {
                self.items.push(Item::Handed(call));
                self.put(&New::Handed(self.items.len() - 1), out);
            }
        }
    }

    /// Takes the result of a call of Consort, which may never have been sent.
    fn came(&mut self, result: &ToolCallResult, error: Option<&str>, took: u64, out: &mut String) {
        let at = match self.own(&result.call) {
            Some(at) => at,
            None => {
                let Some(call) = self.calls.iter().find(|call| call.id == result.call) else {
                    return;
                };
                let own = Own { call: call.clone(), tool: None, result: None };
                self.items.push(Item::Own(own));
                let at = self.items.len() - 1;
                self.put(&New::Called(at), out);
                at
            }
        };
        if let Item::Own(own) = &mut self.items[at] {
            own.result = Some(result.clone());
        }
        let mut told = json!({
            "event": "result", "call": result.call, "is_error": result.is_error, "took": took,
        });
        if let Some(error) = error {
            told["error"] = error.into();
        }
        self.put(&New::Came(at, told), out);
    }

    /// Returns the call of Consort with this id that has no result yet.
    fn own(&self, id: &str) -> Option<usize> {
        let open = |item: &Item| matches!(item, Item::Own(own) if own.call.id == id && own.result.is_none());
        self.items.iter().position(open)
    }

    /// Ends text that continues.
    fn close(&mut self, out: &mut String) {
        if std::mem::take(&mut self.open) {
            self.put(&New::Ended(self.items.len() - 1), out);
        }
    }
}
