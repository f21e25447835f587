//! How an agent works.

use std::collections::HashMap;
use std::sync::Arc;

use consort_core::{Caller, CostMeter, Object, Tool};

use crate::agent::Sampling;
use crate::hook::Hook;
use crate::limits::Limits;
use crate::observe::RunObserver;
use crate::provider::Reasoning;

/// How an agent works.
#[derive(Clone)]
pub struct Settings {
    /// What it is called.
    pub name: String,
    /// On whose account it calls.
    pub caller: Caller,
    /// What it is told before anything else.
    pub instructions: String,
    /// The tools it may call, as people write them, or patterns; all of the toolbox if absent.
    pub tools: Option<Vec<String>>,
    /// Tools that whoever runs the agent runs: a run that calls one ends as waiting, with the call
    /// among [`Run::pending`](crate::Run::pending).
    pub foreign: Vec<Tool>,
    /// How much a run may do.
    pub limits: Limits,
    /// How many calls of one server are made at once.
    pub parallel: usize,
    /// How many bytes of text of a result the model sees at once.
    pub result_bytes: usize,
    /// What is done about a call that comes to no result.
    pub on_error: OnError,
    /// Whether somebody can be asked, be it later: without, what wants an approval is refused, and
    /// `ask_user` is not there.
    pub person: bool,
    /// Whether servers may use the model.
    pub sampling: Sampling,
    /// What servers are told to tell sessions apart, in `_meta` as `consort/session`; the run's id if
    /// absent.
    pub session: Option<String>,
    /// The most tokens of one answer.
    pub max_tokens: Option<u32>,
    /// How freely the model chooses its words.
    pub temperature: Option<f64>,
    /// How much the model thinks.
    pub reasoning: Option<Reasoning>,
    /// Whether what is left out of a long conversation is summarized by the model.
    pub summarize: bool,
    /// The most tokens of such a summary.
    pub summary_tokens: u32,
    /// How often the model is asked again with less, when what was sent is longer than it reads.
    pub context_tries: u32,
    /// The meter of the run that asks this agent, if one does.
    pub meter: Option<Arc<dyn CostMeter>>,
    /// Those who look on.
    pub hooks: Vec<Arc<dyn Hook>>,
    /// The observer of runs and model requests, if there is one.
    pub observer: Option<Arc<dyn RunObserver>>,
    /// The `_meta` of the request that runs answer, whose trace they continue.
    pub parent: Option<Object>,
}

/// What is done about a call that comes to no result, by the word for what went wrong (see
/// [`CallError::kind`](consort_core::CallError::kind)); a kind that is not named is told to the model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OnError(pub HashMap<String, Treat>);

/// What is done about a call that comes to no result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Treat {
    /// The model is told.
    #[default]
    Tell,
    /// It is made again, up to twice, if it is certain that it never got there; then the model is told.
    Retry,
    /// The run ends with an error.
    Fail,
}

impl Settings {
    /// The usual tokens of a summary.
    pub const SUMMARY_TOKENS: u32 = 1024;

    /// How often a model is usually asked again with less.
    pub const CONTEXT_TRIES: u32 = 3;

    /// The usual settings.
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            caller: Caller::agent(&name),
            name,
            instructions: String::new(),
            tools: None,
            foreign: Vec::new(),
            limits: Limits::default(),
            parallel: 4,
            result_bytes: 48 << 10,
            on_error: OnError::default(),
            person: false,
            sampling: Sampling::default(),
            session: None,
            max_tokens: None,
            temperature: None,
            reasoning: None,
            summarize: false,
            summary_tokens: Self::SUMMARY_TOKENS,
            context_tries: Self::CONTEXT_TRIES,
            meter: None,
            hooks: Vec::new(),
            observer: None,
            parent: None,
        }
    }
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings").field("name", &self.name).finish_non_exhaustive()
    }
}
