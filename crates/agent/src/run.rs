//! The loop of a run as a value: the state after its steps, and the next action. Nothing here does I/O, reads a clock
//! or waits, so the same steps always lead to the same state.

mod view;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use serde_json::Value;

use crate::cost::ModelCost;
use crate::limits::RunLimits;
use crate::step::{ConversationStep, RunParameters, RunReport, RunStatus, StepEvent, UserQuestion};
use consort_models::{ChatMessage, StopReason, TokenPrice, TokenUsage, ToolCall, ToolCallResult};

/// Result text of a call whose outcome is unknown.
pub const OUTCOME_UNKNOWN: &str = "outcome unknown: the call was sent and no response arrived; check before \
                           retrying";

/// Result text of a call that was never made.
const NOT_MADE: &str = "not called: the conversation continued without it";

/// The state of a conversation after its steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunState {
    messages: Vec<Arc<ChatMessage>>,
    /// Index of the first message that is shown; those before are left out.
    first_shown: usize,
    /// The model's summary of the messages left out.
    summary: Option<Arc<str>>,
    /// The maximum bytes shown of each earlier result, if less than usual.
    truncation: Option<usize>,
    /// The messages before that was decided, with truncated results.
    truncated: Vec<Arc<ChatMessage>>,
    /// Cost of the agents that were called.
    agent_cost: ModelCost,
    parameters: Option<RunParameters>,
    started_at: u64,
    last_step_at: u64,
    turns: u32,
    calls: u32,
    failed_calls: u32,
    usage: TokenUsage,
    /// Token usage of the last answer.
    last_usage: TokenUsage,
    /// Calls of the last answer, until all have a result.
    pending: Vec<UnfinishedCall>,
    /// Stop reason, once the model's answer is final.
    final_stop: Option<StopReason>,
    /// Hash of the last calls, and the number of times they were made in a row.
    repetition: (u64, u32),
    outcome: Option<(RunStatus, String)>,
    /// Full text of results that were truncated, by call.
    full_texts: HashMap<String, Arc<str>>,
}

/// A call without a result yet, or one that waits for the results of others.
#[derive(Clone, Debug, PartialEq)]
pub struct UnfinishedCall {
    /// The call.
    pub call: ToolCall,
    /// State of the call.
    pub state: CallState,
}

/// State of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum CallState {
    /// It is to be made.
    Ready,
    /// It waits for a user.
    Waiting(UserQuestion),
    /// A user answered, and it is to be made.
    Answered(UserQuestion, Value),
    /// It was sent.
    Sent,
    /// It has this result.
    Done(ToolCallResult),
}

/// Next action of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum NextAction {
    /// None: the run waits for input.
    Idle,
    /// Send a model request.
    Request,
    /// Make these calls.
    Call(Vec<UnfinishedCall>),
    /// End the run.
    End(RunStatus, String),
}

impl RunState {
    /// Returns the state after these steps.
    pub fn from_steps<'a>(steps: impl IntoIterator<Item = &'a ConversationStep>) -> Self {
        let mut run = Self::default();
        for step in steps {
            run.apply(step);
        }
        run
    }

    /// Applies a step. A step that does not fit the state changes nothing.
    pub fn apply(&mut self, step: &ConversationStep) {
        self.last_step_at = self.last_step_at.max(step.at);
        match &step.event {
            StepEvent::RunStarted(began) => self.begin(began.clone(), step.at),
            StepEvent::Message { message } => self.messages.push(Arc::new(message.clone())),
            StepEvent::Reply { reply } => {
                self.turns += 1;
                self.usage += reply.usage;
                self.last_usage = reply.usage;
                self.pending = reply
                    .message
                    .calls()
                    .map(|call| UnfinishedCall { call: call.clone(), state: CallState::Ready })
                    .collect();
                self.final_stop = match reply.stop {
                    _ if !self.pending.is_empty() => None,
                    StopReason::Paused => None,
                    ref stop => Some(stop.clone()),
                };
                self.repeat();
                self.messages.push(Arc::new(reply.message.clone()));
            }
            StepEvent::CallSent { call, .. } => self.set_state(call, CallState::Sent),
            StepEvent::Question { question } => {
                self.set_state(&question.call, CallState::Waiting(question.clone()));
            }
            StepEvent::Answer { question, answer } => self.record_answer(question, answer),
            StepEvent::Result { result, error, full_text: whole, .. } => {
                self.calls += 1;
                self.failed_calls += u32::from(result.is_error || error.is_some());
                if let Some(whole) = whole {
                    self.full_texts.insert(result.call.clone(), whole.as_str().into());
                }
                self.set_state(&result.call, CallState::Done(result.clone()));
                self.close_if_done();
            }
            StepEvent::Cut { before } => {
                self.first_shown = (*before).min(self.messages.len());
                self.summary = None;
            }
            StepEvent::Summary { text, usage } => {
                self.summary = Some(text.as_str().into());
                self.usage += *usage;
            }
            StepEvent::Truncation { result_bytes } => self.truncate_results(*result_bytes),
            StepEvent::AgentCost { cost, .. } => {
                self.agent_cost.tokens += cost.tokens;
                self.agent_cost.dollars += cost.dollars;
            }
            StepEvent::RunEnded { status, reason } => {
                self.outcome = Some((*status, reason.clone()));
            }
        }
    }

    /// Begins a new run, and closes the calls that the last one left open.
    fn begin(&mut self, began: RunParameters, at: u64) {
        for pending in &mut self.pending {
            let text = match &pending.state {
                CallState::Done(_) => continue,
                CallState::Sent => OUTCOME_UNKNOWN,
                CallState::Ready | CallState::Waiting(_) | CallState::Answered(..) => NOT_MADE,
            };
            pending.state = CallState::Done(ToolCallResult::error(&pending.call.id, text));
        }
        self.close_if_done();
        self.parameters = Some(began);
        (self.started_at, self.last_step_at) = (at, at);
        (self.turns, self.calls, self.failed_calls) = (0, 0, 0);
        self.usage = TokenUsage::default();
        self.agent_cost = ModelCost::default();
        self.final_stop = None;
        self.repetition = (0, 0);
        self.outcome = None;
    }

    /// Changes the first call of this id that has no result.
    fn set_state(&mut self, call: &str, state: CallState) {
        let open = |pending: &&mut UnfinishedCall| {
            pending.call.id == call && !matches!(pending.state, CallState::Done(_))
        };
        if let Some(pending) = self.pending.iter_mut().find(open) {
            pending.state = state;
        }
    }

    fn record_answer(&mut self, id: &str, answer: &Value) {
        for pending in &mut self.pending {
            if let CallState::Waiting(question) = &pending.state
                && question.id == id
            {
                pending.state = CallState::Answered(question.clone(), answer.clone());
                // A waiting run continues.
                self.outcome.take_if(|(status, _)| *status == RunStatus::Waiting);
                return;
            }
        }
    }

    /// Adds the results in the order of their calls, once all have arrived.
    fn close_if_done(&mut self) {
        let done = |pending: &UnfinishedCall| matches!(pending.state, CallState::Done(_));
        if self.pending.is_empty() || !self.pending.iter().all(done) {
            return;
        }
        let results = std::mem::take(&mut self.pending).into_iter().filter_map(|pending| {
            match pending.state {
                CallState::Done(result) => Some(result),
                _ => None,
            }
        });
        self.messages.push(Arc::new(ChatMessage::results(results)));
    }

    /// Counts identical calls in a row.
    fn repeat(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let mut hasher = DefaultHasher::new();
        for UnfinishedCall { call, .. } in &self.pending {
            (&call.name, call.arguments.as_str()).hash(&mut hasher);
        }
        let signature = hasher.finish();
        let times = if self.repetition.0 == signature { self.repetition.1 + 1 } else { 1 };
        self.repetition = (signature, times);
    }

    /// Returns the next action, at this time in milliseconds since 1970.
    pub fn next(&self, limits: &RunLimits, price: Option<TokenPrice>, now: u64) -> NextAction {
        if self.parameters.is_none() || self.outcome.is_some() {
            return NextAction::Idle;
        }
        if let Some(reason) = self.exceeded(limits, price, now) {
            return NextAction::End(RunStatus::LimitReached, reason);
        }
        if self.pending.is_empty() {
            return match &self.final_stop {
                None if self.turns >= limits.turns => {
                    NextAction::End(RunStatus::LimitReached, limits.turns_reached())
                }
                None => NextAction::Request,
                Some(stop) => stopped_end(stop),
            };
        }
        let ready = |pending: &&UnfinishedCall| {
            matches!(pending.state, CallState::Ready | CallState::Answered(..))
        };
        let ready: Vec<UnfinishedCall> = self.pending.iter().filter(ready).cloned().collect();
        if ready.is_empty() {
            return NextAction::End(RunStatus::Waiting, "waiting for a user".to_owned());
        }
        if self.calls + u32::try_from(ready.len()).unwrap_or(u32::MAX) > limits.calls {
            return NextAction::End(RunStatus::LimitReached, limits.calls_reached());
        }
        if self.repetition.1 > limits.repeats {
            let name = self.pending.first().map_or("", |pending| &pending.call.name);
            return NextAction::End(RunStatus::LimitReached, limits.repeats_reached(name));
        }
        NextAction::Call(ready)
    }

    fn exceeded(&self, limits: &RunLimits, price: Option<TokenPrice>, now: u64) -> Option<String> {
        // A completed run is not failed by a limit.
        if self.final_stop.is_some() && self.pending.is_empty() {
            return None;
        }
        limits.exceeded_limit(
            &self.usage,
            price,
            self.agent_cost,
            now.saturating_sub(self.started_at),
        )
    }

    /// Returns all messages.
    pub fn messages(&self) -> &[Arc<ChatMessage>] {
        &self.messages
    }

    /// Returns the number of leading messages that are no longer shown.
    pub fn first_shown(&self) -> usize {
        self.first_shown
    }

    /// Returns the parameters that the run began with, if one did.
    pub fn parameters(&self) -> Option<&RunParameters> {
        self.parameters.as_ref()
    }

    /// Returns the number of model requests in this run.
    pub fn turns(&self) -> u32 {
        self.turns
    }

    /// Returns the token usage of the last answer.
    pub fn last_usage(&self) -> &TokenUsage {
        &self.last_usage
    }

    /// Returns the token usage of the run so far.
    pub fn usage(&self) -> &TokenUsage {
        &self.usage
    }

    /// Returns the calls of the last answer while not all have a result.
    pub fn pending(&self) -> &[UnfinishedCall] {
        &self.pending
    }

    /// Returns the full text of a result that was truncated.
    pub fn full_text(&self, call: &str) -> Option<&Arc<str>> {
        self.full_texts.get(call)
    }

    /// Returns true if a result was truncated.
    pub fn has_full_texts(&self) -> bool {
        !self.full_texts.is_empty()
    }

    /// Returns true if the run was interrupted, or can continue because a user answered.
    pub fn is_unfinished(&self) -> bool {
        self.parameters.is_some() && self.outcome.is_none()
    }

    /// Returns the status of the last run, if it ended.
    pub fn outcome(&self) -> Option<RunStatus> {
        self.outcome.as_ref().map(|(status, _)| *status)
    }

    /// Returns the questions to users that are not answered.
    pub fn open_questions(&self) -> Vec<UserQuestion> {
        let waiting = self.pending.iter().filter_map(|pending| match &pending.state {
            CallState::Waiting(question) => Some(question.clone()),
            _ => None,
        });
        waiting.collect()
    }

    /// Returns the report of the run.
    pub fn report(&self, price: Option<TokenPrice>) -> RunReport {
        let (status, reason) =
            self.outcome.clone().unwrap_or((RunStatus::Cancelled, String::new()));
        let words = self.messages.iter().rev().map(|message| (message.role, message.text()));
        let mut words = words.filter(|(role, _)| *role == consort_models::MessageRole::Assistant);
        RunReport {
            run: self.parameters.as_ref().map(|began| began.run.clone()).unwrap_or_default(),
            status,
            reason,
            hint: None,
            text: words.next().map(|(_, text)| text).unwrap_or_default(),
            turns: self.turns,
            calls: self.calls,
            failed_calls: self.failed_calls,
            usage: self.usage,
            cost: self.dollars(price),
            duration_ms: self.last_step_at.saturating_sub(self.started_at),
            open_questions: self.open_questions(),
        }
    }
}

/// Returns the end of a run whose model stopped for this reason.
fn stopped_end(stop: &StopReason) -> NextAction {
    let (status, reason) = match stop {
        StopReason::Length => {
            (RunStatus::LimitReached, "the answer reached its maximum number of tokens")
        }
        StopReason::Refusal => (RunStatus::Completed, "the model refused to answer"),
        StopReason::ContentFilter => (RunStatus::Error, "the provider filtered the answer"),
        _ => (RunStatus::Completed, ""),
    };
    NextAction::End(status, reason.to_owned())
}

#[cfg(test)]
mod tests;
