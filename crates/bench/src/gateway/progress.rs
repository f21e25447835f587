//! Delay of a progress event from the server that wrote it to the client.

use std::time::Duration;

use consort_protocol::{Era, Json};
use serde::Serialize;
use tokio::time::timeout;

use super::compare::failed;
use super::field::{By, Field, PREFIX, Upstream, order};
use super::options::Options;
use crate::Failure;
use crate::load::{Ask, Client, Place, Progress, right};
use crate::statistics::{median, monotonic};

/// Limit of the additional delay of the first event through a gateway.
pub(super) const TARGET: Duration = Duration::from_micros(200);

/// Events per call: the first is sent with the head of the response, the others alone.
pub(super) const STEPS: usize = 3;

/// Duration of a call in milliseconds.
const MILLISECONDS: u32 = 6;

/// Time limit of one call.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) client: Era,
    pub(super) results: Vec<Outcome>,
}

/// Results of one lane: medians over all calls of a round, then over the rounds.
#[derive(Debug, Serialize)]
pub(super) struct Outcome {
    pub(super) by: By,
    pub(super) server: Upstream,
    pub(super) calls: usize,
    pub(super) first_microseconds: f64,
    pub(super) later_microseconds: f64,
    /// Median of the additional delay compared with the direct route of the same round.
    pub(super) first_beyond_direct_microseconds: f64,
    pub(super) later_beyond_direct_microseconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) met: Option<bool>,
}

/// The delays of one turn, each the median of its calls, in microseconds.
#[derive(Clone, Copy, Debug)]
struct Delays {
    calls: usize,
    first: f64,
    later: f64,
}

pub(super) async fn measure(field: &Field, options: &Options) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for client in [Era::Legacy, Era::Modern] {
        let lanes = field.lanes(client);
        let mut delays = vec![Vec::new(); lanes.len()];
        for round in 0..options.rounds {
            for n in order(round, lanes.len()) {
                let lane = &lanes[n];
                let turn = turn(&lane.place, client, options).await;
                delays[n].push(turn.map_err(|error| failed(lane, client, error))?);
            }
        }
        let direct = lanes.iter().position(|lane| lane.by == By::Direct).ok_or("no direct lane")?;
        let direct = delays[direct].clone();
        let results = lanes.iter().zip(&delays).map(|(lane, delays)| {
            let beyond = |delay: fn(&Delays) -> f64| {
                median(delays.iter().zip(&direct).map(|(here, there)| delay(here) - delay(there)))
            };
            let first_beyond = beyond(|delays| delays.first);
            Outcome {
                by: lane.by,
                server: lane.upstream,
                calls: delays.iter().map(|delays| delays.calls).sum(),
                first_microseconds: median(delays.iter().map(|delays| delays.first)),
                later_microseconds: median(delays.iter().map(|delays| delays.later)),
                first_beyond_direct_microseconds: first_beyond,
                later_beyond_direct_microseconds: beyond(|delays| delays.later),
                met: (lane.by == By::Consort).then(|| first_beyond <= TARGET.as_secs_f64() * 1e6),
            }
        });
        rows.push(Row { client, results: results.collect() });
    }
    Ok(rows)
}

/// Makes calls one after the other, for one turn.
async fn turn(place: &Place, era: Era, options: &Options) -> Result<Delays, Failure> {
    let calls = (options.seconds * 1000 / (MILLISECONDS + 1)).min(options.calls);
    let mut client = Client::connect(&place.url, era).await?;
    // The first call opens connections and is not counted.
    timed(&mut client).await?;
    let (mut first, mut later) = (Vec::new(), Vec::new());
    for _ in 0..calls {
        let delays = timed(&mut client).await?;
        first.push(delays[0]);
        later.extend_from_slice(&delays[1..]);
    }
    client.close().await?;
    Ok(Delays { calls: first.len(), first: median(first), later: median(later) })
}

/// Returns the delay of each event of one call, in microseconds.
async fn timed(client: &mut Client) -> Result<Vec<f64>, Failure> {
    let (steps, delays) = heard(client, PREFIX).await?;
    if steps == [Some(1.0), Some(2.0), Some(3.0)] {
        Ok(delays)
    } else {
        Err(format!("expected {STEPS} progress events in order, got {steps:?}").into())
    }
}

/// Returns the steps that arrive during one call of the slow tool, with their delays in microseconds.
pub(super) async fn heard(
    client: &mut Client,
    prefix: &str,
) -> Result<(Vec<Option<f64>>, Vec<f64>), Failure> {
    let tool = format!("{prefix}slow");
    let params = format!(r#""name":"{tool}","arguments":{{"ms":{MILLISECONDS},"steps":{STEPS}}}"#);
    let ask =
        Ask { name: Some(&tool), progress: Progress::Reported, ..Ask::new("tools/call", &params) };
    let (mut steps, mut delays) = (Vec::new(), Vec::new());
    let call = client.ask(ask, |event| {
        let now = monotonic();
        let written = event.params.text("message");
        let written = written.as_deref().and_then(|text| text.strip_prefix("t=")?.parse().ok());
        if let (Some(written), Some(step)) = (written, event.params.get("progress")) {
            let delay = now.saturating_sub(Duration::from_nanos(written));
            steps.push(step.number());
            delays.push(delay.as_secs_f64() * 1e6);
        }
    });
    let result = timeout(PATIENCE, call).await.map_err(|_| "a call has no end")??;
    right(&result, Json::from(serde_json::json!([{"type": "text", "text": "done"}])).as_bytes())?;
    Ok((steps, delays))
}
