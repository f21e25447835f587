//! An answer read from its bytes, however they are split.

use std::sync::Arc;

use consort_core::Json;
use consort_protocol::sse::{SseDecoder, SseEvent};
use serde_json::Value;

use crate::assembly::ReplyAssembly;
use crate::decode::{DecodeError, ResponseDecoder, ResponseEvent};
use crate::endpoint::ProviderEndpoint;
use crate::error::{ExceededLimit, ProviderError, ProviderErrorKind};
use crate::error_classifier::ErrorClassifier;
use crate::formats::{anthropic, chat, gemini, responses};
use crate::limits::AnswerLimits;
use crate::reply::{ModelReply, ReplyDelta};
use crate::request::ModelRequest;
use crate::response_head::ResponseHead;
use crate::tool_names::ToolNameMap;
use crate::wire_format::WireFormat;

/// Reads one response: first [`head`](Self::head), then [`feed`](Self::feed) as bytes arrive, then
/// [`end`](Self::end). A response that is not streamed is read alike; it has no deltas but its reply.
#[derive(Debug)]
pub struct ResponseReader {
    head: ResponseHead,
    body: BodyForm,
    decoder: Box<dyn ResponseDecoder>,
    assembly: ReplyAssembly,
    classifier: ErrorClassifier,
    bytes: usize,
    events: usize,
    failure: Option<DecodeError>,
    has_emitted: bool,
    is_done: bool,
}

/// Detected form of the body.
#[derive(Debug)]
enum BodyForm {
    Unknown(Vec<u8>),
    Events(Box<SseDecoder>),
    Complete(Vec<u8>),
}

impl WireFormat {
    /// Returns a reader of the response to this request.
    pub fn reader(self, request: &ModelRequest, endpoint: &ProviderEndpoint) -> ResponseReader {
        self.reader_with(request, endpoint, Arc::new(ToolNameMap::new(self, &request.tools)))
    }

    pub(crate) fn reader_with(
        self,
        request: &ModelRequest,
        endpoint: &ProviderEndpoint,
        names: Arc<ToolNameMap>,
    ) -> ResponseReader {
        ResponseReader::new(self).for_request(request).for_endpoint(endpoint).with_names(names)
    }
}

impl ResponseReader {
    /// Creates a reader for this wire format, which expects success unless [`head`](Self::head) says otherwise.
    pub fn new(wire: WireFormat) -> Self {
        let decoder: Box<dyn ResponseDecoder> = match wire {
            WireFormat::OpenAiChat => Box::<chat::decode::ChatDecoder>::default(),
            WireFormat::OpenAiResponses => Box::<responses::decode::ResponsesDecoder>::default(),
            WireFormat::Anthropic => Box::<anthropic::decode::AnthropicDecoder>::default(),
            WireFormat::Gemini => Box::<gemini::decode::GeminiDecoder>::default(),
        };
        Self {
            head: ResponseHead::new(200, []),
            body: BodyForm::Unknown(Vec::new()),
            decoder,
            assembly: ReplyAssembly::default(),
            classifier: ErrorClassifier::default(),
            bytes: 0,
            events: 0,
            failure: None,
            has_emitted: false,
            is_done: false,
        }
    }

    /// Sets the limits.
    #[must_use]
    pub fn with_limits(mut self, limits: AnswerLimits) -> Self {
        self.assembly.limits = limits;
        self
    }

    /// Sets the mapping from the provider's tool names to Consort's.
    #[must_use]
    pub fn with_names(mut self, names: impl Into<Arc<ToolNameMap>>) -> Self {
        self.assembly.names = Some(names.into());
        self
    }

    pub(crate) fn for_request(mut self, request: &ModelRequest) -> Self {
        self.assembly.salt = request.messages.len();
        self.classifier.model.clone_from(&request.model);
        self
    }

    pub(crate) fn for_endpoint(mut self, endpoint: &ProviderEndpoint) -> Self {
        self.classifier.variable.clone_from(&endpoint.key_variable);
        self.classifier.secrets = endpoint.secrets();
        self
    }

    /// Takes the status and the headers.
    pub fn head<'a>(&mut self, status: u16, headers: impl IntoIterator<Item = (&'a str, &'a str)>) {
        self.head = ResponseHead::new(status, headers);
    }

    /// Takes bytes of the body as they arrive, and returns the deltas they complete.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<ReplyDelta> {
        if self.failure.is_some() || self.is_done {
            return Vec::new();
        }
        self.bytes = self.bytes.saturating_add(bytes.len());
        if let Err(failure) = self.read(bytes) {
            self.failure = Some(failure);
        }
        let deltas = self.assembly.take_deltas();
        self.has_emitted |= deltas.iter().any(|delta| !matches!(delta, ReplyDelta::Usage(_)));
        deltas
    }

    /// Returns true if nothing more needs to be read: the answer is complete, or failed.
    pub fn is_complete(&self) -> bool {
        self.is_done || self.failure.is_some()
    }

    /// Returns the reply, once the body has ended.
    pub fn end(mut self) -> Result<ModelReply, ProviderError> {
        let stop = match self.failure.take() {
            Some(failure) => Err(failure),
            None if !self.head.is_success() => {
                let (BodyForm::Unknown(body) | BodyForm::Complete(body)) = &self.body else {
                    return Err(self.error(DecodeError::Malformed(String::new())));
                };
                return Err(self.classifier.classify_response(&self.head, body));
            }
            None => self.read_rest().and_then(|()| self.decoder.finish(&mut self.assembly)),
        };
        match stop {
            Ok(Some(stop)) => Ok(self.assembly.finish(stop)),
            Ok(None) => {
                let mut error =
                    self.classifier.detected(&self.head, ProviderErrorKind::Truncated, "");
                error.mid_answer = self.has_emitted;
                Err(error)
            }
            Err(failure) => Err(self.error(failure)),
        }
    }

    /// Returns the reply after the body failed with this error: an answer that was complete by then succeeds.
    pub(crate) fn end_broken(self, broken: ProviderError) -> Result<ModelReply, ProviderError> {
        self.end().map_err(|error| match error.kind {
            ProviderErrorKind::Truncated | ProviderErrorKind::MalformedResponse => {
                ProviderError { mid_answer: error.mid_answer, ..broken }
            }
            _ => error,
        })
    }

    fn error(&self, failure: DecodeError) -> ProviderError {
        let (classifier, head) = (&self.classifier, &self.head);
        let mut error = match failure {
            DecodeError::Reported(value) => classifier.classify_event(head, &value),
            DecodeError::Refused(why) => {
                classifier.detected(head, ProviderErrorKind::Refused, &why)
            }
            DecodeError::Malformed(what) => {
                classifier.detected(head, ProviderErrorKind::MalformedResponse, &what)
            }
            DecodeError::Exceeded(exceeded) => {
                classifier.detected(head, ProviderErrorKind::TooLarge(exceeded), "")
            }
        };
        error.mid_answer = self.has_emitted;
        error
    }

    fn read(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        if !self.head.is_success() {
            if let BodyForm::Unknown(body) = &mut self.body {
                let room = self.assembly.limits.error_bytes.saturating_sub(body.len());
                body.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
            return Ok(());
        }
        if self.bytes > self.assembly.limits.answer_bytes {
            return Err(ExceededLimit::AnswerBytes(self.assembly.limits.answer_bytes).into());
        }
        match &mut self.body {
            BodyForm::Unknown(start) => {
                start.extend_from_slice(bytes);
                if start.trim_ascii().is_empty() {
                    // Some keep a connection alive with empty lines.
                    start.clear();
                }
                let Some(is_stream) = is_stream(start) else { return Ok(()) };
                let start = std::mem::take(start);
                if is_stream {
                    let mut events = SseDecoder::new(self.assembly.limits.event_bytes);
                    events.push(&start);
                    self.body = BodyForm::Events(Box::new(events));
                    return self.drain();
                }
                self.body = BodyForm::Complete(start);
            }
            BodyForm::Events(events) => {
                events.push(bytes);
                return self.drain();
            }
            BodyForm::Complete(body) => body.extend_from_slice(bytes),
        }
        Ok(())
    }

    fn drain(&mut self) -> Result<(), DecodeError> {
        while !self.is_done {
            let BodyForm::Events(events) = &mut self.body else { break };
            let most = self.assembly.limits.event_bytes;
            let event = events.next_event().map_err(|_| ExceededLimit::EventBytes(most))?;
            let Some(event) = event else { break };
            self.events += 1;
            if self.events > self.assembly.limits.events {
                return Err(ExceededLimit::Events(self.assembly.limits.events).into());
            }
            self.event(&event)?;
        }
        Ok(())
    }

    fn event(&mut self, event: &SseEvent) -> Result<(), DecodeError> {
        if event.data.trim_ascii() == b"[DONE]" {
            // Nothing is lost if it never comes; nothing counts behind it.
            self.is_done = true;
            return self.take(&Json::string("[DONE]"), false);
        }
        let Ok(json) = Json::parse(event.data.clone()) else {
            return Err(DecodeError::Malformed(excerpt(&event.data)));
        };
        self.take(&json, false)
    }

    fn take(&mut self, json: &Json, is_whole: bool) -> Result<(), DecodeError> {
        let value: Value =
            json.read().map_err(|_| DecodeError::Malformed(excerpt(json.as_bytes())))?;
        let is_error = match value.get("error") {
            Some(Value::Object(error)) => !error.is_empty(),
            Some(Value::String(error)) => !error.is_empty(),
            _ => false,
        };
        if is_error {
            return Err(DecodeError::Reported(value));
        }
        self.decoder
            .decode(&ResponseEvent { value: &value, raw: json, is_whole }, &mut self.assembly)?;
        self.is_done |= self.decoder.is_complete();
        Ok(())
    }

    /// Handles the rest after the body has ended.
    fn read_rest(&mut self) -> Result<(), DecodeError> {
        let whole = match &mut self.body {
            BodyForm::Events(events) => {
                // The last event may lack the empty line behind it, or the half of itself.
                events.push(b"\n\n");
                let none_yet = self.events == 0;
                return match self.drain() {
                    Err(DecodeError::Malformed(_)) if !none_yet => Ok(()),
                    other => other,
                };
            }
            BodyForm::Unknown(body) | BodyForm::Complete(body) => std::mem::take(body),
        };
        if whole.trim_ascii().is_empty() {
            return Ok(());
        }
        let Ok(json) = Json::parse(whole.clone()) else {
            return Err(DecodeError::Malformed(excerpt(&whole)));
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
    if text.trim_start().starts_with('<') { "an HTML page".to_owned() } else { text.into_owned() }
}
