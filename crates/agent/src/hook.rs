//! Hooks: called before and after each action of a run, and able to stop it.

use consort_core::{BoxFuture, Object};

use crate::step::Report;
use consort_models::{ChatMessage, ModelReply, ModelRequest, ToolCall, ToolCallResult};

/// A hook of a run: for a log, or as a guardrail.
pub trait Hook: Send + Sync {
    /// Returns the verdict for this moment. The run waits for it.
    fn at<'a>(&'a self, moment: Moment<'a>) -> BoxFuture<'a, Verdict>;
}

/// A moment of a run.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Moment<'a> {
    /// The agent received input and is about to answer it.
    Input(&'a [ChatMessage]),
    /// The model request is about to be sent.
    Asking(&'a ModelRequest),
    /// The model answered.
    Said(&'a ModelReply),
    /// A call is about to be sent.
    Calling {
        /// The call.
        call: &'a ToolCall,
        /// The tool under its server's names: `server.tool`.
        tool: &'a str,
        /// The arguments.
        arguments: &'a Object,
    },
    /// A call ended.
    Called {
        /// The call.
        call: &'a ToolCall,
        /// Its result.
        result: &'a ToolCallResult,
    },
    /// The run ended.
    Over(&'a Report),
}

/// Verdict of a hook.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Continue.
    Go,
    /// Make the call with other arguments. At any moment but [`Moment::Calling`] the same as `Go`.
    Edit(Object),
    /// Do not make the call; the model receives the reason. At any moment but [`Moment::Calling`] the same as `Stop`.
    Refuse(String),
    /// End the run as denied.
    Stop(String),
}
