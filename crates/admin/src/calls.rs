//! Calls: those in progress, recent ones, and the ledger.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::{Duration, SystemTime};

use consort_audit::ledger::{LedgerSearch, OutcomeClass, SearchResult};
use consort_audit::live_calls::{self, LiveCallEvent};
use consort_core::{Caller, RejectReason, Rights, ServerId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::call_statistics::{CallStatistics, is_failure, is_timed, micros};
use crate::ledger_search::search_ledger;
use crate::route::{
    AdminError, ApiRoute, JsonResponse, NoInput, RequestContext, get, parse_number,
};
use crate::state::AdminState;

/// Limit of calls in a response, and the default.
const MOST: [usize; 2] = [500, 100];

/// Limit of latencies reported per server.
const LATENCIES: usize = 60;

/// Value of the outcome filter for calls in progress.
const RUNNING: &str = "running";

pub(crate) fn routes() -> Vec<ApiRoute> {
    vec![
        get(
            "/api/calls",
            "Lists calls, newest first: those in progress, then ended ones up to the limit.",
            list,
        )
        .for_rights(Rights::Admin),
        get("/api/calls/{id}", "Returns one call with its timeline.", one)
            .for_rights(Rights::Admin),
        get("/api/stats", "Returns call counts and durations.", stats).for_rights(Rights::Admin),
    ]
}

/// A call, in progress or ended.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CallReport {
    /// Id of the call, also in the ledger.
    id: String,
    /// Start time.
    time: String,
    /// Caller.
    caller: String,
    /// Endpoint: `mcp`, `console`, or the name of a profile.
    endpoint: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    method: String,
    /// Name of the tool or prompt, or the URI.
    name: String,
    /// Outcome; absent while the call is in progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'static str>,
    /// True if the call succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    ok: Option<bool>,
    /// Duration in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_us: Option<u64>,
    /// Size of the arguments in bytes.
    bytes_in: u64,
    /// Size of the result in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_out: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<CallProgress>,
    /// Number of progress notifications.
    steps: u64,
}

/// Progress of a call, as reported by the server.
#[derive(Serialize, JsonSchema)]
struct CallProgress {
    progress: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// A call and its timeline.
#[derive(Serialize, JsonSchema)]
struct CallDetail {
    #[serde(flatten)]
    call: CallReport,
    /// Reason, if the call was rejected before it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    /// JSON-RPC error code of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<i64>,
    /// SHA-256 of the arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    /// Trace id.
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<String>,
    /// Events of the call; few for old calls.
    timeline: Vec<TimelineEvent>,
    /// Number of events omitted from the middle.
    #[serde(skip_serializing_if = "is_none")]
    omitted: u64,
}

/// One event of a call.
#[derive(Serialize, JsonSchema)]
struct TimelineEvent {
    /// Microseconds since the start.
    at_us: u64,
    #[schemars(extend("enum" = ["queued", "sent", "progress", "log", "question", "answer", "end"]))]
    event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

/// Returns true if a caller may read what a server said during a call: its own caller, and the owner.
fn may_read(viewer: &Caller, call: &live_calls::LiveCall) -> bool {
    viewer.is_owner() || viewer.id() == call.intent().caller.id()
}

impl CallReport {
    /// Makes the report of a call for a caller of the admin API.
    pub(crate) fn new(call: &live_calls::LiveCall, viewer: &Caller) -> Self {
        let may_read = may_read(viewer, call);
        let (intent, standing) = (call.intent(), call.standing());
        let step = |step: live_calls::ReportedProgress| CallProgress {
            progress: step.progress,
            total: step.total,
            message: step.message.filter(|_| may_read).map(Into::into),
        };
        Self {
            id: call_id(call.id()),
            time: call.time(),
            caller: call.caller(),
            endpoint: intent.endpoint.to_string(),
            server: intent.server.as_ref().map(ToString::to_string),
            method: intent.method.to_string(),
            name: intent.name.clone(),
            outcome: standing.end.map(|end| end.class.as_str()),
            ok: standing.end.map(|end| end.class == OutcomeClass::Ok),
            duration_us: standing.end.and_then(|end| end.took).map(micros),
            bytes_in: intent.arguments.bytes,
            bytes_out: standing.end.and_then(|end| end.bytes),
            progress: standing.step.map(step),
            steps: standing.steps,
        }
    }
}

impl CallDetail {
    fn new(call: &live_calls::LiveCall, viewer: &Caller) -> Self {
        let may_read = may_read(viewer, call);
        let live_calls::CallTimeline { moments, left_out } = call.timeline();
        let moment = |moment: live_calls::TimedCallEvent| TimelineEvent {
            at_us: micros(moment.at),
            event: event_name(moment.event),
            detail: moment
                .detail
                .filter(|_| may_read || !is_of_server(moment.event))
                .map(Into::into),
        };
        Self {
            call: CallReport::new(call, viewer),
            reason: call.end().and_then(|end| end.class.reason()).map(RejectReason::as_str),
            code: call.end().and_then(|end| end.class.code()),
            digest: call.digest().map(|digest| hex(digest)),
            trace: call.intent().trace.map(|trace| hex(trace.as_bytes())),
            timeline: moments.into_iter().map(moment).collect(),
            omitted: left_out,
        }
    }
}

/// Returns true if the detail of an event is a text of the server.
fn is_of_server(what: LiveCallEvent) -> bool {
    matches!(what, LiveCallEvent::Progress | LiveCallEvent::Log | LiveCallEvent::Question)
}

fn event_name(what: LiveCallEvent) -> &'static str {
    match what {
        LiveCallEvent::Queued => "queued",
        LiveCallEvent::Sent => "sent",
        LiveCallEvent::Progress => "progress",
        LiveCallEvent::Log => "log",
        LiveCallEvent::Question => "question",
        LiveCallEvent::Answer => "answer",
        LiveCallEvent::End => "end",
    }
}

/// Filter of calls.
#[derive(Deserialize, JsonSchema)]
struct CallQuery {
    /// Maximum number of ended calls; 100 if absent, at most 500.
    #[serde(default, deserialize_with = "parse_number")]
    limit: Option<u64>,
    /// Only calls of this caller: `ada`, or `client:ada`.
    caller: Option<String>,
    /// Only calls of this server.
    server: Option<String>,
    /// Only calls whose name contains this.
    name: Option<String>,
    /// Only calls with this outcome, or `running`.
    outcome: Option<String>,
    /// Only calls that began before the call of this id.
    before: Option<String>,
}

/// A page of calls.
#[derive(Serialize, JsonSchema)]
struct CallPage {
    calls: Vec<CallReport>,
    /// Value of `before` for the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<String>,
}

async fn list(
    state: AdminState,
    context: RequestContext,
    filter: CallQuery,
) -> Result<JsonResponse<CallPage>, AdminError> {
    let limit = filter.limit.map_or(MOST[1], |limit| usize::try_from(limit).unwrap_or(MOST[0]));
    let most = limit.clamp(1, MOST[0]);
    let before = match &filter.before {
        Some(text) => Some(parse_call_id(text).ok_or_else(|| {
            AdminError::bad_request(format!("`{text}` is not a call id"))
                .hint("use `more` of the previous page")
        })?),
        None => None,
    };
    if let Some(outcome) = &filter.outcome
        && outcome != RUNNING
        && !OutcomeClass::WORDS.contains(&outcome.as_str())
    {
        let known = OutcomeClass::WORDS.join(", ");
        let refusal = AdminError::bad_request(format!("unknown outcome `{outcome}`"));
        return Err(refusal.hint(format!("expected one of {known}, or {RUNNING}")));
    }
    let viewer = context.caller()?;
    let running_only = filter.outcome.as_deref() == Some(RUNNING);
    let mut filter = LedgerSearch {
        server: filter.server,
        name: filter.name,
        caller: filter.caller,
        outcome: filter.outcome.filter(|_| !running_only),
        before,
        since: None,
        most,
        look: state.active().limits.console.records,
    };
    let feed = &state.0.records.feed;
    let running = feed.running();
    let mut rows: Vec<CallReport> = Vec::new();
    if before.is_none() {
        let matching = running.iter().filter(|call| call.matches(&filter));
        rows.extend(matching.map(|call| CallReport::new(call, &viewer)));
    }
    if running_only {
        return Ok(JsonResponse(CallPage { calls: rows, more: None }));
    }
    let mut over: BTreeMap<i64, live_calls::LiveCall> = feed
        .ended()
        .into_iter()
        .filter(|call| call.matches(&filter))
        .map(|call| (call.id(), call))
        .collect();
    // One more than wanted says whether there are more.
    filter.most += 1;
    let SearchResult { calls: found, more: stopped } =
        search_ledger(&state.0.records, filter).await?;
    for row in found {
        over.entry(row.micros).or_insert_with(|| row.into());
    }
    let running: BTreeSet<i64> = running.iter().map(live_calls::LiveCall::id).collect();
    let page: Vec<&live_calls::LiveCall> = over
        .values()
        .rev()
        .filter(|call| !running.contains(&call.id()) && stopped.is_none_or(|at| call.id() >= at))
        .collect();
    let more = match page.get(most) {
        Some(_) => page.get(most - 1).map(|last| last.id()),
        None => stopped,
    };
    rows.extend(page.into_iter().take(most).map(|call| CallReport::new(call, &viewer)));
    Ok(JsonResponse(CallPage { calls: rows, more: more.map(call_id) }))
}

async fn one(
    state: AdminState,
    context: RequestContext,
    _: NoInput,
) -> Result<JsonResponse<CallDetail>, AdminError> {
    let gone = || AdminError::not_found("unknown call").hint("its record may have been dropped");
    let number = context.at.first().and_then(|text| parse_call_id(text)).ok_or_else(gone)?;
    let viewer = context.caller()?;
    if let Some(call) = state.0.records.feed.get(number) {
        return Ok(JsonResponse(CallDetail::new(&call, &viewer)));
    }
    let before = number.checked_add(1);
    let filter = LedgerSearch {
        since: Some(number),
        before,
        most: 1,
        look: usize::MAX,
        ..LedgerSearch::default()
    };
    let row = search_ledger(&state.0.records, filter).await?.calls.pop().ok_or_else(gone)?;
    Ok(JsonResponse(CallDetail::new(&live_calls::LiveCall::from(row), &viewer)))
}

/// Time window.
#[derive(Deserialize, JsonSchema)]
struct StatisticsQuery {
    /// Length of the window in minutes, 1 to 1440; 60 if absent.
    #[serde(default, deserialize_with = "parse_number")]
    minutes: Option<u64>,
}

async fn stats(
    state: AdminState,
    _: RequestContext,
    window: StatisticsQuery,
) -> Result<JsonResponse<CallStatistics>, AdminError> {
    let minutes = window.minutes.unwrap_or(60);
    if !(1..=1440).contains(&minutes) {
        return Err(AdminError::bad_request("`minutes` must be from 1 to 1440"));
    }
    let (inner, most) = (&state.0, state.active().limits.console.records);
    Ok(JsonResponse(inner.statistics.stats(&inner.records, minutes, most).await?))
}

/// Recent calls of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub(crate) struct RecentCalls {
    /// Durations of its last calls in milliseconds, oldest first.
    pub(crate) latencies: Vec<f64>,
    /// Number of calls in the last hour.
    pub(crate) calls: usize,
    /// Number of those that failed.
    pub(crate) errors: usize,
}

/// Recent calls of a server, as far as the feed of all servers holds them.
pub(crate) fn recent_calls(state: &AdminState, server: &ServerId) -> RecentCalls {
    let hour_ago = SystemTime::now() - Duration::from_hours(1);
    let since = hour_ago.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_micros();
    let mut recent = RecentCalls::default();
    for call in state.0.records.feed.ended() {
        let Some(end) = call.end().filter(|_| call.intent().server.as_ref() == Some(server)) else {
            continue;
        };
        if u128::try_from(call.id()).is_ok_and(|begun| begun >= since) {
            recent.calls += 1;
            recent.errors += usize::from(is_failure(end.class));
        }
        if let Some(took) = end.took.filter(|_| is_timed(end.class)) {
            let micros = u32::try_from(micros(took)).unwrap_or(u32::MAX);
            recent.latencies.push(f64::from(micros) / 1000.0);
        }
    }
    let more = recent.latencies.len().saturating_sub(LATENCIES);
    recent.latencies.drain(..more);
    recent
}

/// Id of a call.
pub(crate) fn call_id(number: i64) -> String {
    format!("c{number:x}")
}

fn parse_call_id(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('c')?;
    let number = i64::from_str_radix(digits, 16).ok()?;
    // Of each, one way to write it.
    (call_id(number) == text).then_some(number)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_as_the_call_it_names() {
        for number in [0, 1, 1_785_240_000_123_456, i64::MAX] {
            assert_eq!(parse_call_id(&call_id(number)), Some(number));
        }
        for text in ["", "c", "c-1", "c+1", "C1", "c01", "1", "cffffffffffffffff"] {
            assert_eq!(parse_call_id(text), None, "{text}");
        }
    }
}
