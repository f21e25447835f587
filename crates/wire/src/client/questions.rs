//! Requests of a server that wait for an answer, and their assignment to calls.
//!
//! A request on a channel that calls share names no call: it belongs to one of those in flight when it came. It goes to
//! the client that owns those calls. If several clients do, it is held until the calls that end leave one. When the
//! assigned call ends, another one of the same client is assigned, and the request is refused only when none is left.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::ask::{Asked, Refusal, Reply};
use crate::client::host::Question;
use crate::client::link::{Link, Origin};
use crate::client::logs::related_task;
use crate::client::mailbox::{AnsweringCall, Arrival};
use crate::client::pulse::Pulse;
use crate::json::Json;
use crate::message::{Id, Message, Notification};
use crate::splice;

/// The time for which calls may still end without an answer to a request, once there are as many requests as clients
/// that could be meant.
const SETTLE: Duration = Duration::from_millis(500);

/// Requests of one server that wait for an answer.
#[derive(Debug, Default)]
pub(crate) struct OpenQuestions {
    table: Mutex<QuestionTable>,
    /// The size of the table, so that the end of a call costs nothing while there are none.
    count: AtomicUsize,
}

#[derive(Debug, Default)]
struct QuestionTable {
    open: HashMap<Id, OpenQuestion>,
    arrived: u64,
    /// True if a task watches the held requests.
    is_watched: bool,
}

/// A request that waits for an answer.
#[derive(Debug)]
struct OpenQuestion {
    /// The order of arrival.
    number: u64,
    since: Instant,
    body: Notification,
    /// Calls that it may belong to: those in flight when it came, except those that left it unanswered.
    candidates: Vec<u64>,
    /// The client that it was assigned to.
    client: Option<(bool, u64)>,
    /// Number of assignments: an answer from an earlier one is ignored.
    turn: u32,
    place: Place,
}

/// The party that is to answer a request.
#[derive(Debug)]
enum Place {
    /// None yet: calls of several clients are in flight.
    Held,
    /// The call on whose own stream it came.
    OwnStream,
    /// This call, which may turn out to be the wrong one.
    Call(u64),
    /// The connection's host.
    Host(Option<AbortHandle>),
}

/// The next step with a request.
enum Step {
    Hold,
    Hand(AnsweringCall),
    AskHost,
    Refuse,
}

impl OpenQuestion {
    /// Returns the calls that it may be assigned to now, one of each client, the preferred one first.
    fn takers(&self, mut calls: Vec<AnsweringCall>) -> Vec<AnsweringCall> {
        calls.retain(|call| self.candidates.contains(&call.id));
        calls.retain(|call| self.client.is_none_or(|client| client == call.client));
        let mut takers: Vec<AnsweringCall> = Vec::new();
        for call in calls {
            if !takers.iter().any(|known| known.client == call.client) {
                takers.push(call);
            }
        }
        takers
    }

    /// Removes a call that left it unanswered.
    fn pass(&mut self, call: u64) {
        self.candidates.retain(|candidate| *candidate != call);
    }
}

impl OpenQuestions {
    fn lock(&self) -> MutexGuard<'_, QuestionTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, id: &Id) -> Option<OpenQuestion> {
        let taken = self.lock().open.remove(id);
        if taken.is_some() {
            self.count.fetch_sub(1, Ordering::AcqRel);
        }
        taken
    }

    /// Removes a request that the server cancelled. Returns false if the id is unknown.
    pub(crate) fn withdraw(&self, id: &Id) -> bool {
        let taken = self.take(id);
        if let Some(OpenQuestion { place: Place::Host(Some(task)), .. }) = &taken {
            task.abort();
        }
        taken.is_some()
    }

    /// Aborts the answering of all of them.
    pub(crate) fn end(&self) {
        let open = std::mem::take(&mut self.lock().open);
        self.count.fetch_sub(open.len(), Ordering::AcqRel);
        for question in open.into_values() {
            if let Place::Host(Some(task)) = question.place {
                task.abort();
            }
        }
    }

    fn oldest(&self) -> Option<Id> {
        let table = self.lock();
        table.open.iter().min_by_key(|(_, question)| question.number).map(|(id, _)| id.clone())
    }

    /// Returns the held requests, oldest first; with `settled`, only if none of them arrived a moment ago.
    fn held(&self, settled: bool) -> Vec<Id> {
        let table = self.lock();
        let held = table.open.iter().filter(|(_, question)| matches!(question.place, Place::Held));
        let mut held: Vec<_> = held.collect();
        if settled && held.iter().any(|(_, question)| question.since.elapsed() < SETTLE) {
            return Vec::new();
        }
        held.sort_by_key(|(_, question)| question.number);
        held.into_iter().map(|(id, _)| id.clone()).collect()
    }
}

impl Link {
    /// Answers a request of the server, through its handler or a call, if it is allowed.
    pub(crate) fn ask(self: &Arc<Self>, id: &Id, body: Notification, origin: Origin) {
        if body.method == "ping" {
            let pong = Json::from(serde_json::json!({}));
            return self.send_later(splice::response(id, &pong));
        }
        if !self.settings.host.offers().allow(&body.method, &body.params) {
            self.counts.refused();
            return self.refuse(id, &Refusal::not_offered(&body.method));
        }
        if origin == Origin::Pipe {
            self.settings.host.asked_outside_calls();
        }
        // A question that nobody answers must not keep others from being asked.
        if self.questions.count.load(Ordering::Acquire) >= self.settings.limits.questions
            && let Some(oldest) = self.questions.oldest()
            && self.questions.withdraw(&oldest)
        {
            self.counts.refused();
            let message = "too many questions are open, and this one is the oldest".to_owned();
            self.refuse(&oldest, &Refusal { code: -32603, message });
        }
        self.keep_question(id, body, origin);
        match origin {
            Origin::Call(call) if self.calls.answers(call) => self.hand_over(id, call),
            Origin::Call(call) => self.put_to_host(id, Some(call)),
            Origin::Pipe => self.place(id),
        }
    }

    fn keep_question(&self, id: &Id, body: Notification, origin: Origin) {
        let calls = match origin {
            Origin::Pipe => self.calls.answering(related_task(&body).as_deref()),
            Origin::Call(_) => Vec::new(),
        };
        let mut table = self.questions.lock();
        table.arrived += 1;
        let place = if origin == Origin::Pipe { Place::Held } else { Place::OwnStream };
        let question = OpenQuestion {
            number: table.arrived,
            since: Instant::now(),
            body,
            candidates: calls.iter().map(|call| call.id).collect(),
            client: None,
            turn: 0,
            place,
        };
        if table.open.insert(id.clone(), question).is_none() {
            self.questions.count.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Reassigns requests when a call ends: those assigned to it are not its own, and without it the owner of the
    /// others may be known.
    pub(crate) fn call_ended(self: &Arc<Self>, call: u64) {
        if self.questions.count.load(Ordering::Acquire) == 0 || self.calls.closed().is_some() {
            return;
        }
        let mut moved = Vec::new();
        for (id, question) in &mut self.questions.lock().open {
            if matches!(question.place, Place::Call(asked) if asked == call) {
                question.pass(call);
                moved.push((question.number, id.clone()));
            }
        }
        moved.sort_by_key(|(number, _)| *number);
        for (_, id) in moved {
            self.place(&id);
        }
        self.place_held();
    }

    /// Finds the party that is to answer a request from a shared channel.
    fn place(self: &Arc<Self>, id: &Id) {
        let calls = self.calls.answering(None);
        let step = {
            let mut table = self.questions.lock();
            let Some(question) = table.open.get_mut(id) else { return };
            match question.takers(calls).as_slice() {
                [] if question.turn > 0 => Step::Refuse,
                [] => Step::AskHost,
                [only] => Step::Hand(*only),
                _ => {
                    question.place = Place::Held;
                    question.turn += 1;
                    Step::Hold
                }
            }
        };
        match step {
            Step::Hand(call) => self.hand_to(id, call),
            Step::AskHost => self.put_to_host(id, self.calls.only()),
            Step::Hold => self.watch_held(),
            Step::Refuse => {
                if self.questions.take(id).is_some() {
                    self.counts.refused();
                    self.refuse(id, &Refusal::unanswered());
                }
            }
        }
    }

    /// Assigns the held requests whose owner is known by now. Returns false once none is held.
    fn place_held(self: &Arc<Self>) -> bool {
        self.questions.held(false).iter().for_each(|id| self.place(id));
        // As many questions as clients that were not asked yet: each of those calls waits for an answer.
        let held = self.questions.held(true);
        let calls = self.calls.answering(None);
        let unasked = {
            let table = self.questions.lock();
            let of = |id| table.open.get(id).map(|question| question.takers(calls.clone()));
            let mut unasked: Vec<AnsweringCall> = held.iter().filter_map(of).flatten().collect();
            unasked.retain(|call| !call.is_asked);
            unasked.sort_by_key(|call| call.id);
            unasked.dedup_by_key(|call| call.client);
            unasked
        };
        if held.len() >= unasked.len() {
            for (id, call) in held.iter().zip(unasked) {
                self.hand_to(id, call);
            }
        }
        !self.questions.held(false).is_empty()
    }

    /// Assigns a request to a client, by one of its calls.
    fn hand_to(self: &Arc<Self>, id: &Id, call: AnsweringCall) {
        if let Some(question) = self.questions.lock().open.get_mut(id) {
            question.client = Some(call.client);
        }
        self.hand_over(id, call.id);
    }

    /// Watches held requests until none is left.
    fn watch_held(self: &Arc<Self>) {
        if std::mem::replace(&mut self.questions.lock().is_watched, true) {
            return;
        }
        let link = Arc::clone(self);
        self.spawn(async move {
            loop {
                tokio::time::sleep(SETTLE).await;
                if !link.place_held() {
                    link.questions.lock().is_watched = false;
                    // One may have come in between.
                    if !link.place_held() {
                        return;
                    }
                    link.questions.lock().is_watched = true;
                }
            }
        });
    }

    /// Hands a request to a call, with a reply handle.
    fn hand_over(self: &Arc<Self>, id: &Id, call: u64) {
        let (turn, Notification { method, params }) = {
            let mut table = self.questions.lock();
            let Some(question) = table.open.get_mut(id) else { return };
            question.turn += 1;
            if !matches!(question.place, Place::OwnStream) {
                question.place = Place::Call(call);
            }
            (question.turn, question.body.clone())
        };
        let (link, asked) = (Arc::clone(self), id.clone());
        let waiting = self.calls.pulse(call).as_ref().map(Pulse::wait_for_us);
        let reply = Reply::new(move |answer| {
            drop(waiting);
            link.answered(&asked, turn, answer);
        });
        // A call that ended meanwhile drops it unanswered.
        self.calls.deliver(call, Arrival::Asked(Asked { method, params, reply: Some(reply) }));
    }

    /// Handles the answer of the party that a request was assigned to.
    fn answered(self: &Arc<Self>, id: &Id, turn: u32, answer: Result<Json, Refusal>) {
        {
            let mut table = self.questions.lock();
            // The server may have taken it back, or somebody else was asked since.
            let Some(question) = table.open.get_mut(id).filter(|question| question.turn == turn)
            else {
                return;
            };
            if let (Place::Call(call), Err(refusal)) = (&question.place, &answer)
                && refusal.is_unanswered()
            {
                let call = *call;
                question.pass(call);
                drop(table);
                return self.place(id);
            }
        }
        if self.questions.take(id).is_some() {
            match answer {
                Ok(result) => self.send_later(splice::response(id, &result)),
                Err(refusal) => self.refuse(id, &refusal),
            }
        }
    }

    fn refuse(self: &Arc<Self>, id: &Id, refusal: &Refusal) {
        self.send_later(splice::error(Some(id), refusal.code, &refusal.message, None));
    }

    /// Passes a request to the handler, and notifies the call that it may belong to.
    fn put_to_host(self: &Arc<Self>, id: &Id, call: Option<u64>) {
        let (link, answered) = (Arc::clone(self), id.clone());
        let pulse = call.and_then(|call| self.calls.pulse(call));
        // Held until the handle is in its place, so that the task cannot remove the question before.
        let mut table = self.questions.lock();
        let Some(question) = table.open.get_mut(id) else { return };
        let body = question.body.clone();
        let announced = Message::Notification(body.clone());
        let Notification { method, params } = body;
        let asked = Question { call: call.map(Into::into), method, params };
        let task = self.spawn(async move {
            let _waiting = pulse.as_ref().map(Pulse::wait_for_us);
            let bytes = match link.settings.host.answer(asked).await {
                Ok(result) => splice::response(&answered, &result),
                Err(refusal) => {
                    splice::error(Some(&answered), refusal.code, &refusal.message, None)
                }
            };
            link.questions.take(&answered);
            if let Err(error) = link.send(bytes).await {
                tracing::debug!(%error, "an answer was not delivered");
            }
        });
        question.place = Place::Host(task);
        drop(table);
        if let Some(call) = call {
            self.calls.deliver(call, Arrival::Message(announced));
        }
    }
}
