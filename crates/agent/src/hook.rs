//! Hooks: called before and after each action of a run, and able to stop it.

use consort_core::{BoxFuture, Object};

use crate::step::RunReport;
use consort_models::{ChatMessage, ModelReply, ModelRequest, ToolCall, ToolCallResult};

/// A hook of a run: for a log, or as a guardrail.
pub trait RunHook: Send + Sync {
    /// Returns the verdict for this moment. The run waits for it.
    fn check<'a>(&'a self, moment: HookMoment<'a>) -> BoxFuture<'a, HookVerdict>;
}

/// A moment of a run.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum HookMoment<'a> {
    /// The agent received input and is about to answer it.
    Input(&'a [ChatMessage]),
    /// The model request is about to be sent.
    BeforeRequest(&'a ModelRequest),
    /// The model answered.
    AfterReply(&'a ModelReply),
    /// A call is about to be sent.
    BeforeCall {
        /// The call.
        call: &'a ToolCall,
        /// The tool under its server's names: `server.tool`.
        tool: &'a str,
        /// The arguments.
        arguments: &'a Object,
    },
    /// A call ended.
    AfterCall {
        /// The call.
        call: &'a ToolCall,
        /// Its result.
        result: &'a ToolCallResult,
    },
    /// The run ended.
    End(&'a RunReport),
}

/// Verdict of a hook.
#[derive(Clone, Debug, PartialEq)]
pub enum HookVerdict {
    /// Continue.
    Continue,
    /// Make the call with other arguments. At any moment but [`HookMoment::BeforeCall`] the same as `Continue`.
    Edit(Object),
    /// Do not make the call; the model receives the reason. At any moment but [`HookMoment::BeforeCall`] the same as `Stop`.
    Refuse(String),
    /// End the run as denied.
    Stop(String),
}
