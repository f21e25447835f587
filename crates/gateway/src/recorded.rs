//! Calls, recorded: counted, traced and written to the ledger on their way to the server.

mod record;
mod run;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use consort_core::{
    CallError, Caller, CallingAgent, Catalog, Changes, Events, Invocation, Json, Object, Passage,
    RefusedCall, RejectReason, ServerId, Toolbox,
};
use consort_wire::splice::Writer;

use crate::feed::Feed;
use crate::ledger::{Class, Digest, Entry, Intent, Ledger};
use crate::lines::LogLimits;
use crate::metrics::Metrics;
use crate::otlp::{About, Side, Tracer};
use crate::settings::ServerStatus;
use crate::trace::TraceContext;

use record::{Record, withheld};
pub use run::{ModelRequestRecord, RunRecord};

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
    /// How many log lines are written of calls and requests that failed.
    pub lines: Arc<LogLimits>,
    /// How servers are reached, for traces.
    pub servers: ServerLookup,
}

/// Returns how a server is reached, if that is known.
#[derive(Clone, Default)]
pub struct ServerLookup(Option<LookupFunction>);

type LookupFunction = Arc<dyn Fn(&ServerId) -> Option<ServerStatus> + Send + Sync>;

impl ServerLookup {
    /// A lookup by this function.
    pub fn new(find: impl Fn(&ServerId) -> Option<ServerStatus> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(find)))
    }

    fn find(&self, server: &ServerId) -> Option<ServerStatus> {
        self.0.as_ref()?(server)
    }
}

impl fmt::Debug for ServerLookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerLookup").finish_non_exhaustive()
    }
}

impl Default for Records {
    fn default() -> Self {
        Self {
            metrics: Arc::default(),
            ledger: None,
            tracer: Tracer::off(),
            feed: Feed::off(),
            lines: Arc::default(),
            servers: ServerLookup::default(),
        }
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
        let Records { metrics, ledger, tracer, feed, lines, servers } = &self.records;
        let reached = call.server.filter(|_| tracer.is_on()).and_then(|it| servers.find(it));
        let reached = reached.as_ref();
        let about = About {
            revision: reached.and_then(|it| it.revision),
            via: reached.and_then(|it| it.via),
            address: reached
                .and_then(|it| it.address.as_ref())
                .map(|(host, port)| (&**host, *port)),
            // A name that leads nowhere is whatever its caller wrote.
            name: (!call.name.is_empty() && call.server.is_some()).then_some(call.name),
            server: call.server.map(ServerId::as_str),
            agent: call.agent.map(|agent| agent.name.as_str()),
            ..About::new(Side::Client, call.method)
        };
        let traced = tracer.is_on().then(|| tracer.begin(&about, call.parent.as_ref()));
        let trace = traced.as_ref().map(|span| span.context().trace);
        // One for the ledger, the feed and the log.
        let intent = Arc::new(Intent {
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
        });
        let entry = ledger.as_ref().map(|ledger| ledger.begin(Arc::clone(&intent)));
        let begun = Instant::now();
        let time = entry.as_ref().map(Entry::time);
        let running = feed.begin(time, begun, Arc::clone(&intent));
        Record {
            metrics: Arc::clone(metrics),
            lines: Arc::clone(lines),
            is_over: false,
            request_id: Arc::default(),
            intent,
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
    agent: Option<&'a Arc<CallingAgent>>,
}

impl Toolbox for Recorded {
    fn catalog(&self, caller: &Caller) -> Arc<Catalog> {
        self.inner.catalog(caller)
    }

    fn inner(&self) -> Option<&dyn Toolbox> {
        Some(&*self.inner)
    }

    fn changes(&self) -> Changes {
        self.inner.changes()
    }

    fn call(&self, mut invocation: Invocation) -> Events {
        let catalog = self.inner.catalog(&invocation.caller);
        let entry = catalog.tools.find(&invocation.target);
        let unknown = || self.records.lines.refused_name(&invocation.target.to_string());
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
            name: &self.records.lines.refused_name(&target.name),
            arguments: arguments.as_ref().map(Json::as_bytes).unwrap_or_default(),
            parent: None,
            agent: None,
        });
        let class = Class::Rejected { reason: Some(reason) };
        record.note(error.as_ref().map_or(class, Class::of_error), 0, None);
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
