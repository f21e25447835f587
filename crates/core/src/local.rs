//! Tools that are Rust functions.

use std::sync::Arc;

use crate::Json;
use crate::Progress;
use crate::content::ToolResult;
use crate::event::Event;
use crate::tool::Tool;
use crate::toolbox::BoxFuture;

/// A tool that is Rust code. Implemented by whoever has something to offer, called by the hub.
pub trait LocalTool: Send + Sync {
    /// What it is called, what it does, what it takes.
    fn definition(&self) -> Tool;

    /// Runs it with arguments that fit its schema. An error is shown to the model.
    fn run(&self, arguments: Json, reporter: Reporter) -> Working;
}

/// A running local tool.
pub type Working = BoxFuture<'static, Result<ToolResult, String>>;

/// How a running tool tells how far it is.
#[derive(Clone)]
pub struct Reporter(Arc<dyn Fn(Event) + Send + Sync>);

impl Reporter {
    /// A reporter that hands its events to `sink`.
    pub fn new(sink: impl Fn(Event) + Send + Sync + 'static) -> Self {
        Self(Arc::new(sink))
    }

    /// A reporter nobody listens to.
    pub fn silent() -> Self {
        Self::new(|_| ())
    }

    /// So much is done, of so much if that is known.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: impl Into<String>) {
        (self.0)(Event::Progress(Progress::new(progress, total, Some(&message.into()))));
    }
}

impl std::fmt::Debug for Reporter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reporter")
    }
}
