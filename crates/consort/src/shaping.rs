//! Building toolboxes from a config, one for each endpoint.
//!
//! A call passes these layers, from the outside in: [`ExposureToolbox`] (exposure to models), [`TransformToolbox`]
//! (names, descriptions, arguments, results), a recorder if there is one, [`PolicyToolbox`] (policy), [`AgentToolbox`]
//! (agents as tools), [`PinToolbox`] (lock), [`CacheToolbox`] (cached results), and then the hub. The inner ones use the
//! servers' own names, so a renamed tool cannot bypass them. Each endpoint has layers of its own; the hub is shared.

mod compile;
mod views;

use std::collections::BTreeMap;
use std::sync::Arc;

use consort_agent::RunObserver;
use consort_agent::sub_agent::{AgentRegistry, AgentToolbox, ServerAgentToolbox};
use consort_core::{Caller, Entry, Problem, ServerId, Toolbox};
use consort_models::Model;
use consort_shape::exposure::ExposureSpec;
use consort_shape::pin::PinLock;
use consort_shape::policy::{Policy, PolicyDecision, PolicyQuestion};
use consort_shape::transform::Transform;
use consort_shape::{
    CacheRule, CacheToolbox, Exposure, ExposureMode, ExposureSettings, ExposureToolbox,
    OtherApprover, PinToolbox, PolicySettings, PolicyToolbox, ResultLimits, SharedApprovals,
    TransformSet, TransformToolbox,
};

use crate::config::{Config, LimitSettings, ProfileConfig, ServerConfig};
use crate::models::{ModelError, Models};
use compile::{about, compiled, policy, shape};

/// The layers described by a config.
#[derive(Clone, Default)]
pub struct Shaping {
    /// Selection of tools of each server.
    servers: TransformSet,
    /// The view without a profile.
    whole: View,
    profiles: BTreeMap<String, View>,
    cache: Vec<CacheRule>,
    lock: Option<Arc<PinLock>>,
    approved: Arc<SharedApprovals>,
    elsewhere: OtherApprover,
    models: Option<Arc<Models>>,
    agents: Vec<(String, String)>,
    roster: Arc<AgentRegistry>,
    observer: Option<Arc<dyn RunObserver>>,
    limits: Arc<LimitSettings>,
}

/// The settings of one endpoint.
#[derive(Clone, Default)]
struct View {
    /// The name of the profile, if it is one.
    profile: Option<String>,
    shape: TransformSet,
    exposing: ExposureSettings,
    policy: Policy,
}

/// Wraps a toolbox between its shape and its guard, given the name of the endpoint: used to record calls.
pub type Wrap<'a> = &'a dyn Fn(Arc<dyn Toolbox>, &str) -> Arc<dyn Toolbox>;

/// Wraps nothing.
pub fn unwrapped(toolbox: Arc<dyn Toolbox>, _front: &str) -> Arc<dyn Toolbox> {
    toolbox
}

impl Shaping {
    /// Builds the layers of a config. Its errors were reported when it was read.
    pub fn of(config: &Config) -> Self {
        let options = &config.options;
        let limits = Arc::new(options.limits.settings());
        let compile = |spec: &ExposureSpec, about: &BTreeMap<ServerId, String>| {
            let exposing = spec.compile(about).ok()?;
            Some(ExposureSettings { limits: limits.exposure.clone(), ..exposing })
        };
        let servers: Vec<_> = config.servers.iter().flat_map(ServerConfig::to_transforms).collect();
        let about: BTreeMap<ServerId, String> =
            config.servers.iter().map(|server| (server.name.clone(), about(server))).collect();
        let transforms: Vec<_> =
            servers.iter().cloned().chain(compiled(&options.transforms)).collect();
        let exposing = options.exposure.as_ref().and_then(|spec| compile(spec, &about));
        let whole = View {
            profile: None,
            shape: TransformSet { servers: None, transforms },
            exposing: exposing.unwrap_or_else(|| ExposureSettings {
                limits: limits.exposure.clone(),
                ..ExposureSettings::default()
            }),
            policy: policy(options, None),
        };
        let profile = |(name, profile): (&String, &ProfileConfig)| {
            let exposing = profile.exposure.as_ref().and_then(|spec| compile(spec, &about));
            let view = View {
                profile: Some(name.clone()),
                shape: shape(&whole.shape.transforms, profile),
                exposing: exposing.unwrap_or_else(|| whole.exposing.clone()),
                policy: policy(options, profile.policy.as_ref()),
            };
            (name.clone(), view)
        };
        let profiles = options.profiles.iter().map(profile).collect();
        let cache = options.cache.iter().filter_map(|spec| spec.compile().ok()).collect();
        let servers = TransformSet { servers: None, transforms: servers };
        let models = Some(Arc::new(Models::of(Some(config))));
        Self { servers, whole, profiles, cache, models, limits, ..Self::default() }
    }

    /// Denies all tools that are not read-only.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        for view in std::iter::once(&mut self.whole).chain(self.profiles.values_mut()) {
            view.policy = std::mem::take(&mut view.policy).read_only();
        }
        self
    }

    /// Enforces a lock.
    #[must_use]
    pub fn locked(mut self, lock: Option<Arc<PinLock>>) -> Self {
        self.lock = lock;
        self
    }

    /// Adds agents of these names and descriptions to everything; they are put on the roster once they are built.
    #[must_use]
    pub fn with_agents(
        mut self,
        agents: Vec<(String, String)>,
        roster: Arc<AgentRegistry>,
    ) -> Self {
        self.agents = agents;
        self.roster = roster;
        self
    }

    /// Adds an observer of the runs behind exposures that need a model.
    #[must_use]
    pub fn with_observer(mut self, observer: Arc<dyn RunObserver>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// The models of the config, if there is one.
    pub fn models(&self) -> Option<&Arc<Models>> {
        self.models.as_ref()
    }

    /// Returns the problems of exposures that need a model.
    pub fn problems(&self) -> Vec<Problem> {
        let views = std::iter::once(&self.whole).chain(self.profiles.values());
        let wrong = views.filter_map(|view| {
            let error = self.agent_of(view)?.err()?;
            let place = view.profile.as_ref().map(|name| format!("profiles.{name}."));
            let place = place.unwrap_or_default();
            let message = format!("`{place}exposure`: {error}; every tool is shown instead");
            let problem = Problem::error(message);
            Some(error.hint().into_iter().fold(problem, Problem::hint))
        });
        wrong.collect()
    }

    /// The model of the agents that represent servers, if the exposure uses them.
    fn agent_of(&self, view: &View) -> Option<Result<Model, ModelError>> {
        let id = view.exposing.agent.as_ref()?;
        Some(self.models.as_ref()?.model(id))
    }

    /// Returns true if a lock is enforced.
    pub fn is_locked(&self) -> bool {
        self.lock.is_some()
    }

    /// The enforced lock.
    pub fn lock(&self) -> Option<&Arc<PinLock>> {
        self.lock.as_ref()
    }

    /// Sets the stored approvals.
    #[must_use]
    pub fn approved(mut self, approved: Arc<SharedApprovals>) -> Self {
        self.approved = approved;
        self
    }

    /// Returns the approvals, stored and new.
    pub fn approvals(&self) -> Arc<SharedApprovals> {
        Arc::clone(&self.approved)
    }

    /// Sets the check for somebody other than the caller who can be asked for approval.
    #[must_use]
    pub fn elsewhere(mut self, elsewhere: OtherApprover) -> Self {
        self.elsewhere = elsewhere;
        self
    }

    /// Replaces everything by one profile, also the other profiles and the endpoints of servers; `None` if there is no
    /// profile of that name.
    pub fn narrowed(mut self, profile: &str) -> Option<Self> {
        self.whole = self.profiles.remove(profile)?;
        self.servers = self.whole.shape.clone();
        self.profiles.clear();
        Some(self)
    }

    /// Builds the layers over a hub.
    pub fn over<'a>(&'a self, hub: Arc<dyn Toolbox>, wrap: Wrap<'a>) -> Layers<'a> {
        let mut base = hub;
        if !self.cache.is_empty() {
            base = Arc::new(
                CacheToolbox::new(base, self.cache.clone()).with_limits(self.limits.results),
            );
        }
        if let Some(lock) = &self.lock {
            base = Arc::new(PinToolbox::new(base, Arc::clone(lock)));
        }
        let views = std::iter::once(&self.whole).chain(self.profiles.values());
        let mut exposings = views.map(|view| &view.exposing);
        if !self.agents.is_empty() || exposings.any(|exposing| exposing.agent.is_some()) {
            let agents = self.agents.iter().map(|(name, about)| (name.as_str(), about.as_str()));
            base = Arc::new(AgentToolbox::new(base, agents, Arc::clone(&self.roster)));
        }
        Layers { shaping: self, base, wrap }
    }

    /// The limits of the config.
    pub fn limits(&self) -> &LimitSettings {
        &self.limits
    }

    /// The names of all profiles.
    pub fn profiles(&self) -> impl Iterator<Item = &str> {
        self.profiles.keys().map(String::as_str)
    }

    /// Returns the transforms, of everything or of a profile.
    pub fn transforms(&self, profile: Option<&str>) -> &[Arc<dyn Transform>] {
        self.view(profile).map_or(&[], |view| &view.shape.transforms)
    }

    /// Returns the decision of the policy on a tool, before its arguments are known; `None` if the policy allows
    /// everything.
    pub fn decision(&self, caller: &Caller, entry: &Entry) -> Option<String> {
        self.decided(caller, entry).map(|decision| decision.explain())
    }

    /// Returns true if the policy lets a caller see a tool.
    pub fn shows(&self, caller: &Caller, entry: &Entry) -> bool {
        self.decided(caller, entry).is_none_or(|decision| decision.shows())
    }

    fn decided(&self, caller: &Caller, entry: &Entry) -> Option<PolicyDecision> {
        if self.whole.policy.is_open() {
            return None;
        }
        let question = PolicyQuestion {
            caller,
            profile: self.whole.profile.as_deref(),
            server: entry.route.server.as_str(),
            tool: &entry.route.name,
            annotations: entry.tool().annotations(),
            arguments: None,
        };
        Some(self.whole.policy.decide(&question))
    }

    /// Warnings for rules of the policy that match none of these tools, each given as server and name.
    pub fn idle_rules(&self, tools: &[(&str, &str)]) -> Vec<Problem> {
        let idle = self.whole.policy.idle_patterns(tools).into_iter();
        let told = |pattern: String| Problem::warning(format!("policy: {pattern} fits no tool"));
        idle.map(told).collect()
    }

    fn view(&self, profile: Option<&str>) -> Option<&View> {
        match profile {
            None => Some(&self.whole),
            Some(name) => self.profiles.get(name),
        }
    }
}

impl std::fmt::Debug for Shaping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shaping").field("profiles", &self.profiles.keys()).finish_non_exhaustive()
    }
}

/// The layers over a hub.
pub struct Layers<'a> {
    shaping: &'a Shaping,
    base: Arc<dyn Toolbox>,
    wrap: Wrap<'a>,
}

impl std::fmt::Debug for Layers<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.shaping.fmt(f)
    }
}

impl Layers<'_> {
    /// Every tool, of everything or of a profile; `None` if the profile does not exist.
    pub fn tools(&self, profile: Option<&str>) -> Option<Arc<dyn Toolbox>> {
        let view = self.shaping.view(profile)?;
        let front = view.profile.as_deref().unwrap_or("mcp");
        let limits = self.shaping.limits.results;
        Some(shaped((self.wrap)(self.guarded(view), front), view.shape.clone(), limits))
    }

    /// Returns the tools exposed to models.
    pub fn shown(&self, profile: Option<&str>) -> Option<Arc<dyn Toolbox>> {
        let view = self.shaping.view(profile)?;
        Some(self.exposed(view, self.tools(profile)?))
    }

    fn exposed(&self, view: &View, tools: Arc<dyn Toolbox>) -> Arc<dyn Toolbox> {
        let exposing = view.exposing.clone();
        match (self.shaping.agent_of(view), exposing.mode) {
            (Some(Ok(model)), _) => {
                let agents =
                    ServerAgentToolbox::new(tools, model, exposing.direct, exposing.servers)
                        .with_limits(self.shaping.limits.server_agent(), self.shaping.limits.work);
                Arc::new(agents.with_observer(self.shaping.observer.clone()))
            }
            (_, ExposureMode::Fixed(Exposure::Individual)) => tools,
            _ => Arc::new(ExposureToolbox::new(tools, exposing)),
        }
    }

    /// Returns the tools exposed to models by another exposure.
    pub fn shown_as(&self, profile: Option<&str>, exposure: Exposure) -> Option<Arc<dyn Toolbox>> {
        let view = self.shaping.view(profile)?;
        let exposing =
            ExposureSettings { mode: ExposureMode::Fixed(exposure), ..view.exposing.clone() };
        Some(Arc::new(ExposureToolbox::new(self.tools(profile)?, exposing)))
    }

    /// Each server under its own names.
    pub fn servers(&self) -> Arc<dyn Toolbox> {
        let guarded = self.guarded(&self.shaping.whole);
        let (shape, limits) = (self.shaping.servers.clone(), self.shaping.limits.results);
        shaped((self.wrap)(guarded, "server"), shape, limits)
    }

    fn guarded(&self, view: &View) -> Arc<dyn Toolbox> {
        let base = Arc::clone(&self.base);
        if view.policy.is_open() {
            return base;
        }
        Arc::new(PolicyToolbox::new(
            base,
            PolicySettings {
                policy: view.policy.clone(),
                profile: view.profile.clone(),
                approvals: Arc::clone(&self.shaping.approved),
                limits: self.shaping.limits.approvals,
                other_approver: self.shaping.elsewhere.clone(),
            },
        ))
    }
}

fn shaped(
    toolbox: Arc<dyn Toolbox>,
    shape: TransformSet,
    limits: ResultLimits,
) -> Arc<dyn Toolbox> {
    if shape.servers.is_none() && shape.transforms.is_empty() {
        return toolbox;
    }
    Arc::new(TransformToolbox::new(toolbox, shape).with_limits(limits))
}
