//! Transforms, policies and descriptions, compiled from a config.

use std::sync::Arc;

use consort_core::{Pattern, ServerId};
use consort_shape::TransformSet;
use consort_shape::policy::{Policy, PolicySpec};
use consort_shape::transform::{SelectTools, Transform, TransformSpec};

use crate::config::{Options, ProfileConfig, ServerConfig, Transport, merged};

pub(super) fn shape(transforms: &[Arc<dyn Transform>], profile: &ProfileConfig) -> TransformSet {
    let mut transforms = transforms.to_vec();
    if !profile.tools.is_empty() {
        transforms.push(Arc::new(SelectTools(profile.tools.iter().map(Pattern::new).collect())));
    }
    transforms.extend(compiled(&profile.transforms));
    let servers = profile.servers.iter().map(|server| ServerId::derive(server)).collect();
    TransformSet { servers: (!profile.servers.is_empty()).then_some(servers), transforms }
}

pub(super) fn compiled(specs: &[TransformSpec]) -> Vec<Arc<dyn Transform>> {
    specs.iter().flat_map(|spec| spec.compile().unwrap_or_default()).collect()
}

/// Combines the common policy with the rules of a profile, which come first. An invalid policy denies everything.
pub(super) fn policy(options: &Options, profile: Option<&PolicySpec>) -> Policy {
    let closed = || {
        let spec = PolicySpec { default: Some("deny".to_owned()), ..PolicySpec::default() };
        Policy::compile(&spec).expect("it has no rules")
    };
    Policy::compile(&merged(options.policy.as_ref(), profile)).unwrap_or_else(|_| closed())
}

/// Returns the description of the one tool that represents a server.
pub(super) fn about(server: &ServerConfig) -> String {
    let transport = match server.transport {
        Transport::Stdio(_) => "stdio",
        Transport::Http(_) => "http",
        Transport::Sse(_) => "sse",
    };
    let usual = || {
        let name = &server.name;
        format!("MCP server '{name}' ({transport}) - provides access to multiple tools")
    };
    server.description.clone().unwrap_or_else(usual)
}
