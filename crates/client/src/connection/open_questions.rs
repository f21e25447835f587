//! The table of a server's open requests, and the rule that assigns each to a client.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use consort_protocol::{Notification, RequestId};
use parking_lot::{Mutex, MutexGuard};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::call::in_flight::{AnsweringCall, AskingCalls};
use crate::call::owner::CallClient;

/// The time for which calls may still be answered once there are as many requests as clients that may be meant.
pub(crate) const SETTLE: Duration = Duration::from_millis(500);

/// Requests of one server that wait for an answer.
#[derive(Debug, Default)]
pub(crate) struct OpenQuestions {
    table: Mutex<QuestionTable>,
    /// The size of the table, so that the end of a call costs nothing while there are none.
    count: AtomicUsize,
}

#[derive(Debug, Default)]
pub(crate) struct QuestionTable {
    pub(crate) open: HashMap<RequestId, OpenQuestion>,
    arrived: u64,
    /// True if a task watches the held requests.
    pub(crate) is_watched: bool,
}

/// A request that waits for an answer.
#[derive(Debug)]
pub(crate) struct OpenQuestion {
    /// The order of arrival.
    pub(crate) number: u64,
    since: Instant,
    pub(crate) body: Notification,
    /// Calls that it may belong to, with their clients.
    candidates: Vec<(u64, CallClient)>,
    /// The client that it was assigned to.
    pub(crate) client: Option<CallClient>,
    /// Number of assignments: an answer from an earlier one is ignored.
    pub(crate) turn: u32,
    pub(crate) place: AnsweringParty,
}

/// The party that is to answer a request.
#[derive(Debug)]
pub(crate) enum AnsweringParty {
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
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum QuestionStep {
    Hold,
    Hand(AnsweringCall),
    AskHost,
    Refuse,
}

impl OpenQuestion {
    /// Decides on the next step, after the candidates that were answered meanwhile are removed.
    pub(crate) fn next_step(&mut self, calls: &AskingCalls) -> QuestionStep {
        let abandoned = |id: u64| calls.abandoned.iter().any(|(call, _)| *call == id);
        let in_flight = |id: u64| calls.in_flight.iter().any(|call| call.id == id);
        self.candidates.retain(|(call, _)| in_flight(*call) || abandoned(*call));
        let is_candidate = |id: u64| self.candidates.iter().any(|(call, _)| *call == id);
        let mut takers = calls.in_flight.iter().filter(|call| is_candidate(call.id));
        let client = self.client.or_else(|| only_client(&self.candidates));
        match client {
            Some(CallClient::Handler) => QuestionStep::AskHost,
            Some(client) => {
                let taker = takers.find(|call| call.client == client);
                taker.map_or(QuestionStep::Refuse, |call| QuestionStep::Hand(*call))
            }
            None if self.candidates.is_empty() && self.turn == 0 => QuestionStep::AskHost,
            None if takers.next().is_none() => QuestionStep::Refuse,
            None => QuestionStep::Hold,
        }
    }

    /// Removes a call that left it unanswered.
    pub(crate) fn pass(&mut self, call: u64) {
        self.candidates.retain(|(candidate, _)| *candidate != call);
    }
}

/// Returns the client of all these calls, if it is one.
fn only_client(calls: &[(u64, CallClient)]) -> Option<CallClient> {
    let (_, first) = *calls.first()?;
    let is_one = first != CallClient::Unknown && calls.iter().all(|(_, client)| *client == first);
    is_one.then_some(first)
}

impl OpenQuestions {
    pub(crate) fn lock(&self) -> MutexGuard<'_, QuestionTable> {
        self.table.lock()
    }

    /// Returns the number of open requests.
    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Adds a request that may belong to these calls.
    pub(crate) fn add(
        &self,
        id: &RequestId,
        body: Notification,
        candidates: Vec<(u64, CallClient)>,
        place: AnsweringParty,
    ) {
        let mut table = self.lock();
        table.arrived += 1;
        let question = OpenQuestion {
            number: table.arrived,
            since: Instant::now(),
            body,
            candidates,
            client: None,
            turn: 0,
            place,
        };
        if table.open.insert(id.clone(), question).is_none() {
            self.count.fetch_add(1, Ordering::AcqRel);
        }
    }

    pub(crate) fn take(&self, id: &RequestId) -> Option<OpenQuestion> {
        let taken = self.lock().open.remove(id);
        if taken.is_some() {
            self.count.fetch_sub(1, Ordering::AcqRel);
        }
        taken
    }

    /// Removes a request that the server cancelled. Returns false if the id is unknown.
    pub(crate) fn withdraw(&self, id: &RequestId) -> bool {
        let taken = self.take(id);
        if let Some(OpenQuestion { place: AnsweringParty::Host(Some(task)), .. }) = &taken {
            task.abort();
        }
        taken.is_some()
    }

    /// Aborts the answering of all of them.
    pub(crate) fn end(&self) {
        let open = std::mem::take(&mut self.lock().open);
        self.count.fetch_sub(open.len(), Ordering::AcqRel);
        for question in open.into_values() {
            if let AnsweringParty::Host(Some(task)) = question.place {
                task.abort();
            }
        }
    }

    pub(crate) fn oldest(&self) -> Option<RequestId> {
        let table = self.lock();
        table.open.iter().min_by_key(|(_, question)| question.number).map(|(id, _)| id.clone())
    }

    /// Returns the held requests, oldest first.
    pub(crate) fn held(&self) -> Vec<RequestId> {
        let table = self.lock();
        table.held().into_iter().map(|(id, _)| id.clone()).collect()
    }

    /// Returns the oldest held request if no call that may be meant can end: there are as many requests as clients with
    /// such calls, and none of these waits for its client.
    pub(crate) fn deadlocked(&self, calls: &AskingCalls) -> Option<RequestId> {
        let table = self.lock();
        let held = table.held();
        if held.iter().any(|(_, question)| question.since.elapsed() < SETTLE) {
            return None;
        }
        let is_meant = |call: &&AnsweringCall| {
            let mut candidates = held.iter().flat_map(|(_, question)| &question.candidates);
            candidates.any(|(id, _)| *id == call.id)
        };
        let meant: Vec<&AnsweringCall> = calls.in_flight.iter().filter(is_meant).collect();
        let clients: HashSet<CallClient> = meant.iter().map(|call| call.client).collect();
        let can_end = meant.iter().any(|call| call.has_open_request) || held.len() < clients.len();
        held.first().filter(|_| !can_end).map(|(id, _)| (*id).clone())
    }
}

impl QuestionTable {
    /// Returns the held requests, oldest first.
    pub(crate) fn held(&self) -> Vec<(&RequestId, &OpenQuestion)> {
        let held =
            self.open.iter().filter(|(_, question)| matches!(question.place, AnsweringParty::Held));
        let mut held: Vec<_> = held.collect();
        held.sort_by_key(|(_, question)| question.number);
        held
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_protocol::Object;

    const A: CallClient = CallClient::Call(1);
    const B: CallClient = CallClient::Session(2);

    fn in_flight(id: u64, client: CallClient) -> AnsweringCall {
        AnsweringCall { id, client, has_open_request: false }
    }

    fn calls(in_flight: &[AnsweringCall], abandoned: &[(u64, CallClient)]) -> AskingCalls {
        AskingCalls { in_flight: in_flight.to_vec(), abandoned: abandoned.to_vec() }
    }

    fn body() -> Notification {
        Notification { method: "elicitation/create".to_owned(), params: Object::empty() }
    }

    /// Adds a request that came during these calls.
    fn ask(questions: &OpenQuestions, id: u64, calls: &AskingCalls) {
        let in_flight = calls.in_flight.iter().map(|call| (call.id, call.client));
        let candidates = in_flight.chain(calls.abandoned.clone()).collect();
        questions.add(&id.into(), body(), candidates, AnsweringParty::Held);
    }

    fn step(questions: &OpenQuestions, id: u64, calls: &AskingCalls) -> QuestionStep {
        questions.lock().open.get_mut(&id.into()).unwrap().next_step(calls)
    }

    #[tokio::test]
    async fn a_request_goes_to_a_client_only_if_no_other_may_have_caused_it() {
        let questions = OpenQuestions::default();
        let (one, two) = (in_flight(1, A), in_flight(2, B));
        let both = calls(&[one, two], &[]);
        ask(&questions, 1, &both);
        assert_eq!(step(&questions, 1, &both), QuestionStep::Hold);
        // Call 1 is abandoned: the request may still be its.
        let abandoned = calls(&[two], &[(1, A)]);
        assert_eq!(step(&questions, 1, &abandoned), QuestionStep::Hold);
        // Later calls of others are no candidates.
        let third = in_flight(3, CallClient::Call(3));
        assert_eq!(step(&questions, 1, &calls(&[two, third], &[(1, A)])), QuestionStep::Hold);
        // It is answered: call 2 is left.
        assert_eq!(step(&questions, 1, &calls(&[two, third], &[])), QuestionStep::Hand(two));
        assert_eq!(step(&questions, 1, &calls(&[third], &[])), QuestionStep::AskHost);
    }

    #[tokio::test]
    async fn a_request_during_no_call_in_flight_is_the_hosts_or_refused_if_a_call_was_abandoned() {
        let questions = OpenQuestions::default();
        ask(&questions, 1, &calls(&[], &[]));
        assert_eq!(step(&questions, 1, &calls(&[], &[])), QuestionStep::AskHost);
        let abandoned = calls(&[], &[(1, A)]);
        ask(&questions, 2, &abandoned);
        assert_eq!(step(&questions, 2, &abandoned), QuestionStep::Refuse);
        // Of abandoned calls that are not listed, the clients are not known.
        let unknown = calls(&[in_flight(2, B)], &[(0, CallClient::Unknown)]);
        ask(&questions, 3, &unknown);
        assert_eq!(step(&questions, 3, &unknown), QuestionStep::Hold);
    }

    #[tokio::test]
    async fn a_request_that_may_be_a_clients_is_not_put_to_the_handler_of_other_calls() {
        let questions = OpenQuestions::default();
        let (own, theirs) = (in_flight(1, CallClient::Handler), in_flight(2, B));
        let both = calls(&[own, theirs], &[]);
        ask(&questions, 1, &both);
        assert_eq!(step(&questions, 1, &both), QuestionStep::Hold);
        assert_eq!(step(&questions, 1, &calls(&[own], &[])), QuestionStep::AskHost);
    }

    #[tokio::test]
    async fn a_request_moves_between_the_calls_of_one_client() {
        let questions = OpenQuestions::default();
        let (one, two) = (in_flight(1, B), in_flight(2, B));
        ask(&questions, 1, &calls(&[one, two], &[]));
        assert_eq!(step(&questions, 1, &calls(&[two, one], &[])), QuestionStep::Hand(two));
        assert_eq!(step(&questions, 1, &calls(&[one], &[(2, B)])), QuestionStep::Hand(one));
        assert_eq!(step(&questions, 1, &calls(&[], &[(2, B)])), QuestionStep::Refuse);
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_request_is_refused_only_if_no_call_can_end() {
        let questions = OpenQuestions::default();
        let both = calls(&[in_flight(1, A), in_flight(2, B)], &[]);
        ask(&questions, 1, &both);
        tokio::time::advance(SETTLE).await;
        assert_eq!(questions.deadlocked(&both), None, "one of the two may still end");
        ask(&questions, 2, &both);
        assert_eq!(questions.deadlocked(&both), None, "an answer may be on its way");
        tokio::time::advance(SETTLE).await;
        assert_eq!(questions.deadlocked(&both), Some(1.into()));
        let asked = AnsweringCall { has_open_request: true, ..in_flight(1, A) };
        let waiting = calls(&[in_flight(2, B), asked], &[]);
        assert_eq!(questions.deadlocked(&waiting), None, "its client will answer");
        // Nobody is left but a call that may not be meant.
        let abandoned = calls(&[in_flight(2, B)], &[(1, A)]);
        assert_eq!(questions.deadlocked(&abandoned), Some(1.into()));
    }
}
