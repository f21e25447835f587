//! Calls, recorded: counted, traced and written to the ledger on their way to the server.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use consort_core::{
    CallError, Caller, Catalog, Changes, Emitting, Event, Events, Invocation, Json, Object,
    Passage, Postmark, ServerId, Toolbox,
};
use consort_wire::splice::Writer;

use crate::feed::{Feed, Running};
use crate::ledger::{Class, Digest, Entry, Intent, Ledger};
use crate::metrics::{Held, Metrics};
use crate::otlp::{About, Side, Span, Tracer};
use crate::trace::TraceContext;

/// Where calls are recorded.
#[derive(Clone, Debug)]
pub struct Records {
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// What is written down; nothing if absent.
    pub ledger: Option<Ledger>,
    /// What is traced.
    pub tracer: Tracer,
    /// What can be watched.
    pub feed: Feed,
}

impl Default for Records {
    fn default() -> Self {
        Self { metrics: Arc::default(), ledger: None, tracer: Tracer::off(), feed: Feed::off() }
    }
}

/// A toolbox whose calls are recorded: each is counted, traced and written to the ledger by what its
/// server calls the tool.
pub struct Recorded {
    inner: Arc<dyn Toolbox>,
    records: Records,
    front: Arc<str>,
}

impl fmt::Debug for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorded").field("front", &self.front).finish_non_exhaustive()
    }
}

impl Recorded {
    /// A toolbox whose calls are recorded as coming from a front: `mcp`, or a profile's name.
    pub fn new(inner: Arc<dyn Toolbox>, records: Records, front: &str) -> Self {
        Self { inner, records, front: front.into() }
    }

    /// Begins the record of a call.
    fn begin(&self, call: &Call<'_>) -> Record {
        let Records { metrics, ledger, tracer, feed } = &self.records;
        let about = About {
            name: (!call.name.is_empty()).then_some(call.name),
            server: call.server.map(ServerId::as_str),
            ..About::new(Side::Client, call.method)
        };
        let traced = tracer.is_on().then(|| tracer.begin(&about, call.parent.as_ref()));
        let trace = traced.as_ref().map(|span| span.context().trace);
        // One for both.
        let intent = (ledger.is_some() || feed.is_on()).then(|| {
            Arc::new(Intent {
                caller: call.caller.clone(),
                front: Arc::clone(&self.front),
                server: call.server.cloned(),
                method: call.method.clone(),
                name: call.name.to_owned(),
                arguments: match ledger {
                    Some(_) => Digest::of(call.arguments),
                    None => Digest { bytes: call.arguments.len() as u64, sha256: [0; 32] },
                },
                trace: trace.or_else(|| call.parent.as_ref().map(|parent| parent.trace)),
            })
        });
        let entry = ledger.as_ref().zip(intent.as_ref());
        let entry = entry.map(|(ledger, intent)| ledger.begin(Arc::clone(intent)));
        let begun = Instant::now();
        let running =
            intent.and_then(|intent| feed.begin(entry.as_ref().map(Entry::time), begun, intent));
        Record {
            metrics: Arc::clone(metrics),
            server: call.server.cloned(),
            entry,
            span: traced,
            running,
            begun,
            _held: metrics.in_flight.hold(),
        }
    }
}

/// What is known of a call before it is made.
struct Call<'a> {
    caller: &'a Caller,
    server: Option<&'a ServerId>,
    method: &'a Cow<'static, str>,
    name: &'a str,
    arguments: &'a [u8],
    parent: Option<TraceContext>,
}

/// The record of a call in progress. Dropped without an end, the call was cancelled.
struct Record {
    metrics: Arc<Metrics>,
    server: Option<ServerId>,
    entry: Option<Entry>,
    span: Option<Span>,
    running: Option<Running>,
    begun: Instant,
    _held: Held,
}

impl Record {
    /// Passes events on, and notes the end.
    fn follow(mut self, mut events: Events) -> Events {
        Emitting::new(|emitter| async move {
            if let Some(entry) = &mut self.entry
                && entry.durable().await.is_err()
            {
                let reason = "the ledger cannot be written".to_owned();
                return Event::End(Err(self.end(CallError::Denied { reason })));
            }
            loop {
                match events.next().await {
                    Some(Event::End(end)) => {
                        let bytes =
                            end.as_ref().map_or(0, |outcome| outcome.object().as_bytes().len());
                        self.note(Class::of(&end), bytes);
                        return Event::End(end);
                    }
                    Some(mut event) => {
                        if let Some(running) = &self.running {
                            running.note(&mut event);
                        }
                        emitter.emit(event).await;
                    }
                    None => unreachable!("an end comes before nothing"),
                }
            }
        })
    }

    /// Who wants to know when it leaves.
    fn postmark(&self) -> Option<Arc<dyn Postmark>> {
        self.running.as_ref().map(|running| running.call().postmark())
    }

    fn end(&mut self, error: CallError) -> CallError {
        self.note(Class::of_error(&error), 0);
        error
    }

    fn note(&mut self, class: Class, bytes: usize) {
        let took = self.begun.elapsed();
        tracing::debug!(server = ?self.server, outcome = class.as_str(), bytes, ?took, "a call ended");
        self.metrics.call(self.server.take().as_ref(), class, took);
        if let Some(running) = self.running.take() {
            running.end(class, took, bytes as u64);
        }
        if let Some(entry) = self.entry.take() {
            entry.end_after(took, class, bytes as u64);
        }
        if let Some(span) = self.span.take() {
            span.end(class);
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if self.running.is_none() && self.entry.is_none() {
            return;
        }
        // Nobody waits for it any more. The ledger and the feed say the same of it.
        let (took, class) = (self.begun.elapsed(), Class::Cancelled { sent: None });
        if let Some(running) = self.running.take() {
            running.end(class, took, 0);
        }
        if let Some(entry) = self.entry.take() {
            entry.end_after(took, class, 0);
        }
    }
}

impl Toolbox for Recorded {
    fn catalog(&self, caller: &Caller) -> Arc<Catalog> {
        self.inner.catalog(caller)
    }

    fn changes(&self) -> Changes {
        self.inner.changes()
    }

    fn call(&self, mut invocation: Invocation) -> Events {
        let catalog = self.inner.catalog(&invocation.caller);
        let entry = catalog.tools.find(&invocation.target);
        let record = self.begin(&Call {
            caller: &invocation.caller,
            server: entry.map(|entry| &entry.route.server),
            method: &Cow::Borrowed("tools/call"),
            name: entry.map_or(&invocation.target.name, |entry| &entry.route.name),
            arguments: invocation.arguments.as_bytes(),
            parent: None,
        });
        invocation.postmark = record.postmark();
        if let (Some(id), Some(running)) = (&invocation.id, &record.running) {
            let _ = id.set(running.call().id());
        }
        record.follow(self.inner.call(invocation))
    }

    fn pass(&self, mut passage: Passage) -> Events {
        // A subscription is no call: it has no end worth noting.
        if passage.method == "subscriptions/listen" {
            return self.inner.pass(passage);
        }
        let written = passage.get("name").or_else(|| passage.get("uri"));
        let name = written.as_ref().and_then(Json::text).unwrap_or_default();
        let arguments = passage.get("arguments");
        let record = self.begin(&Call {
            caller: &passage.caller,
            server: Some(&passage.server),
            method: &passage.method,
            name: &name,
            arguments: arguments.as_ref().map(Json::as_bytes).unwrap_or_default(),
            parent: parent(&passage.params),
        });
        drop(name);
        if let Some(span) = &record.span {
            passage.params = with_context(&passage.params, span.context());
        }
        passage.postmark = record.postmark();
        record.follow(self.inner.pass(passage))
    }
}

/// The trace a request belongs to, as its `_meta` says.
pub(crate) fn parent(params: &Object) -> Option<TraceContext> {
    // Most say nothing of one.
    memchr::memmem::find(params.as_bytes(), b"traceparent")?;
    let meta = params.get("_meta")?.to_object()?;
    let texts = TraceContext::KEYS.map(|key| meta.text(key));
    let at = |key: &str| TraceContext::KEYS.iter().position(|known| *known == key);
    TraceContext::read(|key| texts[at(key)?].as_deref())
}

/// Parameters that carry a trace on.
pub(crate) fn with_context(params: &Object, context: &TraceContext) -> Object {
    let meta = params.get("_meta").and_then(|meta| meta.to_object());
    let mut writer = Writer::with_capacity(params.as_bytes().len() + 128);
    writer.members(params, &["_meta"]);
    writer.object("_meta", |written| {
        written.members(&meta.unwrap_or_else(Object::empty), &TraceContext::KEYS);
        for (key, value) in context.fields() {
            written.text(key, &value);
        }
    });
    writer.finish_object()
}
