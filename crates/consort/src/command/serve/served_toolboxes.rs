//! Toolboxes served at each MCP endpoint, and agents served to clients.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use consort::agents::{agent, agent_descriptions};
use consort::models::ModelRegistry;
use consort::run_recorder::RunRecorder;
use consort::toolbox_layers::{LayeredToolboxes, ToolboxLayers};
use consort_admin::{
    ActiveConfig, ApprovalToolbox, ModelSource, PendingRequests, ProfileView, ServedAgent,
    ServedAgents, ToolViews,
};
use consort_agent::sub_agent::AgentRegistry;
use consort_agent::{Agent, RunObserver};
use consort_audit::{CallRecorder, CallSinks};
use consort_config::{AgentConfig, Config, ConsortOptions};
use consort_core::{BoxFuture, Problem, Toolbox};
use consort_gateway::{ServedProfile, ServedToolboxSet};
use consort_hub::Hub;
use consort_models::Model;
use consort_shape::{Exposure, OtherApprover};

use super::settings::naming;
use crate::exit::CommandError;

/// Everything that a config serves.
pub(super) struct ServedToolboxes {
    /// The toolbox of each MCP endpoint.
    pub(super) toolboxes: ServedToolboxSet,
    /// Agents and models that clients can use.
    pub(super) served_agents: Arc<ServedAgents>,
    /// Every tool by its name here, for the console.
    pub(super) tools: Arc<dyn Toolbox>,
    /// The same as exposed to models.
    pub(super) views: ToolViews,
    /// The layers applied to all toolboxes.
    pub(super) toolbox_layers: ToolboxLayers,
    /// Problems of agents that cannot be used.
    pub(super) problems: Vec<Problem>,
    /// Agents that are tools of others, added to the roster when the config takes effect.
    pub(super) agents: Vec<Agent>,
}

impl ServedToolboxes {
    /// The config in force with everything built from it, for the console.
    pub(super) fn into_active_config(
        self,
        config: Option<Config>,
        problems: Vec<Problem>,
    ) -> ActiveConfig {
        let Self { served_agents, tools, views, toolbox_layers, .. } = self;
        ActiveConfig {
            config,
            limits: Arc::clone(toolbox_layers.limits()),
            profiles: toolbox_layers.profiles().map(str::to_owned).collect(),
            only_profile: toolbox_layers.only_profile().map(str::to_owned),
            policy: toolbox_layers.policy().clone(),
            transforms: toolbox_layers.transforms(None).to_vec(),
            lock: toolbox_layers.lock().cloned(),
            tools,
            views,
            agents: served_agents,
            problems,
        }
    }
}

/// The models of a config, as the admin API asks for them.
struct ConfigModels(Arc<ModelRegistry>);

impl ModelSource for ConfigModels {
    fn model(&self, name: &str) -> Option<Model> {
        self.0.model(name).ok()
    }

    fn is_named(&self, name: &str) -> bool {
        self.0.is_named(name)
    }

    fn agent_settings(&self, name: &str) -> consort_agent::AgentSettings {
        self.0.agent_settings(name)
    }

    fn default_model(&self) -> BoxFuture<'_, Option<Model>> {
        Box::pin(async { self.0.providers().choose(None).await.ok() })
    }
}

/// The toolboxes of everything and of each profile, by every exposure.
fn views<'a>(layers: &LayeredToolboxes<'_>, profiles: impl Iterator<Item = &'a str>) -> ToolViews {
    let view = |profile: Option<&str>| {
        let exposed = Exposure::ALL
            .into_iter()
            .filter_map(|one| Some((one, layers.view(profile, Some(one))?)));
        let view = ProfileView {
            tools: layers.tools(profile)?,
            configured: layers.view(profile, None)?,
            exposed: exposed.collect(),
        };
        Some((profile.map(str::to_owned), view))
    };
    ToolViews::new(std::iter::once(None).chain(profiles.map(Some)).filter_map(view))
}

/// Inputs for building everything that is served.
pub(super) struct ToolboxInputs<'a> {
    pub(super) hub: &'a Hub,
    pub(super) records: &'a CallSinks,
    pub(super) options: &'a ConsortOptions,
    /// Path of the config, if there is one.
    pub(super) file: Option<PathBuf>,
    /// The profile that is served alone, if one is.
    pub(super) only_profile: Option<&'a str>,
    pub(super) roster: &'a Arc<AgentRegistry>,
    /// Pending requests for users of the console, if there is one.
    pub(super) pending_requests: Option<&'a Arc<PendingRequests>>,
}

impl ToolboxInputs<'_> {
    /// Builds everything, with every call recorded.
    pub(super) fn build(
        &self,
        toolbox_layers: ToolboxLayers,
    ) -> Result<ServedToolboxes, CommandError> {
        let models = toolbox_layers
            .models()
            .cloned()
            .unwrap_or_else(|| Arc::new(ModelRegistry::from_config(None)));
        let mut problems = Vec::new();
        let usable = self.usable_agents(&models, &mut problems);
        let told = agent_descriptions(usable.iter().copied());
        let observer: Arc<dyn RunObserver> = Arc::new(RunRecorder(self.records.clone()));
        let mut toolbox_layers = toolbox_layers
            .with_agents(told, Arc::clone(self.roster))
            .with_observer(Arc::clone(&observer));
        if let Some(pending_requests) = self.pending_requests.cloned() {
            toolbox_layers = toolbox_layers.with_other_approver(OtherApprover::new(move || {
                pending_requests.has_open_console()
            }));
        }
        let recorded = |toolbox: Arc<dyn Toolbox>, endpoint: &str| -> Arc<dyn Toolbox> {
            Arc::new(CallRecorder::new(toolbox, self.records.clone(), endpoint))
        };
        let answer = toolbox_layers.limits().approvals.answer;
        let wrap = |toolbox: Arc<dyn Toolbox>, endpoint: &str| match self.pending_requests {
            Some(pending_requests) => {
                let attended = ApprovalToolbox::new(toolbox, Arc::clone(pending_requests), answer);
                recorded(Arc::new(attended), endpoint)
            }
            None => recorded(toolbox, endpoint),
        };
        let layers = toolbox_layers.over(Arc::new(self.hub.clone()), &wrap);
        let mut profiles = BTreeMap::new();
        for (name, profile) in &self.options.profiles {
            let Some(toolbox) = layers.exposed_tools(Some(name)) else { continue };
            let naming = naming(profile.naming.as_deref())?;
            profiles.insert(name.clone(), ServedProfile { toolbox, naming });
        }
        let whole = layers.exposed_tools(None).unwrap_or_else(|| layers.servers());
        let folder = self.file.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
        let mut agents = BTreeMap::new();
        for (name, config) in usable {
            // A profile in the place of everything is everything there is.
            let mut config = config.clone();
            config.profile = config.profile.filter(|_| self.only_profile.is_none());
            match agent(name, &config, folder, &models, &layers) {
                Ok(mut agent) => {
                    agent.settings.observer = Some(Arc::clone(&observer));
                    problems.extend(unpriced_agent(name, &agent));
                    let (description, profile) = (config.description, config.profile);
                    agents.insert(name.clone(), ServedAgent { agent, description, profile });
                }
                Err(error) => problems.push(unusable_agent(name, &error, error.hint())),
            }
        }
        let known =
            self.options.models.keys().chain(self.options.agents.values().map(|it| &it.model));
        self.records.metrics.know_models(known.cloned());
        for id in self.options.models.keys() {
            if let Err(error) = models.model(id) {
                let message = format!("the model `{id}` is omitted: {error}");
                let problem = Problem::warning(message);
                problems.push(error.hint().into_iter().fold(problem, Problem::hint));
            }
        }
        let made = agents.values().map(|helper| helper.agent.clone()).collect();
        let served_agents = ServedAgents {
            agents,
            models: Arc::new(ConfigModels(models)),
            named: self.options.models.keys().cloned().collect(),
            all_tools: Arc::clone(&whole),
            profiles: profiles
                .iter()
                .map(|(name, profile)| (name.clone(), Arc::clone(&profile.toolbox)))
                .collect(),
            servers: layers.servers(),
            observer,
        };
        let toolboxes =
            ServedToolboxSet { all_servers: whole, servers: layers.servers(), profiles };
        // Calls of the console are recorded with this endpoint.
        let from_console = |toolbox: Arc<dyn Toolbox>, _: &str| recorded(toolbox, "console");
        let console = toolbox_layers.over(Arc::new(self.hub.clone()), &from_console);
        let tools = console.tools(None).unwrap_or_else(|| console.servers());
        let views = views(&console, toolbox_layers.profiles());
        let served_agents = Arc::new(served_agents);
        Ok(ServedToolboxes {
            toolboxes,
            served_agents,
            tools,
            views,
            toolbox_layers,
            problems,
            agents: made,
        })
    }

    /// The agents whose models can be used. If one profile is served alone, agents of others are left out.
    fn usable_agents(
        &self,
        models: &ModelRegistry,
        problems: &mut Vec<Problem>,
    ) -> Vec<(&String, &AgentConfig)> {
        let mut usable = Vec::new();
        for (name, config) in &self.options.agents {
            if self.only_profile.is_some() && config.profile.as_deref() != self.only_profile {
                continue;
            }
            match models.model(&config.model) {
                Ok(_) => usable.push((name, config)),
                Err(error) => problems.push(unusable_agent(name, &error, error.hint())),
            }
        }
        usable
    }
}

/// Reports an agent whose runs are all refused because its limit in US dollars cannot be enforced.
fn unpriced_agent(name: &str, agent: &Agent) -> Option<Problem> {
    let model = &agent.model;
    let limited = agent.settings.limits.cost.is_some();
    if !limited || model.facts.price.is_some() || model.is_free() {
        return None;
    }
    let message = format!(
        "the agent `{name}` refuses every run: it has `max_cost`, and the price of `{}` is unknown",
        model.id
    );
    let hint = format!("set `price` under `[consort.models.\"{}\"]`", model.id);
    Some(Problem::warning(message).hint(hint))
}

fn unusable_agent(name: &str, error: &dyn std::error::Error, hint: Option<String>) -> Problem {
    let source = error.source().map(|source| format!(": {source}")).unwrap_or_default();
    let problem = Problem::warning(format!("the agent `{name}` is omitted: {error}{source}"));
    hint.into_iter().fold(problem, Problem::hint)
}
