//! Cost of a hub: starting many servers, listing from the stored catalog, idling, a large catalog.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::time::{Duration, Instant};

use consort_client::{Client, ServerCommand, ServerLocation};
use consort_core::{Caller, Catalog, Json, PrimitiveKind, ServerCatalog, ServerId, Toolbox};
use consort_hub::{ConnectTrigger, Hub, HubSettings, ManagedState, ServerSettings};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::Failure;
use crate::charge;
use crate::options::{Format, Options};
use crate::results;
use crate::statistics::{median, process_time, ratio};

/// Number of servers.
const SERVERS: usize = 20;

/// Number of tools in a large catalog, and of lookups in it.
const TOOLS: usize = 5_000;
const LOOKUPS: u32 = 200_000;

/// Measurement that a child process makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Task {
    /// A hub over all servers, until every listing is read.
    Together,
    /// The same servers connected and listed one after the other.
    OneByOne,
    /// A hub that lists the stored catalog, and ends.
    Kept,
    /// A hub over all servers that then idles.
    Idle,
    /// Only a runtime: the base cost of a process.
    Nothing,
}

/// Result of a child process.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Measured {
    /// Wall-clock seconds of the measured work.
    seconds: f64,
    cpu_seconds: f64,
    resident_kibibytes: u32,
    tools: usize,
}

#[derive(Debug, Serialize)]
struct Report {
    servers: usize,
    together_milliseconds: f64,
    one_by_one_milliseconds: f64,
    one_by_one_times_together: f64,
    kept_list_milliseconds: f64,
    kept_list_cpu_milliseconds: f64,
    idle_mebibytes: f64,
    bare_process_mebibytes: f64,
    catalog_tools: usize,
    catalog_milliseconds: f64,
    lookup_nanoseconds: f64,
}

/// Measures the hub and prints the report.
pub(crate) fn hub(options: &Options) -> Result<(), Failure> {
    let folder = std::env::temp_dir().join(format!("consort-bench-{}", std::process::id()));
    let report = measure(options.rounds, &folder);
    let _ = std::fs::remove_dir_all(&folder);
    let report = report?;
    let text = match options.format {
        Format::Json => serde_json::to_string(&report)?,
        Format::People => report.to_text(),
    };
    results::publish(&text)
}

fn measure(rounds: u32, folder: &Path) -> Result<Report, Failure> {
    // The first one keeps what the others list.
    child(Task::Together, folder)?;
    let (mut together, mut one_by_one, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        together.push(child(Task::Together, folder)?.seconds);
        one_by_one.push(child(Task::OneByOne, folder)?.seconds);
        kept.push(child(Task::Kept, folder)?);
    }
    let idle = child(Task::Idle, folder)?;
    let nothing = child(Task::Nothing, folder)?;
    let (catalog_milliseconds, lookup_nanoseconds) = catalog(rounds)?;
    let mebibytes = |kibibytes: u32| f64::from(kibibytes) / 1024.0;
    Ok(Report {
        servers: SERVERS,
        together_milliseconds: median(together.iter().copied()) * 1e3,
        one_by_one_milliseconds: median(one_by_one.iter().copied()) * 1e3,
        one_by_one_times_together: ratio(&one_by_one, &together),
        kept_list_milliseconds: median(kept.iter().map(|kept| kept.seconds)) * 1e3,
        kept_list_cpu_milliseconds: median(kept.iter().map(|kept| kept.cpu_seconds)) * 1e3,
        idle_mebibytes: mebibytes(idle.resident_kibibytes),
        bare_process_mebibytes: mebibytes(nothing.resident_kibibytes),
        catalog_tools: TOOLS,
        catalog_milliseconds,
        lookup_nanoseconds,
    })
}

/// Runs a measurement in a process of its own.
fn child(task: Task, folder: &Path) -> Result<Measured, Failure> {
    let task = serde_json::to_string(&task)?;
    let output =
        Process::new(std::env::current_exe()?).arg("hub-task").arg(task).arg(folder).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Runs a measurement in this process.
pub(crate) fn run(task: Task, folder: PathBuf) -> Result<Measured, Failure> {
    let begun = Instant::now();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let (mut seconds, mut tools) = (None, 0);
        match task {
            Task::Nothing => {}
            Task::OneByOne => {
                for server in servers()? {
                    let client =
                        Client::connect(&server.server, consort_client::ClientSettings::default())
                            .await?;
                    tools += client.list(PrimitiveKind::Tools).await?.items.len();
                    // Ending it is no part of the start.
                    tokio::spawn(client.close());
                }
                seconds = Some(begun.elapsed());
            }
            Task::Together | Task::Idle | Task::Kept => {
                let mut servers = servers()?;
                if task == Task::Kept {
                    for server in &mut servers {
                        server.connect = ConnectTrigger::Call;
                    }
                }
                let hub = Hub::start(HubSettings {
                    servers,
                    store_folder: Some(folder),
                    ..HubSettings::default()
                });
                if task != Task::Kept {
                    hub.settled().await;
                    let down = hub
                        .statuses()
                        .into_iter()
                        .find(|status| status.state != ManagedState::Ready);
                    if let Some(down) = down {
                        return Err(format!("{}: {:?}", down.server, down.error).into());
                    }
                }
                tools = hub.catalog(&Caller::person("bench")).tools.len();
                seconds = Some(begun.elapsed());
                if task == Task::Idle {
                    tokio::time::sleep(Duration::from_secs(2)).await;
                }
                if task != Task::Kept {
                    let measured = measured(seconds, begun, tools)?;
                    hub.drain().await;
                    return Ok(measured);
                }
            }
        }
        measured(seconds, begun, tools)
    })
}

fn measured(seconds: Option<Duration>, begun: Instant, tools: usize) -> Result<Measured, Failure> {
    Ok(Measured {
        seconds: seconds.unwrap_or_else(|| begun.elapsed()).as_secs_f64(),
        cpu_seconds: process_time().as_secs_f64(),
        resident_kibibytes: charge::resident_kibibytes(std::process::id())?,
        tools,
    })
}

fn servers() -> Result<Vec<ServerSettings>, Failure> {
    let program = std::env::current_exe()?;
    let server = |n: usize| {
        let command = ServerCommand::new(&program).arguments(["serve", "stdio"]);
        ServerSettings::new(
            ServerId::derive(&format!("server-{n:02}")),
            ServerLocation::Command(command),
        )
    };
    Ok((0..SERVERS).map(server).collect())
}

/// Returns the time to build a large catalog, and to look up a name in it.
fn catalog(rounds: u32) -> Result<(f64, f64), Failure> {
    let schema = json!({ "type": "object", "properties": { "id": { "type": "string" }, "limit": { "type": "integer" } } });
    let mut offers: BTreeMap<ServerId, ServerCatalog> = BTreeMap::new();
    for n in 0..TOOLS {
        let name = format!("do_something_useful_{n}");
        let definition = json!({ "name": name, "description": "Does something useful with a thing.", "inputSchema": schema });
        let definition = Json::from(definition).to_object().ok_or("an object")?;
        let offer = offers.entry(ServerId::derive(&format!("server-{}", n % 50))).or_default();
        offer.lists.entry(PrimitiveKind::Tools).or_default().push((name, definition));
    }
    let names: Vec<String> =
        (0..TOOLS).map(|n| format!("server-{}.do_something_useful_{n}", n % 50)).collect();
    let (mut builds, mut lookups) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let before = process_time();
        let catalog = black_box(Catalog::build(&offers));
        builds.push(process_time().saturating_sub(before).as_secs_f64() * 1e3);
        let before = process_time();
        for n in 0..LOOKUPS {
            let name = &names[n as usize * 7919 % TOOLS];
            black_box(catalog.resolve(black_box(name)).map_err(|error| error.to_string())?);
        }
        lookups
            .push(process_time().saturating_sub(before).as_secs_f64() * 1e9 / f64::from(LOOKUPS));
    }
    Ok((median(builds), median(lookups)))
}

impl Report {
    fn to_text(&self) -> String {
        format!(
            "{} stdio servers, from nothing to every list\n\
             \x20 together           {:8.1} ms\n\
             \x20 one by one         {:8.1} ms  ({:.1} x together)\n\
             A list from what is kept, in a process of its own\n\
             \x20 time               {:8.1} ms\n\
             \x20 processor time     {:8.1} ms\n\
             Memory of the process\n\
             \x20 hub, servers idle  {:8.1} MiB\n\
             \x20 nothing            {:8.1} MiB\n\
             A catalog of {} tools\n\
             \x20 built in           {:8.1} ms\n\
             \x20 a name found in    {:8.0} ns",
            self.servers,
            self.together_milliseconds,
            self.one_by_one_milliseconds,
            self.one_by_one_times_together,
            self.kept_list_milliseconds,
            self.kept_list_cpu_milliseconds,
            self.idle_mebibytes,
            self.bare_process_mebibytes,
            self.catalog_tools,
            self.catalog_milliseconds,
            self.lookup_nanoseconds,
        )
    }
}
