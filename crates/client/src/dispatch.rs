//! The dispatch of a server's messages to calls, questions and notices.

mod logs;
mod partial_envelope;
mod questions;

use std::sync::Arc;

use bytes::Bytes;
use consort_protocol::json::JsonErrorKind;
use consort_protocol::{
    Json, JsonRpcMessage, MemoryBudget, MemoryHolder, MemoryReservation, MessageError,
    Notification, Object, RequestId, ServerError,
};
use tokio_util::sync::CancellationToken;

use crate::call::mailbox::MailboxItem;
use crate::connection::{MessageOrigin, SharedConnection};
use crate::dispatch::partial_envelope::answered_ids;
use crate::error::CloseReason;
use crate::limits::{Limits, Times};
use crate::notices::ConnectionNotice;
use crate::server_log::ServerLogSink;
use crate::transport::ChannelReceiver;

/// The member of `_meta` that identifies the subscription of a notification.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

impl ChannelReceiver for SharedConnection {
    fn label(&self) -> &str {
        &self.settings.label
    }

    fn log(&self) -> Option<&Arc<dyn ServerLogSink>> {
        self.settings.log.as_ref()
    }

    fn limits(&self) -> &Limits {
        &self.settings.limits
    }

    fn times(&self) -> &Times {
        &self.settings.times
    }

    fn budget(&self) -> &MemoryBudget {
        &self.settings.budget
    }

    fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    fn holder(&self) -> MemoryHolder {
        self.calls.holder(|| None)
    }

    fn receive_shared(
        self: &Arc<Self>,
        bytes: Bytes,
        room: &mut MemoryReservation,
    ) -> Result<(), CloseReason> {
        if MemoryReservation::is_charged(bytes.len()) {
            room.assign(&self.calls.holder(|| answered_ids(&bytes).first().copied()));
        }
        self.receive(&room.attach(bytes), MessageOrigin::Pipe)
    }

    fn oversized(&self, id: Option<u64>) -> Result<(), CloseReason> {
        self.counts.oversized();
        match id {
            Some(id) if self.calls.deliver(id, MailboxItem::TooLarge) => Ok(()),
            _ => Err(CloseReason::Oversized),
        }
    }

    fn no_room(&self, id: Option<u64>) {
        self.counts.oversized();
        let delivered = id.is_some_and(|id| self.calls.deliver(id, MailboxItem::NoRoom));
        tracing::debug!(delivered, "a large message was skipped: the memory limit is reached");
    }

    fn close(&self, closed: &CloseReason) {
        SharedConnection::close(self, closed);
    }
}

impl SharedConnection {
    /// Dispatches a message. An error ends the connection.
    pub(crate) fn receive(
        self: &Arc<Self>,
        bytes: &Bytes,
        origin: MessageOrigin,
    ) -> Result<(), CloseReason> {
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        if self.dialect().revision.has_batches() {
            return match JsonRpcMessage::batch_items(bytes.clone()) {
                Ok(items) => items.into_iter().try_for_each(|item| self.receive_one(&item, origin)),
                Err(error) => self.malformed(&error, bytes, origin),
            };
        }
        self.receive_one(bytes, origin)
    }

    /// Parses the body of a response as the answer to the request `id`, the usual case. `None` if it is something else,
    /// or if the server has sent requests that may now belong to another call.
    pub(crate) fn parse_answer(
        &self,
        bytes: &Bytes,
        id: u64,
    ) -> Option<Result<Object, ServerError>> {
        if self.questions.len() > 0 {
            return None;
        }
        let (answered, answer) = match JsonRpcMessage::parse(bytes.clone()).ok()? {
            JsonRpcMessage::Response { id, result } => (id, Ok(result)),
            JsonRpcMessage::Error { id: Some(id), error } => (id, Err(error)),
            _ => return None,
        };
        (answered.number() == Some(id)).then_some(answer)
    }

    fn receive_one(
        self: &Arc<Self>,
        bytes: &Bytes,
        origin: MessageOrigin,
    ) -> Result<(), CloseReason> {
        match JsonRpcMessage::parse(bytes.clone()) {
            Ok(message) => {
                self.sort(message, origin);
                Ok(())
            }
            Err(error) => self.malformed(&error, bytes, origin),
        }
    }

    /// Ignores an unreadable message. If it is only nested too deep, the calls that it answers end, as nothing else
    /// will answer them. An error ends the connection.
    fn malformed(
        &self,
        error: &MessageError,
        bytes: &[u8],
        origin: MessageOrigin,
    ) -> Result<(), CloseReason> {
        tracing::debug!(%error, "a malformed message was ignored");
        if matches!(error, MessageError::Json(json) if json.problem() == JsonErrorKind::Depth) {
            let ids = answered_ids(bytes).into_iter();
            for id in
                ids.filter(|id| origin == MessageOrigin::Pipe || origin == MessageOrigin::Call(*id))
            {
                self.calls.deliver(id, MailboxItem::TooDeep);
            }
        }
        if self.counts.malformed(self.settings.limits.malformed_messages) {
            return Err(CloseReason::Malformed);
        }
        Ok(())
    }

    fn sort(self: &Arc<Self>, message: JsonRpcMessage, origin: MessageOrigin) {
        let delivered = match message {
            JsonRpcMessage::Response { ref id, .. }
            | JsonRpcMessage::Error { id: Some(ref id), .. } => {
                // On a call's own stream, nobody else is answered.
                let id = id.number().filter(|id| {
                    origin == MessageOrigin::Pipe || origin == MessageOrigin::Call(*id)
                });
                id.is_some_and(|id| {
                    let delivered = self.calls.deliver(id, MailboxItem::Message(message));
                    self.call_ended(id);
                    delivered
                })
            }
            JsonRpcMessage::Error { id: None, error } => {
                tracing::debug!(%error, "an error response without a request");
                false
            }
            JsonRpcMessage::Notification(notification) => {
                self.sort_notification(notification, origin)
            }
            JsonRpcMessage::Request { id, body } => {
                self.ask(&id, body, origin);
                true
            }
        };
        if !delivered {
            self.counts.stray();
        }
    }

    fn sort_notification(
        self: &Arc<Self>,
        notification: Notification,
        origin: MessageOrigin,
    ) -> bool {
        let number = |json: Option<Json>| {
            json.and_then(|json| json.integer()).and_then(|id| u64::try_from(id).ok())
        };
        let call = match notification.method.as_str() {
            "notifications/cancelled" => return self.cancelled(&notification),
            "notifications/progress" => match number(notification.params.get("progressToken")) {
                Some(call) => Some(call),
                None => return false,
            },
            "notifications/message" => match origin {
                MessageOrigin::Call(id) => Some(id),
                MessageOrigin::Pipe => return self.sort_log(notification),
            },
            // A modern stream carries nothing that is not about its request; a legacy one may.
            _ => match (number(notification.meta(SUBSCRIPTION)), origin) {
                (None, MessageOrigin::Call(id)) if self.dialect().is_modern() => Some(id),
                (subscription, _) => subscription,
            },
        };
        match call {
            Some(call) => self
                .calls
                .deliver(call, MailboxItem::Message(JsonRpcMessage::Notification(notification))),
            None => {
                // No reader is no loss: nobody asked.
                self.notices.send(ConnectionNotice::Notification(notification));
                true
            }
        }
    }

    /// Handles the cancellation of a server's request, or the end of a subscription.
    fn cancelled(&self, notification: &Notification) -> bool {
        let Some(request) = notification.params.get("requestId") else {
            return false;
        };
        let id = RequestId::from_json(request.clone());
        if id.is_some_and(|id| self.questions.withdraw(&id)) {
            return true;
        }
        let id = request.integer().and_then(|id| u64::try_from(id).ok());
        id.is_some_and(|id| self.calls.deliver(id, MailboxItem::Ended))
    }
}
