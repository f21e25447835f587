//! The servers that a resource opens, for the page of consent.

use std::collections::BTreeSet;

use consort_core::{Caller, PrimitiveKind, Toolbox};
use consort_gateway::ServedToolboxSet;
use consort_identity::{Resource, ResourceContents};
use parking_lot::RwLock;

/// The toolboxes in force, for the page of consent.
#[derive(Default)]
pub(in crate::command::serve) struct ServedResources(RwLock<Option<ServedToolboxSet>>);

impl ServedResources {
    pub(in crate::command::serve) fn set(&self, toolboxes: Option<ServedToolboxSet>) {
        *self.0.write() = toolboxes;
    }
}

impl ResourceContents for ServedResources {
    fn servers(&self, resource: &Resource, caller: &Caller) -> Vec<String> {
        let served = self.0.read();
        let Some(served) = &*served else { return Vec::new() };
        let only = |path: &str| {
            let name = path.strip_prefix("/servers/")?.strip_suffix("/mcp")?;
            Some(name.to_owned())
        };
        match resource {
            Resource::All => servers_of(&*served.servers, caller, None),
            Resource::OpenAi => Vec::new(),
            Resource::Endpoint(path) => match (path.strip_prefix("/mcp/"), only(path)) {
                (Some(profile), _) => served
                    .profiles
                    .get(profile)
                    .map(|profile| servers_of(&*profile.toolbox, caller, None))
                    .unwrap_or_default(),
                (None, Some(server)) => servers_of(&*served.servers, caller, Some(&server)),
                (None, None) => servers_of(&*served.servers, caller, None),
            },
        }
    }
}

/// The servers with something that a caller may use.
fn servers_of(toolbox: &dyn Toolbox, caller: &Caller, only: Option<&str>) -> Vec<String> {
    let catalog = toolbox.catalog(caller);
    let kinds = PrimitiveKind::ALL.into_iter();
    let entries = kinds.flat_map(|kind| catalog.section(kind).entries());
    let entries = entries.filter(|entry| !catalog.is_local(&entry.route.server));
    let servers: BTreeSet<&str> = entries.map(|entry| entry.route.server.as_str()).collect();
    servers
        .into_iter()
        .filter(|server| only.is_none_or(|only| only == *server))
        .map(str::to_owned)
        .collect()
}
