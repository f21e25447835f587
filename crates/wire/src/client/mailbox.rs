//! Mailboxes of calls: bounded queues of arrivals, in order, with one reader.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use crate::ask::Asked;
use crate::client::error::Closed;
use crate::client::owner::{CallOwner, Whose};
use crate::client::pulse::Pulse;
use crate::limits::Limits;
use crate::message::{Message, Notification};

/// An arrival for a call.
#[derive(Debug)]
pub(crate) enum Arrival {
    /// Its answer, or a notification that belongs to it.
    Message(Message),
    /// A log message that belongs to this call or to another one of the same identity.
    SharedLog(Notification),
    /// A server's request that the call answers itself.
    Asked(Asked),
    /// This many notifications were dropped here because the reader was too slow.
    Skipped(u64),
    /// Its answer was too large to keep.
    TooLarge,
    /// Its answer got no memory in time.
    NoRoom,
    /// Its answer is nested too deep.
    TooDeep,
    /// The server ended it: a subscription.
    Ended,
    /// The connection is closed.
    Closed(Closed),
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

/// A call in flight that answers the server's requests itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AnsweringCall {
    pub(crate) id: u64,
    /// The client that makes it: its session, or the call itself where there is none.
    pub(crate) client: (bool, u64),
    /// True if it received a request and has not answered yet.
    pub(crate) is_asked: bool,
}

/// The mailbox of one call.
#[derive(Debug)]
pub(crate) struct Mailbox {
    inner: Mutex<Inner>,
    pub(crate) pulse: Arc<Pulse>,
    owner: CallOwner,
    most: usize,
    most_bytes: usize,
}

#[derive(Debug, Default)]
struct Inner {
    queue: VecDeque<Arrival>,
    /// The last arrival, after the queue.
    end: Option<Arrival>,
    /// Notifications in the queue, and their bytes.
    waiting: usize,
    bytes: usize,
    answered: bool,
    reader: Option<Waker>,
}

impl Arrival {
    /// Returns the notification, if it is one.
    fn notification(&self) -> Option<&Notification> {
        match self {
            Self::Message(Message::Notification(notification)) | Self::SharedLog(notification) => {
                Some(notification)
            }
            _ => None,
        }
    }
}

impl Mailbox {
    fn new(limits: &Limits, pulse: Arc<Pulse>, owner: CallOwner) -> Self {
        Self {
            inner: Mutex::default(),
            pulse,
            owner,
            most: limits.call_events,
            most_bytes: limits.call_event_bytes,
        }
    }

    /// Adds a notification; beyond the limit, the oldest one is dropped, one that may be another call's first.
    fn put(&self, arrival: Arrival) {
        let mut inner = self.lock();
        inner.waiting += 1;
        inner.bytes += arrival.notification().map_or(0, size);
        inner.queue.push_back(arrival);
        while inner.waiting > self.most || inner.waiting > 1 && inner.bytes > self.most_bytes {
            inner.drop_oldest();
        }
        inner.wake();
    }

    /// Adds a server's request. Their number has a limit of its own.
    fn ask(&self, asked: Asked) {
        let mut inner = self.lock();
        inner.queue.push_back(Arrival::Asked(asked));
        inner.wake();
    }

    /// Sets the end. Returns false if there was one already.
    fn end(&self, arrival: Arrival) -> bool {
        let mut inner = self.lock();
        if std::mem::replace(&mut inner.answered, true) {
            return false;
        }
        inner.end = Some(arrival);
        inner.wake();
        true
    }

    /// The next arrival. One reader at a time.
    pub(crate) async fn next(&self) -> Arrival {
        poll_fn(|cx| {
            let mut inner = self.lock();
            match inner.take() {
                Some(arrival) => Poll::Ready(arrival),
                None => {
                    inner.reader = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// The next arrival, if there is one.
    pub(crate) fn try_next(&self) -> Option<Arrival> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn take(&mut self) -> Option<Arrival> {
        let Some(arrival) = self.queue.pop_front() else { return self.end.take() };
        if let Some(notification) = arrival.notification() {
            self.waiting -= 1;
            self.bytes -= size(notification);
        }
        Some(arrival)
    }

    fn drop_oldest(&mut self) {
        let shared = self.queue.iter().position(|a| matches!(a, Arrival::SharedLog(_)));
        let any = || self.queue.iter().position(|arrival| arrival.notification().is_some());
        let Some(oldest) = shared.or_else(any) else {
            return;
        };
        if let Some(notification) = self.queue[oldest].notification() {
            self.waiting -= 1;
            self.bytes -= size(notification);
        }
        // The count stands where the first loss was, so the reader sees it in order.
        match oldest.checked_sub(1).map(|before| &mut self.queue[before]) {
            Some(Arrival::Skipped(count)) => {
                *count += 1;
                self.queue.remove(oldest);
            }
            _ => self.queue[oldest] = Arrival::Skipped(1),
        }
    }

    fn wake(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

fn size(notification: &Notification) -> usize {
    notification.method.len() + notification.params.as_bytes().len()
}

/// The calls in flight on a connection, by the id of their request. Progress tokens are the same
/// numbers.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    open: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    boxes: HashMap<u64, Arc<Mailbox>>,
    /// The identities of calls abandoned before their answer. The server may still work on those.
    abandoned: Abandoned,
    closed: Option<Closed>,
}

/// The identities of calls that were abandoned before their answer.
#[derive(Debug, Default, PartialEq, Eq)]
enum Abandoned {
    #[default]
    None,
    Of(Option<Arc<str>>),
    OfSeveral,
}

impl Calls {
    /// Opens a mailbox for a request, unless the connection is closed.
    pub(crate) fn open(
        &self,
        id: u64,
        limits: &Limits,
        pulse: &Arc<Pulse>,
        owner: impl Into<CallOwner>,
    ) -> Result<Arc<Mailbox>, Closed> {
        let mut state = self.lock();
        if let Some(closed) = &state.closed {
            return Err(closed.clone());
        }
        let mailbox = Arc::new(Mailbox::new(limits, Arc::clone(pulse), owner.into()));
        state.boxes.insert(id, Arc::clone(&mailbox));
        Ok(mailbox)
    }

    pub(crate) fn remove(&self, id: u64) {
        self.lock().boxes.remove(&id);
    }

    /// Removes a call that was abandoned before its answer. The server may still work on it.
    pub(crate) fn abandon(&self, id: u64) {
        let mut state = self.lock();
        let Some(mailbox) = state.boxes.remove(&id) else { return };
        if mailbox.owner.whose == Whose::Ours {
            return;
        }
        let identity = &mailbox.owner.identity;
        match &state.abandoned {
            Abandoned::None => state.abandoned = Abandoned::Of(identity.clone()),
            Abandoned::Of(known) if known != identity => state.abandoned = Abandoned::OfSeveral,
            _ => {}
        }
    }

    /// Delivers an arrival to the request `id`. Returns false if no such call waits for it.
    pub(crate) fn deliver(&self, id: u64, arrival: Arrival) -> bool {
        let Some(mailbox) = self.lock().boxes.get(&id).cloned() else {
            return false;
        };
        match arrival {
            arrival if arrival.notification().is_some() => {
                if mailbox.lock().answered {
                    return false;
                }
                mailbox.put(arrival);
                true
            }
            Arrival::Asked(asked) => {
                // Behind the end it is dropped, and so refused.
                let open = !mailbox.lock().answered;
                if open {
                    mailbox.ask(asked);
                }
                open
            }
            end => mailbox.end(end),
        }
    }

    /// Returns the timer of the call whose request is `id`.
    pub(crate) fn pulse(&self, id: u64) -> Option<Arc<Pulse>> {
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
        let no_other = match &state.abandoned {
            Abandoned::None => true,
            Abandoned::Of(known) => known == identity,
            Abandoned::OfSeveral => false,
        };
        if (certain || no_other) && calls.iter().all(|(_, call)| call.owner.identity == *identity) {
            LogRecipients::Calls(calls.into_iter().map(|(id, _)| id).collect())
        } else {
            LogRecipients::SeveralIdentities
        }
    }

    /// Returns the unanswered calls that a request on a shared channel may belong to, of those that answer for
    /// themselves: oldest first, and those with a request already last. A request that names a task belongs to the
    /// call that waits for it.
    pub(crate) fn answering(&self, task: Option<&str>) -> Vec<AnsweringCall> {
        let state = self.lock();
        let open = state.in_flight(|owner| owner.whose == Whose::Answering).into_iter();
        let open: Vec<_> = open.filter(|(_, mailbox)| !mailbox.lock().answered).collect();
        let of_task = |mailbox: &Mailbox| task.is_some() && mailbox.owner.task.as_deref() == task;
        let is_named = open.iter().any(|(_, mailbox)| of_task(mailbox));
        let mut calls: Vec<AnsweringCall> = open
            .into_iter()
            .filter(|(_, mailbox)| !is_named || of_task(mailbox))
            .map(|(id, mailbox)| AnsweringCall {
                id,
                // Numbers of calls and of sessions may be the same.
                client: mailbox.owner.session.map_or((false, id), |session| (true, session)),
                is_asked: mailbox.pulse.is_asked(),
            })
            .collect();
        calls.sort_by_key(|call| call.is_asked);
        calls
    }

    /// Returns true if this call answers requests itself.
    pub(crate) fn answers(&self, id: u64) -> bool {
        self.lock().boxes.get(&id).is_some_and(|mailbox| mailbox.owner.whose == Whose::Answering)
    }

    /// Ends every call and refuses new ones. Returns false if that had happened already.
    pub(crate) fn close(&self, closed: &Closed) -> bool {
        let boxes = {
            let mut state = self.lock();
            if state.closed.is_some() {
                return false;
            }
            state.closed = Some(closed.clone());
            std::mem::take(&mut state.boxes)
        };
        for mailbox in boxes.into_values() {
            mailbox.end(Arrival::Closed(closed.clone()));
        }
        true
    }

    /// Number of requests that wait for their answer.
    #[cfg(test)]
    pub(crate) fn open_calls(&self) -> usize {
        self.lock().boxes.len()
    }

    /// Returns the reason for which the connection ended, if it did.
    pub(crate) fn closed(&self) -> Option<Closed> {
        self.lock().closed.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns the callers' calls in flight that match, oldest first. A call with two requests counts once.
    fn in_flight(&self, fits: impl Fn(&CallOwner) -> bool) -> Vec<(u64, &Mailbox)> {
        let mut calls: Vec<(u64, &Mailbox)> = self
            .boxes
            .iter()
            .filter(|(_, mailbox)| mailbox.owner.whose != Whose::Ours && fits(&mailbox.owner))
            .map(|(id, mailbox)| (*id, &**mailbox))
            .collect();
        calls.sort_unstable_by_key(|(id, _)| *id);
        let mut pulses = std::collections::HashSet::new();
        calls.retain(|(_, mailbox)| pulses.insert(Arc::as_ptr(&mailbox.pulse)));
        calls
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::LogLevel;
    use crate::json::{Json, Object};

    fn progress(n: usize) -> Arrival {
        let params = Json::from(serde_json::json!({ "progress": n })).to_object().unwrap();
        Arrival::Message(Message::Notification(Notification {
            method: "notifications/progress".to_owned(),
            params,
        }))
    }

    fn answer() -> Arrival {
        Arrival::Message(Message::Response { id: 1.into(), result: Object::empty() })
    }

    async fn drain(mailbox: &Mailbox) -> Vec<String> {
        let mut seen = Vec::new();
        loop {
            match mailbox.next().await {
                Arrival::Message(Message::Notification(notification)) => {
                    seen.push(notification.params.get("progress").unwrap().to_string());
                }
                Arrival::Skipped(count) => seen.push(format!("-{count}")),
                _ => return seen,
            }
        }
    }

    #[tokio::test]
    async fn a_reader_who_is_behind_loses_the_oldest_and_is_told() {
        let calls = Calls::default();
        let limits = Limits { call_events: 3, ..Limits::default() };
        let mailbox = calls.open(1, &limits, &Arc::default(), Whose::Caller).unwrap();
        for n in 0..10 {
            assert!(calls.deliver(1, progress(n)));
        }
        assert!(calls.deliver(1, answer()));
        assert_eq!(drain(&mailbox).await, ["-7", "7", "8", "9"]);
    }

    #[tokio::test]
    async fn nothing_is_delivered_behind_the_end() {
        let calls = Calls::default();
        let mailbox = calls.open(1, &Limits::default(), &Arc::default(), Whose::Caller).unwrap();
        assert!(calls.deliver(1, progress(1)));
        assert!(calls.deliver(1, answer()));
        assert!(!calls.deliver(1, progress(2)));
        assert!(!calls.deliver(1, answer()));
        assert!(!calls.deliver(2, answer()));
        assert_eq!(drain(&mailbox).await, ["1"]);
    }

    #[test]
    fn our_own_requests_do_not_hide_whose_call_it_is() {
        let (calls, limits) = (Calls::default(), Limits::default());
        let open = |id, whose| calls.open(id, &limits, &Arc::default(), whose).unwrap();
        open(1, Whose::Ours);
        assert_eq!(calls.only(), None);
        open(2, Whose::Caller);
        assert_eq!(calls.only(), Some(2));
        open(3, Whose::Caller);
        assert_eq!(calls.only(), None);
    }

    fn owner(identity: &str, log: LogLevel) -> CallOwner {
        CallOwner {
            identity: Some(identity.into()),
            log: Some(log),
            ..CallOwner::from(Whose::Caller)
        }
    }

    #[test]
    fn a_log_message_reaches_every_call_of_one_identity_and_none_of_several() {
        let (calls, limits) = (Calls::default(), Limits::default());
        let open = |id, owner| calls.open(id, &limits, &Arc::default(), owner).unwrap();
        let all = || calls.log_recipients(false, |_| true);
        assert_eq!(all(), LogRecipients::Nobody);
        open(1, CallOwner::from(Whose::Ours));
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
        let (calls, limits) = (Calls::default(), Limits::default());
        let open = |id, name| {
            calls.open(id, &limits, &Arc::default(), owner(name, LogLevel::Info)).unwrap()
        };
        open(1, "ada");
        calls.abandon(1);
        open(2, "bob");
        assert_eq!(calls.log_recipients(false, |_| true), LogRecipients::SeveralIdentities);
        calls.remove(2);
        open(3, "ada");
        assert_eq!(calls.log_recipients(false, |_| true), LogRecipients::Calls(vec![3]));
    }

    #[test]
    fn a_call_that_waits_with_two_requests_is_told_once() {
        let (calls, limits, pulse) = (Calls::default(), Limits::default(), Arc::default());
        for id in [1, 2] {
            calls.open(id, &limits, &pulse, owner("ada", LogLevel::Info)).unwrap();
        }
        assert_eq!(calls.log_recipients(false, |_| true), LogRecipients::Calls(vec![1]));
        assert_eq!(calls.only(), Some(1));
    }

    #[tokio::test]
    async fn what_may_be_another_calls_gives_way_first() {
        let calls = Calls::default();
        let limits = Limits { call_events: 3, ..Limits::default() };
        let mailbox = calls.open(1, &limits, &Arc::default(), Whose::Caller).unwrap();
        let log =
            Notification { method: "notifications/message".to_owned(), params: Object::empty() };
        calls.deliver(1, progress(1));
        for _ in 0..5 {
            calls.deliver(1, Arrival::SharedLog(log.clone()));
        }
        calls.deliver(1, progress(2));
        calls.deliver(1, progress(3));
        calls.deliver(1, answer());
        assert_eq!(drain(&mailbox).await, ["1", "-5", "2", "3"]);
    }

    #[test]
    fn a_question_goes_to_a_call_that_waits_for_no_answer_yet() {
        let (calls, limits) = (Calls::default(), Limits::default());
        let open = |id| calls.open(id, &limits, &Arc::default(), Whose::Answering).unwrap();
        let _boxes = [open(1), open(2)];
        let asked = || calls.answering(None).first().map(|call| call.id);
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

    #[tokio::test]
    async fn a_lost_connection_ends_every_call_once() {
        let calls = Calls::default();
        let boxes = [
            calls.open(1, &Limits::default(), &Arc::default(), Whose::Caller).unwrap(),
            calls.open(2, &Limits::default(), &Arc::default(), Whose::Caller).unwrap(),
        ];
        assert!(calls.close(&Closed::Malformed));
        assert!(!calls.close(&Closed::Ours));
        for mailbox in boxes {
            assert!(matches!(mailbox.next().await, Arrival::Closed(Closed::Malformed)));
        }
        assert!(calls.open(3, &Limits::default(), &Arc::default(), Whose::Caller).is_err());
    }
}
