//! The same load over every lane, in turns: calls per second, latency, processor time.

use consort_protocol::Era;
use serde::Serialize;

use super::field::{By, Field, Lane, Upstream, order};
use super::options::Options;
use crate::Failure;
use crate::load::{self, Load, Turn, Work};
use crate::statistics::{median, ratio};

/// Target of a gateway relative to the raw proxy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Target {
    /// Maximum ratio of processor time per call.
    pub(super) times_raw_cpu: f64,
    /// Minimum ratio of calls per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) times_raw_rate: Option<f64>,
}

/// A section: its target, and a row for each era and number of clients.
#[derive(Debug, Serialize)]
pub(super) struct Comparison {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) target: Option<Target>,
    pub(super) rows: Vec<Row>,
}

#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) client: Era,
    pub(super) clients: u32,
    pub(super) results: Vec<Outcome>,
}

/// Results of one lane: medians over the rounds, and medians of each round's ratio.
#[derive(Debug, Serialize)]
pub(super) struct Outcome {
    pub(super) by: By,
    pub(super) server: Upstream,
    /// In all rounds, every one with the right answer.
    pub(super) calls: usize,
    pub(super) calls_per_second: f64,
    pub(super) p50_microseconds: f64,
    pub(super) p99_microseconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cpu_microseconds: Option<f64>,
    pub(super) times_raw_rate: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) times_raw_cpu: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) met: Option<bool>,
}

/// Work and number of the clients.
pub(super) struct Course<'a> {
    pub(super) work: Work,
    pub(super) clients: &'a [u32],
    pub(super) target: Option<Target>,
    /// Relative cost of a call, where calls and not time end a turn.
    pub(super) weight: u32,
}

/// Runs the course over the `wanted` lanes.
pub(super) async fn measure(
    field: &Field,
    course: &Course<'_>,
    options: &Options,
    wanted: impl Fn(&Lane, Era) -> bool,
) -> Result<Comparison, Failure> {
    let mut rows = Vec::new();
    for client in [Era::Legacy, Era::Modern] {
        let mut lanes = field.lanes(client);
        lanes.retain(|lane| wanted(lane, client));
        let lanes: Vec<_> = lanes.into_iter().map(|lane| (lane, course.work.clone())).collect();
        rows.extend(self::rows(&lanes, client, course, options).await?);
    }
    Ok(Comparison { target: course.target, rows })
}

/// Returns a row for each number of clients, over these lanes, each with its own work.
pub(super) async fn rows(
    lanes: &[(Lane, Work)],
    client: Era,
    course: &Course<'_>,
    options: &Options,
) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for &clients in course.clients {
        let calls = options.calls.div_ceil(course.weight);
        let turn = Turn { era: client, clients, time: options.time(), calls };
        let mut loads = vec![Vec::new(); lanes.len()];
        for round in 0..options.rounds {
            for n in order(round, lanes.len()) {
                let (lane, work) = &lanes[n];
                let load = load::run(&lane.place, work, turn).await;
                loads[n].push(load.map_err(|error| failed(lane, client, error))?);
            }
        }
        rows.push(Row { client, clients, results: outcomes(lanes, &loads, course.target) });
    }
    Ok(rows)
}

/// A failure with the lane it happened on.
pub(super) fn failed(lane: &Lane, client: Era, error: impl std::fmt::Display) -> Failure {
    let by = lane.by.as_str();
    format!("{by}, {client} client, server: {}: {error}", lane.upstream).into()
}

fn outcomes(lanes: &[(Lane, Work)], loads: &[Vec<Load>], target: Option<Target>) -> Vec<Outcome> {
    let rates = |loads: &[Load]| loads.iter().map(|load| load.calls_per_second).collect::<Vec<_>>();
    let costs =
        |loads: &[Load]| loads.iter().map(|load| load.cpu_microseconds).collect::<Option<Vec<_>>>();
    let raw = lanes.iter().position(|(lane, _)| lane.by == By::Raw).map(|n| &loads[n]);
    let raw_rates = raw.map(|loads| rates(loads)).unwrap_or_default();
    let raw_costs = raw.and_then(|loads| costs(loads));
    let one = |((lane, _), loads): (&(Lane, Work), &Vec<Load>)| {
        let times_raw_rate = ratio(&rates(loads), &raw_rates);
        let times_raw_cpu =
            costs(loads).zip(raw_costs.as_ref()).map(|(costs, raw)| ratio(&costs, raw));
        Outcome {
            by: lane.by,
            server: lane.upstream,
            calls: loads.iter().map(|load| load.calls).sum(),
            calls_per_second: median(rates(loads)),
            p50_microseconds: median(loads.iter().map(|load| load.p50_microseconds)),
            p99_microseconds: median(loads.iter().map(|load| load.p99_microseconds)),
            cpu_microseconds: costs(loads).map(median),
            times_raw_rate,
            times_raw_cpu,
            met: target
                .filter(|_| lane.by == By::Consort)
                .map(|target| target.is_met(times_raw_rate, times_raw_cpu)),
        }
    };
    lanes.iter().zip(loads).map(one).collect()
}

impl Target {
    fn is_met(self, rate: f64, cpu: Option<f64>) -> bool {
        cpu.is_some_and(|cpu| cpu <= self.times_raw_cpu)
            && self.times_raw_rate.is_none_or(|least| rate >= least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_met_by_cost_and_rate_together() {
        let target = Target { times_raw_cpu: 2.0, times_raw_rate: Some(0.7) };
        assert!(target.is_met(0.7, Some(2.0)));
        assert!(!target.is_met(0.69, Some(1.0)));
        assert!(!target.is_met(1.0, Some(2.01)));
        assert!(!target.is_met(1.0, None));
        assert!(Target { times_raw_rate: None, ..target }.is_met(0.1, Some(1.0)));
    }
}
