//! Tasks, under sealed ids that contain their caller and server and that only the gateway can read. A task belongs to
//! its server: the gateway keeps only the input requests of 2025-11-25 tasks for modern clients.

mod inputs;
mod request;
mod state;
mod status;

use std::sync::Arc;
use std::time::Duration;

use consort_core::{Caller, ClientCapabilities, IdentityId, Json, Object, ServerId};
use consort_protocol::Revision;
use consort_protocol::splice::ObjectWriter;
use consort_server::answer::{MISSING_CAPABILITY, RequestFailure};
use consort_server::{ClientDialect, SealingKey, TASKS, TokenSealer};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::gateway_limits::GatewayLimits;
use crate::request::ClientRequest;

use inputs::TaskInputs;
pub(crate) use inputs::{cancel, detailed, update};
pub(crate) use request::TaskRequest;
use state::{is_terminal, modern_state, relates};
pub(crate) use state::{related, renamed, with_result};
pub(crate) use status::notify_modern;

/// The purpose that task ids are sealed for.
const PURPOSE: &str = "task";

/// The state of tasks that a gateway keeps.
#[derive(Debug)]
pub(crate) struct TaskStore {
    seal: TokenSealer,
    /// Pending input requests of tasks of 2025-11-25, for modern clients.
    pub(crate) inputs: TaskInputs,
    /// Bytes of client capabilities that the name of a task carries.
    capability_bytes: usize,
    /// Time that a request for the status of a task waits for its first input request.
    input_wait: Duration,
}

impl TaskStore {
    pub(crate) fn new(limits: &GatewayLimits, key: &SealingKey) -> Self {
        Self {
            seal: TokenSealer::new(key),
            inputs: TaskInputs::new(limits.suspended_calls, limits.suspended_time),
            capability_bytes: limits.task_capability_bytes,
            input_wait: limits.task_input_wait,
        }
    }
}

/// A task as its sealed id encodes it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TaskRef {
    caller: IdentityId,
    pub(crate) server: ServerId,
    /// The server's own id of the task.
    pub(crate) task: String,
    /// For a task of 2025-11-25: the capabilities declared on its connection, which alone may know it.
    pub(crate) legacy: Option<String>,
}

impl TaskRef {
    /// Returns the capabilities that identify the connection it was created on; those of the request if it names none.
    pub(crate) fn offers(&self, request: &Arc<ClientCapabilities>) -> Arc<ClientCapabilities> {
        let named = self.legacy.as_deref().filter(|named| !named.is_empty());
        let named = named.and_then(|named| Json::parse(named.to_owned()).ok()?.to_object());
        named.map_or_else(
            || Arc::clone(request),
            |named| Arc::new(ClientCapabilities::declared(&named)),
        )
    }
}

/// The ids of one caller's tasks at one server.
#[derive(Clone, Copy)]
pub(crate) struct TaskIds<'a> {
    pub(crate) store: &'a TaskStore,
    pub(crate) caller: &'a Caller,
    pub(crate) server: &'a ServerId,
}

impl TaskIds<'_> {
    /// Returns the id of a task that clients see: the same each time. A task of 2025-11-25 belongs to the connection on
    /// which these capabilities were declared.
    pub(crate) fn of(&self, task: String, legacy: Option<&ClientCapabilities>) -> String {
        let legacy = legacy.map(|offers| {
            let capabilities = offers.capabilities(Revision::NEWEST_MODERN).to_string();
            let most = self.store.capability_bytes;
            if capabilities.len() > most { String::new() } else { capabilities }
        });
        let (caller, server) = (self.caller.id().clone(), self.server.clone());
        self.store.seal.name(PURPOSE, &TaskRef { caller, server, task, legacy })
    }

    /// Replaces the id in a server's message about a task of 2025-11-25 by the one that clients see.
    pub(crate) fn related(&self, offers: &ClientCapabilities, params: Object) -> Object {
        match relates(&params) {
            Some(task) => related(&params, Some(&self.of(task, Some(offers)))),
            None => params,
        }
    }
}

/// Returns the task of a sealed id, if it is this caller's.
pub(crate) fn open(store: &TaskStore, caller: &Caller, name: &str) -> Option<TaskRef> {
    let ticket: TaskRef = store.seal.open(PURPOSE, name)?;
    (ticket.caller == *caller.id()).then_some(ticket)
}

/// Returns the parameters of a request to forward. Only a legacy client requests a task with `task`; a modern client's
/// `task` is dropped.
pub(crate) fn without_hint(request: &ClientRequest) -> Object {
    let modern = matches!(request.dialect, ClientDialect::Modern(_));
    if !modern || request.params.get_bytes("task").is_none() {
        return request.params.clone();
    }
    let mut writer = ObjectWriter::with_capacity(request.params.as_bytes().len());
    writer.members(&request.params, &["task"]);
    writer.finish_object()
}

/// The failure of a request that needs the extension.
pub(crate) fn needs_extension() -> RequestFailure {
    let missing = json!({ "requiredCapabilities": { "extensions": { TASKS: {} } } });
    RequestFailure::new(MISSING_CAPABILITY, "the client does not declare the tasks extension")
        .data(missing)
}

/// Returns the result that a call became a task, for a client of either era.
pub(crate) fn created(
    store: &TaskStore,
    request: &ClientRequest,
    server: &ServerId,
    result: &Object,
) -> Object {
    let names = TaskIds { store, caller: &request.caller, server };
    let Some(state) = result.get("task").and_then(|task| task.to_object()) else {
        let name = names.of(result.text("taskId").unwrap_or_default(), None);
        return renamed(result, &name);
    };
    let task = state.text("taskId").unwrap_or_default();
    match &request.dialect {
        ClientDialect::Legacy(session) => {
            let name = names.of(task.clone(), Some(&session.offers));
            status::notify_legacy(
                &request.endpoint,
                session,
                server,
                task,
                &name,
                state.text("status"),
            );
            let mut writer = ObjectWriter::new();
            writer.members(&related(result, Some(&name)), &["task"]);
            writer.raw("task", renamed(&state, &name).as_bytes());
            writer.finish_object()
        }
        ClientDialect::Modern(modern) => {
            let name = names.of(task, Some(&modern.offers));
            let mut writer = ObjectWriter::new();
            writer.text("resultType", "task");
            // What a task asks is said when somebody asks for its state.
            let status = state.text("status").filter(|status| status != "input_required");
            let status = status.as_deref().unwrap_or("working");
            writer.members(&modern_state(&state, &name, status, None), &[]);
            writer.finish_object()
        }
    }
}
