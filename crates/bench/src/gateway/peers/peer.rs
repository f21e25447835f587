//! The peers: their installation, command lines and supported servers.

use std::path::Path;

use serde::Serialize;
use serde_json::{Value, json};
use tokio::process::Command;

use super::super::field::Via;
use crate::Failure;

/// Script that installs all of them.
const INSTALL: &str = "scripts/peers";

/// A program that does a part of what Consort does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Peer {
    FastMcp,
    /// The same with one session for all clients.
    FastMcpShared,
    McpProxyPypi,
    McpProxyNpm,
    Supergateway,
    McpHub,
}

/// A peer with its folder, and its version if it is installed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Installed {
    pub(super) name: &'static str,
    #[serde(skip)]
    pub(super) peer: Peer,
    #[serde(skip)]
    pub(super) folder: std::path::PathBuf,
    /// None if it is absent.
    pub(super) version: Option<String>,
    pub(super) setting: &'static str,
    /// Command that installs it.
    pub(super) install: &'static str,
}

impl Peer {
    pub(super) const ALL: [Self; 6] = [
        Self::FastMcp,
        Self::FastMcpShared,
        Self::McpProxyPypi,
        Self::McpProxyNpm,
        Self::Supergateway,
        Self::McpHub,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::FastMcp => "fastmcp",
            Self::FastMcpShared => "fastmcp-shared",
            Self::McpProxyPypi => "mcp-proxy-pypi",
            Self::McpProxyNpm => "mcp-proxy-npm",
            Self::Supergateway => "supergateway",
            Self::McpHub => "mcp-hub",
        }
    }

    /// Returns a description of its configuration.
    fn setting(self) -> &'static str {
        match self {
            Self::FastMcp => "`create_proxy(config)`: a session with the server for each request",
            Self::FastMcpShared => {
                "`create_proxy(client)` of a connected client: one session for all"
            }
            Self::McpProxyPypi => "as it comes: one session with the server for all",
            Self::McpProxyNpm => "`--server stream`: a server process for each session",
            Self::Supergateway => "`--stateful`: a server process for each session",
            Self::McpHub => {
                "as it comes: one session with the server for all; serves HTTP+SSE only"
            }
        }
    }

    /// The servers it is meant to be put before.
    pub(super) fn servers(self) -> &'static [Via] {
        match self {
            Self::FastMcp | Self::FastMcpShared | Self::McpHub => &[Via::Http, Via::Stdio],
            Self::McpProxyPypi | Self::McpProxyNpm | Self::Supergateway => &[Via::Stdio],
        }
    }

    /// Returns the prefix that it adds to tool names.
    pub(super) fn prefix(self) -> &'static str {
        match self {
            Self::McpHub => "bench__",
            _ => "",
        }
    }

    /// Its folder in that of all peers, and the package in it.
    fn package(self) -> (&'static str, &'static str) {
        match self {
            Self::FastMcp | Self::FastMcpShared => ("fastmcp", "fastmcp"),
            Self::McpProxyPypi => ("mcp-proxy", "mcp_proxy"),
            Self::McpProxyNpm => ("npm", "mcp-proxy"),
            Self::Supergateway => ("npm", "supergateway"),
            Self::McpHub => ("npm", "mcp-hub"),
        }
    }

    /// Looks for it in the folder of all peers.
    pub(super) fn installed(self, peers: &Path) -> Installed {
        let (folder, package) = self.package();
        let folder = peers.join(folder);
        let version = match self {
            Self::FastMcp | Self::FastMcpShared | Self::McpProxyPypi => {
                python_version(&folder, package)
            }
            Self::McpProxyNpm | Self::Supergateway | Self::McpHub => node_version(&folder, package),
        };
        let (name, setting) = (self.name(), self.setting());
        Installed { name, peer: self, folder, version, setting, install: INSTALL }
    }

    /// Returns its URL when it listens on a port.
    pub(super) fn url(self, port: u16) -> String {
        match self {
            Self::McpHub => format!("http+sse://127.0.0.1:{port}/mcp"),
            _ => format!("http://127.0.0.1:{port}/mcp"),
        }
    }
}

impl Installed {
    /// The command to listen on `port` before the one server of `config`. It may write in `scratch`.
    pub(super) fn command(
        &self,
        port: u16,
        server: &Value,
        scratch: &Path,
    ) -> Result<Command, Failure> {
        let port = port.to_string();
        let config = json!({ "mcpServers": { "bench": server } }).to_string();
        let words = || stdio_words(server);
        let mut command = match self.peer {
            Peer::FastMcp | Peer::FastMcpShared => {
                let mut command = Command::new(self.folder.join("bin/python"));
                command.arg(ours("start_fastmcp.py")).args([&port, &config]);
                if self.peer == Peer::FastMcpShared {
                    command.arg("shared");
                }
                command.env("FASTMCP_CHECK_FOR_UPDATES", "off");
                command
            }
            Peer::McpProxyPypi => {
                let mut command = Command::new(self.folder.join("bin/mcp-proxy"));
                command.args(["--port", &port, "--log-level", "WARNING", "--"]).args(words()?);
                command
            }
            Peer::McpProxyNpm => {
                let mut command = self.node("mcp-proxy/dist/bin/mcp-proxy.mjs");
                command.args(["--host", "127.0.0.1", "--port", &port, "--server", "stream", "--"]);
                command.args(words()?);
                command
            }
            Peer::Supergateway => {
                let mut command = self.node("supergateway/dist/index.js");
                command.args(["--stdio", &shell(&words()?), "--port", &port]);
                command.args(["--outputTransport", "streamableHttp", "--stateful"]);
                command.args(["--logLevel", "none"]);
                command
            }
            Peer::McpHub => {
                let file = scratch.join("config.json");
                std::fs::write(&file, config)?;
                let mut command = self.node("mcp-hub/dist/cli.js");
                command.args(["--port", &port, "--config"]).arg(file);
                command
            }
        };
        command.env("HOME", scratch).current_dir(scratch);
        for name in ["XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"] {
            command.env(name, scratch);
        }
        Ok(command)
    }

    /// A script of a package, run by the Node that is installed beside it.
    fn node(&self, script: &str) -> Command {
        let modules = self.folder.join("node_modules");
        let mut command = Command::new(modules.join(".bin/node"));
        command.arg("--require").arg(ours("loopback.cjs")).arg(modules.join(script));
        command.env("NODE_ENV", "production");
        command
    }
}

/// A file of this repository that helps to start a peer.
fn ours(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(name)
}

/// The command line of a stdio server.
fn stdio_words(server: &Value) -> Result<Vec<String>, Failure> {
    let command = server["command"].as_str().ok_or("it takes servers on stdio only")?;
    let arguments = server["args"].as_array().into_iter().flatten();
    let arguments = arguments.filter_map(Value::as_str).map(str::to_owned);
    Ok([command.to_owned()].into_iter().chain(arguments).collect())
}

/// Words quoted for a shell.
fn shell(words: &[String]) -> String {
    let quoted = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''")));
    quoted.collect::<Vec<_>>().join(" ")
}

/// The version of a Python package, from the name of its metadata folder.
fn python_version(folder: &Path, package: &str) -> Option<String> {
    for python in std::fs::read_dir(folder.join("lib")).ok()?.flatten() {
        let packages = std::fs::read_dir(python.path().join("site-packages")).ok()?;
        for entry in packages.flatten() {
            let name = entry.file_name().into_string().unwrap_or_default();
            let rest = name.strip_prefix(package).and_then(|rest| rest.strip_prefix('-'));
            if let Some(version) = rest.and_then(|rest| rest.strip_suffix(".dist-info")) {
                return Some(version.to_owned());
            }
        }
    }
    None
}

/// The version in the `package.json` of an npm package.
fn node_version(folder: &Path, package: &str) -> Option<String> {
    let about = folder.join("node_modules").join(package).join("package.json");
    let about: Value = serde_json::from_str(&std::fs::read_to_string(about).ok()?).ok()?;
    Some(about["version"].as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    #[test]
    fn a_peer_is_there_in_the_version_it_is_installed_in() {
        let peers = TempDir::new().unwrap();
        let found = |peer: Peer| peer.installed(peers.path()).version;
        assert_eq!(Peer::ALL.map(found), [const { None::<String> }; 6]);
        let packages = peers.path().join("fastmcp/lib/python3.9/site-packages");
        std::fs::create_dir_all(packages.join("fastmcp_slim-4.9.dist-info")).unwrap();
        assert_eq!(found(Peer::FastMcp), None);
        std::fs::create_dir_all(packages.join("fastmcp-4.1.dist-info")).unwrap();
        assert_eq!(found(Peer::FastMcp).as_deref(), Some("4.1"));
        let module = peers.path().join("npm/node_modules/mcp-hub");
        std::fs::create_dir_all(&module).unwrap();
        std::fs::write(module.join("package.json"), r#"{"version":"1.2.3"}"#).unwrap();
        assert_eq!(found(Peer::McpHub).as_deref(), Some("1.2.3"));
    }

    #[test]
    fn a_command_for_a_shell_stays_the_same_words() {
        let words = ["/a b/c", "it's", "$HOME"].map(str::to_owned);
        assert_eq!(shell(&words), r"'/a b/c' 'it'\''s' '$HOME'");
    }

    #[test]
    fn who_takes_stdio_only_is_given_no_address() {
        let server = json!({"command": "a", "args": ["b", "c"]});
        assert_eq!(stdio_words(&server).unwrap(), ["a", "b", "c"]);
        assert!(stdio_words(&json!({"url": "http://a"})).is_err());
        for peer in [Peer::McpProxyPypi, Peer::McpProxyNpm, Peer::Supergateway] {
            assert_eq!(peer.servers(), [Via::Stdio]);
        }
    }
}
