//! Time from the start of a gateway's process to its first complete listing.

use std::path::Path;
use std::time::Instant;

use serde::Serialize;
use serde_json::{Map, Value};
use tempfile::TempDir;

use super::field::{By, PREFIX, listed};
use super::options::Options;
use super::process::{Process, started};
use crate::Failure;
use crate::load::Listing;
use crate::server::{Listen, Serve};
use crate::statistics::median;

const MANY: usize = 20;

#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) by: By,
    pub(super) start: &'static str,
    /// Until it prints its address.
    pub(super) listens_milliseconds: f64,
    /// Until every tool is listed.
    pub(super) listed_milliseconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) target_milliseconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) met: Option<bool>,
}

/// A start of a gateway.
#[derive(Clone, Copy)]
struct Case {
    start: &'static str,
    servers: usize,
    milliseconds: f64,
}

/// In the order in which they run: each finds the catalog that the start before stored.
const CASES: [Case; 3] = [
    Case { start: "1 stdio server", servers: 1, milliseconds: 40.0 },
    Case { start: "20 stdio servers", servers: MANY, milliseconds: 80.0 },
    Case { start: "20 stdio servers, catalog kept", servers: MANY, milliseconds: 20.0 },
];

/// Milliseconds to the address and to the list.
type Times = (f64, f64);

pub(super) async fn measure(
    consort: Option<&Path>,
    options: &Options,
) -> Result<Vec<Row>, Failure> {
    let serve = Serve { prefix: PREFIX.to_owned(), ..Serve::new(Listen::Http) };
    let server = Process::server(&serve).await?;
    let listing = Listing::new(serve.tools());
    let mut raw = Vec::new();
    let mut cases = vec![Vec::new(); CASES.len()];
    for _ in 0..options.rounds {
        let begun = Instant::now();
        raw.push(timed(begun, Process::proxy(&server).await?, &listing).await?);
        if let Some(consort) = consort {
            let one = TempDir::with_prefix("consort-bench-")?;
            let many = TempDir::with_prefix("consort-bench-")?;
            for ((times, case), folder) in cases.iter_mut().zip(CASES).zip([&one, &many, &many]) {
                let time = gateway(consort, case.servers, folder.path()).await;
                times.push(time.map_err(|error| format!("{}: {error}", case.start))?);
            }
        }
    }
    server.end().await?;
    let mut rows = vec![row(By::Raw, "a server that runs", &raw, None)];
    if consort.is_some() {
        for (case, times) in CASES.into_iter().zip(&cases) {
            rows.push(row(By::Consort, case.start, times, Some(case.milliseconds)));
        }
    }
    Ok(rows)
}

async fn gateway(consort: &Path, servers: usize, folder: &Path) -> Result<Times, Failure> {
    let mut tools: Vec<Value> = Vec::new();
    let mut config = Map::new();
    for n in 0..servers {
        let serve = Serve { prefix: format!("server{n}_"), ..Serve::new(Listen::Stdio) };
        tools.extend(serve.tools());
        config.insert(format!("server{n}"), started(&serve)?);
    }
    let listing = Listing::new(tools);
    let begun = Instant::now();
    timed(begun, Process::gateway(consort, &config, folder).await?, &listing).await
}

async fn timed(begun: Instant, process: Process, listing: &Listing) -> Result<Times, Failure> {
    let milliseconds = || begun.elapsed().as_secs_f64() * 1e3;
    let listens = milliseconds();
    listed(process.url(), listing).await?;
    let times = (listens, milliseconds());
    process.end().await?;
    Ok(times)
}

fn row(by: By, start: &'static str, times: &[Times], target: Option<f64>) -> Row {
    let listed_milliseconds = median(times.iter().map(|(_, listed)| *listed));
    Row {
        by,
        start,
        listens_milliseconds: median(times.iter().map(|(listens, _)| *listens)),
        listed_milliseconds,
        target_milliseconds: target,
        met: target.map(|target| listed_milliseconds <= target),
    }
}
