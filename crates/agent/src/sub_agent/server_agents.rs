//! One agent per server: a model sees one tool of each server, behind which another model uses the server's tools.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use consort_core::{
    Call, CallEvents, Caller, Catalog, CatalogChanges, CatalogEntry, CatalogRoute, NamePattern,
    PrimitiveKind, RefusedCall, ServerId, Toolbox,
};
use consort_shape::{CatalogMemo, TransformSet, TransformToolbox};

use super::agent_call::{AgentCall, call_agent, definition};
use super::agent_toolbox::{AGENTS, tool_name};
use crate::agent::Agent;
use crate::limits::{RunLimits, WorkLimits};
use crate::observer::RunObserver;
use crate::settings::AgentSettings;
use consort_models::Model;

/// Maximum tools that a description names.
const MAX_NAMED: usize = 20;

/// A toolbox that lists one tool `ask_SERVER` for each server.
pub struct ServerAgentToolbox {
    inner: Arc<dyn Toolbox>,
    model: Model,
    /// Tools that are listed directly.
    direct: Vec<NamePattern>,
    /// Description of each server.
    about: BTreeMap<ServerId, String>,
    limits: RunLimits,
    work: WorkLimits,
    observer: Option<Arc<dyn RunObserver>>,
    listings: CatalogMemo<AgentListing>,
}

/// Listing derived from a catalog.
struct AgentListing {
    catalog: Arc<Catalog>,
    /// The server that a listed tool stands for, by index.
    servers: Vec<Option<ServerId>>,
}

impl fmt::Debug for ServerAgentToolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerAgentToolbox").field("model", &self.model).finish_non_exhaustive()
    }
}

impl ServerAgentToolbox {
    /// Creates a toolbox behind agents of this model, except for the tools that are listed directly.
    pub fn new(
        inner: Arc<dyn Toolbox>,
        model: Model,
        direct: Vec<NamePattern>,
        about: BTreeMap<ServerId, String>,
    ) -> Self {
        let (limits, work) = (Self::default_limits(), WorkLimits::default());
        Self {
            inner,
            model,
            direct,
            about,
            limits,
            work,
            observer: None,
            listings: CatalogMemo::default(),
        }
    }

    /// Returns the default limits of such an agent's runs.
    pub fn default_limits() -> RunLimits {
        RunLimits { turns: 20, calls: 60, ..RunLimits::default() }
    }

    /// Sets the limits of the agents' runs.
    #[must_use]
    pub fn with_limits(mut self, limits: RunLimits, work: WorkLimits) -> Self {
        (self.limits, self.work) = (limits, work);
        self
    }

    /// Sets the observer of the agents' runs.
    #[must_use]
    pub fn with_observer(mut self, observer: Option<Arc<dyn RunObserver>>) -> Self {
        self.observer = observer;
        self
    }

    fn build_listing(&self, catalog: &Catalog) -> AgentListing {
        let is_direct = |entry: &CatalogEntry| {
            let fits = |name: &str| {
                let fits =
                    |pattern: &NamePattern| pattern.matches(entry.route.server.as_str(), name);
                self.direct.iter().any(fits)
            };
            entry.route.server.as_str() == AGENTS || fits(&entry.name) || fits(&entry.route.name)
        };
        let mut tools: Vec<(CatalogEntry, Option<ServerId>)> = Vec::new();
        let mut hidden: BTreeMap<&ServerId, Vec<&str>> = BTreeMap::new();
        for entry in catalog.tools.entries() {
            if is_direct(entry) {
                tools.push((entry.clone(), None));
            } else {
                hidden.entry(&entry.route.server).or_default().push(&entry.name);
            }
        }
        for (server, names) in hidden {
            let name = tool_name(server.as_str());
            let description = self.description(server, &names);
            let definition = definition(&name, &description).definition().clone();
            let route = CatalogRoute { server: server.clone(), name: name.clone() };
            tools.push((CatalogEntry { route, name, definition }, Some(server.clone())));
        }
        let mut shown = catalog.clone();
        shown.set(PrimitiveKind::Tools, tools.iter().map(|(entry, _)| entry.clone()).collect());
        let server = |entry: &CatalogEntry| {
            let found = tools.iter().find(|(tool, _)| tool == entry);
            found.and_then(|(_, server)| server.clone())
        };
        let servers = shown.tools.entries().iter().map(server).collect();
        AgentListing { catalog: Arc::new(shown), servers }
    }

    fn description(&self, server: &ServerId, names: &[&str]) -> String {
        let about = self.about.get(server).map(|about| format!("{about}\n\n")).unwrap_or_default();
        let more = names.len().saturating_sub(MAX_NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let named = names.iter().take(MAX_NAMED).copied().collect::<Vec<_>>().join(", ");
        format!(
            "{about}Delegates a task to an agent with the tools of `{server}`; it returns text. Its tools: \
             {named}{more}."
        )
    }

    /// Returns the agent of a server.
    fn agent(&self, server: &ServerId, whole: &Catalog) -> Agent {
        let shape = TransformSet { servers: Some([server.clone()].into()), transforms: Vec::new() };
        let toolbox = Arc::new(TransformToolbox::new(Arc::clone(&self.inner), shape));
        let mut settings = AgentSettings::new(server.as_str());
        settings.limits = self.limits.clone();
        settings.work = self.work;
        settings.observer.clone_from(&self.observer);
        settings.instructions = format!(
            "You work for another assistant, which sees only your last message. Use the tools of the server \
             `{server}` to complete its task, and answer with everything it needs. You cannot ask \
             questions; if information is missing, say which."
        );
        let own = whole.abouts().get(server).and_then(|about| about.instructions.as_ref());
        if let Some(own) = own {
            settings.instructions.push_str("\n\nInstructions of the server:\n");
            settings.instructions.push_str(own);
        }
        Agent::new(self.model.clone(), toolbox, settings)
    }

    fn listing(&self, caller: &Caller) -> Arc<AgentListing> {
        self.listings.get(self.inner.catalog(caller), |catalog| self.build_listing(catalog))
    }
}

impl Toolbox for ServerAgentToolbox {
    fn catalog(&self, caller: &Caller) -> Arc<Catalog> {
        Arc::clone(&self.listing(caller).catalog)
    }

    fn call(&self, call: Call) -> CallEvents {
        let Some(target) = call.tool_target() else { return self.inner.call(call) };
        let listing = self.listing(&call.caller);
        match call.position(&listing.catalog).map(|at| &listing.servers[at]) {
            Ok(None) => self.inner.call(call),
            Ok(Some(server)) => {
                let agent = self.agent(server, &listing.catalog);
                call_agent(agent, AgentCall::from(&call), &call.arguments())
            }
            Err(error) => {
                self.inner.refused(&call.refused(Some(&target.server), &target.name));
                CallEvents::ended(Err(error))
            }
        }
    }

    fn inner(&self) -> Option<&dyn Toolbox> {
        Some(&*self.inner)
    }

    fn changes(&self) -> CatalogChanges {
        self.inner.changes()
    }

    fn refused(&self, call: &RefusedCall) {
        self.inner.refused(call);
    }
}
