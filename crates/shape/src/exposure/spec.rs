//! Exposures as people write them in a config.

use std::collections::BTreeMap;

use consort_core::{Pattern, ServerId};
use serde::{Deserialize, Serialize};

use super::{Exposing, Exposure, Mode};
use crate::tokens::Vocabulary;
use crate::transform::one_or_more;

/// Tokens of definitions that `auto` shows: a tenth of a usual context.
const BUDGET: usize = 20_000;

/// Bytes of tool names in the description of the one tool that stands for a server.
pub(super) const NAMES: usize = 160;

/// What is wrong with an agent that is of no model.
const NO_MODEL: &str =
    "`agent` needs a model: write `{ mode = \"agent\", model = \"provider:name\" }`";

/// `exposure`: a word, or a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "`individual`, `per-server`, `search`, `auto`, `agent` or a table with `mode`"
)]
pub enum ExposureSpec {
    /// The word alone.
    Word(ModeSpec),
    /// With more about it.
    Table(TableSpec),
}

/// The words for exposures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModeSpec {
    /// Every tool.
    #[default]
    Individual,
    /// One tool for each server.
    PerServer,
    /// A tool that finds tools.
    Search,
    /// By a budget of tokens.
    Auto,
    /// An agent for each server.
    Agent,
}

/// An exposure with more about it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TableSpec {
    /// Which exposure.
    pub mode: ModeSpec,
    /// Tokens of definitions that `auto` shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<usize>,
    /// In which tokens are counted: `o200k` (if absent) or `cl100k`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vocabulary: Option<String>,
    /// Bytes of tool names in the description of each `mcp_SERVER`; 160 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names: Option<usize>,
    /// The model of the agents, as `provider:name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tools that are shown directly, whatever the exposure: names or patterns.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_more")]
    pub direct: Vec<String>,
}

impl ExposureSpec {
    /// What this stands for, or what is wrong with it.
    pub fn compile(&self, servers: &BTreeMap<ServerId, String>) -> Result<Exposing, String> {
        let (Self::Word(mode) | Self::Table(TableSpec { mode, .. })) = self;
        let usual = TableSpec::default();
        let table = match self {
            Self::Word(_) => &usual,
            Self::Table(table) => table,
        };
        if *mode != ModeSpec::Auto && (table.budget.is_some() || table.vocabulary.is_some()) {
            return Err("`budget` and `vocabulary` are for `mode = \"auto\"`".to_owned());
        }
        let has_names = matches!(mode, ModeSpec::PerServer | ModeSpec::Auto);
        if table.names.is_some() && !has_names {
            return Err("`names` is for `mode = \"per-server\"` and `\"auto\"`".to_owned());
        }
        let agent = match (mode, &table.model) {
            (ModeSpec::Agent, None) => {
                return Err(NO_MODEL.to_owned());
            }
            (ModeSpec::Agent, Some(model)) if !model.contains(':') => {
                return Err(format!(
                    "unknown model `{}`: use `provider:name`",
                    model.escape_debug()
                ));
            }
            (ModeSpec::Agent, model) => model.clone(),
            (_, Some(_)) => return Err("`model` is for `mode = \"agent\"`".to_owned()),
            (_, None) => None,
        };
        let vocabulary = match &table.vocabulary {
            None => Vocabulary::O200k,
            Some(name) => name.parse().map_err(|error| format!("{error}"))?,
        };
        let mode = match mode {
            // The agents are made by whoever has models: what they are given is every tool.
            ModeSpec::Individual | ModeSpec::Agent => Mode::Fixed(Exposure::Individual),
            ModeSpec::PerServer => Mode::Fixed(Exposure::PerServer),
            ModeSpec::Search => Mode::Fixed(Exposure::Search),
            ModeSpec::Auto => Mode::Auto { budget: table.budget.unwrap_or(BUDGET), vocabulary },
        };
        let direct = table.direct.iter().map(Pattern::new).collect();
        let names = table.names.unwrap_or(NAMES);
        Ok(Exposing { mode, direct, servers: servers.clone(), names, agent })
    }
}
