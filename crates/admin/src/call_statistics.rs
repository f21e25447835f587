//! Statistics of calls: counts and durations.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use consort_audit::ledger::{LedgerSearch, OutcomeClass};
use consort_audit::{CallSinks, live_calls};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;

use crate::admin_error::AdminError;
use crate::ledger_search::search_ledger;
use crate::timestamp::iso_time;

/// Number of time buckets.
const BUCKETS: usize = 60;

/// Limit of reported tools: those with the most calls.
const TOOLS: usize = 200;

/// Lifetime of data read from the ledger.
const CACHE_TIME: Duration = Duration::from_secs(3);

/// Numbers and durations of calls. A call counts at its start time, once it ended. An error is a call that failed and
/// was not cancelled. Durations are of calls that were sent and not cancelled.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CallStatistics {
    /// Start time of the first bucket.
    from: String,
    /// Length of a bucket in seconds.
    step_s: u64,
    /// Buckets, oldest first; the last is incomplete.
    buckets: Vec<TimeBucket>,
    /// Servers, those with the most calls first.
    servers: Vec<CallTotals>,
    /// Tools, those with the most calls first.
    tools: Vec<CallTotals>,
}

/// Calls of one time interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
struct TimeBucket {
    calls: u64,
    errors: u64,
    /// Median duration in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    p50_us: Option<u64>,
    /// 95th percentile of the duration in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    p95_us: Option<u64>,
}

/// Calls of a server or of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
struct CallTotals {
    server: String,
    /// Name of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    calls: u64,
    errors: u64,
    /// Median duration in microseconds; 0 if no call reached the server.
    p50_us: u64,
    /// 95th percentile of the duration in microseconds.
    p95_us: u64,
    max_us: u64,
}

/// The facts of a call needed for statistics.
#[derive(Clone, Debug)]
struct CallSample {
    started: i64,
    class: OutcomeClass,
    duration: Option<u64>,
    of: Arc<CallOrigin>,
}

/// Server and tool of a call; no tool if it was another request.
#[derive(Debug, PartialEq, Eq, Hash)]
struct CallOrigin {
    server: Option<String>,
    tool: Option<String>,
}

/// Cached result of the last read of the ledger.
#[derive(Default)]
pub(crate) struct StatisticsCache(Mutex<Option<CachedSamples>>);

struct CachedSamples {
    minutes: u64,
    at: Instant,
    samples: Arc<Vec<CallSample>>,
}

/// Returns true if the feed holds all calls since that time.
fn reaches(ring: &[live_calls::LiveCall], most: usize, from: i64) -> bool {
    let end = |call: &live_calls::LiveCall| {
        let took = micros(call.end().and_then(|end| end.took).unwrap_or_default());
        call.id().saturating_add(i64::try_from(took).unwrap_or(i64::MAX))
    };
    // What fell out ended before those that are there.
    ring.len() >= most && ring.first().is_some_and(|oldest| end(oldest) <= from)
}

impl StatisticsCache {
    /// Returns the calls in the ledger since that time, at most `most`.
    async fn read(
        &self,
        records: &CallSinks,
        minutes: u64,
        from: i64,
        most: usize,
    ) -> Result<Arc<Vec<CallSample>>, AdminError> {
        let cached = || self.0.lock();
        if let Some(read) = cached().as_ref()
            && read.minutes == minutes
            && read.at.elapsed() < CACHE_TIME
        {
            return Ok(Arc::clone(&read.samples));
        }
        let search =
            LedgerSearch { since: Some(from), most, look: most, ..LedgerSearch::default() };
        let rows = search_ledger(records, search).await?.calls;
        let mut names = HashSet::new();
        let calls = rows.into_iter().map(live_calls::LiveCall::from);
        let samples: Vec<CallSample> = calls.filter_map(|call| sample(&call, &mut names)).collect();
        let samples = Arc::new(samples);
        *cached() =
            Some(CachedSamples { minutes, at: Instant::now(), samples: Arc::clone(&samples) });
        Ok(samples)
    }

    /// Returns the statistics of the last minutes, from memory and, as far as that does not reach, from the ledger.
    pub(crate) async fn stats(
        &self,
        records: &CallSinks,
        minutes: u64,
        most: usize,
    ) -> Result<CallStatistics, AdminError> {
        let ring = records.feed.ended();
        let frame = TimeWindow::new(minutes, SystemTime::now());
        let mut samples: BTreeMap<i64, CallSample> = BTreeMap::new();
        if !reaches(&ring, records.feed.capacity(), frame.from) {
            for sample in self.read(records, minutes, frame.from, most).await?.iter() {
                samples.insert(sample.started, sample.clone());
            }
        }
        let mut names = HashSet::new();
        let news = ring.iter().filter_map(|call| sample(call, &mut names));
        samples.extend(news.map(|sample| (sample.started, sample)));
        let samples: Vec<CallSample> = samples.into_values().collect();
        Ok(frame.stats(&samples))
    }
}

fn sample(call: &live_calls::LiveCall, names: &mut HashSet<Arc<CallOrigin>>) -> Option<CallSample> {
    let (intent, end) = (call.intent(), call.end()?);
    let tool = (intent.method == "tools/call").then(|| intent.name.clone());
    let of = CallOrigin { server: intent.server.as_ref().map(ToString::to_string), tool };
    let of = match names.get(&of) {
        Some(known) => Arc::clone(known),
        None => {
            let of = Arc::new(of);
            names.insert(Arc::clone(&of));
            of
        }
    };
    let took = end.took.filter(|_| is_timed(end.class)).map(micros);
    Some(CallSample { started: call.id(), class: end.class, duration: took, of })
}

/// The reported time window. It is aligned to whole buckets, so that a call stays in its bucket.
struct TimeWindow {
    /// Microseconds since 1970.
    from: i64,
    step_s: u64,
}

impl TimeWindow {
    fn new(minutes: u64, now: SystemTime) -> Self {
        let step_s = minutes * 60 / BUCKETS as u64;
        let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let end = (now / step_s + 1) * step_s;
        let from = end.saturating_sub(step_s * BUCKETS as u64) * 1_000_000;
        Self { from: i64::try_from(from).unwrap_or(i64::MAX), step_s }
    }

    fn stats(&self, samples: &[CallSample]) -> CallStatistics {
        let step = i64::try_from(self.step_s * 1_000_000).unwrap_or(i64::MAX);
        let mut buckets = vec![CallTally::default(); BUCKETS];
        let (mut servers, mut tools) = (BTreeMap::new(), BTreeMap::new());
        for sample in samples.iter().filter(|sample| sample.started >= self.from) {
            let at = usize::try_from((sample.started - self.from) / step).unwrap_or(usize::MAX);
            buckets[at.min(BUCKETS - 1)].add(sample);
            let Some(server) = &sample.of.server else { continue };
            servers.entry((server, None)).or_insert_with(CallTally::default).add(sample);
            if let Some(tool) = &sample.of.tool {
                tools.entry((server, Some(tool))).or_insert_with(CallTally::default).add(sample);
            }
        }
        let since = Duration::from_micros(u64::try_from(self.from).unwrap_or(0));
        let mut tools = sort_totals(tools);
        tools.truncate(TOOLS);
        CallStatistics {
            from: iso_time(SystemTime::UNIX_EPOCH + since),
            step_s: self.step_s,
            buckets: buckets.into_iter().map(CallTally::bucket).collect(),
            servers: sort_totals(servers),
            tools,
        }
    }
}

/// Returns the totals, those with the most calls first.
fn sort_totals(tallies: BTreeMap<(&String, Option<&String>), CallTally>) -> Vec<CallTotals> {
    let mut all: Vec<CallTotals> = tallies
        .into_iter()
        .map(|((server, name), mut tally)| {
            tally.durations.sort_unstable();
            CallTotals {
                server: server.clone(),
                name: name.cloned(),
                calls: tally.calls,
                errors: tally.errors,
                p50_us: tally.percentile(50).unwrap_or_default(),
                p95_us: tally.percentile(95).unwrap_or_default(),
                max_us: tally.durations.last().copied().unwrap_or_default(),
            }
        })
        .collect();
    // Those with as many stay in the order of their names.
    all.sort_by_key(|measured| std::cmp::Reverse(measured.calls));
    all
}

#[derive(Clone, Debug, Default)]
struct CallTally {
    calls: u64,
    errors: u64,
    durations: Vec<u64>,
}

impl CallTally {
    fn add(&mut self, sample: &CallSample) {
        self.calls += 1;
        self.errors += u64::from(is_failure(sample.class));
        self.durations.extend(sample.duration);
    }

    fn bucket(mut self) -> TimeBucket {
        self.durations.sort_unstable();
        let (p50_us, p95_us) = (self.percentile(50), self.percentile(95));
        TimeBucket { calls: self.calls, errors: self.errors, p50_us, p95_us }
    }

    /// Returns a percentile of the durations.
    fn percentile(&self, percent: usize) -> Option<u64> {
        let rank = (self.durations.len() * percent).div_ceil(100);
        self.durations.get(rank.checked_sub(1)?).copied()
    }
}

/// Returns true if a call counts as an error: it failed, and its caller did not cancel it.
pub(crate) fn is_failure(class: OutcomeClass) -> bool {
    !matches!(class, OutcomeClass::Ok | OutcomeClass::Cancelled { .. })
}

/// Returns true if the duration of a call is one of its server: it was sent, and not cancelled.
pub(crate) fn is_timed(class: OutcomeClass) -> bool {
    match class {
        OutcomeClass::Ok
        | OutcomeClass::ToolError
        | OutcomeClass::Error { .. }
        | OutcomeClass::OutcomeUnknown => true,
        OutcomeClass::Rejected { .. } | OutcomeClass::NotSent | OutcomeClass::Cancelled { .. } => {
            false
        }
    }
}

pub(crate) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(
        begun: i64,
        class: OutcomeClass,
        took: Option<u64>,
        tool: Option<&str>,
    ) -> CallSample {
        let of = CallOrigin { server: Some("demo".to_owned()), tool: tool.map(str::to_owned) };
        CallSample { started: begun, class, duration: took, of: Arc::new(of) }
    }

    #[test]
    fn what_is_told_adds_up() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_hours(10);
        let frame = TimeWindow::new(60, now);
        assert_eq!((frame.step_s, frame.from), (60, (36_060 - 3600) * 1_000_000));
        let at = |second: i64| second * 1_000_000;
        let (ok, gone) = (OutcomeClass::Ok, OutcomeClass::Cancelled { sent: None });
        let samples: Vec<CallSample> = (1..=20)
            .map(|n| sample(at(36_000), ok, Some(n), Some("echo")))
            .chain([
                sample(at(32_459), ok, Some(1), Some("echo")),
                sample(at(32_460), OutcomeClass::ToolError, Some(500), Some("add")),
                sample(at(35_999), gone, None, Some("add")),
                sample(at(35_999), ok, Some(3), None),
            ])
            .collect();
        let stats = frame.stats(&samples);
        assert_eq!(stats.from, "1970-01-01T09:01:00Z");
        assert_eq!(stats.buckets.len(), 60);
        let bucket = |calls, errors, p50_us, p95_us| TimeBucket { calls, errors, p50_us, p95_us };
        assert_eq!(stats.buckets[0], bucket(1, 1, Some(500), Some(500)));
        assert_eq!(stats.buckets[58], bucket(2, 0, Some(3), Some(3)));
        assert_eq!(stats.buckets[59], bucket(20, 0, Some(10), Some(19)));
        let measured = |name: Option<&str>, calls, errors, p50_us, p95_us, max_us| CallTotals {
            server: "demo".to_owned(),
            name: name.map(str::to_owned),
            calls,
            errors,
            p50_us,
            p95_us,
            max_us,
        };
        assert_eq!(stats.servers, [measured(None, 23, 1, 10, 20, 500)]);
        assert_eq!(
            stats.tools,
            [measured(Some("echo"), 20, 0, 10, 19, 20), measured(Some("add"), 2, 1, 500, 500, 500)]
        );
    }

    #[test]
    fn a_window_of_a_minute_has_steps_of_a_second() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_millis(90_500);
        let frame = TimeWindow::new(1, now);
        assert_eq!((frame.step_s, frame.from), (1, 31_000_000));
    }

    #[test]
    fn who_left_made_no_error() {
        let counted = [
            OutcomeClass::Ok,
            OutcomeClass::Cancelled { sent: None },
            OutcomeClass::ToolError,
            OutcomeClass::NotSent,
        ];
        assert_eq!(counted.map(is_failure), [false, false, true, true]);
    }
}
