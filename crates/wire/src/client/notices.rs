//! What a server says to nobody in particular: lists that changed, resources that were updated.

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use crate::message::Notification;

/// A notification that belongs to no call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// For example `notifications/tools/list_changed`.
    Notification(Notification),
    /// So many were lost because the reader was behind by more than
    /// [`Limits::notices`](crate::Limits::notices).
    Lost(u64),
    /// A new session replaced one the server forgot: what was known of it may be out of date.
    Renewed,
    /// The stream on which a legacy server says what belongs to no call was lost and opened again. What the server
    /// said meanwhile is lost: it has no way to repeat it.
    Reopened,
}

/// The notices of one connection, from the time this was made.
#[derive(Debug)]
pub struct Notices {
    pub(crate) received: broadcast::Receiver<Notice>,
    pub(crate) stop: CancellationToken,
}

impl Notices {
    /// The next notice, `None` when the connection is over.
    pub async fn next(&mut self) -> Option<Notice> {
        let notice = tokio::select! {
            biased;
            notice = self.received.recv() => notice,
            () = self.stop.cancelled() => return None,
        };
        match notice {
            Ok(notice) => Some(notice),
            Err(RecvError::Lagged(count)) => Some(Notice::Lost(count)),
            Err(RecvError::Closed) => None,
        }
    }
}
