//! From what was typed, and what the config says of agents, to an agent over servers that are reached.

use std::sync::Arc;

use consort::config::Config;
use consort_agent::{Agent, Bound, Consent, Limits, Sampling, Settings};
use consort_core::Toolbox;

use super::{Audience, Form, Keeping, model, text_or_file};
use crate::cli::{Common, Talk};
use crate::exit::Failure;
use crate::output::escaped_line;
use crate::person::Person;
use crate::running::{self, Need, Running};

/// What a model is chosen by if nothing else says.
const VARIABLE: &str = "CONSORT_MODEL";

/// How much servers may have the model answer on their own account, in tokens.
const SAMPLING: u64 = 100_000;

/// Everything a talk needs.
pub(crate) struct Setup {
    pub(crate) stage: Stage,
    pub(crate) audience: Audience,
}

/// Who talks, and with what.
pub(crate) struct Stage {
    pub(crate) running: Running,
    pub(crate) agent: Agent,
    pub(crate) keeping: Keeping,
    pub(crate) config: Option<Config>,
}

impl Setup {
    /// Reads the config and makes the agent; no server is reached.
    pub(crate) fn new(common: &Common, talk: &Talk, form: Form) -> Result<Self, Failure> {
        let config = running::read(common)?;
        let name = talk.model.clone().or_else(|| std::env::var(VARIABLE).ok());
        let name = name.filter(|name| !name.is_empty()).ok_or_else(|| {
            let hint = format!("name one with --model PROVIDER:NAME, or set {VARIABLE}");
            Failure::usage("no model is chosen").hint(hint)
        })?;
        let model = model(&name, config.as_ref())?;
        let mut settings = Settings::new("consort");
        settings.instructions = instructions(talk)?;
        settings.limits = limits(talk, settings.limits);
        settings.person = Person::there() || talk.wait;
        if Person::there() {
            settings.sampling = Sampling::new(Consent::Ask, SAMPLING);
        }
        let keeping = Keeping::new(!talk.no_store)?;
        let person = Person::new();
        let audience = Audience::new(common, talk, form, Arc::clone(&person))?;
        let running = Running::start(common, person)?;
        let agent = Agent::new(model, Arc::clone(&running.toolbox), settings);
        Ok(Self { stage: Stage { running, agent, keeping, config }, audience })
    }

    /// Reaches the servers, and gives the agent its tools; nothing if that is interrupted.
    pub(crate) async fn reach(&mut self, tools: &[String]) -> Result<Option<()>, Failure> {
        let reaching = self.stage.reach(tools);
        let Some(denied) = self.audience.unless_interrupted(reaching).await else {
            return Ok(None);
        };
        for denied in denied? {
            let denied = escaped_line(&denied);
            let text = format!("warning: `{denied}` is left out: the policy does not allow it");
            self.audience.show.note(&text);
        }
        Ok(Some(()))
    }

    /// Ends what was started. Whoever cannot wait interrupts it.
    pub(crate) async fn end(mut self) {
        self.audience.show.clear();
        let drain = self.stage.running.hub.drain();
        self.audience.unless_interrupted(drain).await;
    }
}

impl Stage {
    /// Reaches the servers of which nothing is known, and gives the agent the tools of these names; with
    /// none, what a model sees by the exposure of the config. Names of tools that the policy denies are
    /// handed back.
    pub(crate) async fn reach(&mut self, tools: &[String]) -> Result<Vec<String>, Failure> {
        self.running.reach(None, Need::Kept).await;
        if tools.is_empty() {
            let shown = self.running.layers().shown(None);
            self.agent.toolbox = shown.unwrap_or_else(|| Arc::clone(&self.running.toolbox));
            self.agent.settings.tools = None;
            return Ok(Vec::new());
        }
        let caller = &self.agent.settings.caller;
        let catalog = self.running.toolbox.catalog(caller);
        let whole = self.running.hub.catalog(caller);
        let bound = Bound::chosen(&catalog, tools, Some(&whole))?;
        self.agent.toolbox = Arc::clone(&self.running.toolbox);
        self.agent.settings.tools = Some(bound.ids());
        Ok(bound.denied)
    }
}

fn instructions(talk: &Talk) -> Result<String, Failure> {
    talk.instructions.as_deref().map_or_else(|| Ok(String::new()), text_or_file)
}

/// The limits, as far as they were typed.
fn limits(talk: &Talk, usual: Limits) -> Limits {
    Limits {
        turns: talk.max_turns.unwrap_or(usual.turns),
        calls: talk.max_calls.unwrap_or(usual.calls),
        tokens: talk.max_tokens.or(usual.tokens),
        cost: talk.max_cost.or(usual.cost),
        time: talk.max_time.or(usual.time),
        ..usual
    }
}
