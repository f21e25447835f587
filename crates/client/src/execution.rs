//! The lifecycle of one call: from a place among those in flight to its end, on any transport.

mod input_requests;
mod task;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use consort_protocol::deadline::Deadline;
use consort_protocol::{Object, ServerRequestHandling, TaskHandling};

use crate::call::timer::CallTimer;
use crate::call::{CallEventSink, ServerAnswer};
use crate::connection::SharedConnection;
use crate::connection::gate::CallPermit;
use crate::error::{ClientCallError, CloseReason, NotSent, TimeLimitKind};
use crate::exchange::context::CallExecution;
use crate::execution::input_requests::QUOTED;
use crate::request::dialect::RequestDialect;
use crate::request::{FollowUpRound, OutgoingRequest};
use crate::{list, session};

/// Runs a call to its end, within its limits.
pub(crate) async fn run(
    link: &Arc<SharedConnection>,
    id: u64,
    request: &OutgoingRequest,
    events: &dyn CallEventSink,
) -> Result<ServerAnswer, ClientCallError> {
    let settings = &link.settings;
    let limits = || settings.tools.get(request.tool_name()?.as_ref()).copied();
    let tool = if settings.tools.is_empty() { None } else { limits() }.unwrap_or_default();
    let idle = request.idle.or(tool.idle).unwrap_or(settings.times.idle);
    let total = request.total.or(tool.total).unwrap_or(settings.times.total);
    let pulse = Arc::new(CallTimer::default());
    let run = CallExecution::new(link, request, Some(events), &pulse);
    // In place: a future that is named first and awaited later is kept twice.
    let mut work = pin!(async {
        let _place = match link.gate.try_enter() {
            Some(place) => place,
            None => Box::pin(enter(link, request, &pulse, idle)).await?,
        };
        pulse.beat();
        pin!(run.rounds(id)).await
    });
    // An answer that is there counts, even if the time is up.
    tokio::select! {
        biased;
        end = &mut work => end,
        () = request.cancelled() => Err(ClientCallError::Cancelled { sent: run.tickets.left() }),
        () = link.stop.cancelled() => {
            let closed = link.calls.closed().unwrap_or(CloseReason::Ours);
            Err(ClientCallError::closed(closed, run.tickets.left()))
        }
        kind = pulse.stopped(idle, total, link.settings.times.late) => {
            let limit = if kind == TimeLimitKind::Idle { idle } else { total };
            Err(ClientCallError::TimedOut { kind, limit, sent: run.tickets.left() })
        }
    }
}

/// Waits for a place among the calls in flight. Time in the queue does not count as idle time.
async fn enter(
    link: &SharedConnection,
    request: &OutgoingRequest,
    pulse: &CallTimer,
    idle: Duration,
) -> Result<CallPermit, NotSent> {
    let mut entering = pin!(link.gate.enter(request.identity.as_ref()));
    loop {
        tokio::select! {
            biased;
            place = &mut entering => return place,
            () = Deadline::after(idle / 2) => pulse.beat(),
        }
    }
}

/// Runs a subscription, which has no limits but the connection's.
pub(crate) async fn endless(
    link: &Arc<SharedConnection>,
    id: u64,
    request: &OutgoingRequest,
    events: &dyn CallEventSink,
) -> Result<ServerAnswer, ClientCallError> {
    let pulse = Arc::default();
    let run = CallExecution::new(link, request, Some(events), &pulse);
    let dialect = link.dialect();
    tokio::select! {
        biased;
        end = run.exchange(id, &dialect, None) => end.map(ServerAnswer::Complete),
        () = link.stop.cancelled() => {
            Err(ClientCallError::closed(link.calls.closed().unwrap_or(CloseReason::Ours), run.tickets.left()))
        }
    }
}

impl CallExecution<'_> {
    async fn rounds(&self, first: u64) -> Result<ServerAnswer, ClientCallError> {
        let limit = self.link.settings.limits.rounds;
        let (mut id, mut round) = (first, None);
        for _ in 0..=limit {
            let (dialect, result) = pin!(self.attempt(id, round.as_ref())).await?;
            match kind(&dialect, &result) {
                ResultKind::Complete => return Ok(ServerAnswer::Complete(result)),
                ResultKind::Task if self.request.tasks == TaskHandling::Follow => {
                    return Box::pin(task::follow(self, &dialect, id, result)).await;
                }
                ResultKind::Task => return Ok(ServerAnswer::Task(result)),
                ResultKind::InputRequired
                    if self.request.questions == ServerRequestHandling::Return =>
                {
                    return Ok(ServerAnswer::InputRequired(result));
                }
                ResultKind::InputRequired => {
                    round = Some(Box::pin(self.answers(first, &result)).await?);
                }
                ResultKind::Unknown(kind) => {
                    let kind: String = kind.chars().take(QUOTED).collect();
                    let kind = kind.escape_debug();
                    return Err(ClientCallError::Malformed(format!(
                        "unknown result type `{kind}`"
                    )));
                }
            }
            id = self.link.next_id();
        }
        Err(ClientCallError::Rounds { rounds: limit })
    }

    /// Makes one exchange, repeated once if the cause of its failure can be fixed.
    async fn attempt(
        &self,
        id: u64,
        round: Option<&FollowUpRound>,
    ) -> Result<(Arc<RequestDialect>, Object), ClientCallError> {
        let dialect = self.link.dialect();
        let session = self.link.transport.session_number();
        let end = pin!(self.exchange(id, &dialect, round)).await;
        match end {
            Ok(result) => Ok((dialect, result)),
            Err(error) => {
                let is_mended = Box::pin(self.mends(&dialect, &error, session)).await;
                if !is_mended || !self.request.repeats {
                    return Err(error);
                }
                let dialect = self.link.dialect();
                let again = Box::pin(self.exchange(self.link.next_id(), &dialect, round));
                Ok((Arc::clone(&dialect), again.await?))
            }
        }
    }

    /// Fixes the cause of a refusal, if possible. Returns true if the request may then be repeated.
    async fn mends(&self, dialect: &RequestDialect, error: &ClientCallError, session: u64) -> bool {
        let Some(http) = self.link.transport.http() else {
            return false;
        };
        match error {
            // The tool's definition changed, and with it the headers it wants. Nothing has run.
            error if error.is_header_mismatch() && dialect.is_modern() => {
                self.request.tool_name().is_some() && list::tools_again(self.link).await
            }
            // A server that refuses the session has not looked at the request.
            ClientCallError::NotSent(NotSent::SessionRefused) => {
                session::renew(self.link, http, session).await.is_ok()
            }
            _ => false,
        }
    }
}

/// Kind of a result.
enum ResultKind {
    Complete,
    InputRequired,
    Task,
    Unknown(String),
}

fn kind(dialect: &RequestDialect, result: &Object) -> ResultKind {
    if !dialect.is_modern() {
        let created = || {
            result
                .get("task")
                .and_then(|task| task.to_object())
                .is_some_and(|task| task.get("taskId").is_some())
        };
        return if result.get("content").is_none() && created() {
            ResultKind::Task
        } else {
            ResultKind::Complete
        };
    }
    match result.text("resultType").as_deref() {
        None | Some("complete") => ResultKind::Complete,
        Some("input_required") => ResultKind::InputRequired,
        Some("task") => ResultKind::Task,
        Some(other) => ResultKind::Unknown(other.chars().take(40).collect()),
    }
}
