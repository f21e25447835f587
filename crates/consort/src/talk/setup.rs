//! Setup of an agent from the command line and the config, with its servers connected.

use std::path::Path;
use std::sync::Arc;

use consort::agents::{self, AgentError};
use consort::config::{AgentConfig, Config};
use consort::models::Models;
use consort::shaping::{Layers, Shaping};
use consort_agent::sub_agent::{AGENTS, AgentRegistry, tool_name};
use consort_agent::{Agent, RunLimits, RunObserver, RunTools, SamplingConsent, SamplingSettings};
use consort_core::{Pattern, Problem, Toolbox, nearest};

use super::model::{chained, model, typed};
use super::{Audience, Form, Keeping, Tape, text_or_file};
use crate::cli::{Common, Talk};
use crate::exit::Failure;
use crate::output::{escaped, escaped_line};
use crate::person::Person;
use crate::running::{Need, Running, tell};

/// Name of an agent that is not in the config.
pub(crate) const NAME: &str = "consort";

/// Everything needed for a conversation.
pub(crate) struct Setup {
    pub(crate) stage: Stage,
    pub(crate) audience: Audience,
}

/// The agent, its tools and its store.
pub(crate) struct Stage {
    pub(crate) running: Running,
    pub(crate) agent: Agent,
    pub(crate) keeping: Keeping,
    models: Arc<Models>,
    tape: Tape,
    /// The agent's tools, before the exposure.
    unexposed: Arc<dyn Toolbox>,
    /// The config of the agent, if it is in the config.
    described: Option<AgentConfig>,
}

impl Setup {
    /// Reads the config and builds the agent; connects to no server.
    pub(crate) async fn new(common: &Common, talk: &Talk, form: Form) -> Result<Self, Failure> {
        let keeping = Keeping::new(!talk.no_store)?;
        let person = Person::new();
        let audience = Audience::new(common, talk, form, Arc::clone(&person))?;
        let tape = Tape::new(talk)?;
        let running = Running::start(common, person, &talk.ledger)?;
        let made = made(talk, &running, &tape).await;
        match made {
            Ok(Made { agent, models, unexposed, described }) => {
                let stage = Stage { running, agent, keeping, models, tape, unexposed, described };
                Ok(Self { stage, audience })
            }
            Err(failure) => {
                running.end().await;
                Err(failure)
            }
        }
    }

    /// Connects to the servers, and gives the agent its tools; `None` if that is interrupted.
    pub(crate) async fn reach(&mut self, tools: &[String]) -> Result<Option<()>, Failure> {
        let reaching = self.stage.reach(tools);
        let Some(denied) = self.audience.unless_interrupted(reaching).await else {
            return Ok(None);
        };
        for denied in denied? {
            let text = format!("`{denied}` is left out: the policy does not allow it");
            self.audience.show.warn(text);
        }
        for idle in self.stage.idle_tools() {
            self.audience.show.warn(format!("`{idle}` of the agent's `tools` fits no tool"));
        }
        Ok(Some(()))
    }

    /// Shuts down everything. It can be interrupted. Fails if a recording could not be written, or if a replay diverged
    /// from it.
    pub(crate) async fn end(mut self) -> Result<(), Failure> {
        self.audience.show.clear();
        let drain = self.stage.running.hub.drain();
        self.audience.unless_interrupted(drain).await;
        self.stage.running.records.end();
        self.stage.tape.end()
    }
}

impl Stage {
    /// Connects to the servers without a stored catalog, and gives the agent the tools of these names; with none, those
    /// that the config exposes. Returns the names of tools that the policy denies.
    pub(crate) async fn reach(&mut self, tools: &[String]) -> Result<Vec<String>, Failure> {
        if !matches!(self.tape, Tape::Playing(_)) {
            self.running.reach(None, Need::Kept).await;
        }
        // Who names tools has no need of fewer that stand for many.
        if !tools.is_empty() {
            self.agent.toolbox = Arc::clone(&self.unexposed);
        }
        self.agent.toolbox = self.tape.toolbox(Arc::clone(&self.agent.toolbox));
        if tools.is_empty() {
            return Ok(Vec::new());
        }
        let caller = &self.agent.settings.caller;
        let catalog = self.agent.toolbox.catalog(caller);
        let whole = self.running.hub.catalog(caller);
        let bound = RunTools::select(&catalog, tools, Some(&whole))?;
        self.agent.settings.tools = Some(bound.ids());
        Ok(bound.denied)
    }

    /// Returns the entries of the agent's `tools` in the config that match no tool.
    fn idle_tools(&self) -> Vec<String> {
        let Some(described) = self.described.as_ref().filter(|_| !self.tape.is_playing()) else {
            return Vec::new();
        };
        let catalog = self.unexposed.catalog(&self.agent.settings.caller);
        agents::idle_tools(described, &catalog).into_iter().map(escaped_line).collect()
    }

    /// Switches to another model.
    pub(crate) async fn choose(&mut self, said: &str) -> Result<(), Failure> {
        let model = model(&self.models, Some(said)).await?;
        self.agent.model = self.tape.model(model);
        Ok(())
    }
}

/// An agent, and its parts.
struct Made {
    agent: Agent,
    models: Arc<Models>,
    unexposed: Arc<dyn Toolbox>,
    described: Option<AgentConfig>,
}

/// Builds the requested agent, with the available models.
async fn made(talk: &Talk, running: &Running, tape: &Tape) -> Result<Made, Failure> {
    let models = running.shaping.models().cloned();
    let models = models.unwrap_or_else(|| Arc::new(Models::of(None)));
    let said = talk.model.as_deref();
    let mut unexposed = Arc::clone(&running.toolbox);
    let mut chosen = None;
    let mut agent = match &talk.agent {
        Some(name) => {
            let config = running.config.as_ref();
            let mut described = described(config, name)?;
            if let Some(said) = said {
                described.model = typed(said);
            }
            let team = Team::new(running, &models);
            let layers = running.over(&team.shaping);
            team.assemble(&layers, &described);
            let folder = folder(config);
            let agent = match tape.played() {
                Some(model) => {
                    agents::agent_with(name, &described, folder, model, (&models, &layers))
                }
                None => agents::agent(name, &described, folder, &models, &layers),
            }
            .map_err(|error| wrong(&error))?;
            unexposed = agents::tools(&described, &layers).unwrap_or(unexposed);
            chosen = Some(described);
            agent
        }
        None => {
            let model = match tape.played() {
                Some(model) => model,
                None => model(&models, said).await?,
            };
            let shown = running.layers().shown(None);
            let toolbox = shown.unwrap_or_else(|| Arc::clone(&running.toolbox));
            Agent::new(model, toolbox, models.agent_settings(NAME))
        }
    };
    agent.model = tape.model(agent.model);
    let settings = &mut agent.settings;
    if let Some(instructions) = &talk.instructions {
        settings.instructions = text_or_file(instructions)?;
    }
    settings.limits = limits(talk, &settings.limits);
    // What is played costs nothing.
    settings.observer = running.records.observer().filter(|_| !tape.is_playing());
    settings.has_user = tape.person().unwrap_or(Person::there() || talk.wait);
    if Person::there() {
        settings.sampling =
            SamplingSettings::new(SamplingConsent::Ask, settings.work.sampling_tokens);
    }
    Ok(Made { agent, models, unexposed, described: chosen })
}

fn folder(config: Option<&Config>) -> &Path {
    let folder = config.and_then(|config| config.file.parent());
    folder.unwrap_or(Path::new(""))
}

/// The agents of the config that an agent may call.
struct Team<'a> {
    /// The layers, with all of them as tools.
    shaping: Shaping,
    roster: Arc<AgentRegistry>,
    models: &'a Models,
    config: Option<&'a Config>,
    observer: Option<Arc<dyn RunObserver>>,
}

impl<'a> Team<'a> {
    fn new(running: &'a Running, models: &'a Models) -> Self {
        let config = running.config.as_ref();
        let agents = config.into_iter().flat_map(|config| &config.options.agents);
        let told = agents.map(|(name, agent)| {
            let usual = || format!("Asks the agent `{name}`, which has tools of its own.");
            (name.clone(), agent.description.clone().unwrap_or_else(usual))
        });
        let roster = Arc::<AgentRegistry>::default();
        let shaping = running.shaping.clone().with_agents(told.collect(), Arc::clone(&roster));
        Self { shaping, roster, models, config, observer: running.records.observer() }
    }

    /// Builds all of them; one that cannot be used is reported if `asking` names it.
    fn assemble(&self, layers: &Layers<'_>, asking: &AgentConfig) {
        let folder = folder(self.config);
        let agents = self.config.into_iter().flat_map(|config| &config.options.agents);
        let mut made = Vec::new();
        for (name, config) in agents {
            match agents::agent(name, config, folder, self.models, layers) {
                Ok(mut agent) => {
                    agent.settings.observer.clone_from(&self.observer);
                    made.push(agent);
                }
                Err(error) => {
                    let tool = tool_name(name);
                    let names = |text: &String| Pattern::new(text).matches(AGENTS, &tool);
                    if asking.tools.iter().any(names) {
                        let message = format!("the agent `{name}` is left out: {error}");
                        let problem = Problem::warning(message);
                        tell(&error.hint().into_iter().fold(problem, Problem::hint));
                    }
                }
            }
        }
        self.roster.set(made);
    }
}

/// Returns the config of an agent.
fn described(config: Option<&Config>, name: &str) -> Result<AgentConfig, Failure> {
    let agents = config.map(|config| &config.options.agents);
    if let Some(described) = agents.and_then(|agents| agents.get(name)) {
        return Ok(described.clone());
    }
    let failure = Failure::usage(format!("unknown agent `{}`", escaped_line(name)));
    let known = agents.into_iter().flatten().map(|(name, _)| name.as_str());
    Err(match nearest(name, known).first() {
        Some(near) => failure.hint(format!("did you mean `{near}`?")),
        None => failure.hint("agents are described under `[consort.agents.NAME]`"),
    })
}

fn wrong(error: &AgentError) -> Failure {
    let failure = Failure::usage(escaped(&chained(error)));
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// The limits of the command line, with defaults.
fn limits(talk: &Talk, usual: &RunLimits) -> RunLimits {
    RunLimits {
        turns: talk.max_turns.unwrap_or(usual.turns),
        calls: talk.max_calls.unwrap_or(usual.calls),
        tokens: talk.max_tokens.or(usual.tokens),
        cost: talk.max_cost.or(usual.cost),
        time: talk.max_time.or(usual.time),
        repeats: usual.repeats,
    }
}
