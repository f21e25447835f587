//! What came of a plan.

use std::collections::BTreeMap;
use std::process::Output;

use consort_wire::Era;
use serde::{Deserialize, Serialize};

use super::{Client, Fixture};

/// What a client does with a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Lists the tools.
    List,
    /// Calls a tool.
    Call,
    /// Hears of its progress, in order, before the result.
    Progress,
    /// Answers what the server asks in the middle of a call.
    Elicitation,
    /// Reads a resource.
    Resources,
    /// Hears of a change of a resource.
    Subscription,
    /// Gets a prompt.
    Prompts,
    /// Completes an argument of a prompt.
    Completion,
    /// Cancels a call, and the server notices.
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

/// What came of an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", content = "detail", rename_all = "lowercase")]
pub enum Outcome {
    /// It worked, as one sees.
    Ok(String),
    /// It did not, and why.
    Failed(String),
    /// This client or this server cannot do it, and why.
    Unsupported(String),
}

/// What a driver tells.
#[derive(Deserialize)]
struct Told {
    era: Option<Era>,
    outcomes: BTreeMap<Action, Outcome>,
}

/// What one client made of one server.
#[derive(Clone, Debug)]
pub struct Row {
    /// The client.
    pub client: Client,
    /// The server.
    pub fixture: Fixture,
    /// `http` or `stdio`.
    pub transport: &'static str,
    /// The era they spoke, if they came to terms and the client tells.
    pub era: Option<Era>,
    /// What came of each action.
    pub outcomes: BTreeMap<Action, Outcome>,
}

impl Row {
    /// Reads what a driver told.
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

    /// The actions that failed or that nobody told of, each with a reason.
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
