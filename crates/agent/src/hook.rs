//! Those who look on: told of what is about to happen and what happened, and able to stop it.

use consort_core::{BoxFuture, Object};

use crate::message::{Call, CallResult, Message};
use crate::provider::{Ask, Reply};
use crate::step::Report;

/// Somebody who looks on at a run: for a record, or as a guardrail.
pub trait Hook: Send + Sync {
    /// What to do at this moment. The run waits for the answer.
    fn at<'a>(&'a self, moment: Moment<'a>) -> BoxFuture<'a, Verdict>;
}

/// A moment of a run.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Moment<'a> {
    /// Something is said to the agent, and it is about to be answered.
    Input(&'a [Message]),
    /// The model is about to be asked.
    Asking(&'a Ask),
    /// The model answered.
    Said(&'a Reply),
    /// A call is about to leave.
    Calling {
        /// The call.
        call: &'a Call,
        /// The tool as its server is called, and it is called there.
        tool: &'a str,
        /// What it is given.
        arguments: &'a Object,
    },
    /// A call came to something.
    Called {
        /// The call.
        call: &'a Call,
        /// What it came to.
        result: &'a CallResult,
    },
    /// The run is over.
    Over(&'a Report),
}

/// What one who looks on wants.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Go on.
    Go,
    /// Make the call with other arguments. At any moment but [`Moment::Calling`] the same as `Go`.
    Edit(Object),
    /// Do not make the call; the model is told why. At any moment but [`Moment::Calling`] the same as
    /// `Stop`.
    Refuse(String),
    /// End the run as denied.
    Stop(String),
}
