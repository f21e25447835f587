//! Profiles, and the token cost of each by exposure.

use std::sync::{Arc, Mutex, PoisonError};

use consort::shaping::unwrapped;
use consort_core::{Caller, Catalog, Toolbox};
use consort_models::tokens::TokenVocabulary;
use schemars::JsonSchema;
use serde::Serialize;

use super::route::{Asked, Nothing, Refusal, Route, Told, get};
use super::{Console, Scene, aside};
use crate::exposures::{Shown, exposures};

pub(super) fn routes() -> Vec<Route> {
    vec![get("/api/profiles", "What each profile offers, and what that costs a model.", list)]
}

/// A selection of tools with its own endpoint.
#[derive(Clone, Serialize, JsonSchema)]
pub(super) struct Profile {
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
pub(super) struct Profiles(Mutex<Option<Counted>>);

struct Counted {
    scene: Arc<Scene>,
    catalog: Arc<Catalog>,
    profiles: Arc<[Profile]>,
}

/// The path of the MCP endpoint of a profile, or of everything.
pub(super) fn path(profile: Option<&str>) -> String {
    profile.map_or_else(|| "/mcp".to_owned(), |profile| format!("/mcp/{profile}"))
}

impl Console {
    /// Every profile, counted once for each catalog and config.
    fn profiles(&self) -> Arc<[Profile]> {
        let (scene, caller) = (self.scene(), Caller::owner());
        let catalog = self.0.hub.catalog(&caller);
        let known = || self.0.profiles.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(counted) = &*known()
            && Arc::ptr_eq(&counted.scene, &scene)
            && Arc::ptr_eq(&counted.catalog, &catalog)
        {
            return Arc::clone(&counted.profiles);
        }
        let layers = scene.shaping.over(Arc::new(self.0.hub.clone()), &unwrapped);
        let mut profiles: Vec<Profile> = Vec::new();
        for shown in exposures(&scene.shaping, &layers, &caller, TokenVocabulary::default()) {
            let Shown { profile: name, exposure, tools, tokens, chosen } = shown;
            if profiles.last().is_none_or(|last| last.name != name) {
                let toolbox = layers.tools(name.as_deref());
                let all = toolbox.map_or(0, |toolbox| toolbox.catalog(&caller).tools.len());
                let path = path(name.as_deref());
                profiles.push(Profile { name, path, tools: all, exposures: Vec::new() });
            }
            let exposed = Exposed { exposure, tools, tokens, chosen };
            profiles.last_mut().expect("one was put there").exposures.push(exposed);
        }
        let profiles: Arc<[Profile]> = profiles.into();
        let counted = Counted { scene: Arc::clone(&scene), catalog, profiles };
        let profiles = Arc::clone(&counted.profiles);
        *known() = Some(counted);
        profiles
    }
}

async fn list(console: Console, _: Asked, _: Nothing) -> Result<Told<Vec<Profile>>, Refusal> {
    aside(move || Told(console.profiles().to_vec())).await
}
