//! Calls: those in progress, recent ones, and the ledger.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::{Duration, SystemTime};

use consort_core::{RejectReason, ServerId};
use consort_gateway::feed::{self, What};
use consort_gateway::ledger::{Class, Found, Search};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::call_statistics::{Stats, failed, micros, was_served};
use crate::ledger_search::look;
use crate::route::{Asked, Nothing, Refusal, Route, Told, get, number};
use crate::state::Console;

/// Limit of calls in a response, and the default.
const MOST: [usize; 2] = [500, 100];

/// Limit of latencies reported per server.
const LATENCIES: usize = 60;

/// Value of the outcome filter for calls in progress.
const RUNNING: &str = "running";

pub(crate) fn routes() -> Vec<Route> {
    vec![
        get(
            "/api/calls",
            "Calls, the last first: those in progress, then as many as wanted of those that are over.",
            list,
        ),
        get("/api/calls/{id}", "One call, and what happened when.", one),
        get("/api/stats", "How many calls there were, and how long they took.", stats),
    ]
}

/// A call, in progress or ended.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Call {
    /// Id of the call, also in the ledger.
    id: String,
    /// Start time.
    time: String,
    /// Caller.
    caller: String,
    /// Endpoint: `mcp`, `console`, or the name of a profile.
    front: String,
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
    took_us: Option<u64>,
    /// Size of the arguments in bytes.
    bytes_in: u64,
    /// Size of the result in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_out: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<Step>,
    /// Number of progress notifications.
    steps: u64,
}

/// Progress of a call, as reported by the server.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "CallProgress")]
struct Step {
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
    call: Call,
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
    timeline: Vec<Moment>,
    /// Number of events omitted from the middle.
    #[serde(skip_serializing_if = "is_none")]
    left_out: u64,
}

/// One event of a call.
#[derive(Serialize, JsonSchema)]
struct Moment {
    /// Microseconds since the start.
    at_us: u64,
    #[schemars(extend("enum" = ["queued", "sent", "progress", "log", "question", "answer", "end"]))]
    what: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

impl From<&feed::Call> for Call {
    fn from(call: &feed::Call) -> Self {
        let (intent, standing) = (call.intent(), call.standing());
        let step = |step: feed::Step| Step {
            progress: step.progress,
            total: step.total,
            message: step.message.map(Into::into),
        };
        Self {
            id: id(call.id()),
            time: call.time(),
            caller: call.caller(),
            front: intent.front.to_string(),
            server: intent.server.as_ref().map(ToString::to_string),
            method: intent.method.to_string(),
            name: intent.name.clone(),
            outcome: standing.end.map(|end| end.class.as_str()),
            ok: standing.end.map(|end| end.class == Class::Ok),
            took_us: standing.end.and_then(|end| end.took).map(micros),
            bytes_in: intent.arguments.bytes,
            bytes_out: standing.end.and_then(|end| end.bytes),
            progress: standing.step.map(step),
            steps: standing.steps,
        }
    }
}

impl From<&feed::Call> for CallDetail {
    fn from(call: &feed::Call) -> Self {
        let feed::Timeline { moments, left_out } = call.timeline();
        let moment = |moment: feed::Moment| Moment {
            at_us: micros(moment.at),
            what: word(moment.what),
            detail: moment.detail.map(Into::into),
        };
        Self {
            call: call.into(),
            reason: call.end().and_then(|end| end.class.reason()).map(RejectReason::as_str),
            code: call.end().and_then(|end| end.class.code()),
            digest: call.digest().map(|digest| hex(digest)),
            trace: call.intent().trace.map(|trace| hex(trace.as_bytes())),
            timeline: moments.into_iter().map(moment).collect(),
            left_out,
        }
    }
}

fn word(what: What) -> &'static str {
    match what {
        What::Queued => "queued",
        What::Sent => "sent",
        What::Progress => "progress",
        What::Log => "log",
        What::Question => "question",
        What::Answer => "answer",
        What::End => "end",
    }
}

/// Filter of calls.
#[derive(Deserialize, JsonSchema)]
struct Wanted {
    /// Maximum number of ended calls; 100 if absent, at most 500.
    #[serde(default, deserialize_with = "number")]
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
struct Page {
    calls: Vec<Call>,
    /// Value of `before` for the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<String>,
}

async fn list(console: Console, _: Asked, wanted: Wanted) -> Result<Told<Page>, Refusal> {
    let limit = wanted.limit.map_or(MOST[1], |limit| usize::try_from(limit).unwrap_or(MOST[0]));
    let most = limit.clamp(1, MOST[0]);
    let before = match &wanted.before {
        Some(text) => Some(read_id(text).ok_or_else(|| {
            Refusal::bad(format!("`{text}` is the id of no call"))
                .hint("use `more` of the last page")
        })?),
        None => None,
    };
    if let Some(outcome) = &wanted.outcome
        && outcome != RUNNING
        && !Class::WORDS.contains(&outcome.as_str())
    {
        let known = Class::WORDS.join(", ");
        let refusal = Refusal::bad(format!("`{outcome}` is no outcome"));
        return Err(refusal.hint(format!("one of {known}, or {RUNNING}")));
    }
    let running_only = wanted.outcome.as_deref() == Some(RUNNING);
    let mut wanted = Search {
        server: wanted.server,
        name: wanted.name,
        caller: wanted.caller,
        outcome: wanted.outcome.filter(|_| !running_only),
        before,
        since: None,
        most,
        look: console.scene().limits.console.records,
    };
    let feed = &console.0.records.feed;
    let running = feed.running();
    let mut told: Vec<Call> = Vec::new();
    if before.is_none() {
        told.extend(running.iter().filter(|call| wanted.fits(call)).map(Call::from));
    }
    if running_only {
        return Ok(Told(Page { calls: told, more: None }));
    }
    let mut over: BTreeMap<i64, feed::Call> = feed
        .ended()
        .into_iter()
        .filter(|call| wanted.fits(call))
        .map(|call| (call.id(), call))
        .collect();
    // One more than wanted says whether there are more.
    wanted.most += 1;
    let Found { calls: rows, more: stopped } = look(&console.0.records, wanted).await?;
    for row in rows {
        over.entry(row.micros).or_insert_with(|| row.into());
    }
    let running: BTreeSet<i64> = running.iter().map(feed::Call::id).collect();
    let page: Vec<&feed::Call> = over
        .values()
        .rev()
        .filter(|call| !running.contains(&call.id()) && stopped.is_none_or(|at| call.id() >= at))
        .collect();
    let more = match page.get(most) {
        Some(_) => page.get(most - 1).map(|last| last.id()),
        None => stopped,
    };
    told.extend(page.into_iter().take(most).map(Call::from));
    Ok(Told(Page { calls: told, more: more.map(id) }))
}

async fn one(console: Console, asked: Asked, _: Nothing) -> Result<Told<CallDetail>, Refusal> {
    let gone = || Refusal::missing("no such call is known").hint("it may be too long ago");
    let number = asked.at.first().and_then(|text| read_id(text)).ok_or_else(gone)?;
    if let Some(call) = console.0.records.feed.get(number) {
        return Ok(Told((&call).into()));
    }
    let before = number.checked_add(1);
    let wanted =
        Search { since: Some(number), before, most: 1, look: usize::MAX, ..Search::default() };
    let row = look(&console.0.records, wanted).await?.calls.pop().ok_or_else(gone)?;
    Ok(Told((&feed::Call::from(row)).into()))
}

/// Time window.
#[derive(Deserialize, JsonSchema)]
struct Window {
    /// Length of the window in minutes, 1 to 1440; 60 if absent.
    #[serde(default, deserialize_with = "number")]
    minutes: Option<u64>,
}

async fn stats(console: Console, _: Asked, window: Window) -> Result<Told<Stats>, Refusal> {
    let minutes = window.minutes.unwrap_or(60);
    if !(1..=1440).contains(&minutes) {
        return Err(Refusal::bad("`minutes` is from 1 to 1440"));
    }
    let (inner, most) = (&console.0, console.scene().limits.console.records);
    Ok(Told(inner.past.stats(&inner.records, minutes, most).await?))
}

/// Recent calls of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Recent {
    /// Durations of its last calls in milliseconds, oldest first.
    pub(crate) latencies: Vec<f64>,
    /// Number of calls in the last hour.
    pub(crate) calls: usize,
    /// Number of those that failed.
    pub(crate) errors: usize,
}

/// Recent calls of a server, as far as the feed of all servers holds them.
pub(crate) fn recent(console: &Console, server: &ServerId) -> Recent {
    let hour_ago = SystemTime::now() - Duration::from_hours(1);
    let since = hour_ago.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_micros();
    let mut recent = Recent::default();
    for call in console.0.records.feed.ended() {
        let Some(end) = call.end().filter(|_| call.intent().server.as_ref() == Some(server)) else {
            continue;
        };
        if u128::try_from(call.id()).is_ok_and(|begun| begun >= since) {
            recent.calls += 1;
            recent.errors += usize::from(failed(end.class));
        }
        if let Some(took) = end.took.filter(|_| was_served(end.class)) {
            let micros = u32::try_from(micros(took)).unwrap_or(u32::MAX);
            recent.latencies.push(f64::from(micros) / 1000.0);
        }
    }
    let more = recent.latencies.len().saturating_sub(LATENCIES);
    recent.latencies.drain(..more);
    recent
}

/// Id of a call.
pub(crate) fn id(number: i64) -> String {
    format!("c{number:x}")
}

fn read_id(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('c')?;
    let number = i64::from_str_radix(digits, 16).ok()?;
    // Of each, one way to write it.
    (id(number) == text).then_some(number)
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
            assert_eq!(read_id(&id(number)), Some(number));
        }
        for text in ["", "c", "c-1", "c+1", "C1", "c01", "1", "cffffffffffffffff"] {
            assert_eq!(read_id(text), None, "{text}");
        }
    }
}
