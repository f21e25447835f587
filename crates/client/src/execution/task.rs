//! Calls that a server turned into tasks, followed to their result, in both forms of tasks.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use consort_protocol::{Json, Object, ServerError};
use tokio::time::sleep;

use crate::call::owner::{CallOwner, CallTask};
use crate::call::{PendingCallEvent, ServerAnswer};
use crate::connection::SharedConnection;
use crate::error::ClientCallError;
use crate::exchange::context::CallExecution;
use crate::exchange::own_request;
use crate::request::OutgoingRequest;
use crate::request::dialect::RequestDialect;

/// Default polling interval.
const POLL: Duration = Duration::from_secs(1);

/// Bounds of the server's polling interval.
const POLL_LEAST: Duration = Duration::from_millis(20);
const POLL_MOST: Duration = Duration::from_mins(1);

/// Follows the task that `created` describes.
pub(crate) async fn follow(
    run: &CallExecution<'_>,
    dialect: &Arc<RequestDialect>,
    id: u64,
    created: Object,
) -> Result<ServerAnswer, ClientCallError> {
    let state = if dialect.is_modern() {
        Some(created)
    } else {
        created.get("task").and_then(|task| task.to_object())
    };
    let state =
        state.ok_or_else(|| ClientCallError::Malformed("a task without a status".to_owned()))?;
    let Some(task) = state.get("taskId") else {
        return Err(ClientCallError::Malformed("a task without an id".to_owned()));
    };
    let mut guard = TaskGuard { link: run.link, dialect, task: &task, ended: false };
    let end = if dialect.is_modern() {
        modern(run, dialect, id, &task, state).await
    } else {
        legacy(run, dialect, id, &task, state).await
    };
    guard.ended = true;
    end
}

/// The tasks extension: the state carries the questions and, at the end, the result.
async fn modern(
    run: &CallExecution<'_>,
    dialect: &RequestDialect,
    id: u64,
    task: &Json,
    mut state: Object,
) -> Result<ServerAnswer, ClientCallError> {
    let mut answered = HashSet::new();
    loop {
        run.emit(PendingCallEvent::Task(state.clone())).await;
        match state.text("status").as_deref() {
            Some("completed") => {
                let result = state.get("result").and_then(|result| result.to_object());
                return result.map(ServerAnswer::Complete).ok_or_else(|| {
                    ClientCallError::Malformed("a completed task without a result".to_owned())
                });
            }
            Some("failed") => return Err(ClientCallError::Refused(failure(&state))),
            Some("cancelled") => return Err(ClientCallError::Cancelled { sent: true }),
            Some("input_required") => {
                let requests = state.get("inputRequests").and_then(|requests| requests.to_object());
                let requests = requests.unwrap_or_else(Object::empty);
                // Until the server has taken an answer in, it shows the question again.
                let fresh: HashSet<String> = requests
                    .members()
                    .map(|(key, _)| key.to_owned())
                    .filter(|key| !answered.contains(key))
                    .collect();
                if !fresh.is_empty() {
                    let waiting = run.pulse.wait_for_us();
                    let responses = run.put(id, &requests, |key| fresh.contains(key)).await?;
                    drop(waiting);
                    let update = about("tasks/update", task).with("inputResponses", responses);
                    own_request::ask(run.link, dialect, &update).await?;
                    answered.extend(fresh);
                }
            }
            _ => {}
        }
        sleep(poll(&state, "pollIntervalMs")).await;
        state = look(run, dialect, task).await?;
    }
}

/// The tasks of 2025-11-25: the result is fetched by a request that waits for it, and on whose
/// stream questions may come.
async fn legacy(
    run: &CallExecution<'_>,
    dialect: &RequestDialect,
    id: u64,
    task: &Json,
    mut state: Object,
) -> Result<ServerAnswer, ClientCallError> {
    let named = task.text().map(|task| CallTask::Named(task.as_ref().into()));
    let owner = CallOwner { task: named.unwrap_or_default(), ..run.owner() };
    // The token of the first request stays valid, so its progress still has to find us.
    let mailbox = run
        .link
        .calls
        .open(id, &run.link.settings.limits, run.pulse, owner)
        .map_err(|closed| ClientCallError::closed(closed, true))?;
    let mut open = OpenTask { link: run.link, id, ended: false };
    let end = async {
        run.emit(PendingCallEvent::Task(state.clone())).await;
        while state.text("status").as_deref() == Some("working") {
            sleep(poll(&state, "pollInterval")).await;
            let next = look(run, dialect, task).await?;
            if next.text("status") != state.text("status")
                || next.text("statusMessage") != state.text("statusMessage")
            {
                run.emit(PendingCallEvent::Task(next.clone())).await;
            }
            state = next;
        }
        if state.text("status").as_deref() == Some("cancelled") {
            return Err(ClientCallError::Cancelled { sent: true });
        }
        let mut result = about("tasks/result", task);
        result.identity.clone_from(&run.request.identity);
        run.with(&result)
            .exchange(run.link.next_id(), dialect, None)
            .await
            .map(ServerAnswer::Complete)
    };
    let end = tokio::select! {
        end = end => end,
        // Progress is emitted on the way; only a lost connection ends this wait.
        end = run.wait(&mailbox) => end.map(ServerAnswer::Complete),
    };
    open.ended = true;
    end
}

/// The mailbox of a task that is followed. Dropping it before the end abandons the call.
struct OpenTask<'a> {
    link: &'a Arc<SharedConnection>,
    id: u64,
    ended: bool,
}

impl Drop for OpenTask<'_> {
    fn drop(&mut self) {
        if self.ended {
            self.link.calls.remove(self.id);
        } else {
            self.link.calls.abandon(self.id, self.link.settings.times.total);
        }
        self.link.call_ended(self.id);
    }
}

/// Queries the state of the task. Querying is harmless, so a failure is retried.
async fn look(
    run: &CallExecution<'_>,
    dialect: &RequestDialect,
    task: &Json,
) -> Result<Object, ClientCallError> {
    let mut attempt = 1;
    loop {
        match own_request::ask(run.link, dialect, &about("tasks/get", task)).await {
            Ok(state) => {
                run.pulse.beat();
                return Ok(state);
            }
            Err(error @ ClientCallError::Refused(_)) => return Err(error),
            Err(error)
                if attempt >= run.link.settings.limits.task_attempts
                    || run.link.calls.closed().is_some() =>
            {
                return Err(error);
            }
            Err(_) => sleep(POLL * attempt).await,
        }
        attempt += 1;
    }
}

fn about(method: &'static str, task: &Json) -> OutgoingRequest {
    OutgoingRequest::new(method).with("taskId", task.clone())
}

fn poll(state: &Object, name: &str) -> Duration {
    let asked =
        state.get(name).and_then(|time| time.integer()).and_then(|time| u64::try_from(time).ok());
    asked.map_or(POLL, Duration::from_millis).clamp(POLL_LEAST, POLL_MOST)
}

fn failure(state: &Object) -> ServerError {
    let raw = state.get("error").and_then(|error| error.to_object()).unwrap_or_else(Object::empty);
    let code = raw.get("code").and_then(|code| code.integer()).unwrap_or(-32603);
    let message = raw.text("message").or_else(|| state.text("statusMessage"));
    ServerError {
        code,
        message: message.unwrap_or_else(|| "the task failed".to_owned()),
        raw: raw.json().clone(),
    }
}

/// A task in progress. Dropping it before its end cancels it at the server.
struct TaskGuard<'a> {
    link: &'a Arc<SharedConnection>,
    dialect: &'a Arc<RequestDialect>,
    task: &'a Json,
    ended: bool,
}

impl Drop for TaskGuard<'_> {
    fn drop(&mut self) {
        if self.ended || self.link.calls.closed().is_some() {
            return;
        }
        let (link, dialect) = (Arc::clone(self.link), Arc::clone(self.dialect));
        let cancel = about("tasks/cancel", self.task);
        self.link.spawn(async move {
            if let Err(error) = own_request::ask(&link, &dialect, &cancel).await {
                tracing::debug!(%error, "cannot cancel a task");
            }
        });
    }
}
