//! Results of all contestants, compared with the raw proxy and with Consort before the same kind of server.

use serde::Serialize;

use super::super::field::By;
use super::lane::Lane;
use crate::load::Load;
use crate::statistics::{median, ratio};

/// Results of one contestant: medians over the rounds, and medians of each round's ratio.
#[derive(Debug, Serialize)]
pub(super) struct Standing {
    pub(super) lane: Lane,
    /// In all rounds, every one with the right answer.
    pub(super) calls: usize,
    pub(super) calls_per_second: f64,
    pub(super) p50_microseconds: f64,
    pub(super) p99_microseconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cpu_microseconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) times_raw: Option<Times>,
    /// Compared with Consort before the same kind of server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) times_consort: Option<Times>,
}

/// Ratios of call rate and processor time to those of another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Times {
    pub(super) rate: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cpu: Option<f64>,
}

/// Returns the results of all contestants; each has a load per round.
pub(super) fn of(loads: &[(Lane, Vec<Load>)]) -> Vec<Standing> {
    let raw = loads.iter().find(|(lane, _)| lane.by == By::Raw.as_str());
    let standing = |(lane, own): &(Lane, Vec<Load>)| {
        let consort = loads
            .iter()
            .find(|(other, _)| other.by == By::Consort.as_str() && other.server == lane.server);
        let times = |base: Option<&(Lane, Vec<Load>)>| base.map(|(_, base)| times(own, base));
        Standing {
            lane: lane.clone(),
            calls: own.iter().map(|load| load.calls).sum(),
            calls_per_second: median(rates(own)),
            p50_microseconds: median(own.iter().map(|load| load.p50_microseconds)),
            p99_microseconds: median(own.iter().map(|load| load.p99_microseconds)),
            cpu_microseconds: costs(own).map(median),
            times_raw: times(raw),
            times_consort: times(consort),
        }
    };
    loads.iter().map(standing).collect()
}

fn times(own: &[Load], base: &[Load]) -> Times {
    let cpu = costs(own).zip(costs(base)).map(|(own, base)| ratio(&own, &base));
    Times { rate: ratio(&rates(own), &rates(base)), cpu }
}

fn rates(loads: &[Load]) -> Vec<f64> {
    loads.iter().map(|load| load.calls_per_second).collect()
}

fn costs(loads: &[Load]) -> Option<Vec<f64>> {
    loads.iter().map(|load| load.cpu_microseconds).collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::field::Via;
    use super::*;

    fn load(rate: f64, cpu: Option<f64>) -> Load {
        Load {
            calls: 10,
            calls_per_second: rate,
            p50_microseconds: 1.0,
            p99_microseconds: 2.0,
            cpu_microseconds: cpu,
        }
    }

    #[test]
    fn everybody_is_compared_with_consort_before_the_same_kind_of_server() {
        let lane = |by: &str, server| Lane { by: by.to_owned(), server };
        let loads = [
            (lane("direct", Via::Http), vec![load(200.0, None)]),
            (lane("raw proxy", Via::Http), vec![load(100.0, Some(10.0))]),
            (lane("consort", Via::Stdio), vec![load(80.0, Some(20.0))]),
            (lane("hub", Via::Stdio), vec![load(8.0, Some(600.0))]),
            (lane("hub", Via::Http), vec![load(5.0, Some(500.0))]),
        ];
        let standings = of(&loads);
        let times: Vec<_> =
            standings.iter().map(|standing| (standing.times_raw, standing.times_consort)).collect();
        let both = |rate, cpu| Some(Times { rate, cpu: Some(cpu) });
        assert_eq!(
            times,
            [
                (Some(Times { rate: 2.0, cpu: None }), None),
                (both(1.0, 1.0), None),
                (both(0.8, 2.0), both(1.0, 1.0)),
                (both(0.08, 60.0), both(0.1, 30.0)),
                (both(0.05, 50.0), None),
            ]
        );
    }
}
