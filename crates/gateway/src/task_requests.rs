//! Requests about tasks, answered by the server of the task.

use std::sync::Arc;

use consort_core::{Call, ClientContext, LogDelivery, ServerRequestHandling, StreamSender};
use consort_protocol::Era;
use consort_protocol::splice::ObjectWriter;
use consort_server::answer::{INTERNAL, INVALID_PARAMS, RequestAnswer, RequestFailure};
use consort_server::{ClientDialect, ClientMessage};

use crate::era_results::{self, call_failure};
use crate::gateway_state::GatewayState;
use crate::relay;
use crate::request::ClientRequest;
use crate::retold::under_our_names;
use crate::tasks::{self, TaskIds, TaskRequest, needs_extension, open, renamed};

/// Answers a request about tasks.
pub(crate) async fn serve(
    gateway: &Arc<GatewayState>,
    request: &ClientRequest,
    emitter: &StreamSender<ClientMessage>,
) -> Result<RequestAnswer, RequestFailure> {
    let modern = matches!(request.method.as_str(), "tasks/get" | "tasks/update" | "tasks/cancel");
    match &request.dialect {
        ClientDialect::Modern(_) if !modern => {
            return Err(RequestFailure::unknown_method(&request.method));
        }
        ClientDialect::Modern(modern) if !modern.knows_tasks() => return Err(needs_extension()),
        ClientDialect::Legacy(_) if request.method == "tasks/list" => {
            return list(gateway, request).await;
        }
        _ => {}
    }
    let given = request.text("taskId")?;
    let unknown =
        || RequestFailure::new(INVALID_PARAMS, format!("unknown task `{}`", given.escape_debug()));
    let ticket = open(&gateway.tasks, &request.caller, &given).ok_or_else(unknown)?;
    let result = match (&request.dialect, request.method.as_str(), ticket.legacy.is_some()) {
        (ClientDialect::Modern(modern), method, true) => {
            let about = TaskRequest::new(request, &ticket, &modern.offers);
            match method {
                "tasks/get" => tasks::detailed(&gateway.tasks, &about, &given).await?,
                "tasks/update" => tasks::update(&gateway.tasks, &about, &request.params).await?,
                _ => tasks::cancel(&gateway.tasks, &about).await?,
            }
        }
        (ClientDialect::Modern(modern), _, false) => {
            let mut about = TaskRequest::new(request, &ticket, &modern.offers);
            about.capabilities = Some(modern.capabilities.clone());
            let asked = about.ask(request.method.clone()).await;
            renamed(&asked.map_err(|error| call_failure(Era::Modern, &error))?, &given)
        }
        (ClientDialect::Legacy(session), "tasks/get" | "tasks/result" | "tasks/cancel", true) => {
            let about = TaskRequest::new(request, &ticket, &session.offers);
            let mut call = about.call(request.method.clone(), ServerRequestHandling::Hand);
            call.log = LogDelivery::Usual;
            let made = relay::MadeCall::new(request, call);
            let result =
                relay::answered_in_session(gateway, request, session, made, emitter).await?;
            renamed(&tasks::related(&result, Some(&given)), &given)
        }
        _ => return Err(RequestFailure::unknown_method(&request.method)),
    };
    let result = tasks::with_result(&result, |result| {
        under_our_names(&request.current_listing(), &ticket.server, result)
    });
    let result = match &request.dialect {
        ClientDialect::Modern(_) => era_results::modern(&request.method, &result),
        ClientDialect::Legacy(session) => {
            let result = under_our_names(&request.current_listing(), &ticket.server, result);
            era_results::legacy(session.revision, &result)
        }
    };
    Ok(RequestAnswer::result(&request.id, result))
}

/// Returns every task of every server that lists them, for a legacy client.
async fn list(
    gateway: &Arc<GatewayState>,
    request: &ClientRequest,
) -> Result<RequestAnswer, RequestFailure> {
    let ClientDialect::Legacy(session) = &request.dialect else {
        return Err(RequestFailure::unknown_method(&request.method));
    };
    let most = gateway.settings.limits.task_pages;
    let listing = request.current_listing();
    let mut tasks = Vec::new();
    for server in listing.offering("tasks.list") {
        let names = TaskIds { store: &gateway.tasks, caller: &request.caller, server };
        let mut cursor: Option<String> = None;
        for page in 1.. {
            if page > most {
                let message = format!(
                    "`{server}` returned more than {most} pages of tasks (`task_pages` in \
                    `[consort.limits]`)"
                );
                return Err(RequestFailure::new(INTERNAL, message));
            }
            let mut params = ObjectWriter::new();
            if let Some(cursor) = &cursor {
                params.text("cursor", cursor);
            }
            let (caller, params) = (request.caller.clone(), params.finish_object());
            let client = ClientContext {
                session: Some(session.client.clone()),
                ..ClientContext::new(Arc::clone(&session.offers))
            };
            let mut call = Call::other(caller, server.clone(), "tasks/list", params).by(client);
            call.log = LogDelivery::None;
            let page = consort_core::end(request.endpoint.call(call)).await;
            let page = page.map_err(|error| call_failure(Era::Legacy, &error))?.object().clone();
            for task in page.get("tasks").and_then(|tasks| tasks.to_items()).unwrap_or_default() {
                let Some(task) = task.to_object() else { continue };
                let name = names.of(task.text("taskId").unwrap_or_default(), Some(&session.offers));
                tasks.push(renamed(&task, &name).json().to_string());
            }
            cursor = page.text("nextCursor");
            if cursor.is_none() {
                break;
            }
        }
    }
    let mut writer = ObjectWriter::new();
    writer.raw("tasks", format!("[{}]", tasks.join(",")).as_bytes());
    Ok(RequestAnswer::result(&request.id, &writer.finish()))
}
