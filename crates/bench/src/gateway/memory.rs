//! The memory of a gateway: before any work, and after much of it.

use std::path::Path;
use std::time::Duration;

use consort_protocol::Era;
use serde::Serialize;
use serde_json::Map;
use tempfile::TempDir;

use super::field::{By, PREFIX, listed};
use super::options::Options;
use super::process::{Process, configured, started};
use super::{BIG, ECHO};
use crate::load::{self, Listing, Turn, Work};
use crate::server::{Listen, Serve};
use crate::{Failure, charge};

/// Limits of resident memory in MiB.
pub(super) const IDLE_TARGET: f64 = 20.0;
pub(super) const LOADED_TARGET: f64 = 32.0;

/// Prefix of the tools of the stdio server.
const PIPED: &str = "piped_";

/// Pause before memory is read.
const REST: Duration = Duration::from_secs(1);

const CLIENTS: u32 = 32;
const BIG_CLIENTS: u32 = 4;

/// Resident memory in MiB.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) by: By,
    pub(super) idle_mebibytes: f64,
    /// After 1 KB calls of many clients of both eras.
    pub(super) after_calls_mebibytes: f64,
    /// After results of 1 MiB as well; not part of the target.
    pub(super) after_big_mebibytes: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) met: Option<bool>,
}

/// The raw proxy before an HTTP server; the gateway over the same and a stdio server.
pub(super) async fn measure(
    consort: Option<&Path>,
    options: &Options,
) -> Result<Vec<Row>, Failure> {
    let serve = Serve { prefix: PREFIX.to_owned(), ..Serve::new(Listen::Http) };
    let piped = Serve { prefix: PIPED.to_owned(), ..Serve::new(Listen::Stdio) };
    let server = Process::server(&serve).await?;
    let proxy = Process::proxy(&server).await?;
    let mut rows = vec![loaded(By::Raw, &proxy, &[PREFIX], options).await?];
    proxy.end().await?;
    if let Some(consort) = consort {
        let servers = Map::from_iter([
            ("http".to_owned(), configured(&serve, &server)?),
            ("stdio".to_owned(), started(&piped)?),
        ]);
        let folder = TempDir::with_prefix("consort-bench-")?;
        let gateway = Process::gateway(consort, &servers, folder.path()).await?;
        let tools = serve.tools().into_iter().chain(piped.tools());
        listed(gateway.url(), &Listing::new(tools)).await?;
        rows.push(loaded(By::Consort, &gateway, &[PREFIX, PIPED], options).await?);
        gateway.end().await?;
    }
    server.end().await?;
    Ok(rows)
}

async fn loaded(
    by: By,
    process: &Process,
    prefixes: &[&str],
    options: &Options,
) -> Result<Row, Failure> {
    let idle_mebibytes = resident(process).await?;
    let turn = |era, clients| Turn { era, clients, time: options.time(), calls: options.calls };
    for era in [Era::Legacy, Era::Modern] {
        for prefix in prefixes {
            let work = Work::echo(prefix, ECHO);
            load::run(&process.free(), &work, turn(era, CLIENTS)).await?;
        }
    }
    let after_calls_mebibytes = resident(process).await?;
    for prefix in prefixes {
        let work = Work::big(prefix, BIG);
        load::run(&process.free(), &work, turn(Era::Modern, BIG_CLIENTS)).await?;
    }
    let after_big_mebibytes = resident(process).await?;
    let met = idle_mebibytes <= IDLE_TARGET && after_calls_mebibytes <= LOADED_TARGET;
    Ok(Row {
        by,
        idle_mebibytes,
        after_calls_mebibytes,
        after_big_mebibytes,
        met: (by == By::Consort).then_some(met),
    })
}

async fn resident(process: &Process) -> Result<f64, Failure> {
    tokio::time::sleep(REST).await;
    Ok(f64::from(charge::resident_kibibytes(process.pid())?) / 1024.0)
}
