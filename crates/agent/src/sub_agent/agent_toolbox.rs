//! A toolbox with agents in addition to its tools.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use consort_core::{
    Call, CallEvents, Caller, Catalog, CatalogChanges, CatalogEntry, CatalogRoute, Json,
    PrimitiveKind, RefusedTarget, RejectReason, ServerId, Target, ToolResult, Toolbox,
};
use consort_shape::CatalogMemo;
use parking_lot::RwLock;

use super::agent_call::{AgentCall, call_agent, definition};
use crate::agent::Agent;

/// Server name under which agents are listed.
pub const AGENTS: &str = "agents";

/// Returns the name of the tool that calls an agent, or the agent of a server.
pub fn tool_name(name: &str) -> String {
    format!("ask_{}", name.replace('-', "_"))
}

/// The available agents, by the names of their tools. They are registered when they are created, which is later than
/// the toolbox that lists them: it may be among the tools they use.
#[derive(Default)]
pub struct AgentRegistry(RwLock<BTreeMap<String, Agent>>);

impl fmt::Debug for AgentRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let agents = self.0.read();
        f.debug_tuple("AgentRegistry").field(&agents.keys()).finish()
    }
}

impl AgentRegistry {
    /// Replaces the agents. Active runs are not affected.
    pub fn set(&self, agents: impl IntoIterator<Item = Agent>) {
        let named = agents.into_iter().map(|agent| (tool_name(&agent.settings.name), agent));
        *self.0.write() = named.collect();
    }

    fn get(&self, tool: &str) -> Option<Agent> {
        self.0.read().get(tool).cloned()
    }
}

/// A toolbox with agents in addition to its tools, each a tool `ask_NAME` of the server [`AGENTS`].
pub struct AgentToolbox {
    inner: Arc<dyn Toolbox>,
    server: ServerId,
    entries: Vec<CatalogEntry>,
    registry: Arc<AgentRegistry>,
    catalogs: CatalogMemo<Arc<Catalog>>,
}

impl fmt::Debug for AgentToolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentToolbox").field("roster", &self.registry).finish_non_exhaustive()
    }
}

impl AgentToolbox {
    /// Creates a toolbox with agents of these names and descriptions, which are or will be in the roster.
    pub fn new<'a>(
        inner: Arc<dyn Toolbox>,
        agents: impl IntoIterator<Item = (&'a str, &'a str)>,
        registry: Arc<AgentRegistry>,
    ) -> Self {
        let server = ServerId::derive(AGENTS);
        let entry = |(agent, description): (&str, &str)| {
            let name = tool_name(agent);
            let definition = definition(&name, description).definition().clone();
            let route = CatalogRoute { server: server.clone(), name: name.clone() };
            CatalogEntry { route, name, definition }
        };
        let entries = agents.into_iter().map(entry).collect();
        Self { inner, server, entries, registry, catalogs: CatalogMemo::default() }
    }

    fn catalog_with_agents(&self, catalog: &Catalog) -> Arc<Catalog> {
        let mut entries = catalog.tools.entries().to_vec();
        let place = entries.iter().position(|entry| entry.route.server > self.server);
        let place = place.unwrap_or(entries.len());
        entries.splice(place..place, self.entries.iter().cloned());
        let mut with = catalog.clone();
        with.set(PrimitiveKind::Tools, entries);
        Arc::new(with)
    }

    /// Returns the name of the tool, if it calls one of these agents.
    fn agent_name(&self, server: &ServerId, name: &str) -> Option<&str> {
        let mut names = self.entries.iter().map(|entry| entry.name.as_str());
        names.find(|known| *server == self.server && *known == name)
    }

    fn call_agent(&self, tool: &str, asking: AgentCall, arguments: &Json) -> CallEvents {
        match self.registry.get(tool) {
            Some(agent) => call_agent(agent, asking, arguments),
            None => {
                CallEvents::answered(ToolResult::error("this agent is not available at the moment"))
            }
        }
    }
}

impl Toolbox for AgentToolbox {
    fn catalog(&self, caller: &Caller) -> Arc<Catalog> {
        let listing = self
            .catalogs
            .get(self.inner.catalog(caller), |catalog| self.catalog_with_agents(catalog));
        Arc::clone(&listing)
    }

    fn call(&self, call: Call) -> CallEvents {
        let target = call.tool_target();
        match target.and_then(|Target { server, name }| self.agent_name(server, name)) {
            Some(tool) => self.call_agent(tool, AgentCall::from(&call), &call.arguments()),
            None => self.inner.call(call),
        }
    }

    fn inner(&self) -> Option<&dyn Toolbox> {
        Some(&*self.inner)
    }

    fn changes(&self) -> CatalogChanges {
        self.inner.changes()
    }

    fn withheld(
        &self,
        caller: &Caller,
        kind: PrimitiveKind,
        target: &RefusedTarget,
    ) -> Option<(ServerId, RejectReason)> {
        self.inner.withheld(caller, kind, target)
    }
}
