//! The available tools, prompts and resources: an immutable snapshot, each entry with its route back.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use consort_protocol::{PrimitiveKind, Revision};
use serde::Serialize;

pub(crate) mod resolve;

use crate::Object;
use crate::name::{ServerId, ToolName};
use crate::problem::Problem;
use crate::target::{SEPARATORS, Target};
use crate::tool::Tool;

/// The server of an entry and the server's own name for it.
#[derive(Clone, PartialEq, Eq, Hash, Serialize)]
pub struct CatalogRoute {
    /// The server.
    pub server: ServerId,
    /// The server's name for it: a name, a URI or a URI template.
    pub name: String,
}

impl fmt::Debug for CatalogRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.server, self.name)
    }
}

/// A listed tool, prompt, resource or template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogEntry {
    /// Its server and the server's name for it.
    pub route: CatalogRoute,
    /// Its name here, within its server.
    pub name: String,
    /// Its definition, under that name.
    pub definition: Object,
}

impl CatalogEntry {
    /// Its name here, with its server: `server.name`.
    pub fn id(&self) -> String {
        format!("{}.{}", self.route.server, self.name)
    }

    /// The entry as a tool.
    pub fn tool(&self) -> Tool {
        Tool::from_object(self.definition.clone())
    }
}

/// All entries of one kind, in order, indexed by name.
#[derive(Clone, Debug, Default)]
pub struct CatalogSection {
    entries: Vec<CatalogEntry>,
    /// Indices by name alone: one for every server that has it.
    names: HashMap<String, Vec<usize>>,
}

/// All definitions of one server, as the server wrote them.
#[derive(Clone, Debug, Default)]
pub struct ServerCatalog {
    /// Name (or URI, or URI template) and definition, in the server's order.
    pub lists: BTreeMap<PrimitiveKind, Vec<(String, Object)>>,
    /// True for local tools, false for an MCP server.
    pub local: bool,
    /// The server's description of itself; absent before the first connection.
    pub about: Option<ServerAbout>,
}

/// A server's description of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAbout {
    /// The negotiated protocol revision.
    pub revision: Revision,
    /// Its capabilities object.
    pub capabilities: Object,
    /// Its `instructions` for a model.
    pub instructions: Option<String>,
    /// The number of its list change notifications, by kind, even if the list did not differ.
    pub list_changes: [u64; 4],
}

impl ServerAbout {
    /// Returns true if it has a capability: a path, as in `resources.subscribe`.
    pub fn offers(&self, path: &str) -> bool {
        let mut names = path.split('.');
        let mut value = names.next().and_then(|name| self.capabilities.get(name));
        for name in names {
            value = value.and_then(|value| value.to_object()).and_then(|object| object.get(name));
        }
        value.is_some_and(|value| value.boolean() != Some(false))
    }
}

impl ServerCatalog {
    fn entries<'a>(
        &'a self,
        kind: PrimitiveKind,
        server: &'a ServerId,
    ) -> impl Iterator<Item = CatalogEntry> + 'a {
        let items = self.lists.get(&kind).map(Vec::as_slice).unwrap_or_default();
        items.iter().map(|(name, definition)| CatalogEntry {
            route: CatalogRoute { server: server.clone(), name: name.clone() },
            name: name.clone(),
            definition: definition.clone(),
        })
    }
}

impl CatalogSection {
    /// Every entry: by server, then in the server's order.
    pub fn entries(&self) -> &[CatalogEntry] {
        &self.entries
    }

    /// The entries of one server.
    pub fn of<'a>(&'a self, server: &'a ServerId) -> impl Iterator<Item = &'a CatalogEntry> {
        self.entries.iter().filter(move |entry| entry.route.server == *server)
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the entry with this `server.name` or `server:name`.
    pub fn get(&self, id: &str) -> Option<&CatalogEntry> {
        let (server, name) = id.split_once(SEPARATORS)?;
        self.of_server(server, name)
    }

    /// Returns the entry of a target.
    pub fn find(&self, target: &Target) -> Option<&CatalogEntry> {
        self.of_server(target.server.as_str(), &target.name)
    }

    fn of_server(&self, server: &str, name: &str) -> Option<&CatalogEntry> {
        self.named(name).find(|entry| entry.route.server.as_str() == server)
    }

    /// Returns the index among [`CatalogSection::entries`] of a server's entry with this name.
    pub fn position(&self, server: &ServerId, name: &str) -> Option<usize> {
        let mut named = self.names.get(name)?.iter().copied();
        named.find(|&at| self.entries[at].route.server == *server)
    }

    /// Returns the entries with this name, of any server.
    pub fn named(&self, name: &str) -> impl Iterator<Item = &CatalogEntry> {
        self.names.get(name).into_iter().flatten().map(|&at| &self.entries[at])
    }

    /// Builds a shelf from entries, in their order. Two entries of one server with the same name are both
    /// left out, as a call could reach the wrong one.
    pub fn new(
        kind: PrimitiveKind,
        entries: Vec<CatalogEntry>,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let mut counts: HashMap<(ServerId, String), usize> = HashMap::new();
        for entry in &entries {
            let owner = (entry.route.server.clone(), entry.name.clone());
            *counts.entry(owner).or_default() += 1;
        }
        let one = kind.singular();
        let mut shelf = Self::default();
        for entry in entries {
            let server = entry.route.server.clone();
            let owner = (server, entry.name.clone());
            let count = counts[&owner];
            if count > 1 {
                let message = format!(
                    "{one} `{}` is omitted: {count} {one}s of this server have the name `{}`",
                    entry.route.name, entry.name
                );
                let problem = Problem::error(message).of(&owner.0);
                problems.push(problem.hint("rename one of them on the server"));
            } else if matches!(kind, PrimitiveKind::Tools | PrimitiveKind::Prompts)
                && let Err(error) = entry.name.parse::<ToolName>()
            {
                let message = format!("a {one} is omitted: {error}");
                problems.push(Problem::error(message).of(&owner.0));
            } else {
                shelf.push(entry);
            }
        }
        shelf
    }

    fn push(&mut self, entry: CatalogEntry) {
        let at = self.entries.len();
        self.names.entry(entry.name.clone()).or_default().push(at);
        self.entries.push(entry);
    }
}

/// The available tools, prompts and resources: an immutable snapshot.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// Tools, which can be called.
    pub tools: CatalogSection,
    /// Prompts, which can be rendered.
    pub prompts: CatalogSection,
    /// Resources, which can be read.
    pub resources: CatalogSection,
    /// Resource templates: patterns of resources.
    pub templates: CatalogSection,
    /// Items left out or changed, with the reasons.
    pub problems: Vec<Problem>,
    /// The groups of local tools.
    local: Vec<ServerId>,
    /// Descriptions of the servers that were connected once.
    about: BTreeMap<ServerId, ServerAbout>,
    /// Names of configured servers, which no other server may use.
    reserved: Arc<BTreeSet<ServerId>>,
    /// Servers to connect to that were never reached.
    pending: Arc<BTreeSet<ServerId>>,
}

impl Catalog {
    /// Builds a catalog from all offers, in their order, independent of the order in which servers answered.
    pub fn build(offers: &BTreeMap<ServerId, ServerCatalog>) -> Self {
        let mut catalog = Self::default();
        for kind in PrimitiveKind::ALL {
            let entries = offers.iter().flat_map(|(server, offer)| offer.entries(kind, server));
            catalog.set(kind, entries.collect());
        }
        let local = offers.iter().filter(|(_, offer)| offer.local);
        catalog.local = local.map(|(server, _)| server.clone()).collect();
        let about = offers
            .iter()
            .filter_map(|(server, offer)| offer.about.clone().map(|about| (server.clone(), about)));
        catalog.about = about.collect();
        catalog.reserved = Arc::new(offers.keys().cloned().collect());
        catalog
    }

    /// Reserves names of configured servers: those that are down, disabled or not started offer nothing, and
    /// still no other server answers to their names. Removing entries from a catalog later never frees a
    /// name.
    pub fn reserve<'a>(&mut self, servers: impl IntoIterator<Item = &'a ServerId>) {
        Arc::make_mut(&mut self.reserved).extend(servers.into_iter().cloned());
    }

    /// Adds servers to connect to. Those that were never reached are [pending](Self::pending).
    pub fn expect<'a>(&mut self, servers: impl IntoIterator<Item = &'a ServerId>) {
        let unknown = servers.into_iter().filter(|server| !self.about.contains_key(*server));
        Arc::make_mut(&mut self.pending).extend(unknown.cloned());
    }

    /// The servers to connect to that were never reached.
    pub fn pending(&self) -> &BTreeSet<ServerId> {
        &self.pending
    }

    /// Removes every entry. The servers' descriptions stay.
    pub fn clear(&mut self) {
        for kind in PrimitiveKind::ALL {
            self.set(kind, Vec::new());
        }
    }

    /// Replaces one of its shelves. Entries that are left out are reported as problems.
    pub fn set(&mut self, kind: PrimitiveKind, entries: Vec<CatalogEntry>) {
        let shelf = CatalogSection::new(kind, entries, &mut self.problems);
        *match kind {
            PrimitiveKind::Tools => &mut self.tools,
            PrimitiveKind::Prompts => &mut self.prompts,
            PrimitiveKind::Resources => &mut self.resources,
            PrimitiveKind::Templates => &mut self.templates,
        } = shelf;
    }

    /// The names of all configured servers, including those hidden from this catalog's caller.
    pub fn reserved(&self) -> &Arc<BTreeSet<ServerId>> {
        &self.reserved
    }

    /// Removes the entries of all servers but the wanted ones. Their names stay reserved.
    pub fn retain(&mut self, wanted: impl Fn(&ServerId) -> bool) {
        for kind in PrimitiveKind::ALL {
            let kept = self.section(kind).entries().iter();
            let kept = kept.filter(|entry| wanted(&entry.route.server)).cloned().collect();
            self.set(kind, kept);
        }
        self.about.retain(|server, _| wanted(server));
        if !self.pending.iter().all(&wanted) {
            Arc::make_mut(&mut self.pending).retain(&wanted);
        }
        self.problems.retain(|problem| problem.server.as_ref().is_none_or(&wanted));
    }

    /// Removes the `instructions` of a server.
    pub fn silence(&mut self, server: &ServerId) {
        if let Some(about) = self.about.get_mut(server) {
            about.instructions = None;
        }
    }

    /// Returns one of its shelves.
    pub fn section(&self, kind: PrimitiveKind) -> &CatalogSection {
        match kind {
            PrimitiveKind::Tools => &self.tools,
            PrimitiveKind::Prompts => &self.prompts,
            PrimitiveKind::Resources => &self.resources,
            PrimitiveKind::Templates => &self.templates,
        }
    }

    /// Descriptions of the servers that were connected once.
    pub fn abouts(&self) -> &BTreeMap<ServerId, ServerAbout> {
        &self.about
    }

    /// Returns true for a group of local tools, false for an MCP server.
    pub fn is_local(&self, server: &ServerId) -> bool {
        self.local.contains(server)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Json;
    use serde_json::json;

    fn offer(names: &[&str]) -> ServerCatalog {
        let tool = |name: &&str| {
            let definition =
                Json::from(json!({ "name": name, "inputSchema": { "type": "object" } }));
            ((*name).to_owned(), definition.to_object().unwrap())
        };
        let tools = names.iter().map(tool).collect();
        ServerCatalog {
            lists: BTreeMap::from([(PrimitiveKind::Tools, tools)]),
            ..ServerCatalog::default()
        }
    }

    fn offers(parts: &[(&str, &[&str])]) -> BTreeMap<ServerId, ServerCatalog> {
        parts.iter().map(|(server, names)| (server.parse().unwrap(), offer(names))).collect()
    }

    fn ids(catalog: &Catalog) -> Vec<String> {
        catalog.tools.entries().iter().map(CatalogEntry::id).collect()
    }

    #[test]
    fn the_same_name_on_two_servers_is_two_tools() {
        let catalog =
            Catalog::build(&offers(&[("web", &["search", "fetch"]), ("files", &["search"])]));
        assert_eq!(ids(&catalog), ["files.search", "web.search", "web.fetch"]);
        assert_eq!(catalog.tools.named("search").count(), 2);
        assert_eq!(catalog.tools.get("web:search").unwrap().route.server.as_str(), "web");
        assert!(catalog.problems.is_empty());
    }

    #[test]
    fn two_tools_under_one_name_are_both_left_out_and_named() {
        let catalog = Catalog::build(&offers(&[("web", &["search", "search", "other"])]));
        assert_eq!(ids(&catalog), ["web.other"]);
        let problems: Vec<_> = catalog.problems.iter().map(ToString::to_string).collect();
        let told = "web: tool `search` is omitted: 2 tools of this server have the name `search`";
        assert_eq!(problems, [told, told]);
    }

    #[test]
    fn what_is_of_other_servers_can_be_taken_away() {
        let mut catalog = Catalog::build(&offers(&[("web", &["search"]), ("files", &["search"])]));
        catalog.retain(|server| server.as_str() == "web");
        assert_eq!(ids(&catalog), ["web.search"]);
    }

    #[test]
    fn a_name_nobody_can_see_is_left_out() {
        let catalog = Catalog::build(&offers(&[("web", &["ok", "in\u{200b}visible"])]));
        assert_eq!(ids(&catalog), ["web.ok"]);
        assert_eq!(catalog.problems.len(), 1);
    }
}
