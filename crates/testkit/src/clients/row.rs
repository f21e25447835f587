//! Results of a plan.

use std::collections::BTreeMap;
use std::process::Output;

use consort_protocol::Era;
use serde::{Deserialize, Serialize};

use super::{Client, Fixture};

/// Action of a client at a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Lists the tools.
    List,
    /// Calls a tool.
    Call,
    /// Receives progress notifications, in order, before the result.
    Progress,
    /// Answers an elicitation during a call.
    Elicitation,
    /// Reads a resource.
    Resources,
    /// Receives an update of a resource.
    Subscription,
    /// Gets a prompt.
    Prompts,
    /// Completes an argument of a prompt.
    Completion,
    /// Cancels a call, and the server observes it.
    Cancellation,
}

impl Action {
    /// All of them, in the order of a plan.
    pub const ALL: [Self; 9] = [
        Self::List,
        Self::Call,
        Self::Progress,
        Self::Elicitation,
        Self::Resources,
        Self::Subscription,
        Self::Prompts,
        Self::Completion,
        Self::Cancellation,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Call => "call",
            Self::Progress => "progress",
            Self::Elicitation => "elicitation",
            Self::Resources => "resources",
            Self::Subscription => "subscription",
            Self::Prompts => "prompts",
            Self::Completion => "completion",
            Self::Cancellation => "cancellation",
        }
    }
}

/// Outcome of an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", content = "detail", rename_all = "lowercase")]
pub enum Outcome {
    /// It succeeded, with the evidence.
    Ok(String),
    /// It failed, with the reason.
    Failed(String),
    /// This client or this server does not support it, with the reason.
    Unsupported(String),
}

/// Output of a driver.
#[derive(Deserialize)]
struct Told {
    era: Option<Era>,
    outcomes: BTreeMap<Action, Outcome>,
}

/// Results of one client at one server.
#[derive(Clone, Debug)]
pub struct Row {
    /// The client.
    pub client: Client,
    /// The server.
    pub fixture: Fixture,
    /// `http` or `stdio`.
    pub transport: &'static str,
    /// The negotiated era, if they connected and the client reports it.
    pub era: Option<Era>,
    /// Outcome of each action.
    pub outcomes: BTreeMap<Action, Outcome>,
}

impl Row {
    /// Parses the output of a driver.
    pub(super) fn new(
        client: Client,
        fixture: Fixture,
        transport: &'static str,
        output: &Output,
    ) -> Self {
        let (era, outcomes) = match serde_json::from_slice::<Told>(&output.stdout) {
            Ok(told) => (told.era, told.outcomes),
            Err(_) => {
                let stderr = String::from_utf8_lossy(&output.stderr);
                let why = Outcome::Failed(format!("{}: {}", output.status, stderr.trim()));
                (None, Action::ALL.map(|action| (action, why.clone())).into())
            }
        };
        Self { client, fixture, transport, era, outcomes }
    }

    /// The actions that failed or were not reported, each with a reason.
    pub fn failures(&self) -> Vec<String> {
        let who = format!(
            "{} ({}) and {} over {}",
            self.client.name(),
            self.client.era(),
            self.fixture.name(),
            self.transport
        );
        let failure = |action: Action| match self.outcomes.get(&action) {
            Some(Outcome::Failed(why)) => Some(format!("{who}: {}: {why}", action.name())),
            None => Some(format!("{who}: {}: nothing was told", action.name())),
            Some(Outcome::Ok(_) | Outcome::Unsupported(_)) => None,
        };
        Action::ALL.into_iter().filter_map(failure).collect()
    }
}
