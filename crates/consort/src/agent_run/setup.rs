//! Setup of an agent from the command line and the config, with its servers connected.

use std::path::Path;
use std::sync::Arc;

use consort::agents::{self, AgentError};
use consort::models::ModelRegistry;
use consort::toolbox_layers::{LayeredToolboxes, ToolboxLayers};
use consort_agent::sub_agent::{AGENTS, AgentRegistry, tool_name};
use consort_agent::transcript::UNNAMED_AGENT;
use consort_agent::{Agent, RunLimits, RunObserver, RunTools, SamplingConsent, SamplingSettings};
use consort_config::{AgentConfig, Config};
use consort_core::escape::{escape_line, escape_text};
use consort_core::{NamePattern, Problem, Toolbox, nearest};

use super::model::{error_chain, model, resolve_typed_name};
use super::{ConversationStorage, LineFormat, RunRecording, TerminalUser, text_or_file};
use crate::cli::{AgentArguments, GlobalArguments};
use crate::command_hub::{CatalogFreshness, CommandHub, tell};
use crate::exit::CommandError;
use crate::terminal_prompt::TerminalPrompt;

/// Everything needed for a conversation.
pub(crate) struct RunSetup {
    pub(crate) context: AgentContext,
    pub(crate) user: TerminalUser,
}

/// The agent, its tools and its store.
pub(crate) struct AgentContext {
    pub(crate) running: CommandHub,
    pub(crate) agent: Agent,
    pub(crate) storage: ConversationStorage,
    models: Arc<ModelRegistry>,
    recording: RunRecording,
    /// The agent's tools, before the exposure.
    unexposed: Arc<dyn Toolbox>,
    /// The config of the agent, if it is in the config.
    described: Option<AgentConfig>,
}

impl RunSetup {
    /// Reads the config and builds the agent; connects to no server.
    pub(crate) async fn new(
        common: &GlobalArguments,
        agent_arguments: &AgentArguments,
        form: LineFormat,
    ) -> Result<Self, CommandError> {
        let storage = ConversationStorage::new(!agent_arguments.no_store)?;
        let person = TerminalPrompt::new();
        let user = TerminalUser::new(common, agent_arguments, form, Arc::clone(&person))?;
        let recording = RunRecording::new(agent_arguments)?;
        let running = CommandHub::start(common, person, &agent_arguments.ledger)?;
        let made = build_agent(agent_arguments, &running, &recording).await;
        match made {
            Ok(BuiltAgent { agent, models, unexposed, described }) => {
                let context = AgentContext {
                    running,
                    agent,
                    storage,
                    models,
                    recording,
                    unexposed,
                    described,
                };
                Ok(Self { context, user })
            }
            Err(failure) => {
                running.end().await;
                Err(failure)
            }
        }
    }

    /// Connects to the servers, and gives the agent its tools; `None` if that is interrupted.
    pub(crate) async fn reach(&mut self, tools: &[String]) -> Result<Option<()>, CommandError> {
        let reaching = self.context.reach(tools);
        let Some(denied) = self.user.unless_interrupted(reaching).await else {
            return Ok(None);
        };
        for denied in denied? {
            let text = format!("`{denied}` is omitted: the policy denies it");
            self.user.show.warn(text);
        }
        for idle in self.context.idle_tools() {
            self.user.show.warn(format!("`{idle}` in the agent's `tools` matches no tool"));
        }
        Ok(Some(()))
    }

    /// Shuts down everything. It can be interrupted. Fails if a recording could not be written, or if a replay diverged
    /// from it.
    pub(crate) async fn end(mut self) -> Result<(), CommandError> {
        self.user.show.clear();
        let drain = self.context.running.hub.drain();
        self.user.unless_interrupted(drain).await;
        self.context.running.records.end();
        self.context.recording.end()
    }
}

impl AgentContext {
    /// Connects to the servers without a stored catalog, and gives the agent the tools of these names; with none, those
    /// that the config exposes. Returns the names of tools that the policy denies.
    pub(crate) async fn reach(&mut self, tools: &[String]) -> Result<Vec<String>, CommandError> {
        if !matches!(self.recording, RunRecording::Replaying(_)) {
            self.running.connect_servers(None, CatalogFreshness::Cached).await;
        }
        // Tools given by name need no exposure that reduces their number.
        if !tools.is_empty() {
            self.agent.toolbox = Arc::clone(&self.unexposed);
        }
        self.agent.toolbox = self.recording.toolbox(Arc::clone(&self.agent.toolbox));
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
        let Some(described) = self.described.as_ref().filter(|_| !self.recording.is_replay())
        else {
            return Vec::new();
        };
        let catalog = self.unexposed.catalog(&self.agent.settings.caller);
        agents::unused_tools(described, &catalog).into_iter().map(escape_line).collect()
    }

    /// Switches to another model.
    pub(crate) async fn choose_model(&mut self, said: &str) -> Result<(), CommandError> {
        let model = model(&self.models, Some(said)).await?;
        self.agent.model = self.recording.model(model);
        Ok(())
    }
}

/// An agent, and its parts.
struct BuiltAgent {
    agent: Agent,
    models: Arc<ModelRegistry>,
    unexposed: Arc<dyn Toolbox>,
    described: Option<AgentConfig>,
}

/// Builds the requested agent, with the available models.
async fn build_agent(
    agent_arguments: &AgentArguments,
    running: &CommandHub,
    recording: &RunRecording,
) -> Result<BuiltAgent, CommandError> {
    let models = running.toolbox_layers.models().cloned();
    let models = models.unwrap_or_else(|| Arc::new(ModelRegistry::from_config(None)));
    let said = agent_arguments.model.as_deref();
    let mut unexposed = Arc::clone(&running.toolbox);
    let mut chosen = None;
    let mut agent = match &agent_arguments.agent {
        Some(name) => {
            let config = running.config.as_ref();
            let mut described = described(config, name)?;
            if let Some(said) = said {
                described.model = resolve_typed_name(said);
            }
            let team = AgentTeam::new(running, &models);
            let layers = running.layers_of(&team.toolbox_layers);
            team.assemble(&layers, &described);
            let folder = folder(config);
            let agent = match recording.replayed_model() {
                Some(model) => {
                    agents::agent_with(name, &described, folder, model, (&models, &layers))
                }
                None => agents::agent(name, &described, folder, &models, &layers),
            }
            .map_err(|error| agent_failure(&error))?;
            unexposed = agents::tools(&described, &layers).unwrap_or(unexposed);
            chosen = Some(described);
            agent
        }
        None => {
            let model = match recording.replayed_model() {
                Some(model) => model,
                None => model(&models, said).await?,
            };
            let shown = running.layers().exposed_tools(None);
            let toolbox = shown.unwrap_or_else(|| Arc::clone(&running.toolbox));
            Agent::new(model, toolbox, models.agent_settings(UNNAMED_AGENT))
        }
    };
    agent.model = recording.model(agent.model);
    let settings = &mut agent.settings;
    if let Some(instructions) = &agent_arguments.instructions {
        settings.instructions = text_or_file(instructions)?;
    }
    settings.limits = limits(agent_arguments, &settings.limits);
    // What is played costs nothing.
    settings.observer = running.records.observer().filter(|_| !recording.is_replay());
    settings.has_user = recording
        .could_ask_user()
        .unwrap_or(TerminalPrompt::has_terminal() || agent_arguments.wait);
    if TerminalPrompt::has_terminal() {
        settings.sampling =
            SamplingSettings::new(SamplingConsent::Ask, settings.work.sampling_tokens);
    }
    Ok(BuiltAgent { agent, models, unexposed, described: chosen })
}

fn folder(config: Option<&Config>) -> &Path {
    let folder = config.and_then(|config| config.file.parent());
    folder.unwrap_or(Path::new(""))
}

/// The agents of the config that an agent may call.
struct AgentTeam<'a> {
    /// The layers, with all of them as tools.
    toolbox_layers: ToolboxLayers,
    roster: Arc<AgentRegistry>,
    models: &'a ModelRegistry,
    config: Option<&'a Config>,
    observer: Option<Arc<dyn RunObserver>>,
}

impl<'a> AgentTeam<'a> {
    fn new(running: &'a CommandHub, models: &'a ModelRegistry) -> Self {
        let config = running.config.as_ref();
        let agents = config.into_iter().flat_map(|config| &config.options.agents);
        let told = agents::agent_descriptions(agents);
        let roster = Arc::<AgentRegistry>::default();
        let toolbox_layers = running.toolbox_layers.clone().with_agents(told, Arc::clone(&roster));
        Self { toolbox_layers, roster, models, config, observer: running.records.observer() }
    }

    /// Builds all of them; one that cannot be used is reported if `asking` names it.
    fn assemble(&self, layers: &LayeredToolboxes<'_>, asking: &AgentConfig) {
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
                    let names = |text: &String| NamePattern::new(text).matches(AGENTS, &tool);
                    if asking.tools.iter().any(names) {
                        let message = format!("the agent `{name}` is omitted: {error}");
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
fn described(config: Option<&Config>, name: &str) -> Result<AgentConfig, CommandError> {
    let agents = config.map(|config| &config.options.agents);
    if let Some(described) = agents.and_then(|agents| agents.get(name)) {
        return Ok(described.clone());
    }
    let failure = CommandError::usage(format!("unknown agent `{}`", escape_line(name)));
    let known = agents.into_iter().flatten().map(|(name, _)| name.as_str());
    Err(match nearest(name, known).first() {
        Some(near) => failure.hint(format!("did you mean `{near}`?")),
        None => failure.hint("agents are defined under `[consort.agents.NAME]`"),
    })
}

fn agent_failure(error: &AgentError) -> CommandError {
    let failure = CommandError::usage(escape_text(&error_chain(error)));
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// The limits of the command line, with defaults.
fn limits(agent_arguments: &AgentArguments, usual: &RunLimits) -> RunLimits {
    RunLimits {
        turns: agent_arguments.max_turns.unwrap_or(usual.turns),
        calls: agent_arguments.max_calls.unwrap_or(usual.calls),
        tokens: agent_arguments.max_tokens.or(usual.tokens),
        cost: agent_arguments.max_cost.or(usual.cost),
        time: agent_arguments.max_time.or(usual.time),
        repeats: usual.repeats,
    }
}
