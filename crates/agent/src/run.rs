//! The loop of a run as a value: the state after its steps, and the next action. Nothing here does I/O, reads a clock
//! or waits, so the same steps always lead to the same state.

mod shown;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use serde_json::Value;

use crate::cost::ModelCost;
use crate::limits::Limits;
use crate::step::{Began, Question, Report, Status, Step, What};
use consort_models::{ChatMessage, StopReason, TokenPrice, TokenUsage, ToolCall, ToolCallResult};

/// Result text of a call whose outcome is unknown.
pub const UNKNOWN: &str = "outcome unknown: the call left and what became of it was not heard; \
                           check before repeating";

/// Result text of a call that was never made.
const NOT_MADE: &str = "not made: the conversation went on without it";

/// The state of a conversation after its steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    messages: Vec<Arc<ChatMessage>>,
    /// Index of the first message that is shown; those before are left out.
    cut: usize,
    /// The model's summary of the messages left out.
    summary: Option<Arc<str>>,
    /// Index before which results are truncated, and the bytes shown of each.
    shortened: Option<(usize, usize)>,
    /// Cost of the agents that were called.
    agents: ModelCost,
    began: Option<Began>,
    since: u64,
    last: u64,
    turns: u32,
    calls: u32,
    failed: u32,
    usage: TokenUsage,
    /// Token usage of the last answer.
    latest: TokenUsage,
    /// Calls of the last answer, until all have a result.
    pending: Vec<Pending>,
    /// Stop reason, once the model's answer is final.
    said: Option<StopReason>,
    /// Hash of the last calls, and the number of times they were made in a row.
    repeated: (u64, u32),
    over: Option<(Status, String)>,
    /// Full text of results that were truncated, by call.
    wholes: HashMap<String, Arc<str>>,
}

/// A call without a result yet, or one that waits for the results of others.
#[derive(Clone, Debug, PartialEq)]
pub struct Pending {
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
    Waiting(Question),
    /// A user answered, and it is to be made.
    Answered(Question, Value),
    /// It was sent.
    Left,
    /// It has this result.
    Done(ToolCallResult),
}

/// Next action of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// None: the run waits for input.
    Rest,
    /// Send a model request.
    Ask,
    /// Make these calls.
    Call(Vec<Pending>),
    /// End the run.
    End(Status, String),
}

impl Run {
    /// Returns the state after these steps.
    pub fn of<'a>(steps: impl IntoIterator<Item = &'a Step>) -> Self {
        let mut run = Self::default();
        for step in steps {
            run.apply(step);
        }
        run
    }

    /// Applies a step. A step that does not fit the state changes nothing.
    pub fn apply(&mut self, step: &Step) {
        self.last = self.last.max(step.at);
        match &step.what {
            What::Began(began) => self.begin(began.clone(), step.at),
            What::Message { message } => self.messages.push(Arc::new(message.clone())),
            What::Said { reply } => {
                self.turns += 1;
                self.usage += reply.usage;
                self.latest = reply.usage;
                self.pending = reply
                    .message
                    .calls()
                    .map(|call| Pending { call: call.clone(), state: CallState::Ready })
                    .collect();
                self.said = match reply.stop {
                    _ if !self.pending.is_empty() => None,
                    StopReason::Paused => None,
                    ref stop => Some(stop.clone()),
                };
                self.repeat();
                self.messages.push(Arc::new(reply.message.clone()));
            }
            What::Called { call, .. } => self.set(call, CallState::Left),
            What::Asked { question } => {
                self.set(&question.call, CallState::Waiting(question.clone()));
            }
            What::Answered { question, answer } => self.answered(question, answer),
            What::Result { result, error, whole, .. } => {
                self.calls += 1;
                self.failed += u32::from(result.is_error || error.is_some());
                if let Some(whole) = whole {
                    self.wholes.insert(result.call.clone(), whole.as_str().into());
                }
                self.set(&result.call, CallState::Done(result.clone()));
                self.close_if_done();
            }
            What::Cut { before } => {
                self.cut = (*before).min(self.messages.len());
                self.summary = None;
            }
            What::Summarized { text, usage } => {
                self.summary = Some(text.as_str().into());
                self.usage += *usage;
            }
            What::Shortened { result_bytes } => self.shorten(*result_bytes),
            What::Charged { cost, .. } => {
                self.agents.tokens += cost.tokens;
                self.agents.dollars += cost.dollars;
            }
            What::Over { status, reason } => self.over = Some((*status, reason.clone())),
        }
    }

    /// Begins a new run, and closes the calls that the last one left open.
    fn begin(&mut self, began: Began, at: u64) {
        for pending in &mut self.pending {
            let text = match &pending.state {
                CallState::Done(_) => continue,
                CallState::Left => UNKNOWN,
                CallState::Ready | CallState::Waiting(_) | CallState::Answered(..) => NOT_MADE,
            };
            pending.state = CallState::Done(ToolCallResult::error(&pending.call.id, text));
        }
        self.close_if_done();
        self.began = Some(began);
        (self.since, self.last) = (at, at);
        (self.turns, self.calls, self.failed) = (0, 0, 0);
        self.usage = TokenUsage::default();
        self.agents = ModelCost::default();
        self.said = None;
        self.repeated = (0, 0);
        self.over = None;
    }

    /// Changes the first call of this id that has no result.
    fn set(&mut self, call: &str, state: CallState) {
        let open = |pending: &&mut Pending| {
            pending.call.id == call && !matches!(pending.state, CallState::Done(_))
        };
        if let Some(pending) = self.pending.iter_mut().find(open) {
            pending.state = state;
        }
    }

    fn answered(&mut self, id: &str, answer: &Value) {
        for pending in &mut self.pending {
            if let CallState::Waiting(question) = &pending.state
                && question.id == id
            {
                pending.state = CallState::Answered(question.clone(), answer.clone());
                // Whoever waited goes on.
                self.over.take_if(|(status, _)| *status == Status::Waiting);
                return;
            }
        }
    }

    /// Adds the results in the order of their calls, once all have arrived.
    fn close_if_done(&mut self) {
        let done = |pending: &Pending| matches!(pending.state, CallState::Done(_));
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
        for Pending { call, .. } in &self.pending {
            (&call.name, call.arguments.as_str()).hash(&mut hasher);
        }
        let signature = hasher.finish();
        let times = if self.repeated.0 == signature { self.repeated.1 + 1 } else { 1 };
        self.repeated = (signature, times);
    }

    /// Returns the next action, at this time in milliseconds since 1970.
    pub fn next(&self, limits: &Limits, price: Option<TokenPrice>, now: u64) -> Next {
        if self.began.is_none() || self.over.is_some() {
            return Next::Rest;
        }
        if let Some(reason) = self.exceeded(limits, price, now) {
            return Next::End(Status::LimitReached, reason);
        }
        if self.pending.is_empty() {
            return match &self.said {
                None if self.turns >= limits.turns => {
                    Next::End(Status::LimitReached, limits.turns_reached())
                }
                None => Next::Ask,
                Some(stop) => end(stop),
            };
        }
        let ready = |pending: &&Pending| {
            matches!(pending.state, CallState::Ready | CallState::Answered(..))
        };
        let ready: Vec<Pending> = self.pending.iter().filter(ready).cloned().collect();
        if ready.is_empty() {
            return Next::End(Status::Waiting, "a person is asked".to_owned());
        }
        if self.calls + u32::try_from(ready.len()).unwrap_or(u32::MAX) > limits.calls {
            return Next::End(Status::LimitReached, limits.calls_reached());
        }
        if self.repeated.1 > limits.repeats {
            let name = self.pending.first().map_or("", |pending| &pending.call.name);
            return Next::End(Status::LimitReached, limits.repeats_reached(name));
        }
        Next::Call(ready)
    }

    fn exceeded(&self, limits: &Limits, price: Option<TokenPrice>, now: u64) -> Option<String> {
        // Whoever is done is done, whatever it cost.
        if self.said.is_some() && self.pending.is_empty() {
            return None;
        }
        limits.exceeded(&self.usage, price, self.agents, now.saturating_sub(self.since))
    }

    /// Returns all messages.
    pub fn messages(&self) -> &[Arc<ChatMessage>] {
        &self.messages
    }

    /// Returns the number of leading messages that are no longer shown.
    pub fn cut(&self) -> usize {
        self.cut
    }

    /// Returns the parameters that the run began with, if one did.
    pub fn began(&self) -> Option<&Began> {
        self.began.as_ref()
    }

    /// Returns the number of model requests in this run.
    pub fn turns(&self) -> u32 {
        self.turns
    }

    /// Returns the token usage of the last answer.
    pub fn latest(&self) -> &TokenUsage {
        &self.latest
    }

    /// Returns the token usage of the run so far.
    pub fn usage(&self) -> &TokenUsage {
        &self.usage
    }

    /// Returns the calls of the last answer while not all have a result.
    pub fn pending(&self) -> &[Pending] {
        &self.pending
    }

    /// Returns the full text of a result that was truncated.
    pub fn whole(&self, call: &str) -> Option<&Arc<str>> {
        self.wholes.get(call)
    }

    /// Returns true if a result was truncated.
    pub fn has_wholes(&self) -> bool {
        !self.wholes.is_empty()
    }

    /// Returns true if the run was interrupted, or can continue because a user answered.
    pub fn is_unfinished(&self) -> bool {
        self.began.is_some() && self.over.is_none()
    }

    /// Returns the status of the last run, if it ended.
    pub fn over(&self) -> Option<Status> {
        self.over.as_ref().map(|(status, _)| *status)
    }

    /// Returns the questions to users that are not answered.
    pub fn waiting(&self) -> Vec<Question> {
        let waiting = self.pending.iter().filter_map(|pending| match &pending.state {
            CallState::Waiting(question) => Some(question.clone()),
            _ => None,
        });
        waiting.collect()
    }

    /// Returns the report of the run.
    pub fn report(&self, price: Option<TokenPrice>) -> Report {
        let (status, reason) = self.over.clone().unwrap_or((Status::Cancelled, String::new()));
        let words = self.messages.iter().rev().map(|message| (message.role, message.text()));
        let mut words = words.filter(|(role, _)| *role == consort_models::MessageRole::Assistant);
        Report {
            run: self.began.as_ref().map(|began| began.run.clone()).unwrap_or_default(),
            status,
            reason,
            hint: None,
            text: words.next().map(|(_, text)| text).unwrap_or_default(),
            turns: self.turns,
            calls: self.calls,
            failed: self.failed,
            usage: self.usage,
            cost: self.cost(price),
            took: self.last.saturating_sub(self.since),
            waiting: self.waiting(),
        }
    }
}

/// Returns the end of a run whose model stopped for this reason.
fn end(stop: &StopReason) -> Next {
    let (status, reason) = match stop {
        StopReason::Length => {
            (Status::LimitReached, "the answer reached the most tokens it may have")
        }
        StopReason::Refusal => (Status::Completed, "the model refuses"),
        StopReason::ContentFilter => (Status::Error, "the provider held the answer back"),
        _ => (Status::Completed, ""),
    };
    Next::End(status, reason.to_owned())
}

#[cfg(test)]
mod tests;
