//! A toolbox with agents in addition to its tools.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use consort_core::{
    Call, Caller, Catalog, Changes, Entry, Events, Json, RefusedTarget, RejectReason, Route,
    ServerId, ShelfKind, Target, ToolResult, Toolbox,
};
use consort_shape::CatalogMemo;

use super::ask::{Asking, ask, definition};
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
pub struct Roster(RwLock<BTreeMap<String, Agent>>);

impl fmt::Debug for Roster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let agents = self.0.read().unwrap_or_else(PoisonError::into_inner);
        f.debug_tuple("Roster").field(&agents.keys()).finish()
    }
}

impl Roster {
    /// Replaces the agents. Active runs are not affected.
    pub fn set(&self, agents: impl IntoIterator<Item = Agent>) {
        let named = agents.into_iter().map(|agent| (tool_name(&agent.settings.name), agent));
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = named.collect();
    }

    fn get(&self, tool: &str) -> Option<Agent> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(tool).cloned()
    }
}

/// A toolbox with agents in addition to its tools, each a tool `ask_NAME` of the server [`AGENTS`].
pub struct WithAgents {
    inner: Arc<dyn Toolbox>,
    server: ServerId,
    entries: Vec<Entry>,
    roster: Arc<Roster>,
    made: CatalogMemo<Arc<Catalog>>,
}

impl fmt::Debug for WithAgents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WithAgents").field("roster", &self.roster).finish_non_exhaustive()
    }
}

impl WithAgents {
    /// Creates a toolbox with agents of these names and descriptions, which are or will be in the roster.
    pub fn new<'a>(
        inner: Arc<dyn Toolbox>,
        agents: impl IntoIterator<Item = (&'a str, &'a str)>,
        roster: Arc<Roster>,
    ) -> Self {
        let server = ServerId::derive(AGENTS);
        let entry = |(agent, description): (&str, &str)| {
            let name = tool_name(agent);
            let definition = definition(&name, description).definition().clone();
            let route = Route { server: server.clone(), name: name.clone() };
            Entry { route, name, definition }
        };
        let entries = agents.into_iter().map(entry).collect();
        Self { inner, server, entries, roster, made: CatalogMemo::default() }
    }

    fn made(&self, catalog: &Catalog) -> Arc<Catalog> {
        let mut entries = catalog.tools.entries().to_vec();
        let place = entries.iter().position(|entry| entry.route.server > self.server);
        let place = place.unwrap_or(entries.len());
        entries.splice(place..place, self.entries.iter().cloned());
        let mut with = catalog.clone();
        with.set(ShelfKind::Tools, entries);
        Arc::new(with)
    }

    /// Returns the name of the tool, if it calls one of these agents.
    fn ours(&self, server: &ServerId, name: &str) -> Option<&str> {
        let mut names = self.entries.iter().map(|entry| entry.name.as_str());
        names.find(|known| *server == self.server && *known == name)
    }

    fn ask(&self, tool: &str, asking: Asking, arguments: &Json) -> Events {
        match self.roster.get(tool) {
            Some(agent) => ask(agent, asking, arguments),
            None => Events::answered(ToolResult::error("this agent is not there at the moment")),
        }
    }
}

impl Toolbox for WithAgents {
    fn catalog(&self, caller: &Caller) -> Arc<Catalog> {
        let made = self.made.get(self.inner.catalog(caller), |catalog| self.made(catalog));
        Arc::clone(&made)
    }

    fn call(&self, call: Call) -> Events {
        let target = call.tool_target();
        match target.and_then(|Target { server, name }| self.ours(server, name)) {
            Some(tool) => self.ask(tool, Asking::from(&call), &call.arguments()),
            None => self.inner.call(call),
        }
    }

    fn inner(&self) -> Option<&dyn Toolbox> {
        Some(&*self.inner)
    }

    fn changes(&self) -> Changes {
        self.inner.changes()
    }

    fn withheld(
        &self,
        caller: &Caller,
        kind: ShelfKind,
        target: &RefusedTarget,
    ) -> Option<(ServerId, RejectReason)> {
        self.inner.withheld(caller, kind, target)
    }
}
