//! Listing of an endpoint, made from a catalog: public names, and the lists as they are sent.

mod definitions;

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

use bytes::{BufMut, BytesMut};
use consort_core::{
    Catalog, CatalogEntry, CatalogRoute, Json, Object, PrimitiveKind, Problem, ServerAbout,
    ServerId,
};
use consort_protocol::Era;
use consort_protocol::PARTIAL_LIST;
use consort_protocol::headers::ParamHeaders;
use consort_protocol::splice::ObjectWriter;
use consort_server::TASKS;
use serde_json::json;

use crate::endpoint_kind::EndpointKind;
use crate::era_results;
use crate::naming::NameRegistry;
use crate::uri_names::uris;

use definitions::{fits, renamed};

/// Capability path of a server of 2025-11-25 whose tools can run as tasks.
const LEGACY_TASKS: &str = "tasks.requests.tools.call";

/// Cache lifetime of a list, in milliseconds.
const LIST_TTL: u64 = 30_000;

/// Listing of an endpoint.
#[derive(Debug)]
pub(crate) struct EndpointListing {
    boards: [ListingSection; 4],
    abouts: Vec<(ServerId, ServerAbout)>,
    /// Number of list changes that its servers reported, by kind.
    list_changes: [u64; 4],
    /// Renamed resources: by server, the server's URI mapped to the public one.
    apart: HashMap<ServerId, HashMap<String, String>>,
    /// Every configured server; empty at the endpoint of one server.
    reserved: Arc<BTreeSet<ServerId>>,
    pub(crate) problems: Vec<Problem>,
}

/// The primitives of one kind in a listing.
#[derive(Debug, Default)]
pub(crate) struct ListingSection {
    choices: HashMap<String, ListedItem>,
    definitions: Vec<Object>,
    pub(crate) digest: u64,
    /// True if the lists of some server are not known yet.
    is_partial: bool,
    lists: [OnceLock<Vec<Json>>; 2],
}

/// One listed item.
#[derive(Debug)]
pub(crate) struct ListedItem {
    /// Its server, and its name in the toolbox.
    pub(crate) route: CatalogRoute,
    /// Arguments that a modern client repeats in headers.
    pub(crate) mirrors: ParamHeaders,
}

impl EndpointListing {
    pub(crate) fn new(catalog: &Catalog, place: &EndpointKind, names: &mut NameRegistry) -> Self {
        let mut problems = Vec::new();
        let mut named = |kind: PrimitiveKind| {
            let shelf = catalog.section(kind).entries().iter();
            let entries: Vec<&CatalogEntry> =
                shelf.filter(|entry| place.has(kind, entry)).collect();
            let given = names.give(kind, &entries, &mut problems);
            entries.into_iter().zip(given).collect::<Vec<_>>()
        };
        let named = PrimitiveKind::ALL.map(|kind| (kind, named(kind)));
        let mut apart: HashMap<ServerId, HashMap<String, String>> = HashMap::new();
        for (entry, name) in &named[PrimitiveKind::Resources as usize].1 {
            if let Some(name) = name.as_ref().filter(|name| **name != entry.name) {
                let names = apart.entry(entry.route.server.clone()).or_default();
                names.insert(entry.name.clone(), name.clone());
            }
        }
        let is_partial = catalog.pending().iter().any(|server| place.has_server(server));
        let board =
            |(kind, entries): (_, Vec<_>)| ListingSection::new(kind, entries.into_iter(), &apart);
        let boards = named.map(|named| ListingSection { is_partial, ..board(named) });
        let abouts = catalog.abouts().iter().filter(|(server, _)| place.has_server(server));
        let abouts = abouts.map(|(server, about)| (server.clone(), about.clone())).collect();
        let list_changes = PrimitiveKind::ALL.map(|kind| list_changes(kind, &boards, catalog));
        let reserved = match place {
            EndpointKind::Server(_) => Arc::default(),
            EndpointKind::Whole | EndpointKind::Profile(_) => Arc::clone(catalog.reserved()),
        };
        Self { boards, abouts, list_changes, apart, reserved, problems }
    }

    pub(crate) fn board(&self, kind: PrimitiveKind) -> &ListingSection {
        &self.boards[kind as usize]
    }

    /// Returns true if it has a tool of this name.
    pub(crate) fn has_tool(&self, name: &str) -> bool {
        self.board(PrimitiveKind::Tools).get(name).is_some()
    }

    /// Returns the state of a list, for comparison: its digest, and the number of changes that servers reported.
    pub(crate) fn list_state(&self, kind: PrimitiveKind) -> (u64, u64) {
        (self.board(kind).digest, self.list_changes[kind as usize])
    }

    /// Returns the public URIs of a server's renamed resources; `None` if it has none.
    pub(crate) fn apart(&self, server: &ServerId) -> Option<&HashMap<String, String>> {
        self.apart.get(server)
    }

    /// True if the lists of some server are not known yet.
    pub(crate) fn is_partial(&self) -> bool {
        self.boards[0].is_partial
    }

    /// Returns true if any server has this capability, or may have it because it is not known yet. A legacy client
    /// learns of capabilities at `initialize` only.
    fn may_offer(&self, path: &str) -> bool {
        self.is_partial() || self.offers(path)
    }

    /// Returns true if any server has this capability.
    pub(crate) fn offers(&self, path: &str) -> bool {
        self.abouts.iter().any(|(_, about)| about.offers(path))
    }

    /// Returns the servers with this capability.
    pub(crate) fn offering<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a ServerId> {
        self.abouts.iter().filter(|(_, about)| about.offers(path)).map(|(server, _)| server)
    }

    /// Returns the only server, if there is just one.
    pub(crate) fn only(&self) -> Option<&ServerId> {
        match self.abouts.as_slice() {
            [(server, _)] => Some(server),
            _ => None,
        }
    }

    /// Returns the route of an unlisted URI: to the only server with a matching template, else to the only server with
    /// resources at all.
    pub(crate) fn owner(&self, uri: &str) -> Option<CatalogRoute> {
        let templates = self.board(PrimitiveKind::Templates);
        let fitting: BTreeSet<&ServerId> = templates
            .choices
            .iter()
            .filter(|(pattern, _)| fits(pattern, uri))
            .map(|(_, choice)| &choice.route.server)
            .collect();
        let server = match fitting.len() {
            0 => {
                let mut with_resources = self.offering("resources");
                let only = with_resources.next().filter(|_| with_resources.next().is_none())?;
                // The URI may be of another server that is hidden here or down.
                let named = uri.split_once(':').map_or("", |(scheme, _)| scheme);
                let of_another = |server: &&ServerId| *server != only && server.as_str() == named;
                Some(only).filter(|_| !self.reserved.iter().any(|server| of_another(&server)))?
            }
            1 => *fitting.first()?,
            _ => return None,
        };
        Some(CatalogRoute { server: server.clone(), name: uri.to_owned() })
    }

    /// Returns the capabilities that the endpoint advertises in one era.
    pub(crate) fn capabilities(&self, era: Era) -> Json {
        let mut writer = ObjectWriter::new();
        let changes = br#"{"listChanged":true}"#;
        writer.raw("tools", changes);
        if self.has(PrimitiveKind::Prompts) {
            writer.raw("prompts", changes);
        }
        if self.has(PrimitiveKind::Resources) {
            let subscribe: &[u8] = br#"{"listChanged":true,"subscribe":true}"#;
            writer.raw("resources", if self.watches() { subscribe } else { changes });
        }
        if self.may_offer("completions") {
            writer.raw("completions", b"{}");
        }
        if self.may_offer("logging") {
            writer.raw("logging", b"{}");
        }
        if era == Era::Modern {
            self.extensions(&mut writer);
        } else if self.offers(LEGACY_TASKS) {
            writer.object("tasks", |tasks| {
                for name in ["list", "cancel"] {
                    if self.offers(&format!("tasks.{name}")) {
                        tasks.raw(name, b"{}");
                    }
                }
                tasks.raw("requests", br#"{"tools":{"call":{}}}"#);
            });
        }
        writer.finish()
    }

    fn extensions(&self, writer: &mut ObjectWriter) {
        let mut known: Vec<(String, Json)> = Vec::new();
        for (_, about) in &self.abouts {
            let extensions = about.capabilities.get("extensions").and_then(|json| json.to_object());
            for (name, settings) in extensions.iter().flat_map(Object::members) {
                if !known.iter().any(|(known, _)| known == name) {
                    known.push((name.to_owned(), settings));
                }
            }
        }
        if self.offers(LEGACY_TASKS) && !known.iter().any(|(name, _)| name == TASKS) {
            known.push((TASKS.to_owned(), json!({}).into()));
        }
        if known.is_empty() {
            return;
        }
        writer.object("extensions", |extensions| {
            for (name, settings) in &known {
                extensions.written(name, settings.as_bytes());
            }
        });
    }

    /// Returns true if primitives of this kind can be requested.
    pub(crate) fn has(&self, kind: PrimitiveKind) -> bool {
        let path = match kind {
            PrimitiveKind::Tools => return true,
            PrimitiveKind::Prompts => "prompts",
            PrimitiveKind::Resources | PrimitiveKind::Templates => "resources",
        };
        let kinds = if kind == PrimitiveKind::Prompts {
            [kind; 2]
        } else {
            [PrimitiveKind::Resources, PrimitiveKind::Templates]
        };
        self.may_offer(path) || kinds.iter().any(|kind| !self.board(*kind).definitions.is_empty())
    }

    /// Returns true if clients may subscribe to resources. A modern server accepts or refuses only at subscription.
    pub(crate) fn watches(&self) -> bool {
        self.may_offer("resources.subscribe")
    }

    /// Returns the instructions of all servers.
    pub(crate) fn instructions(&self) -> Option<String> {
        let said: Vec<(&ServerId, &String)> = self
            .abouts
            .iter()
            .filter_map(|(server, about)| Some((server, about.instructions.as_ref()?)))
            .collect();
        match said.as_slice() {
            [] => None,
            [(_, text)] => Some((*text).clone()),
            many => {
                let parts: Vec<String> =
                    many.iter().map(|(server, text)| format!("# {server}\n\n{text}")).collect();
                Some(parts.join("\n\n"))
            }
        }
    }
}

impl ListingSection {
    fn new<'a>(
        kind: PrimitiveKind,
        entries: impl Iterator<Item = (&'a CatalogEntry, Option<String>)>,
        apart: &HashMap<ServerId, HashMap<String, String>>,
    ) -> Self {
        let mut board = Self::default();
        let mut digest = DefaultHasher::new();
        for (entry, name) in entries {
            let Some(name) = name else { continue };
            let mut definition = renamed(kind, entry, &name);
            // A tool may name the resource that shows it.
            if let (PrimitiveKind::Tools, Some(names)) = (kind, apart.get(&entry.route.server)) {
                let retold = uris(definition.json(), names).to_object();
                definition = retold.expect("it was written as one");
            }
            definition.as_bytes().hash(&mut digest);
            let schema = definition.get("inputSchema").and_then(|schema| schema.to_object());
            let mirrors =
                schema.and_then(|schema| ParamHeaders::of(&schema).ok()).unwrap_or_default();
            let route =
                CatalogRoute { server: entry.route.server.clone(), name: entry.name.clone() };
            board.choices.insert(name, ListedItem { route, mirrors });
            board.definitions.push(definition);
        }
        board.digest = digest.finish();
        board
    }

    pub(crate) fn get(&self, name: &str) -> Option<&ListedItem> {
        self.choices.get(name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.choices.keys().map(String::as_str)
    }

    /// Returns the route and the public name of each item.
    pub(crate) fn routes(&self) -> impl Iterator<Item = (&CatalogRoute, &str)> {
        self.choices.iter().map(|(name, choice)| (&choice.route, name.as_str()))
    }

    /// Returns the result with the page at a cursor, of at most `items` items; `None` if there is no such page (any
    /// more).
    pub(crate) fn page(
        &self,
        kind: PrimitiveKind,
        era: Era,
        cursor: Option<&str>,
        items: usize,
    ) -> Option<Json> {
        let pages = self.lists[era as usize].get_or_init(|| self.pages(kind, era, items));
        let number = match cursor {
            None => 0,
            Some(cursor) => {
                let number = cursor.strip_prefix(&format!("{:x}-", self.digest))?;
                number.parse().ok()?
            }
        };
        pages.get::<usize>(number).cloned()
    }

    fn pages(&self, kind: PrimitiveKind, era: Era, most: usize) -> Vec<Json> {
        let count = self.definitions.len().div_ceil(most).max(1);
        let page = |number: usize| {
            let items = self.definitions.iter().skip(number * most).take(most);
            let size: usize = items.clone().map(|item| item.as_bytes().len() + 1).sum();
            let mut bytes = BytesMut::with_capacity(size + 256);
            bytes.put_slice(format!("{{\"{}\":[", kind.member()).as_bytes());
            for (at, item) in items.enumerate() {
                if at > 0 {
                    bytes.put_u8(b',');
                }
                bytes.put_slice(era_results::in_era(item, era).as_bytes());
            }
            bytes.put_u8(b']');
            if number + 1 < count {
                let next = format!(",\"nextCursor\":\"{:x}-{}\"", self.digest, number + 1);
                bytes.put_slice(next.as_bytes());
            }
            if self.is_partial {
                // A gateway in front of this one waits for the rest before it calls a name unknown.
                bytes.put_slice(format!(",\"_meta\":{{\"{PARTIAL_LIST}\":true}}").as_bytes());
            }
            if era == Era::Modern {
                let hints = format!(
                    ",\"resultType\":\"complete\",\"ttlMs\":{LIST_TTL},\"cacheScope\":\"private\""
                );
                bytes.put_slice(hints.as_bytes());
            }
            bytes.put_u8(b'}');
            Json::parse(bytes.freeze()).expect("it is made of JSON")
        };
        (0..count).map(page).collect()
    }
}

/// Returns the number of changes to this list that its servers reported.
fn list_changes(kind: PrimitiveKind, boards: &[ListingSection; 4], catalog: &Catalog) -> u64 {
    let servers: BTreeSet<&ServerId> =
        boards[kind as usize].choices.values().map(|choice| &choice.route.server).collect();
    let count = |server: &ServerId| Some(catalog.abouts().get(server)?.list_changes[kind as usize]);
    servers.into_iter().filter_map(count).fold(0, u64::wrapping_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_matches_a_template_by_its_fixed_parts() {
        for (template, uri, expected) in [
            ("test://template/{id}/data", "test://template/7/data", true),
            ("test://template/{id}/data", "test://template/7/date", false),
            ("test://template/{id}/data", "test://template/7/data/more", false),
            ("file:///{+path}", "file:///a/b", true),
            ("file:///{+path}", "http://a", false),
            ("a://{x}{?q}", "a://1?q=2", true),
            ("a://fixed", "a://fixed", true),
        ] {
            assert_eq!(fits(template, uri), expected, "{template} {uri}");
        }
    }
}
