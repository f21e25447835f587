//! Execution of one call at the hub: lookup, validation, sending, and forwarding of its events in order.

mod arguments;
mod local;
mod translate;

use std::borrow::Cow;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use consort_client::{
    CallEventSink, ClientCallError, OutgoingRequest, PendingCallEvent, ServerAnswer,
};
use consort_core::{
    Call, CallError, CallEvent, CallOutcome, Catalog, ClientSession, LocalTool, LogDelivery,
    LogLevel, MissingName, Object, Operation, PrimitiveKind, ServerId, Target, ToolResult,
    attributed_requests,
};
use consort_protocol::{Era, StreamSender};
use tokio::time::Instant;

use crate::chance::chance;
use crate::connection_key::{ConnectionParty, STATELESS};
use crate::hub::Inner;
use crate::managed::ManagedServer;
use crate::probation::{ProbationCall, ProbationEntry};
use crate::retry;
use crate::upstream::UpstreamConnection;
use arguments::CheckedArguments;
pub(crate) use translate::explained;
use translate::translated;

/// Runs a call to its end.
pub(crate) async fn run(
    hub: &Inner,
    call: &Call,
    emitter: &StreamSender<CallEvent>,
) -> Result<CallOutcome, CallError> {
    // An agent may go on for a while after the access of its user was revoked.
    if call.caller.is_revoked() {
        return Err(CallError::Cancelled { sent: false });
    }
    let catalog = match &call.operation {
        Operation::CallTool(target) => Some(find_tool(hub, call, target).await?),
        // A method with an operation of its own is checked by layers under that operation alone.
        Operation::Other { method, .. } if Operation::is_typed(method) => {
            return Err(unknown("method", method));
        }
        _ => None,
    };
    let local = hub.local_tools(call.server());
    if let Some(tools) = local {
        return Box::pin(run_local(hub, &tools, call, emitter)).await.map(CallOutcome::Complete);
    }
    let managed = hub.server(call.server());
    let managed = &managed.ok_or_else(|| unknown("server", call.server().as_str()))?;
    let checked = catalog.map(|catalog| CheckedArguments {
        validators: &hub.validators,
        catalog,
        call,
        mode: managed.settings.validate,
    });
    if let Some(checked) = &checked {
        checked.before().await?;
    }
    let answer = pin!(remote(hub, managed, call, emitter)).await;
    if let Some(checked) = &checked {
        checked.after(&answer, emitter).await;
    }
    answer.map(|answer| outcome(&managed.id, call, answer))
}

/// Returns a catalog with the called tool, waiting for a server that may have it.
async fn find_tool(hub: &Inner, call: &Call, target: &Target) -> Result<Arc<Catalog>, CallError> {
    let catalog = hub.shared.catalog_for(&call.caller);
    if catalog.tools.find(target).is_some() {
        return Ok(catalog);
    }
    let Target { server, name } = target.clone();
    let missing = MissingName::of_server(server, call.caller.clone(), PrimitiveKind::Tools, &name);
    if Box::pin(hub.find_missing(missing)).await? {
        let current = hub.shared.catalog_for(&call.caller);
        if current.tools.find(target).is_some() {
            return Ok(current);
        }
    }
    Err(call.unknown(&catalog))
}

fn outcome(server: &ServerId, call: &Call, answer: ServerAnswer) -> CallOutcome {
    match answer {
        // A task that waits for answers says in its state what it asks.
        ServerAnswer::Complete(result) if call.method() == "tasks/get" => {
            CallOutcome::Complete(ToolResult::from_object(attributed_requests(server, result)))
        }
        ServerAnswer::Complete(result) => CallOutcome::Complete(ToolResult::from_object(result)),
        ServerAnswer::InputRequired(result) => CallOutcome::InputRequired(result),
        ServerAnswer::Task(task) => CallOutcome::Task(task),
    }
}

fn unknown(kind: &'static str, name: &str) -> CallError {
    CallError::Unknown { kind, name: name.to_owned(), nearest: Vec::new() }
}

fn refused(call: &Call, problems: Vec<String>) -> CallError {
    let tool = call.tool_target().map(ToString::to_string).unwrap_or_default();
    CallError::Arguments { tool, problems }
}

/// Runs a local tool. Its arguments are always validated, because it relies on its schema.
async fn run_local(
    hub: &Inner,
    tools: &[Arc<dyn LocalTool>],
    call: &Call,
    emitter: &StreamSender<CallEvent>,
) -> Result<ToolResult, CallError> {
    let target = call.tool_target().ok_or_else(|| unknown("method", &call.method()))?;
    let tool = tools.iter().find(|tool| tool.definition().name() == target.name);
    let tool = tool.ok_or_else(|| unknown("tool", &target.to_string()))?;
    let (schema, arguments) = (tool.definition().input_schema(), call.arguments());
    let checked = hub.validators.check(&schema, &arguments).await;
    checked.map_err(|problems| refused(call, problems))?;
    Ok(local::run(tool, call, emitter).await)
}

/// Builds the request to the server of a call.
fn request(call: &Call) -> OutgoingRequest {
    let mut request =
        OutgoingRequest::forward(call.method(), &call.params).postmark(call.postmark.clone());
    if let Some((member, name)) = call.operation.subject() {
        request = request.with_subject(member, name);
    }
    for (member, value) in &call.replaced {
        request = match *member {
            "_meta" => request.meta(value.to_object().unwrap_or_else(Object::empty)),
            member => request.with(member, value.clone()),
        };
    }
    if call.admission.is_some() {
        request = request.without_repeat();
    }
    request = wants_logs(request, call.log).identity(call.caller.id().to_shared());
    request = request.for_owner(call.caller.is_owner());
    if let Some(client) = &call.client {
        let declared = || client.offers.capabilities(consort_core::Revision::NEWEST_MODERN);
        request = request
            .questions(client.questions)
            .session(client.session.as_ref().map(ClientSession::id))
            .tasks(client.tasks)
            .capabilities(client.capabilities.clone().unwrap_or_else(declared));
    }
    if let Some(idle) = call.limits.idle {
        request = request.idle(idle);
    }
    if let Some(total) = call.limits.total {
        request = request.total(total);
    }
    request
}

/// Sets the log level that a modern server is asked for. The default is `info`, because a server may send no log
/// messages without a level.
fn wants_logs(request: OutgoingRequest, logs: LogDelivery) -> OutgoingRequest {
    match logs {
        LogDelivery::None => request,
        LogDelivery::Usual => request.log(LogLevel::Info),
        LogDelivery::From(level) => request.log(level),
    }
}

/// Sends a request to a server, and retries it where [`retry::again`] allows.
async fn remote(
    hub: &Inner,
    managed: &Arc<ManagedServer>,
    call: &Call,
    emitter: &StreamSender<CallEvent>,
) -> Result<ServerAnswer, CallError> {
    let request = request(call);
    let retry_wait = managed.settings.upkeep.retry_wait;
    let (mut n, begun, mut failed) = (1, Instant::now(), None);
    loop {
        let is_repeated = failed.is_some();
        let attempt = pin!(attempt(hub, managed, call, &request, is_repeated, emitter));
        let end = match attempt.await {
            Ok(end) => end,
            Err(Attempt::Unread(unread)) => {
                let error = failed.as_ref().expect("definitions are read again after a failure");
                let elapsed = begun.elapsed();
                let pause = retry::again(request.method(), error, n, elapsed, retry_wait, chance());
                tokio::time::sleep(pause.ok_or(unread)?).await;
                n += 1;
                continue;
            }
            Err(Attempt::Over(error)) => return Err(error),
        };
        match end {
            Ok(ServerAnswer::InputRequired(result)) => {
                return Ok(ServerAnswer::InputRequired(attributed_requests(&managed.id, result)));
            }
            Ok(answer) => return Ok(answer),
            Err(error) => {
                // The lock may say why its headers are others.
                let is_mismatch = call.admission.is_some() && n == 1 && error.is_header_mismatch();
                let elapsed = begun.elapsed();
                let pause =
                    retry::again(request.method(), &error, n, elapsed, retry_wait, chance());
                let Some(pause) = pause.or(is_mismatch.then_some(Duration::ZERO)) else {
                    return Err(explained(&managed.id, error));
                };
                tokio::time::sleep(pause).await;
                failed = Some(error);
                n += 1;
            }
        }
    }
}

/// The reason why a request was not sent.
enum Attempt {
    /// The definitions of the server could not be read again.
    Unread(CallError),
    /// The call has failed.
    Over(CallError),
}

impl From<CallError> for Attempt {
    fn from(error: CallError) -> Self {
        Self::Over(error)
    }
}

/// Sends a request to a server once, and returns the end of the exchange. `is_repeated` after an earlier one failed.
async fn attempt(
    hub: &Inner,
    managed: &Arc<ManagedServer>,
    call: &Call,
    request: &OutgoingRequest,
    is_repeated: bool,
    emitter: &StreamSender<CallEvent>,
) -> Result<Result<ServerAnswer, ClientCallError>, Attempt> {
    let party = call.client.as_ref().map(|it| ConnectionParty::of_client(&call.caller, it));
    let (upstream, probation) = match &party {
        Some(party) => pin!(lead(managed, party, request)).await?,
        None => (managed.main().await?, None),
    };
    let _in_use = managed.in_use();
    if let LogDelivery::From(level) = call.log
        && upstream.client.about().protocol.revision.era() == Era::Legacy
    {
        Box::pin(upstream.log(level)).await;
    }
    if let Some(admission) = &call.admission {
        // What answers now may be another process than what was asked first.
        if is_repeated {
            Box::pin(hub.read_definitions(managed)).await.map_err(Attempt::Unread)?;
        }
        admission.check()?;
    }
    let session = party.map(|party| party.session.map_or(STATELESS, ClientSession::id));
    let events = UpstreamEvents {
        call,
        upstream: &upstream,
        session,
        emitter,
        asked: AtomicBool::new(false),
    };
    let end = pin!(upstream.client.execute(request, &events)).await;
    if probation.is_some() && !events.asked.into_inner() && end.is_ok() {
        let most = managed.settings.limits.items;
        managed.silent.add(&subject(request), most);
    }
    Ok(end)
}

/// Receiver of the events of a request at its server: it translates them into those of the call.
struct UpstreamEvents<'a> {
    call: &'a Call,
    upstream: &'a UpstreamConnection,
    /// The session that owns the connection once the server has sent a request; absent if there is no client.
    session: Option<u64>,
    emitter: &'a StreamSender<CallEvent>,
    /// True once the server has sent a request.
    asked: AtomicBool,
}

impl CallEventSink for UpstreamEvents<'_> {
    fn put(&self, event: PendingCallEvent) {
        match &event {
            PendingCallEvent::Log(params) if !self.call.log.include(params) => return,
            PendingCallEvent::Question(_) => {
                self.asked.store(true, Ordering::Relaxed);
                self.upstream.probation.wake();
                if let Some(session) = self.session {
                    let _ = self.upstream.ownership.session.set(session);
                }
            }
            _ => {}
        }
        self.emitter.put(translated(self.call.server(), event));
    }

    fn is_received(&self) -> bool {
        self.emitter.is_received()
    }
}

/// Returns the connection for a request. Also returns its place in the probation, if it is not known whether the server
/// sends requests during it.
async fn lead(
    managed: &Arc<ManagedServer>,
    party: &ConnectionParty<'_>,
    request: &OutgoingRequest,
) -> Result<(UpstreamConnection, Option<ProbationCall>), CallError> {
    let mut party = *party;
    loop {
        let upstream = managed.upstream_for(&party).await?;
        let asks = || managed.sends_requests.load(Ordering::Relaxed);
        if asks()
            || party.is_alone
            || !party.offers.any()
            || upstream.client.about().protocol.revision.era() == Era::Modern
            || !upstream.client.has_shared_channel()
            || managed.silent.contains(&subject(request))
        {
            return Ok((upstream, None));
        }
        let session = party.session.map(ClientSession::id);
        match Box::pin(upstream.probation.enter(session, asks)).await {
            ProbationEntry::Admitted(call) => return Ok((upstream, Some(call))),
            ProbationEntry::Over => {}
            ProbationEntry::Busy => party.is_alone = true,
        }
    }
}

/// Returns the tool that a request calls, or its method.
fn subject(request: &OutgoingRequest) -> Cow<'_, str> {
    request.tool_name().unwrap_or(Cow::Borrowed(request.method()))
}
