//! Views of the offered tools: by an exposure, or through one more transform.

use std::collections::BTreeSet;
use std::sync::Arc;

use consort_core::{Caller, ServerId, Toolbox};
use consort_shape::transform::Transform;
use consort_shape::{Exposure, TransformSet};

use super::{Layers, shaped};

impl Layers<'_> {
    /// Returns the tools exposed to models, by the exposure of the config or by another one.
    pub fn view(
        &self,
        profile: Option<&str>,
        exposure: Option<Exposure>,
    ) -> Option<Arc<dyn Toolbox>> {
        match exposure {
            None => self.shown(profile),
            Some(exposure) => self.shown_as(profile, exposure),
        }
    }

    /// Returns the tools exposed to models after one more transform.
    pub fn shown_through(
        &self,
        profile: Option<&str>,
        transform: Arc<dyn Transform>,
    ) -> Option<Arc<dyn Toolbox>> {
        let view = self.shaping.view(profile)?;
        let shape = TransformSet { servers: None, transforms: vec![transform] };
        Some(self.exposed(view, shaped(self.tools(profile)?, shape, self.shaping.limits.results)))
    }

    /// The tools after one more transform, before the exposure.
    pub fn tools_through(
        &self,
        profile: Option<&str>,
        transform: Arc<dyn Transform>,
    ) -> Option<Arc<dyn Toolbox>> {
        let shape = TransformSet { servers: None, transforms: vec![transform] };
        Some(shaped(self.tools(profile)?, shape, self.shaping.limits.results))
    }

    /// The names of all configured servers.
    pub fn reserved(&self) -> Arc<BTreeSet<ServerId>> {
        Arc::clone(self.base.catalog(&Caller::owner()).reserved())
    }
}
