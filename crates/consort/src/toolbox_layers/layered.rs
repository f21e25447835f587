//! Toolboxes of each endpoint, built over a hub.

use std::collections::BTreeSet;
use std::sync::Arc;

use consort_agent::sub_agent::ServerAgentToolbox;
use consort_core::{Caller, ServerId, Toolbox};
use consort_shape::transform::Transform;
use consort_shape::{
    Exposure, ExposureMode, ExposureSettings, ExposureToolbox, PolicySettings, PolicyToolbox,
    ResultLimits, TransformSet, TransformToolbox,
};

use super::{EndpointLayers, ToolboxLayers, ToolboxWrapper};

/// The layers over a hub.
pub struct LayeredToolboxes<'a> {
    pub(super) layers: &'a ToolboxLayers,
    pub(super) base: Arc<dyn Toolbox>,
    pub(super) wrap: ToolboxWrapper<'a>,
}

impl std::fmt::Debug for LayeredToolboxes<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.layers.fmt(f)
    }
}

impl LayeredToolboxes<'_> {
    /// Every tool, of everything or of a profile; `None` if the profile does not exist.
    pub fn tools(&self, profile: Option<&str>) -> Option<Arc<dyn Toolbox>> {
        let view = self.layers.view(profile)?;
        let endpoint = view.profile.as_deref().unwrap_or("mcp");
        let limits = self.layers.limits.results;
        Some(transformed((self.wrap)(self.guarded(view), endpoint), view.shape.clone(), limits))
    }

    /// Returns the tools exposed to models.
    pub fn exposed_tools(&self, profile: Option<&str>) -> Option<Arc<dyn Toolbox>> {
        let view = self.layers.view(profile)?;
        Some(self.exposed(view, self.tools(profile)?))
    }

    fn exposed(&self, view: &EndpointLayers, tools: Arc<dyn Toolbox>) -> Arc<dyn Toolbox> {
        let exposing = view.exposing.clone();
        match (self.layers.agent_of(view), exposing.mode) {
            (Some(Ok(model)), _) => {
                let agents =
                    ServerAgentToolbox::new(tools, model, exposing.direct, exposing.servers)
                        .with_limits(self.layers.limits.server_agent(), self.layers.limits.work);
                Arc::new(agents.with_observer(self.layers.observer.clone()))
            }
            (_, ExposureMode::Fixed(Exposure::Individual)) => tools,
            _ => Arc::new(ExposureToolbox::new(tools, exposing)),
        }
    }

    /// Returns the tools exposed to models by another exposure.
    pub fn tools_exposed_as(
        &self,
        profile: Option<&str>,
        exposure: Exposure,
    ) -> Option<Arc<dyn Toolbox>> {
        let view = self.layers.view(profile)?;
        let exposing =
            ExposureSettings { mode: ExposureMode::Fixed(exposure), ..view.exposing.clone() };
        Some(Arc::new(ExposureToolbox::new(self.tools(profile)?, exposing)))
    }

    /// Each server under its own names.
    pub fn servers(&self) -> Arc<dyn Toolbox> {
        let guarded = self.guarded(&self.layers.whole);
        let (shape, limits) = (self.layers.servers.clone(), self.layers.limits.results);
        transformed((self.wrap)(guarded, "server"), shape, limits)
    }

    fn guarded(&self, view: &EndpointLayers) -> Arc<dyn Toolbox> {
        let base = Arc::clone(&self.base);
        if view.policy.is_open() {
            return base;
        }
        Arc::new(PolicyToolbox::new(
            base,
            PolicySettings {
                policy: view.policy.clone(),
                profile: view.profile.clone(),
                approvals: Arc::clone(&self.layers.approved),
                limits: self.layers.limits.approvals,
                other_approver: self.layers.elsewhere.clone(),
            },
        ))
    }

    /// Returns the tools exposed to models, by the exposure of the config or by another one.
    pub fn view(
        &self,
        profile: Option<&str>,
        exposure: Option<Exposure>,
    ) -> Option<Arc<dyn Toolbox>> {
        match exposure {
            None => self.exposed_tools(profile),
            Some(exposure) => self.tools_exposed_as(profile, exposure),
        }
    }

    /// Returns the tools exposed to models after one more transform.
    pub fn exposed_through(
        &self,
        profile: Option<&str>,
        transform: Arc<dyn Transform>,
    ) -> Option<Arc<dyn Toolbox>> {
        let view = self.layers.view(profile)?;
        let shape = TransformSet { servers: None, transforms: vec![transform] };
        Some(
            self.exposed(
                view,
                transformed(self.tools(profile)?, shape, self.layers.limits.results),
            ),
        )
    }

    /// The tools after one more transform, before the exposure.
    pub fn tools_through(
        &self,
        profile: Option<&str>,
        transform: Arc<dyn Transform>,
    ) -> Option<Arc<dyn Toolbox>> {
        let shape = TransformSet { servers: None, transforms: vec![transform] };
        Some(transformed(self.tools(profile)?, shape, self.layers.limits.results))
    }

    /// The names of all configured servers.
    pub fn reserved(&self) -> Arc<BTreeSet<ServerId>> {
        Arc::clone(self.base.catalog(&Caller::owner()).reserved())
    }
}

fn transformed(
    toolbox: Arc<dyn Toolbox>,
    shape: TransformSet,
    limits: ResultLimits,
) -> Arc<dyn Toolbox> {
    if shape.servers.is_none() && shape.transforms.is_empty() {
        return toolbox;
    }
    Arc::new(TransformToolbox::new(toolbox, shape).with_limits(limits))
}
