//! Building toolboxes from a config, one for each endpoint.
//!
//! A call passes these layers, from the outside in: [`ExposureToolbox`](consort_shape::ExposureToolbox) (exposure to
//! models), [`TransformToolbox`](consort_shape::TransformToolbox) (names, descriptions, arguments, results), a recorder if
//! there is one, [`PolicyToolbox`](consort_shape::PolicyToolbox) (policy), [`AgentToolbox`] (agents as tools),
//! [`PinToolbox`] (lock), [`CacheToolbox`] (cached results), and then the hub. The inner ones use the servers' own names,
//! so a renamed tool cannot bypass them. Each endpoint has layers of its own; the hub is shared.

mod layered;

use std::collections::BTreeMap;
use std::sync::Arc;

use consort_agent::RunObserver;
use consort_agent::sub_agent::{AgentRegistry, AgentToolbox};
use consort_config::{
    Config, ConsortOptions, LimitSettings, ProfileConfig, ServerConfig, merge_policies,
};
use consort_core::{Caller, CatalogEntry, NamePattern, Problem, ServerId, Toolbox};
use consort_models::Model;
use consort_shape::exposure::ExposureSpec;
use consort_shape::pin::PinLock;
use consort_shape::policy::{Policy, PolicyDecision, PolicySpec};
use consort_shape::transform::{SelectTools, Transform, TransformSpec};
use consort_shape::{
    CacheRule, CacheToolbox, ExposureSettings, OtherApprover, PinToolbox, SearchSpec,
    SharedApprovals, TransformSet,
};

use crate::models::{ModelError, ModelRegistry};
pub use layered::LayeredToolboxes;

/// The layers described by a config.
#[derive(Clone, Default)]
pub struct ToolboxLayers {
    /// Selection of tools of each server.
    servers: TransformSet,
    /// The view without a profile.
    whole: EndpointLayers,
    profiles: BTreeMap<String, EndpointLayers>,
    cache: Vec<CacheRule>,
    lock: Option<Arc<PinLock>>,
    approved: Arc<SharedApprovals>,
    elsewhere: OtherApprover,
    models: Option<Arc<ModelRegistry>>,
    agents: Vec<(String, String)>,
    roster: Arc<AgentRegistry>,
    observer: Option<Arc<dyn RunObserver>>,
    limits: Arc<LimitSettings>,
}

/// The settings of one endpoint.
#[derive(Clone, Default)]
struct EndpointLayers {
    /// The name of the profile, if it is one.
    profile: Option<String>,
    shape: TransformSet,
    exposing: ExposureSettings,
    policy: Policy,
}

/// Wraps a toolbox between its shape and its guard, given the name of the endpoint: used to record calls.
pub type ToolboxWrapper<'a> = &'a dyn Fn(Arc<dyn Toolbox>, &str) -> Arc<dyn Toolbox>;

/// Wraps nothing.
pub fn no_wrapper(toolbox: Arc<dyn Toolbox>, _front: &str) -> Arc<dyn Toolbox> {
    toolbox
}

impl ToolboxLayers {
    /// Builds the layers of a config. Its errors were reported when it was read.
    pub fn from_config(config: &Config) -> Self {
        let options = &config.options;
        let limits = Arc::new(options.limits.settings());
        let synonyms = SearchSpec::synonyms_of(options.search.as_ref());
        let compile = |spec: &ExposureSpec, about: &BTreeMap<ServerId, String>| {
            let exposing = spec.compile(about).ok()?;
            let (limits, synonyms) = (limits.exposure.clone(), Arc::clone(&synonyms));
            Some(ExposureSettings { limits, synonyms, ..exposing })
        };
        let servers: Vec<_> = config.servers.iter().flat_map(ServerConfig::to_transforms).collect();
        let about: BTreeMap<ServerId, String> = config
            .servers
            .iter()
            .map(|server| (server.name.clone(), server_description(server)))
            .collect();
        let transforms: Vec<_> =
            servers.iter().cloned().chain(compile_transforms(&options.transforms)).collect();
        let exposing = options.exposure.as_ref().and_then(|spec| compile(spec, &about));
        let whole = EndpointLayers {
            profile: None,
            shape: TransformSet { servers: None, transforms },
            exposing: exposing.unwrap_or_else(|| ExposureSettings {
                limits: limits.exposure.clone(),
                synonyms: Arc::clone(&synonyms),
                ..ExposureSettings::default()
            }),
            policy: policy(options, None),
        };
        let profile = |(name, profile): (&String, &ProfileConfig)| {
            let exposing = profile.exposure.as_ref().and_then(|spec| compile(spec, &about));
            let view = EndpointLayers {
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
        let models = Some(Arc::new(ModelRegistry::from_config(Some(config))));
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
    pub fn with_lock(mut self, lock: Option<Arc<PinLock>>) -> Self {
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
    pub fn models(&self) -> Option<&Arc<ModelRegistry>> {
        self.models.as_ref()
    }

    /// Returns the problems of exposures that need a model.
    pub fn problems(&self) -> Vec<Problem> {
        let views = std::iter::once(&self.whole).chain(self.profiles.values());
        let wrong = views.filter_map(|view| {
            let error = self.agent_of(view)?.err()?;
            let place = view.profile.as_ref().map(|name| format!("profiles.{name}."));
            let place = place.unwrap_or_default();
            let message = format!("`{place}exposure`: {error}; using `individual`");
            let problem = Problem::error(message);
            Some(error.hint().into_iter().fold(problem, Problem::hint))
        });
        wrong.collect()
    }

    /// The model of the agents that represent servers, if the exposure uses them.
    fn agent_of(&self, view: &EndpointLayers) -> Option<Result<Model, ModelError>> {
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
    pub fn with_approvals(mut self, approved: Arc<SharedApprovals>) -> Self {
        self.approved = approved;
        self
    }

    /// Returns the approvals, stored and new.
    pub fn approvals(&self) -> Arc<SharedApprovals> {
        Arc::clone(&self.approved)
    }

    /// Sets the check for somebody other than the caller who can be asked for approval.
    #[must_use]
    pub fn with_other_approver(mut self, elsewhere: OtherApprover) -> Self {
        self.elsewhere = elsewhere;
        self
    }

    /// Replaces everything by one profile, also the other profiles and the endpoints of servers; `None` if there is no
    /// profile of that name.
    pub fn for_profile(mut self, profile: &str) -> Option<Self> {
        self.whole = self.profiles.remove(profile)?;
        self.servers = self.whole.shape.clone();
        self.profiles.clear();
        Some(self)
    }

    /// Builds the layers over a hub.
    pub fn over<'a>(
        &'a self,
        hub: Arc<dyn Toolbox>,
        wrap: ToolboxWrapper<'a>,
    ) -> LayeredToolboxes<'a> {
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
        LayeredToolboxes { layers: self, base, wrap }
    }

    /// The policy of the endpoint of everything.
    pub fn policy(&self) -> &Policy {
        &self.whole.policy
    }

    /// The profile that takes the place of everything, if one does.
    pub fn only_profile(&self) -> Option<&str> {
        self.whole.profile.as_deref()
    }

    /// The limits of the config.
    pub fn limits(&self) -> &Arc<LimitSettings> {
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
    pub fn decision(&self, caller: &Caller, entry: &CatalogEntry) -> Option<String> {
        self.decide(caller, entry).map(|decision| decision.explain())
    }

    /// Returns true if the policy lets a caller see a tool.
    pub fn is_visible(&self, caller: &Caller, entry: &CatalogEntry) -> bool {
        self.decide(caller, entry).is_none_or(|decision| decision.shows())
    }

    fn decide(&self, caller: &Caller, entry: &CatalogEntry) -> Option<PolicyDecision> {
        self.whole.policy.decide_on_entry(caller, self.whole.profile.as_deref(), entry)
    }

    /// Warnings for rules of the policy that match none of these tools, each given as server and name.
    pub fn unused_rules(&self, tools: &[(&str, &str)]) -> Vec<Problem> {
        let idle = self.whole.policy.idle_patterns(tools).into_iter();
        let told = |pattern: String| Problem::warning(format!("policy: {pattern} matches no tool"));
        idle.map(told).collect()
    }

    fn view(&self, profile: Option<&str>) -> Option<&EndpointLayers> {
        match profile {
            None => Some(&self.whole),
            Some(name) => self.profiles.get(name),
        }
    }
}

impl std::fmt::Debug for ToolboxLayers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shaping").field("profiles", &self.profiles.keys()).finish_non_exhaustive()
    }
}

fn shape(transforms: &[Arc<dyn Transform>], profile: &ProfileConfig) -> TransformSet {
    let mut transforms = transforms.to_vec();
    if !profile.tools.is_empty() {
        transforms
            .push(Arc::new(SelectTools(profile.tools.iter().map(NamePattern::new).collect())));
    }
    transforms.extend(compile_transforms(&profile.transforms));
    let servers = profile.servers.iter().map(|server| ServerId::derive(server)).collect();
    TransformSet { servers: (!profile.servers.is_empty()).then_some(servers), transforms }
}

fn compile_transforms(specs: &[TransformSpec]) -> Vec<Arc<dyn Transform>> {
    specs.iter().flat_map(|spec| spec.compile().unwrap_or_default()).collect()
}

/// Combines the common policy with the rules of a profile, which come first. An invalid policy denies everything.
fn policy(options: &ConsortOptions, profile: Option<&PolicySpec>) -> Policy {
    let closed = || {
        let spec = PolicySpec { default: Some("deny".to_owned()), ..PolicySpec::default() };
        Policy::compile(&spec).expect("it has no rules")
    };
    Policy::compile(&merge_policies(options.policy.as_ref(), profile)).unwrap_or_else(|_| closed())
}

/// Returns the description of the one tool that represents a server.
fn server_description(server: &ServerConfig) -> String {
    let transport = server.transport.name();
    let usual = || {
        let name = &server.name;
        format!("MCP server '{name}' ({transport}) - provides access to multiple tools")
    };
    server.options.description.clone().unwrap_or_else(usual)
}
