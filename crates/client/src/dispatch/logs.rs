//! Log messages on a channel that all calls share, delivered to the calls they may belong to.

use std::sync::atomic::Ordering;

use consort_protocol::{JsonRpcMessage, LogLevel, Notification, OperatorText, SERVER_OUTPUT};

use crate::call::in_flight::LogRecipients;
use crate::call::mailbox::MailboxItem;
use crate::call::owner::CallOwner;
use crate::connection::SharedConnection;
use crate::notices::ConnectionNotice;

/// The member of `_meta` that identifies the task of 2025-11-25 of a message.
const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// Returns the task of 2025-11-25 that a message names, if any.
pub(crate) fn related_task(message: &Notification) -> Option<String> {
    message.meta(RELATED_TASK)?.to_object()?.text("taskId")
}

impl SharedConnection {
    /// Delivers a log message from a channel that all calls share. It names no call: it belongs to a call
    /// that requested its level, or waits for its task. All such calls of one identity receive it, but text
    /// of one identity never reaches another.
    pub(crate) fn sort_log(&self, notification: Notification) -> bool {
        let level = notification.params.text("level").and_then(|level| LogLevel::parse(&level));
        let task = related_task(&notification);
        let modern = self.dialect().is_modern();
        let recipients =
            self.calls.log_recipients(task.is_some(), |owner: &CallOwner| match &task {
                Some(task) => owner.task.is(task),
                None if modern => {
                    owner.log.is_some_and(|log| level.is_none_or(|level| level >= log))
                }
                None => true,
            });
        match recipients {
            LogRecipients::Calls(calls) if calls.len() == 1 => {
                let message = JsonRpcMessage::Notification(notification);
                return self.calls.deliver(calls[0], MailboxItem::Message(message));
            }
            LogRecipients::Calls(calls) => {
                let deliver =
                    |call| self.calls.deliver(call, MailboxItem::SharedLog(notification.clone()));
                return calls.into_iter().filter(|call| deliver(*call)).count() > 0;
            }
            LogRecipients::SeveralIdentities => self.log_for_operator(&notification),
            LogRecipients::Nobody => {}
        }
        self.notices.send(ConnectionNotice::Notification(notification));
        true
    }

    /// Writes a log message to the operator's log, because it may contain data of any of several callers.
    fn log_for_operator(&self, notification: &Notification) {
        let server = self.settings.label.as_str();
        if !self.unassigned_logs.swap(true, Ordering::Relaxed) {
            tracing::info!(
                server,
                "log messages of this server may belong to calls of several callers and are sent to none of \
                 them; `--log-server-output` writes them to this log"
            );
        }
        let level = notification.params.text("level").unwrap_or_default();
        let data = notification.params.get("data").map(|data| data.to_string());
        let text = OperatorText::from(data.unwrap_or_default()).excerpt_for_operator();
        tracing::debug!(target: SERVER_OUTPUT, server, server_level = %level.escape_debug(), text, "log message");
    }
}
