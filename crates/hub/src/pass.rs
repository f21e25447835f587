//! Requests passed on to one server as they stand.

use std::sync::Arc;

use consort_core::{
    CallError, Emitter, Event, Json, Offers, Outcome, Passage, ServerId, ToolResult,
    attributed_requests,
};
use consort_wire::{Answer, Era, Notice, Request};
use serde::Deserialize;
use tokio::sync::mpsc;

use crate::call::{self, explained};
use crate::connection::{Connection, chance};
use crate::hub::Inner;

/// Notifications a listener may be behind.
const HEARD: usize = 256;

/// The pause before a lost subscription is asked for again.
const AGAIN: std::time::Duration = std::time::Duration::from_secs(1);

/// The code of what a server does not offer.
const NOT_TOLD: i64 = -32601;

/// Runs a request to its end.
pub(crate) async fn run(
    hub: &Inner,
    passage: Passage,
    emitter: &Emitter<Event>,
) -> Result<Outcome, CallError> {
    let unknown = |kind, name| CallError::Unknown { kind, name, nearest: Vec::new() };
    if let Some(tools) = hub.local.get(&passage.server) {
        let name = passage.get("name");
        let name = name.and_then(|name| name.text().map(Into::into));
        let name = name.filter(|_| passage.method == "tools/call");
        let name = name.ok_or_else(|| unknown("method", passage.method.to_string()))?;
        let tool = tools.iter().find(|tool| tool.definition().name() == name);
        let tool = tool.ok_or_else(|| unknown("tool", name))?;
        let arguments = passage.get("arguments").unwrap_or_else(|| Json::from(empty()));
        let schema = tool.definition().input_schema();
        return match Box::pin(hub.validators.check(&schema, &arguments)).await {
            Ok(()) => {
                let result = Box::pin(call::local(tool, arguments, emitter)).await;
                Ok(Outcome::Complete(result))
            }
            Err(problems) => Ok(Outcome::Complete(ToolResult::error(problems.join("\n")))),
        };
    }
    let connection = hub.connection(&passage.server);
    let connection = &connection.ok_or_else(|| unknown("server", passage.server.to_string()))?;
    if passage.method == "subscriptions/listen" {
        return Box::pin(listen(connection, &passage, emitter)).await;
    }
    let end =
        call::remote(connection, Some(&passage), passage.log, request(&passage), emitter).await;
    end.map(|answer| match answer {
        // A task that waits for answers says in its state what it asks.
        Answer::Complete(result) if passage.method == "tasks/get" => {
            let result = attributed_requests(&connection.id, result);
            Outcome::Complete(ToolResult::from_object(result))
        }
        Answer::Complete(result) => Outcome::Complete(ToolResult::from_object(result)),
        Answer::InputRequired(result) => Outcome::InputRequired(result),
        Answer::Task(task) => Outcome::Task(task),
    })
}

fn empty() -> serde_json::Value {
    serde_json::json!({})
}

fn request(passage: &Passage) -> Request {
    let mut request = Request::forward(passage.method.clone(), &passage.params)
        .questions(passage.questions)
        .tasks(passage.tasks)
        .postmark(passage.postmark.clone());
    for (member, value) in &passage.replaced {
        request = request.with(*member, value.clone());
    }
    request = call::wants_logs(request, passage.log).identity(&passage.caller.name);
    let capabilities = passage.capabilities.clone();
    let declared = |offers: &Offers| offers.capabilities(consort_core::Revision::V2026_07_28);
    request.capabilities(capabilities.unwrap_or_else(|| declared(&passage.offers)))
}

/// What a listener wants to hear.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wanted {
    #[serde(default)]
    resource_subscriptions: Vec<String>,
    #[serde(default)]
    task_ids: Vec<String>,
}

/// Tells of updates until it is dropped, from one connection after the other if need be.
async fn listen(
    connection: &Arc<Connection>,
    passage: &Passage,
    emitter: &Emitter<Event>,
) -> Result<Outcome, CallError> {
    let wanted = passage.params.get("notifications").and_then(|wanted| wanted.read().ok());
    let wanted: Wanted = wanted.ok_or_else(|| CallError::Protocol {
        server: connection.id.clone(),
        reason: "nothing to listen to is named".to_owned(),
    })?;
    let (sender, mut heard) = mpsc::channel(HEARD);
    let hearing = async {
        let mut first = true;
        loop {
            match hear(connection, passage, &wanted, &sender, first).await {
                Err(error) if first => return error,
                _ => first = false,
            }
            tokio::time::sleep(AGAIN.mul_f64(1.0 + chance())).await;
        }
    };
    let mut hearing = std::pin::pin!(hearing);
    loop {
        tokio::select! {
            biased;
            Some(event) = heard.recv() => emitter.emit(event).await,
            error = &mut hearing => return Err(error),
        }
    }
}

/// Listens on one connection until it ends. After the first, something may have been missed.
async fn hear(
    connection: &Arc<Connection>,
    passage: &Passage,
    wanted: &Wanted,
    sender: &mpsc::Sender<Event>,
    first: bool,
) -> Result<(), CallError> {
    let line = connection.line_for(&passage.caller, &passage.offers).await?;
    let _in_use = connection.in_use();
    let failed = |error| explained(&connection.id, error);
    let uris = &wanted.resource_subscriptions;
    let updated = |uri: &str| {
        let params = Json::from(serde_json::json!({ "uri": uri })).to_object();
        Event::Notification {
            method: "notifications/resources/updated".to_owned(),
            params: params.expect("it was written as one"),
        }
    };
    if line.client.about().found.revision.era() == Era::Modern {
        let filter = consort_wire::Filter {
            resource_subscriptions: uris.clone(),
            task_ids: wanted.task_ids.clone(),
            ..consort_wire::Filter::default()
        };
        let mut subscription = line.client.listen(filter).await.map_err(failed)?;
        let promised = &subscription.accepted().resource_subscriptions;
        if let Some(uri) = uris.iter().find(|uri| !promised.contains(uri)) {
            return Err(untold(&connection.id, uri));
        }
        announce(sender, first, uris, updated).await;
        while let Some(notice) = subscription.next().await {
            pass_on(&connection.id, sender, notice, uris, updated, |_| true).await;
        }
        return Ok(());
    }
    let mut notices = line.client.notices();
    let mut watching = Vec::new();
    for uri in uris {
        watching.push(line.watch(uri).await.map_err(failed)?);
    }
    announce(sender, first, uris, updated).await;
    while let Some(notice) = notices.next().await {
        if notice == Notice::Renewed {
            // The server forgot with its session what it was asked to tell.
            for uri in uris {
                line.watch_again(uri).await.map_err(failed)?;
            }
        }
        let known = |uri: &str| uris.iter().any(|known| known == uri);
        pass_on(&connection.id, sender, notice, uris, updated, known).await;
    }
    Ok(())
}

/// A server that listens to us, and will not tell of a resource.
fn untold(server: &ServerId, uri: &str) -> CallError {
    let message = format!("it does not tell of updates of `{uri}`");
    let raw = serde_json::json!({ "code": NOT_TOLD, "message": message }).into();
    CallError::Execution { server: server.clone(), message, code: NOT_TOLD, raw }
}

/// The first event says that the server agreed; later ones, that something may have been missed.
async fn announce(
    sender: &mpsc::Sender<Event>,
    first: bool,
    uris: &[String],
    updated: impl Fn(&str) -> Event,
) {
    if first {
        let accepted = Event::Notification {
            method: "notifications/subscriptions/acknowledged".to_owned(),
            params: consort_core::Object::empty(),
        };
        let _ = sender.send(accepted).await;
        return;
    }
    for uri in uris {
        let _ = sender.send(updated(uri)).await;
    }
}

async fn pass_on(
    server: &ServerId,
    sender: &mpsc::Sender<Event>,
    notice: Notice,
    uris: &[String],
    updated: impl Fn(&str) -> Event,
    wanted: impl Fn(&str) -> bool,
) {
    match notice {
        Notice::Notification(body) if body.method == "notifications/resources/updated" => {
            if body.params.text("uri").is_some_and(|uri| wanted(&uri)) {
                let event = Event::Notification { method: body.method, params: body.params };
                let _ = sender.send(event).await;
            }
        }
        Notice::Notification(body) if body.method.starts_with("notifications/tasks") => {
            // A task that waits for answers says in its state what it asks.
            let params = attributed_requests(server, body.params);
            let event = Event::Notification { method: body.method, params };
            let _ = sender.send(event).await;
        }
        Notice::Notification(_) => {}
        Notice::Lost(_) | Notice::Renewed | Notice::Reopened => {
            for uri in uris {
                let _ = sender.send(updated(uri)).await;
            }
        }
    }
}
