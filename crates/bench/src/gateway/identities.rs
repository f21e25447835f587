//! The memory of a gateway over many legacy servers that many identities called: what each of them costs beyond the first.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use consort_protocol::Era;
use serde::Serialize;
use tempfile::TempDir;

use super::options::Options;
use super::process::Process;
use crate::load::{Ask, Client};
use crate::server::{Listen, Serve};
use crate::{Failure, charge};

/// How much more memory many identities may take than one.
pub(super) const TARGET: f64 = 1.5;

const SERVERS: u32 = 200;
const IDENTITIES: u32 = 64;

/// How long nothing happens before memory is looked at: longer than unused HTTP connections to servers are kept.
const REST: Duration = Duration::from_secs(8);

/// How long the servers may take to be on offer, and how often that is looked at.
const PATIENCE: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(50);

/// Resident memory in MiB.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) servers: u32,
    pub(super) identities: u32,
    /// When every server is known, and nobody has called.
    pub(super) idle_mebibytes: f64,
    /// After each identity called each server once.
    pub(super) after_calls_mebibytes: f64,
    pub(super) times_one_identity: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) met: Option<bool>,
}

/// One identity, then many, each time with a gateway of its own.
pub(super) async fn measure(consort: &Path, options: &Options) -> Result<Vec<Row>, Failure> {
    let serve = Serve { era: Some(Era::Legacy), ..Serve::new(Listen::Http) };
    let server = Process::server(&serve).await?;
    let servers = SERVERS.min(options.calls);
    let one = called(consort, &server, servers, 1).await?;
    let many = called(consort, &server, servers, IDENTITIES.min(options.calls)).await?;
    server.end().await?;
    let times = many.after_calls_mebibytes / one.after_calls_mebibytes;
    Ok(vec![one, Row { times_one_identity: times, met: Some(times <= TARGET), ..many }])
}

async fn called(
    consort: &Path,
    server: &Process,
    servers: u32,
    identities: u32,
) -> Result<Row, Failure> {
    let folder = TempDir::with_prefix("consort-bench-")?;
    let config = folder.path().join("consort.toml");
    fs::write(&config, configured(server, servers, identities, folder.path())?)?;
    let gateway = Process::serving(consort, &config, folder.path(), &[]).await?;
    known(&gateway, servers).await?;
    let idle_mebibytes = resident(&gateway).await?;
    for identity in 0..identities {
        let mut client = enter(&gateway, identity).await?;
        for server in 0..servers {
            let name = format!("s{server}__echo");
            let params = format!(r#""name":"{name}","arguments":{{"text":"hello"}}"#);
            let ask = Ask { name: Some(&name), ..Ask::new("tools/call", &params) };
            client.ask(ask, |_| {}).await?;
        }
        client.close().await?;
    }
    let after_calls_mebibytes = resident(&gateway).await?;
    gateway.end().await?;
    Ok(Row {
        servers,
        identities,
        idle_mebibytes,
        after_calls_mebibytes,
        times_one_identity: 1.0,
        met: None,
    })
}

/// A config with so many servers, which are one process at addresses that differ, and so many identities.
fn configured(
    server: &Process,
    servers: u32,
    identities: u32,
    folder: &Path,
) -> Result<String, Failure> {
    let mut config = "[consort]\nnaming = \"{server}__{name}\"\n\n[consort.tokens]\n".to_owned();
    for identity in 0..identities {
        let file = folder.join(format!("token-{identity}"));
        fs::write(&file, token(identity))?;
        writeln!(config, "p{identity} = {:?}", format!("file:{}", file.display()))?;
    }
    for number in 0..servers {
        writeln!(config, "[mcp.s{number}]\nurl = \"{}?server={number}\"", server.url())?;
    }
    Ok(config)
}

fn token(identity: u32) -> String {
    format!("bench-identity-{identity:0>32}")
}

async fn enter(gateway: &Process, identity: u32) -> Result<Client, Failure> {
    Client::connect_as(gateway.url(), Era::Modern, Some(&token(identity))).await
}

/// Waits until a tool of each server is on offer.
async fn known(gateway: &Process, servers: u32) -> Result<(), Failure> {
    let until = Instant::now() + PATIENCE;
    let mut client = enter(gateway, 0).await?;
    loop {
        let listing = listing(&mut client).await?;
        let there = |server| listing.contains(&format!("\"s{server}__echo\""));
        if (0..servers).all(there) {
            return client.close().await;
        }
        if Instant::now() >= until {
            return Err("not every server is on offer".into());
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// All pages of the list of tools.
async fn listing(client: &mut Client) -> Result<String, Failure> {
    let (mut params, mut pages) = (String::new(), String::new());
    loop {
        let page = client.ask(Ask::new("tools/list", &params), |_| {}).await?;
        pages += &String::from_utf8_lossy(page.as_bytes());
        match page.get("nextCursor") {
            Some(cursor) => params = format!(r#""cursor":{}"#, cursor.as_str()),
            None => return Ok(pages),
        }
    }
}

async fn resident(process: &Process) -> Result<f64, Failure> {
    tokio::time::sleep(REST).await;
    Ok(f64::from(charge::resident_kibibytes(process.pid())?) / 1024.0)
}
