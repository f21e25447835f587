//! Who can be talked to.

use std::sync::Arc;

use consort_agent::{Agent, Consent, Sampling};
use consort_core::Caller;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use super::Console;
use super::route::{Asked, Nothing, Refusal, Route, Told, get};
use crate::command::Askable;
use crate::talk::SAMPLING;

/// What stands before the file of a script.
const SCRIPTED: &str = "scripted:";

pub(super) fn routes() -> Vec<Route> {
    vec![get("/api/agents", "Who can be talked to: agents first, then models.", list)]
}

/// Somebody who can be talked to: an agent of the config, or a model with everything.
#[derive(Serialize, JsonSchema)]
pub(super) struct Listed {
    name: String,
    /// What it is good for.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// As `provider:name`.
    model: String,
    /// The profile whose tools it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<String>,
    /// How many tools it sees.
    tools: usize,
    /// No model: what it says was written down before.
    scripted: bool,
    /// Whom a new conversation is with, unless somebody else is chosen.
    default: bool,
}

impl Listed {
    fn new(agent: &Agent, caller: &Caller) -> Self {
        Self {
            name: agent.settings.name.clone(),
            description: None,
            model: agent.model.id.clone(),
            profile: None,
            tools: agent.toolbox.catalog(caller).tools.entries().len(),
            scripted: agent.model.id.starts_with(SCRIPTED),
            default: false,
        }
    }
}

async fn list(console: Console, asked: Asked, _: Nothing) -> Result<Told<Vec<Listed>>, Refusal> {
    let (askable, caller) = (Arc::clone(&console.scene().askable), asked.caller());
    let mut listed: Vec<Listed> = Vec::new();
    for (agent, description, profile) in askable.agents(&caller) {
        listed.push(Listed { description, profile, ..Listed::new(&agent, &caller) });
    }
    let agents = listed.len();
    listed.extend(askable.named().iter().map(|agent| Listed::new(agent, &caller)));
    let usual = if agents > 0 { None } else { askable.usual().await };
    let default = match usual {
        Some(agent) => {
            let known = listed.iter().position(|listed| listed.name == agent.settings.name);
            known.unwrap_or_else(|| {
                listed.push(Listed::new(&agent, &caller));
                listed.len() - 1
            })
        }
        None => 0,
    };
    if let Some(listed) = listed.get_mut(default) {
        listed.default = true;
    }
    Ok(Told(listed))
}

/// Whoever is meant by a name, as it works for the console.
pub(super) async fn find(askable: &Askable, name: &str, caller: &Caller) -> Result<Agent, Refusal> {
    let near = match askable.find(name, None, caller) {
        Ok(agent) => return Ok(at_work(agent, caller)),
        Err(near) => near,
    };
    if let Some(agent) = askable.usual().await.filter(|agent| agent.settings.name == name) {
        return Ok(at_work(agent, caller));
    }
    let error = format!("nobody called `{name}` can be asked");
    let refusal = Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, error);
    Err(match near {
        Some(near) => refusal.hint(format!("did you mean `{near}`?")),
        None => refusal.hint("see /api/agents for those who can"),
    })
}

/// An agent as it works for whoever is at the console: it may ask, and so may servers.
pub(super) fn at_work(mut agent: Agent, caller: &Caller) -> Agent {
    let settings = &mut agent.settings;
    settings.caller = caller.clone();
    settings.person = true;
    settings.sampling = Sampling::new(Consent::Ask, SAMPLING);
    agent
}
