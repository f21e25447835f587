//! Toolboxes served at each MCP endpoint, and agents served to clients.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use consort::agents::agent;
use consort::config::{AgentConfig, Options};
use consort::models::Models;
use consort::shaping::Shaping;
use consort_agent::sub_agent::{AGENTS, AgentRegistry, tool_name};
use consort_agent::{Agent, RunObserver};
use consort_core::{Caller, Problem, ServerId, Target, Toolbox};
use consort_gateway::{Profile, Recorded, Records, Toolboxes};
use consort_hub::Hub;
use consort_models::{Model, TokenPrice};
use consort_shape::OtherApprover;

use super::settings::naming;
use crate::console::{Attended, Desk, ToolViews};
use crate::exit::Failure;
use crate::recording::RunRecorder;

/// Everything that a config serves.
pub(super) struct Offered {
    /// The toolbox of each MCP endpoint.
    pub(super) toolboxes: Toolboxes,
    /// Agents and models that clients can use.
    pub(super) askable: Arc<Askable>,
    /// Every tool by its name here, for the console.
    pub(super) tools: Arc<dyn Toolbox>,
    /// The same as exposed to models.
    pub(super) views: ToolViews,
    /// The layers applied to all toolboxes.
    pub(super) shaping: Shaping,
    /// Problems of agents that cannot be used.
    pub(super) problems: Vec<Problem>,
    /// Agents that are tools of others, added to the roster when the config takes effect.
    pub(super) agents: Vec<Agent>,
}

/// Agents and models that clients can use, with the tools available to them.
pub(crate) struct Askable {
    agents: BTreeMap<String, Helper>,
    models: Arc<Models>,
    /// The models named in the config.
    named: Vec<String>,
    whole: Arc<dyn Toolbox>,
    profiles: BTreeMap<String, Arc<dyn Toolbox>>,
    /// Everything that a caller may use, by its own name.
    servers: Arc<dyn Toolbox>,
    observer: Arc<dyn RunObserver>,
}

/// An agent that can be requested by its name.
struct Helper {
    agent: Agent,
    description: Option<String>,
    profile: Option<String>,
}

/// Inputs for building everything that is served.
pub(super) struct Parts<'a> {
    pub(super) hub: &'a Hub,
    pub(super) records: &'a Records,
    pub(super) options: &'a Options,
    /// Path of the config, if there is one.
    pub(super) file: Option<PathBuf>,
    /// The profile that is served alone, if one is.
    pub(super) only: Option<&'a str>,
    pub(super) roster: &'a Arc<AgentRegistry>,
    /// Pending requests for users of the console, if there is one.
    pub(super) desk: Option<&'a Arc<Desk>>,
}

impl Parts<'_> {
    /// Builds everything, with every call recorded.
    pub(super) fn offered(&self, shaping: Shaping) -> Result<Offered, Failure> {
        let models = shaping.models().cloned().unwrap_or_else(|| Arc::new(Models::of(None)));
        let mut problems = Vec::new();
        let usable = self.usable(&models, &mut problems);
        let told = usable.iter().map(|(name, config)| {
            let usual = || format!("Asks the agent `{name}`, which has tools of its own.");
            ((*name).clone(), config.description.clone().unwrap_or_else(usual))
        });
        let observer: Arc<dyn RunObserver> = Arc::new(RunRecorder(self.records.clone()));
        let mut shaping = shaping
            .with_agents(told.collect(), Arc::clone(self.roster))
            .with_observer(Arc::clone(&observer));
        if let Some(desk) = self.desk.cloned() {
            shaping = shaping.elsewhere(OtherApprover::new(move || desk.is_attended()));
        }
        let recorded = |toolbox: Arc<dyn Toolbox>, front: &str| -> Arc<dyn Toolbox> {
            Arc::new(Recorded::new(toolbox, self.records.clone(), front))
        };
        let answer = shaping.limits().approvals.answer;
        let wrap = |toolbox: Arc<dyn Toolbox>, front: &str| match self.desk {
            Some(desk) => {
                let attended = Attended::new(toolbox, Arc::clone(desk), answer);
                recorded(Arc::new(attended), front)
            }
            None => recorded(toolbox, front),
        };
        let layers = shaping.over(Arc::new(self.hub.clone()), &wrap);
        let mut profiles = BTreeMap::new();
        for (name, profile) in &self.options.profiles {
            let Some(toolbox) = layers.shown(Some(name)) else { continue };
            let naming = naming(profile.naming.as_deref())?;
            profiles.insert(name.clone(), Profile { toolbox, naming });
        }
        let whole = layers.shown(None).unwrap_or_else(|| layers.servers());
        let folder = self.file.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
        let mut agents = BTreeMap::new();
        for (name, config) in usable {
            // A profile in the place of everything is everything there is.
            let mut config = config.clone();
            config.profile = config.profile.filter(|_| self.only.is_none());
            match agent(name, &config, folder, &models, &layers) {
                Ok(mut agent) => {
                    agent.settings.observer = Some(Arc::clone(&observer));
                    problems.extend(unpriced(name, &agent));
                    let (description, profile) = (config.description, config.profile);
                    agents.insert(name.clone(), Helper { agent, description, profile });
                }
                Err(error) => problems.push(unusable(name, &error, error.hint())),
            }
        }
        let known =
            self.options.models.keys().chain(self.options.agents.values().map(|it| &it.model));
        self.records.metrics.know_models(known.cloned());
        for id in self.options.models.keys() {
            if let Err(error) = models.model(id) {
                let message = format!("the model `{id}` is left out: {error}");
                let problem = Problem::warning(message);
                problems.push(error.hint().into_iter().fold(problem, Problem::hint));
            }
        }
        let made = agents.values().map(|helper| helper.agent.clone()).collect();
        let askable = Askable {
            agents,
            models,
            named: self.options.models.keys().cloned().collect(),
            whole: Arc::clone(&whole),
            profiles: profiles
                .iter()
                .map(|(name, profile)| (name.clone(), Arc::clone(&profile.toolbox)))
                .collect(),
            servers: layers.servers(),
            observer,
        };
        let toolboxes = Toolboxes { whole, servers: layers.servers(), profiles };
        // Whoever calls there is who looks.
        let from_console = |toolbox: Arc<dyn Toolbox>, _: &str| recorded(toolbox, "console");
        let console = shaping.over(Arc::new(self.hub.clone()), &from_console);
        let tools = console.tools(None).unwrap_or_else(|| console.servers());
        let views = ToolViews::new(&console, shaping.profiles());
        let askable = Arc::new(askable);
        Ok(Offered { toolboxes, askable, tools, views, shaping, problems, agents: made })
    }

    /// The agents whose models can be used. If one profile is served alone, agents of others are left out.
    fn usable(&self, models: &Models, problems: &mut Vec<Problem>) -> Vec<(&String, &AgentConfig)> {
        let mut usable = Vec::new();
        for (name, config) in &self.options.agents {
            if self.only.is_some() && config.profile.as_deref() != self.only {
                continue;
            }
            match models.model(&config.model) {
                Ok(_) => usable.push((name, config)),
                Err(error) => problems.push(unusable(name, &error, error.hint())),
            }
        }
        usable
    }
}

/// Reports an agent whose runs are all refused because its limit in US dollars cannot be enforced.
fn unpriced(name: &str, agent: &Agent) -> Option<Problem> {
    let model = &agent.model;
    let limited = agent.settings.limits.cost.is_some();
    if !limited || model.facts.price.is_some() || model.is_free() {
        return None;
    }
    let message = format!(
        "the agent `{name}` refuses every run: it has `max_cost`, and the price of `{}` is not known",
        model.id
    );
    let hint = format!("set `price` under `[consort.models.\"{}\"]`", model.id);
    Some(Problem::warning(message).hint(hint))
}

fn unusable(name: &str, error: &dyn std::error::Error, hint: Option<String>) -> Problem {
    let source = error.source().map(|source| format!(": {source}")).unwrap_or_default();
    let problem = Problem::warning(format!("the agent `{name}` is left out: {error}{source}"));
    hint.into_iter().fold(problem, Problem::hint)
}

impl Askable {
    /// Finds an agent or model by name, at the endpoint of a profile or of everything; else returns the nearest name.
    pub(crate) fn find(
        &self,
        name: &str,
        profile: Option<&str>,
        caller: &Caller,
    ) -> Result<Agent, Option<String>> {
        if let Some(helper) =
            self.agents.get(name).filter(|helper| self.may(helper, profile, caller))
        {
            return Ok(helper.agent.clone());
        }
        let toolbox = match profile {
            None => Some(&self.whole),
            Some(profile) => self.profiles.get(profile),
        };
        if let Some(toolbox) = toolbox
            && self.models.is_named(name)
            && let Ok(model) = self.models.model(name)
        {
            let mut settings = self.models.agent_settings(name);
            settings.observer = Some(Arc::clone(&self.observer));
            return Ok(Agent::new(model, Arc::clone(toolbox), settings));
        }
        let known: Vec<String> =
            self.listed(profile, caller).into_iter().map(|(name, _)| name).collect();
        let near = consort_core::nearest(name, known.iter().map(String::as_str));
        Err(near.first().map(|near| (*near).to_owned()))
    }

    /// Lists all agents and models available there, agents first, each with its description.
    pub(super) fn listed(
        &self,
        profile: Option<&str>,
        caller: &Caller,
    ) -> Vec<(String, Option<String>)> {
        let agents = self.agents.iter().filter(|(_, helper)| self.may(helper, profile, caller));
        let agents = agents.map(|(name, helper)| (name.clone(), helper.description.clone()));
        agents.chain(self.named.iter().map(|id| (id.clone(), None))).collect()
    }

    /// The agents a caller may use, each with its description and its profile.
    pub(crate) fn agents(&self, caller: &Caller) -> Vec<(Agent, Option<String>, Option<String>)> {
        let agents = self.agents.values().filter(|helper| self.may(helper, None, caller));
        let told = |helper: &Helper| {
            (helper.agent.clone(), helper.description.clone(), helper.profile.clone())
        };
        agents.map(told).collect()
    }

    /// The usable models named in the config, each with all tools.
    pub(crate) fn named(&self) -> Vec<Agent> {
        self.named.iter().filter_map(|id| self.with_everything(id)).collect()
    }

    /// A model with all tools. Only for the owner, who pays for it.
    pub(crate) fn with_everything(&self, model: &str) -> Option<Agent> {
        self.models.model(model).ok().map(|model| self.over_everything(model))
    }

    /// The default model, with all tools.
    pub(crate) async fn usual(&self) -> Option<Agent> {
        let model = self.models.providers().choose(None).await.ok()?;
        Some(self.over_everything(model))
    }

    fn over_everything(&self, model: Model) -> Agent {
        let mut settings = self.models.agent_settings(&model.id);
        settings.observer = Some(Arc::clone(&self.observer));
        Agent::new(model, Arc::clone(&self.whole), settings)
    }

    /// Returns the price of a model, if known.
    pub(crate) fn price(&self, model: &str) -> Option<TokenPrice> {
        self.models.model(model).ok()?.facts.price
    }

    /// The names of all agents and models.
    pub(super) fn names(&self) -> Vec<String> {
        self.agents.keys().chain(&self.named).cloned().collect()
    }

    /// Returns true if the profile exists.
    pub(super) fn has(&self, profile: &str) -> bool {
        self.profiles.contains_key(profile)
    }

    /// Returns true if a caller may use an agent there: a caller that may not see its tool may not use it here either.
    fn may(&self, helper: &Helper, profile: Option<&str>, caller: &Caller) -> bool {
        let here = profile.is_none() || helper.profile.as_deref() == profile;
        let name = tool_name(&helper.agent.settings.name);
        let target = Target { server: ServerId::derive(AGENTS), name };
        here && self.servers.catalog(caller).tools.find(&target).is_some()
    }
}
