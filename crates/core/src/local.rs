//! Tools implemented in Rust.

use std::sync::Arc;

use consort_protocol::BoxFuture;

use crate::Json;
use crate::Progress;
use crate::content::ToolResult;
use crate::event::CallEvent;
use crate::tool::Tool;

/// A tool implemented in Rust. Called by the hub.
pub trait LocalTool: Send + Sync {
    /// Its definition: name, description and input schema.
    fn definition(&self) -> Tool;

    /// Runs it with arguments that match its schema. An error is shown to the model.
    fn run(&self, arguments: Json, reporter: ProgressReporter) -> RunningTool;
}

/// A running local tool.
pub type RunningTool = BoxFuture<'static, Result<ToolResult, String>>;

/// Sender of progress of a running tool.
#[derive(Clone)]
pub struct ProgressReporter(Arc<dyn Fn(CallEvent) + Send + Sync>);

impl ProgressReporter {
    /// Creates a reporter that passes its events to `sink`.
    pub fn new(sink: impl Fn(CallEvent) + Send + Sync + 'static) -> Self {
        Self(Arc::new(sink))
    }

    /// Creates a reporter that discards its events.
    pub fn silent() -> Self {
        Self::new(|_| ())
    }

    /// Reports progress, with the total if that is known.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: impl Into<String>) {
        (self.0)(CallEvent::Progress(Progress::new(progress, total, Some(&message.into()))));
    }
}

impl std::fmt::Debug for ProgressReporter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reporter")
    }
}
