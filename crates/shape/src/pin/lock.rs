//! Approved definitions, and differences between them and the current ones.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use consort_core::{
    Catalog, CatalogEntry, CatalogRoute, Json, Object, PrimitiveKind, Problem, ServerAbout,
    ServerCatalog, ServerId,
};
use serde::Serialize;

use super::difference::{LockDifference, compare};
use super::{Pin, ServerLaunch};

/// Kinds of items that are pinned. Resources are not: they are data, and come and go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PinnedKind {
    /// The server's `instructions` for a model.
    Instructions,
    /// A prompt's definition.
    Prompt,
    /// A tool's definition.
    Tool,
}

impl PinnedKind {
    /// Returns the kind of the items of a shelf, `None` if they are not pinned.
    pub fn of(shelf: PrimitiveKind) -> Option<Self> {
        match shelf {
            PrimitiveKind::Tools => Some(Self::Tool),
            PrimitiveKind::Prompts => Some(Self::Prompt),
            PrimitiveKind::Resources | PrimitiveKind::Templates => None,
        }
    }
}

impl fmt::Display for PinnedKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Instructions => "instructions",
            Self::Prompt => "prompt",
            Self::Tool => "tool",
        })
    }
}

/// A definition with its pin.
#[derive(Clone, Serialize)]
pub struct PinnedItem {
    pin: Pin,
    definition: Json,
}

impl PinnedItem {
    /// The definition as its server wrote it.
    pub fn new(definition: Json) -> Self {
        Self { pin: Pin::of(&definition), definition }
    }

    /// The pin of the definition.
    pub fn pin(&self) -> Pin {
        self.pin
    }

    /// The definition.
    pub fn definition(&self) -> &Json {
        &self.definition
    }
}

/// Two definitions are the same if their pins are.
impl PartialEq for PinnedItem {
    fn eq(&self, other: &Self) -> bool {
        self.pin == other.pin
    }
}

impl Eq for PinnedItem {}

impl fmt::Debug for PinnedItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.pin.short(), self.definition)
    }
}

/// The approved state of one server: its launch settings and its definitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockedServer {
    /// Launch settings.
    pub launch: ServerLaunch,
    /// Definitions by kind and the server's own name; the instructions have an empty name.
    pub items: BTreeMap<(PinnedKind, String), PinnedItem>,
}

impl LockedServer {
    /// Creates it from all definitions of an offer, as its server wrote them.
    pub fn from_offer(launch: ServerLaunch, offer: &ServerCatalog) -> Self {
        let shelves =
            offer.lists.iter().filter_map(|(kind, items)| Some((PinnedKind::of(*kind)?, items)));
        let items = shelves.flat_map(|(kind, items)| {
            items.iter().map(move |(name, definition)| (kind, name.as_str(), definition))
        });
        Self::gather(launch, items, offer.about.as_ref())
    }

    /// Creates it from a catalog, which must have been built without transforms: transformed
    /// definitions are not the server's own.
    pub fn from_catalog(launch: ServerLaunch, server: &ServerId, catalog: &Catalog) -> Self {
        let shelves = [PrimitiveKind::Tools, PrimitiveKind::Prompts];
        let items = shelves.into_iter().filter_map(|shelf| Some((PinnedKind::of(shelf)?, shelf)));
        let items = items.flat_map(|(kind, shelf)| {
            let entries = catalog.section(shelf).of(server);
            entries.map(move |entry| (kind, entry.route.name.as_str(), &entry.definition))
        });
        Self::gather(launch, items, catalog.abouts().get(server))
    }

    fn gather<'a>(
        launch: ServerLaunch,
        items: impl Iterator<Item = (PinnedKind, &'a str, &'a Object)>,
        about: Option<&ServerAbout>,
    ) -> Self {
        let mut items: BTreeMap<_, _> = items
            .map(|(kind, name, definition)| {
                ((kind, name.to_owned()), PinnedItem::new(definition.json().detached()))
            })
            .collect();
        if let Some(text) = about.and_then(|about| about.instructions.as_deref()) {
            items.insert(
                (PinnedKind::Instructions, String::new()),
                PinnedItem::new(Json::string(text)),
            );
        }
        Self { launch, items }
    }
}

/// The approved state of all servers: the content of `consort.lock`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PinLock {
    /// By server.
    pub servers: BTreeMap<ServerId, LockedServer>,
}

/// Reason for which an item is withheld until it is approved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "withheld", rename_all = "snake_case")]
pub enum WithholdReason {
    /// The server is not approved.
    #[error("the server is not in the lock")]
    ServerNew,
    /// The server's launch settings differ from the approved ones.
    #[error("the server's command or URL differs from the lock")]
    ServerChanged,
    /// The item is not approved.
    #[error("it is not in the lock")]
    New,
    /// The definition differs from the approved one.
    #[error("its definition differs from the lock ({}, now {})", .from.short(), .to.short())]
    Changed {
        /// The approved pin.
        from: Pin,
        /// The current pin.
        to: Pin,
    },
}

impl PinLock {
    /// Compares `now`, the current definitions, with the approved ones: by server, then by kind and
    /// name. `silent` servers are skipped, as their current definitions are unknown.
    pub fn compare(&self, now: &Self, silent: &BTreeSet<ServerId>) -> Vec<LockDifference> {
        let all: BTreeSet<&ServerId> = self.servers.keys().chain(now.servers.keys()).collect();
        let mut differences = Vec::new();
        for server in all.into_iter().filter(|server| !silent.contains(*server)) {
            match (self.servers.get(server), now.servers.get(server)) {
                (Some(old), Some(new)) => compare(server, old, new, &mut differences),
                (None, Some(_)) => {
                    differences.push(LockDifference::ServerNew { server: server.clone() });
                }
                _ => differences.push(LockDifference::ServerGone { server: server.clone() }),
            }
        }
        differences
    }

    /// Approves the current definitions of some servers; a server absent from `now` is removed.
    pub fn update<'a>(&mut self, now: &Self, servers: impl IntoIterator<Item = &'a ServerId>) {
        for server in servers {
            match now.servers.get(server) {
                Some(locked) => self.servers.insert(server.clone(), locked.clone()),
                None => self.servers.remove(server),
            };
        }
    }

    /// Returns the reason for which a server must not be started or used, `None` if it may be.
    pub fn withheld_server(
        &self,
        server: &ServerId,
        launch: &ServerLaunch,
    ) -> Option<WithholdReason> {
        match self.servers.get(server) {
            None => Some(WithholdReason::ServerNew),
            Some(locked) if locked.launch != *launch => Some(WithholdReason::ServerChanged),
            Some(_) => None,
        }
    }

    /// Returns the reason for which a definition is withheld, `None` if it is the approved one. `name`
    /// and `definition` are the server's own, before any transform.
    pub fn withheld(
        &self,
        server: &ServerId,
        kind: PinnedKind,
        name: &str,
        definition: &Json,
    ) -> Option<WithholdReason> {
        let Some(locked) = self.servers.get(server) else { return Some(WithholdReason::ServerNew) };
        let Some(item) = locked.items.get(&(kind, name.to_owned())) else {
            return Some(WithholdReason::New);
        };
        let (from, to) = (item.pin, Pin::of(definition));
        (from != to).then_some(WithholdReason::Changed { from, to })
    }

    /// Returns a catalog without its withheld items, with a problem for each of them. Local tools stay,
    /// as they are Consort's own; resources stay if the server does, as they are data. The catalog must
    /// hold the servers' own definitions, before any transform.
    pub fn admit(&self, from: &Catalog) -> Catalog {
        let mut catalog = from.clone();
        let mut problems = Vec::new();
        for kind in PrimitiveKind::ALL {
            let admitted = |entry: &&CatalogEntry| {
                let CatalogEntry { route: CatalogRoute { server, name }, definition, .. } = entry;
                if from.is_local(server) {
                    return true;
                }
                let Some(kind) = PinnedKind::of(kind) else {
                    return self.servers.contains_key(server);
                };
                let reason = self.withheld(server, kind, name, definition.json());
                let told = |reason: &WithholdReason| {
                    withholding(server, &describe_item(kind, name), reason)
                };
                problems.extend(reason.iter().map(told));
                reason.is_none()
            };
            let entries = from.section(kind).entries().iter();
            let admitted: Vec<CatalogEntry> = entries.filter(admitted).cloned().collect();
            catalog.set(kind, admitted);
        }
        for (server, about) in from.abouts() {
            let Some(text) = &about.instructions else { continue };
            if let Some(reason) =
                self.withheld(server, PinnedKind::Instructions, "", &Json::string(text))
            {
                catalog.silence(server);
                problems.push(withholding(
                    server,
                    &describe_item(PinnedKind::Instructions, ""),
                    &reason,
                ));
            }
        }
        catalog.problems.extend(problems);
        catalog
    }
}

fn withholding(server: &ServerId, what: &str, why: &WithholdReason) -> Problem {
    let hint = format!(
        "review the change with `consort lock --check`, approve it with `consort lock --update {server}`"
    );
    Problem::warning(format!("{what} is blocked: {why}")).of(server).hint(hint)
}

/// Returns the display name of an item.
pub(super) fn describe_item(kind: PinnedKind, name: &str) -> String {
    match kind {
        PinnedKind::Instructions => "`instructions`".to_owned(),
        _ => format!("{kind} `{}`", crate::visible_text::excerpt(name, 128)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_core::Revision;
    use serde_json::{Value, json};

    fn id(name: &str) -> ServerId {
        name.parse().unwrap()
    }

    fn launch(url: &str) -> ServerLaunch {
        ServerLaunch::Address {
            url: url.to_owned(),
            headers: BTreeSet::new(),
            transport: "http".to_owned(),
        }
    }

    fn offer(tools: &[Value], instructions: Option<&str>) -> ServerCatalog {
        let tools = tools.iter().map(|tool| {
            let name = tool["name"].as_str().unwrap().to_owned();
            (name, Json::from(tool.clone()).to_object().unwrap())
        });
        let about = ServerAbout {
            revision: Revision::ALL[0],
            capabilities: Object::empty(),
            instructions: instructions.map(str::to_owned),
            list_changes: [0; 4],
        };
        let resource = Json::from(json!({ "uri": "x:y" })).to_object().unwrap();
        let shelves = [
            (PrimitiveKind::Tools, tools.collect()),
            (PrimitiveKind::Resources, vec![("x:y".to_owned(), resource)]),
        ];
        ServerCatalog { lists: shelves.into(), local: false, about: Some(about) }
    }

    fn lock(servers: &[(&str, &str, ServerCatalog)]) -> PinLock {
        let servers = servers
            .iter()
            .map(|(name, url, offer)| (id(name), LockedServer::from_offer(launch(url), offer)));
        PinLock { servers: servers.collect() }
    }

    fn catalog(server: &str, offer: ServerCatalog) -> Catalog {
        Catalog::build(&[(id(server), offer)].into())
    }

    fn tool(name: &str, description: &str) -> Value {
        json!({ "name": name, "description": description })
    }

    #[test]
    fn every_way_to_differ_has_its_name() {
        let old = lock(&[
            (
                "a",
                "https://a/",
                offer(&[tool("same", "1"), tool("other", "1"), tool("old", "1")], Some("x")),
            ),
            ("b", "https://b/", offer(&[], None)),
            ("gone", "https://c/", offer(&[], None)),
            ("down", "https://d/", offer(&[tool("t", "1")], None)),
        ]);
        let now = lock(&[
            (
                "a",
                "https://a/",
                offer(&[tool("new", "1"), tool("other", "2"), tool("same", "1")], Some("y")),
            ),
            ("b", "https://elsewhere/", offer(&[], None)),
            ("new", "https://n/", offer(&[tool("t", "1")], None)),
        ]);
        let told: Vec<String> =
            old.compare(&now, &[id("down")].into()).iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "a: `instructions` changed",
                "a: tool `new` is new",
                "a: tool `old` was removed",
                "a: tool `other` changed",
                "b: its command or URL changed",
                "gone: the server is no longer configured",
                "new: the server is not in the lock",
            ]
        );
        assert_eq!(old.compare(&old, &BTreeSet::new()), []);
    }

    #[test]
    fn only_what_is_named_is_agreed_to() {
        let old = lock(&[("a", "u", offer(&[tool("t", "1")], None)), ("b", "u", offer(&[], None))]);
        let now = lock(&[("a", "u", offer(&[tool("t", "2")], None)), ("c", "u", offer(&[], None))]);
        let mut updated = old.clone();
        updated.update(&now, [&id("a")]);
        assert_eq!(updated.servers[&id("a")], now.servers[&id("a")]);
        assert_eq!(updated.servers.keys().collect::<Vec<_>>(), [&id("a"), &id("b")]);
        updated.update(&now, [&id("b"), &id("c")]);
        assert_eq!(updated, now);
    }

    #[test]
    fn what_nobody_agreed_to_is_withheld_and_the_rest_works_on() {
        let agreed =
            lock(&[("a", "u", offer(&[tool("same", "1"), tool("other", "1")], Some("x")))]);
        let now = offer(&[tool("same", "1"), tool("other", "2"), tool("new", "1")], Some("y"));
        let admitted = agreed.admit(&catalog("a", now));
        let names: Vec<&str> =
            admitted.tools.entries().iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["same"]);
        assert_eq!(admitted.resources.len(), 1);
        assert_eq!(admitted.abouts()[&id("a")].instructions, None);
        let problems = &admitted.problems;
        let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
        let pin = |tool: Value| Pin::of(&Json::from(tool)).short();
        assert_eq!(
            told,
            [
                format!(
                    "a: tool `other` is blocked: its definition differs from the lock ({}, now {})",
                    pin(tool("other", "1")),
                    pin(tool("other", "2")),
                ),
                "a: tool `new` is blocked: it is not in the lock".to_owned(),
                format!(
                    "a: `instructions` is blocked: its definition differs from the lock ({}, now {})",
                    pin(json!("x")),
                    pin(json!("y")),
                ),
            ]
        );
        let same = agreed.admit(&catalog("a", offer(&[tool("same", "1")], Some("x"))));
        assert_eq!(same.abouts()[&id("a")].instructions.as_deref(), Some("x"));
        assert!(same.problems.is_empty());
    }

    #[test]
    fn a_server_nobody_agreed_to_offers_nothing_and_local_tools_are_ours() {
        let now = offer(&[tool("t", "1")], Some("x"));
        let admitted = PinLock::default().admit(&catalog("a", now.clone()));
        assert!(admitted.tools.is_empty() && admitted.resources.is_empty());
        assert_eq!(admitted.abouts()[&id("a")].instructions, None);
        assert_eq!(admitted.problems.len(), 2);
        let local = ServerCatalog { local: true, about: None, ..now };
        assert_eq!(PinLock::default().admit(&catalog("builtin", local)).tools.len(), 1);
    }

    #[test]
    fn a_server_that_is_started_otherwise_is_withheld_as_a_whole() {
        let agreed = lock(&[("a", "https://a/", offer(&[], None))]);
        let why = |server, url| agreed.withheld_server(&id(server), &launch(url));
        assert_eq!(why("a", "https://a/"), None);
        assert_eq!(why("a", "https://b/"), Some(WithholdReason::ServerChanged));
        assert_eq!(why("b", "https://b/"), Some(WithholdReason::ServerNew));
    }

    #[test]
    fn what_the_config_makes_of_a_name_does_not_matter() {
        let tools = offer(&[tool("t", "1")], Some("x"));
        let offers = [(id("a"), tools.clone())].into();
        let catalog = Catalog::build(&offers);
        assert_eq!(
            LockedServer::from_catalog(launch("u"), &id("a"), &catalog),
            LockedServer::from_offer(launch("u"), &tools)
        );
    }
}
