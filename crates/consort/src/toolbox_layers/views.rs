//! Views of the offered tools: by an exposure, or through one more transform.

use std::collections::BTreeSet;
use std::sync::Arc;

use consort_core::{Caller, ServerId, Toolbox};
use consort_shape::transform::Transform;
use consort_shape::{Exposure, Shape};

use super::{LayeredToolboxes, transformed};

impl LayeredToolboxes<'_> {
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
    pub fn shown_through(
        &self,
        profile: Option<&str>,
        transform: Arc<dyn Transform>,
    ) -> Option<Arc<dyn Toolbox>> {
        let view = self.toolbox_layers.view(profile)?;
        let shape = Shape { servers: None, transforms: vec![transform] };
        Some(self.exposed(
            view,
            transformed(self.tools(profile)?, shape, self.toolbox_layers.limits.results),
        ))
    }

    /// The tools after one more transform, before the exposure.
    pub fn tools_through(
        &self,
        profile: Option<&str>,
        transform: Arc<dyn Transform>,
    ) -> Option<Arc<dyn Toolbox>> {
        let shape = Shape { servers: None, transforms: vec![transform] };
        Some(transformed(self.tools(profile)?, shape, self.toolbox_layers.limits.results))
    }

    /// The names of all configured servers.
    pub fn reserved(&self) -> Arc<BTreeSet<ServerId>> {
        Arc::clone(self.base.catalog(&Caller::owner()).reserved())
    }
}
