//! Real clients, each in a process of its own: third-party clients and the official SDKs.
//!
//! A driver runs a [`Plan`] against a [`Target`] and reports the outcome of each [`Action`]. The same plan is run
//! against a server and against a gateway in front of it.

mod matrix;
mod plan;
mod row;
mod stage;
pub mod stepwise;

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use consort_protocol::Era;
use rustix::process::{Pid, Signal, kill_process_group};

pub use matrix::matrix;
pub use plan::{Ask, Call, Cancel, Complete, List, Name, Part, Plan, Prompt, Read, Watch};
pub use row::{Action, Outcome, Row};
pub use stage::{Fixture, Stage};

use crate::fixtures;

/// Time limit of a driver for a whole plan.
const PATIENCE: Duration = Duration::from_mins(6);

/// A client, and the era it prefers if it supports both. With the modern one preferred, it falls back to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Client {
    /// `fastmcp`, Python.
    FastMcp(Era),
    /// `@modelcontextprotocol/inspector --cli`.
    Inspector(Era),
    /// `mcp`, the official SDK for Python.
    Python(Era),
    /// `rmcp`, the official SDK for Rust.
    Rmcp(Era),
    /// `@modelcontextprotocol/client`, the official SDK for TypeScript.
    TypeScript(Era),
    /// `@modelcontextprotocol/sdk`, its first version, which is legacy only.
    TypeScriptV1,
}

impl Client {
    /// All of them, those of both eras in each.
    pub const ALL: [Self; 11] = [
        Self::FastMcp(Era::Legacy),
        Self::FastMcp(Era::Modern),
        Self::Inspector(Era::Legacy),
        Self::Inspector(Era::Modern),
        Self::Python(Era::Legacy),
        Self::Python(Era::Modern),
        Self::Rmcp(Era::Legacy),
        Self::Rmcp(Era::Modern),
        Self::TypeScript(Era::Legacy),
        Self::TypeScript(Era::Modern),
        Self::TypeScriptV1,
    ];

    /// Returns its display name.
    pub fn name(self) -> &'static str {
        match self {
            Self::FastMcp(_) => "FastMCP",
            Self::Inspector(_) => "Inspector CLI",
            Self::Python(_) => "Python SDK",
            Self::Rmcp(_) => "Rust SDK",
            Self::TypeScript(_) => "TypeScript SDK v2",
            Self::TypeScriptV1 => "TypeScript SDK v1",
        }
    }

    /// The era it prefers.
    pub fn era(self) -> Era {
        match self {
            Self::FastMcp(era)
            | Self::Inspector(era)
            | Self::Python(era)
            | Self::Rmcp(era)
            | Self::TypeScript(era) => era,
            Self::TypeScriptV1 => Era::Legacy,
        }
    }

    fn driver(self) -> std::process::Command {
        let script = |program: &Path, name: &str| {
            let mut command = std::process::Command::new(program);
            command.arg(fixtures::client(name));
            command
        };
        let node = |name| {
            let mut command = script(&fixtures::node(), name);
            command.env("NODE_PATH", fixtures::node_modules());
            command
        };
        let python = |name| {
            let mut command = script(&fixtures::python("python3"), name);
            // Its scripts are in the repository, where nothing else shall appear.
            command.env("PYTHONDONTWRITEBYTECODE", "1").env("PYTHONWARNINGS", "ignore");
            command
        };
        match self {
            Self::FastMcp(_) => python("fastmcp_client.py"),
            Self::Inspector(_) => node("inspector_client.cjs"),
            Self::Python(_) => python("python_client.py"),
            Self::Rmcp(_) => std::process::Command::new(crate::bin("rmcp-client")),
            Self::TypeScript(_) => node("typescript_client.cjs"),
            Self::TypeScriptV1 => node("typescript_v1_client.cjs"),
        }
    }
}

/// Server that a driver connects to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// At a URL, with a bearer token if it requires one.
    Http {
        /// The URL.
        url: String,
        /// The token.
        token: Option<String>,
    },
    /// A program to start, with its arguments.
    Stdio(Vec<String>),
}

impl Target {
    /// A target at a URL that requires no token.
    pub fn http(url: impl Into<String>) -> Self {
        Self::Http { url: url.into(), token: None }
    }

    fn words(&self) -> Vec<&str> {
        match self {
            Self::Http { url, token } => {
                ["http", url].into_iter().chain(token.as_deref()).collect()
            }
            Self::Stdio(words) => {
                std::iter::once("stdio").chain(words.iter().map(String::as_str)).collect()
            }
        }
    }

    /// The transport's name.
    pub fn transport(&self) -> &'static str {
        match self {
            Self::Http { .. } => "http",
            Self::Stdio(_) => "stdio",
        }
    }
}

/// Runs a plan with a client against a server, which behaves as `fixture` does.
pub async fn play(client: Client, fixture: Fixture, plan: &Plan, target: &Target) -> Row {
    let mut command = client.driver();
    command
        .arg(plan.text(client.era()))
        .args(target.words())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let output = run(command).await;
    Row::new(client, fixture, target.transport(), &output)
}

/// Runs a program to its end; at the time limit, kills it with all its children.
async fn run(command: std::process::Command) -> Output {
    let mut command = tokio::process::Command::from(command);
    let child = command.process_group(0).kill_on_drop(true).spawn().expect("the driver starts");
    let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let waited = tokio::time::timeout(PATIENCE, child.wait_with_output()).await;
    if let Some(group) = group {
        // Also after its end: whatever it left behind is of no use any more.
        let _ = kill_process_group(group, Signal::KILL);
    }
    waited.map_or_else(
        |_| Output {
            status: std::process::ExitStatus::default(),
            stdout: Vec::new(),
            stderr: b"it took too long".to_vec(),
        },
        |output| output.expect("the driver can be waited for"),
    )
}
