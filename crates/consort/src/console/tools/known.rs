//! Every tool there is, made once of what is on offer, with what became of each.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use consort_core::{
    Caller, Catalog, Entry, MissingName, Object, Route, ServerId, ShelfKind, Toolbox, Unresolved,
};
use consort_gateway::Labelled;
use consort_shape::pin::{Kind, Withheld};
use consort_shape::scan::scan;
use consort_shape::search::{Index, Limits};
use consort_shape::tokens::{Vocabulary, count, text};
use consort_shape::{Fate, fate};

use super::super::route::Refusal;
use super::super::{Console, Scene};
use super::{Hints, PinState, Tool};

/// How many characters of a description are listed.
const LISTED: usize = 300;

/// How many tools a search finds at most.
const HITS: usize = 1000;

/// What it is made of.
#[derive(Clone)]
struct Of {
    /// What servers offer.
    hub: Arc<Catalog>,
    scene: Arc<Scene>,
    caller: Caller,
    /// What things are called in front of clients.
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

/// Every tool there is: by server, then in the server's order.
pub(in crate::console) struct Known {
    of: Of,
    /// What is on offer.
    pub(in crate::console) catalog: Arc<Catalog>,
    pub(in crate::console) tools: Vec<Listed>,
    /// Places among the tools, by id.
    ids: HashMap<String, usize>,
    /// And by what clients call them.
    names: HashMap<String, usize>,
    offered: Search,
    hidden: Search,
}

/// One of them.
pub(in crate::console) struct Listed {
    pub(in crate::console) tool: Tool,
    /// Its place among what is on offer, if it is.
    place: Option<usize>,
    /// Its place among what servers offer, if a server does.
    origin: Option<usize>,
}

/// Some of them, found by words.
struct Search {
    index: Index,
    /// Where what is found is among all tools.
    places: Vec<usize>,
}

/// The last that was made.
#[derive(Default)]
pub(in crate::console) struct Kept {
    last: RwLock<Option<Arc<Known>>>,
    /// Held by who makes the next.
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
    /// Every tool there is, for a caller.
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

    /// The same. If none of them has a name, the servers that may have it are waited for.
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
    /// Makes it, with what is still true of the last.
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
        let offered = Search::new(&catalog, &ids, last.map(|last| &last.offered));
        let hidden = Search::new(&hidden, &ids, last.map(|last| &last.hidden));
        Self { of, catalog, tools, ids, names, offered, hidden }
    }

    /// The tool that is meant: by its id, by what clients call it, or by its name here. A text that
    /// begins with the name of a server means one of that server's.
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

    /// The places of those that words find, best first; what is hidden comes last.
    pub(super) fn search(&self, query: &str, most: usize, server: Option<&str>) -> Vec<usize> {
        let of = |at: usize| server.is_none_or(|server| self.tools[at].tool.server == server);
        let mut found = self.offered.find(query, most, of);
        found.extend(self.hidden.find(query, most - found.len(), of));
        found
    }

    /// Whether the tools of a server are our own.
    pub(super) fn is_local(&self, server: &ServerId) -> bool {
        self.of.hub.is_local(server)
    }
}

impl Listed {
    /// It as clients see it; as its server wrote it if they do not.
    pub(in crate::console) fn entry<'a>(&self, known: &'a Known) -> &'a Entry {
        match (self.place, self.origin) {
            (Some(at), _) => &known.catalog.tools.entries()[at],
            (None, Some(at)) => &known.of.hub.tools.entries()[at],
            (None, None) => unreachable!("it comes from one of them"),
        }
    }

    /// It as its server wrote it, if a server did.
    pub(super) fn original<'a>(&self, known: &'a Known) -> Option<&'a Entry> {
        self.origin.map(|at| &known.of.hub.tools.entries()[at])
    }

    /// Why it cannot be called, if it cannot.
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
    fn new(catalog: &Catalog, ids: &HashMap<String, usize>, last: Option<&Self>) -> Self {
        let index = match last {
            Some(last) => last.index.updated(catalog),
            None => Index::of(catalog, Limits { hits: HITS, ..Limits::default() }),
        };
        let places = catalog.tools.entries().iter().map(|entry| ids[&id(&entry.route)]);
        Self { index, places: places.collect() }
    }

    fn find(&self, query: &str, most: usize, wanted: impl Fn(usize) -> bool) -> Vec<usize> {
        let hits = self.index.search_among(query, most, |at| wanted(self.places[at]));
        hits.into_iter().map(|hit| self.places[hit.position]).collect()
    }
}

/// What a tool is told by, whatever it is called here.
pub(in crate::console) fn id(route: &Route) -> String {
    format!("{}.{}", route.server, route.name)
}

/// What clients call each tool, by its name here.
fn names(of: &Of) -> HashMap<Route, String> {
    let named = of.labelled.iter().flat_map(|labelled| labelled.names(ShelfKind::Tools));
    named.map(|(route, name)| (route.clone(), name.to_owned())).collect()
}

/// What is made of what.
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
        let fate = said.map_or(Fate::Same, |entry| fate(entry, shaping.transforms(None)));
        let hides = |entry: &Entry| fate == Fate::Hidden || !shaping.shows(&self.of.caller, entry);
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
            changed: fate == Fate::Changed,
            findings: said.map(|entry| self.findings(entry, before)).unwrap_or_default(),
            id,
        };
        Listed { tool: listed, place, origin: original.map(|(at, _)| at) }
    }

    /// What was known of it the last time.
    fn before(&self, id: &str) -> Option<(&Known, &Listed)> {
        let last = self.last?;
        Some((last, &last.tools[*last.ids.get(id)?]))
    }

    /// What deserves a look in what a server says; not looked for again if it is the same.
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
        match lock.withheld(server, Kind::Tool, name, entry.definition.json()) {
            None => PinState::Agreed,
            Some(Withheld::Changed { .. }) => PinState::Changed,
            Some(Withheld::New) => PinState::New,
            Some(Withheld::ServerNew | Withheld::ServerChanged) => PinState::Withheld,
        }
    }
}

/// What a definition costs a model; not counted again if it is the same.
pub(super) fn tokens(definition: &Object, before: Option<(&Known, &Listed)>) -> usize {
    match before {
        Some((last, listed)) if listed.entry(last).definition == *definition => listed.tool.tokens,
        _ => {
            let tool = consort_core::Tool::from_object(definition.clone());
            count(Vocabulary::default(), &text(&tool))
        }
    }
}

pub(super) fn hints(annotations: consort_core::Annotations) -> Hints {
    let consort_core::Annotations { read_only, destructive, idempotent, open_world } = annotations;
    Hints { read_only, destructive, idempotent, open_world }
}

/// A text that is not too long to be listed.
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
