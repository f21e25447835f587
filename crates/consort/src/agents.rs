//! The agents of a config, built from their models and the offered tools.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use consort_agent::sub_agent::AGENTS;
use consort_agent::{Agent, RunLimits};
use consort_config::{self, AgentConfig, ReasoningConfig};
use consort_core::{Catalog, NamePattern, ServerId, Toolbox};
use consort_models::{Model, ReasoningAmount, ReasoningEffort};
use consort_shape::transform::{ToolDraft, Transform};

use crate::models::{ModelError, ModelRegistry};
use crate::toolbox_layers::LayeredToolboxes;

/// The prefix for tools of any MCP server.
const ANY_SERVER: &str = "mcp";

/// The group of Consort's own tools, which belong to no MCP server.
const BUILTIN: &str = "builtin";

/// The reason why an agent cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// Its model cannot be used.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Its instructions cannot be read.
    #[error("cannot read the instructions `{file}`")]
    Instructions {
        /// The file, as written.
        file: String,
        /// The I/O error.
        #[source]
        source: std::io::Error,
    },
    /// Its profile does not exist.
    #[error("unknown profile `{0}`")]
    Profile(String),
}

impl AgentError {
    /// Returns a suggestion for the user.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Model(error) => error.hint(),
            Self::Instructions { .. } | Self::Profile(_) => None,
        }
    }
}

/// Returns the names of agents, each with the description that other agents see.
pub fn agent_descriptions<'a>(
    agents: impl IntoIterator<Item = (&'a String, &'a AgentConfig)>,
) -> Vec<(String, String)> {
    let describe = |(name, agent): (&String, &AgentConfig)| {
        let usual = || format!("Delegates a task to the agent `{name}`.");
        (name.clone(), agent.description.clone().unwrap_or_else(usual))
    };
    agents.into_iter().map(describe).collect()
}

/// Builds the agent of a name, over the tools of these layers. `folder` is the one of its config.
pub fn agent(
    name: &str,
    config: &AgentConfig,
    folder: &Path,
    models: &ModelRegistry,
    layers: &LayeredToolboxes<'_>,
) -> Result<Agent, AgentError> {
    agent_with(name, config, folder, models.model(&config.model)?, (models, layers))
}

/// Builds the agent with another model than the config names.
pub fn agent_with(
    name: &str,
    config: &AgentConfig,
    folder: &Path,
    model: Model,
    (models, layers): (&ModelRegistry, &LayeredToolboxes<'_>),
) -> Result<Agent, AgentError> {
    let profile = config.profile.as_deref();
    let toolbox = layers.exposed_through(profile, chosen_tools(config, layers));
    let toolbox =
        toolbox.ok_or_else(|| AgentError::Profile(profile.unwrap_or_default().to_owned()))?;
    let mut settings = models.agent_settings(name);
    settings.instructions = instructions(config, folder, models.limits().files.instructions)?;
    settings.limits = limits(config, &settings.limits);
    settings.temperature = config.temperature;
    settings.reasoning = config.reasoning.map(reasoning);
    settings.summarize = config.summarize.unwrap_or_default();
    settings.summary_tokens = config.summary_tokens.unwrap_or(settings.summary_tokens);
    settings.context_tries = config.context_tries.unwrap_or(settings.context_tries);
    Ok(Agent::new(model, toolbox, settings))
}

/// The tools of an agent, before its exposure.
pub fn tools(config: &AgentConfig, layers: &LayeredToolboxes<'_>) -> Option<Arc<dyn Toolbox>> {
    layers.tools_through(config.profile.as_deref(), chosen_tools(config, layers))
}

/// Returns the entries of an agent's `tools` that match no tool.
pub fn unused_tools<'a>(config: &'a AgentConfig, catalog: &Catalog) -> Vec<&'a str> {
    let fits = |text: &str| {
        let one = ForAgents::new(&[text.to_owned()], catalog.reserved());
        catalog.tools.entries().iter().any(|entry| one.apply(ToolDraft::new(entry)).is_some())
    };
    config.tools.iter().map(String::as_str).filter(|text| !fits(text)).collect()
}

fn chosen_tools(config: &AgentConfig, layers: &LayeredToolboxes<'_>) -> Arc<dyn Transform> {
    Arc::new(ForAgents::new(&config.tools, &layers.reserved()))
}

fn limits(config: &AgentConfig, usual: &RunLimits) -> RunLimits {
    RunLimits {
        turns: config.max_turns.unwrap_or(usual.turns),
        calls: config.max_calls.unwrap_or(usual.calls),
        tokens: config.max_tokens.or(usual.tokens),
        cost: config.max_cost.or(usual.cost),
        time: config.max_time.map(|time| -> Duration { time.get() }).or(usual.time),
        repeats: usual.repeats,
    }
}

fn instructions(config: &AgentConfig, folder: &Path, most: u64) -> Result<String, AgentError> {
    let Some(file) = &config.instructions_file else {
        return Ok(config.instructions.clone().unwrap_or_default());
    };
    let failed = |source| AgentError::Instructions { file: file.clone(), source };
    let path = folder.join(file);
    let size = std::fs::metadata(&path).map_err(failed)?.len();
    if size > most {
        let kind = std::io::ErrorKind::FileTooLarge;
        return Err(failed(std::io::Error::new(kind, format!("it is larger than {most} bytes"))));
    }
    std::fs::read_to_string(&path).map_err(failed)
}

fn reasoning(thinking: ReasoningConfig) -> ReasoningAmount {
    match thinking {
        ReasoningConfig::Tokens(tokens) => ReasoningAmount::Budget(tokens),
        ReasoningConfig::Word(word) => ReasoningAmount::Effort(match word {
            consort_config::ReasoningLevel::Off => ReasoningEffort::Off,
            consort_config::ReasoningLevel::Minimal => ReasoningEffort::Minimal,
            consort_config::ReasoningLevel::Low => ReasoningEffort::Low,
            consort_config::ReasoningLevel::Medium => ReasoningEffort::Medium,
            consort_config::ReasoningLevel::High => ReasoningEffort::High,
            consort_config::ReasoningLevel::Max => ReasoningEffort::Max,
        }),
    }
}

/// Transform that limits tools to those an agent may use: the ones its config names, and other agents only if named
/// explicitly, so that an agent that may use everything cannot call itself.
struct ForAgents {
    tools: Vec<NamePattern>,
    /// Patterns for tools of any MCP server.
    any: Vec<NamePattern>,
    agents: Vec<NamePattern>,
}

impl ForAgents {
    /// `servers` are those of the config: `mcp.tool` is a tool of any server that has it, unless one is called `mcp`.
    fn new(tools: &[String], servers: &BTreeSet<ServerId>) -> Self {
        let has_mcp = servers.iter().any(|server| server.as_str() == ANY_SERVER);
        let any = |text: &String| match text.split_once(['.', ':']) {
            Some((ANY_SERVER, name)) if !has_mcp => (true, NamePattern::new(format!("*.{name}"))),
            _ => (false, NamePattern::new(text)),
        };
        let (any, named): (Vec<_>, Vec<_>) = tools.iter().map(any).partition(|(any, _)| *any);
        let patterns = || named.iter().map(|(_, pattern)| pattern.clone());
        let names_agents = |pattern: &NamePattern| {
            let text = pattern.as_str();
            text.starts_with("ask_") || text.starts_with(&format!("{AGENTS}."))
        };
        Self {
            tools: patterns().collect(),
            any: any.into_iter().map(|(_, pattern)| pattern).collect(),
            agents: patterns().filter(names_agents).collect(),
        }
    }
}

impl Transform for ForAgents {
    fn apply(&self, draft: ToolDraft) -> Option<ToolDraft> {
        let server = draft.server.as_str();
        let fits = |pattern: &NamePattern| {
            pattern.matches(server, &draft.name) || pattern.matches(server, &draft.original)
        };
        let wanted = match server {
            AGENTS => self.agents.iter().any(fits),
            _ if self.tools.is_empty() && self.any.is_empty() => true,
            BUILTIN => self.tools.iter().any(fits),
            _ => self.tools.iter().chain(&self.any).any(fits),
        };
        wanted.then_some(draft)
    }

    fn describe(&self) -> String {
        "only what an agent may use".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use consort_core::{CatalogEntry, CatalogRoute, Tool};
    use serde_json::json;

    use super::*;

    fn seen(tools: &[&str], server: &str, name: &str) -> bool {
        let tool = Tool::new(name, "", &json!({ "type": "object" }).into());
        let route = CatalogRoute { server: server.parse().unwrap(), name: name.to_owned() };
        let entry =
            CatalogEntry { route, name: name.to_owned(), definition: tool.definition().clone() };
        let tools: Vec<String> = tools.iter().map(|tool| (*tool).to_owned()).collect();
        let servers = ["files", "web"].map(|server| server.parse().unwrap());
        ForAgents::new(&tools, &servers.into()).apply(ToolDraft::new(&entry)).is_some()
    }

    #[test]
    fn tools_are_named_as_people_name_them_everywhere() {
        for name in ["read", "files.read", "files:read", "mcp.read", "mcp:read", "re*", "f*.read"] {
            assert!(seen(&[name], "files", "read"), "{name}");
            assert!(!seen(&[name], "files", "write"), "{name}");
        }
        assert!(seen(&["mcp.read"], "web", "read") && !seen(&["mcp.echo"], "builtin", "echo"));
        assert!(!seen(&["mcp.*"], "agents", "ask_a"));
    }

    #[test]
    fn an_agent_sees_other_agents_only_if_it_names_them() {
        assert!(seen(&[], "files", "read") && !seen(&[], "agents", "ask_a"));
        assert!(seen(&["*"], "files", "read") && !seen(&["*"], "agents", "ask_a"));
        assert!(seen(&["ask_a", "files.*"], "agents", "ask_a"));
        assert!(seen(&["agents.*"], "agents", "ask_a"));
        assert!(!seen(&["ask_b"], "agents", "ask_a") && !seen(&["ask_b"], "files", "read"));
        assert!(seen(&["files.r*"], "files", "read") && !seen(&["files.r*"], "web", "read"));
    }
}
