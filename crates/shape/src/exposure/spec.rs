//! Exposures as they are written in a config.

use std::collections::BTreeMap;

use consort_core::{NamePattern, ServerId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Exposure, ExposureMode, ExposureSettings};
use crate::policy::StringOrList;
use crate::transform::one_or_more;
use consort_models::tokens::TokenVocabulary;

/// Tokens of definitions that `auto` shows: a tenth of a usual context.
const BUDGET: usize = 20_000;

/// Bytes of tool names in the description of the one tool that stands for a server.
pub(super) const NAMES: usize = 160;

/// Error of an agent exposure without a model.
const NO_MODEL: &str =
    "`agent` requires a model: `{ mode = \"agent\", model = \"provider:name\" }`";

/// `exposure`: a mode, or a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "`individual`, `per-server`, `search`, `auto`, `agent` or a table with `mode`"
)]
pub enum ExposureSpec {
    /// A mode.
    Mode(ExposureModeSpec),
    /// A mode with its settings.
    Table(ExposureTableSpec),
}

/// Modes of exposure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExposureModeSpec {
    /// Every tool is listed.
    #[default]
    Individual,
    /// One tool for each server.
    PerServer,
    /// A tool that searches tools.
    Search,
    /// Chosen by a token budget.
    Auto,
    /// An agent for each server.
    Agent,
}

/// Settings of an exposure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ExposureTableSpec {
    /// Mode of the exposure.
    pub mode: ExposureModeSpec,
    /// Token budget of the definitions that `auto` shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<usize>,
    /// Vocabulary in which tokens are counted: `o200k` (if absent) or `cl100k`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["o200k", "cl100k"]))]
    pub vocabulary: Option<String>,
    /// Bytes of tool names in the description of each `mcp_SERVER`; 160 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names: Option<usize>,
    /// Model of the agents, as `provider:name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tools that are listed directly in every mode, as names or patterns.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_more")]
    #[schemars(with = "StringOrList")]
    pub direct: Vec<String>,
}

impl ExposureSpec {
    /// Compiles this exposure, or returns an error that says what is wrong with it.
    pub fn compile(
        &self,
        servers: &BTreeMap<ServerId, String>,
    ) -> Result<ExposureSettings, String> {
        let (Self::Mode(mode) | Self::Table(ExposureTableSpec { mode, .. })) = self;
        let usual = ExposureTableSpec::default();
        let table = match self {
            Self::Mode(_) => &usual,
            Self::Table(table) => table,
        };
        if *mode != ExposureModeSpec::Auto && (table.budget.is_some() || table.vocabulary.is_some())
        {
            return Err("`budget` and `vocabulary` require `mode = \"auto\"`".to_owned());
        }
        let has_names = matches!(mode, ExposureModeSpec::PerServer | ExposureModeSpec::Auto);
        if table.names.is_some() && !has_names {
            return Err("`names` requires `mode = \"per-server\"` or `\"auto\"`".to_owned());
        }
        let agent = match (mode, &table.model) {
            (ExposureModeSpec::Agent, None) => {
                return Err(NO_MODEL.to_owned());
            }
            (ExposureModeSpec::Agent, Some(model)) if !model.contains(':') => {
                return Err(format!(
                    "invalid model `{}`: expected `provider:name`",
                    model.escape_debug()
                ));
            }
            (ExposureModeSpec::Agent, model) => model.clone(),
            (_, Some(_)) => return Err("`model` requires `mode = \"agent\"`".to_owned()),
            (_, None) => None,
        };
        let vocabulary = match &table.vocabulary {
            None => TokenVocabulary::O200k,
            Some(name) => name.parse().map_err(|error| format!("{error}"))?,
        };
        let mode = match mode {
            // Agents are built where the models are; they get every tool.
            ExposureModeSpec::Individual | ExposureModeSpec::Agent => {
                ExposureMode::Fixed(Exposure::Individual)
            }
            ExposureModeSpec::PerServer => ExposureMode::Fixed(Exposure::PerServer),
            ExposureModeSpec::Search => ExposureMode::Fixed(Exposure::Search),
            ExposureModeSpec::Auto => {
                ExposureMode::Auto { budget: table.budget.unwrap_or(BUDGET), vocabulary }
            }
        };
        let direct = table.direct.iter().map(NamePattern::new).collect();
        let names = table.names.unwrap_or(NAMES);
        let servers = servers.clone();
        Ok(ExposureSettings { mode, direct, servers, names, agent, ..ExposureSettings::default() })
    }
}
