//! Requests of a server that wait for an answer, and their assignment to calls.
//!
//! A request on a channel that calls share names no call. It belongs to one of those in flight when it came, or to one
//! that was abandoned before its answer. It goes to a client only if all of these are that client's; else it is held until
//! the calls that are answered leave one client. If none of them can end, because each waits for an answer, the oldest
//! request is refused. A request never goes to a client that it may not belong to.

use std::sync::Arc;

use consort_protocol::{
    Json, JsonRpcMessage, Notification, PendingServerRequest, RequestId, RequestRefusal,
    RequestResponder, splice,
};

use crate::call::in_flight::{AnsweringCall, AskingCalls};
use crate::call::mailbox::MailboxItem;
use crate::call::timer::CallTimer;
use crate::connection::open_questions::{AnsweringParty, QuestionStep, SETTLE};
use crate::connection::{MessageOrigin, SharedConnection};
use crate::dispatch::logs::related_task;
use crate::handler::ServerRequest;

impl SharedConnection {
    /// Answers a request of the server, through its handler or a call, if it is allowed.
    pub(crate) fn ask(self: &Arc<Self>, id: &RequestId, body: Notification, origin: MessageOrigin) {
        if body.method == "ping" {
            let pong = Json::from(serde_json::json!({}));
            return self.send_later(splice::response(id, &pong));
        }
        if !self.settings.host.offers().allow(&body.method, &body.params) {
            self.counts.refused();
            return self.refuse(id, &RequestRefusal::not_offered(&body.method));
        }
        if origin == MessageOrigin::Pipe {
            self.settings.host.request_outside_calls();
        }
        // A question that nobody answers must not keep others from being asked.
        if self.questions.len() >= self.settings.limits.questions
            && let Some(oldest) = self.questions.oldest()
            && self.questions.withdraw(&oldest)
        {
            self.counts.refused();
            let message = "too many requests are pending, and this one is the oldest".to_owned();
            self.refuse(&oldest, &RequestRefusal { code: -32603, message });
        }
        self.hold_request(id, body, origin);
        match origin {
            MessageOrigin::Call(call) if self.calls.answers(call) => self.hand_over(id, call),
            MessageOrigin::Call(call) => self.put_to_host(id, Some(call)),
            MessageOrigin::Pipe => self.assign(id),
        }
    }

    fn hold_request(&self, id: &RequestId, body: Notification, origin: MessageOrigin) {
        let calls = match (origin, related_task(&body)) {
            (MessageOrigin::Pipe, Some(task)) => self.calls.asking_about(&task),
            (MessageOrigin::Pipe, None) => self.calls.asking(),
            (MessageOrigin::Call(_), _) => AskingCalls::default(),
        };
        let in_flight = calls.in_flight.iter().map(|call| (call.id, call.client));
        let candidates = in_flight.chain(calls.abandoned).collect();
        let place = if origin == MessageOrigin::Pipe {
            AnsweringParty::Held
        } else {
            AnsweringParty::OwnStream
        };
        self.questions.add(id, body, candidates, place);
    }

    /// Reassigns requests when a call ends: those assigned to it are not its own, and without it the owner of the
    /// others may be known.
    pub(crate) fn call_ended(self: &Arc<Self>, call: u64) {
        if self.questions.len() == 0 || self.calls.closed().is_some() {
            return;
        }
        let mut moved = Vec::new();
        for (id, question) in &mut self.questions.lock().open {
            if matches!(question.place, AnsweringParty::Call(asked) if asked == call) {
                question.pass(call);
                moved.push((question.number, id.clone()));
            }
        }
        moved.sort_by_key(|(number, _)| *number);
        for (_, id) in moved {
            self.assign(&id);
        }
        self.assign_held();
    }

    /// Finds the party that is to answer a request from a shared channel.
    fn assign(self: &Arc<Self>, id: &RequestId) {
        let calls = self.calls.asking();
        let step = {
            let mut table = self.questions.lock();
            let Some(question) = table.open.get_mut(id) else { return };
            let step = question.next_step(&calls);
            if matches!(step, QuestionStep::Hold) {
                question.place = AnsweringParty::Held;
                question.turn += 1;
            }
            step
        };
        match step {
            QuestionStep::Hand(call) => self.hand_to(id, call),
            QuestionStep::AskHost => self.put_to_host(id, self.calls.only()),
            QuestionStep::Hold => self.watch_held(),
            QuestionStep::Refuse => self.give_up(id, &RequestRefusal::unanswered()),
        }
    }

    /// Refuses a request that no call answers.
    fn give_up(self: &Arc<Self>, id: &RequestId, refusal: &RequestRefusal) {
        if self.questions.take(id).is_some() {
            self.counts.refused();
            self.refuse(id, refusal);
        }
    }

    /// Assigns the held requests whose client is known by now, and refuses one if nothing else can go on. Returns false
    /// once none is held.
    fn assign_held(self: &Arc<Self>) -> bool {
        self.questions.held().iter().for_each(|id| self.assign(id));
        if let Some(id) = self.questions.deadlocked(&self.calls.asking()) {
            tracing::warn!(
                server = self.settings.label,
                "a request of the server was refused: its connection has pending calls of several clients"
            );
            self.give_up(&id, &RequestRefusal::ambiguous());
        }
        !self.questions.held().is_empty()
    }

    /// Assigns a request to a client, by one of its calls.
    fn hand_to(self: &Arc<Self>, id: &RequestId, call: AnsweringCall) {
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
                if !link.assign_held() {
                    link.questions.lock().is_watched = false;
                    // One may have come in between.
                    if !link.assign_held() {
                        return;
                    }
                    link.questions.lock().is_watched = true;
                }
            }
        });
    }

    /// Hands a request to a call, with a reply handle.
    fn hand_over(self: &Arc<Self>, id: &RequestId, call: u64) {
        let (turn, Notification { method, params }) = {
            let mut table = self.questions.lock();
            let Some(question) = table.open.get_mut(id) else { return };
            question.turn += 1;
            if !matches!(question.place, AnsweringParty::OwnStream) {
                question.place = AnsweringParty::Call(call);
            }
            (question.turn, question.body.clone())
        };
        let (link, asked) = (Arc::clone(self), id.clone());
        let waiting = self.calls.pulse(call).as_ref().map(CallTimer::wait_for_us);
        let reply = RequestResponder::new(move |answer| {
            drop(waiting);
            link.answered(&asked, turn, answer);
        });
        // A call that ended meanwhile drops it unanswered.
        self.calls.deliver(
            call,
            MailboxItem::Asked(PendingServerRequest { method, params, reply: Some(reply) }),
        );
    }

    /// Handles the answer of the party that a request was assigned to.
    fn answered(self: &Arc<Self>, id: &RequestId, turn: u32, answer: Result<Json, RequestRefusal>) {
        {
            let mut table = self.questions.lock();
            // The server may have taken it back, or somebody else was asked since.
            let Some(question) = table.open.get_mut(id).filter(|question| question.turn == turn)
            else {
                return;
            };
            if let (AnsweringParty::Call(call), Err(refusal)) = (&question.place, &answer)
                && refusal.is_unanswered()
            {
                let call = *call;
                question.pass(call);
                drop(table);
                return self.assign(id);
            }
        }
        if self.questions.take(id).is_some() {
            match answer {
                Ok(result) => self.send_later(splice::response(id, &result)),
                Err(refusal) => self.refuse(id, &refusal),
            }
        }
    }

    fn refuse(self: &Arc<Self>, id: &RequestId, refusal: &RequestRefusal) {
        self.send_later(splice::error(Some(id), refusal.code, &refusal.message, None));
    }

    /// Passes a request to the handler, and notifies the call that it may belong to.
    fn put_to_host(self: &Arc<Self>, id: &RequestId, call: Option<u64>) {
        let (link, answered) = (Arc::clone(self), id.clone());
        let pulse = call.and_then(|call| self.calls.pulse(call));
        // Held until the handle is in its place, so that the task cannot remove the question before.
        let mut table = self.questions.lock();
        let Some(question) = table.open.get_mut(id) else { return };
        let body = question.body.clone();
        let announced = JsonRpcMessage::Notification(body.clone());
        let Notification { method, params } = body;
        let asked = ServerRequest { call: call.map(Into::into), method, params };
        let task = self.spawn(async move {
            let _waiting = pulse.as_ref().map(CallTimer::wait_for_us);
            let bytes = match link.settings.host.answer(asked).await {
                Ok(result) => splice::response(&answered, &result),
                Err(refusal) => {
                    splice::error(Some(&answered), refusal.code, &refusal.message, None)
                }
            };
            link.questions.take(&answered);
            if let Err(error) = link.send(bytes).await {
                tracing::debug!(%error, "cannot deliver a response");
            }
        });
        question.place = AnsweringParty::Host(task);
        drop(table);
        if let Some(call) = call {
            self.calls.deliver(call, MailboxItem::Message(announced));
        }
    }
}
