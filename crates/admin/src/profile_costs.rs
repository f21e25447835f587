//! Token costs of profiles by exposure, counted once for each catalog and config.

use std::sync::{Arc, Mutex, PoisonError};

use consort_core::{Caller, Catalog, Toolbox};
use consort_shape::exposure::{ExposureCost, exposure_costs};
use consort_shape::tokens::Vocabulary;
use schemars::JsonSchema;
use serde::Serialize;

use crate::active_config::Scene;
use crate::tool_views::ProfileView;

/// A selection of tools with its own endpoint.
#[derive(Clone, Serialize, JsonSchema)]
pub(crate) struct Profile {
    /// Name; absent for all tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Path of the MCP endpoint.
    path: String,
    /// Number of tools.
    tools: usize,
    exposures: Vec<Exposed>,
}

/// An exposure of a profile and its token cost.
#[derive(Clone, Serialize, JsonSchema)]
struct Exposed {
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
pub(crate) struct Profiles(Mutex<Option<Counted>>);

struct Counted {
    scene: Arc<Scene>,
    catalog: Arc<Catalog>,
    profiles: Arc<[Profile]>,
}

/// The path of the MCP endpoint of a profile, or of everything.
pub(crate) fn path(profile: Option<&str>) -> String {
    profile.map_or_else(|| "/mcp".to_owned(), |profile| format!("/mcp/{profile}"))
}

impl Profiles {
    /// Every profile, counted once for each catalog and config.
    pub(crate) fn of(&self, hub: &dyn Toolbox, scene: &Arc<Scene>) -> Arc<[Profile]> {
        let caller = Caller::owner();
        let catalog = hub.catalog(&caller);
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(counted) = &*known()
            && Arc::ptr_eq(&counted.scene, scene)
            && Arc::ptr_eq(&counted.catalog, &catalog)
        {
            return Arc::clone(&counted.profiles);
        }
        let profile = |(name, view): (Option<&str>, &ProfileView)| Profile {
            name: name.map(str::to_owned),
            path: path(name),
            tools: view.tools.catalog(&caller).tools.len(),
            exposures: exposures(view, &caller).into_iter().map(Exposed::from).collect(),
        };
        let profiles: Arc<[Profile]> = scene.views.all().map(profile).collect();
        let counted =
            Counted { scene: Arc::clone(scene), catalog, profiles: Arc::clone(&profiles) };
        *known() = Some(counted);
        profiles
    }
}

/// Returns the cost of every exposure of a profile.
fn exposures(view: &ProfileView, caller: &Caller) -> Vec<ExposureCost> {
    let configured = view.configured.catalog(caller);
    let exposed =
        view.exposed.iter().map(|(exposure, toolbox)| (*exposure, toolbox.catalog(caller)));
    exposure_costs(Some(&configured), exposed, Vocabulary::default())
}

impl From<ExposureCost> for Exposed {
    fn from(cost: ExposureCost) -> Self {
        let ExposureCost { exposure, tools, tokens, chosen } = cost;
        Self { exposure, tools, tokens, chosen }
    }
}
