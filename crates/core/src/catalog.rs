//! What is on offer, after all transforms: an immutable snapshot, each entry with its route back.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use consort_wire::{Revision, ShelfKind};
use serde::Serialize;

pub(crate) mod resolve;

use crate::Object;
use crate::name::{ServerId, ToolName};
use crate::problem::Problem;
use crate::target::{SEPARATORS, Target};
use crate::tool::Tool;

/// How a call reaches its server.
#[derive(Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Route {
    /// The server.
    pub server: ServerId,
    /// What the server calls it: a name, a URI or a pattern.
    pub name: String,
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.server, self.name)
    }
}

/// One thing on offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The way to it.
    pub route: Route,
    /// What it is called here, within its server.
    pub name: String,
    /// Its definition, under that name.
    pub definition: Object,
}

impl Entry {
    /// What it is called here, with its server: `server.name`.
    pub fn id(&self) -> String {
        format!("{}.{}", self.route.server, self.name)
    }

    /// The entry as a tool.
    pub fn tool(&self) -> Tool {
        Tool::from_object(self.definition.clone())
    }
}

/// All things of one kind, in order, found by any of their spellings.
#[derive(Clone, Debug, Default)]
pub struct Shelf {
    entries: Vec<Entry>,
    /// The name alone: every server that has it.
    names: HashMap<String, Vec<usize>>,
}

/// What one ensemble offers, as its server wrote it.
#[derive(Clone, Debug, Default)]
pub struct Offer {
    /// Name (or URI, or pattern) and definition, in the server's order.
    pub shelves: BTreeMap<ShelfKind, Vec<(String, Object)>>,
    /// Local tools, not an MCP server.
    pub local: bool,
    /// What the server says of itself; absent until it was reached once.
    pub about: Option<About>,
}

/// What a server says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// The revision it speaks.
    pub revision: Revision,
    /// Its capabilities object.
    pub capabilities: Object,
    /// How to use it, for a model.
    pub instructions: Option<String>,
    /// The number of times that it said that a list changed, by kind, whether the list then differed or not.
    pub list_changes: [u64; 4],
}

impl About {
    /// Whether it offers this: a path into its capabilities, as in `resources.subscribe`.
    pub fn offers(&self, path: &str) -> bool {
        let mut names = path.split('.');
        let mut value = names.next().and_then(|name| self.capabilities.get(name));
        for name in names {
            value = value.and_then(|value| value.to_object()).and_then(|object| object.get(name));
        }
        value.is_some_and(|value| value.boolean() != Some(false))
    }
}

impl Offer {
    fn entries<'a>(
        &'a self,
        kind: ShelfKind,
        server: &'a ServerId,
    ) -> impl Iterator<Item = Entry> + 'a {
        let items = self.shelves.get(&kind).map(Vec::as_slice).unwrap_or_default();
        items.iter().map(|(name, definition)| Entry {
            route: Route { server: server.clone(), name: name.clone() },
            name: name.clone(),
            definition: definition.clone(),
        })
    }
}

impl Shelf {
    /// Every entry: by server, then in the server's order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entries of one server.
    pub fn of<'a>(&'a self, server: &'a ServerId) -> impl Iterator<Item = &'a Entry> {
        self.entries.iter().filter(move |entry| entry.route.server == *server)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entry with this `server.name` or `server:name`.
    pub fn get(&self, id: &str) -> Option<&Entry> {
        let (server, name) = id.split_once(SEPARATORS)?;
        self.of_server(server, name)
    }

    /// The entry that a target leads to.
    pub fn find(&self, target: &Target) -> Option<&Entry> {
        self.of_server(target.server.as_str(), &target.name)
    }

    fn of_server(&self, server: &str, name: &str) -> Option<&Entry> {
        self.named(name).find(|entry| entry.route.server.as_str() == server)
    }

    /// Where the entry of a server with this name is among [`Shelf::entries`].
    pub fn position(&self, server: &ServerId, name: &str) -> Option<usize> {
        let mut named = self.names.get(name)?.iter().copied();
        named.find(|&at| self.entries[at].route.server == *server)
    }

    /// The entries with this name, whatever the server.
    pub fn named(&self, name: &str) -> impl Iterator<Item = &Entry> {
        self.names.get(name).into_iter().flatten().map(|&at| &self.entries[at])
    }

    /// Puts entries together, in their order. Two things of one server under one name are both left
    /// out: whichever was called, it might be the other.
    pub fn new(kind: ShelfKind, entries: Vec<Entry>, problems: &mut Vec<Problem>) -> Self {
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
            if counts[&owner] > 1 {
                let message = format!(
                    "{one} `{}` is left out: `{}` has more than one owner",
                    entry.route.name, entry.name
                );
                let problem = Problem::error(message).of(&owner.0);
                problems.push(problem.hint("give one of them another name"));
            } else if matches!(kind, ShelfKind::Tools | ShelfKind::Prompts)
                && let Err(error) = entry.name.parse::<ToolName>()
            {
                let message = format!("a {one} is left out: {error}");
                problems.push(Problem::error(message).of(&owner.0));
            } else {
                shelf.push(entry);
            }
        }
        shelf
    }

    fn push(&mut self, entry: Entry) {
        let at = self.entries.len();
        self.names.entry(entry.name.clone()).or_default().push(at);
        self.entries.push(entry);
    }
}

/// What is on offer: an immutable snapshot.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// What can be called.
    pub tools: Shelf,
    /// What can be asked.
    pub prompts: Shelf,
    /// What can be read.
    pub resources: Shelf,
    /// Patterns of what can be read.
    pub templates: Shelf,
    /// What was left out or changed, and why.
    pub problems: Vec<Problem>,
    /// Which ensembles are local tools.
    local: Vec<ServerId>,
    /// What each server says of itself, those that were reached once.
    about: BTreeMap<ServerId, About>,
    /// The names that no other server answers to.
    reserved: Arc<BTreeSet<ServerId>>,
    /// Servers that shall be reached and of which nothing is known yet.
    pending: Arc<BTreeSet<ServerId>>,
}

impl Catalog {
    /// Puts together what all ensembles offer. The order is theirs; nothing depends on who answered
    /// first.
    pub fn build(offers: &BTreeMap<ServerId, Offer>) -> Self {
        let mut catalog = Self::default();
        for kind in ShelfKind::ALL {
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

    /// Adds names of configured servers: those that are down, disabled or not started offer nothing, and
    /// still no other server answers to their names. Nothing that is taken away from a catalog later
    /// frees a name.
    pub fn reserve<'a>(&mut self, servers: impl IntoIterator<Item = &'a ServerId>) {
        Arc::make_mut(&mut self.reserved).extend(servers.into_iter().cloned());
    }

    /// Adds servers that shall be reached. Those that were never reached are [pending](Self::pending).
    pub fn expect<'a>(&mut self, servers: impl IntoIterator<Item = &'a ServerId>) {
        let unknown = servers.into_iter().filter(|server| !self.about.contains_key(*server));
        Arc::make_mut(&mut self.pending).extend(unknown.cloned());
    }

    /// The servers that shall be reached and of which nothing is known yet.
    pub fn pending(&self) -> &BTreeSet<ServerId> {
        &self.pending
    }

    /// Takes every entry away. What servers say of themselves stays.
    pub fn clear(&mut self) {
        for kind in ShelfKind::ALL {
            self.set(kind, Vec::new());
        }
    }

    /// Replaces one of its shelves. What cannot be on it is told among the problems.
    pub fn set(&mut self, kind: ShelfKind, entries: Vec<Entry>) {
        let shelf = Shelf::new(kind, entries, &mut self.problems);
        *match kind {
            ShelfKind::Tools => &mut self.tools,
            ShelfKind::Prompts => &mut self.prompts,
            ShelfKind::Resources => &mut self.resources,
            ShelfKind::Templates => &mut self.templates,
        } = shelf;
    }

    /// The names of all configured servers, also of those that are hidden from whoever this catalog is for.
    pub fn reserved(&self) -> &Arc<BTreeSet<ServerId>> {
        &self.reserved
    }

    /// Takes everything away that is of other servers than those wanted. Their names stay reserved.
    pub fn retain(&mut self, wanted: impl Fn(&ServerId) -> bool) {
        for kind in ShelfKind::ALL {
            let kept = self.shelf(kind).entries().iter();
            let kept = kept.filter(|entry| wanted(&entry.route.server)).cloned().collect();
            self.set(kind, kept);
        }
        self.about.retain(|server, _| wanted(server));
        if !self.pending.iter().all(&wanted) {
            Arc::make_mut(&mut self.pending).retain(&wanted);
        }
        self.problems.retain(|problem| problem.server.as_ref().is_none_or(&wanted));
    }

    /// Forgets how a server says it is to be used.
    pub fn silence(&mut self, server: &ServerId) {
        if let Some(about) = self.about.get_mut(server) {
            about.instructions = None;
        }
    }

    /// One of its shelves.
    pub fn shelf(&self, kind: ShelfKind) -> &Shelf {
        match kind {
            ShelfKind::Tools => &self.tools,
            ShelfKind::Prompts => &self.prompts,
            ShelfKind::Resources => &self.resources,
            ShelfKind::Templates => &self.templates,
        }
    }

    /// What each server says of itself, those that were reached once.
    pub fn abouts(&self) -> &BTreeMap<ServerId, About> {
        &self.about
    }

    /// Whether an ensemble is local tools, not an MCP server.
    pub fn is_local(&self, server: &ServerId) -> bool {
        self.local.contains(server)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Json;
    use serde_json::json;

    fn offer(names: &[&str]) -> Offer {
        let tool = |name: &&str| {
            let definition =
                Json::from(json!({ "name": name, "inputSchema": { "type": "object" } }));
            ((*name).to_owned(), definition.to_object().unwrap())
        };
        let tools = names.iter().map(tool).collect();
        Offer { shelves: BTreeMap::from([(ShelfKind::Tools, tools)]), ..Offer::default() }
    }

    fn offers(parts: &[(&str, &[&str])]) -> BTreeMap<ServerId, Offer> {
        parts.iter().map(|(server, names)| (server.parse().unwrap(), offer(names))).collect()
    }

    fn ids(catalog: &Catalog) -> Vec<String> {
        catalog.tools.entries().iter().map(Entry::id).collect()
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
        let told = "web: tool `search` is left out: `search` has more than one owner";
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
