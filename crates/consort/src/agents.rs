//! The agents of a config, made of their models and of what is on offer.

use std::path::Path;
use std::time::Duration;

use consort_agent::provider::{Effort, Reasoning};
use consort_agent::sub::AGENTS;
use consort_agent::{Agent, Limits, Model, Settings};
use consort_core::Pattern;
use consort_shape::transform::{Draft, Transform};

use crate::config::{self, AgentConfig, Thinking};
use crate::models::{ModelError, Models};
use crate::shaping::Layers;

/// The largest file of instructions.
const LARGEST: u64 = 1 << 20;

/// Why an agent cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// Its model cannot be used.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Its instructions cannot be read.
    #[error("the instructions `{file}` cannot be read")]
    Instructions {
        /// The file, as written.
        file: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Its profile is not there.
    #[error("unknown profile `{0}`")]
    Profile(String),
}

impl AgentError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Model(error) => error.hint(),
            Self::Instructions { .. } | Self::Profile(_) => None,
        }
    }
}

/// The agent of a name, over what layers show. `folder` is where its config is.
pub fn agent(
    name: &str,
    config: &AgentConfig,
    folder: &Path,
    models: &Models,
    layers: &Layers<'_>,
) -> Result<Agent, AgentError> {
    agent_with(name, config, folder, models.model(&config.model)?, layers)
}

/// The same with another model.
pub fn agent_with(
    name: &str,
    config: &AgentConfig,
    folder: &Path,
    model: Model,
    layers: &Layers<'_>,
) -> Result<Agent, AgentError> {
    let profile = config.profile.as_deref();
    let chosen: std::sync::Arc<dyn Transform> = std::sync::Arc::new(ForAgents::new(&config.tools));
    let toolbox = layers.shown_through(profile, chosen);
    let toolbox =
        toolbox.ok_or_else(|| AgentError::Profile(profile.unwrap_or_default().to_owned()))?;
    let mut settings = Settings::new(name);
    settings.instructions = instructions(config, folder)?;
    settings.limits = limits(config);
    settings.temperature = config.temperature;
    settings.reasoning = config.reasoning.map(reasoning);
    Ok(Agent::new(model, toolbox, settings))
}

fn limits(config: &AgentConfig) -> Limits {
    let usual = Limits::default();
    Limits {
        turns: config.max_turns.unwrap_or(usual.turns),
        calls: config.max_calls.unwrap_or(usual.calls),
        tokens: config.max_tokens,
        cost: config.max_cost,
        time: config.max_time.map(|time| -> Duration { time.get() }),
        repeats: usual.repeats,
    }
}

fn instructions(config: &AgentConfig, folder: &Path) -> Result<String, AgentError> {
    let Some(file) = &config.instructions_file else {
        return Ok(config.instructions.clone().unwrap_or_default());
    };
    let failed = |source| AgentError::Instructions { file: file.clone(), source };
    let path = folder.join(file);
    let size = std::fs::metadata(&path).map_err(failed)?.len();
    if size > LARGEST {
        let kind = std::io::ErrorKind::FileTooLarge;
        return Err(failed(std::io::Error::new(kind, "it has more than 1 MiB")));
    }
    std::fs::read_to_string(&path).map_err(failed)
}

fn reasoning(thinking: Thinking) -> Reasoning {
    match thinking {
        Thinking::Tokens(tokens) => Reasoning::Budget(tokens),
        Thinking::Word(word) => Reasoning::Effort(match word {
            config::Effort::Off => Effort::Off,
            config::Effort::Minimal => Effort::Minimal,
            config::Effort::Low => Effort::Low,
            config::Effort::Medium => Effort::Medium,
            config::Effort::High => Effort::High,
            config::Effort::Max => Effort::Max,
        }),
    }
}

/// What an agent may use: what its config names, and other agents only by their own names, so that none
/// comes to ask itself because it may use everything.
struct ForAgents {
    tools: Vec<Pattern>,
    agents: Vec<Pattern>,
}

impl ForAgents {
    fn new(tools: &[String]) -> Self {
        let patterns = || tools.iter().map(Pattern::new);
        let names_agents = |pattern: &Pattern| {
            let text = pattern.as_str();
            text.starts_with("ask_") || text.starts_with(&format!("{AGENTS}."))
        };
        Self { tools: patterns().collect(), agents: patterns().filter(names_agents).collect() }
    }
}

impl Transform for ForAgents {
    fn apply(&self, draft: Draft) -> Option<Draft> {
        let server = draft.server.as_str();
        let fits = |pattern: &Pattern| {
            pattern.matches(server, &draft.name) || pattern.matches(server, &draft.original)
        };
        let wanted = match server {
            AGENTS => self.agents.iter().any(fits),
            _ => self.tools.is_empty() || self.tools.iter().any(fits),
        };
        wanted.then_some(draft)
    }

    fn describe(&self) -> String {
        "only what an agent may use".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use consort_core::{Entry, Route, Tool};
    use serde_json::json;

    use super::*;

    fn seen(tools: &[&str], server: &str, name: &str) -> bool {
        let tool = Tool::new(name, "", &json!({ "type": "object" }).into());
        let route = Route { server: server.parse().unwrap(), name: name.to_owned() };
        let entry = Entry { route, name: name.to_owned(), definition: tool.definition().clone() };
        let tools: Vec<String> = tools.iter().map(|tool| (*tool).to_owned()).collect();
        ForAgents::new(&tools).apply(Draft::new(&entry)).is_some()
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
