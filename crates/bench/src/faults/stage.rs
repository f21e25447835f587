//! A gateway, the servers behind it, and its callers.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use consort_protocol::Era;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tempfile::TempDir;
use testkit::rogue::Manner;
use tokio::process::Command;

use super::client::Principal;
use super::proxy::Proxy;
use super::record::{Ledger, Record};
use super::server::Scripted;
use crate::Failure;
use crate::gateway::process::{End, Process};
use crate::server::Listen;

/// Idle timeout and total timeout of a call.
pub(super) const IDLE: Duration = Duration::from_secs(1);
pub(super) const TOTAL: Duration = Duration::from_secs(3);

/// Tolerated delay: machines are busy, more so while they test.
pub(super) const SLACK: Duration = Duration::from_secs(if cfg!(debug_assertions) { 2 } else { 1 });

/// Maximum number of failures of a server per minute: one less than the gateway tolerates.
const EXITS: usize = 4;
const MINUTE: Duration = Duration::from_secs(62);

/// A server of a stage.
#[derive(Clone, Debug)]
pub(super) enum Server {
    Stdio(Manner),
    /// Started by another program, which waits for it.
    Launched(Manner),
    /// In a process of its own, behind a proxy.
    Http(Manner),
    /// A program that behaves correctly, and is treated as any server.
    Healthy(Manner),
    /// The same in a process of its own.
    HealthyHttp(Manner),
}

/// Configuration of a stage.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) consort: PathBuf,
    pub(super) servers: Vec<(String, Server)>,
    pub(super) principals: usize,
    /// Shell commands that run before the gateway is executed.
    pub(super) before: Option<String>,
}

/// An HTTP server and the proxy before it.
#[derive(Debug)]
pub(super) struct Remote {
    manner: Manner,
    process: tokio::sync::Mutex<Option<Process>>,
    pub(super) proxy: Proxy,
}

/// A gateway with its servers and callers.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) folder: TempDir,
    pub(super) gateway: tokio::sync::Mutex<Process>,
    pub(super) pid: u32,
    pub(super) address: String,
    pub(super) principals: Vec<Principal>,
    /// The owner of the gateway: the main connections to servers are its.
    pub(super) owner: Principal,
    remotes: BTreeMap<String, Remote>,
    ledger: Mutex<Ledger>,
    /// Finished calls.
    pub(super) records: Mutex<Vec<Record>>,
    /// Times of failures, by server.
    exits: Mutex<HashMap<String, Vec<Instant>>>,
    pub(super) config: String,
}

/// Returns a number that no other call of this process has.
pub(super) fn next() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A recognizable secret, to find out where it leaks.
pub(super) fn canary(kind: &str) -> String {
    format!("canary-of-faults-{kind}-{}", std::process::id())
}

impl Stage {
    pub(super) async fn start(plan: Plan) -> Result<Self, Failure> {
        let folder = TempDir::with_prefix("consort-faults-")?;
        let ledger = folder.path().join("executions");
        let (mut config, mut remotes) = (head(folder.path(), plan.principals)?, BTreeMap::new());
        for (name, server) in &plan.servers {
            let with = |manner: &Manner| named(name, &ledger, manner);
            match server {
                Server::Stdio(manner) => config.push_str(&(stdio(name, &with(manner))? + LIMITS)),
                Server::Healthy(manner) => config.push_str(&stdio(name, &with(manner))?),
                Server::Launched(manner) => {
                    config.push_str(&(launched(name, &with(manner))? + LIMITS));
                }
                Server::Http(manner) | Server::HealthyHttp(manner) => {
                    let remote = Remote::start(with(manner)).await?;
                    let _ = writeln!(config, "[mcp.{name}]\nurl = {:?}", remote.proxy.url());
                    config.push_str("headers = { X-Canary = \"env:CANARY_HEADER\" }\n");
                    if matches!(server, Server::Http(_)) {
                        config.push_str(LIMITS);
                    }
                    remotes.insert(name.clone(), remote);
                }
            }
        }
        fs::write(folder.path().join("consort.toml"), &config)?;
        let gateway = gateway(&plan, folder.path()).await?;
        let said: Value = serde_json::from_str(gateway.said())?;
        let address = said["endpoint"].as_str().and_then(|url| url.strip_prefix("http://"));
        let address = address.and_then(|url| url.strip_suffix("/mcp")).ok_or("no address")?;
        let token = fs::read_to_string(said["token_file"].as_str().ok_or("no token")?)?;
        let owner = Principal::enter(address, "owner", token.trim(), Era::Modern).await?;
        let mut principals = Vec::new();
        for n in 0..plan.principals {
            let era = if n % 2 == 0 { Era::Modern } else { Era::Legacy };
            let name = format!("p{n}");
            principals.push(Principal::enter(address, &name, &canary(&name), era).await?);
        }
        Ok(Self {
            pid: gateway.pid(),
            address: address.to_owned(),
            gateway: tokio::sync::Mutex::new(gateway),
            principals,
            owner,
            remotes,
            ledger: Mutex::new(Ledger::new(&ledger)),
            records: Mutex::default(),
            exits: Mutex::default(),
            config,
            folder,
        })
    }

    /// Waits until the tools of all these servers are listed.
    pub(super) async fn offered(&self, names: &[&str]) -> Result<(), Failure> {
        let begun = Instant::now();
        loop {
            let tools = self.principals[0].tools().await?;
            let missing = |name: &&&str| !tools.contains(&format!("{name}__write"));
            match names.iter().find(missing) {
                None => return Ok(()),
                Some(name) if begun.elapsed() > Duration::from_secs(30) => {
                    return Err(format!("`{name}` does not offer its tools").into());
                }
                Some(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    pub(super) fn remote(&self, name: &str) -> &Remote {
        &self.remotes[name]
    }

    /// Returns the log of the servers, up to date.
    pub(super) fn ledger(&self) -> Result<MutexGuard<'_, Ledger>, Failure> {
        let mut ledger = self.ledger.lock();
        ledger.refresh()?;
        Ok(ledger)
    }

    /// Picks one of these servers that has not failed too often recently, and records that it fails now.
    pub(super) fn victim(&self, names: &[&'static str]) -> Option<&'static str> {
        let mut exits = self.exits.lock();
        let mut lately = |name: &&'static str| {
            let exits = exits.entry((*name).to_owned()).or_default();
            exits.retain(|exit| exit.elapsed() < MINUTE);
            exits.len()
        };
        let chosen = names.iter().copied().min_by_key(&mut lately)?;
        if lately(&chosen) >= EXITS {
            return None;
        }
        exits.entry(chosen.to_owned()).or_default().push(Instant::now());
        Some(chosen)
    }

    pub(super) fn stderr(&self) -> String {
        fs::read_to_string(self.folder.path().join("stderr")).unwrap_or_default()
    }

    /// Ends the servers that run in processes of their own.
    pub(super) async fn end_remotes(&self) -> Result<(), Failure> {
        for remote in self.remotes.values() {
            if let Some(process) = remote.process.lock().await.take() {
                process.end().await?;
            }
        }
        Ok(())
    }
}

/// A server that is identified by its command line, and logs its calls.
fn named(name: &str, ledger: &Path, manner: &Manner) -> Manner {
    let mut manner = Manner { ledger: Some(ledger.to_owned()), ..manner.clone() };
    manner.capabilities["experimental"] = serde_json::json!({ mark(name): {} });
    manner
}

/// Returns a unique mark in the command line of a server.
pub(super) fn mark(name: &str) -> String {
    format!("server {name}.")
}

const LIMITS: &str = "timeout = { idle = \"1s\", total = \"3s\" }\n";

/// Returns the general config: naming, and the tokens of the callers.
fn head(folder: &Path, principals: usize) -> Result<String, Failure> {
    let mut config = "[consort]\nnaming = \"{server}__{name}\"\n\n[consort.tokens]\n".to_owned();
    for n in 0..principals {
        let file = folder.join(format!("token-p{n}"));
        fs::write(&file, canary(&format!("p{n}")))?;
        let _ = writeln!(config, "p{n} = {:?}", format!("file:{}", file.display()));
    }
    Ok(config)
}

/// A TOML string, written as JSON.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn program() -> Result<String, Failure> {
    let program = std::env::current_exe()?;
    Ok(program.to_str().ok_or("the path of this program is not text")?.to_owned())
}

fn stdio(name: &str, manner: &Manner) -> Result<String, Failure> {
    let words = Scripted::new(Listen::Stdio, manner).words();
    let command: Vec<String> =
        std::iter::once(program()?).chain(words).map(|word| quoted(&word)).collect();
    Ok(format!("[mcp.{name}]\ncommand = [{}]\n", command.join(", ")))
}

fn launched(name: &str, manner: &Manner) -> Result<String, Failure> {
    let words = Scripted::new(Listen::Stdio, manner).words();
    // What a shell starts in the background reads nothing unless it is told what.
    let script = "exec 3<&0; \"$@\" <&3 & wait";
    let command: Vec<String> = ["sh", "-c", script, "launcher", &program()?]
        .into_iter()
        .map(str::to_owned)
        .chain(words)
        .map(|word| quoted(&word))
        .collect();
    Ok(format!("[mcp.{name}]\ncommand = [{}]\n", command.join(", ")))
}

async fn gateway(plan: &Plan, folder: &Path) -> Result<Process, Failure> {
    let mut command = Command::new(&plan.consort);
    if let Some(before) = &plan.before {
        command = Command::new("sh");
        command.args(["-c", &format!("{before}; exec \"$0\" \"$@\"")]).arg(&plan.consort);
    }
    command.arg("serve").arg("--config").arg(folder.join("consort.toml"));
    command.args(["--listen", "127.0.0.1:0", "--json", "--ledger"]).arg(folder.join("ledger.db"));
    command.env("HOME", folder).env("CANARY_ENV", canary("env"));
    command.env("CANARY_HEADER", canary("header"));
    for (name, inside) in
        [("XDG_CACHE_HOME", "cache"), ("XDG_STATE_HOME", "state"), ("XDG_CONFIG_HOME", "config")]
    {
        command.env(name, folder.join(inside));
    }
    let errors = folder.join("stderr");
    command.stdin(Stdio::null()).stderr(File::create(&errors)?);
    Process::spawn(command, End::Signal).await.map_err(|error| {
        let said = fs::read_to_string(&errors).unwrap_or_default();
        format!("{}: {error}\n{}", plan.consort.display(), said.trim()).into()
    })
}

impl Remote {
    async fn start(manner: Manner) -> Result<Self, Failure> {
        let (process, address) = serve(&manner).await?;
        let proxy = Proxy::start(address).await?;
        Ok(Self { manner, process: tokio::sync::Mutex::new(Some(process)), proxy })
    }

    /// Kills the server and starts another without the state of the first.
    pub(super) async fn restart(&self) -> Result<(), Failure> {
        let mut process = self.process.lock().await;
        if let Some(mut old) = process.take() {
            old.signal(rustix::process::Signal::KILL)?;
            old.ended(Duration::from_secs(5)).await?;
        }
        let (new, address) = serve(&self.manner).await?;
        self.proxy.aim(address);
        *process = Some(new);
        Ok(())
    }
}

async fn serve(manner: &Manner) -> Result<(Process, SocketAddr), Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(Scripted::new(Listen::Http, manner).words()).stdin(Stdio::piped());
    let process = Process::spawn(command, End::Input).await?;
    let address = process.said().trim_start_matches("http://").trim_end_matches("/mcp").parse()?;
    Ok((process, address))
}
