//! Servers as reported by the API.

use std::borrow::Cow;
use std::collections::BTreeSet;

use consort_client::UpstreamTransport;
use consort_config::{ServerConfig, TransportConfig};
use consort_hub::ManagedState;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use crate::calls::RecentCalls;

/// A server and its state.
#[derive(Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct ServerReport {
    pub(crate) name: String,
    pub(super) state: ServerState,
    /// Time of the last change of state.
    pub(super) since: String,
    pub(super) transport: ServerTransport,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) era: Option<ServerEra>,
    /// Protocol revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) revision: Option<&'static str>,
    /// Name and version that it reports. Unverified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<String>,
    /// Reason it is not ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    /// Suggested remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hint: Option<String>,
    /// Number of restarts.
    pub(super) restarts: u32,
    pub(super) tools: usize,
    pub(super) prompts: usize,
    pub(super) resources: usize,
    pub(super) templates: usize,
    /// Tokens of its tool definitions.
    pub(super) tokens: usize,
    #[serde(flatten)]
    pub(super) recent: RecentCalls,
}

/// State of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum ServerState {
    Configured,
    Known,
    Connecting,
    Ready,
    #[serde(rename = "needs auth")]
    NeedsAuth,
    Degraded,
    Failed,
    Disabled,
}

/// Name of the transport of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct ServerTransport(pub(super) &'static str);

/// Protocol era of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum ServerEra {
    Legacy,
    Modern,
}

/// A server with its launch configuration and output.
#[derive(Serialize, JsonSchema)]
pub(super) struct ServerDetail {
    #[serde(flatten)]
    pub(super) server: ServerReport,
    #[serde(flatten)]
    pub(super) place: LaunchReport,
    /// End of its standard error; only for the owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stderr: Option<String>,
    /// Instructions for models. Unverified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) instructions: Option<String>,
    /// True if it can be removed from the config here.
    pub(super) removable: bool,
}

/// Command or URL of a server as configured, with secrets hidden.
#[derive(Default, Serialize, JsonSchema)]
pub(super) struct LaunchReport {
    /// Command and its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) command: Option<Vec<String>>,
    /// Working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) url: Option<String>,
    /// Names of its environment variables, except the default ones.
    pub(super) env: Vec<String>,
    /// Names of its HTTP headers.
    pub(super) headers: Vec<String>,
}

impl LaunchReport {
    pub(super) fn of(server: &ServerConfig) -> Self {
        match &server.transport {
            TransportConfig::Stdio(program) => {
                let names: BTreeSet<&String> = program.env.keys().chain(&program.inherit).collect();
                Self {
                    command: Some(program.words().map(ToString::to_string).collect()),
                    cwd: program.cwd.as_ref().map(ToString::to_string),
                    env: names.into_iter().cloned().collect(),
                    ..Self::default()
                }
            }
            TransportConfig::Remote(address) => Self {
                url: Some(address.url.to_string()),
                headers: address.header_names().collect(),
                ..Self::default()
            },
        }
    }

    /// The command of the demo server, which is in no config.
    pub(super) fn of_demo(command: Option<Vec<String>>) -> Self {
        Self { command, ..Self::default() }
    }
}

impl ServerTransport {
    /// Local tools of Consort.
    pub(super) const LOCAL: Self = Self("local");

    pub(super) fn of(transport: &TransportConfig) -> Self {
        Self(transport.name())
    }
}

impl Default for ServerTransport {
    fn default() -> Self {
        Self(UpstreamTransport::default().name())
    }
}

impl JsonSchema for ServerTransport {
    fn schema_name() -> Cow<'static, str> {
        "ServerTransport".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names = [TransportConfig::names(), &[Self::LOCAL.0]].concat();
        json_schema!({
            "type": "string",
            "enum": names,
            "description": "Transport of a server; `local` for the tools of Consort.",
        })
    }
}

impl From<ManagedState> for ServerState {
    fn from(state: ManagedState) -> Self {
        match state {
            ManagedState::Configured => Self::Configured,
            ManagedState::Known => Self::Known,
            ManagedState::Connecting => Self::Connecting,
            ManagedState::Ready => Self::Ready,
            ManagedState::NeedsAuth => Self::NeedsAuth,
            ManagedState::Degraded => Self::Degraded,
            ManagedState::Failed => Self::Failed,
            ManagedState::Disabled => Self::Disabled,
        }
    }
}
