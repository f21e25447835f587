//! Gateways that run on this machine, each recorded in a file for other commands.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use consort_config::{ConfigLocation, ListenAddress, UserFolders, state_folder};
use consort_core::escape::escape_text;
use consort_files::FileReaders;
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};

use crate::cli::GlobalArguments;
use crate::command_hub::config_failure;
use crate::exit::{CommandError, ExitStatus};

/// Record of a running gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunningGateway {
    pub(crate) pid: i32,
    /// Start time of the process, in the kernel's units: it tells the process from a later one with the same id.
    started: Option<u64>,
    pub(crate) address: ListenAddress,
    /// The owner's own listener, if there is one: requests to the admin API are sent there.
    #[serde(default)]
    pub(crate) admin_address: Option<ListenAddress>,
    /// The origin under which clients reach it, if the config sets one.
    #[serde(default)]
    pub(crate) public_url: Option<String>,
    /// The config in use, if it is a file.
    pub(crate) config: Option<PathBuf>,
    /// The file of the owner's token, if one is needed.
    pub(crate) token_file: Option<PathBuf>,
    /// True if it serves the admin API.
    pub(crate) admin: bool,
    /// Version of the program; absent in records of earlier versions.
    #[serde(default)]
    pub(crate) version: Option<String>,
    /// Time of the start, in seconds since 1970; absent in records of earlier versions.
    #[serde(default)]
    pub(crate) started_at: Option<u64>,
}

impl RunningGateway {
    /// A record of this process, serving at an address.
    pub(crate) fn new(
        address: ListenAddress,
        config: Option<PathBuf>,
        token_file: Option<&Path>,
        admin: bool,
    ) -> Self {
        let pid = i32::try_from(std::process::id()).unwrap_or_default();
        let whole = |file: &Path| std::path::absolute(file).ok();
        Self {
            pid,
            started: started(pid),
            address,
            admin_address: None,
            public_url: None,
            config: config.filter(|file| file.is_file()).and_then(|file| whole(&file)),
            token_file: token_file.and_then(whole),
            admin,
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            started_at: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .ok()
                .map(|time| time.as_secs()),
        }
    }

    /// The same, reached under another origin, and for the admin API at another address.
    pub(crate) fn reached_at(
        self,
        public_url: Option<String>,
        admin_address: Option<ListenAddress>,
    ) -> Self {
        Self { admin_address, public_url, ..self }
    }

    /// The time since its start.
    pub(crate) fn uptime(&self) -> Option<Duration> {
        let started = UNIX_EPOCH + Duration::from_secs(self.started_at?);
        Some(SystemTime::now().duration_since(started).unwrap_or_default())
    }

    /// The URL of the gateway for clients on this machine, without a path; that of a Unix socket has no port.
    pub(crate) fn base_url(&self) -> String {
        if let Some(url) = &self.public_url {
            return url.clone();
        }
        match local(&self.address) {
            ListenAddress::Tcp(address) => format!("http://{address}"),
            ListenAddress::Unix(_) => "http://localhost".to_owned(),
        }
    }

    /// Writes the record, readable only by its owner.
    pub(crate) fn record(&self) -> io::Result<()> {
        let Some(file) = self.file() else { return Ok(()) };
        if let Some(folder) = file.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        consort_files::replace(&file, &serde_json::to_vec(self)?, FileReaders::Owner)
    }

    /// Removes the record.
    pub(crate) fn remove(&self) {
        if let Some(file) = self.file() {
            let _ = fs::remove_file(file);
        }
    }

    /// Returns all running gateways of this user, and removes the records of those that ended.
    pub(crate) fn all() -> Vec<Self> {
        let entries = folder().and_then(|folder| fs::read_dir(folder).ok());
        let mut running: Vec<Self> = Vec::new();
        for entry in entries.into_iter().flatten().flatten() {
            let file = entry.path();
            if file.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let read = fs::read(&file).ok();
            match read.and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok()) {
                Some(gateway) if gateway.is_alive() => running.push(gateway),
                _ => drop(fs::remove_file(&file)),
            }
        }
        running.sort_by_key(|gateway| gateway.pid);
        running
    }

    /// The address for requests to the admin API from this machine.
    pub(crate) fn local_address(&self) -> ListenAddress {
        local(self.admin_address.as_ref().unwrap_or(&self.address))
    }

    /// Returns true if it runs with this config, or without one.
    pub(crate) fn uses(&self, config: Option<&Path>) -> bool {
        match (self.config.as_deref(), config) {
            (Some(ours), Some(theirs)) => same_file(ours, theirs),
            (None, None) => true,
            _ => false,
        }
    }

    fn is_alive(&self) -> bool {
        let Some(pid) = Pid::from_raw(self.pid) else { return false };
        let there = match test_kill_process(pid) {
            Ok(()) => true,
            Err(error) => error == rustix::io::Errno::PERM,
        };
        there && started(self.pid) == self.started
    }

    fn file(&self) -> Option<PathBuf> {
        Some(folder()?.join(format!("{}.json", self.pid)))
    }
}

/// The address for connections from this machine.
fn local(address: &ListenAddress) -> ListenAddress {
    let ListenAddress::Tcp(socket) = address else { return address.clone() };
    let ip = match socket.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    ListenAddress::Tcp(SocketAddr::new(ip, socket.port()))
}

/// The gateways that run with the config in use; fails if there are none.
pub(crate) fn running_gateways(
    common: &GlobalArguments,
) -> Result<Vec<RunningGateway>, CommandError> {
    let config = config_file(common)?;
    let config = config.as_deref();
    let (ours, others): (Vec<_>, Vec<_>) =
        RunningGateway::all().into_iter().partition(|gateway| gateway.uses(config));
    if !ours.is_empty() {
        return Ok(ours);
    }
    let which = config.map_or(String::new(), |file| {
        format!(" with the config `{}`", escape_text(&file.display().to_string()))
    });
    let failure = CommandError {
        exit: ExitStatus::Unreachable,
        ..CommandError::usage(format!("no gateway is running{which}"))
    };
    let known: Vec<String> = others
        .iter()
        .filter_map(|gateway| gateway.config.as_ref())
        .map(|file| format!("`{}`", escape_text(&file.display().to_string())))
        .collect();
    Err(match known.as_slice() {
        [] => failure.hint("start one with `consort serve`"),
        known => failure.hint(format!(
            "use --config with the config of a running gateway: {}",
            known.join(", ")
        )),
    })
}

/// The selected config file; `None` for the embedded one.
pub(crate) fn config_file(common: &GlobalArguments) -> Result<Option<PathBuf>, CommandError> {
    let variable = std::env::var_os(consort_config::CONFIG_VARIABLE).map(PathBuf::from);
    let folders = UserFolders::of_process();
    let lookup =
        consort_config::find_config(common.config.as_deref(), variable.as_deref(), &folders);
    match lookup.map_err(|error| config_failure(&error))?.found {
        ConfigLocation::File(file) => Ok(std::path::absolute(file).ok()),
        ConfigLocation::Embedded => Ok(None),
    }
}

/// Returns true if two paths lead to the same file, directly or through links.
fn same_file(one: &Path, other: &Path) -> bool {
    let behind = |file: &Path| fs::canonicalize(file).ok();
    one == other || behind(one).is_some_and(|one| Some(one) == behind(other))
}

fn folder() -> Option<PathBuf> {
    Some(state_folder()?.join("running"))
}

/// The start time of a process, if `/proc` is available.
fn started(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program may have blanks and brackets.
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_of_the_same_id_that_began_at_another_time_is_not_the_gateway() {
        let address = "127.0.0.1:1".parse().unwrap();
        let gateway = RunningGateway::new(address, None, None, true);
        assert!(gateway.is_alive());
        let other = RunningGateway { started: gateway.started.map(|time| time + 1), ..gateway };
        assert_eq!(other.is_alive(), other.started.is_none());
    }

    #[test]
    fn a_gateway_at_every_address_is_reached_at_the_loopback_one() {
        let at = |address: &str| {
            let address = address.parse().unwrap();
            RunningGateway::new(address, None, None, true).local_address().to_string()
        };
        assert_eq!(at("0.0.0.0:8808"), "127.0.0.1:8808");
        assert_eq!(at("[::]:1"), "[::1]:1");
        assert_eq!(at("192.0.2.1:1"), "192.0.2.1:1");
    }
}
