//! A span: one request or call in a trace, with the attributes that OpenTelemetry specifies for MCP.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::mpsc;

use super::TraceSampler;
use crate::ledger::OutcomeClass;
use crate::metrics::METHODS;
use crate::server_status::MessageTransport;
use consort_protocol::trace::{SpanId, TraceContext};

/// The method of a request with an unknown method, as OpenTelemetry writes it.
const OTHER: &str = "_OTHER";

/// Kind of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// A request that a client sent to the gateway.
    Server,
    /// A request that the gateway sent to a server.
    Client,
    /// Something that happens within this process, such as the run of an agent.
    Internal,
}

/// Description of a span. Unknown members are left out.
#[derive(Clone, Copy, Debug)]
pub struct SpanDescription<'a> {
    /// Kind of the span.
    pub side: SpanKind,
    /// For example `tools/call`.
    pub method: &'a str,
    /// The tool, the prompt or the URI.
    pub name: Option<&'a str>,
    /// The session of a legacy client.
    pub session: Option<&'a str>,
    /// The protocol revision.
    pub revision: Option<&'a str>,
    /// The id of the request.
    pub request: Option<&'a str>,
    /// Transport of the messages.
    pub via: Option<MessageTransport>,
    /// The server that was called.
    pub server: Option<&'a str>,
    /// The agent that makes the call.
    pub agent: Option<&'a str>,
    /// The host and the port of the server that was called.
    pub address: Option<(&'a str, u16)>,
}

impl<'a> SpanDescription<'a> {
    /// Creates the description of a request of which only the method is known.
    pub fn new(side: SpanKind, method: &'a str) -> Self {
        Self {
            side,
            method,
            name: None,
            session: None,
            revision: None,
            request: None,
            via: None,
            server: None,
            agent: None,
            address: None,
        }
    }

    /// The method, if it is a known one: others are arbitrary text of a client.
    fn known_method(&self) -> &'a str {
        if METHODS.contains(&self.method) { self.method } else { OTHER }
    }

    /// A span name of low cardinality: without URIs.
    fn span_name(&self) -> String {
        match self.name {
            // The span of an agent's call is the one that OpenTelemetry wants of its framework too.
            Some(name) if self.agent.is_some() && self.method == "tools/call" => {
                format!("execute_tool {name}")
            }
            Some(name) if matches!(self.method, "tools/call" | "prompts/get") => {
                format!("{} {name}", self.method)
            }
            _ => self.known_method().to_owned(),
        }
    }

    fn attributes(&self) -> Vec<(&'static str, SpanAttribute)> {
        let named = match self.method {
            "tools/call" => "gen_ai.tool.name",
            "prompts/get" => "gen_ai.prompt.name",
            _ => "mcp.resource.uri",
        };
        let operation = (self.method == "tools/call").then_some("execute_tool");
        let transport = self.via.map(|via| via.network);
        let protocol = self.via.and_then(|via| via.protocol);
        let texts = [
            ("mcp.method.name", Some(self.known_method())),
            (named, self.name),
            ("gen_ai.operation.name", operation),
            ("mcp.session.id", self.session),
            ("mcp.protocol.version", self.revision),
            ("jsonrpc.request.id", self.request),
            ("network.transport", transport),
            ("network.protocol.name", protocol),
            ("consort.server", self.server),
            ("gen_ai.agent.name", self.agent),
        ];
        let given = texts.into_iter().filter_map(|(key, text)| Some((key, text?)));
        let mut attributes: Vec<_> =
            given.map(|(key, text)| (key, SpanAttribute::Text(text.to_owned()))).collect();
        if let Some((host, port)) = self.address {
            attributes.push(("server.address", SpanAttribute::Text(host.to_owned())));
            attributes.push(("server.port", SpanAttribute::Number(port.into())));
        }
        attributes
    }
}

/// The description of a span that begins.
#[derive(Clone, Debug)]
pub struct SpanStart {
    /// Kind of the span.
    pub side: SpanKind,
    /// Its name, of low cardinality.
    pub name: String,
    /// Its attributes.
    pub attributes: Vec<(&'static str, SpanAttribute)>,
}

/// Value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpanAttribute {
    /// A string.
    Text(String),
    /// An integer.
    Number(i64),
}

/// Begins spans, and exports those that are recorded. Clones share one tracer.
#[derive(Clone, Debug)]
pub struct SpanTracer {
    sampler: TraceSampler,
    sender: Option<mpsc::Sender<FinishedSpan>>,
    dropped: Arc<AtomicU64>,
}

impl SpanTracer {
    pub(super) fn new(sampler: TraceSampler, sender: mpsc::Sender<FinishedSpan>) -> Self {
        Self { sampler, sender: Some(sender), dropped: Arc::default() }
    }

    /// A tracer that records nothing, and passes on the context it is given.
    pub fn off() -> Self {
        Self { sampler: TraceSampler::Share(0.0), sender: None, dropped: Arc::default() }
    }

    /// Returns true if spans can be recorded.
    pub fn is_on(&self) -> bool {
        self.sender.is_some()
    }

    /// Begins a span, as a child of `parent` if there is one. It never waits.
    pub fn begin(&self, about: &SpanDescription<'_>, parent: Option<&TraceContext>) -> CallSpan {
        self.start(parent, || SpanStart {
            side: about.side,
            name: about.span_name(),
            attributes: about.attributes(),
        })
    }

    /// Begins a span of any kind, whose description is computed only if it is recorded.
    pub fn start(
        &self,
        parent: Option<&TraceContext>,
        describe: impl FnOnce() -> SpanStart,
    ) -> CallSpan {
        let Some(sender) = &self.sender else {
            let context = parent.cloned().unwrap_or_else(|| TraceContext::new(false));
            return CallSpan { context, recording: None };
        };
        let context = parent.map_or_else(|| TraceContext::new(false), TraceContext::child);
        let sampled = self.sampler.samples(parent, context.trace);
        let context = context.with_sampled(sampled);
        let recording = sampled.then(|| {
            let SpanStart { side, name, attributes } = describe();
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            Box::new(SpanRecording {
                sender: sender.clone(),
                dropped: Arc::clone(&self.dropped),
                begun: Instant::now(),
                span: FinishedSpan {
                    context: context.clone(),
                    parent: parent.map(|parent| parent.span),
                    side,
                    name,
                    start: now.as_nanos(),
                    end: 0,
                    attributes,
                    error: None,
                },
            })
        });
        CallSpan { context, recording }
    }

    /// Returns the number of spans dropped because they could not be sent in time.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    pub(super) fn drop_spans(&self, count: u64) {
        self.dropped.fetch_add(count, Ordering::Relaxed);
    }
}

/// An unfinished span. Dropped without an end, it is cancelled.
#[derive(Debug)]
pub struct CallSpan {
    context: TraceContext,
    recording: Option<Box<SpanRecording>>,
}

#[derive(Debug)]
struct SpanRecording {
    sender: mpsc::Sender<FinishedSpan>,
    dropped: Arc<AtomicU64>,
    begun: Instant,
    span: FinishedSpan,
}

/// A finished span.
#[derive(Clone, Debug)]
pub(super) struct FinishedSpan {
    pub(super) context: TraceContext,
    pub(super) parent: Option<SpanId>,
    pub(super) side: SpanKind,
    pub(super) name: String,
    pub(super) start: u128,
    pub(super) end: u128,
    pub(super) attributes: Vec<(&'static str, SpanAttribute)>,
    pub(super) error: Option<String>,
}

impl CallSpan {
    /// Returns the trace context to pass on, so that further spans become its children.
    pub fn context(&self) -> &TraceContext {
        &self.context
    }

    /// Sets an attribute, if the span is recorded.
    pub fn set(&mut self, key: &'static str, value: SpanAttribute) {
        if let Some(recording) = &mut self.recording {
            recording.span.attributes.push((key, value));
        }
    }

    /// Ends it.
    pub fn end(mut self, class: OutcomeClass) {
        self.finish(class);
    }

    /// Ends it, with an error type of low cardinality if it failed.
    pub fn end_with(mut self, error: Option<(String, String)>) {
        self.send(error);
    }

    fn finish(&mut self, class: OutcomeClass) {
        if let Some(code) = class.code() {
            self.set("rpc.response.status_code", SpanAttribute::Text(code.to_string()));
        }
        let kind = class.code().map_or_else(|| class.as_str().to_owned(), |it| it.to_string());
        self.send((class != OutcomeClass::Ok).then(|| (kind, class.as_str().to_owned())));
    }

    fn send(&mut self, error: Option<(String, String)>) {
        let Some(mut recording) = self.recording.take() else { return };
        let span = &mut recording.span;
        span.end = span.start + recording.begun.elapsed().as_nanos();
        if let Some((kind, message)) = error {
            span.attributes.push(("error.type", SpanAttribute::Text(kind)));
            span.error = Some(message);
        }
        if recording.sender.try_send(recording.span).is_err() {
            recording.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for CallSpan {
    fn drop(&mut self) {
        self.finish(OutcomeClass::Cancelled { sent: None });
    }
}
