//! The one thing callers know: what is on offer, and how to call it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream;

use crate::Json;
use crate::caller::Caller;
use crate::catalog::Catalog;
use crate::event::Event;

/// A future behind a pointer.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A stream behind a pointer.
pub type BoxStream<'a, T> = Pin<Box<dyn Stream<Item = T> + Send + 'a>>;

/// What is on offer, and how to call it. Implemented by the hub and by everything that wraps it;
/// called by the gateway, by agents and by commands, which know nothing else.
pub trait Toolbox: Send + Sync {
    /// What this caller may see.
    fn catalog(&self, caller: &Caller) -> Arc<Catalog>;

    /// Calls a tool. The call runs while the stream is read; dropping the stream cancels it. The last
    /// event is the end, and there is exactly one.
    fn call(&self, invocation: Invocation) -> BoxStream<'static, Event>;
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
