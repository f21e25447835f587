//! From config to toolboxes: what is on offer, where, and for whom.
//!
//! A call goes through the layers from the outside in: shaped as the config says, recorded if
//! somebody records, and then to the hub. Every address has layers of its own; the hub is one.

use std::collections::BTreeMap;
use std::sync::Arc;

use consort_core::{Pattern, ServerId, Toolbox};
use consort_shape::transform::{Select, Transform, TransformSpec};
use consort_shape::{Shape, Shaped};

use crate::config::{Config, Options, ProfileConfig};

/// What the config says about what is on offer.
#[derive(Clone, Default)]
pub struct Shaping {
    /// What of each server is on offer at all.
    servers: Vec<Arc<dyn Transform>>,
    transforms: Vec<Arc<dyn Transform>>,
    profiles: BTreeMap<String, Profile>,
}

#[derive(Clone)]
struct Profile {
    shape: Shape,
}

/// What is done to a toolbox between its shape and its servers, given the name of the front: records.
pub type Wrap<'a> = &'a dyn Fn(Arc<dyn Toolbox>, &str) -> Arc<dyn Toolbox>;

/// Nothing is done.
pub fn unwrapped(toolbox: Arc<dyn Toolbox>, _front: &str) -> Arc<dyn Toolbox> {
    toolbox
}

impl Shaping {
    /// What a config says. What is wrong in it was found when it was read.
    pub fn of(config: &Config) -> Self {
        let servers = config.servers.iter();
        let servers: Vec<_> =
            servers.flat_map(crate::config::ServerConfig::to_transforms).collect();
        let transforms = with(&servers, &config.options);
        let profiles = config.options.profiles.iter();
        let profiles = profiles
            .map(|(name, profile)| (name.clone(), Profile { shape: shape(&transforms, profile) }));
        Self { profiles: profiles.collect(), servers, transforms }
    }

    /// Everything.
    pub fn whole(&self, hub: Arc<dyn Toolbox>, wrap: Wrap<'_>) -> Arc<dyn Toolbox> {
        let shape = Shape { servers: None, transforms: self.transforms.clone() };
        shaped(wrap(hub, "mcp"), shape)
    }

    /// Each server under its own names.
    pub fn servers(&self, hub: Arc<dyn Toolbox>, wrap: Wrap<'_>) -> Arc<dyn Toolbox> {
        let shape = Shape { servers: None, transforms: self.servers.clone() };
        shaped(wrap(hub, "server"), shape)
    }

    /// What a profile offers, if there is one of that name.
    pub fn profile(
        &self,
        name: &str,
        hub: Arc<dyn Toolbox>,
        wrap: Wrap<'_>,
    ) -> Option<Arc<dyn Toolbox>> {
        let profile = self.profiles.get(name)?;
        Some(shaped(wrap(hub, name), profile.shape.clone()))
    }

    /// The names of all profiles.
    pub fn profiles(&self) -> impl Iterator<Item = &str> {
        self.profiles.keys().map(String::as_str)
    }

    /// What tools go through, everywhere or in a profile.
    pub fn transforms(&self, profile: Option<&str>) -> &[Arc<dyn Transform>] {
        let profile = profile.and_then(|name| self.profiles.get(name));
        profile.map_or(&self.transforms, |profile| &profile.shape.transforms)
    }
}

impl std::fmt::Debug for Shaping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shaping").field("profiles", &self.profiles.keys()).finish_non_exhaustive()
    }
}

fn shaped(toolbox: Arc<dyn Toolbox>, shape: Shape) -> Arc<dyn Toolbox> {
    if shape.servers.is_none() && shape.transforms.is_empty() {
        return toolbox;
    }
    Arc::new(Shaped::new(toolbox, shape))
}

/// What every tool goes through: its server's own, then everybody's.
fn with(servers: &[Arc<dyn Transform>], options: &Options) -> Vec<Arc<dyn Transform>> {
    servers.iter().cloned().chain(compiled(&options.transforms)).collect()
}

fn shape(transforms: &[Arc<dyn Transform>], profile: &ProfileConfig) -> Shape {
    let mut transforms = transforms.to_vec();
    if !profile.tools.is_empty() {
        transforms.push(Arc::new(Select(profile.tools.iter().map(Pattern::new).collect())));
    }
    transforms.extend(compiled(&profile.transforms));
    let servers = profile.servers.iter().map(|server| ServerId::derive(server)).collect();
    Shape { servers: (!profile.servers.is_empty()).then_some(servers), transforms }
}

fn compiled(specs: &[TransformSpec]) -> Vec<Arc<dyn Transform>> {
    specs.iter().flat_map(|spec| spec.compile().unwrap_or_default()).collect()
}
