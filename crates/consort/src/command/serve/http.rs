//! The gateway over HTTP: listening, announcing the address, and shutting down in order.

use std::io::IsTerminal;
use std::path::PathBuf;

use consort_admin::AdminState;
use consort_config::{
    ExportMode, KNOWN_CLIENTS, KnownClient, ListenAddress, install_link, snippet,
};
use consort_gateway::Gateway;
use consort_identity::PublicLocation;
use consort_server::BasePath;
use serde_json::json;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::listeners::BoundListeners;
use super::sockets::ActivatedSockets;
use super::token::StoredToken;
use crate::cli::{GlobalArguments, ServeArguments};
use crate::exit::{CommandError, ExitStatus};
use crate::gateways::RunningGateway;
use crate::output::{json_text, line, note};

/// Clients whose entries are printed at the start.
const SHOWN_CLIENTS: [&str; 3] = ["claude-desktop", "cursor", "vscode"];

/// Default limit of threads.
const THREADS: usize = 4;

/// Addresses to listen on.
pub(super) struct ListenAddresses {
    /// Sockets passed by socket activation; they replace those that would be bound.
    pub(super) activated: ActivatedSockets,
    /// The address of the gateway, unless sockets were passed.
    pub(super) main: Option<ListenAddress>,
    /// A separate address for health and metrics only.
    pub(super) metrics: Option<ListenAddress>,
    /// The path prefix under which clients reach it.
    pub(super) base_path: BasePath,
}

impl ListenAddresses {
    /// Returns every address at which the gateway is reached.
    pub(super) fn addresses(&self) -> impl Iterator<Item = &ListenAddress> {
        self.activated.addresses().chain(&self.main)
    }
}

/// Serves until shutdown is requested.
pub(super) async fn serve(
    gateway: &Gateway,
    common: &GlobalArguments,
    flags: &ServeArguments,
    listeners: BoundListeners,
    entry: StartupInfo<'_>,
    signals: &mut ShutdownSignals,
) -> Result<ExitStatus, CommandError> {
    let BoundListeners { sockets, address: at, owner, metrics, base_path, files, .. } = listeners;
    let here = RunningGateway::new(
        at.clone(),
        entry.config.clone(),
        entry.kept.as_ref().map(|kept| kept.file.as_path()),
        entry.console.is_some(),
    );
    let public_url = entry.location.as_ref().map(|location| location.origin.to_string());
    let here = here.reached_at(public_url, owner.clone());
    let recorded = here.record();
    if let Err(error) = &recorded {
        tracing::warn!(%error, "cannot register this gateway: `consort reload` will not find it");
    }
    announce(common, &at, owner.as_ref(), &base_path, &entry);
    let config = entry.config.as_deref().map(|file| file.display().to_string());
    super::log_start(&at.to_string(), config.as_deref());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = flags.threads.map_or(cores.min(THREADS), usize::from);
    let watched = async {
        if let Some(listener) = metrics {
            gateway.serve_metrics(listener).await;
        }
    };
    let serving = async { tokio::join!(gateway.serve_all(sockets, threads), watched) };
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        _ = serving.as_mut() => {}
        () = signals.next() => {}
    }
    if !common.json {
        note(
            "shutting down: waiting up to 30 s for requests in progress; a second signal stops immediately",
        );
    }
    // This ends the event streams of agent runs.
    let ended = async {
        if let Some(console) = entry.console {
            console.end_runs().await;
        }
    };
    tokio::select! {
        // A load balancer sees the shutdown, and its requests are still served.
        () = async {
            tokio::select! {
                _ = serving.as_mut() => {}
                () = gateway.leave() => {}
            }
            tokio::join!(gateway.drain(), serving, ended);
        } => {}
        () = signals.next() => gateway.end().await,
    }
    here.remove();
    drop(files);
    Ok(ExitStatus::Ok)
}

/// Connection details to announce at the start.
pub(super) struct StartupInfo<'a> {
    /// The owner's token, if one is needed.
    pub(super) kept: Option<StoredToken>,
    /// Names of the agents and models that clients can use.
    pub(super) asked: Vec<String>,
    /// The console, if there is one.
    pub(super) console: Option<&'a AdminState>,
    /// The config, if there is one.
    pub(super) config: Option<PathBuf>,
    /// The URL under which clients reach the gateway, if the config sets it or users sign in.
    pub(super) location: Option<PublicLocation>,
    /// True if users sign in.
    pub(super) has_users: bool,
}

/// Prints the URLs of the gateway, its token or the file of it, and snippets for clients.
fn announce(
    common: &GlobalArguments,
    at: &ListenAddress,
    owner: Option<&ListenAddress>,
    base: &BasePath,
    entry: &StartupInfo<'_>,
) {
    let StartupInfo { kept, asked, console, location, .. } = entry;
    let kept = kept.as_ref();
    let socket = match at {
        ListenAddress::Tcp(_) => None,
        ListenAddress::Unix(path) => Some(path),
    };
    let base = match (location, at) {
        (Some(location), _) => location.url(""),
        (None, ListenAddress::Tcp(address)) => format!("http://{address}{}", base.as_str()),
        // A client of a Unix socket still sends a host name.
        (None, ListenAddress::Unix(_)) => format!("http://localhost{}", base.as_str()),
    };
    let endpoint = format!("{base}/mcp");
    if common.json {
        let file = kept.map(|kept| kept.file.display().to_string());
        let openai = (!asked.is_empty()).then(|| format!("{base}/v1"));
        let console = console.map(|_| format!("{base}/console/"));
        let told = json!({
            "endpoint": endpoint, "socket": socket, "token_file": file, "openai": openai,
            "console": console, "owner": owner,
        });
        json_text(&told.to_string());
        return;
    }
    line(format!("serving at {endpoint}"));
    if let Some(path) = socket {
        line(format!("on the Unix socket {}", path.display()));
    }
    if console.is_some() {
        line(format!("console: {base}/console/"));
    }
    if entry.has_users {
        line(format!("sign-in: {base}/me"));
    }
    if let Some(owner) = owner {
        line(format!("owner's listener: {owner}"));
    }
    if !asked.is_empty() {
        line(format!("OpenAI-compatible API: {base}/v1, model {}", asked.join(" or ")));
    }
    // Other outputs are journals or files, which would store the token.
    let is_terminal = std::io::stdout().is_terminal();
    let shown = is_terminal && kept.is_some_and(|kept| kept.created);
    match kept {
        None => note("warning: served without authentication (--allow-unauthenticated)"),
        Some(kept) if shown => {
            line(format!("token: {}", kept.secret));
            line(format!("stored in {}; it is not shown again", kept.file.display()));
        }
        Some(kept) => line(format!("token: see {}", kept.file.display())),
    }
    // Clients of users ask for access themselves.
    let token = kept
        .filter(|_| !entry.has_users)
        .map(|kept| if shown { kept.secret.clone() } else { "TOKEN".to_owned() });
    print_snippets(&ExportMode::Url { url: endpoint, token }, is_terminal);
}

/// Prints the entries of a few clients, and on a terminal the links that install them.
fn print_snippets(mode: &ExportMode, is_terminal: bool) {
    for client in SHOWN_CLIENTS.iter().filter_map(|id| KnownClient::find(id)) {
        line(format!("\n{client}:\n{}", snippet(client, mode).trim_end()));
        if let Some(link) = install_link(client, mode).filter(|_| is_terminal) {
            line(format!("or open: {link}"));
        }
    }
    line("\n`consort config export CLIENT` adds this to the client's own config");
    let others: Vec<&str> = KNOWN_CLIENTS.iter().map(|client| client.id).collect();
    line(format!("clients: {}", others.join(", ")));
}

/// Shutdown signals, received from the creation of this value on.
pub(super) struct ShutdownSignals {
    terminate: Signal,
    interrupt: Signal,
    quit: Signal,
}

impl ShutdownSignals {
    pub(super) fn new() -> Result<Self, CommandError> {
        let hear = |kind| {
            signal(kind).map_err(|error| {
                CommandError::usage(format!("cannot install signal handlers: {error}"))
            })
        };
        Ok(Self {
            terminate: hear(SignalKind::terminate())?,
            interrupt: hear(SignalKind::interrupt())?,
            quit: hear(SignalKind::quit())?,
        })
    }

    /// Waits for a shutdown signal.
    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            _ = self.quit.recv() => {}
        }
    }
}
