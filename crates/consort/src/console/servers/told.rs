//! What is told of a server.

use std::collections::BTreeSet;

use consort::config::{Auth, ServerConfig, Transport};
use consort::demo;
use consort_hub::State;
use schemars::JsonSchema;
use serde::Serialize;

use crate::console::calls::Recent;

/// A server and how it is doing.
#[derive(Clone, PartialEq, Serialize, JsonSchema)]
pub(in crate::console) struct Server {
    pub(in crate::console) name: String,
    pub(super) state: Condition,
    /// Since when it is in that state.
    pub(super) since: String,
    pub(super) transport: Carrier,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) era: Option<Age>,
    /// The protocol revision it speaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) revision: Option<&'static str>,
    /// What it calls itself, with its version. Unverified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<String>,
    /// Why it is not ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    /// What to do about that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hint: Option<String>,
    /// How often it was started again.
    pub(super) restarts: u32,
    pub(super) tools: usize,
    pub(super) prompts: usize,
    pub(super) resources: usize,
    pub(super) templates: usize,
    /// What the definitions of its tools cost a model.
    pub(super) tokens: usize,
    #[serde(flatten)]
    pub(super) recent: Recent,
}

/// Where a server is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Condition {
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

/// How a server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Carrier {
    Stdio,
    Http,
    Sse,
    /// Tools of our own.
    Local,
}

/// Which era of the protocol a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Age {
    Legacy,
    Modern,
}

/// A server, with where it is and what it wrote.
#[derive(Serialize, JsonSchema)]
pub(super) struct ServerDetail {
    #[serde(flatten)]
    pub(super) server: Server,
    #[serde(flatten)]
    pub(super) place: Place,
    /// The end of what it wrote to its standard error.
    pub(super) stderr: String,
    /// What it tells models. Unverified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) instructions: Option<String>,
    /// Whether it can be taken out of the config here.
    pub(super) removable: bool,
}

/// Where a server is, as it is written in the config, with secrets hidden.
#[derive(Default, Serialize, JsonSchema)]
pub(super) struct Place {
    /// The exact program and its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) command: Option<Vec<String>>,
    /// Where it starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) folder: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) url: Option<String>,
    /// The names of the variables it is given besides the harmless ones.
    pub(super) variables: Vec<String>,
    /// The names of the headers it is sent.
    pub(super) headers: Vec<String>,
}

impl Place {
    pub(super) fn of(server: &ServerConfig) -> Self {
        match &server.transport {
            Transport::Stdio(program) => {
                let words = std::iter::once(&program.command).chain(&program.arguments);
                let names: BTreeSet<&String> =
                    program.environment.keys().chain(&program.inherit).collect();
                Self {
                    command: Some(words.map(ToString::to_string).collect()),
                    folder: program.directory.as_ref().map(ToString::to_string),
                    variables: names.into_iter().cloned().collect(),
                    ..Self::default()
                }
            }
            Transport::Http(address) | Transport::Sse(address) => {
                let proof = address.auth.as_ref().map(|auth| match auth {
                    Auth::Bearer(_) => "Authorization".to_owned(),
                    Auth::ApiKey { header, .. } => header.clone(),
                });
                Self {
                    url: Some(address.url.to_string()),
                    headers: address.headers.keys().cloned().chain(proof).collect(),
                    ..Self::default()
                }
            }
        }
    }

    /// Where the demo server is, which nobody configured.
    pub(super) fn of_demo() -> Self {
        let program = std::env::current_exe().ok().map(|program| program.display().to_string());
        let command = program.map(|program| vec![program, demo::WORD.to_owned()]);
        Self { command, ..Self::default() }
    }
}

impl Carrier {
    pub(super) fn of(transport: &Transport) -> Self {
        match transport {
            Transport::Stdio(_) => Self::Stdio,
            Transport::Http(_) => Self::Http,
            Transport::Sse(_) => Self::Sse,
        }
    }
}

impl From<State> for Condition {
    fn from(state: State) -> Self {
        match state {
            State::Configured => Self::Configured,
            State::Known => Self::Known,
            State::Connecting => Self::Connecting,
            State::Ready => Self::Ready,
            State::NeedsAuth => Self::NeedsAuth,
            State::Degraded => Self::Degraded,
            State::Failed => Self::Failed,
            State::Disabled => Self::Disabled,
        }
    }
}
