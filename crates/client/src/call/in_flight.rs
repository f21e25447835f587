//! The calls in flight on a connection, by the id of their request.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use consort_protocol::MemoryHolder;
use parking_lot::{Mutex, MutexGuard};

use crate::call::abandoned::AbandonedCalls;
use crate::call::id_hashing::RequestIdMap;
use crate::call::mailbox::{CallMailbox, MailboxItem};
use crate::call::owner::{CallClient, CallOwner, CallTask, RequestOwner};
use crate::call::timer::CallTimer;
use crate::error::CloseReason;
use crate::limits::Limits;

/// The calls in flight on a connection, by the id of their request. Progress tokens are the same
/// numbers.
#[derive(Debug, Default)]
pub(crate) struct InFlightCalls {
    open: Mutex<InFlightState>,
}

#[derive(Debug, Default)]
struct InFlightState {
    boxes: RequestIdMap<Arc<CallMailbox>>,
    /// Calls abandoned before their answer. The server may still work on those.
    abandoned: AbandonedCalls,
    closed: Option<CloseReason>,
}

impl InFlightCalls {
    /// Opens a mailbox for a request, unless the connection is closed.
    pub(crate) fn open(
        &self,
        id: u64,
        limits: &Limits,
        pulse: &Arc<CallTimer>,
        owner: impl Into<CallOwner>,
    ) -> Result<Arc<CallMailbox>, CloseReason> {
        let mut state = self.lock();
        if let Some(closed) = &state.closed {
            return Err(closed.clone());
        }
        let mailbox = Arc::new(CallMailbox::new(limits, Arc::clone(pulse), owner.into()));
        state.boxes.insert(id, Arc::clone(&mailbox));
        Ok(mailbox)
    }

    pub(crate) fn remove(&self, id: u64) {
        self.lock().boxes.remove(&id);
    }

    /// Removes a call that was abandoned before its answer. The server may still work on it, and send requests for as
    /// long as `lasts`.
    pub(crate) fn abandon(&self, id: u64, lasts: Duration) {
        let mut state = self.lock();
        let Some(mailbox) = state.boxes.remove(&id) else { return };
        if mailbox.owner.owner != RequestOwner::Ours {
            state.abandoned.add(id, &mailbox.owner, lasts);
        }
    }

    /// Delivers an arrival to the request `id`. Returns false if no such call waits for it.
    pub(crate) fn deliver(&self, id: u64, arrival: MailboxItem) -> bool {
        let mailbox = {
            let mut state = self.lock();
            let Some(mailbox) = state.boxes.get(&id).cloned() else {
                if arrival.is_answer() {
                    state.abandoned.answered(id);
                }
                return false;
            };
            mailbox
        };
        match arrival {
            arrival if arrival.notification().is_some() => {
                if mailbox.is_answered() {
                    return false;
                }
                mailbox.put(arrival);
                true
            }
            MailboxItem::Asked(asked) => {
                // Behind the end it is dropped, and so refused.
                let open = !mailbox.is_answered();
                if open {
                    mailbox.ask(asked);
                }
                open
            }
            end => mailbox.end(end),
        }
    }

    /// Returns the timer of the call whose request is `id`.
    pub(crate) fn pulse(&self, id: u64) -> Option<Arc<CallTimer>> {
        self.lock().boxes.get(&id).map(|mailbox| Arc::clone(&mailbox.pulse))
    }

    /// Returns the caller's call in flight, if there is exactly one.
    pub(crate) fn only(&self) -> Option<u64> {
        let state = self.lock();
        let calls = state.in_flight(|_| true);
        let [only] = calls.as_slice() else { return None };
        Some(only.0)
    }

    /// Returns the calls that a log message on a shared channel may belong to, of those that match. Unless the
    /// match is certain, it may also belong to an abandoned call.
    pub(crate) fn log_recipients(
        &self,
        certain: bool,
        fits: impl Fn(&CallOwner) -> bool,
    ) -> LogRecipients {
        let state = self.lock();
        let calls = state.in_flight(fits);
        let Some((_, first)) = calls.first() else { return LogRecipients::Nobody };
        let identity = &first.owner.identity;
        let no_other = state.abandoned.are_of(identity.as_ref());
        if (certain || no_other) && calls.iter().all(|(_, call)| call.owner.identity == *identity) {
            LogRecipients::Calls(calls.into_iter().map(|(id, _)| id).collect())
        } else {
            LogRecipients::SeveralIdentities
        }
    }

    /// Returns the calls that a request on a shared channel may belong to.
    pub(crate) fn asking(&self) -> AskingCalls {
        let state = self.lock();
        let in_flight = AnsweringCall::sorted(state.unanswered());
        AskingCalls { in_flight, abandoned: state.abandoned.unanswered() }
    }

    /// Returns the calls that a request about a task may belong to: the call that waits for it, else those that the
    /// server may have made a task of.
    pub(crate) fn asking_about(&self, task: &str) -> AskingCalls {
        let state = self.lock();
        let open = state.unanswered();
        let is_named = open.iter().any(|(_, mailbox)| mailbox.owner.task.is(task));
        let is_meant = |mailbox: &CallMailbox| match &mailbox.owner.task {
            CallTask::Named(_) => mailbox.owner.task.is(task),
            CallTask::Unnamed => !is_named,
            CallTask::None => false,
        };
        let open = open.into_iter().filter(|(_, mailbox)| is_meant(mailbox)).collect();
        let abandoned = if is_named { Vec::new() } else { state.abandoned.unanswered() };
        AskingCalls { in_flight: AnsweringCall::sorted(open), abandoned }
    }

    /// Returns the time for which every call in flight has waited for its client's answer to a request. `None` if there
    /// is no call, or one that the server works on.
    pub(crate) fn waiting_for_answers(&self) -> Option<Duration> {
        let state = self.lock();
        let waits = state.in_flight(|_| true).into_iter().map(|(_, mailbox)| {
            if mailbox.is_answered() { None } else { mailbox.pulse.awaiting_client_for() }
        });
        waits.reduce(|one, other| Some(one?.min(other?))).flatten()
    }

    /// Returns the party that a large message on a shared channel is charged to: that of all calls in flight, or of the
    /// call that it answers.
    pub(crate) fn holder(&self, answered: impl FnOnce() -> Option<u64>) -> MemoryHolder {
        let only = {
            let state = self.lock();
            let mut holders = state.boxes.values().map(|mailbox| mailbox.owner.holder());
            let first = holders.next();
            first.filter(|first| holders.all(|holder| holder == *first))
        };
        only.unwrap_or_else(|| {
            let id = answered();
            let state = self.lock();
            let mailbox = id.and_then(|id| state.boxes.get(&id));
            mailbox.map(|mailbox| mailbox.owner.holder()).unwrap_or_default()
        })
    }

    /// Returns true if this call answers requests itself.
    pub(crate) fn answers(&self, id: u64) -> bool {
        self.lock()
            .boxes
            .get(&id)
            .is_some_and(|mailbox| mailbox.owner.owner == RequestOwner::Answering)
    }

    /// Ends every call and refuses new ones. Returns false if that had happened already.
    pub(crate) fn close(&self, closed: &CloseReason) -> bool {
        let boxes = {
            let mut state = self.lock();
            if state.closed.is_some() {
                return false;
            }
            state.closed = Some(closed.clone());
            std::mem::take(&mut state.boxes)
        };
        for mailbox in boxes.into_values() {
            mailbox.end(MailboxItem::Closed(closed.clone()));
        }
        true
    }

    /// Number of requests that wait for their answer.
    #[cfg(test)]
    pub(crate) fn open_calls(&self) -> usize {
        self.lock().boxes.len()
    }

    /// Returns the reason for which the connection ended, if it did.
    pub(crate) fn closed(&self) -> Option<CloseReason> {
        self.lock().closed.clone()
    }

    fn lock(&self) -> MutexGuard<'_, InFlightState> {
        self.open.lock()
    }
}

impl InFlightState {
    /// Returns the callers' unanswered calls in flight, oldest first.
    fn unanswered(&self) -> Vec<(u64, &CallMailbox)> {
        let mut calls = self.in_flight(|_| true);
        calls.retain(|(_, mailbox)| !mailbox.is_answered());
        calls
    }

    /// Returns the callers' calls in flight that match, oldest first. A call with two requests counts once.
    fn in_flight(&self, fits: impl Fn(&CallOwner) -> bool) -> Vec<(u64, &CallMailbox)> {
        let mut calls: Vec<(u64, &CallMailbox)> = self
            .boxes
            .iter()
            .filter(|(_, mailbox)| {
                mailbox.owner.owner != RequestOwner::Ours && fits(&mailbox.owner)
            })
            .map(|(id, mailbox)| (*id, &**mailbox))
            .collect();
        calls.sort_unstable_by_key(|(id, _)| *id);
        let mut pulses = HashSet::new();
        calls.retain(|(_, mailbox)| pulses.insert(Arc::as_ptr(&mailbox.pulse)));
        calls
    }
}

/// The calls that a log message on a shared channel may belong to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LogRecipients {
    /// No call in flight.
    Nobody,
    /// One of these, all of the same identity.
    Calls(Vec<u64>),
    /// Calls of several identities, in flight or abandoned before their answer.
    SeveralIdentities,
}

/// A call in flight that a request of the server may belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AnsweringCall {
    pub(crate) id: u64,
    pub(crate) client: CallClient,
    /// True if it received a request and has not answered yet.
    pub(crate) has_open_request: bool,
}

/// The calls that a request of the server on a shared channel may belong to.
#[derive(Clone, Debug, Default)]
pub(crate) struct AskingCalls {
    /// Those in flight: oldest first, and those with a request already last.
    pub(crate) in_flight: Vec<AnsweringCall>,
    /// Those abandoned before their answer, with their clients.
    pub(crate) abandoned: Vec<(u64, CallClient)>,
}

impl AnsweringCall {
    /// Describes calls, oldest first, so that those with a request already come last.
    fn sorted(calls: Vec<(u64, &CallMailbox)>) -> Vec<Self> {
        let described = |(id, mailbox): (u64, &CallMailbox)| Self {
            id,
            client: mailbox.owner.client(id),
            has_open_request: mailbox.pulse.is_awaiting_client(),
        };
        let mut calls: Vec<Self> = calls.into_iter().map(described).collect();
        calls.sort_by_key(|call| call.has_open_request);
        calls
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_protocol::{Json, JsonRpcMessage, LogLevel, Notification, Object};

    fn progress(n: usize) -> MailboxItem {
        let params = Json::from(serde_json::json!({ "progress": n })).to_object().unwrap();
        MailboxItem::Message(JsonRpcMessage::Notification(Notification {
            method: "notifications/progress".to_owned(),
            params,
        }))
    }

    fn answer() -> MailboxItem {
        MailboxItem::Message(JsonRpcMessage::Response { id: 1.into(), result: Object::empty() })
    }

    async fn drain(mailbox: &CallMailbox) -> Vec<String> {
        let mut seen = Vec::new();
        loop {
            match mailbox.next().await {
                MailboxItem::Message(JsonRpcMessage::Notification(notification)) => {
                    seen.push(notification.params.get("progress").unwrap().to_string());
                }
                MailboxItem::Skipped(count) => seen.push(format!("-{count}")),
                _ => return seen,
            }
        }
    }

    #[tokio::test]
    async fn a_reader_who_is_behind_loses_the_oldest_and_is_told() {
        let calls = InFlightCalls::default();
        let limits = Limits { call_events: 3, ..Limits::default() };
        let mailbox = calls.open(1, &limits, &Arc::default(), RequestOwner::Caller).unwrap();
        for n in 0..10 {
            assert!(calls.deliver(1, progress(n)));
        }
        assert!(calls.deliver(1, answer()));
        assert_eq!(drain(&mailbox).await, ["-7", "7", "8", "9"]);
    }

    #[tokio::test]
    async fn nothing_is_delivered_behind_the_end() {
        let calls = InFlightCalls::default();
        let mailbox =
            calls.open(1, &Limits::default(), &Arc::default(), RequestOwner::Caller).unwrap();
        assert!(calls.deliver(1, progress(1)));
        assert!(calls.deliver(1, answer()));
        assert!(!calls.deliver(1, progress(2)));
        assert!(!calls.deliver(1, answer()));
        assert!(!calls.deliver(2, answer()));
        assert_eq!(drain(&mailbox).await, ["1"]);
    }

    #[test]
    fn our_own_requests_do_not_hide_whose_call_it_is() {
        let (calls, limits) = (InFlightCalls::default(), Limits::default());
        let open = |id, whose| calls.open(id, &limits, &Arc::default(), whose).unwrap();
        open(1, RequestOwner::Ours);
        assert_eq!(calls.only(), None);
        open(2, RequestOwner::Caller);
        assert_eq!(calls.only(), Some(2));
        open(3, RequestOwner::Caller);
        assert_eq!(calls.only(), None);
    }

    fn owner(identity: &str, log: LogLevel) -> CallOwner {
        CallOwner {
            identity: Some(identity.into()),
            log: Some(log),
            ..CallOwner::from(RequestOwner::Caller)
        }
    }

    #[test]
    fn a_log_message_reaches_every_call_of_one_identity_and_none_of_several() {
        let (calls, limits) = (InFlightCalls::default(), Limits::default());
        let open = |id, owner| calls.open(id, &limits, &Arc::default(), owner).unwrap();
        let all = || calls.log_recipients(false, |_| true);
        assert_eq!(all(), LogRecipients::Nobody);
        open(1, CallOwner::from(RequestOwner::Ours));
        open(2, owner("ada", LogLevel::Info));
        open(3, owner("ada", LogLevel::Error));
        assert_eq!(all(), LogRecipients::Calls(vec![2, 3]));
        open(4, owner("bob", LogLevel::Error));
        assert_eq!(all(), LogRecipients::SeveralIdentities);
        let info = calls.log_recipients(false, |owner| owner.log <= Some(LogLevel::Info));
        assert_eq!(info, LogRecipients::Calls(vec![2]));
        calls.remove(4);
        assert_eq!(all(), LogRecipients::Calls(vec![2, 3]));
    }

    #[test]
    fn a_log_message_of_a_call_that_was_given_up_reaches_nobody_else() {
        let (calls, limits) = (InFlightCalls::default(), Limits::default());
        let open = |id, name| {
            calls.open(id, &limits, &Arc::default(), owner(name, LogLevel::Info)).unwrap()
        };
        open(1, "ada");
        calls.abandon(1, Duration::from_mins(5));
        open(2, "bob");
        assert_eq!(calls.log_recipients(false, |_| true), LogRecipients::SeveralIdentities);
        calls.remove(2);
        open(3, "ada");
        assert_eq!(calls.log_recipients(false, |_| true), LogRecipients::Calls(vec![3]));
    }

    #[test]
    fn a_call_that_waits_with_two_requests_is_told_once() {
        let (calls, limits, pulse) = (InFlightCalls::default(), Limits::default(), Arc::default());
        for id in [1, 2] {
            calls.open(id, &limits, &pulse, owner("ada", LogLevel::Info)).unwrap();
        }
        assert_eq!(calls.log_recipients(false, |_| true), LogRecipients::Calls(vec![1]));
        assert_eq!(calls.only(), Some(1));
    }

    #[tokio::test]
    async fn what_may_be_another_calls_gives_way_first() {
        let calls = InFlightCalls::default();
        let limits = Limits { call_events: 3, ..Limits::default() };
        let mailbox = calls.open(1, &limits, &Arc::default(), RequestOwner::Caller).unwrap();
        let log =
            Notification { method: "notifications/message".to_owned(), params: Object::empty() };
        calls.deliver(1, progress(1));
        for _ in 0..5 {
            calls.deliver(1, MailboxItem::SharedLog(log.clone()));
        }
        calls.deliver(1, progress(2));
        calls.deliver(1, progress(3));
        calls.deliver(1, answer());
        assert_eq!(drain(&mailbox).await, ["1", "-5", "2", "3"]);
    }

    #[test]
    fn a_question_goes_to_a_call_that_waits_for_no_answer_yet() {
        let (calls, limits) = (InFlightCalls::default(), Limits::default());
        let open = |id| calls.open(id, &limits, &Arc::default(), RequestOwner::Answering).unwrap();
        let _boxes = [open(1), open(2)];
        let asked = || calls.asking().in_flight.first().map(|call| call.id);
        assert_eq!(asked(), Some(1));
        let first = calls.pulse(1).unwrap().wait_for_us();
        assert_eq!(asked(), Some(2));
        let _second = calls.pulse(2).unwrap().wait_for_us();
        assert_eq!(asked(), Some(1));
        drop(first);
        assert_eq!(asked(), Some(1));
        assert!(calls.deliver(1, answer()));
        assert_eq!(asked(), Some(2));
    }

    #[test]
    fn a_question_about_a_task_goes_to_the_call_of_that_task_alone() {
        let (calls, limits) = (InFlightCalls::default(), Limits::default());
        let open = |id, task| {
            let owner = CallOwner { task, ..RequestOwner::Answering.into() };
            calls.open(id, &limits, &Arc::default(), owner).unwrap()
        };
        let asked = |task| calls.asking_about(task).in_flight.iter().map(|call| call.id).collect();
        let _boxes = [open(1, CallTask::None), open(2, CallTask::Named("a".into()))];
        assert_eq!(asked("a"), vec![2]);
        assert_eq!(asked("b"), Vec::<u64>::new(), "the task of no call here");
        open(3, CallTask::Unnamed);
        assert_eq!((asked("a"), asked("b")), (vec![2], vec![3]));
        calls.abandon(3, Duration::from_mins(5));
        assert_eq!(calls.asking_about("b").abandoned, [(3, CallClient::Call(3))]);
        assert!(calls.asking_about("a").abandoned.is_empty());
    }

    #[tokio::test]
    async fn a_lost_connection_ends_every_call_once() {
        let calls = InFlightCalls::default();
        let boxes = [
            calls.open(1, &Limits::default(), &Arc::default(), RequestOwner::Caller).unwrap(),
            calls.open(2, &Limits::default(), &Arc::default(), RequestOwner::Caller).unwrap(),
        ];
        assert!(calls.close(&CloseReason::Malformed));
        assert!(!calls.close(&CloseReason::Ours));
        for mailbox in boxes {
            assert!(matches!(mailbox.next().await, MailboxItem::Closed(CloseReason::Malformed)));
        }
        assert!(calls.open(3, &Limits::default(), &Arc::default(), RequestOwner::Caller).is_err());
    }
}
