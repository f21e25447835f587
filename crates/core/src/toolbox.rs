//! The one thing callers know: what is on offer, and how to call it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use consort_wire::Emitting;

use crate::Json;
use crate::caller::Caller;
use crate::catalog::Catalog;
use crate::error::CallError;
use crate::event::{Event, Outcome};

/// A future behind a pointer.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What happens during a call, as it happens: read it with `next`, or as a stream.
pub type Events = Emitting<Event>;

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
}

/// One call of one tool by one caller.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// Who calls.
    pub caller: Caller,
    /// What is called, in any spelling the catalog resolves.
    pub tool: String,
    /// A JSON object.
    pub arguments: Json,
    /// The limit of silence, if it differs from the server's.
    pub idle: Option<Duration>,
    /// The limit of the whole call, if it differs from the server's.
    pub total: Option<Duration>,
}

impl Invocation {
    /// A call with the server's own limits.
    pub fn new(caller: Caller, tool: impl Into<String>, arguments: Json) -> Self {
        Self { caller, tool: tool.into(), arguments, idle: None, total: None }
    }
}
