//! Recording of calls: metrics, traces and the ledger.

mod record;
mod run;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use consort_core::{
    Call, CallError, CallEvent, CallEvents, Caller, CallingAgent, Catalog, CatalogChanges, Json,
    Object, RefusedCall, RejectReason, ServerId, Toolbox,
};

use crate::ledger::{CallIntent, Ledger, LedgerEntry, OutcomeClass, ValueDigest};
use crate::lines::LogLimits;
use crate::live_calls::CallFeed;
use crate::metrics::GatewayMetrics;
use crate::otlp::{SpanDescription, SpanKind, SpanTracer};
use crate::server_status::ServerStatus;
use consort_protocol::trace::{self, TraceContext};

use record::{CallRecord, withheld};
pub use run::{ModelRequestRecord, RunRecord};

/// Sinks that calls are recorded in.
#[derive(Clone, Debug)]
pub struct CallSinks {
    /// Metrics.
    pub metrics: Arc<GatewayMetrics>,
    /// The ledger, if there is one.
    pub ledger: Option<Ledger>,
    /// Traces.
    pub tracer: SpanTracer,
    /// Live calls.
    pub feed: CallFeed,
    /// Rate limits of log lines about failed calls and requests.
    pub lines: Arc<LogLimits>,
    /// Lookup of how servers are connected, for traces.
    pub servers: ServerLookup,
    /// The caller that everything is recorded for; if absent, the caller of each call. At a terminal it is the person,
    /// also where an agent makes the calls.
    pub on_behalf_of: Option<Caller>,
}

/// Looks up how a server is connected, if known.
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

impl Default for CallSinks {
    fn default() -> Self {
        Self {
            metrics: Arc::default(),
            ledger: None,
            tracer: SpanTracer::off(),
            feed: CallFeed::off(),
            lines: Arc::default(),
            servers: ServerLookup::default(),
            on_behalf_of: None,
        }
    }
}

/// A toolbox whose calls are recorded: each is counted, traced and written to the ledger under the server's own name of
/// the tool.
pub struct CallRecorder {
    inner: Arc<dyn Toolbox>,
    records: CallSinks,
    endpoint: Arc<str>,
}

impl fmt::Debug for CallRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallRecorder").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl CallRecorder {
    /// Creates a toolbox whose calls are recorded with an endpoint: `mcp`, or a profile's name.
    pub fn new(inner: Arc<dyn Toolbox>, records: CallSinks, endpoint: &str) -> Self {
        Self { inner, records, endpoint: endpoint.into() }
    }

    /// Begins the record of a call, by the server's own name of its target.
    fn begin_call(&self, call: &Call) -> CallRecord {
        let catalog = self.inner.catalog(&call.caller);
        let name = call.operation.name().unwrap_or_default();
        // A tool that is unknown has whatever name its caller wrote.
        let unknown = call.tool_target().is_some_and(|_| call.find(&catalog).is_none());
        let refused = || self.records.lines.refused_name(&format!("{}.{name}", call.server()));
        let written = unknown.then(refused);
        let arguments = call.get("arguments");
        self.begin(&CallFacts {
            caller: &call.caller,
            server: (!unknown).then(|| call.server()),
            method: &call.method(),
            name: written.as_deref().unwrap_or(name),
            arguments: arguments.as_ref().map(Json::as_bytes).unwrap_or_default(),
            parent: parent_of(call),
            agent: call.agent.as_ref(),
        })
    }

    /// Begins the record of a call.
    fn begin(&self, call: &CallFacts<'_>) -> CallRecord {
        let CallSinks { metrics, ledger, tracer, feed, lines, servers, on_behalf_of } =
            &self.records;
        let reached = call.server.filter(|_| tracer.is_on()).and_then(|it| servers.find(it));
        let reached = reached.as_ref();
        let about = SpanDescription {
            revision: reached.and_then(|it| it.revision),
            via: reached.and_then(|it| it.via),
            address: reached
                .and_then(|it| it.address.as_ref())
                .map(|(host, port)| (&**host, *port)),
            // A name that leads nowhere is whatever its caller wrote.
            name: (!call.name.is_empty() && call.server.is_some()).then_some(call.name),
            server: call.server.map(ServerId::as_str),
            agent: call.agent.map(|agent| agent.name.as_str()),
            ..SpanDescription::new(SpanKind::Client, call.method)
        };
        let traced = tracer.is_on().then(|| tracer.begin(&about, call.parent.as_ref()));
        let trace = traced.as_ref().map(|span| span.context().trace);
        // One for the ledger, the feed and the log.
        let intent = Arc::new(CallIntent {
            caller: on_behalf_of.as_ref().unwrap_or(call.caller).clone(),
            endpoint: Arc::clone(&self.endpoint),
            server: call.server.cloned(),
            method: call.method.clone(),
            name: call.name.to_owned(),
            arguments: match ledger {
                Some(_) => ValueDigest::of(call.arguments),
                None => ValueDigest { bytes: call.arguments.len() as u64, sha256: [0; 32] },
            },
            trace: trace.or_else(|| call.parent.as_ref().map(|parent| parent.trace)),
            agent: call.agent.cloned(),
        });
        let entry = ledger.as_ref().map(|ledger| ledger.begin(Arc::clone(&intent)));
        let begun = Instant::now();
        let time = entry.as_ref().map(LedgerEntry::time);
        let running = feed.begin(time, begun, Arc::clone(&intent));
        CallRecord {
            toolbox: Arc::clone(&self.inner),
            metrics: Arc::clone(metrics),
            lines: Arc::clone(lines),
            is_over: false,
            made_by: on_behalf_of.is_some().then(|| call.caller.clone()),
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

/// Facts of a call before it is made.
struct CallFacts<'a> {
    caller: &'a Caller,
    server: Option<&'a ServerId>,
    method: &'a Cow<'static, str>,
    name: &'a str,
    arguments: &'a [u8],
    parent: Option<TraceContext>,
    agent: Option<&'a Arc<CallingAgent>>,
}

impl Toolbox for CallRecorder {
    fn catalog(&self, caller: &Caller) -> Arc<Catalog> {
        self.inner.catalog(caller)
    }

    fn inner(&self) -> Option<&dyn Toolbox> {
        Some(&*self.inner)
    }

    fn changes(&self) -> CatalogChanges {
        self.inner.changes()
    }

    fn call(&self, mut call: Call) -> CallEvents {
        let mut record = self.begin_call(&call);
        if let Some(span) = &record.span {
            let meta = call.meta().unwrap_or_else(Object::empty);
            call.set_meta(&trace::meta_with(&meta, span.context()));
        }
        call.postmark = record.postmark();
        if let (Some(id), Some(running)) = (&call.id, &record.running) {
            let _ = id.set(running.call().id());
        }
        let Some(write) = record.entry.as_mut().and_then(LedgerEntry::pending_write) else {
            return self.inner.call(call).observed(record);
        };
        let inner = Arc::clone(&self.inner);
        let events = CallEvents::new(|emitter| async move {
            match write.done().await {
                Ok(()) => inner.call(call).forward(&emitter).await,
                Err(_) => {
                    let reason = "cannot write to the ledger".to_owned();
                    CallEvent::End(Err(CallError::Unavailable { reason }))
                }
            }
        });
        events.observed(record)
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
        let mut record = self.begin(&CallFacts {
            caller,
            server: withheld.as_ref().map(|(server, _)| server),
            method,
            name: &self.records.lines.refused_name(&target.name),
            arguments: arguments.as_ref().map(Json::as_bytes).unwrap_or_default(),
            parent: None,
            agent: None,
        });
        let class = OutcomeClass::Rejected { reason: Some(reason) };
        record.note(error.as_ref().map_or(class, OutcomeClass::of_error), 0, None);
    }
}

/// The trace context of a call, from its `_meta`.
fn parent_of(call: &Call) -> Option<TraceContext> {
    match call.replaced.iter().find(|(member, _)| *member == "_meta") {
        Some((_, meta)) => trace::of_meta(&meta.to_object()?),
        None => trace::of_params(&call.params),
    }
}
