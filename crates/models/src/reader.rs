//! An answer read from its bytes, however they are split.

use std::sync::Arc;

use consort_core::Json;
use consort_wire::sse::{Event as SseEvent, Events};
use serde_json::Value;

use crate::assembly::Assembly;
use crate::decode::{Codec, Event, Trouble};
use crate::endpoint::Endpoint;
use crate::error::{Cause, Exceeded, ProviderError};
use crate::formats::{anthropic, chat, gemini, responses};
use crate::limits::Limits;
use crate::names::Names;
use crate::reply::{Delta, Reply};
use crate::request::Ask;
use crate::response_head::Head;
use crate::verdict::Judge;
use crate::wire_format::Wire;

/// Reads one response: first [`head`](Self::head), then [`feed`](Self::feed) as bytes arrive, then
/// [`end`](Self::end). A response that is not streamed is read alike; it has no deltas but its reply.
#[derive(Debug)]
pub struct Reader {
    head: Head,
    body: Body,
    codec: Box<dyn Codec>,
    assembly: Assembly,
    judge: Judge,
    bytes: usize,
    events: usize,
    trouble: Option<Trouble>,
    handed_out: bool,
    over: bool,
}

/// Detected form of the body.
#[derive(Debug)]
enum Body {
    Unknown(Vec<u8>),
    Events(Box<Events>),
    Whole(Vec<u8>),
}

impl Wire {
    /// Returns a reader of the response to this request.
    pub fn reader(self, ask: &Ask, endpoint: &Endpoint) -> Reader {
        self.reader_with(ask, endpoint, Arc::new(Names::new(self, &ask.tools)))
    }

    pub(crate) fn reader_with(self, ask: &Ask, endpoint: &Endpoint, names: Arc<Names>) -> Reader {
        Reader::new(self).for_ask(ask).for_endpoint(endpoint).with_names(names)
    }
}

impl Reader {
    /// Creates a reader for this wire format, which expects success unless [`head`](Self::head) says otherwise.
    pub fn new(wire: Wire) -> Self {
        let codec: Box<dyn Codec> = match wire {
            Wire::OpenAiChat => Box::<chat::read::Chat>::default(),
            Wire::OpenAiResponses => Box::<responses::read::Responses>::default(),
            Wire::Anthropic => Box::<anthropic::read::Anthropic>::default(),
            Wire::Gemini => Box::<gemini::read::Gemini>::default(),
        };
        Self {
            head: Head::new(200, []),
            body: Body::Unknown(Vec::new()),
            codec,
            assembly: Assembly::default(),
            judge: Judge::default(),
            bytes: 0,
            events: 0,
            trouble: None,
            handed_out: false,
            over: false,
        }
    }

    /// Sets the limits.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.assembly.limits = limits;
        self
    }

    /// Sets the mapping from the provider's tool names to Consort's.
    #[must_use]
    pub fn with_names(mut self, names: impl Into<Arc<Names>>) -> Self {
        self.assembly.names = Some(names.into());
        self
    }

    pub(crate) fn for_ask(mut self, ask: &Ask) -> Self {
        self.assembly.salt = ask.messages.len();
        self.judge.model.clone_from(&ask.model);
        self
    }

    pub(crate) fn for_endpoint(mut self, endpoint: &Endpoint) -> Self {
        self.judge.variable.clone_from(&endpoint.key_variable);
        self.judge.secrets = endpoint.secrets();
        self
    }

    /// Takes the status and the headers.
    pub fn head<'a>(&mut self, status: u16, headers: impl IntoIterator<Item = (&'a str, &'a str)>) {
        self.head = Head::new(status, headers);
    }

    /// Takes bytes of the body as they arrive, and returns the deltas they complete.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Delta> {
        if self.trouble.is_some() || self.over {
            return Vec::new();
        }
        self.bytes = self.bytes.saturating_add(bytes.len());
        if let Err(trouble) = self.read(bytes) {
            self.trouble = Some(trouble);
        }
        let deltas = self.assembly.take_deltas();
        self.handed_out |= deltas.iter().any(|delta| !matches!(delta, Delta::Usage(_)));
        deltas
    }

    /// Returns true if nothing more needs to be read: the answer is complete, or failed.
    pub fn is_over(&self) -> bool {
        self.over || self.trouble.is_some()
    }

    /// Returns the reply, once the body has ended.
    pub fn end(mut self) -> Result<Reply, ProviderError> {
        let stop = match self.trouble.take() {
            Some(trouble) => Err(trouble),
            None if !self.head.is_success() => {
                let (Body::Unknown(body) | Body::Whole(body)) = &self.body else {
                    return Err(self.error(Trouble::Broken(String::new())));
                };
                return Err(self.judge.status(&self.head, body));
            }
            None => self.last().and_then(|()| self.codec.stop(&mut self.assembly)),
        };
        match stop {
            Ok(Some(stop)) => Ok(self.assembly.finish(stop)),
            Ok(None) => {
                let mut error = self.judge.found(&self.head, Cause::Cut, "");
                error.handed_out = self.handed_out;
                Err(error)
            }
            Err(trouble) => Err(self.error(trouble)),
        }
    }

    /// Returns the reply after the body failed with this error: an answer that was complete by then succeeds.
    pub(crate) fn end_broken(self, broken: ProviderError) -> Result<Reply, ProviderError> {
        self.end().map_err(|error| match error.cause {
            Cause::Cut | Cause::NotJson => ProviderError { handed_out: error.handed_out, ..broken },
            _ => error,
        })
    }

    fn error(&self, trouble: Trouble) -> ProviderError {
        let (judge, head) = (&self.judge, &self.head);
        let mut error = match trouble {
            Trouble::Told(value) => judge.event(head, &value),
            Trouble::Refused(why) => judge.found(head, Cause::Refused, &why),
            Trouble::Broken(what) => judge.found(head, Cause::NotJson, &what),
            Trouble::Exceeded(exceeded) => judge.found(head, Cause::TooLarge(exceeded), ""),
        };
        error.handed_out = self.handed_out;
        error
    }

    fn read(&mut self, bytes: &[u8]) -> Result<(), Trouble> {
        if !self.head.is_success() {
            if let Body::Unknown(body) = &mut self.body {
                let room = self.assembly.limits.error_bytes.saturating_sub(body.len());
                body.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
            return Ok(());
        }
        if self.bytes > self.assembly.limits.answer_bytes {
            return Err(Exceeded::AnswerBytes(self.assembly.limits.answer_bytes).into());
        }
        match &mut self.body {
            Body::Unknown(start) => {
                start.extend_from_slice(bytes);
                if start.trim_ascii().is_empty() {
                    // Some keep a connection alive with empty lines.
                    start.clear();
                }
                let Some(is_stream) = is_stream(start) else { return Ok(()) };
                let start = std::mem::take(start);
                if is_stream {
                    let mut events = Events::new(self.assembly.limits.event_bytes);
                    events.push(&start);
                    self.body = Body::Events(Box::new(events));
                    return self.drain();
                }
                self.body = Body::Whole(start);
            }
            Body::Events(events) => {
                events.push(bytes);
                return self.drain();
            }
            Body::Whole(body) => body.extend_from_slice(bytes),
        }
        Ok(())
    }

    fn drain(&mut self) -> Result<(), Trouble> {
        while !self.over {
            let Body::Events(events) = &mut self.body else { break };
            let most = self.assembly.limits.event_bytes;
            let event = events.next_event().map_err(|_| Exceeded::EventBytes(most))?;
            let Some(event) = event else { break };
            self.events += 1;
            if self.events > self.assembly.limits.events {
                return Err(Exceeded::Events(self.assembly.limits.events).into());
            }
            self.event(&event)?;
        }
        Ok(())
    }

    fn event(&mut self, event: &SseEvent) -> Result<(), Trouble> {
        if event.data.trim_ascii() == b"[DONE]" {
            // Nothing is lost if it never comes; nothing counts behind it.
            self.over = true;
            return self.take(&Json::string("[DONE]"), false);
        }
        let Ok(json) = Json::parse(event.data.clone()) else {
            return Err(Trouble::Broken(excerpt(&event.data)));
        };
        self.take(&json, false)
    }

    fn take(&mut self, json: &Json, is_whole: bool) -> Result<(), Trouble> {
        let value: Value = json.read().map_err(|_| Trouble::Broken(excerpt(json.as_bytes())))?;
        let is_error = match value.get("error") {
            Some(Value::Object(error)) => !error.is_empty(),
            Some(Value::String(error)) => !error.is_empty(),
            _ => false,
        };
        if is_error {
            return Err(Trouble::Told(value));
        }
        self.codec.take(&Event { value: &value, raw: json, is_whole }, &mut self.assembly)?;
        self.over |= self.codec.is_over();
        Ok(())
    }

    /// Handles the rest after the body has ended.
    fn last(&mut self) -> Result<(), Trouble> {
        let whole = match &mut self.body {
            Body::Events(events) => {
                // The last event may lack the empty line behind it, or the half of itself.
                events.push(b"\n\n");
                let none_yet = self.events == 0;
                return match self.drain() {
                    Err(Trouble::Broken(_)) if !none_yet => Ok(()),
                    other => other,
                };
            }
            Body::Unknown(body) | Body::Whole(body) => std::mem::take(body),
        };
        if whole.trim_ascii().is_empty() {
            return Ok(());
        }
        let Ok(json) = Json::parse(whole.clone()) else {
            return Err(Trouble::Broken(excerpt(&whole)));
        };
        match json.to_items() {
            // A list of pieces is a stream that comes at once.
            Some(items) => items.iter().try_for_each(|item| self.take(item, false)),
            None => self.take(&json, true),
        }
    }
}

/// Returns true if a body with this beginning is an event stream; `None` until that can be told.
fn is_stream(start: &[u8]) -> Option<bool> {
    const FIELDS: [&[u8]; 5] = [b"data", b"event", b"id", b"retry", b":"];
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
    if start.len() < 5 && start.first() != Some(&b':') {
        return None;
    }
    Some(FIELDS.iter().any(|field| start.starts_with(field)))
}

/// Returns the beginning of a body that is not JSON; nothing of an HTML page.
fn excerpt(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]);
    if text.trim_start().starts_with('<') {
        "a page for people".to_owned()
    } else {
        text.into_owned()
    }
}
