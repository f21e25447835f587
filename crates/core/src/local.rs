//! Tools implemented in Rust.

use std::fmt::Display;
use std::sync::{Arc, Weak};

use consort_protocol::BoxFuture;
use serde_json::json;

use crate::caller::Caller;
use crate::content::ToolResult;
use crate::event::CallEvent;
use crate::session::ClientSession;
use crate::tool::Tool;
use crate::{Call, Json, Object, Progress};

/// A tool implemented in Rust. Called by the hub.
pub trait LocalTool: Send + Sync {
    /// Its definition: name, description and input schema.
    fn definition(&self) -> Tool;

    /// Runs it with arguments that match its schema. An error is shown to the model.
    fn run(&self, arguments: Json, context: ToolContext) -> RunningTool;
}

/// A running local tool.
pub type RunningTool = BoxFuture<'static, Result<ToolResult, String>>;

/// Return values of a function that is a tool: a result, a text, JSON, or any of these or an error.
///
/// ```
/// use consort_core::{IntoToolResult, ToolResult};
///
/// assert_eq!("sunny".into_tool_result(), Ok(ToolResult::text("sunny")));
/// let failed: Result<ToolResult, std::num::ParseIntError> = "x".parse::<u8>().map(|_| unreachable!());
/// assert_eq!(failed.into_tool_result(), Err("invalid digit found in string".to_owned()));
/// ```
pub trait IntoToolResult {
    /// Converts it to a result. An error is shown to the model.
    fn into_tool_result(self) -> Result<ToolResult, String>;
}

impl IntoToolResult for ToolResult {
    fn into_tool_result(self) -> Result<ToolResult, String> {
        Ok(self)
    }
}

impl IntoToolResult for String {
    fn into_tool_result(self) -> Result<ToolResult, String> {
        Ok(ToolResult::text(self))
    }
}

impl IntoToolResult for &str {
    fn into_tool_result(self) -> Result<ToolResult, String> {
        Ok(ToolResult::text(self))
    }
}

impl IntoToolResult for serde_json::Value {
    fn into_tool_result(self) -> Result<ToolResult, String> {
        Ok(ToolResult::structured(&Json::from(self)))
    }
}

impl<T: IntoToolResult, E: Display> IntoToolResult for Result<T, E> {
    fn into_tool_result(self) -> Result<ToolResult, String> {
        // The alternate form of errors that have causes names them.
        self.map_err(|error| format!("{error:#}"))?.into_tool_result()
    }
}

/// Context of a running local tool: who calls it, and a way to report progress and log messages.
///
/// ```
/// use consort_core::{Caller, ToolContext};
///
/// let context = ToolContext::new(Caller::person("ada"), |event| println!("{event:?}"));
/// context.progress(1.0, Some(3.0), "one of three");
/// context.log("warning", "the cache is cold");
/// assert_eq!(context.caller().name(), "ada");
/// ```
#[derive(Clone)]
pub struct ToolContext {
    caller: Caller,
    session: Option<ClientSession>,
    meta: Option<Object>,
    /// Held by the call. `None` if the call is not watched.
    call: Option<Weak<()>>,
    sink: Arc<dyn Fn(CallEvent) + Send + Sync>,
}

/// Keeps a call of a local tool from being cancelled. Dropped with the call.
#[derive(Debug, Default)]
pub struct CallGuard(Arc<()>);

impl ToolContext {
    /// Creates a context that passes its events to `sink`.
    pub fn new(caller: Caller, sink: impl Fn(CallEvent) + Send + Sync + 'static) -> Self {
        Self { caller, session: None, meta: None, call: None, sink: Arc::new(sink) }
    }

    /// Creates a context that discards its events, for tests of a tool.
    pub fn silent() -> Self {
        Self::new(Caller::person("test"), |_| ())
    }

    /// Creates the context of a call. It is cancelled once the guard is dropped.
    #[must_use]
    pub fn of_call(
        call: &Call,
        guard: &CallGuard,
        sink: impl Fn(CallEvent) + Send + Sync + 'static,
    ) -> Self {
        Self {
            session: call.client.as_ref().and_then(|client| client.session.clone()),
            meta: call.meta(),
            call: Some(Arc::downgrade(&guard.0)),
            ..Self::new(call.caller.clone(), sink)
        }
    }

    /// The caller.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The session of the caller's client, if it has one.
    pub fn session(&self) -> Option<&ClientSession> {
        self.session.as_ref()
    }

    /// The `_meta` object of the call, if it has one.
    pub fn meta(&self) -> Option<&Object> {
        self.meta.as_ref()
    }

    /// Returns true once the call was cancelled. A cancelled call drops the future of its tool, so only work outside
    /// of it, such as a thread, needs to ask.
    pub fn is_cancelled(&self) -> bool {
        self.call.as_ref().is_some_and(|call| call.strong_count() == 0)
    }

    /// Reports progress, with the total if that is known.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: impl Into<String>) {
        (self.sink)(CallEvent::Progress(Progress::new(progress, total, Some(&message.into()))));
    }

    /// Sends a log message of a level of MCP: `debug`, `info`, `notice`, `warning`, `error` or a higher one.
    pub fn log(&self, level: &str, message: impl Display) {
        let data = json!({ "level": level, "data": message.to_string() });
        if let Some(log) = Json::from(data).to_object() {
            (self.sink)(CallEvent::Log(log));
        }
    }
}

impl std::fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolContext").field("caller", &self.caller).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Target;

    #[test]
    fn a_context_knows_its_call_and_when_it_was_cancelled() {
        let target = Target { server: "maths".parse().unwrap(), name: "add".to_owned() };
        let mut call = Call::tool(Caller::person("ada"), target, Json::from(json!({})));
        call.set_meta(&Json::from(json!({ "trace": 7 })).to_object().unwrap());
        let guard = CallGuard::default();
        let context = ToolContext::of_call(&call, &guard, |_| ());
        assert_eq!(context.caller().name(), "ada");
        assert_eq!(context.meta().unwrap().get("trace").unwrap().as_str(), "7");
        assert!(context.session().is_none() && !context.is_cancelled());
        drop(guard);
        assert!(context.is_cancelled());
        assert!(!ToolContext::silent().is_cancelled(), "it belongs to no call");
    }
}
