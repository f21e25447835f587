//! The life of one call: looked up, checked, sent, its events passed on in order.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use consort_core::{
    CallError, Event, Invocation, Json, LocalTool, LogLevel, Logs, MissingName, Object, Outcome,
    Passage, Reporter, ServerId, ShelfKind, Target, ToolResult, attributed, attributed_error,
    attributed_requests,
};
use consort_wire::{Answer, Emitter, Era, Request};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::connection::{Connection, chain, chance};
use crate::hub::Inner;
use crate::retry;

/// Events a local tool may report before somebody takes them; further ones are dropped, counted.
const REPORTED: usize = 1024;

/// Runs a call to its end.
pub(crate) async fn run(
    hub: &Inner,
    invocation: Invocation,
    emitter: &Emitter<Event>,
) -> Result<Outcome, CallError> {
    let mut catalog = hub.shared.catalog();
    let target = &invocation.target;
    if catalog.tools.find(target).is_none() {
        let Target { server, name } = target.clone();
        let caller = invocation.caller.clone();
        let missing = MissingName::of_server(server, caller, ShelfKind::Tools, &name);
        if Box::pin(hub.find_missing(missing)).await? {
            catalog = hub.shared.catalog();
        }
    }
    let unknown = || catalog.unknown(ShelfKind::Tools, &target.to_string());
    let entry = catalog.tools.find(target).ok_or_else(unknown)?;
    hub.validators
        .check(&entry.tool().input_schema(), &invocation.arguments)
        .await
        .map_err(|problems| CallError::Arguments { tool: entry.id(), problems })?;
    let route = entry.route.clone();
    if let Some(tools) = hub.local.get(&route.server) {
        let tool = tools.iter().find(|tool| tool.definition().name() == route.name);
        let tool = tool.ok_or_else(unknown)?;
        return Ok(Outcome::Complete(local(tool, invocation.arguments, emitter).await));
    }
    let connection = &hub.connection(&route.server).ok_or_else(unknown)?;
    let mut request =
        Request::tool(&route.name, &invocation.arguments).postmark(invocation.postmark);
    if let Some(meta) = &invocation.meta {
        request = request.meta(meta.clone());
    }
    request = wants_logs(request, invocation.log).identity(&invocation.caller.name);
    let log = invocation.log;
    let passage = invocation.offers.map(|offers| Passage {
        offers,
        log,
        ..Passage::new(invocation.caller, route.server, "tools/call", Object::empty())
    });
    if let Some(passage) = &passage {
        let revision = consort_core::Revision::V2026_07_28;
        request = request
            .questions(passage.questions)
            .capabilities(passage.offers.capabilities(revision));
    }
    if let Some(idle) = invocation.idle {
        request = request.idle(idle);
    }
    if let Some(total) = invocation.total {
        request = request.total(total);
    }
    remote(connection, passage.as_ref(), log, request, emitter).await.map(|answer| match answer {
        Answer::Complete(result) => Outcome::Complete(ToolResult::from_object(result)),
        Answer::InputRequired(result) => Outcome::InputRequired(result),
        Answer::Task(task) => Outcome::Task(task),
    })
}

/// A request that asks a modern server for log messages. Without a level it is asked from `info` on, because it
/// may send none unasked.
pub(crate) fn wants_logs(request: Request, logs: Logs) -> Request {
    match logs {
        Logs::None => request,
        Logs::Usual => request.log(LogLevel::Info),
        Logs::From(level) => request.log(level),
    }
}

/// Sends a request to a server, again where the law allows that.
pub(crate) async fn remote(
    connection: &Arc<Connection>,
    passage: Option<&Passage>,
    logs: Logs,
    request: Request,
    emitter: &Emitter<Event>,
) -> Result<Answer, CallError> {
    let (mut n, begun) = (1, Instant::now());
    loop {
        let line = match passage {
            Some(passage) => connection.line_for(&passage.caller, &passage.offers).await?,
            None => connection.main().await?,
        };
        let in_use = connection.in_use();
        if let Logs::From(level) = logs
            && line.client.about().found.revision.era() == Era::Legacy
        {
            Box::pin(line.log(level)).await;
        }
        let mut call = line.client.call(request.clone());
        let end = loop {
            match call.next().await {
                Some(consort_wire::Event::End(end)) => break end,
                Some(consort_wire::Event::Log(params)) if !logs.include(&params) => {}
                Some(event) => emitter.emit(translated(&connection.id, event)).await,
                None => unreachable!("an end comes before nothing"),
            }
        };
        drop(in_use);
        match end {
            Ok(Answer::InputRequired(result)) => {
                return Ok(Answer::InputRequired(attributed_requests(&connection.id, result)));
            }
            Ok(answer) => return Ok(answer),
            Err(error) => {
                let Some(pause) =
                    retry::again(request.method(), &error, n, begun.elapsed(), chance())
                else {
                    return Err(explained(&connection.id, error));
                };
                tokio::time::sleep(pause).await;
                n += 1;
            }
        }
    }
}

/// A local tool, run: an error or a panic is its result.
pub(crate) async fn local(
    tool: &Arc<dyn LocalTool>,
    arguments: Json,
    emitter: &Emitter<Event>,
) -> ToolResult {
    let (sender, mut reported) = mpsc::channel(REPORTED);
    let reporter = Reporter::new(move |event| {
        let _ = sender.try_send(event);
    });
    let tool = Arc::clone(tool);
    let working = match std::panic::catch_unwind(AssertUnwindSafe(|| tool.run(arguments, reporter)))
    {
        Ok(working) => working,
        Err(panic) => return panicked(&*panic),
    };
    let mut working = Caught(working);
    loop {
        tokio::select! {
            biased;
            Some(event) = reported.recv() => emitter.emit(event).await,
            end = &mut working => {
                while let Ok(event) = reported.try_recv() {
                    emitter.emit(event).await;
                }
                return match end {
                    Ok(Ok(result)) => result,
                    Ok(Err(error)) => ToolResult::error(error),
                    Err(panic) => panicked(&*panic),
                };
            }
        }
    }
}

/// A future whose panic is its result.
struct Caught<T>(Pin<Box<dyn Future<Output = T> + Send>>);

impl<T> Future for Caught<T> {
    type Output = std::thread::Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match std::panic::catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(cx))) {
            Ok(Poll::Ready(value)) => Poll::Ready(Ok(value)),
            Ok(Poll::Pending) => Poll::Pending,
            Err(panic) => Poll::Ready(Err(panic)),
        }
    }
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> ToolResult {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    ToolResult::error(format!("the tool panicked: {}", text.as_deref().unwrap_or("no message")))
}

fn translated(server: &ServerId, event: consort_wire::Event) -> Event {
    match event {
        consort_wire::Event::Progress(progress) => Event::Progress(progress),
        consort_wire::Event::Log(params) => Event::Log(params),
        consort_wire::Event::Question(mut asked) => {
            asked.params = attributed(server, &asked.method, asked.params);
            Event::Question(asked)
        }
        consort_wire::Event::Task(task) => Event::Task(task),
        consort_wire::Event::Notification(body) => {
            Event::Notification { method: body.method, params: body.params }
        }
        consort_wire::Event::Skipped(count) => Event::Skipped(count),
        _ => unreachable!("an end is handled where it arrives"),
    }
}

/// A failure of the wire in the words of callers.
pub(crate) fn explained(server: &ServerId, error: consort_wire::CallError) -> CallError {
    use consort_wire::CallError as Wire;
    let server = server.clone();
    match error {
        Wire::Refused(error) => CallError::Execution {
            raw: attributed_error(&server, error.raw),
            server,
            message: error.message,
            code: error.code,
        },
        Wire::TimedOut { kind, limit, sent } => {
            CallError::Timeout { server, limit, idle: kind == consort_wire::Limit::Idle, sent }
        }
        Wire::Cancelled { sent } => CallError::Cancelled { sent },
        Wire::NotSent(
            reason @ (consort_wire::NotSent::Queue { .. } | consort_wire::NotSent::Busy { .. }),
        ) => CallError::Overloaded { server, reason: reason.to_string() },
        error @ (Wire::NotSent(_) | Wire::Unauthorized { .. }) => {
            let detail = error.detail();
            CallError::Connection { server, source: consort_core::Source::new(error), detail }
        }
        error @ Wire::NoRoom { .. } => {
            let detail = error.detail();
            CallError::OutcomeUnknown { server, reason: error.to_string(), detail }
        }
        Wire::Unknown(closed) => CallError::OutcomeUnknown {
            server,
            reason: closed.to_string(),
            detail: closed.detail(),
        },
        Wire::Status { status, retry_after, .. }
            if status == 429 || status == 503 && retry_after.is_some() =>
        {
            CallError::Busy { server, status, retry_after }
        }
        Wire::Status { status: 408 | 500.., .. } => {
            let detail = error.detail();
            CallError::OutcomeUnknown { server, reason: chain(&error), detail }
        }
        other => CallError::Protocol { server, reason: other.to_string() },
    }
}
