//! Token costs of profiles by exposure, counted once for each catalog and config.

use std::sync::Arc;

use consort_core::{Caller, Catalog, Toolbox};
use consort_models::tokens::TokenVocabulary;
use consort_shape::exposure::{ExposureCost, exposure_costs};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;

use crate::active_config::ActiveConfig;
use crate::tool_views::ProfileView;

/// A selection of tools with its own endpoint.
#[derive(Clone, Serialize, JsonSchema)]
pub(crate) struct ProfileReport {
    /// Name; absent for all tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Path of the MCP endpoint.
    path: String,
    /// Number of tools.
    tools: usize,
    exposures: Vec<ExposureReport>,
}

/// An exposure of a profile and its token cost.
#[derive(Clone, Serialize, JsonSchema)]
struct ExposureReport {
    exposure: &'static str,
    /// Number of tools a model sees.
    tools: usize,
    /// Tokens of their definitions.
    tokens: usize,
    /// True if the config selects it.
    chosen: bool,
}

/// Cached token counts, with the catalog and config they belong to.
#[derive(Default)]
pub(crate) struct ProfileCosts(Mutex<Option<CountedProfiles>>);

struct CountedProfiles {
    active: Arc<ActiveConfig>,
    catalog: Arc<Catalog>,
    profiles: Arc<[ProfileReport]>,
}

/// The path of the MCP endpoint of a profile, or of everything.
pub(crate) fn endpoint_path(profile: Option<&str>) -> String {
    profile.map_or_else(|| "/mcp".to_owned(), |profile| format!("/mcp/{profile}"))
}

impl ProfileCosts {
    /// Every profile, counted once for each catalog and config.
    pub(crate) fn of(&self, hub: &dyn Toolbox, active: &Arc<ActiveConfig>) -> Arc<[ProfileReport]> {
        let caller = Caller::owner();
        let catalog = hub.catalog(&caller);
        let known = || self.0.lock();
        if let Some(counted) = &*known()
            && Arc::ptr_eq(&counted.active, active)
            && Arc::ptr_eq(&counted.catalog, &catalog)
        {
            return Arc::clone(&counted.profiles);
        }
        let profile = |(name, view): (Option<&str>, &ProfileView)| ProfileReport {
            name: name.map(str::to_owned),
            path: endpoint_path(name),
            tools: view.tools.catalog(&caller).tools.len(),
            exposures: exposures(view, &caller).into_iter().map(ExposureReport::from).collect(),
        };
        let profiles: Arc<[ProfileReport]> = active.views.all().map(profile).collect();
        let counted = CountedProfiles {
            active: Arc::clone(active),
            catalog,
            profiles: Arc::clone(&profiles),
        };
        *known() = Some(counted);
        profiles
    }
}

/// Returns the cost of every exposure of a profile.
fn exposures(view: &ProfileView, caller: &Caller) -> Vec<ExposureCost> {
    let configured = view.configured.catalog(caller);
    let exposed =
        view.exposed.iter().map(|(exposure, toolbox)| (*exposure, toolbox.catalog(caller)));
    exposure_costs(Some(&configured), exposed, TokenVocabulary::default())
}

impl From<ExposureCost> for ExposureReport {
    fn from(cost: ExposureCost) -> Self {
        let ExposureCost { exposure, tools, tokens, chosen } = cost;
        Self { exposure, tools, tokens, chosen }
    }
}
