//! Overload of a gateway by three times its capacity: it must keep its throughput, refuse the rest immediately, and
//! recover afterwards.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use consort_protocol::Era;
use rustix::thread::{CpuSet, sched_setaffinity};
use serde::Serialize;
use serde_json::Map;
use tempfile::TempDir;

use crate::Failure;
use crate::gateway::{Consort, Process, configured, listed};
use crate::load::{self, Listing, Offer, Taken, Turn, Work};
use crate::options::{Format, USAGE, number};
use crate::report::table;
use crate::results;
use crate::server::{Listen, Serve};

/// Promised limits.
const TIMES: f64 = 3.0;
const GOODPUT: f64 = 0.8;
const REFUSED_MILLISECONDS: f64 = 100.0;
const BACK: Duration = Duration::from_secs(5);

/// Minimum ratio of the rate after the overload to the rate before, to count as recovered.
const AS_BEFORE: f64 = 0.8;

/// Duration of a slow call.
const SLOW_MILLISECONDS: u32 = 200;

/// Duration of the capacity measurement.
const CLOSED: Duration = Duration::from_secs(3);

/// Time limit for the recovery.
const GIVEN_UP: Duration = Duration::from_secs(15);

/// Maximum number of concurrent clients: fewer than a gateway accepts.
const CLIENTS: u32 = 3500;

/// Numbers of clients where only the processor limits, to see the cost of connections alone.
const CROWDS: [u32; 3] = [32, 384, CLIENTS];
const PATIENCE: Duration = Duration::from_secs(20);

const PREFIX: &str = "bench_";
const ECHO: usize = 1 << 10;

/// Options of the measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) format: Format,
    /// Duration of the overload in seconds.
    pub(crate) seconds: u32,
    pub(crate) only: Option<Case>,
    pub(crate) consort: Consort,
}

/// The bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Case {
    /// A slow server that the gateway starts as a program.
    Stdio,
    /// A slow server over HTTP.
    Http,
    /// The processor: nothing is slow.
    Busy,
}

#[derive(Debug, Serialize)]
struct Overloaded {
    rows: Vec<Row>,
    crowds: Vec<Crowd>,
}

/// A number of clients, each of which waits for its answers, on the processor of the contestant.
#[derive(Debug, Serialize)]
struct Crowd {
    by: &'static str,
    clients: u32,
    calls_per_second: f64,
}

#[derive(Debug, Serialize)]
struct Row {
    case: Case,
    /// Calls per second of clients that wait for their answers.
    capacity: f64,
    offered: f64,
    /// Calls that were due and not made, because no client was free.
    held_back: usize,
    goodput: f64,
    times_capacity: f64,
    right_p99_milliseconds: f64,
    refused: usize,
    refused_p99_milliseconds: f64,
    lost: usize,
    failed: usize,
    /// Until calls were as fast as before.
    back_milliseconds: f64,
    broken: Vec<String>,
}

impl Options {
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut options =
            Self { format: Format::People, seconds: 20, only: None, consort: Consort::Beside };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--json" => options.format = Format::Json,
                "--seconds" => options.seconds = number(&word, words.next(), 600)?,
                "--consort" => {
                    options.consort = Consort::At(words.next().ok_or(USAGE)?.into());
                }
                "--only" => {
                    options.only = Some(match words.next().as_deref() {
                        Some("stdio") => Case::Stdio,
                        Some("http") => Case::Http,
                        Some("busy") => Case::Busy,
                        _ => return Err(USAGE.into()),
                    });
                }
                _ => return Err(format!("unknown option `{word}`\n{USAGE}").into()),
            }
        }
        Ok(options)
    }
}

impl Case {
    fn as_str(self) -> &'static str {
        match self {
            Self::Stdio => "a slow server, stdio",
            Self::Http => "a slow server, HTTP",
            Self::Busy => "the processor",
        }
    }

    fn listen(self) -> Listen {
        match self {
            Self::Stdio => Listen::Stdio,
            Self::Http | Self::Busy => Listen::Http,
        }
    }

    /// Returns the number of clients: more than the server gets calls at once; or as many as will overload it, where
    /// each client costs processor time that all share.
    fn clients(self) -> u32 {
        match self {
            Self::Stdio => 96,
            Self::Http => 384,
            Self::Busy => CLIENTS,
        }
    }

    fn work(self) -> Work {
        match self {
            Self::Stdio | Self::Http => Work::slow(PREFIX, SLOW_MILLISECONDS, 0),
            Self::Busy => Work::echo(PREFIX, ECHO),
        }
    }
}

/// Overloads a gateway; a broken promise is an error.
pub(crate) fn overload(options: &Options) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let overloaded = runtime.block_on(measure(options))?;
    let text = match options.format {
        Format::Json => serde_json::to_string(&overloaded)?,
        Format::People => report(&overloaded, options),
    };
    results::publish(&text)?;
    if overloaded.rows.iter().all(|row| row.broken.is_empty()) {
        Ok(())
    } else {
        Err("a promise is broken".into())
    }
}

async fn measure(options: &Options) -> Result<Overloaded, Failure> {
    let consort = options.consort.program()?.ok_or("nothing to overload")?;
    let mut all = Overloaded { rows: Vec::new(), crowds: Vec::new() };
    for case in [Case::Stdio, Case::Http, Case::Busy] {
        if options.only.is_none_or(|only| only == case) {
            all.rows.push(overloaded(&consort, case, options, &mut all.crowds).await?);
        }
    }
    Ok(all)
}

async fn overloaded(
    consort: &Path,
    case: Case,
    options: &Options,
    crowds: &mut Vec<Crowd>,
) -> Result<Row, Failure> {
    let serve = Serve { prefix: PREFIX.to_owned(), ..Serve::new(case.listen()) };
    // Who asks too much must not take from whom it asks what the answers need: whoever is started now
    // stays on one processor, and we on the others.
    let processors = std::thread::available_parallelism()?.get();
    let apart = case == Case::Busy && processors > 1;
    if apart {
        stay_on(0..1)?;
    }
    let http = Process::server(&Serve { listen: Listen::Http, ..serve.clone() }).await?;
    let servers = Map::from_iter([("bench".to_owned(), configured(&serve, &http)?)]);
    let folder = TempDir::with_prefix("consort-bench-")?;
    let gateway = Process::gateway(consort, &servers, folder.path()).await?;
    let proxy = match case {
        Case::Busy => Some(Process::proxy(&http).await?),
        Case::Stdio | Case::Http => None,
    };
    if apart {
        stay_on(1..processors)?;
    }
    if let Some(proxy) = proxy {
        for clients in CROWDS {
            for (by, process) in [("raw proxy", &proxy), ("consort", &gateway)] {
                let turn = Turn { era: Era::Modern, clients, time: CLOSED, calls: 1_000_000 };
                let load = load::run(&process.free(), &case.work(), turn).await?;
                crowds.push(Crowd { by, clients, calls_per_second: load.calls_per_second });
            }
        }
        proxy.end().await?;
    }
    listed(gateway.url(), &Listing::new(serve.tools())).await?;
    let work = case.work();
    let time = Duration::from_secs(options.seconds.into());
    let closed = Turn {
        era: Era::Modern,
        clients: case.clients(),
        time: time.min(CLOSED),
        calls: 1_000_000,
    };
    let before = load::run(&gateway.free(), &work, closed).await?;
    let offer = Offer {
        era: Era::Modern,
        rate: before.calls_per_second * TIMES,
        time,
        clients: CLIENTS as usize,
        patience: PATIENCE,
    };
    let begun = Instant::now();
    let taken = load::offer(gateway.url(), &work, offer).await?;
    let over = begun + taken.time;
    let mut back = None;
    while over.elapsed() < GIVEN_UP {
        let looked = over.elapsed();
        // As long as before: of many clients the last answers come late, which counts more in a short run.
        let now = load::run(&gateway.free(), &work, closed).await?;
        if now.calls_per_second >= before.calls_per_second * AS_BEFORE {
            back = Some(looked);
            break;
        }
    }
    gateway.end().await?;
    http.end().await?;
    if apart {
        stay_on(0..processors)?;
    }
    Ok(row(case, before.calls_per_second, &taken, back))
}

/// Restricts this thread, and those it starts, to these processors.
fn stay_on(processors: std::ops::Range<usize>) -> Result<(), Failure> {
    let mut set = CpuSet::new();
    processors.for_each(|processor| set.set(processor));
    Ok(sched_setaffinity(None, &set)?)
}

fn row(case: Case, capacity: f64, taken: &Taken, back: Option<Duration>) -> Row {
    let mut row = Row {
        case,
        capacity,
        offered: taken.offered(),
        held_back: taken.held_back,
        goodput: taken.goodput(),
        times_capacity: taken.goodput() / capacity,
        right_p99_milliseconds: taken.right_within(99),
        refused: taken.refused.len(),
        refused_p99_milliseconds: taken.refused_within(99),
        lost: taken.lost,
        failed: taken.failed,
        back_milliseconds: back.map_or(f64::NAN, |back| back.as_secs_f64() * 1e3),
        broken: Vec::new(),
    };
    let mut broken = Vec::new();
    if row.times_capacity < GOODPUT {
        broken.push(format!("goodput is {:.2} x capacity", row.times_capacity));
    }
    if row.refused_p99_milliseconds > REFUSED_MILLISECONDS {
        broken.push(format!("a refusal takes {:.0} ms", row.refused_p99_milliseconds));
    }
    if row.lost > 0 {
        broken.push(format!("{} calls got no answer", row.lost));
    }
    if let Some(reason) = &taken.reason {
        broken.push(format!("{} calls failed otherwise: {reason}", row.failed));
    }
    if let Some(mistake) = &taken.mistake {
        broken.push(format!("{} calls got a wrong answer: {mistake}", taken.wrong));
    }
    if back.is_none_or(|back| back > BACK) {
        broken.push("it was not as before in time".to_owned());
    }
    row.broken = broken;
    row
}

fn report(Overloaded { rows, crowds }: &Overloaded, options: &Options) -> String {
    let lines = rows.iter().map(|row| {
        [
            row.case.as_str().to_owned(),
            format!("{:.0}", row.capacity),
            format!("{:.0}", row.offered),
            format!("{:.0}", row.goodput),
            format!("{:.2}", row.times_capacity),
            format!("{:.0}", row.right_p99_milliseconds),
            row.refused.to_string(),
            milliseconds(row.refused_p99_milliseconds),
            milliseconds(row.back_milliseconds),
            (if row.broken.is_empty() { "kept" } else { "broken" }).to_owned(),
        ]
    });
    let head = [
        "what cannot do more",
        "capacity/s",
        "offered/s",
        "goodput/s",
        "x capacity",
        "p99 ms",
        "refused",
        "refused p99 ms",
        "back after ms",
        "promise",
    ];
    let title = format!("{TIMES} x capacity for {} s", options.seconds);
    let mut text = table(&title, head, 1, lines);
    // A string takes everything.
    let _ = write!(
        text,
        "\nPromised: goodput at least {GOODPUT} x capacity, refusals within {REFUSED_MILLISECONDS} ms, \
         no call without an answer, as before within {} s.\n",
        BACK.as_secs()
    );
    for row in rows {
        if row.held_back > 0 {
            let _ = writeln!(
                text,
                "{}: {} more calls were due while {CLIENTS} clients waited.",
                row.case.as_str(),
                row.held_back
            );
        }
        for broken in &row.broken {
            let _ = writeln!(text, "{}: {broken}.", row.case.as_str());
        }
    }
    if !crowds.is_empty() {
        text.push('\n');
        text.push_str(&crowded(crowds));
    }
    text
}

fn crowded(crowds: &[Crowd]) -> String {
    let lines = crowds.iter().map(|crowd| {
        let few = crowds.iter().find(|few| few.by == crowd.by).unwrap_or(crowd);
        [
            crowd.by.to_owned(),
            crowd.clients.to_string(),
            format!("{:.0}", crowd.calls_per_second),
            format!("{:.2}", crowd.calls_per_second / few.calls_per_second),
        ]
    });
    let head = ["by", "clients", "calls/s", "x the fewest"];
    table("Clients that all call, one processor", head, 1, lines)
}

fn milliseconds(value: f64) -> String {
    if value.is_nan() { String::new() } else { format!("{value:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(in_time: usize, refusal: Duration) -> Taken {
        Taken {
            in_time,
            right: vec![Duration::from_millis(5); in_time],
            refused: vec![refusal],
            time: Duration::from_secs(1),
            ..Taken::default()
        }
    }

    #[test]
    fn every_part_of_the_promise_counts() {
        let quick = Duration::from_millis(2);
        let back = Some(Duration::from_secs(1));
        let broken = |taken: &Taken, back| row(Case::Http, 100.0, taken, back).broken;
        assert_eq!(broken(&taken(80, quick), back), Vec::<String>::new());
        assert_eq!(broken(&taken(79, quick), back), ["goodput is 0.79 x capacity"]);
        assert_eq!(broken(&taken(80, quick * 100), back), ["a refusal takes 200 ms"]);
        assert_eq!(broken(&taken(80, quick), None), ["it was not as before in time"]);
        let late = Some(Duration::from_secs(6));
        assert_eq!(broken(&taken(80, quick), late), ["it was not as before in time"]);
        let lost = Taken { lost: 1, ..taken(80, quick) };
        assert_eq!(broken(&lost, back), ["1 calls got no answer"]);
    }
}
