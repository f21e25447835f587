//! Agents and models that clients can use.

use std::collections::BTreeMap;
use std::sync::Arc;

use consort_agent::sub_agent::{AGENTS, tool_name};
use consort_agent::{Agent, AgentSettings, RunObserver};
use consort_core::{BoxFuture, Caller, ServerId, Target, Toolbox};
use consort_models::Model;
use consort_models::TokenPrice;

/// The models of a config. The wiring of the gateway implements it, and [`ServedAgents`] calls it.
pub trait ModelSource: Send + Sync {
    /// Returns the model of a name, if it can be used.
    fn model(&self, name: &str) -> Option<Model>;

    /// Returns true if the config names a model, or its provider.
    fn is_named(&self, name: &str) -> bool;

    /// Returns the settings of an agent of this name, with the limits of the config.
    fn agent_settings(&self, name: &str) -> AgentSettings;

    /// Returns the default model, if there is one.
    fn default_model(&self) -> BoxFuture<'_, Option<Model>>;
}

/// Agents and models that clients can use, with the tools available to them.
pub struct ServedAgents {
    /// The agents of the config, by name.
    pub agents: BTreeMap<String, ServedAgent>,
    /// The models of the config.
    pub models: Arc<dyn ModelSource>,
    /// The models named in the config.
    pub named: Vec<String>,
    /// The tools at the endpoint of everything.
    pub all_tools: Arc<dyn Toolbox>,
    /// The tools at the endpoint of each profile.
    pub profiles: BTreeMap<String, Arc<dyn Toolbox>>,
    /// Everything that a caller may use, by its own name.
    pub servers: Arc<dyn Toolbox>,
    /// Observer of all runs.
    pub observer: Arc<dyn RunObserver>,
}

/// An agent that can be requested by its name.
#[derive(Debug)]
pub struct ServedAgent {
    /// The agent.
    pub agent: Agent,
    /// Its description.
    pub description: Option<String>,
    /// The profile whose tools it uses; all tools if absent.
    pub profile: Option<String>,
}

impl ServedAgents {
    /// Finds an agent or model by name, at the endpoint of a profile or of everything; else returns the nearest name.
    pub(crate) fn find(
        &self,
        name: &str,
        profile: Option<&str>,
        caller: &Caller,
    ) -> Result<Agent, Option<String>> {
        if let Some(agent) =
            self.agents.get(name).filter(|agent| self.may_use(agent, profile, caller))
        {
            return Ok(agent.agent.clone());
        }
        let toolbox = match profile {
            None => Some(&self.all_tools),
            Some(profile) => self.profiles.get(profile),
        };
        if let Some(toolbox) = toolbox
            && self.models.is_named(name)
            && let Some(model) = self.models.model(name)
        {
            let mut settings = self.models.agent_settings(name);
            settings.observer = Some(Arc::clone(&self.observer));
            return Ok(Agent::new(model, Arc::clone(toolbox), settings));
        }
        let known: Vec<String> =
            self.list(profile, caller).into_iter().map(|(name, _)| name).collect();
        let near = consort_core::nearest(name, known.iter().map(String::as_str));
        Err(near.first().map(|near| (*near).to_owned()))
    }

    /// Lists all agents and models available there, agents first, each with its description.
    pub(crate) fn list(
        &self,
        profile: Option<&str>,
        caller: &Caller,
    ) -> Vec<(String, Option<String>)> {
        let agents = self.agents.iter().filter(|(_, agent)| self.may_use(agent, profile, caller));
        let agents = agents.map(|(name, agent)| (name.clone(), agent.description.clone()));
        agents.chain(self.named.iter().map(|id| (id.clone(), None))).collect()
    }

    /// The agents a caller may use, each with its description and its profile.
    pub(crate) fn agents(&self, caller: &Caller) -> Vec<(Agent, Option<String>, Option<String>)> {
        let agents = self.agents.values().filter(|agent| self.may_use(agent, None, caller));
        let describe = |agent: &ServedAgent| {
            (agent.agent.clone(), agent.description.clone(), agent.profile.clone())
        };
        agents.map(describe).collect()
    }

    /// The usable models named in the config, each with all tools.
    pub(crate) fn named(&self) -> Vec<Agent> {
        self.named.iter().filter_map(|id| self.agent_of_model(id)).collect()
    }

    /// A model with all tools. Only for the owner, who pays for it.
    pub(crate) fn agent_of_model(&self, model: &str) -> Option<Agent> {
        self.models.model(model).map(|model| self.agent_with_all_tools(model))
    }

    /// The default model, with all tools.
    pub(crate) async fn default_agent(&self) -> Option<Agent> {
        let model = self.models.default_model().await?;
        Some(self.agent_with_all_tools(model))
    }

    fn agent_with_all_tools(&self, model: Model) -> Agent {
        let mut settings = self.models.agent_settings(&model.id);
        settings.observer = Some(Arc::clone(&self.observer));
        Agent::new(model, Arc::clone(&self.all_tools), settings)
    }

    /// Returns the price of a model, if known.
    pub(crate) fn price(&self, model: &str) -> Option<TokenPrice> {
        self.models.model(model)?.facts.price
    }

    /// The names of all agents and models.
    pub fn names(&self) -> Vec<String> {
        self.agents.keys().chain(&self.named).cloned().collect()
    }

    /// Returns true if the profile exists.
    pub(crate) fn has(&self, profile: &str) -> bool {
        self.profiles.contains_key(profile)
    }

    /// Returns true if a caller may use an agent there: a caller that may not see its tool may not use it here either.
    fn may_use(&self, agent: &ServedAgent, profile: Option<&str>, caller: &Caller) -> bool {
        let here = profile.is_none() || agent.profile.as_deref() == profile;
        let name = tool_name(&agent.agent.settings.name);
        let target = Target { server: ServerId::derive(AGENTS), name };
        here && self.servers.catalog(caller).tools.find(&target).is_some()
    }
}

impl std::fmt::Debug for ServedAgents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServedAgents").finish_non_exhaustive()
    }
}
