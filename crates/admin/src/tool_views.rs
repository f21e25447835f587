//! Tools as exposed to models: at the endpoint of a profile, by the exposure of the config or another one.

use std::collections::BTreeMap;
use std::sync::Arc;

use consort_core::{Toolbox, nearest};
use consort_shape::Exposure;

use crate::admin_error::AdminError;

/// The keyword for the exposure of the config.
const CONFIGURED: &str = "config";

/// The toolboxes of every profile by every exposure, called from the console.
#[derive(Clone, Default)]
pub struct ToolViews(BTreeMap<Option<String>, ProfileView>);

/// The toolboxes of one profile, or of everything.
#[derive(Clone)]
pub struct ProfileView {
    /// Every tool, before the exposure.
    pub tools: Arc<dyn Toolbox>,
    /// The tools that a model sees with the exposure of the config.
    pub configured: Arc<dyn Toolbox>,
    /// The tools that a model sees with each exposure.
    pub exposed: Vec<(Exposure, Arc<dyn Toolbox>)>,
}

impl ToolViews {
    /// The views of everything, without a name, and of each profile.
    pub fn new(views: impl IntoIterator<Item = (Option<String>, ProfileView)>) -> Self {
        Self(views.into_iter().collect())
    }

    /// Every view with the name of its profile: first everything, then the profiles by name.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Option<&str>, &ProfileView)> {
        self.0.iter().map(|(name, view)| (name.as_deref(), view))
    }

    /// Returns the view of a profile by an exposure; `None` if neither is named, which means every tool.
    pub(crate) fn find(
        &self,
        profile: Option<&str>,
        exposure: Option<&str>,
    ) -> Result<Option<Arc<dyn Toolbox>>, AdminError> {
        if profile.is_none() && exposure.is_none() {
            return Ok(None);
        }
        let Some(view) = self.0.get(&profile.map(str::to_owned)) else {
            return Err(self.no_profile(profile.unwrap_or_default()));
        };
        let found = match exposure {
            None | Some(CONFIGURED) => Some(&view.configured),
            Some(exposure) => {
                let named = |(known, _): &&(Exposure, _)| known.as_str() == exposure;
                view.exposed.iter().find(named).map(|(_, toolbox)| toolbox)
            }
        };
        let known = || {
            let mut names: Vec<&str> =
                view.exposed.iter().map(|(exposure, _)| exposure.as_str()).collect();
            names.sort_unstable();
            format!("expected one of {}, or {CONFIGURED} for the configured one", names.join(", "))
        };
        match found {
            Some(toolbox) => Ok(Some(Arc::clone(toolbox))),
            None => {
                let exposure = exposure.unwrap_or_default().escape_debug();
                Err(AdminError::bad_request(format!("unknown exposure `{exposure}`")).hint(known()))
            }
        }
    }

    /// The view of everything by the exposure of the config.
    pub(crate) fn configured_view(&self) -> Option<&Arc<dyn Toolbox>> {
        self.0.get(&None).map(|view| &view.configured)
    }

    fn no_profile(&self, name: &str) -> AdminError {
        let known = self.0.keys().flatten().map(String::as_str);
        let refusal = AdminError::not_found(format!("unknown profile `{}`", name.escape_debug()));
        match nearest(name, known).first() {
            Some(near) => refusal.hint(format!("did you mean `{near}`?")),
            None => refusal.hint("profiles are defined as `[consort.profiles.NAME]` in the config"),
        }
    }
}

impl std::fmt::Debug for ToolViews {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}

impl std::fmt::Debug for ProfileView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProfileView").finish_non_exhaustive()
    }
}
