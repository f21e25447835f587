//! List of all tools with the effect of rules on each, cached while its inputs are unchanged.

mod row;
mod view;

use std::collections::HashMap;
use std::sync::Arc;

use consort_core::{
    Caller, Catalog, CatalogEntry, CatalogRoute, Object, PrimitiveKind, ServerId, UnresolvedName,
};
use consort_gateway::ClientNameSnapshot;
use consort_models::tokens::{TokenVocabulary, count, definition_text};
use consort_search::{SearchLimits, SearchSettings, ToolIndex};
use consort_shape::pin::{PinnedKind, WithholdReason};
use consort_shape::scan::scan;
use consort_shape::{SearchSpec, TransformEffect, transform_effect};
use parking_lot::{Mutex, RwLock};

use crate::active_config::ActiveConfig;
pub(crate) use row::{PinState, ToolRow, shorten_description, tool_hints};
pub(crate) use view::ToolView;

/// The inputs of the list.
#[derive(Clone)]
pub(crate) struct IndexInputs {
    /// The catalog of servers.
    pub(crate) hub: Arc<Catalog>,
    pub(crate) active: Arc<ActiveConfig>,
    pub(crate) caller: Caller,
    /// The names that clients see.
    pub(crate) labelled: Option<ClientNameSnapshot>,
}

impl IndexInputs {
    fn is_same(&self, other: &Self) -> bool {
        let labelled = match (&self.labelled, &other.labelled) {
            (Some(ours), Some(theirs)) => ours.is(theirs),
            (None, None) => true,
            _ => false,
        };
        labelled
            && Arc::ptr_eq(&self.hub, &other.hub)
            && Arc::ptr_eq(&self.active, &other.active)
            && self.caller == other.caller
    }
}

/// All tools: by server, then in the server's order.
pub(crate) struct CallerToolIndex {
    of: IndexInputs,
    /// The offered catalog.
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) tools: Vec<ToolIndexEntry>,
    /// Index of each tool, by id.
    ids: HashMap<String, usize>,
    /// Index of each tool, by the name that clients see.
    names: HashMap<String, usize>,
    offered: IndexSearch,
    hidden: IndexSearch,
}

/// One tool.
pub(crate) struct ToolIndexEntry {
    pub(crate) tool: ToolRow,
    /// Its index in the offered catalog, if it is there.
    offered_index: Option<usize>,
    /// Its index in the catalog of servers, if it is there.
    server_index: Option<usize>,
}

/// Search index over some of the tools.
struct IndexSearch {
    index: ToolIndex,
    /// Index among all tools of each entry of the search index.
    places: Vec<usize>,
}

/// Cache of the last list.
#[derive(Default)]
pub(crate) struct ToolIndexCache {
    last: RwLock<Option<Arc<CallerToolIndex>>>,
    /// Held while the next list is built.
    build_lock: Mutex<()>,
}

impl ToolIndexCache {
    fn last(&self) -> Option<Arc<CallerToolIndex>> {
        self.last.read().clone()
    }

    pub(crate) fn get_if_current(&self, of: &IndexInputs) -> Option<Arc<CallerToolIndex>> {
        self.last().filter(|known| known.of.is_same(of))
    }

    pub(crate) fn get_or_build(&self, of: IndexInputs) -> Arc<CallerToolIndex> {
        let _alone = self.build_lock.lock();
        if let Some(known) = self.get_if_current(&of) {
            return known;
        }
        let known = Arc::new(CallerToolIndex::new(of, self.last().as_deref()));
        *self.last.write() = Some(Arc::clone(&known));
        known
    }
}

impl CallerToolIndex {
    /// Builds the list, reusing unchanged parts of the last one.
    fn new(of: IndexInputs, last: Option<&Self>) -> Self {
        let catalog = of.active.tools.catalog(&of.caller);
        let mut tools =
            IndexBuilder { of: &of, catalog: &catalog, last, names: names(&of) }.tools();
        tools.sort_by(|a, b| a.tool.server.cmp(&b.tool.server));
        let place = |(at, listed): (usize, &ToolIndexEntry)| (listed.tool.id.clone(), at);
        let ids: HashMap<String, usize> = tools.iter().enumerate().map(place).collect();
        let labelled =
            tools.iter().enumerate().filter(|(_, listed)| listed.offered_index.is_some());
        let names = labelled.map(|(at, listed)| (listed.tool.name.clone(), at)).collect();
        let unseen = tools.iter().filter(|listed| listed.offered_index.is_none());
        let unseen =
            unseen.filter_map(|listed| Some(of.hub.tools.entries()[listed.server_index?].clone()));
        let mut hidden = Catalog::default();
        hidden.set(PrimitiveKind::Tools, unseen.collect());
        let limits = &of.active.limits;
        let hits = limits.console.hits;
        let spec = of.active.config.as_ref().and_then(|config| config.options.search.as_ref());
        let settings = SearchSettings {
            limits: SearchLimits { hits, ..limits.exposure.search.clone() },
            synonyms: SearchSpec::synonyms_of(spec),
        };
        let offered = IndexSearch::new(&catalog, &ids, last.map(|last| &last.offered), &settings);
        let hidden = IndexSearch::new(&hidden, &ids, last.map(|last| &last.hidden), &settings);
        Self { of, catalog, tools, ids, names, offered, hidden }
    }

    /// Finds a tool: by its id, by the name that clients see, or by its name here. A name that begins with that of a
    /// server means one of that server's tools.
    pub(crate) fn find(&self, name: &str) -> Result<&ToolIndexEntry, UnresolvedName> {
        let label = || self.names.get(name).filter(|_| !self.catalog.names_server(name));
        if let Some(&at) = self.ids.get(name).or_else(label) {
            return Ok(&self.tools[at]);
        }
        let entry = self.catalog.resolve(name)?;
        let at = self.ids.get(&tool_id(&entry.route));
        at.map(|&at| &self.tools[at])
            .ok_or_else(|| self.catalog.unknown(PrimitiveKind::Tools, name))
    }

    /// The tool of this id.
    pub(crate) fn get(&self, id: &str) -> Option<&ToolIndexEntry> {
        self.ids.get(id).map(|&at| &self.tools[at])
    }

    /// Searches the tools and returns their indices, best first; hidden ones come last.
    pub(crate) fn search(&self, query: &str, most: usize, server: Option<&str>) -> Vec<usize> {
        let of = |at: usize| server.is_none_or(|server| self.tools[at].tool.server == server);
        let mut found = self.offered.find(query, most, of);
        found.extend(self.hidden.find(query, most - found.len(), of));
        found
    }

    /// Returns true for a group of local tools.
    pub(crate) fn is_local(&self, server: &ServerId) -> bool {
        self.of.hub.is_local(server)
    }
}

impl ToolIndexEntry {
    /// The tool as clients see it; as its server wrote it if they do not.
    pub(crate) fn entry<'a>(&self, known: &'a CallerToolIndex) -> &'a CatalogEntry {
        match (self.offered_index, self.server_index) {
            (Some(at), _) => &known.catalog.tools.entries()[at],
            (None, Some(at)) => &known.of.hub.tools.entries()[at],
            (None, None) => unreachable!("it comes from one of them"),
        }
    }

    /// The tool as its server wrote it, if a server did.
    pub(crate) fn original<'a>(&self, known: &'a CallerToolIndex) -> Option<&'a CatalogEntry> {
        self.server_index.map(|at| &known.of.hub.tools.entries()[at])
    }

    /// Returns the reason for which it cannot be called, if there is one.
    pub(crate) fn reason_unavailable(&self) -> Option<&'static str> {
        match self.tool.pin {
            _ if self.offered_index.is_some() => None,
            _ if self.tool.hidden => Some("a rule or the policy hides it"),
            PinState::Changed => Some("its definition changed since it was approved"),
            PinState::New => Some("it is not approved"),
            _ => Some("its server is not approved"),
        }
    }
}

impl IndexSearch {
    fn new(
        catalog: &Catalog,
        ids: &HashMap<String, usize>,
        last: Option<&Self>,
        settings: &SearchSettings,
    ) -> Self {
        let index = match last {
            Some(last) if last.index.settings() == settings => last.index.with_catalog(catalog),
            _ => ToolIndex::from_catalog(catalog, settings.clone()),
        };
        let places = catalog.tools.entries().iter().map(|entry| ids[&tool_id(&entry.route)]);
        Self { index, places: places.collect() }
    }

    fn find(&self, query: &str, most: usize, is_wanted: impl Fn(usize) -> bool) -> Vec<usize> {
        let hits = self.index.search_among(query, most, |at| is_wanted(self.places[at]));
        hits.into_iter().map(|hit| self.places[hit.position]).collect()
    }
}

/// Id of a tool, independent of its name here.
pub(crate) fn tool_id(route: &CatalogRoute) -> String {
    format!("{}.{}", route.server, route.name)
}

/// Returns the names that clients see, by the tool's name here.
fn names(of: &IndexInputs) -> HashMap<CatalogRoute, String> {
    let named = of.labelled.iter().flat_map(|labelled| labelled.names(PrimitiveKind::Tools));
    named.map(|(route, name)| (route.clone(), name.to_owned())).collect()
}

/// Inputs for building the list.
struct IndexBuilder<'a> {
    of: &'a IndexInputs,
    catalog: &'a Catalog,
    last: Option<&'a CallerToolIndex>,
    names: HashMap<CatalogRoute, String>,
}

impl IndexBuilder<'_> {
    fn tools(&self) -> Vec<ToolIndexEntry> {
        let offered = self.catalog.tools.entries();
        let mut places: HashMap<&CatalogRoute, usize> =
            offered.iter().enumerate().map(|(at, entry)| (&entry.route, at)).collect();
        let mut tools = Vec::new();
        for (at, original) in self.of.hub.tools.entries().iter().enumerate() {
            tools.push(self.build_entry(places.remove(&original.route), Some((at, original))));
        }
        // What no server offers is ours: agents.
        let mut ours: Vec<usize> = places.into_values().collect();
        ours.sort_unstable();
        tools.extend(ours.into_iter().map(|at| self.build_entry(Some(at), None)));
        tools
    }

    fn build_entry(
        &self,
        place: Option<usize>,
        original: Option<(usize, &CatalogEntry)>,
    ) -> ToolIndexEntry {
        let offered_entry = place.map(|at| &self.catalog.tools.entries()[at]);
        let original_entry = original.map(|(_, entry)| entry);
        let entry = offered_entry.or(original_entry).expect("it comes from one of them");
        let id = tool_id(&entry.route);
        let before = self.previous_entry(&id);
        let pin = original_entry.map_or(PinState::Unlocked, |entry| self.pin(entry, before));
        let active = &self.of.active;
        let fate = original_entry
            .map_or(TransformEffect::Same, |entry| transform_effect(entry, &active.transforms));
        let hides = |entry: &CatalogEntry| {
            fate == TransformEffect::Hidden || !active.is_visible(&self.of.caller, entry)
        };
        let open = matches!(pin, PinState::Agreed | PinState::Unlocked);
        let hidden = offered_entry.is_none() && (open || original_entry.is_some_and(hides));
        let tool = entry.tool();
        let here = CatalogRoute { server: entry.route.server.clone(), name: entry.name.clone() };
        let listed = ToolRow {
            name: self.names.get(&here).cloned().unwrap_or_else(|| entry.id()),
            server: entry.route.server.to_string(),
            title: tool.title(),
            description: tool.description().map(shorten_description),
            tokens: tokens(&entry.definition, before),
            annotations: tool_hints(tool.annotations()),
            pin,
            hidden,
            changed: fate == TransformEffect::Changed,
            findings: original_entry.map(|entry| self.findings(entry, before)).unwrap_or_default(),
            id,
        };
        ToolIndexEntry {
            tool: listed,
            offered_index: place,
            server_index: original.map(|(at, _)| at),
        }
    }

    /// Returns the tool in the last list.
    fn previous_entry(&self, id: &str) -> Option<(&CallerToolIndex, &ToolIndexEntry)> {
        let last = self.last?;
        Some((last, &last.tools[*last.ids.get(id)?]))
    }

    /// Returns suspicious passages in a server's definition; reused if it is unchanged.
    fn findings(
        &self,
        entry: &CatalogEntry,
        before: Option<(&CallerToolIndex, &ToolIndexEntry)>,
    ) -> Vec<String> {
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

    fn pin(
        &self,
        entry: &CatalogEntry,
        before: Option<(&CallerToolIndex, &ToolIndexEntry)>,
    ) -> PinState {
        let Some(lock) = self.of.active.lock.as_ref() else { return PinState::Unlocked };
        let CatalogRoute { server, name } = &entry.route;
        if self.of.hub.is_local(server) {
            return PinState::Unlocked;
        }
        if let Some((last, listed)) = before
            && last.of.active.lock.as_ref().is_some_and(|known| Arc::ptr_eq(known, lock))
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
pub(crate) fn tokens(
    definition: &Object,
    before: Option<(&CallerToolIndex, &ToolIndexEntry)>,
) -> usize {
    match before {
        Some((last, listed)) if listed.entry(last).definition == *definition => listed.tool.tokens,
        _ => {
            let tool = consort_core::Tool::from_object(definition.clone());
            count(TokenVocabulary::default(), &definition_text(&tool))
        }
    }
}
