//! Notifications that belong to no call: changed lists, updated resources.

pub(crate) mod changes;

use std::sync::{Arc, OnceLock};

use consort_protocol::Notification;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use crate::notices::changes::{ChangeCounters, ListChanges};

/// A notification that belongs to no call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionNotice {
    /// For example `notifications/tools/list_changed`.
    Notification(Notification),
    /// This many were lost because the reader was behind by more than
    /// [`Limits::notices`](crate::Limits::notices).
    Lost(u64),
    /// A new session replaced one that the server lost: earlier state may be out of date.
    Renewed,
    /// The common stream of a legacy server was lost and opened again. Messages sent meanwhile are lost: the
    /// server cannot repeat them.
    Reopened,
}

/// Sends the notices of one connection to whoever reads them.
///
/// The places of a broadcast channel are allocated when it is made. So it is made for the first reader: a gateway has
/// a connection for each identity and legacy server, and hardly any of them is read. Who follows the lists alone needs
/// no channel.
#[derive(Debug)]
pub(crate) struct NoticeSender {
    capacity: usize,
    list_changes: Arc<ChangeCounters>,
    channel: OnceLock<broadcast::Sender<ConnectionNotice>>,
}

impl NoticeSender {
    /// Keeps so many notices for a reader that is behind.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, list_changes: Arc::default(), channel: OnceLock::new() }
    }

    /// Sends a notice to all readers there are.
    pub(crate) fn send(&self, notice: ConnectionNotice) {
        self.list_changes.count(&notice);
        if let Some(channel) = self.channel.get() {
            // Without a reader it is lost, as it should be.
            let _ = channel.send(notice);
        }
    }

    /// Returns a follower of list changes from now on.
    pub(crate) fn list_changes(&self, stop: CancellationToken) -> ListChanges {
        ListChanges::new(Arc::clone(&self.list_changes), stop)
    }

    /// Returns a receiver of the notifications from now on.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<ConnectionNotice> {
        self.channel.get_or_init(|| broadcast::Sender::new(self.capacity)).subscribe()
    }
}

/// Receiver of the notifications of one connection, from its creation on.
#[derive(Debug)]
pub struct NoticeReceiver {
    pub(crate) received: broadcast::Receiver<ConnectionNotice>,
    pub(crate) stop: CancellationToken,
}

impl NoticeReceiver {
    /// Returns the next notification, `None` when the connection is over.
    pub async fn next(&mut self) -> Option<ConnectionNotice> {
        let notice = tokio::select! {
            biased;
            notice = self.received.recv() => notice,
            () = self.stop.cancelled() => return None,
        };
        match notice {
            Ok(notice) => Some(notice),
            Err(RecvError::Lagged(count)) => Some(ConnectionNotice::Lost(count)),
            Err(RecvError::Closed) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn memory_for_notices_is_allocated_for_the_first_reader_only() {
        let sender = NoticeSender::new(2);
        sender.send(ConnectionNotice::Renewed);
        let _lists = sender.list_changes(CancellationToken::new());
        assert!(sender.channel.get().is_none(), "nobody reads more than the lists");
        let (mut first, stop) = (sender.subscribe(), CancellationToken::new());
        sender.send(ConnectionNotice::Reopened);
        let mut second = NoticeReceiver { received: sender.subscribe(), stop: stop.clone() };
        for _ in 0..3 {
            sender.send(ConnectionNotice::Renewed);
        }
        assert_eq!(first.recv().await, Err(RecvError::Lagged(2)), "from the first on");
        assert_eq!(second.next().await, Some(ConnectionNotice::Lost(1)));
        assert_eq!(second.next().await, Some(ConnectionNotice::Renewed));
    }
}
