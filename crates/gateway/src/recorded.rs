//! Calls, recorded: counted, traced and written to the ledger on their way to the server.

mod run;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use consort_core::{
    BoxFuture, CallError, Caller, CallingAgent, Catalog, Changes, Emitting, Event, Events,
    Invocation, Json, ListPurpose, MissingName, Object, Passage, Postmark, RefusedCall,
    RefusedTarget, RejectReason, ServerId, ShelfKind, Toolbox,
};
use consort_wire::splice::Writer;

use crate::feed::{Feed, Running};
use crate::ledger::{Class, Digest, Entry, Intent, Ledger};
use crate::metrics::{Held, Metrics};
use crate::otlp::{About, Side, Span, Tracer};
use crate::trace::TraceContext;

pub use run::{ModelRequestRecord, RunRecord};

/// The most characters of a name that leads nowhere which are recorded: whoever calls chooses it.
const REFUSED_NAME: usize = 128;

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
            // A name that leads nowhere is whatever its caller wrote.
            name: (!call.name.is_empty() && call.server.is_some()).then_some(call.name),
            server: call.server.map(ServerId::as_str),
            agent: call.agent.map(|agent| agent.name.as_str()),
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
                agent: call.agent.cloned(),
            })
        });
        let entry = ledger.as_ref().zip(intent.as_ref());
        let entry = entry.map(|(ledger, intent)| ledger.begin(Arc::clone(intent)));
        let begun = Instant::now();
        let time = entry.as_ref().map(Entry::time);
        let running = intent.clone().and_then(|intent| feed.begin(time, begun, intent));
        Record {
            metrics: Arc::clone(metrics),
            server: call.server.cloned(),
            intent,
            entry,
            span: traced,
            running,
            begun,
            _held: metrics.in_flight.hold(),
        }
    }
}

/// Returns why a caller is not offered what it names, and whose it is. The caller is not told.
fn withheld(
    toolbox: &dyn Toolbox,
    caller: &Caller,
    method: &str,
    target: &RefusedTarget,
) -> Option<(ServerId, RejectReason)> {
    let kinds: &[ShelfKind] = match method {
        "tools/call" => &[ShelfKind::Tools],
        "prompts/get" => &[ShelfKind::Prompts],
        "resources/read" => &[ShelfKind::Resources, ShelfKind::Templates],
        _ => &[],
    };
    kinds.iter().find_map(|kind| toolbox.withheld(caller, *kind, target))
}

/// Returns a name that leads nowhere as it is recorded: short, and without control characters.
fn recorded_name(name: &str) -> String {
    let short: String = name.chars().take(REFUSED_NAME).collect();
    short.escape_debug().to_string()
}

/// What is known of a call before it is made.
struct Call<'a> {
    caller: &'a Caller,
    server: Option<&'a ServerId>,
    method: &'a Cow<'static, str>,
    name: &'a str,
    arguments: &'a [u8],
    parent: Option<TraceContext>,
    agent: Option<&'a Arc<CallingAgent>>,
}

/// The record of a call in progress. Dropped without an end, the call was cancelled.
struct Record {
    metrics: Arc<Metrics>,
    server: Option<ServerId>,
    intent: Option<Arc<Intent>>,
    entry: Option<Entry>,
    span: Option<Span>,
    running: Option<Running>,
    begun: Instant,
    _held: Held,
}

impl Record {
    /// Passes events on, and notes the end.
    fn follow(mut self, inner: Arc<dyn Toolbox>, mut events: Events) -> Events {
        Emitting::new(|emitter| async move {
            if let Some(entry) = &mut self.entry
                && entry.durable().await.is_err()
            {
                let reason = "the ledger cannot be written".to_owned();
                return Event::End(Err(self.end(CallError::Unavailable { reason })));
            }
            loop {
                match events.next().await {
                    Some(Event::End(end)) => {
                        let bytes =
                            end.as_ref().map_or(0, |outcome| outcome.object().as_bytes().len());
                        let class = match &end {
                            Err(CallError::Unknown { .. }) => self.unknown(&*inner),
                            end => Class::of(end),
                        };
                        self.note(class, bytes);
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

    /// Returns how a call ended whose tool is unknown to its caller: why that is so is for the operator alone.
    fn unknown(&self, inner: &dyn Toolbox) -> Class {
        let withheld = self.intent.as_ref().and_then(|intent| {
            let (server, name) = (intent.server.clone(), intent.name.clone());
            let target = RefusedTarget { server, name };
            withheld(inner, &intent.caller, &intent.method, &target)
        });
        let reason = withheld.map_or(RejectReason::UnknownName, |(_, reason)| reason);
        Class::Rejected { reason: Some(reason) }
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
        if let (Class::Rejected { reason }, Some(intent)) = (class, &self.intent) {
            let reason = reason.map_or("unknown", RejectReason::as_str);
            // A URI may say more than a name.
            let name = if intent.method == "resources/read" { "" } else { &intent.name };
            let (caller, server) =
                (&*intent.caller.name, intent.server.as_ref().map(ServerId::as_str));
            tracing::info!(caller, server, method = &*intent.method, name, reason, "call refused");
        }
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

    fn await_lists(&self, purpose: ListPurpose) -> Option<BoxFuture<'static, bool>> {
        self.inner.await_lists(purpose)
    }

    fn find_missing(&self, missing: MissingName) -> BoxFuture<'static, Result<bool, CallError>> {
        self.inner.find_missing(missing)
    }

    fn await_definitions(
        &self,
        server: &ServerId,
    ) -> Option<BoxFuture<'static, Result<(), CallError>>> {
        self.inner.await_definitions(server)
    }

    fn changes(&self) -> Changes {
        self.inner.changes()
    }

    fn call(&self, mut invocation: Invocation) -> Events {
        let catalog = self.inner.catalog(&invocation.caller);
        let entry = catalog.tools.find(&invocation.target);
        let unknown = || recorded_name(&invocation.target.to_string());
        let written = if entry.is_none() { unknown() } else { String::new() };
        let record = self.begin(&Call {
            caller: &invocation.caller,
            server: entry.map(|entry| &entry.route.server),
            method: &Cow::Borrowed("tools/call"),
            name: entry.map_or(&written, |entry| &entry.route.name),
            arguments: invocation.arguments.as_bytes(),
            parent: invocation.meta.as_ref().and_then(context_of),
            agent: invocation.agent.as_ref(),
        });
        if let Some(span) = &record.span {
            let meta = invocation.meta.take().unwrap_or_else(Object::empty);
            invocation.meta = Some(meta_with(&meta, span.context()));
        }
        invocation.postmark = record.postmark();
        if let (Some(id), Some(running)) = (&invocation.id, &record.running) {
            let _ = id.set(running.call().id());
        }
        record.follow(Arc::clone(&self.inner), self.inner.call(invocation))
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
            agent: None,
        });
        drop(name);
        if let Some(span) = &record.span {
            passage.params = with_context(&passage.params, span.context());
        }
        passage.postmark = record.postmark();
        record.follow(Arc::clone(&self.inner), self.inner.pass(passage))
    }

    fn refused(&self, call: &RefusedCall) {
        let RefusedCall { caller, method, target, arguments, error } = call;
        let mut withheld = withheld(&*self.inner, caller, method, target);
        if let Some(server) = error.as_ref().and_then(CallError::server) {
            withheld.get_or_insert((server.clone(), RejectReason::UnknownName));
        }
        let reason = match &withheld {
            Some((_, reason)) => *reason,
            None if target.name.is_empty() => RejectReason::InvalidArguments,
            None => RejectReason::UnknownName,
        };
        let mut record = self.begin(&Call {
            caller,
            server: withheld.as_ref().map(|(server, _)| server),
            method,
            name: &recorded_name(&target.name),
            arguments: arguments.as_ref().map(Json::as_bytes).unwrap_or_default(),
            parent: None,
            agent: None,
        });
        let class = Class::Rejected { reason: Some(reason) };
        record.note(error.as_ref().map_or(class, Class::of_error), 0);
    }
}

/// The trace a request belongs to, as its `_meta` says.
pub(crate) fn parent(params: &Object) -> Option<TraceContext> {
    // Most say nothing of one.
    memchr::memmem::find(params.as_bytes(), b"traceparent")?;
    context_of(&params.get("_meta")?.to_object()?)
}

/// The trace a request belongs to, given its `_meta`.
pub(crate) fn context_of(meta: &Object) -> Option<TraceContext> {
    let texts = TraceContext::KEYS.map(|key| meta.text(key));
    let at = |key: &str| TraceContext::KEYS.iter().position(|known| *known == key);
    TraceContext::read(|key| texts[at(key)?].as_deref())
}

/// A `_meta` that carries a trace on.
fn meta_with(meta: &Object, context: &TraceContext) -> Object {
    let mut writer = Writer::with_capacity(meta.as_bytes().len() + 128);
    writer.members(meta, &TraceContext::KEYS);
    for (key, value) in context.fields() {
        writer.text(key, &value);
    }
    writer.finish_object()
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
