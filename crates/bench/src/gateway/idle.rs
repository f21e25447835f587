//! Idle clients with an open stream: the cost of each, and their effect on active ones.

use std::path::Path;
use std::time::Duration;

use consort_protocol::Era;
use serde::Serialize;
use serde_json::Map;
use tempfile::TempDir;
use tokio::time::sleep;

use super::ECHO;
use super::field::{By, PREFIX, listed};
use super::options::Options;
use super::process::{Process, configured};
use crate::load::{self, Client, Listing, Turn, Work};
use crate::server::{Listen, Serve};
use crate::{Failure, charge};

/// Limit of memory per listening client.
pub(super) const KIBIBYTES_A_CLIENT: f64 = 64.0;

/// Clients that call meanwhile.
pub(super) const BUSY: u32 = 32;

/// Number of listening clients. A gateway has at most a thousand sessions of legacy ones, and some must be left.
const MODERN: usize = 2000;
const LEGACY: usize = 960;

/// Pause before resources are read, and number of reads: longer than connections to servers are kept.
const REST: Duration = Duration::from_secs(1);
const LOOKS: usize = 10;

#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) by: By,
    pub(super) what: &'static str,
    pub(super) clients: usize,
    pub(super) before: Held,
    pub(super) during: Held,
    pub(super) after: Held,
    pub(super) kibibytes_a_client: f64,
    pub(super) descriptors_a_client: f64,
    /// Of the active clients, while the others listen.
    pub(super) calls_per_second: f64,
    pub(super) times_calls_per_second_before: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) met: Option<bool>,
}

/// Resources of a process.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Held {
    pub(super) mebibytes: f64,
    pub(super) descriptors: usize,
}

/// The raw proxy with connections that were used once; the gateway with streams.
pub(super) async fn measure(
    consort: Option<&Path>,
    options: &Options,
) -> Result<Vec<Row>, Failure> {
    let serve = Serve { prefix: PREFIX.to_owned(), ..Serve::new(Listen::Http) };
    let server = Process::server(&serve).await?;
    let proxy = Process::proxy(&server).await?;
    let mut rows = vec![row(By::Raw, &proxy, "a connection", MODERN, options).await?];
    proxy.end().await?;
    if let Some(consort) = consort {
        for (what, count) in [("a modern stream", MODERN), ("a legacy session", LEGACY)] {
            let servers = Map::from_iter([("http".to_owned(), configured(&serve, &server)?)]);
            let folder = TempDir::with_prefix("consort-bench-")?;
            let gateway = Process::gateway(consort, &servers, folder.path()).await?;
            listed(gateway.url(), &Listing::new(serve.tools())).await?;
            rows.push(row(By::Consort, &gateway, what, count, options).await?);
            gateway.end().await?;
        }
    }
    server.end().await?;
    Ok(rows)
}

async fn row(
    by: By,
    process: &Process,
    what: &'static str,
    count: usize,
    options: &Options,
) -> Result<Row, Failure> {
    let count = count.min(usize::try_from(options.calls)?);
    let turn = Turn { era: Era::Modern, clients: BUSY, time: options.time(), calls: options.calls };
    let work = Work::echo(PREFIX, ECHO);
    let calls_before = load::run(&process.free(), &work, turn).await?.calls_per_second;
    let before = rested(process, None).await?;
    let mut clients = Vec::with_capacity(count);
    for _ in 0..count {
        clients.push(idle(process.url(), what, &work).await?);
    }
    sleep(REST).await;
    let during = held(process)?;
    let calls_per_second = load::run(&process.free(), &work, turn).await?.calls_per_second;
    for client in clients {
        let mut client: Client = client;
        client.vanish();
        client.close().await?;
    }
    let after = rested(process, Some(before.descriptors)).await?;
    let a_client = |more: f64| more / f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    let kibibytes_a_client = a_client((during.mebibytes - before.mebibytes) * 1024.0);
    let opened = u32::try_from(during.descriptors.saturating_sub(before.descriptors))?;
    let kept = kibibytes_a_client <= KIBIBYTES_A_CLIENT && after.descriptors <= before.descriptors;
    Ok(Row {
        by,
        what,
        clients: count,
        before,
        during,
        after,
        kibibytes_a_client,
        descriptors_a_client: a_client(f64::from(opened)),
        calls_per_second,
        times_calls_per_second_before: calls_per_second / calls_before,
        met: (by == By::Consort).then_some(kept),
    })
}

/// A client with an open stream or connection.
async fn idle(url: &str, what: &str, work: &Work) -> Result<Client, Failure> {
    let era = if what == "a legacy session" { Era::Legacy } else { Era::Modern };
    let mut client = Client::connect(url, era).await?;
    if what == "a connection" {
        work.once(&mut client, 0, 0).await?;
    } else {
        client.listen().await?;
    }
    Ok(client)
}

/// Returns its resources at rest: after a while, or once it has at most this many descriptors.
async fn rested(process: &Process, most: Option<usize>) -> Result<Held, Failure> {
    for _ in 0..LOOKS {
        sleep(REST / 2).await;
        if most.is_some_and(|most| held(process).is_ok_and(|held| held.descriptors <= most)) {
            break;
        }
    }
    held(process)
}

fn held(process: &Process) -> Result<Held, Failure> {
    Ok(Held {
        mebibytes: f64::from(charge::resident_kibibytes(process.pid())?) / 1024.0,
        descriptors: charge::descriptors(process.pid())?,
    })
}
