//! A soak test at half of a gateway's capacity: servers die, clients disconnect, the config changes, and its resources
//! return to their initial level.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use consort_protocol::Era;
use serde::Serialize;
use tokio::time::sleep;

use crate::Failure;
use crate::chance::Chance;
use crate::charge;
use crate::gateway::Consort;
use crate::load::{self, Offer, Taken, Turn};
use crate::options::{Format, USAGE, number};
use crate::report::table;
use crate::results;

mod stage;

use stage::{Happened, Stage};

/// The load, as a fraction of the gateway's capacity.
const PART: f64 = 0.5;

/// Tolerated growth of its resources.
const GROWN_TIMES: f64 = 1.1;
const GROWN_MEBIBYTES: f64 = 32.0;

/// Time limits for it to become idle; connections to servers are kept for a few seconds.
const REST: Duration = Duration::from_millis(4500);
const CALM: Duration = Duration::from_secs(2);
const RESTLESS: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(250);

/// Samples of a run, and the time between two of them.
const SAMPLES: u32 = 30;
const LEAST: Duration = Duration::from_secs(2);

/// Average pause between two events.
const PAUSE: Duration = Duration::from_secs(5);

const CLIENTS: usize = 512;
const SESSIONS: usize = 32;
const PATIENCE: Duration = Duration::from_secs(30);

/// Options of the test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) format: Format,
    pub(crate) time: Duration,
    /// Seed of the random numbers.
    pub(crate) seed: Option<u64>,
    pub(crate) consort: Consort,
}

impl Options {
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut options = Self {
            format: Format::People,
            time: Duration::from_mins(5),
            seed: None,
            consort: Consort::Beside,
        };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--json" => options.format = Format::Json,
                "--minutes" => {
                    let minutes = number(&word, words.next(), 24 * 60)?;
                    options.time = Duration::from_mins(minutes.into());
                }
                "--seconds" => {
                    let seconds = number(&word, words.next(), 3600)?;
                    options.time = Duration::from_secs(seconds.into());
                }
                "--seed" => options.seed = Some(number(&word, words.next(), u32::MAX)?.into()),
                "--consort" => {
                    options.consort = Consort::At(words.next().ok_or(USAGE)?.into());
                }
                _ => return Err(format!("unknown option `{word}`\n{USAGE}").into()),
            }
        }
        Ok(options)
    }
}

#[derive(Debug, Serialize)]
struct Report {
    seed: u64,
    capacity: f64,
    happened: Happened,
    samples: Vec<Sample>,
    before: Held,
    after: Held,
    /// Processes that the gateway left behind.
    left: usize,
    broken: Vec<String>,
}

/// Resources of a process.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Held {
    mebibytes: f64,
    descriptors: usize,
    children: usize,
}

/// A part of the run.
#[derive(Debug, Serialize)]
struct Sample {
    second: u64,
    calls_per_second: f64,
    p99_milliseconds: f64,
    refused: usize,
    failed: usize,
    lost: usize,
    wrong: usize,
    #[serde(flatten)]
    held: Held,
}

/// Soaks a gateway; it is an error if its resources do not return to their initial level.
pub(crate) fn soak(options: &Options) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    let seed = options.seed.unwrap_or(u64::from(clock.subsec_nanos()) % 100_000);
    let report = runtime
        .block_on(measure(options, seed))
        .map_err(|error| format!("with seed {seed}: {error}"))?;
    let text = match options.format {
        Format::Json => serde_json::to_string(&report)?,
        Format::People => report.to_text(options),
    };
    results::publish(&text)?;
    if report.broken.is_empty() {
        Ok(())
    } else {
        Err(format!("with seed {seed}: it did not come back to rest").into())
    }
}

async fn measure(options: &Options, seed: u64) -> Result<Report, Failure> {
    let consort = options.consort.program()?.ok_or("nothing to soak")?;
    let mut chance = Chance::new(seed);
    let mut stage = Stage::open(&consort).await?;
    let gateway = stage.gateway.pid();
    let url = stage.gateway.url().to_owned();
    let work = Stage::work();
    let time = (options.time / 20).clamp(Duration::from_millis(500), Duration::from_secs(3));
    let turn = Turn { era: Era::Modern, clients: 32, time, calls: 1_000_000 };
    let capacity = load::run(&stage.gateway.free(), &work, turn).await?.calls_per_second;
    // Whatever is made once is made before anything counts.
    stage.everything(&mut chance).await?;
    stage.settled().await?;
    sleep(REST).await;
    let before = calm(gateway).await?;

    let interval = (options.time / SAMPLES).max(LEAST).min(options.time);
    let begun = Instant::now();
    let loaded = async {
        let mut samples = Vec::new();
        while begun.elapsed() < options.time {
            // A session is there until it is old, so legacy clients are few.
            let (era, clients) = match samples.len() % 2 {
                0 => (Era::Modern, CLIENTS),
                _ => (Era::Legacy, SESSIONS),
            };
            let offer =
                Offer { era, rate: capacity * PART, time: interval, clients, patience: PATIENCE };
            let looked = async {
                sleep(interval / 2).await;
                held(gateway)
            };
            let (taken, held) = tokio::join!(load::offer(&url, &work, offer), looked);
            let sample = sample(begun.elapsed(), &taken?, held?);
            progress(&sample, options.time);
            samples.push(sample);
        }
        Ok::<_, Failure>(samples)
    };
    let pause = PAUSE.min(options.time / 10);
    let played = stage.play(&mut chance, begun + options.time, pause);
    let (samples, ()) = tokio::try_join!(loaded, played)?;
    stage.settled().await?;
    let after = rest(gateway, before).await?;
    let (happened, left) = stage.close().await?;
    let broken = broken(&samples, before, after, left);
    Ok(Report { seed, capacity, happened, samples, before, after, left, broken })
}

/// Prints the progress: an hour is long.
fn progress(sample: &Sample, of: Duration) {
    let Sample { second, calls_per_second, failed, lost, wrong, .. } = sample;
    let _ = writeln!(
        io::stderr(),
        "{second} s of {} s: {calls_per_second:.0} right calls/s, {failed} failed, {lost} lost, {wrong} wrong",
        of.as_secs()
    );
}

fn held(process: u32) -> Result<Held, Failure> {
    Ok(Held {
        mebibytes: f64::from(charge::resident_kibibytes(process)?) / 1024.0,
        descriptors: charge::descriptors(process)?,
        children: charge::children(process)?.len(),
    })
}

/// Returns its resources once they are stable: on a busy machine connections are closed late.
async fn calm(process: u32) -> Result<Held, Failure> {
    let until = Instant::now() + RESTLESS;
    let (mut now, mut since) = (held(process)?, Instant::now());
    while since.elapsed() < CALM && Instant::now() < until {
        sleep(LOOK).await;
        let last = std::mem::replace(&mut now, held(process)?);
        if (last.descriptors, last.children) != (now.descriptors, now.children) {
            since = Instant::now();
        }
    }
    Ok(now)
}

/// Returns its resources once they are no more than before, or at the time limit.
async fn rest(process: u32, before: Held) -> Result<Held, Failure> {
    let until = Instant::now() + RESTLESS;
    loop {
        let now = held(process)?;
        if grown(before, now).is_empty() || Instant::now() >= until {
            return Ok(now);
        }
        sleep(LOOK).await;
    }
}

fn sample(at: Duration, taken: &Taken, held: Held) -> Sample {
    Sample {
        second: at.as_secs(),
        calls_per_second: taken.goodput(),
        p99_milliseconds: taken.right_within(99),
        refused: taken.refused.len(),
        failed: taken.failed,
        lost: taken.lost,
        wrong: taken.wrong,
        held,
    }
}

/// Returns the resources that have grown.
fn grown(before: Held, after: Held) -> Vec<String> {
    let mut grown = Vec::new();
    let most = (before.mebibytes * GROWN_TIMES).max(before.mebibytes + GROWN_MEBIBYTES);
    if after.mebibytes > most {
        grown.push(format!("{:.1} MiB of at most {most:.1} MiB", after.mebibytes));
    }
    if after.descriptors != before.descriptors {
        grown.push(format!("{} descriptors, before {}", after.descriptors, before.descriptors));
    }
    if after.children != before.children {
        grown.push(format!("{} children, before {}", after.children, before.children));
    }
    grown
}

fn broken(samples: &[Sample], before: Held, after: Held, left: usize) -> Vec<String> {
    let mut broken = grown(before, after);
    let count = |of: fn(&Sample) -> usize| samples.iter().map(of).sum::<usize>();
    if count(|sample| sample.wrong) > 0 {
        broken.push(format!("{} wrong answers", count(|sample| sample.wrong)));
    }
    if count(|sample| sample.lost) > 0 {
        broken.push(format!("{} calls without an answer", count(|sample| sample.lost)));
    }
    if left > 0 {
        broken.push(format!("{left} processes outlived the gateway"));
    }
    broken
}

impl Report {
    fn to_text(&self, options: &Options) -> String {
        let row = |time: String, held: Held, sample: Option<&Sample>| {
            let of = |part: fn(&Sample) -> String| sample.map(part).unwrap_or_default();
            [
                time,
                of(|sample| format!("{:.0}", sample.calls_per_second)),
                of(|sample| format!("{:.1}", sample.p99_milliseconds)),
                of(|sample| sample.refused.to_string()),
                of(|sample| sample.failed.to_string()),
                format!("{:.1}", held.mebibytes),
                held.descriptors.to_string(),
                held.children.to_string(),
            ]
        };
        let samples = self
            .samples
            .iter()
            .map(|sample| row(format!("{} s", sample.second), sample.held, Some(sample)));
        let lines = std::iter::once(row("before".to_owned(), self.before, None))
            .chain(samples)
            .chain([row("after".to_owned(), self.after, None)]);
        let head = [
            "time",
            "right calls/s",
            "p99 ms",
            "refused",
            "failed",
            "MiB",
            "descriptors",
            "children",
        ];
        let minutes = options.time.as_secs_f64() / 60.0;
        let title = format!("{minutes:.1} minutes at half of {:.0} calls/s", self.capacity);
        let mut text = table(&title, head, 1, lines);
        // A string takes everything.
        let _ = write!(text, "\nSeed {}. {}\n", self.seed, self.happened);
        let _ = match self.broken.as_slice() {
            [] => writeln!(text, "It came back to rest."),
            broken => writeln!(text, "It did not come back to rest: {}.", broken.join("; ")),
        };
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_may_grow_a_little_and_nothing_else_at_all() {
        let before = Held { mebibytes: 40.0, descriptors: 20, children: 3 };
        assert_eq!(grown(before, Held { mebibytes: 72.0, ..before }), Vec::<String>::new());
        assert_eq!(
            grown(before, Held { mebibytes: 72.1, descriptors: 21, children: 2 }),
            ["72.1 MiB of at most 72.0 MiB", "21 descriptors, before 20", "2 children, before 3"]
        );
        let large = Held { mebibytes: 1000.0, ..before };
        assert_eq!(grown(large, Held { mebibytes: 1100.0, ..large }), Vec::<String>::new());
    }

    #[test]
    fn a_wrong_answer_and_a_process_that_stays_break_it() {
        let held = Held { mebibytes: 1.0, descriptors: 1, children: 1 };
        let taken = Taken { wrong: 1, lost: 2, time: Duration::from_secs(1), ..Taken::default() };
        let samples = [sample(Duration::from_secs(1), &taken, held)];
        assert_eq!(
            broken(&samples, held, held, 1),
            ["1 wrong answers", "2 calls without an answer", "1 processes outlived the gateway"]
        );
    }
}
