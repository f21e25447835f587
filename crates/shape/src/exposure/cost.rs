//! Token costs of exposures.

use std::sync::Arc;

use consort_core::Catalog;
use consort_models::tokens::{TokenVocabulary, costs};
use serde::Serialize;

use super::Exposure;

/// Token cost of an exposure before the first call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ExposureCost {
    /// The exposure.
    pub exposure: &'static str,
    /// Number of tools that a model sees.
    pub tools: usize,
    /// Tokens of their definitions.
    pub tokens: usize,
    /// True if the config selects it.
    pub chosen: bool,
}

/// Returns the cost of each exposure, given the catalog that a model sees with it and with the configured exposure.
/// Counting tokens is slow.
pub fn exposure_costs(
    configured: Option<&Catalog>,
    exposed: impl IntoIterator<Item = (Exposure, Arc<Catalog>)>,
    vocabulary: TokenVocabulary,
) -> Vec<ExposureCost> {
    let cost = |(exposure, catalog): (Exposure, Arc<Catalog>)| ExposureCost {
        exposure: exposure.as_str(),
        tools: catalog.tools.len(),
        tokens: costs(vocabulary, &catalog).iter().map(|cost| cost.tokens).sum(),
        chosen: configured.is_some_and(|seen| seen.tools.entries() == catalog.tools.entries()),
    };
    exposed.into_iter().map(cost).collect()
}
