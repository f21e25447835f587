//! The config in force, and everything built from it.

use std::sync::Arc;

use consort_config::{Config, LimitSettings};
use consort_core::{Caller, CatalogEntry, Problem, Toolbox};
use consort_shape::pin::PinLock;
use consort_shape::policy::{Policy, PolicyDecision};
use consort_shape::transform::Transform;

use crate::served_agents::ServedAgents;
use crate::tool_views::ToolViews;

/// The config in force, and everything built from it.
pub struct ActiveConfig {
    /// The config, if there is one.
    pub config: Option<Config>,
    /// The limits of the config.
    pub limits: Arc<LimitSettings>,
    /// The names of all profiles.
    pub profiles: Vec<String>,
    /// The profile that is served alone, if one is.
    pub only_profile: Option<String>,
    /// The policy of the endpoint of everything.
    pub policy: Policy,
    /// The transforms of the endpoint of everything.
    pub transforms: Vec<Arc<dyn Transform>>,
    /// The enforced lock.
    pub lock: Option<Arc<PinLock>>,
    /// Every tool by its name here, called from the console.
    pub tools: Arc<dyn Toolbox>,
    /// The same as exposed to models.
    pub views: ToolViews,
    /// Agents and models that can be used.
    pub agents: Arc<ServedAgents>,
    /// Problems of the config.
    pub problems: Vec<Problem>,
}

impl ActiveConfig {
    /// Returns the decision of the policy on a tool, before its arguments are known; `None` if the policy allows
    /// everything.
    pub(crate) fn decision(&self, caller: &Caller, entry: &CatalogEntry) -> Option<PolicyDecision> {
        self.policy.decide_on_entry(caller, self.only_profile.as_deref(), entry)
    }

    /// Returns true if the policy lets a caller see a tool.
    pub(crate) fn is_visible(&self, caller: &Caller, entry: &CatalogEntry) -> bool {
        self.decision(caller, entry).is_none_or(|decision| decision.shows())
    }
}

impl std::fmt::Debug for ActiveConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ActiveConfig").field("profiles", &self.profiles).finish_non_exhaustive()
    }
}
