//! Profiles of hot paths under load, sampled by `perf`, as a flame graph and a table.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use consort_client::{Client, OutgoingRequest, ServerLocation, ServerUrl};
use consort_core::{Caller, ServerId, Toolbox as _};
use consort_hub::{Hub, ServerSettings};
use consort_protocol::{Era, Json};
use consort_search::{SearchLimits, ToolDocument, ToolIndex};
use serde_json::Map;
use tempfile::TempDir;

use crate::Failure;
use crate::flame::Stacks;
use crate::gateway::{Consort, Process, configured, listed};
use crate::load::{self, Listing, Turn, Work};
use crate::options::{USAGE, number};
use crate::report::table;
use crate::results;
use crate::samples;
use crate::server::{Listen, Serve};

/// Samples per second; a prime number, to avoid resonance with timers.
const OFTEN: &str = "499";

/// Number of functions in the table.
const NAMED: usize = 8;

const PREFIX: &str = "bench_";
const ECHO: usize = 1 << 10;
const CLIENTS: u32 = 32;
const FILLERS: usize = 497;
const SERVERS: usize = 20;
const TOOLS: usize = 5000;

/// Options of the profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) paths: Vec<Hot>,
    pub(crate) seconds: u32,
    pub(crate) consort: Consort,
}

/// A hot path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hot {
    GatewayCall,
    GatewayList,
    ClientCall,
    HubStart,
    Search,
}

impl Hot {
    pub(crate) const ALL: [Self; 5] =
        [Self::GatewayCall, Self::GatewayList, Self::ClientCall, Self::HubStart, Self::Search];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::GatewayCall => "gateway-call",
            Self::GatewayList => "gateway-list",
            Self::ClientCall => "client-call",
            Self::HubStart => "hub-start",
            Self::Search => "search",
        }
    }

    pub(crate) fn named(name: &str) -> Result<Self, Failure> {
        let known = Self::ALL.into_iter().find(|hot| hot.as_str() == name);
        known.ok_or_else(|| format!("nothing is known as `{name}`\n{USAGE}").into())
    }

    fn about(self) -> &'static str {
        match self {
            Self::GatewayCall => "the gateway: calls of 1 KB over HTTP, 32 modern clients",
            Self::GatewayList => "the gateway: lists of 500 tools, 32 modern clients",
            Self::ClientCall => "a client: calls of 1 KB over HTTP, 8 at once",
            Self::HubStart => "a hub: 20 stdio servers started, listed, ended",
            Self::Search => "an index of 5,000 tools: made once, then searched",
        }
    }
}

impl Options {
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut options = Self { paths: Vec::new(), seconds: 10, consort: Consort::Beside };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--seconds" => options.seconds = number(&word, words.next(), 600)?,
                "--consort" => {
                    options.consort = Consort::At(words.next().ok_or(USAGE)?.into());
                }
                name => options.paths.push(Hot::named(name)?),
            }
        }
        if options.paths.is_empty() {
            options.paths = Hot::ALL.into();
        }
        Ok(options)
    }
}

/// Profiles each path, and prints the most expensive functions.
pub(crate) fn profile(options: &Options) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut text = String::new();
    for &hot in &options.paths {
        let stacks = runtime.block_on(stacks(hot, options))?;
        results::picture(&format!("flame-{}", hot.as_str()), &stacks.to_svg(hot.about()))?;
        text += &report(hot, &stacks);
        text.push('\n');
    }
    results::publish(&text)
}

async fn stacks(hot: Hot, options: &Options) -> Result<Stacks, Failure> {
    let time = Duration::from_secs(options.seconds.into());
    match hot {
        Hot::GatewayCall | Hot::GatewayList => {
            let consort = options.consort.program()?.ok_or("nothing to profile")?;
            loaded(&consort, hot, time).await
        }
        Hot::ClientCall | Hot::HubStart | Hot::Search => {
            // A process of its own: nothing of ours is in its profile.
            let mut worker = Command::new(std::env::current_exe()?)
                .args(["profiled", hot.as_str()])
                .arg((options.seconds + 2).to_string())
                .stdin(Stdio::null())
                .spawn()?;
            tokio::time::sleep(Duration::from_secs(1)).await;
            let sampled = Sampling::start(worker.id(), time)?.end();
            let ended = worker.wait()?;
            if ended.success() { sampled } else { Err("what was profiled failed".into()) }
        }
    }
}

/// A gateway under load.
async fn loaded(consort: &Path, hot: Hot, time: Duration) -> Result<Stacks, Failure> {
    let fillers = if hot == Hot::GatewayList { FILLERS } else { 0 };
    let serve = Serve {
        era: Some(Era::Modern),
        fillers,
        prefix: PREFIX.to_owned(),
        ..Serve::new(Listen::Http)
    };
    let server = Process::server(&serve).await?;
    let servers = Map::from_iter([("bench".to_owned(), configured(&serve, &server)?)]);
    let folder = TempDir::with_prefix("consort-bench-")?;
    let gateway = Process::gateway(consort, &servers, folder.path()).await?;
    let listing = Arc::new(Listing::new(serve.tools()));
    listed(gateway.url(), &listing).await?;
    let work = match hot {
        Hot::GatewayList => Work::List(listing),
        _ => Work::echo(PREFIX, ECHO),
    };
    let sampling = Sampling::start(gateway.pid(), time)?;
    let turn = Turn { era: Era::Modern, clients: CLIENTS, time, calls: 100_000_000 };
    load::run(&gateway.free(), &work, turn).await?;
    let stacks = tokio::task::spawn_blocking(|| sampling.end()).await?;
    gateway.end().await?;
    server.end().await?;
    stacks
}

/// `perf` attached to a process.
struct Sampling {
    perf: std::process::Child,
    file: PathBuf,
    _folder: TempDir,
}

impl Sampling {
    fn start(process: u32, time: Duration) -> Result<Self, Failure> {
        let folder = TempDir::with_prefix("consort-bench-")?;
        let file = folder.path().join("perf.data");
        // By the processor's clock, which virtual machines have too; without children, which are servers.
        let perf = Command::new("perf")
            .args(["record", "-q", "-e", "cpu-clock", "-F", OFTEN, "--call-graph", "dwarf,16384"])
            .args(["--no-inherit", "-p", &process.to_string(), "-o"])
            .arg(&file)
            .args(["--", "sleep", &time.as_secs().to_string()])
            .stdin(Stdio::null())
            .spawn()
            .map_err(|error| {
                format!("`perf` cannot be run: {error}\ninstall it (Debian: `linux-perf`)")
            })?;
        Ok(Self { perf, file, _folder: folder })
    }

    fn end(mut self) -> Result<Stacks, Failure> {
        if !self.perf.wait()?.success() {
            let advice = "`perf` may not look: try `sysctl kernel.perf_event_paranoid=1` as root";
            return Err(advice.into());
        }
        let output = Command::new("perf")
            .args(["script", "--no-inline", "-F", "comm,ip,sym", "-i"])
            .arg(&self.file)
            .stderr(Stdio::null())
            .output()?;
        let stacks = Stacks::read(&String::from_utf8_lossy(&output.stdout));
        if stacks.samples() == 0 { Err("`perf` saw nothing".into()) } else { Ok(stacks) }
    }
}

fn report(hot: Hot, stacks: &Stacks) -> String {
    let ours = |name: &str| name.contains("consort_") && !name.contains("{{closure}}");
    let (own, through) = (stacks.own(), stacks.through(ours));
    let cell = |list: &[(String, f64)], n: usize| {
        let of = list.get(n);
        let name = of.map_or(String::new(), |(name, _)| format!("`{name}`"));
        (of.map_or(String::new(), |(_, part)| format!("{:.1}", part * 100.0)), name)
    };
    let lines = (0..NAMED).map(|n| {
        let ((own_part, own), (through_part, through)) = (cell(&own, n), cell(&through, n));
        [own, own_part, through, through_part]
    });
    let title = format!("{}: {}", hot.as_str(), hot.about());
    let table = table(&title, ["ends in", "%", "passes through, of ours", "%"], 4, lines);
    let name = hot.as_str();
    format!("{table}\n{} samples. [The flame graph](flame-{name}.svg).\n", stacks.samples())
}

/// Runs the profiled work in this process for this many seconds.
pub(crate) fn run(hot: Hot, seconds: u32) -> Result<(), Failure> {
    let until = Instant::now() + Duration::from_secs(seconds.into());
    match hot {
        Hot::Search => {
            search(until);
            Ok(())
        }
        Hot::ClientCall => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(client(until))
        }
        Hot::HubStart => {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()?;
            runtime.block_on(hub(until))
        }
        Hot::GatewayCall | Hot::GatewayList => Err("a gateway is a process of its own".into()),
    }
}

async fn client(until: Instant) -> Result<(), Failure> {
    let server = Process::server(&Serve::new(Listen::Http)).await?;
    let settings = consort_client::ClientSettings::default();
    let client =
        Client::connect(&ServerLocation::Http(ServerUrl::new(server.url())?), settings).await?;
    let arguments = Json::from(serde_json::json!({ "text": samples::text(ECHO) }));
    let calling = || async {
        while Instant::now() < until {
            client.request(OutgoingRequest::tool("echo", &arguments)).await?;
        }
        Ok::<_, Failure>(())
    };
    tokio::try_join!(
        calling(),
        calling(),
        calling(),
        calling(),
        calling(),
        calling(),
        calling(),
        calling()
    )?;
    client.close().await;
    server.end().await
}

async fn hub(until: Instant) -> Result<(), Failure> {
    let program = std::env::current_exe()?;
    while Instant::now() < until {
        let servers = (0..SERVERS).map(|n| {
            let command =
                consort_client::ServerCommand::new(&program).arguments(["serve", "stdio"]);
            let id = ServerId::derive(&format!("server-{n:02}"));
            ServerSettings::new(id, ServerLocation::Command(command))
        });
        let servers = servers.collect();
        let hub =
            Hub::start(consort_hub::HubSettings { servers, ..consort_hub::HubSettings::default() });
        hub.settled().await;
        let tools = hub.catalog(&Caller::person("bench")).tools.len();
        hub.drain().await;
        if tools < SERVERS {
            return Err(format!("only {tools} tools are on offer").into());
        }
    }
    Ok(())
}

fn search(until: Instant) {
    let documents: Vec<ToolDocument> = samples::tools(TOOLS)
        .into_iter()
        .map(|tool| {
            let text = |member: &str| tool[member].as_str().unwrap_or_default().to_owned();
            let mut document = ToolDocument {
                id: text("name"),
                name: text("name"),
                title: text("title"),
                description: text("description"),
                ..ToolDocument::default()
            };
            document.describe(&tool["inputSchema"], &SearchLimits::default());
            document
        })
        .collect();
    let index = ToolIndex::new(documents, SearchLimits::default());
    let asked =
        ["merge an invoice", "who may delete a customer", "export the dataset of a workspace"];
    while Instant::now() < until {
        for query in asked {
            std::hint::black_box(index.search(query, 10));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_name_every_path_is_meant() {
        let parse = |line: &str| {
            Options::parse(line.split_whitespace().map(str::to_owned)).map(|options| options.paths)
        };
        assert_eq!(parse("").unwrap(), Hot::ALL);
        assert_eq!(parse("search hub-start").unwrap(), [Hot::Search, Hot::HubStart]);
        assert!(parse("--fast").is_err());
        for hot in Hot::ALL {
            assert_eq!(Hot::named(hot.as_str()).unwrap(), hot);
        }
    }
}
