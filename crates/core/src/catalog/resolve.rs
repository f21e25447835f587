//! Resolution of names that people write.

use consort_protocol::PrimitiveKind;

use crate::catalog::{Catalog, CatalogEntry};
use crate::name::ServerId;
use crate::nearest::nearest;
use crate::target::SEPARATORS;

/// The group of local tools that takes precedence when only a tool's name is given.
const BUILTIN: &str = "builtin";

/// The groups of Consort's own tools. Their names are reserved even where a group is not listed.
const OWN: [&str; 3] = ["agents", BUILTIN, "consort"];

/// The name that stands for all MCP servers, unless a server is called that.
const ANY_SERVER: &str = "mcp";

/// A name that does not resolve to one entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnresolvedName {
    /// No entry has this name.
    #[error("unknown {kind} `{name}`")]
    Unknown {
        /// `tool`, `prompt`, …
        kind: &'static str,
        /// As written.
        name: String,
        /// The nearest names.
        nearest: Vec<String>,
    },
    /// Several entries have this name.
    #[error("`{name}` is ambiguous: {}", .candidates.join(", "))]
    Ambiguous {
        /// As written.
        name: String,
        /// All candidates, with their servers.
        candidates: Vec<String>,
    },
}

impl UnresolvedName {
    fn new<'a>(kind: PrimitiveKind, name: &str, known: impl Iterator<Item = &'a str>) -> Self {
        let nearest = nearest(name, known).into_iter().map(str::to_owned).collect();
        Self::Unknown { kind: kind.singular(), name: name.to_owned(), nearest }
    }

    /// Returns advice on how to fix it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unknown { nearest, .. } if nearest.is_empty() => None,
            Self::Unknown { nearest, .. } => {
                let names: Vec<String> = nearest.iter().map(|name| format!("`{name}`")).collect();
                Some(format!("did you mean {}?", names.join(" or ")))
            }
            Self::Ambiguous { .. } => Some("qualify it with its server: `server.name`".to_owned()),
        }
    }
}

impl Catalog {
    /// Resolves a text to a tool: `server.tool` or `server:tool`, a tool's name alone where it is unique
    /// (a `builtin` one takes precedence), or `mcp.tool` for the MCP server that has it.
    ///
    /// A text that begins with the name of a configured server resolves to a tool of that server or
    /// none, even if the server is down or hidden here.
    pub fn resolve(&self, text: &str) -> Result<&CatalogEntry, UnresolvedName> {
        self.resolve_on(PrimitiveKind::Tools, text)
    }

    /// The same for any shelf.
    pub fn resolve_on(
        &self,
        kind: PrimitiveKind,
        text: &str,
    ) -> Result<&CatalogEntry, UnresolvedName> {
        let found = self.candidates(kind, text);
        if let Some(at) = found.iter().position(|entry| entry.route.server.as_str() == BUILTIN) {
            return Ok(found[at]);
        }
        match found.as_slice() {
            [entry] => Ok(entry),
            [] => Err(self.unknown(kind, text)),
            several => Err(UnresolvedName::Ambiguous {
                name: text.to_owned(),
                candidates: several.iter().map(|entry| entry.id()).collect(),
            }),
        }
    }

    /// Returns every entry that a text may name.
    fn candidates(&self, kind: PrimitiveKind, text: &str) -> Vec<&CatalogEntry> {
        let any = text.split_once(SEPARATORS).filter(|(server, _)| *server == ANY_SERVER);
        let any = any.filter(|_| !self.names_server(text));
        let (text, with_local) = any.map_or((text, true), |(_, rest)| (rest, false));
        let shelf = self.section(kind);
        let mut found: Vec<&CatalogEntry> = match text.split_once(SEPARATORS) {
            Some((server, name)) if self.names_server(text) => {
                // A server may put its own name in front: `memo` has `memo://insights`.
                let own = shelf.of_server(server, name).or_else(|| shelf.of_server(server, text));
                own.into_iter().collect()
            }
            _ => shelf.named(text).collect(),
        };
        found.retain(|entry| with_local || !self.is_local(&entry.route.server));
        found
    }

    /// Returns true if the part of a text before its first `.` or `:` is the name of a configured server
    /// or of a group of Consort's own tools, ignoring case. Such a text names nothing of another server.
    pub fn names_server(&self, text: &str) -> bool {
        let Some((server, _)) = text.split_once(SEPARATORS) else { return false };
        let mut reserved = self.reserved.iter().map(ServerId::as_str).chain(OWN);
        reserved.any(|known| known.eq_ignore_ascii_case(server))
    }

    /// Returns the configured server whose name is the part of a text before its first `.` or `:`.
    pub fn named_server(&self, text: &str) -> Option<&ServerId> {
        let (server, _) = text.split_once(SEPARATORS)?;
        self.reserved.iter().find(|known| known.as_str() == server)
    }

    /// Returns the error for an unknown name, with the nearest names. For a text with a server these are
    /// only the named server's: those of another server were not meant, and would distinguish a hidden
    /// server from one that does not exist.
    pub fn unknown(&self, kind: PrimitiveKind, text: &str) -> UnresolvedName {
        let entries = self.section(kind).entries().iter();
        let known: Vec<String> = match text.split_once(SEPARATORS) {
            Some((server, _)) => {
                let own = entries.filter(|entry| entry.route.server.as_str() == server);
                own.map(CatalogEntry::id).collect()
            }
            None => {
                let plain = entries.filter(|entry| !self.names_server(&entry.name));
                plain.map(|entry| entry.name.clone()).collect()
            }
        };
        UnresolvedName::new(kind, text, known.iter().map(String::as_str))
    }

    /// Returns the error for a name that a server lacks, with the server's nearest names.
    pub fn missing(&self, kind: PrimitiveKind, server: &ServerId, name: &str) -> UnresolvedName {
        let known = self.section(kind).of(server).map(|entry| entry.name.as_str());
        UnresolvedName::new(kind, name, known)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::Json;
    use crate::catalog::ServerCatalog;
    use proptest::collection::{btree_map, btree_set};
    use proptest::prelude::*;
    use serde_json::json;

    fn catalog() -> Catalog {
        let offer = |local: bool, names: &[&str]| {
            let tools = names.iter().map(|name| {
                let definition = Json::from(json!({ "name": name })).to_object().unwrap();
                ((*name).to_owned(), definition)
            });
            ServerCatalog {
                lists: BTreeMap::from([(PrimitiveKind::Tools, tools.collect())]),
                local,
                about: None,
            }
        };
        let offers = BTreeMap::from([
            ("builtin".parse().unwrap(), offer(true, &["echo", "timestamp"])),
            ("web".parse().unwrap(), offer(false, &["search", "echo", "get_weather"])),
            ("files".parse().unwrap(), offer(false, &["read", "list", "dotted.name"])),
            ("notes".parse().unwrap(), offer(false, &["list"])),
        ]);
        Catalog::build(&offers)
    }

    #[test]
    fn a_name_leads_to_what_people_mean_by_it() {
        let catalog = catalog();
        for (name, id) in [
            ("builtin.echo", "builtin.echo"),
            ("web.echo", "web.echo"),
            ("web:echo", "web.echo"),
            ("echo", "builtin.echo"),
            ("get_weather", "web.get_weather"),
            ("mcp.search", "web.search"),
            ("mcp.echo", "web.echo"),
            ("dotted.name", "files.dotted.name"),
            ("files.dotted.name", "files.dotted.name"),
        ] {
            assert_eq!(catalog.resolve(name).map(CatalogEntry::id), Ok(id.to_owned()), "{name}");
        }
    }

    #[test]
    fn a_name_with_several_owners_names_them() {
        let catalog = catalog();
        for name in ["list", "mcp.list"] {
            let error = catalog.resolve(name).unwrap_err();
            assert_eq!(error.to_string(), format!("`{name}` is ambiguous: files.list, notes.list"));
            assert_eq!(error.hint().as_deref(), Some("qualify it with its server: `server.name`"));
        }
    }

    #[test]
    fn an_unknown_name_gets_the_nearest() {
        let catalog = catalog();
        let error = catalog.resolve("get_wether").unwrap_err();
        assert_eq!(error.to_string(), "unknown tool `get_wether`");
        assert_eq!(error.hint().as_deref(), Some("did you mean `get_weather`?"));
        assert_eq!(
            catalog.resolve("web.serch").unwrap_err().hint().as_deref(),
            Some("did you mean `web.search`?")
        );
        assert_eq!(catalog.resolve("zzzz").unwrap_err().hint(), None);
        assert!(catalog.resolve("mcp.timestamp").is_err(), "a local tool is on no server");
    }

    fn tools(parts: &[(&str, &[&str])]) -> Catalog {
        let offers = parts.iter().map(|(server, names)| {
            let tool = |name: &&str| {
                let definition = Json::from(json!({ "name": name })).to_object().unwrap();
                ((*name).to_owned(), definition)
            };
            let shelves =
                BTreeMap::from([(PrimitiveKind::Tools, names.iter().map(tool).collect())]);
            (server.parse().unwrap(), ServerCatalog { lists: shelves, ..ServerCatalog::default() })
        });
        Catalog::build(&offers.collect())
    }

    /// Tool names by which a server impersonates another.
    const DISGUISED: [&str; 8] = [
        "bank.transfer",
        "bank:transfer",
        "Bank.transfer",
        "mcp.bank.transfer",
        "mcp.transfer",
        "builtin.echo",
        "agents.ask_a",
        "consort.call_tool",
    ];

    #[test]
    fn a_name_with_a_configured_server_leads_to_no_other_server() {
        let evil: &[&str] = &DISGUISED;
        let absent = {
            let mut catalog = tools(&[("evil", evil)]);
            catalog.reserve(&["bank".parse().unwrap()]);
            catalog
        };
        let hidden = {
            let mut catalog = tools(&[("bank", &["transfer", "balance"]), ("evil", evil)]);
            catalog.retain(|server| server.as_str() != "bank");
            catalog
        };
        let lacking = tools(&[("bank", &["balance"]), ("evil", evil)]);
        for catalog in [absent, hidden, lacking] {
            for text in DISGUISED {
                let error = catalog.resolve(text).unwrap_err();
                assert_eq!(error.to_string(), format!("unknown tool `{text}`"));
                assert_eq!(error.hint(), None, "{text}");
                let full = format!("evil.{text}");
                assert_eq!(catalog.resolve(&full).map(CatalogEntry::id), Ok(full));
            }
        }
    }

    #[test]
    fn a_server_may_put_its_own_name_in_front() {
        let catalog = tools(&[("bank", &["bank.transfer"]), ("evil", &["bank.transfer"])]);
        for text in ["bank.transfer", "bank.bank.transfer", "bank:bank.transfer"] {
            let found = catalog.resolve(text).map(CatalogEntry::id);
            assert_eq!(found, Ok("bank.bank.transfer".to_owned()), "{text}");
        }
        let catalog = tools(&[("bank", &["bank.transfer", "transfer"])]);
        let found = catalog.resolve("bank.transfer").map(CatalogEntry::id);
        assert_eq!(found, Ok("bank.transfer".to_owned()));
    }

    #[test]
    fn a_server_may_be_called_as_all_servers_together_are() {
        let catalog = tools(&[("mcp", &["search"]), ("web", &["search", "fetch"])]);
        assert_eq!(
            catalog.resolve("mcp.search").map(CatalogEntry::id),
            Ok("mcp.search".to_owned())
        );
        assert!(catalog.resolve("mcp.fetch").is_err());
        let catalog = tools(&[("web", &["search"]), ("evil", &["mcp.search"])]);
        assert_eq!(
            catalog.resolve("mcp.search").map(CatalogEntry::id),
            Ok("web.search".to_owned())
        );
    }

    #[test]
    fn a_hidden_server_cannot_be_told_from_one_that_does_not_exist() {
        let mut catalog = tools(&[("bank", &["list_all_accounts"]), ("shop", &["list_all_items"])]);
        catalog.retain(|server| server.as_str() != "bank");
        for tool in ["list_all_accounts", "list_all_items", "x", "shop.list_all_items"] {
            for server in ["bank", "none"] {
                let error = catalog.resolve(&format!("{server}.{tool}")).unwrap_err();
                assert_eq!(error.hint(), None, "{server}.{tool}");
            }
        }
    }

    proptest! {
        /// Whatever servers call their tools, and whichever of them are hidden.
        #[test]
        fn no_server_answers_to_the_name_of_another(
            servers in btree_map(
                "mcp|builtin|consort|[ab]{1,2}",
                (btree_set("((mcp|builtin|[ab]{1,2})[.:]){0,3}[ab]{1,2}", 0..6), any::<bool>()),
                1..6,
            ),
            text in "((mcp|builtin|[ab]{1,2})[.:]){0,3}[ab]{1,2}",
        ) {
            let names: Vec<(&str, Vec<&str>)> = servers
                .iter()
                .map(|(server, (names, _))| (&**server, names.iter().map(|name| &**name).collect()))
                .collect();
            let parts: Vec<_> = names.iter().map(|(server, names)| (*server, &names[..])).collect();
            let mut catalog = tools(&parts);
            catalog.retain(|server| servers[server.as_str()].1);
            let texts = catalog.tools.entries().iter().map(|entry| entry.name.clone());
            for text in texts.chain([text]) {
                let Ok(entry) = catalog.resolve(&text) else { continue };
                let found = entry.route.server.as_str();
                prop_assert!(servers[found].1, "{text} leads to {found}, which is hidden");
                let named = text.split_once(['.', ':']).map(|(server, _)| server);
                let configured = named.filter(|named| servers.contains_key(*named));
                prop_assert!(configured.is_none_or(|named| named == found), "{text} leads to {found}");
            }
        }
    }
}
