//! Agents and models that can be used in conversations.

use std::sync::Arc;

use consort_agent::{Agent, SamplingConsent, SamplingSettings};
use consort_core::Caller;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use crate::route::{AdminError, ApiRoute, JsonResponse, NoInput, RequestContext, get};
use crate::served_agents::ServedAgents;
use crate::state::AdminState;

/// Prefix of the file of a script.
const SCRIPTED: &str = "scripted:";

pub(crate) fn routes() -> Vec<ApiRoute> {
    vec![get("/api/agents", "Lists the agents and models that can be used: agents first.", list)]
}

/// An agent of the config, or a model with all tools.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AgentListing")]
pub(crate) struct AgentRow {
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

impl AgentRow {
    fn new(agent: &Agent, caller: &Caller) -> Self {
        // A server may have tools only for those who can be asked.
        let prepared = prepare_agent(agent.clone(), caller).caller();
        Self {
            name: agent.settings.name.clone(),
            description: None,
            model: agent.model.id.clone(),
            profile: None,
            tools: agent.toolbox.catalog(&prepared).tools.entries().len(),
            scripted: agent.model.id.starts_with(SCRIPTED),
            default: false,
        }
    }
}

async fn list(
    state: AdminState,
    context: RequestContext,
    _: NoInput,
) -> Result<JsonResponse<Vec<AgentRow>>, AdminError> {
    let (agents, caller) = (Arc::clone(&state.active().agents), context.caller()?);
    let mut listed: Vec<AgentRow> = Vec::new();
    for (agent, description, profile) in agents.agents(&caller) {
        listed.push(AgentRow { description, profile, ..AgentRow::new(&agent, &caller) });
    }
    let count = listed.len();
    listed.extend(agents.named().iter().map(|agent| AgentRow::new(agent, &caller)));
    let usual = if count > 0 { None } else { agents.default_agent().await };
    let default = match usual {
        Some(agent) => {
            let known = listed.iter().position(|listed| listed.name == agent.settings.name);
            known.unwrap_or_else(|| {
                listed.push(AgentRow::new(&agent, &caller));
                listed.len() - 1
            })
        }
        None => 0,
    };
    if let Some(listed) = listed.get_mut(default) {
        listed.default = true;
    }
    Ok(JsonResponse(listed))
}

/// Finds an agent or model by name, set up for the console.
pub(crate) async fn find_agent(
    agents: &ServedAgents,
    name: &str,
    caller: &Caller,
) -> Result<Agent, AdminError> {
    let near = match agents.find(name, None, caller) {
        Ok(agent) => return Ok(prepare_agent(agent, caller)),
        Err(near) => near,
    };
    if let Some(agent) = agents.default_agent().await.filter(|agent| agent.settings.name == name) {
        return Ok(prepare_agent(agent, caller));
    }
    let error = format!("unknown agent or model `{name}`");
    let refusal = AdminError::new(StatusCode::UNPROCESSABLE_ENTITY, error);
    Err(match near {
        Some(near) => refusal.hint(format!("did you mean `{near}`?")),
        None => refusal.hint("list them with GET /api/agents"),
    })
}

/// Sets up an agent for a user of the console: it may ask the user, and so may servers.
pub(crate) fn prepare_agent(mut agent: Agent, caller: &Caller) -> Agent {
    let settings = &mut agent.settings;
    settings.caller = caller.clone();
    settings.has_user = true;
    settings.sampling = SamplingSettings::new(SamplingConsent::Ask, settings.work.sampling_tokens);
    agent
}
