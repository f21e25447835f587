//! A closed load: clients that send a request over HTTP as soon as the last is answered, for a while, and check every
//! answer.

use std::time::{Duration, Instant};

use consort_protocol::Era;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::Failure;
use crate::charge;

mod check;
mod client;
mod events;
mod http;
mod open;
mod sse;

pub(crate) use check::{Listing, Work, right};
pub(crate) use client::{Ask, Client, Progress};
pub(crate) use open::{Offer, Taken, offer};

/// Time limit for the last answers of a load; then the run fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// Target of a load.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) url: String,
    /// The process whose processor time is measured.
    pub(crate) charged: Option<u32>,
}

/// Amount of load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pub(crate) era: Era,
    pub(crate) clients: u32,
    pub(crate) time: Duration,
    /// Maximum number of calls, over all clients.
    pub(crate) calls: u32,
}

/// Results of a load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) calls: usize,
    pub(crate) calls_per_second: f64,
    pub(crate) p50_microseconds: f64,
    pub(crate) p99_microseconds: f64,
    /// Processor time of the measured process per call.
    pub(crate) cpu_microseconds: Option<f64>,
}

/// A client with its number, and the count of its calls.
#[derive(Debug)]
struct Lane {
    client: Client,
    number: u32,
    made: u64,
    latencies: Vec<Duration>,
}

/// Runs a load; the first wrong answer ends it.
pub(crate) async fn run(place: &Place, work: &Work, turn: Turn) -> Result<Load, Failure> {
    let limit = turn.time * 2 + PATIENCE;
    timeout(limit, unlimited(place, work, turn))
        .await
        .map_err(|_| format!("no answer within {} s", limit.as_secs()))?
}

async fn unlimited(place: &Place, work: &Work, turn: Turn) -> Result<Load, Failure> {
    let mut lanes = Vec::new();
    for number in 0..turn.clients {
        let client = Client::connect(&place.url, turn.era).await?;
        lanes.push(Lane { client, number, made: 0, latencies: Vec::new() });
    }
    // Connections, buffers and allocators reach their usual size before anything counts.
    let warm_up = Turn { time: turn.time / 5, calls: turn.calls.div_ceil(5), ..turn };
    let mut lanes = together(lanes, work, warm_up).await?;
    for lane in &mut lanes {
        lane.latencies.clear();
    }
    let cpu = place.charged.map(charge::processor_time).transpose()?;
    let begun = Instant::now();
    let lanes = together(lanes, work, turn).await?;
    let seconds = begun.elapsed().as_secs_f64();
    let spent = match (place.charged, cpu) {
        (Some(process), Some(before)) => Some(charge::processor_time(process)?.since(&before)),
        _ => None,
    };
    if spent.is_some_and(|spent| spent.is_zero()) {
        return Err("the process that is charged did nothing: it only wraps another".into());
    }
    let mut latencies = Vec::new();
    for lane in lanes {
        latencies.extend_from_slice(&lane.latencies);
        lane.client.close().await?;
    }
    latencies.sort_unstable();
    let count = f64::from(u32::try_from(latencies.len())?);
    Ok(Load {
        calls: latencies.len(),
        calls_per_second: count / seconds,
        p50_microseconds: percentile(&latencies, 50),
        p99_microseconds: percentile(&latencies, 99),
        cpu_microseconds: spent.map(|spent| spent.as_secs_f64() * 1e6 / count),
    })
}

/// Runs all clients at once, until time or calls are used up.
async fn together(lanes: Vec<Lane>, work: &Work, turn: Turn) -> Result<Vec<Lane>, Failure> {
    let until = Instant::now() + turn.time;
    let share = turn.calls.div_ceil(turn.clients);
    let mut tasks = JoinSet::new();
    for mut lane in lanes {
        let work = work.clone();
        tasks.spawn(async move {
            for _ in 0..share {
                let begun = Instant::now();
                if begun >= until {
                    break;
                }
                work.once(&mut lane.client, lane.number, lane.made).await?;
                lane.made += 1;
                lane.latencies.push(begun.elapsed());
            }
            Ok::<_, Failure>(lane)
        });
    }
    let mut lanes = Vec::new();
    while let Some(lane) = tasks.join_next().await {
        lanes.push(lane??);
    }
    Ok(lanes)
}

/// Returns a percentile in microseconds; the latencies are sorted.
pub(crate) fn percentile(latencies: &[Duration], percent: usize) -> f64 {
    let last = latencies.len().saturating_sub(1);
    let latency = latencies.get(last * percent / 100);
    latency.map_or(f64::NAN, |latency| latency.as_secs_f64() * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_latencies() {
        let latencies: Vec<_> = (1..=101).map(Duration::from_micros).collect();
        let is = |percent, value: f64| (percentile(&latencies, percent) - value).abs() < 1e-9;
        assert!(is(50, 51.0) && is(99, 100.0) && is(0, 1.0));
        assert!(percentile(&[], 50).is_nan());
    }
}
