//! Input requests of 2025-11-25 tasks, for modern clients: `tasks/result` is held open at the server, its questions
//! become part of the task's state, and `tasks/update` answers them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use consort_core::{
    CallError, CallEvent, CallEvents, CallOutcome, ClientCapabilities, IdentityId, Json, Object,
    PendingServerRequest, RequestRefusal, ServerId,
};
use consort_protocol::Era;
use consort_server::answer::{INTERNAL, INVALID_PARAMS, RequestFailure};
use parking_lot::{Mutex, MutexGuard};
use serde_json::json;
use tokio::time::Instant;

use super::request::TaskRequest;
use super::{TaskStore, is_terminal, modern_state, state};
use crate::era_results::call_failure;
use crate::suspended_calls::InputRequests;

/// Time to wait for further questions after the first.
const TOGETHER: Duration = Duration::from_millis(10);

/// The pending `tasks/result` requests of all modern clients.
#[derive(Debug)]
pub(crate) struct TaskInputs {
    open: Mutex<HashMap<TaskKey, TaskInputEntry>>,
    most: usize,
    lasts: Duration,
}

/// The caller, the server, and the server's own id of the task.
type TaskKey = (IdentityId, ServerId, String);

#[derive(Debug)]
struct TaskInputEntry {
    until: Instant,
    waiting: Arc<tokio::sync::Mutex<PendingResult>>,
}

/// A `tasks/result` request in progress, and the task's questions meanwhile.
#[derive(Debug)]
struct PendingResult {
    events: CallEvents,
    questions: InputRequests,
    /// True if a question was received.
    asked: bool,
    end: Option<Result<Object, CallError>>,
}

impl TaskInputs {
    pub(crate) fn new(most: usize, lasts: Duration) -> Self {
        Self { open: Mutex::default(), most, lasts }
    }

    /// Returns the pending request for a task's result, if there is one.
    fn get(&self, about: &TaskRequest) -> Option<Arc<tokio::sync::Mutex<PendingResult>>> {
        let mut open = self.lock();
        let place = open.get_mut(&key(about))?;
        place.until = Instant::now() + self.lasts;
        Some(Arc::clone(&place.waiting))
    }

    /// The same, begun if there is none. `None` if there is no room.
    fn get_or_begin(&self, about: &TaskRequest) -> Option<Arc<tokio::sync::Mutex<PendingResult>>> {
        if let Some(known) = self.get(about) {
            return Some(known);
        }
        let mut open = self.lock();
        if open.len() >= self.most {
            return None;
        }
        let until = Instant::now() + self.lasts;
        let begin = || TaskInputEntry {
            until,
            waiting: Arc::new(tokio::sync::Mutex::new(PendingResult {
                events: about.result(),
                questions: InputRequests::unique(),
                asked: false,
                end: None,
            })),
        };
        Some(Arc::clone(&open.entry(key(about)).or_insert_with(begin).waiting))
    }

    /// Ends the request for a task's result. Open questions are refused.
    fn forget(&self, about: &TaskRequest) {
        let place = self.lock().remove(&key(about));
        drop(place);
    }

    /// Ends requests whose task no client asked about for long.
    pub(crate) fn sweep(&self) {
        let now = Instant::now();
        let late: Vec<TaskInputEntry> = {
            let mut open = self.lock();
            open.extract_if(|_, place| place.until <= now).map(|(_, place)| place).collect()
        };
        drop(late);
    }

    /// Ends all of them.
    pub(crate) fn end(&self) {
        let open = std::mem::take(&mut *self.lock());
        drop(open);
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TaskKey, TaskInputEntry>> {
        self.open.lock()
    }
}

fn key(about: &TaskRequest) -> TaskKey {
    (about.caller.id().clone(), about.server.clone(), about.task.clone())
}

impl PendingResult {
    /// Receives the server's events so far, and waits briefly for a first question.
    async fn receive(&mut self, offers: &ClientCapabilities, first: Duration) {
        let patience = if self.asked { TOGETHER } else { first };
        let mut until = Instant::now() + patience;
        while self.end.is_none() {
            match tokio::time::timeout_at(until, self.events.next()).await {
                Ok(Some(CallEvent::Question(asked) | CallEvent::Approval(asked))) => {
                    self.put(asked, offers);
                    until = Instant::now() + TOGETHER;
                }
                Ok(Some(CallEvent::End(end))) => {
                    self.end = Some(end.map(|outcome: CallOutcome| outcome.object().clone()));
                }
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return,
            }
        }
    }

    fn put(&mut self, asked: PendingServerRequest, offers: &ClientCapabilities) {
        self.asked = true;
        if offers.allow(&asked.method, &asked.params) {
            // The name of the task is between the server and us.
            let params = state::related(&asked.params, None);
            self.questions.add(PendingServerRequest { params, ..asked });
        } else if let Some(reply) = asked.reply {
            reply.send(Err(RequestRefusal::not_offered(&asked.method)));
        }
    }
}

/// Returns the state of a task of 2025-11-25 in the extension's form: with its input requests, and with its result or
/// error at the end.
pub(crate) async fn detailed(
    store: &TaskStore,
    about: &TaskRequest,
    name: &str,
) -> Result<Object, RequestFailure> {
    let failure = |error: CallError| call_failure(Era::Modern, &error);
    let now = about.ask("tasks/get").await.map_err(failure)?;
    let status = now.text("status");
    match status.as_deref() {
        Some("completed" | "failed") => {
            let result = result(store, about).await;
            store.inputs.forget(about);
            Ok(match result {
                // A tool that ran and failed has a result; only a request that failed has an error.
                Ok(result) => {
                    let result = state::related(&result, None).json().clone();
                    modern_state(&now, name, "completed", Some(("result", result)))
                }
                Err(error) => {
                    let error = failure(error).object();
                    modern_state(&now, name, "failed", Some(("error", error)))
                }
            })
        }
        Some("cancelled") => {
            store.inputs.forget(about);
            Ok(modern_state(&now, name, "cancelled", None))
        }
        status => {
            let asks = status == Some("input_required");
            let requests = requests(store, about, asks).await?;
            Ok(match requests {
                Some(requests) => {
                    let requests = Some(("inputRequests", requests));
                    modern_state(&now, name, "input_required", requests)
                }
                // It said that it asks, and everything is answered, or nothing was asked yet.
                None => modern_state(&now, name, "working", None),
            })
        }
    }
}

/// Returns the result of a task that has one.
async fn result(store: &TaskStore, about: &TaskRequest) -> Result<Object, CallError> {
    if let Some(waiting) = store.inputs.get(about) {
        let mut waiting = waiting.lock().await;
        waiting.receive(&about.offers, store.input_wait).await;
        match waiting.end.take() {
            Some(Ok(result)) => return Ok(result),
            Some(Err(error @ CallError::Execution { .. })) => return Err(error),
            // The wait broke off, not the task.
            _ => {}
        }
    }
    about.ask("tasks/result").await
}

/// Returns the current input requests of a task.
async fn requests(
    store: &TaskStore,
    about: &TaskRequest,
    asks: bool,
) -> Result<Option<Json>, RequestFailure> {
    let inputs = &store.inputs;
    let waiting = if asks {
        let full =
            || RequestFailure::new(INTERNAL, "too many tasks are waiting for a client response");
        inputs.get_or_begin(about).ok_or_else(full)?
    } else if let Some(waiting) = inputs.get(about) {
        waiting
    } else {
        return Ok(None);
    };
    let mut waiting = waiting.lock().await;
    waiting.receive(&about.offers, store.input_wait).await;
    if matches!(waiting.end, Some(Err(_))) {
        // The next who asks begins anew.
        inputs.forget(about);
        return Ok(None);
    }
    Ok((!waiting.questions.is_empty()).then(|| waiting.questions.requests()))
}

/// Answers the input requests of a task. Answers to others are ignored.
pub(crate) async fn update(
    store: &TaskStore,
    about: &TaskRequest,
    params: &Object,
) -> Result<Object, RequestFailure> {
    let responses = params.get("inputResponses").and_then(|responses| responses.to_object());
    let responses = responses.ok_or_else(|| {
        RequestFailure::new(INVALID_PARAMS, "`inputResponses` is missing or not an object")
    })?;
    match store.inputs.get(about) {
        Some(waiting) => waiting.lock().await.questions.answer(&responses),
        None => {
            let known = about.ask("tasks/get").await;
            known.map_err(|error| call_failure(Era::Modern, &error))?;
        }
    }
    Ok(acknowledged())
}

/// Cancels a task. One that has ended already is no error in the extension.
pub(crate) async fn cancel(
    store: &TaskStore,
    about: &TaskRequest,
) -> Result<Object, RequestFailure> {
    if let Err(error) = about.ask("tasks/cancel").await {
        let state = about.ask("tasks/get").await;
        if !state.is_ok_and(|state| is_terminal(state.text("status").as_deref())) {
            return Err(call_failure(Era::Modern, &error));
        }
    } else {
        store.inputs.forget(about);
    }
    Ok(acknowledged())
}

fn acknowledged() -> Object {
    Json::from(json!({ "resultType": "complete" })).to_object().expect("it is one")
}
