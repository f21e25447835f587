//! Events and errors of a server's client, as those of a call.

use consort_client::{ClientCallError, PendingCallEvent};
use consort_core::{CallError, CallEvent, ServerId, attributed, attributed_error};

use crate::managed::chain;

pub(super) fn translated(server: &ServerId, event: PendingCallEvent) -> CallEvent {
    match event {
        PendingCallEvent::Progress(progress) => CallEvent::Progress(progress),
        PendingCallEvent::Log(params) => CallEvent::Log(params),
        PendingCallEvent::Question(mut asked) => {
            asked.params = attributed(server, &asked.method, asked.params);
            CallEvent::Question(asked)
        }
        PendingCallEvent::Task(task) => CallEvent::Task(task),
        PendingCallEvent::Notification(body) => {
            CallEvent::Notification { method: body.method, params: body.params }
        }
        PendingCallEvent::Skipped(count) => CallEvent::Skipped(count),
        _ => unreachable!("an end is handled where it arrives"),
    }
}

/// Converts a transport error to the error of a call.
pub(crate) fn explained(server: &ServerId, error: ClientCallError) -> CallError {
    let server = server.clone();
    match error {
        ClientCallError::Refused(error) => CallError::Execution {
            raw: attributed_error(&server, error.raw),
            server,
            message: error.message,
            code: error.code,
        },
        ClientCallError::TimedOut { kind, limit, sent } => CallError::Timeout {
            server,
            limit,
            idle: kind == consort_client::TimeLimitKind::Idle,
            sent,
        },
        ClientCallError::Cancelled { sent } => CallError::Cancelled { sent },
        ClientCallError::NotSent(
            reason @ (consort_client::NotSent::Queue { .. } | consort_client::NotSent::Busy { .. }),
        ) => CallError::Overloaded { server, reason: reason.to_string() },
        error @ (ClientCallError::NotSent(_) | ClientCallError::Unauthorized { .. }) => {
            let detail = error.detail();
            CallError::Connection { server, source: consort_core::SharedError::new(error), detail }
        }
        error @ ClientCallError::NoRoom { .. } => {
            let detail = error.detail();
            CallError::OutcomeUnknown { server, reason: error.to_string(), detail }
        }
        ClientCallError::Unknown(closed) => CallError::OutcomeUnknown {
            server,
            reason: closed.to_string(),
            detail: closed.detail(),
        },
        ClientCallError::Status { status, retry_after, .. }
            if status == 429 || status == 503 && retry_after.is_some() =>
        {
            CallError::Busy { server, status, retry_after }
        }
        ClientCallError::Status { status: 408 | 500.., .. } => {
            let detail = error.detail();
            CallError::OutcomeUnknown { server, reason: chain(&error), detail }
        }
        other => CallError::Protocol { server, reason: other.to_string() },
    }
}
