//! Forwards a request to its server, and the events back in the client's own era.

mod asked;
mod modern_request;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use consort_audit::ledger::OutcomeClass;
use consort_core::{
    Call, CallEvent, CallEvents, CallOutcome, ClientContext, Json, LogDelivery, Object, Operation,
    PendingServerRequest, ServerId, ServerRequestHandling, StreamSender, TaskHandling,
};
use consort_protocol::Era;
use consort_protocol::splice::{self};
use consort_server::answer::{RequestAnswer, RequestFailure};
use consort_server::{ClientDialect, ClientMessage, ClientSessionState};

use crate::era_results;
use crate::gateway_state::GatewayState;
use crate::request::ClientRequest;
use crate::retold::{is_included, logged, report, under_our_names};
use crate::routing::route;
use crate::seek;
use crate::tasks;
use asked::OpenElicitations;
use modern_request::{ModernCall, ModernRequest};

/// Time to wait for further questions after the first.
const TOGETHER: Duration = Duration::from_millis(10);

/// Forwards a request to the server of the item it names.
pub(crate) async fn relay(
    gateway: &Arc<GatewayState>,
    request: &ClientRequest,
    emitter: &StreamSender<ClientMessage>,
) -> Result<RequestAnswer, RequestFailure> {
    let (operation, renamed) = match route(&request.current_listing(), request) {
        Ok(way) => way,
        Err(failure) => Box::pin(seek::find_target(gateway, request, failure)).await?,
    };
    pin!(pass(gateway, request, operation, renamed, emitter)).await
}

/// Forwards a request to a server.
pub(crate) async fn pass(
    gateway: &Arc<GatewayState>,
    request: &ClientRequest,
    operation: Operation,
    renamed: Option<(&'static str, Json)>,
    emitter: &StreamSender<ClientMessage>,
) -> Result<RequestAnswer, RequestFailure> {
    match &request.dialect {
        ClientDialect::Legacy(session) => {
            let made = MadeCall::new(request, call_of(request, operation, renamed));
            let server = made.server.clone();
            let answered = pin!(answered_in_session(gateway, request, session, made, emitter));
            let result = answered.await?;
            let result = under_our_names(&request.current_listing(), &server, result);
            let result = era_results::legacy(session.revision, &result);
            Ok(RequestAnswer::result(&request.id, result))
        }
        ClientDialect::Modern(modern) => {
            let relay = ModernRequest { gateway, request, modern, emitter };
            match relay.begin(call_of(request, operation, renamed))? {
                ModernCall::Made(made) => pin!(relay.follow(None, relay.suspendable(made))).await,
                ModernCall::Suspended { call, turn } => Box::pin(relay.resume(call, turn)).await,
            }
        }
    }
}

/// Returns the call that a request asks for. It is made before anything is awaited, since it is large.
fn call_of(
    request: &ClientRequest,
    operation: Operation,
    renamed: Option<(&'static str, Json)>,
) -> Call {
    let (caller, params) = (request.caller.clone(), tasks::without_hint(request));
    let mut call = Call::new(caller, operation, params);
    call.replaced.extend(renamed);
    let (offers, capabilities, questions, tasks) = match &request.dialect {
        ClientDialect::Legacy(session) => {
            let as_task = request.params.get_bytes("task").is_some();
            call.log = session.level().map_or(LogDelivery::Usual, LogDelivery::From);
            (&session.offers, session.capabilities(), ServerRequestHandling::Hand, as_task)
        }
        ClientDialect::Modern(modern) => {
            call.log = modern.log.map_or(LogDelivery::None, LogDelivery::From);
            let capabilities = modern.capabilities.clone();
            (&modern.offers, capabilities, ServerRequestHandling::Return, modern.knows_tasks())
        }
    };
    call.client = Some(ClientContext {
        offers: Arc::clone(offers),
        capabilities: Some(capabilities),
        questions,
        tasks: if tasks { TaskHandling::Return } else { TaskHandling::Follow },
        session: request.session(),
        is_local: false,
    });
    call
}

/// A call that was made, and whose events are not read yet.
pub(crate) struct MadeCall {
    server: ServerId,
    events: CallEvents,
}

impl MadeCall {
    /// Makes a call at the endpoint of a request.
    pub(crate) fn new(request: &ClientRequest, call: Call) -> Self {
        Self { server: call.server().clone(), events: request.endpoint.call(call) }
    }
}

/// Returns the result of a legacy client's request; questions of the server are sent to the client meanwhile.
pub(crate) async fn answered_in_session(
    gateway: &Arc<GatewayState>,
    request: &ClientRequest,
    session: &Arc<ClientSessionState>,
    made: MadeCall,
    emitter: &StreamSender<ClientMessage>,
) -> Result<Object, RequestFailure> {
    let token = request.token();
    let level = session.level();
    let MadeCall { server, mut events } = made;
    let mut asked =
        OpenElicitations { session, numbers: Vec::new(), accepts_events: request.accepts_events };
    let names = tasks::TaskIds { store: &gateway.tasks, caller: &request.caller, server: &server };
    let about_task = |params: Object| names.related(&session.offers, params);
    loop {
        let message = match next(&mut events).await {
            CallEvent::Progress(progress) => token.as_ref().map(|token| report(token, &progress)),
            CallEvent::Log(params) => {
                is_included(&params, level).then(|| logged(&about_task(params)))
            }
            CallEvent::Question(PendingServerRequest { method, params, reply })
            | CallEvent::Approval(PendingServerRequest { method, params, reply }) => {
                asked.put(PendingServerRequest { method, params: about_task(params), reply })
            }
            CallEvent::Notification { method, params } => {
                Some(splice::notification(&method, Some(about_task(params).json())))
            }
            CallEvent::End(end) => {
                let _ = request.outcome.set(OutcomeClass::of(&end));
                for withdrawn in asked.withdraw() {
                    emitter.emit(ClientMessage::Message(withdrawn.into())).await;
                }
                return match end {
                    Ok(CallOutcome::Task(task)) => {
                        Ok(tasks::created(&gateway.tasks, request, &server, &task))
                    }
                    Ok(outcome) => Ok(outcome.object().clone()),
                    Err(error) => era_results::failed(Era::Legacy, &error),
                };
            }
            _ => None,
        };
        if let Some(message) = message {
            emitter.emit(ClientMessage::Message(message.into())).await;
        }
    }
}

async fn next(events: &mut CallEvents) -> CallEvent {
    match events.next().await {
        Some(event) => event,
        None => unreachable!("a call is not read behind its end"),
    }
}
