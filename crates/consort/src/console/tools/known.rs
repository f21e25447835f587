//! List of all tools with the effect of rules on each, cached while its inputs are unchanged.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use consort_core::{
    Caller, Catalog, Entry, MissingName, Object, Route, ServerId, ShelfKind, Toolbox, Unresolved,
};
use consort_gateway::Labelled;
use consort_models::tokens::{TokenVocabulary, count, definition_text};
use consort_search::{SearchLimits, ToolIndex};
use consort_shape::pin::{PinnedKind, WithholdReason};
use consort_shape::scan::scan;
use consort_shape::{TransformEffect, transform_effect};

use super::super::route::Refusal;
use super::super::{Console, Scene};
use super::{Hints, PinState, Tool};

/// Limit of characters of a description in lists.
const LISTED: usize = 300;

/// The inputs of the list.
#[derive(Clone)]
struct Of {
    /// The catalog of servers.
    hub: Arc<Catalog>,
    scene: Arc<Scene>,
    caller: Caller,
    /// The names that clients see.
    labelled: Option<Labelled>,
}

impl Of {
    fn is(&self, other: &Self) -> bool {
        let labelled = match (&self.labelled, &other.labelled) {
            (Some(ours), Some(theirs)) => ours.is(theirs),
            (None, None) => true,
            _ => false,
        };
        labelled
            && Arc::ptr_eq(&self.hub, &other.hub)
            && Arc::ptr_eq(&self.scene, &other.scene)
            && self.caller == other.caller
    }
}

/// All tools: by server, then in the server's order.
pub(in crate::console) struct Known {
    of: Of,
    /// The offered catalog.
    pub(in crate::console) catalog: Arc<Catalog>,
    pub(in crate::console) tools: Vec<Listed>,
    /// Index of each tool, by id.
    ids: HashMap<String, usize>,
    /// Index of each tool, by the name that clients see.
    names: HashMap<String, usize>,
    offered: Search,
    hidden: Search,
}

/// One tool.
pub(in crate::console) struct Listed {
    pub(in crate::console) tool: Tool,
    /// Its index in the offered catalog, if it is there.
    place: Option<usize>,
    /// Its index in the catalog of servers, if it is there.
    origin: Option<usize>,
}

/// Search index over some of the tools.
struct Search {
    index: ToolIndex,
    /// Index among all tools of each entry of the search index.
    places: Vec<usize>,
}

/// Cache of the last list.
#[derive(Default)]
pub(in crate::console) struct Kept {
    last: RwLock<Option<Arc<Known>>>,
    /// Held while the next list is built.
    making: Mutex<()>,
}

impl Kept {
    fn last(&self) -> Option<Arc<Known>> {
        self.last.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn fitting(&self, of: &Of) -> Option<Arc<Known>> {
        self.last().filter(|known| known.of.is(of))
    }

    fn make(&self, of: Of) -> Arc<Known> {
        let _alone = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = self.fitting(&of) {
            return known;
        }
        let known = Arc::new(Known::new(of, self.last().as_deref()));
        *self.last.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&known));
        known
    }
}

impl Console {
    /// All tools, for a caller.
    pub(in crate::console) async fn known(&self, caller: Caller) -> Result<Arc<Known>, Refusal> {
        let labelled = self.0.labels.get().and_then(|labels| labels.now(&caller));
        let hub = self.0.hub.catalog(&caller);
        let of = Of { hub, scene: self.scene(), caller, labelled };
        if let Some(known) = self.0.known.fitting(&of) {
            return Ok(known);
        }
        let console = self.clone();
        let making = tokio::task::spawn_blocking(move || console.0.known.make(of));
        making.await.map_err(|_| Refusal::broken("the tools could not be listed"))
    }

    /// Like `known`. If no tool has the name, waits for the servers that may have it.
    pub(in crate::console) async fn known_with(
        &self,
        caller: Caller,
        name: &str,
    ) -> Result<Arc<Known>, Refusal> {
        let known = self.known(caller.clone()).await?;
        if matches!(known.find(name), Err(Unresolved::Unknown { .. })) {
            let kind = ShelfKind::Tools;
            let missing = MissingName::new(&known.catalog, caller.clone(), kind, name);
            if self.scene().tools.find_missing(missing).await? {
                return self.known(caller).await;
            }
        }
        Ok(known)
    }
}

impl Known {
    /// Builds the list, reusing unchanged parts of the last one.
    fn new(of: Of, last: Option<&Self>) -> Self {
        let catalog = of.scene.tools.catalog(&of.caller);
        let mut tools = Making { of: &of, catalog: &catalog, last, names: names(&of) }.tools();
        tools.sort_by(|a, b| a.tool.server.cmp(&b.tool.server));
        let place = |(at, listed): (usize, &Listed)| (listed.tool.id.clone(), at);
        let ids: HashMap<String, usize> = tools.iter().enumerate().map(place).collect();
        let labelled = tools.iter().enumerate().filter(|(_, listed)| listed.place.is_some());
        let names = labelled.map(|(at, listed)| (listed.tool.name.clone(), at)).collect();
        let unseen = tools.iter().filter(|listed| listed.place.is_none());
        let unseen =
            unseen.filter_map(|listed| Some(of.hub.tools.entries()[listed.origin?].clone()));
        let mut hidden = Catalog::default();
        hidden.set(ShelfKind::Tools, unseen.collect());
        let limits = of.scene.shaping.limits();
        let hits = limits.console.hits;
        let limits = SearchLimits { hits, ..limits.exposure.search.clone() };
        let offered = Search::new(&catalog, &ids, last.map(|last| &last.offered), &limits);
        let hidden = Search::new(&hidden, &ids, last.map(|last| &last.hidden), &limits);
        Self { of, catalog, tools, ids, names, offered, hidden }
    }

    /// Finds a tool: by its id, by the name that clients see, or by its name here. A name that begins with that of a
    /// server means one of that server's tools.
    pub(in crate::console) fn find(&self, name: &str) -> Result<&Listed, Unresolved> {
        let label = || self.names.get(name).filter(|_| !self.catalog.names_server(name));
        if let Some(&at) = self.ids.get(name).or_else(label) {
            return Ok(&self.tools[at]);
        }
        let entry = self.catalog.resolve(name)?;
        let at = self.ids.get(&id(&entry.route));
        at.map(|&at| &self.tools[at]).ok_or_else(|| self.catalog.unknown(ShelfKind::Tools, name))
    }

    /// The tool of this id.
    pub(in crate::console) fn get(&self, id: &str) -> Option<&Listed> {
        self.ids.get(id).map(|&at| &self.tools[at])
    }

    /// Searches the tools and returns their indices, best first; hidden ones come last.
    pub(super) fn search(&self, query: &str, most: usize, server: Option<&str>) -> Vec<usize> {
        let of = |at: usize| server.is_none_or(|server| self.tools[at].tool.server == server);
        let mut found = self.offered.find(query, most, of);
        found.extend(self.hidden.find(query, most - found.len(), of));
        found
    }

    /// Returns true for a group of local tools.
    pub(super) fn is_local(&self, server: &ServerId) -> bool {
        self.of.hub.is_local(server)
    }
}

impl Listed {
    /// The tool as clients see it; as its server wrote it if they do not.
    pub(in crate::console) fn entry<'a>(&self, known: &'a Known) -> &'a Entry {
        match (self.place, self.origin) {
            (Some(at), _) => &known.catalog.tools.entries()[at],
            (None, Some(at)) => &known.of.hub.tools.entries()[at],
            (None, None) => unreachable!("it comes from one of them"),
        }
    }

    /// The tool as its server wrote it, if a server did.
    pub(super) fn original<'a>(&self, known: &'a Known) -> Option<&'a Entry> {
        self.origin.map(|at| &known.of.hub.tools.entries()[at])
    }

    /// Returns the reason for which it cannot be called, if there is one.
    pub(in crate::console) fn unavailable(&self) -> Option<&'static str> {
        match self.tool.pin {
            _ if self.place.is_some() => None,
            _ if self.tool.hidden => Some("a rule or the policy hides it"),
            PinState::Changed => Some("it is not what was agreed to"),
            PinState::New => Some("nobody agreed to it"),
            _ => Some("nobody agreed to its server"),
        }
    }
}

impl Search {
    fn new(
        catalog: &Catalog,
        ids: &HashMap<String, usize>,
        last: Option<&Self>,
        limits: &SearchLimits,
    ) -> Self {
        let index = match last {
            Some(last) => last.index.with_catalog(catalog),
            None => ToolIndex::from_catalog(catalog, limits.clone()),
        };
        let places = catalog.tools.entries().iter().map(|entry| ids[&id(&entry.route)]);
        Self { index, places: places.collect() }
    }

    fn find(&self, query: &str, most: usize, wanted: impl Fn(usize) -> bool) -> Vec<usize> {
        let hits = self.index.search_among(query, most, |at| wanted(self.places[at]));
        hits.into_iter().map(|hit| self.places[hit.position]).collect()
    }
}

/// Id of a tool, independent of its name here.
pub(in crate::console) fn id(route: &Route) -> String {
    format!("{}.{}", route.server, route.name)
}

/// Returns the names that clients see, by the tool's name here.
fn names(of: &Of) -> HashMap<Route, String> {
    let named = of.labelled.iter().flat_map(|labelled| labelled.names(ShelfKind::Tools));
    named.map(|(route, name)| (route.clone(), name.to_owned())).collect()
}

/// Inputs for building the list.
struct Making<'a> {
    of: &'a Of,
    catalog: &'a Catalog,
    last: Option<&'a Known>,
    names: HashMap<Route, String>,
}

impl Making<'_> {
    fn tools(&self) -> Vec<Listed> {
        let offered = self.catalog.tools.entries();
        let mut places: HashMap<&Route, usize> =
            offered.iter().enumerate().map(|(at, entry)| (&entry.route, at)).collect();
        let mut tools = Vec::new();
        for (at, original) in self.of.hub.tools.entries().iter().enumerate() {
            tools.push(self.listed(places.remove(&original.route), Some((at, original))));
        }
        // What no server offers is ours: agents.
        let mut ours: Vec<usize> = places.into_values().collect();
        ours.sort_unstable();
        tools.extend(ours.into_iter().map(|at| self.listed(Some(at), None)));
        tools
    }

    fn listed(&self, place: Option<usize>, original: Option<(usize, &Entry)>) -> Listed {
        let seen = place.map(|at| &self.catalog.tools.entries()[at]);
        let said = original.map(|(_, entry)| entry);
        let entry = seen.or(said).expect("it comes from one of them");
        let id = id(&entry.route);
        let before = self.before(&id);
        let pin = said.map_or(PinState::Unlocked, |entry| self.pin(entry, before));
        let shaping = &self.of.scene.shaping;
        let fate = said.map_or(TransformEffect::Same, |entry| {
            transform_effect(entry, shaping.transforms(None))
        });
        let hides = |entry: &Entry| {
            fate == TransformEffect::Hidden || !shaping.shows(&self.of.caller, entry)
        };
        let open = matches!(pin, PinState::Agreed | PinState::Unlocked);
        let hidden = seen.is_none() && (open || said.is_some_and(hides));
        let tool = entry.tool();
        let here = Route { server: entry.route.server.clone(), name: entry.name.clone() };
        let listed = Tool {
            name: self.names.get(&here).cloned().unwrap_or_else(|| entry.id()),
            server: entry.route.server.to_string(),
            title: tool.title(),
            description: tool.description().map(shortened),
            tokens: tokens(&entry.definition, before),
            annotations: hints(tool.annotations()),
            pin,
            hidden,
            changed: fate == TransformEffect::Changed,
            findings: said.map(|entry| self.findings(entry, before)).unwrap_or_default(),
            id,
        };
        Listed { tool: listed, place, origin: original.map(|(at, _)| at) }
    }

    /// Returns the tool in the last list.
    fn before(&self, id: &str) -> Option<(&Known, &Listed)> {
        let last = self.last?;
        Some((last, &last.tools[*last.ids.get(id)?]))
    }

    /// Returns suspicious passages in a server's definition; reused if it is unchanged.
    fn findings(&self, entry: &Entry, before: Option<(&Known, &Listed)>) -> Vec<String> {
        if self.of.hub.is_local(&entry.route.server) {
            return Vec::new();
        }
        match before {
            Some((last, listed))
                if listed
                    .original(last)
                    .is_some_and(|known| known.definition == entry.definition) =>
            {
                listed.tool.findings.clone()
            }
            _ => scan(entry.definition.json()).iter().map(ToString::to_string).collect(),
        }
    }

    fn pin(&self, entry: &Entry, before: Option<(&Known, &Listed)>) -> PinState {
        let Some(lock) = self.of.scene.shaping.lock() else { return PinState::Unlocked };
        let Route { server, name } = &entry.route;
        if self.of.hub.is_local(server) {
            return PinState::Unlocked;
        }
        if let Some((last, listed)) = before
            && last.of.scene.shaping.lock().is_some_and(|known| Arc::ptr_eq(known, lock))
            && listed.original(last).is_some_and(|known| known.definition == entry.definition)
        {
            return listed.tool.pin;
        }
        match lock.withheld(server, PinnedKind::Tool, name, entry.definition.json()) {
            None => PinState::Agreed,
            Some(WithholdReason::Changed { .. }) => PinState::Changed,
            Some(WithholdReason::New) => PinState::New,
            Some(WithholdReason::ServerNew | WithholdReason::ServerChanged) => PinState::Withheld,
        }
    }
}

/// Returns the token cost of a definition; reused if it is unchanged.
pub(super) fn tokens(definition: &Object, before: Option<(&Known, &Listed)>) -> usize {
    match before {
        Some((last, listed)) if listed.entry(last).definition == *definition => listed.tool.tokens,
        _ => {
            let tool = consort_core::Tool::from_object(definition.clone());
            count(TokenVocabulary::default(), &definition_text(&tool))
        }
    }
}

pub(super) fn hints(annotations: consort_core::Annotations) -> Hints {
    let consort_core::Annotations { read_only, destructive, idempotent, open_world } = annotations;
    Hints { read_only, destructive, idempotent, open_world }
}

/// Shortens a text for lists.
pub(super) fn shortened(mut text: String) -> String {
    let Some((at, _)) = text.char_indices().nth(LISTED) else { return text };
    let last = text[..at].char_indices().next_back().map_or(0, |(at, _)| at);
    text.truncate(last);
    text.push('…');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_description_is_cut_between_characters() {
        assert_eq!(shortened("é".repeat(300)), "é".repeat(300));
        assert_eq!(shortened("é".repeat(301)), "é".repeat(299) + "…");
    }
}
