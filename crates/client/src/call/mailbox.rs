//! Mailboxes of calls: bounded queues of arrivals, in order, with one reader.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use consort_protocol::{JsonRpcMessage, Notification, PendingServerRequest};
use parking_lot::{Mutex, MutexGuard};

use crate::call::owner::CallOwner;
use crate::call::timer::CallTimer;
use crate::error::CloseReason;
use crate::limits::Limits;

/// An arrival for a call.
#[derive(Debug)]
pub(crate) enum MailboxItem {
    /// Its answer, or a notification that belongs to it.
    Message(JsonRpcMessage),
    /// A log message that belongs to this call or to another one of the same identity.
    SharedLog(Notification),
    /// A server's request that the call answers itself.
    Asked(PendingServerRequest),
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
    Closed(CloseReason),
}

/// The mailbox of one call.
#[derive(Debug)]
pub(crate) struct CallMailbox {
    inner: Mutex<Inner>,
    pub(crate) pulse: Arc<CallTimer>,
    pub(crate) owner: CallOwner,
    most: usize,
    most_bytes: usize,
}

#[derive(Debug, Default)]
struct Inner {
    queue: VecDeque<MailboxItem>,
    /// The last arrival, after the queue.
    end: Option<MailboxItem>,
    /// Notifications in the queue, and their bytes.
    waiting: usize,
    bytes: usize,
    answered: bool,
    reader: Option<Waker>,
}

impl MailboxItem {
    /// Returns true if the server answered the request.
    pub(crate) fn is_answer(&self) -> bool {
        match self {
            Self::Message(message) => !matches!(message, JsonRpcMessage::Notification(_)),
            Self::TooLarge | Self::NoRoom | Self::TooDeep => true,
            _ => false,
        }
    }

    /// Returns the notification, if it is one.
    pub(crate) fn notification(&self) -> Option<&Notification> {
        match self {
            Self::Message(JsonRpcMessage::Notification(notification))
            | Self::SharedLog(notification) => Some(notification),
            _ => None,
        }
    }
}

impl CallMailbox {
    pub(crate) fn new(limits: &Limits, pulse: Arc<CallTimer>, owner: CallOwner) -> Self {
        Self {
            inner: Mutex::default(),
            pulse,
            owner,
            most: limits.call_events,
            most_bytes: limits.call_event_bytes,
        }
    }

    /// Adds a notification; beyond the limit, the oldest one is dropped, one that may be another call's first.
    pub(crate) fn put(&self, arrival: MailboxItem) {
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
    pub(crate) fn ask(&self, asked: PendingServerRequest) {
        let mut inner = self.lock();
        inner.queue.push_back(MailboxItem::Asked(asked));
        inner.wake();
    }

    /// Sets the end. Returns false if there was one already.
    pub(crate) fn end(&self, arrival: MailboxItem) -> bool {
        let mut inner = self.lock();
        if std::mem::replace(&mut inner.answered, true) {
            return false;
        }
        inner.end = Some(arrival);
        inner.wake();
        true
    }

    /// The next arrival. One reader at a time.
    pub(crate) async fn next(&self) -> MailboxItem {
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

    /// Returns true if the end was set.
    pub(crate) fn is_answered(&self) -> bool {
        self.lock().answered
    }

    /// The next arrival, if there is one.
    pub(crate) fn try_next(&self) -> Option<MailboxItem> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }
}

impl Inner {
    fn take(&mut self) -> Option<MailboxItem> {
        let Some(arrival) = self.queue.pop_front() else { return self.end.take() };
        if let Some(notification) = arrival.notification() {
            self.waiting -= 1;
            self.bytes -= size(notification);
        }
        Some(arrival)
    }

    fn drop_oldest(&mut self) {
        let shared = self.queue.iter().position(|a| matches!(a, MailboxItem::SharedLog(_)));
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
            Some(MailboxItem::Skipped(count)) => {
                *count += 1;
                self.queue.remove(oldest);
            }
            _ => self.queue[oldest] = MailboxItem::Skipped(1),
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
