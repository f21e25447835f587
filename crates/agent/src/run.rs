//! The loop of a run as a value: what steps come to, and what is to be done next. Nothing here connects,
//! reads a clock or waits, so the same steps always come to the same state.

mod shown;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use serde_json::Value;

use crate::limits::Limits;
use crate::message::{Call, CallResult, Message};
use crate::meter::ModelCost;
use crate::provider::{Price, Stop, Usage};
use crate::step::{Began, Question, Report, Status, Step, What};

/// What the result of a call says of which nobody knows whether it was made.
pub const UNKNOWN: &str = "outcome unknown: the call left and what became of it was not heard; \
                           check before repeating";

/// What the result of a call says that was never made.
const NOT_MADE: &str = "not made: the conversation went on without it";

/// A conversation as its steps leave it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    messages: Vec<Arc<Message>>,
    /// Messages before this one are no longer shown.
    cut: usize,
    /// What they said, in the model's words.
    summary: Option<Arc<str>>,
    /// Messages before this one show so many bytes of each result.
    shortened: Option<(usize, usize)>,
    /// What agents cost that were asked.
    agents: ModelCost,
    began: Option<Began>,
    since: u64,
    last: u64,
    turns: u32,
    calls: u32,
    failed: u32,
    usage: Usage,
    /// What the last answer cost.
    latest: Usage,
    /// The calls of the last answer, until all have come to something.
    pending: Vec<Pending>,
    /// Whether the model said all it had to say.
    said: Option<Stop>,
    /// What was called last, and how often in a row.
    repeated: (u64, u32),
    over: Option<(Status, String)>,
    /// The whole text of results that were shortened, by call.
    wholes: HashMap<String, Arc<str>>,
}

/// A call that has not come to anything yet, or waits for others that have not.
#[derive(Clone, Debug, PartialEq)]
pub struct Pending {
    /// The call.
    pub call: Call,
    /// How far it is.
    pub state: CallState,
}

/// How far a call is.
#[derive(Clone, Debug, PartialEq)]
pub enum CallState {
    /// It is to be made.
    Ready,
    /// It waits for a person.
    Waiting(Question),
    /// A person answered, and it is to be made.
    Answered(Question, Value),
    /// It left.
    Left,
    /// It came to this.
    Done(CallResult),
}

/// What is to be done next.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Nothing: somebody has to say something first.
    Rest,
    /// The model is to be asked.
    Ask,
    /// These calls are to be made.
    Call(Vec<Pending>),
    /// The run is to be ended.
    End(Status, String),
}

impl Run {
    /// What these steps come to.
    pub fn of<'a>(steps: impl IntoIterator<Item = &'a Step>) -> Self {
        let mut run = Self::default();
        for step in steps {
            run.apply(step);
        }
        run
    }

    /// One step more. A step that fits nothing changes nothing.
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
                    Stop::Paused => None,
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

    /// A new run, behind whatever the last one left open.
    fn begin(&mut self, began: Began, at: u64) {
        for pending in &mut self.pending {
            let text = match &pending.state {
                CallState::Done(_) => continue,
                CallState::Left => UNKNOWN,
                CallState::Ready | CallState::Waiting(_) | CallState::Answered(..) => NOT_MADE,
            };
            pending.state = CallState::Done(CallResult::error(&pending.call.id, text));
        }
        self.close_if_done();
        self.began = Some(began);
        (self.since, self.last) = (at, at);
        (self.turns, self.calls, self.failed) = (0, 0, 0);
        self.usage = Usage::default();
        self.agents = ModelCost::default();
        self.said = None;
        self.repeated = (0, 0);
        self.over = None;
    }

    /// Changes the first call of this id that has not come to anything.
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

    /// Results stand in the order of their calls, once all are there.
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
        self.messages.push(Arc::new(Message::results(results)));
    }

    /// Counts how often the same calls were made in a row.
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

    /// What is to be done next, at this time in milliseconds since 1970.
    pub fn next(&self, limits: &Limits, price: Option<Price>, now: u64) -> Next {
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

    fn exceeded(&self, limits: &Limits, price: Option<Price>, now: u64) -> Option<String> {
        // Whoever is done is done, whatever it cost.
        if self.said.is_some() && self.pending.is_empty() {
            return None;
        }
        limits.exceeded(&self.usage, price, self.agents, now.saturating_sub(self.since))
    }

    /// Everything that was said.
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// How many of the first messages are no longer shown.
    pub fn cut(&self) -> usize {
        self.cut
    }

    /// How the run began, if one did.
    pub fn began(&self) -> Option<&Began> {
        self.began.as_ref()
    }

    /// How often the model was asked in this run.
    pub fn turns(&self) -> u32 {
        self.turns
    }

    /// What the last answer cost.
    pub fn latest(&self) -> &Usage {
        &self.latest
    }

    /// What the run has cost so far.
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// The calls that have not all come to something.
    pub fn pending(&self) -> &[Pending] {
        &self.pending
    }

    /// The whole text of a result that was shortened.
    pub fn whole(&self, call: &str) -> Option<&Arc<str>> {
        self.wholes.get(call)
    }

    /// Whether a result was shortened.
    pub fn has_wholes(&self) -> bool {
        !self.wholes.is_empty()
    }

    /// Whether the run was broken off, or can go on because a person answered.
    pub fn is_unfinished(&self) -> bool {
        self.began.is_some() && self.over.is_none()
    }

    /// How the last run ended, if it did.
    pub fn over(&self) -> Option<Status> {
        self.over.as_ref().map(|(status, _)| *status)
    }

    /// What a person is asked and has not answered.
    pub fn waiting(&self) -> Vec<Question> {
        let waiting = self.pending.iter().filter_map(|pending| match &pending.state {
            CallState::Waiting(question) => Some(question.clone()),
            _ => None,
        });
        waiting.collect()
    }

    /// What the run has come to.
    pub fn report(&self, price: Option<Price>) -> Report {
        let (status, reason) = self.over.clone().unwrap_or((Status::Cancelled, String::new()));
        let words = self.messages.iter().rev().map(|message| (message.role, message.text()));
        let mut words = words.filter(|(role, _)| *role == crate::message::Role::Assistant);
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

/// How a run ends whose model stopped like this.
fn end(stop: &Stop) -> Next {
    let (status, reason) = match stop {
        Stop::Length => (Status::LimitReached, "the answer reached the most tokens it may have"),
        Stop::Refusal => (Status::Completed, "the model refuses"),
        Stop::ContentFilter => (Status::Error, "the provider held the answer back"),
        _ => (Status::Completed, ""),
    };
    Next::End(status, reason.to_owned())
}

#[cfg(test)]
mod tests;
