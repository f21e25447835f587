//! Growth of a gateway's cost with tools, servers, clients and sessions.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use consort_protocol::Era;
use serde::Serialize;
use serde_json::{Map, Value};
use tempfile::TempDir;
use tokio::time::sleep;

use crate::Failure;
use crate::charge;
use crate::gateway::{Consort, Process, listed, started};
use crate::load::{self, Client, Listing, Turn, Work};
use crate::options::{Format, USAGE, number};
use crate::plot::{Panel, plot};
use crate::report::table;
use crate::results;
use crate::server::{Listen, Serve};

const ECHO: usize = 1 << 10;

/// Pause before memory is read.
const REST: Duration = Duration::from_secs(1);

/// Duration of each kind of work.
const TURN: Duration = Duration::from_secs(1);

/// Options of the measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) format: Format,
    /// Maximum number of calls and listings per point.
    pub(crate) calls: u32,
    /// Points beyond this many are left out.
    pub(crate) most: usize,
    pub(crate) only: Option<Along>,
    pub(crate) consort: Consort,
}

/// Quantity that grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Along {
    Tools,
    Servers,
    Clients,
    Sessions,
}

#[derive(Debug, Serialize)]
struct Row {
    along: Along,
    points: Vec<Point>,
}

/// Cost at one count.
#[derive(Clone, Debug, Serialize)]
struct Point {
    count: usize,
    /// From the start of the process until all tools are listed.
    start_milliseconds: f64,
    list_milliseconds: f64,
    call_microseconds: f64,
    /// Processor time of the gateway.
    list_cpu_milliseconds: f64,
    call_cpu_microseconds: f64,
    mebibytes: f64,
}

impl Options {
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut options = Self {
            format: Format::People,
            calls: 5000,
            most: 10_000,
            only: None,
            consort: Consort::Beside,
        };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--json" => options.format = Format::Json,
                "--calls" => options.calls = number(&word, words.next(), 1_000_000)?,
                "--most" => {
                    options.most = usize::try_from(number(&word, words.next(), 10_000)?)?;
                }
                "--consort" => {
                    options.consort = Consort::At(words.next().ok_or(USAGE)?.into());
                }
                "--only" => {
                    let name = words.next().unwrap_or_default();
                    let known = Along::ALL.into_iter().find(|along| along.as_str() == name);
                    options.only = Some(known.ok_or(USAGE)?);
                }
                _ => return Err(format!("unknown option `{word}`\n{USAGE}").into()),
            }
        }
        Ok(options)
    }
}

impl Along {
    const ALL: [Self; 4] = [Self::Tools, Self::Servers, Self::Clients, Self::Sessions];

    fn as_str(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Servers => "servers",
            Self::Clients => "clients",
            Self::Sessions => "sessions",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Tools => "Tools of one server",
            Self::Servers => "Servers on stdio, with three tools each",
            Self::Clients => "Modern clients that listen",
            Self::Sessions => "Sessions of legacy clients that listen",
        }
    }

    /// Returns the counts to measure. A gateway has at most a thousand sessions, and one is left for the measurement.
    fn counts(self) -> &'static [usize] {
        match self {
            Self::Tools => &[10, 30, 100, 300, 1000, 3000, 10_000],
            Self::Servers => &[1, 3, 10, 30, 100],
            Self::Clients => &[1, 10, 100, 500, 1000, 2000],
            Self::Sessions => &[1, 10, 100, 300, 990],
        }
    }

    /// Returns the servers for this count.
    fn servers(self, count: usize) -> Vec<Serve> {
        let serve = |n: usize| Serve { prefix: format!("server{n}_"), ..Serve::new(Listen::Stdio) };
        match self {
            Self::Tools => {
                let own = serve(0).tools().len();
                vec![Serve { fillers: count.saturating_sub(own), ..serve(0) }]
            }
            Self::Servers => (0..count).map(serve).collect(),
            Self::Clients | Self::Sessions => vec![serve(0)],
        }
    }
}

/// Measures the growth of costs; with `--save` it also writes plots.
pub(crate) fn growth(options: &Options) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let rows = runtime.block_on(measure(options))?;
    for row in &rows {
        results::picture(&format!("growth-{}", row.along.as_str()), &row.picture())?;
    }
    let text = match options.format {
        Format::Json => serde_json::to_string(&rows)?,
        Format::People => rows.iter().map(Row::to_text).collect::<Vec<_>>().join("\n"),
    };
    results::publish(&text)
}

async fn measure(options: &Options) -> Result<Vec<Row>, Failure> {
    let consort = options.consort.program()?.ok_or("nothing to measure")?;
    let mut rows = Vec::new();
    for along in Along::ALL {
        if options.only.is_some_and(|only| only != along) {
            continue;
        }
        let mut points = Vec::new();
        for &count in along.counts().iter().filter(|count| **count <= options.most) {
            let point = point(&consort, along, count, options).await;
            points
                .push(point.map_err(|error| format!("with {count} {}: {error}", along.as_str()))?);
        }
        rows.push(Row { along, points });
    }
    Ok(rows)
}

async fn point(
    consort: &Path,
    along: Along,
    count: usize,
    options: &Options,
) -> Result<Point, Failure> {
    let servers = along.servers(count);
    let mut config: Map<String, Value> = Map::new();
    for serve in &servers {
        config.insert(serve.prefix.trim_end_matches('_').to_owned(), started(serve)?);
    }
    let listing = Arc::new(Listing::new(servers.iter().flat_map(Serve::tools)));
    let folder = TempDir::with_prefix("consort-bench-")?;
    let begun = Instant::now();
    let gateway = Process::gateway(consort, &config, folder.path()).await?;
    listed(gateway.url(), &listing).await?;
    let start = begun.elapsed();
    let mut clients = Vec::new();
    if let Some(era) = match along {
        Along::Clients => Some(Era::Modern),
        Along::Sessions => Some(Era::Legacy),
        Along::Tools | Along::Servers => None,
    } {
        for _ in 0..count {
            let mut client = Client::connect(gateway.url(), era).await?;
            client.listen().await?;
            clients.push(client);
        }
    }
    sleep(REST).await;
    let mebibytes = f64::from(charge::resident_kibibytes(gateway.pid())?) / 1024.0;
    let turn = Turn { era: Era::Modern, clients: 1, time: TURN, calls: options.calls };
    let lists = load::run(&gateway.charged(), &Work::List(listing), turn).await?;
    let prefixes: Vec<String> = servers.into_iter().map(|serve| serve.prefix).collect();
    let calls = load::run(&gateway.charged(), &Work::echoes(&prefixes, ECHO), turn).await?;
    drop(clients);
    gateway.end().await?;
    Ok(Point {
        count,
        start_milliseconds: start.as_secs_f64() * 1e3,
        list_milliseconds: lists.p50_microseconds / 1e3,
        call_microseconds: calls.p50_microseconds,
        list_cpu_milliseconds: lists.cpu_microseconds.unwrap_or(f64::NAN) / 1e3,
        call_cpu_microseconds: calls.cpu_microseconds.unwrap_or(f64::NAN),
        mebibytes,
    })
}

impl Row {
    fn to_text(&self) -> String {
        let lines = self.points.iter().map(|point| {
            [
                point.count.to_string(),
                format!("{:.0}", point.start_milliseconds),
                format!("{:.2}", point.list_milliseconds),
                format!("{:.2}", point.list_cpu_milliseconds),
                format!("{:.0}", point.call_microseconds),
                format!("{:.0}", point.call_cpu_microseconds),
                format!("{:.1}", point.mebibytes),
            ]
        });
        let head = [
            self.along.as_str(),
            "start ms",
            "list ms",
            "list CPU ms",
            "call µs",
            "call CPU µs",
            "MiB",
        ];
        let table = table(self.along.title(), head, 0, lines);
        let name = self.along.as_str();
        format!("{table}\n![what {name} cost](growth-{name}.svg)\n")
    }

    fn picture(&self) -> String {
        let line = |name: &str, of: fn(&Point) -> f64| {
            #[expect(clippy::cast_precision_loss, reason = "counts here are small")]
            let points = self.points.iter().map(|point| (point.count as f64, of(point))).collect();
            (name.to_owned(), points)
        };
        let panel = |title: &str, lines| Panel { title: title.to_owned(), lines };
        let panels = [
            panel(
                "to list everything, ms",
                vec![
                    line("time", |point| point.list_milliseconds),
                    line("CPU", |point| point.list_cpu_milliseconds),
                ],
            ),
            panel(
                "a call of 1 KB, µs",
                vec![
                    line("time", |point| point.call_microseconds),
                    line("CPU", |point| point.call_cpu_microseconds),
                ],
            ),
            panel("memory, MiB", vec![line("resident", |point| point.mebibytes)]),
        ];
        plot(self.along.title(), self.along.as_str(), &panels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_tools_are_so_many() {
        for count in [10, 300, 10_000] {
            let servers = Along::Tools.servers(count);
            assert_eq!(servers.iter().map(|serve| serve.tools().len()).sum::<usize>(), count);
        }
        assert_eq!(Along::Servers.servers(30).len(), 30);
    }

    #[test]
    fn what_is_not_said_keeps_its_default() {
        let parse = |line: &str| Options::parse(line.split_whitespace().map(str::to_owned));
        let options = parse("--only servers --most 3").unwrap();
        assert_eq!((options.only, options.most, options.calls), (Some(Along::Servers), 3, 5000));
        assert!(parse("--only all").is_err());
        assert!(parse("--most 0").is_err());
    }
}
