//! Settings of an agent.

use std::collections::HashMap;
use std::sync::Arc;

use consort_core::{Caller, CostMeter, Object, Tool};

use crate::hook::RunHook;
use crate::limits::{RunLimits, WorkLimits};
use crate::observer::RunObserver;
use crate::sampling::SamplingSettings;
use consort_models::ReasoningAmount;

/// Settings of an agent.
#[derive(Clone)]
pub struct AgentSettings {
    /// Name of the agent.
    pub name: String,
    /// Caller on whose account it calls.
    pub caller: Caller,
    /// Instructions: the system prompt.
    pub instructions: String,
    /// Tools that it may call, by friendly name or pattern; all of the toolbox if absent.
    pub tools: Option<Vec<String>>,
    /// Tools that the agent's client runs: a run that calls one ends as waiting, with the call among
    /// [`RunState::pending`](crate::RunState::pending).
    pub client_tools: Vec<Tool>,
    /// Limits of a run.
    pub limits: RunLimits,
    /// Limits of attempts, chains of agents, summaries, results and sampling.
    pub work: WorkLimits,
    /// Maximum concurrent calls of one server.
    pub parallel: usize,
    /// Maximum bytes of a result's text that the model sees at once.
    pub result_bytes: usize,
    /// Handling of calls without a result.
    pub on_error: ErrorHandling,
    /// True if a user can answer questions, even later: otherwise calls that need an approval are refused, and
    /// `ask_user` is not listed.
    pub has_user: bool,
    /// Sampling by servers.
    pub sampling: SamplingSettings,
    /// Session id that servers receive in `_meta` as `consort/session`; the run's id if absent.
    pub session: Option<String>,
    /// Maximum output tokens of one answer.
    pub max_tokens: Option<u32>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Reasoning effort.
    pub reasoning: Option<ReasoningAmount>,
    /// True if the model summarizes the messages that are left out of a long conversation.
    pub summarize: bool,
    /// Maximum tokens of such a summary.
    pub summary_tokens: u32,
    /// Maximum repeated requests with less content, after one exceeded the context window.
    pub context_tries: u32,
    /// The meter of the run that calls this agent, if one does.
    pub meter: Option<Arc<dyn CostMeter>>,
    /// Hooks.
    pub hooks: Vec<Arc<dyn RunHook>>,
    /// The observer of runs and model requests, if there is one.
    pub observer: Option<Arc<dyn RunObserver>>,
    /// The `_meta` of the request that runs answer, whose trace they continue.
    pub parent: Option<Object>,
}

/// Handling of calls without a result, by the kind of the error (see
/// [`CallError::kind`](consort_core::CallError::kind)); an error of a kind that is not listed is reported to the model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorHandling(pub HashMap<String, ErrorTreatment>);

/// Handling of a call without a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ErrorTreatment {
    /// The model receives the error.
    #[default]
    Report,
    /// It is retried, by default up to twice, if it certainly never reached its server; then as `Tell`.
    Retry,
    /// The run ends with an error.
    Fail,
}

impl AgentSettings {
    /// Default tokens of a summary.
    pub const SUMMARY_TOKENS: u32 = 1024;

    /// Default of repeated requests with less content.
    pub const CONTEXT_TRIES: u32 = 3;

    /// Creates the default settings.
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            caller: Caller::agent(&name),
            name,
            instructions: String::new(),
            tools: None,
            client_tools: Vec::new(),
            limits: RunLimits::default(),
            work: WorkLimits::default(),
            parallel: 4,
            result_bytes: 48 << 10,
            on_error: ErrorHandling::default(),
            has_user: false,
            sampling: SamplingSettings::default(),
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

impl std::fmt::Debug for AgentSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentSettings").field("name", &self.name).finish_non_exhaustive()
    }
}
