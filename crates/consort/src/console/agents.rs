//! Agents and models that can be used in conversations.

use std::sync::Arc;

use consort_agent::{Agent, SamplingConsent, SamplingSettings};
use consort_core::Caller;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use super::Console;
use super::route::{Asked, Nothing, Refusal, Route, Told, get};
use crate::command::Askable;

/// Prefix of the file of a script.
const SCRIPTED: &str = "scripted:";

pub(super) fn routes() -> Vec<Route> {
    vec![get("/api/agents", "Who can be talked to: agents first, then models.", list)]
}

/// An agent of the config, or a model with all tools.
#[derive(Serialize, JsonSchema)]
pub(super) struct Listed {
    name: String,
    /// Description of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// Model, as `provider:name`.
    model: String,
    /// Profile whose tools it uses.
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<String>,
    /// Number of tools it sees.
    tools: usize,
    /// True if a script plays the model.
    scripted: bool,
    /// True for the default of a new conversation.
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
    let (askable, caller) = (Arc::clone(&console.scene().askable), asked.caller()?);
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

/// Finds an agent or model by name, set up for the console.
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

/// Sets up an agent for a user of the console: it may ask the user, and so may servers.
pub(super) fn at_work(mut agent: Agent, caller: &Caller) -> Agent {
    let settings = &mut agent.settings;
    settings.caller = caller.clone();
    settings.has_user = true;
    settings.sampling = SamplingSettings::new(SamplingConsent::Ask, settings.work.sampling_tokens);
    agent
}
