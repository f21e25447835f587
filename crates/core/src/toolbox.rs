//! The one thing callers know: what is on offer, and how to call it.

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use consort_wire::Emitting;

use crate::caller::Caller;
use crate::catalog::Catalog;
use crate::error::CallError;
use crate::event::{Event, Outcome};
use crate::meter::CostMeter;
use crate::missing::{ListPurpose, MissingName};
use crate::name::ServerId;
use crate::reject::{RefusedCall, RefusedTarget, RejectReason};
use crate::target::Target;
use crate::{Json, LogLevel, Object, Offers, Postmark, Questions, ShelfKind, Tasks};

/// A future behind a pointer.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What happens during a call, as it happens: read it with `next`, or as a stream.
pub type Events = Emitting<Event>;

/// An item whenever something changed.
pub type Changes = Emitting<()>;

/// How a call ends, leaving out what happens before.
pub async fn end(mut events: Events) -> Result<Outcome, CallError> {
    loop {
        match events.next().await {
            Some(Event::End(end)) => return end,
            Some(_) => {}
            None => unreachable!("a call that was not read has its end before it"),
        }
    }
}

/// What is on offer, and how to call it. Implemented by the hub and by everything that wraps it;
/// called by the gateway, by agents and by commands, which know nothing else.
pub trait Toolbox: Send + Sync {
    /// What this caller may see.
    fn catalog(&self, caller: &Caller) -> Arc<Catalog>;

    /// Calls a tool. The call runs while the stream is read; dropping the stream cancels it. The last
    /// event is the end, and there is exactly one.
    fn call(&self, invocation: Invocation) -> Events;

    /// Passes a request on to one server. It runs, ends and is cancelled as a call is.
    fn pass(&self, passage: Passage) -> Events;

    /// An item whenever what is on offer changed.
    fn changes(&self) -> Changes;

    /// The toolbox that this one wraps, if it is a layer. Waiting for servers is passed on to it.
    fn inner(&self) -> Option<&dyn Toolbox> {
        None
    }

    /// Finds a tool that is on offer without being listed, because an exposure shows other tools in its place; else
    /// a hint at what to do next. Returns `None` where every tool on offer is listed.
    fn unlisted(&self, _caller: &Caller, _text: &str) -> Option<Result<Target, String>> {
        None
    }

    /// Waits for the lists of servers of which nothing is known yet, for as long as the purpose allows; nothing
    /// if there is nothing to wait for. It ends with true if the catalog changed.
    fn await_lists(&self, purpose: ListPurpose) -> Option<BoxFuture<'static, bool>> {
        self.inner()?.await_lists(purpose)
    }

    /// Waits for the servers that may have a name which the catalog lacks, and has those read again that may be
    /// out of date. It ends with true if the catalog changed, with an error if such a server cannot be reached
    /// or the thing is withheld. A layer that hides servers from the caller leaves them out.
    fn find_missing(&self, missing: MissingName) -> BoxFuture<'static, Result<bool, CallError>> {
        match self.inner() {
            Some(inner) => inner.find_missing(missing),
            None => Box::pin(std::future::ready(Ok(false))),
        }
    }

    /// Waits until a server's definitions are those it has now, if it is known that they may be others: it said
    /// that they changed, or is not connected. An error if they could not be read in time.
    fn await_definitions(
        &self,
        server: &ServerId,
    ) -> Option<BoxFuture<'static, Result<(), CallError>>> {
        self.inner()?.await_definitions(server)
    }

    /// Takes note of a call that was refused by whoever is outside, because it names nothing that its caller is
    /// offered. A layer outside of the one that records passes it on.
    fn refused(&self, _call: &RefusedCall) {}

    /// Returns the reason why a caller is not offered something, and its server, if a layer from here on holds
    /// it back. Called by whoever records refused calls; the caller is not told.
    fn withheld(
        &self,
        _caller: &Caller,
        _kind: ShelfKind,
        _target: &RefusedTarget,
    ) -> Option<(ServerId, RejectReason)> {
        None
    }
}

/// A request to one server, passed on as its caller wrote it.
#[derive(Clone, Debug)]
pub struct Passage {
    /// Who asks.
    pub caller: Caller,
    /// The server.
    pub server: ServerId,
    /// For example `resources/read`. `subscriptions/listen` is understood for servers of every era:
    /// its events are the notifications, and it ends only when dropped.
    pub method: Cow<'static, str>,
    /// As the caller wrote them.
    pub params: Object,
    /// Members of the parameters that are replaced, as what the server calls the thing meant.
    pub replaced: Vec<(&'static str, Json)>,
    /// What the caller can answer. A server is asked by nobody for more than this.
    pub offers: Arc<Offers>,
    /// The caller's capabilities as it wrote them, for servers that are told with each request; those
    /// that `offers` stand for if absent.
    pub capabilities: Option<Json>,
    /// What to do with the server's questions.
    pub questions: Questions,
    /// What to do when the server makes a task of it.
    pub tasks: Tasks,
    /// Which log messages the caller wants.
    pub log: Logs,
    /// Who wants to know when it left.
    pub postmark: Option<Arc<dyn Postmark>>,
}

/// Which of a server's log messages a caller wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Logs {
    /// None.
    None,
    /// Those the server sends unasked. One that sends none unasked is asked from `info` on.
    Usual,
    /// From this level on.
    From(LogLevel),
}

impl Logs {
    /// Returns true if a log message, the parameters of `notifications/message`, is among them.
    pub fn include(self, params: &Object) -> bool {
        let level = params.text("level").and_then(|level| LogLevel::parse(&level));
        match self {
            Self::None => false,
            Self::Usual => true,
            Self::From(least) => level.is_none_or(|level| level >= least),
        }
    }
}

impl Passage {
    /// A request by somebody who can answer nothing.
    pub fn new(
        caller: Caller,
        server: ServerId,
        method: impl Into<Cow<'static, str>>,
        params: Object,
    ) -> Self {
        Self {
            caller,
            server,
            method: method.into(),
            params,
            replaced: Vec::new(),
            offers: Arc::default(),
            capabilities: None,
            questions: Questions::Hand,
            tasks: Tasks::Follow,
            log: Logs::None,
            postmark: None,
        }
    }

    /// A member of the parameters as it goes to the server.
    pub fn get(&self, member: &str) -> Option<Json> {
        let replaced = self.replaced.iter().find(|(name, _)| *name == member);
        replaced.map(|(_, value)| value.clone()).or_else(|| self.params.get(member))
    }

    /// Replaces a member of the parameters.
    pub fn set(&mut self, member: &'static str, value: Json) {
        self.replaced.retain(|(name, _)| *name != member);
        self.replaced.push((member, value));
    }
}

/// One call of one tool by one caller.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// Who calls.
    pub caller: Caller,
    /// The tool that is called.
    pub target: Target,
    /// A JSON object.
    pub arguments: Json,
    /// The limit of silence, if it differs from the server's.
    pub idle: Option<Duration>,
    /// The limit of the whole call, if it differs from the server's.
    pub total: Option<Duration>,
    /// What the caller can answer, if it answers for itself: what the server asks is then an event with
    /// a way to reply. Else whoever runs the hub answers.
    pub offers: Option<Arc<Offers>>,
    /// The log messages of the server that the caller wants.
    pub log: Logs,
    /// Members of `_meta` that go to the server.
    pub meta: Option<Object>,
    /// Who wants to know when it left.
    pub postmark: Option<Arc<dyn Postmark>>,
    /// Where whoever records the call writes what it is known by.
    pub id: Option<Arc<OnceLock<i64>>>,
    /// The agent that makes the call, if one does.
    pub agent: Option<Arc<CallingAgent>>,
    /// The meter of the run that calls, for agents that answer.
    pub meter: Option<Arc<dyn CostMeter>>,
}

/// An agent that makes calls on a caller's account, and the model it runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallingAgent {
    /// The agent's name in the config, or the model's id for a model without one.
    pub name: String,
    /// The model, as `provider:name`.
    pub model: String,
}

impl Invocation {
    /// A call with the server's own limits. Text becomes a target by
    /// [`Catalog::resolve`](crate::Catalog::resolve).
    pub fn new(caller: Caller, target: impl Into<Target>, arguments: Json) -> Self {
        Self {
            caller,
            target: target.into(),
            arguments,
            idle: None,
            total: None,
            offers: None,
            log: Logs::Usual,
            meta: None,
            postmark: None,
            id: None,
            agent: None,
            meter: None,
        }
    }
}
