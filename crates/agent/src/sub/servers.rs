//! One agent a server: of each server a model sees one tool, behind which another model uses the rest.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use consort_core::{
    CallError, Caller, Catalog, Changes, Emitting, Entry, Event, Events, Invocation, Json, Object,
    Passage, Pattern, RefusedCall, RefusedTarget, Route, ServerId, ShelfKind, Toolbox,
};
use consort_shape::{Memo, Shape, Shaped};

use super::ask::{Asking, ask, definition};
use super::beside::{AGENTS, tool_name};
use crate::agent::Agent;
use crate::limits::Limits;
use crate::observe::RunObserver;
use crate::provider::Model;
use crate::settings::Settings;

/// How many tools a description names.
const NAMED: usize = 20;

/// A toolbox of which a model sees one tool `ask_SERVER` for each server.
pub struct ServerAgents {
    inner: Arc<dyn Toolbox>,
    model: Model,
    /// Tools that are shown directly.
    direct: Vec<Pattern>,
    /// What each server is about.
    about: BTreeMap<ServerId, String>,
    limits: Limits,
    observer: Option<Arc<dyn RunObserver>>,
    made: Memo<Made>,
}

/// What is shown of a catalog.
struct Made {
    shown: Arc<Catalog>,
    /// The server that a shown tool stands for, by its place.
    servers: Vec<Option<ServerId>>,
}

impl fmt::Debug for ServerAgents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerAgents").field("model", &self.model).finish_non_exhaustive()
    }
}

impl ServerAgents {
    /// A toolbox behind agents of this model, except for the tools that are shown directly.
    pub fn new(
        inner: Arc<dyn Toolbox>,
        model: Model,
        direct: Vec<Pattern>,
        about: BTreeMap<ServerId, String>,
    ) -> Self {
        let limits = Limits { turns: 20, calls: 60, ..Limits::default() };
        Self { inner, model, direct, about, limits, observer: None, made: Memo::default() }
    }

    /// The same, with an observer of the agents' runs.
    #[must_use]
    pub fn observed(mut self, observer: Option<Arc<dyn RunObserver>>) -> Self {
        self.observer = observer;
        self
    }

    fn made(&self, catalog: &Catalog) -> Made {
        let is_direct = |entry: &Entry| {
            let fits = |name: &str| {
                let fits = |pattern: &Pattern| pattern.matches(entry.route.server.as_str(), name);
                self.direct.iter().any(fits)
            };
            entry.route.server.as_str() == AGENTS || fits(&entry.name) || fits(&entry.route.name)
        };
        let mut tools: Vec<(Entry, Option<ServerId>)> = Vec::new();
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
            let route = Route { server: server.clone(), name: name.clone() };
            tools.push((Entry { route, name, definition }, Some(server.clone())));
        }
        let mut shown = catalog.clone();
        shown.set(ShelfKind::Tools, tools.iter().map(|(entry, _)| entry.clone()).collect());
        let server = |entry: &Entry| {
            let found = tools.iter().find(|(tool, _)| tool == entry);
            found.and_then(|(_, server)| server.clone())
        };
        let servers = shown.tools.entries().iter().map(server).collect();
        Made { shown: Arc::new(shown), servers }
    }

    fn description(&self, server: &ServerId, names: &[&str]) -> String {
        let about = self.about.get(server).map(|about| format!("{about}\n\n")).unwrap_or_default();
        let more = names.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let named = names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
        format!(
            "{about}Asks an agent that uses the tools of `{server}` for you and answers in words. \
             Its tools: {named}{more}."
        )
    }

    /// The agent of a server.
    fn agent(&self, server: &ServerId, whole: &Catalog) -> Agent {
        let shape = Shape { servers: Some([server.clone()].into()), transforms: Vec::new() };
        let toolbox = Arc::new(Shaped::new(Arc::clone(&self.inner), shape));
        let mut settings = Settings::new(server.as_str());
        settings.limits = self.limits.clone();
        settings.observer.clone_from(&self.observer);
        settings.instructions = format!(
            "You work for another assistant, which sees nothing but your last message. Use the tools \
             of the server `{server}` to do what it asks, and answer with all that it needs to know. \
             You cannot ask it anything; if something is missing, say what."
        );
        let own = whole.abouts().get(server).and_then(|about| about.instructions.as_ref());
        if let Some(own) = own {
            settings.instructions.push_str("\n\nThe server says of itself:\n");
            settings.instructions.push_str(own);
        }
        Agent::new(self.model.clone(), toolbox, settings)
    }

    /// Has a call recorded that names nothing its caller is shown.
    fn note_refused(
        &self,
        caller: Caller,
        server: Option<ServerId>,
        name: String,
        arguments: Option<Json>,
    ) {
        let (method, target) = ("tools/call".into(), RefusedTarget { server, name });
        self.inner.refused(&RefusedCall { caller, method, target, arguments, error: None });
    }

    fn shown(&self, caller: &Caller) -> Arc<Made> {
        self.made.get(self.inner.catalog(caller), |catalog| self.made(catalog))
    }
}

impl Toolbox for ServerAgents {
    fn catalog(&self, caller: &Caller) -> Arc<Catalog> {
        Arc::clone(&self.shown(caller).shown)
    }

    fn call(&self, invocation: Invocation) -> Events {
        let made = self.shown(&invocation.caller);
        let target = &invocation.target;
        let Some(at) = made.shown.tools.position(&target.server, &target.name) else {
            let error = made.shown.unknown(ShelfKind::Tools, &target.to_string());
            let Invocation { caller, target, arguments, .. } = invocation;
            self.note_refused(caller, Some(target.server), target.name, Some(arguments));
            return unknown(error.into());
        };
        match &made.servers[at] {
            None => self.inner.call(invocation),
            Some(server) => {
                let agent = self.agent(server, &made.shown);
                ask(agent, Asking::from(&invocation), &invocation.arguments)
            }
        }
    }

    fn pass(&self, passage: Passage) -> Events {
        if passage.method != "tools/call" {
            return self.inner.pass(passage);
        }
        let made = self.shown(&passage.caller);
        let name = passage.get("name");
        let name = name.as_ref().and_then(Json::text).unwrap_or_default();
        let Some(at) = made.shown.tools.position(&passage.server, &name) else {
            let (caller, arguments) = (passage.caller.clone(), passage.get("arguments"));
            self.note_refused(caller, Some(passage.server.clone()), name.to_string(), arguments);
            return unknown(made.shown.missing(ShelfKind::Tools, &passage.server, &name).into());
        };
        match &made.servers[at] {
            None => self.inner.pass(passage),
            Some(server) => {
                let agent = self.agent(server, &made.shown);
                let arguments = passage.get("arguments");
                let arguments = arguments.unwrap_or_else(|| Object::empty().json().clone());
                ask(agent, Asking::from(&passage), &arguments)
            }
        }
    }

    fn inner(&self) -> Option<&dyn Toolbox> {
        Some(&*self.inner)
    }

    fn changes(&self) -> Changes {
        self.inner.changes()
    }

    fn refused(&self, call: &RefusedCall) {
        self.inner.refused(call);
    }
}

fn unknown(error: CallError) -> Events {
    Emitting::new(|_| std::future::ready(Event::End(Err(error))))
}
