//! Tools as exposed to models: at the endpoint of a profile, by the exposure of the config or another one.

use std::collections::BTreeMap;
use std::sync::Arc;

use consort::shaping::Layers;
use consort_core::{Toolbox, nearest};
use consort_shape::Exposure;

use super::route::Refusal;

/// The keyword for the exposure of the config.
const CONFIGURED: &str = "config";

/// The toolboxes of every profile by every exposure, called from the console.
#[derive(Clone, Default)]
pub(crate) struct ToolViews(BTreeMap<Option<String>, ProfileView>);

/// One profile, or everything.
#[derive(Clone)]
struct ProfileView {
    configured: Arc<dyn Toolbox>,
    exposed: BTreeMap<&'static str, Arc<dyn Toolbox>>,
}

impl ToolViews {
    /// Builds the views over the layers of a config.
    pub(crate) fn new<'a>(layers: &Layers<'_>, profiles: impl Iterator<Item = &'a str>) -> Self {
        let view = |profile: Option<&str>| {
            let exposed = Exposure::ALL
                .into_iter()
                .filter_map(|one| Some((one.as_str(), layers.view(profile, Some(one))?)));
            let view =
                ProfileView { configured: layers.view(profile, None)?, exposed: exposed.collect() };
            Some((profile.map(str::to_owned), view))
        };
        Self(std::iter::once(None).chain(profiles.map(Some)).filter_map(view).collect())
    }

    /// Returns the view of a profile by an exposure; `None` if neither is named, which means every tool.
    pub(super) fn find(
        &self,
        profile: Option<&str>,
        exposure: Option<&str>,
    ) -> Result<Option<Arc<dyn Toolbox>>, Refusal> {
        if profile.is_none() && exposure.is_none() {
            return Ok(None);
        }
        let Some(view) = self.0.get(&profile.map(str::to_owned)) else {
            return Err(self.no_profile(profile.unwrap_or_default()));
        };
        let found = match exposure {
            None | Some(CONFIGURED) => Some(&view.configured),
            Some(exposure) => view.exposed.get(exposure),
        };
        let known = || {
            let names: Vec<&str> = view.exposed.keys().copied().collect();
            format!("one of {}, or {CONFIGURED} for that of the config", names.join(", "))
        };
        match found {
            Some(toolbox) => Ok(Some(Arc::clone(toolbox))),
            None => {
                let exposure = exposure.unwrap_or_default().escape_debug();
                Err(Refusal::bad(format!("unknown exposure `{exposure}`")).hint(known()))
            }
        }
    }

    /// The view of everything by the exposure of the config.
    pub(super) fn configured(&self) -> Option<&Arc<dyn Toolbox>> {
        self.0.get(&None).map(|view| &view.configured)
    }

    fn no_profile(&self, name: &str) -> Refusal {
        let known = self.0.keys().flatten().map(String::as_str);
        let refusal = Refusal::missing(format!("unknown profile `{}`", name.escape_debug()));
        match nearest(name, known).first() {
            Some(near) => refusal.hint(format!("did you mean `{near}`?")),
            None => refusal.hint("profiles are `[consort.profiles.NAME]` in the config"),
        }
    }
}
