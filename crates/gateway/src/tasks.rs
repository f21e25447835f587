//! Tasks, under names that say whose they are and that only we can read. Nothing is kept here: a task is
//! its server's.

use std::sync::Arc;

use consort_core::{
    Caller, Emitter, Event, Json, Logs, Object, Outcome, Passage, Questions, ServerId, Tasks,
};
use consort_wire::Era;
use consort_wire::splice::Writer;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::answer::{self, Answer, Failure, INVALID_PARAMS, MISSING_CAPABILITY};
use crate::gateway::{Inner, empty};
use crate::request::{Out, Request, Speaker, TASKS};

/// What the names of tasks are sealed for.
const PURPOSE: &str = "task";

/// What the protocol calls the task a message is about.
const RELATED: &str = "io.modelcontextprotocol/related-task";

/// A task, as its name says to us.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Ticket {
    caller: String,
    pub(crate) server: ServerId,
    /// What the server calls it.
    pub(crate) task: String,
    /// Whether it is a task of 2025-11-25, not of the extension.
    legacy: bool,
}

/// What a caller's task is called in front of clients.
fn name(gateway: &Inner, caller: &Caller, server: &ServerId, task: String, legacy: bool) -> String {
    let ticket = Ticket { caller: caller.name.clone(), server: server.clone(), task, legacy };
    gateway.seal.seal(PURPOSE, &ticket)
}

/// The task that a name stands for, if it is this caller's.
pub(crate) fn open(gateway: &Inner, caller: &Caller, name: &str) -> Option<Ticket> {
    let ticket: Ticket = gateway.seal.open(PURPOSE, name)?;
    (ticket.caller == caller.name).then_some(ticket)
}

/// The result that says that a call became a task, for a client of either era.
pub(crate) fn created(
    gateway: &Inner,
    request: &Request,
    server: &ServerId,
    result: &Object,
) -> Object {
    let legacy = result.get("task").and_then(|task| task.to_object());
    let state = legacy.clone().unwrap_or_else(|| result.clone());
    let task = state.text("taskId").unwrap_or_default();
    let name = name(gateway, &request.caller, server, task, legacy.is_some());
    match (&request.speaker, legacy) {
        (Speaker::Legacy(_), Some(state)) => {
            let mut writer = Writer::new();
            writer.members(result, &["task"]);
            writer.raw("task", renamed(&state, &name).as_bytes());
            writer.finish_object()
        }
        (Speaker::Modern(_), Some(state)) => modern_state(&state, &name, "task", None),
        (_, None) => renamed(result, &name).to_object().expect("it was written as one"),
    }
}

/// Answers a request about tasks.
pub(crate) async fn serve(
    gateway: &Arc<Inner>,
    request: &Request,
    emitter: &Emitter<Out>,
) -> Result<Answer, Failure> {
    let modern = matches!(request.method.as_str(), "tasks/get" | "tasks/update" | "tasks/cancel");
    match &request.speaker {
        Speaker::Modern(_) if !modern => return Err(Failure::unknown_method(&request.method)),
        Speaker::Modern(modern) if !modern.knows_tasks() => {
            let missing = json!({ "requiredCapabilities": { "extensions": { TASKS: {} } } });
            return Err(
                Failure::new(MISSING_CAPABILITY, "the client does not know tasks").data(missing)
            );
        }
        Speaker::Legacy(_) if request.method == "tasks/list" => {
            return list(gateway, request).await;
        }
        _ => {}
    }
    let given = request.text("taskId")?;
    let unknown =
        || Failure::new(INVALID_PARAMS, format!("unknown task `{}`", given.escape_debug()));
    let ticket = open(gateway, &request.caller, &given).ok_or_else(unknown)?;
    let about = About { gateway, request, emitter, ticket: &ticket };
    let result = match (&request.speaker, request.method.as_str(), ticket.legacy) {
        (Speaker::Modern(_), "tasks/get", true) => about.legacy_state(&given).await?,
        (Speaker::Modern(_), "tasks/cancel", true) => {
            about.ask("tasks/cancel").await?;
            Json::from(json!({ "resultType": "complete" })).to_object().expect("it is one")
        }
        (Speaker::Modern(_), "tasks/get" | "tasks/update" | "tasks/cancel", false)
        | (Speaker::Legacy(_), "tasks/get" | "tasks/result" | "tasks/cancel", true) => {
            let result = about.ask(&request.method).await?;
            let result = renamed(&related(&result, &given), &given).to_object();
            result.expect("it was written as one")
        }
        _ => return Err(Failure::unknown_method(&request.method)),
    };
    let result = match &request.speaker {
        Speaker::Modern(_) => answer::modern(&request.method, &result),
        Speaker::Legacy(session) => answer::legacy(session.revision, &result),
    };
    Ok(Answer::result(&request.id, result))
}

/// A request about one task.
struct About<'a> {
    gateway: &'a Arc<Inner>,
    request: &'a Request,
    emitter: &'a Emitter<Out>,
    ticket: &'a Ticket,
}

impl About<'_> {
    /// The state of a task of 2025-11-25, with its result if it has one, as the extension has it.
    async fn legacy_state(&self, given: &str) -> Result<Object, Failure> {
        let state = self.ask("tasks/get").await?;
        let status = state.text("status");
        let over = matches!(status.as_deref(), Some("completed" | "failed"));
        let result = if over { Some(self.ask("tasks/result").await) } else { None };
        let more = match result {
            None => None,
            Some(Ok(result)) => Some(("result", result.json().clone())),
            Some(Err(failure)) => {
                let error = json!({ "code": failure.code, "message": failure.message });
                Some(("error", error.into()))
            }
        };
        Ok(modern_state(&state, given, "complete", more))
    }

    /// Asks the task's server.
    async fn ask(&self, method: &str) -> Result<Object, Failure> {
        let mut passage = Passage::new(
            self.request.caller.clone(),
            self.ticket.server.clone(),
            method.to_owned(),
            self.request.params.clone(),
        );
        passage.set("taskId", Json::string(&self.ticket.task));
        passage.tasks = Tasks::Return;
        match &self.request.speaker {
            Speaker::Modern(modern) => {
                passage.offers = Arc::clone(&modern.offers);
                passage.capabilities = Some(modern.capabilities.clone());
                passage.questions = Questions::Return;
            }
            Speaker::Legacy(session) => {
                passage.offers = Arc::clone(&session.offers);
                passage.log = Logs::Usual;
                return crate::relay::answered_in_session(
                    self.gateway,
                    self.request,
                    session,
                    passage,
                    self.emitter,
                )
                .await;
            }
        }
        end(self.request, passage, Era::Modern).await
    }
}

/// Every task of every server that lists them, for a legacy client.
async fn list(gateway: &Arc<Inner>, request: &Request) -> Result<Answer, Failure> {
    let Speaker::Legacy(session) = &request.speaker else {
        return Err(Failure::unknown_method(&request.method));
    };
    let menu = request.menu();
    let mut tasks = Vec::new();
    for server in menu.offering("tasks.list") {
        let params = Object::empty();
        let mut passage =
            Passage::new(request.caller.clone(), server.clone(), "tasks/list", params);
        passage.offers = Arc::clone(&session.offers);
        let result = end(request, passage, Era::Legacy).await?;
        for task in result.get("tasks").and_then(|tasks| tasks.to_items()).unwrap_or_default() {
            let Some(task) = task.to_object() else { continue };
            let id = task.text("taskId").unwrap_or_default();
            let name = name(gateway, &request.caller, server, id, true);
            tasks.push(renamed(&task, &name).to_string());
        }
    }
    let mut writer = Writer::new();
    writer.raw("tasks", format!("[{}]", tasks.join(",")).as_bytes());
    Ok(Answer::result(&request.id, &writer.finish()))
}

/// How a request ends that has no events worth showing.
async fn end(request: &Request, passage: Passage, era: Era) -> Result<Object, Failure> {
    let mut events = request.front.pass(passage);
    loop {
        match events.next().await {
            Some(Event::End(Ok(Outcome::InputRequired(result) | Outcome::Task(result)))) => {
                return Ok(result);
            }
            Some(Event::End(Ok(outcome))) => return Ok(outcome.object().clone()),
            Some(Event::End(Err(error))) => return answer::failed(era, &error),
            Some(_) => {}
            None => return Ok(empty().to_object().expect("it is one")),
        }
    }
}

/// A state of 2025-11-25 in the extension's words.
fn modern_state(state: &Object, name: &str, kind: &str, more: Option<(&str, Json)>) -> Object {
    let mut writer = Writer::new();
    writer.text("resultType", kind);
    writer.text("taskId", name);
    for (member, value) in state.members() {
        match member {
            "taskId" => {}
            "ttl" => writer.raw("ttlMs", value.as_bytes()),
            "pollInterval" => writer.raw("pollIntervalMs", value.as_bytes()),
            _ => writer.written(member, value.as_bytes()),
        }
    }
    if let Some((member, value)) = more {
        writer.raw(member, value.as_bytes());
    }
    writer.finish_object()
}

/// An object with the task's name in front of clients, where it names the task.
pub(crate) fn renamed(state: &Object, name: &str) -> Json {
    if state.get_bytes("taskId").is_none() {
        return state.json().clone();
    }
    let mut writer = Writer::with_capacity(state.as_bytes().len() + name.len());
    for (member, value) in state.members() {
        if member == "taskId" {
            writer.text("taskId", name);
        } else {
            writer.written(member, value.as_bytes());
        }
    }
    writer.finish()
}

/// A result with the task's name in front of clients in its `_meta`.
fn related(result: &Object, name: &str) -> Object {
    let meta = result.get("_meta").and_then(|meta| meta.to_object());
    let Some(meta) = meta.filter(|meta| meta.get_bytes(RELATED).is_some()) else {
        return result.clone();
    };
    let mut writer = Writer::new();
    writer.members(result, &["_meta"]);
    writer.object("_meta", |written| {
        written.members(&meta, &[RELATED]);
        written.object(RELATED, |related| related.text("taskId", name));
    });
    writer.finish_object()
}
