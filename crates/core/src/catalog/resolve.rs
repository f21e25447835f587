//! From what people write to what is meant.

use consort_wire::ShelfKind;

use crate::catalog::{Catalog, Entry};
use crate::nearest::nearest;

/// The ensemble whose tools win when only their name is given.
const BUILTIN: &str = "builtin";

/// The name that stands for every MCP server together.
const ANY_SERVER: &str = "mcp.";

/// A name that does not lead to one thing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unresolved {
    /// Nothing is called that.
    #[error("unknown {kind} `{name}`")]
    Unknown {
        /// `tool`, `prompt`, …
        kind: &'static str,
        /// As written.
        name: String,
        /// What comes nearest.
        nearest: Vec<String>,
    },
    /// Several things are called that.
    #[error("`{name}` is ambiguous: {}", .candidates.join(", "))]
    Ambiguous {
        /// As written.
        name: String,
        /// All that it could be, in full.
        candidates: Vec<String>,
    },
}

impl Unresolved {
    /// What to do next.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unknown { nearest, .. } if nearest.is_empty() => None,
            Self::Unknown { nearest, .. } => {
                let names: Vec<String> = nearest.iter().map(|name| format!("`{name}`")).collect();
                Some(format!("did you mean {}?", names.join(" or ")))
            }
            Self::Ambiguous { .. } => Some("write it with its server".to_owned()),
        }
    }
}

impl Catalog {
    /// The tool that a name means: `server.tool` or `server:tool`, a tool's name alone where it is the
    /// only one (a `builtin` one wins), or `mcp.tool` for whichever MCP server has it.
    pub fn resolve(&self, name: &str) -> Result<&Entry, Unresolved> {
        self.resolve_on(ShelfKind::Tools, name)
    }

    /// The same for any shelf.
    pub fn resolve_on(&self, kind: ShelfKind, name: &str) -> Result<&Entry, Unresolved> {
        let shelf = self.shelf(kind);
        if let Some(entry) = shelf.get(name) {
            return Ok(entry);
        }
        let mut found: Vec<&Entry> = shelf.named(name).collect();
        if let Some(at) = found.iter().position(|entry| entry.route.server.as_str() == BUILTIN) {
            return Ok(found[at]);
        }
        if found.is_empty()
            && let Some(bare) = name.strip_prefix(ANY_SERVER)
        {
            found = shelf.named(bare).filter(|entry| !self.is_local(&entry.route.server)).collect();
        }
        match found.as_slice() {
            [entry] => Ok(entry),
            [] => Err(self.unknown(kind, name)),
            several => Err(Unresolved::Ambiguous {
                name: name.to_owned(),
                candidates: several.iter().map(|entry| entry.id()).collect(),
            }),
        }
    }

    /// That nothing on a shelf is called this, with what comes nearest.
    pub fn unknown(&self, kind: ShelfKind, name: &str) -> Unresolved {
        let entries = self.shelf(kind).entries();
        let ids: Vec<String> = entries.iter().map(Entry::id).collect();
        let near = if name.contains(['.', ':']) {
            nearest(name, ids.iter().map(String::as_str))
        } else {
            nearest(name, entries.iter().map(|entry| entry.name.as_str()))
        };
        let nearest = near.into_iter().map(str::to_owned).collect();
        Unresolved::Unknown { kind: kind.singular(), name: name.to_owned(), nearest }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::Json;
    use crate::catalog::Offer;
    use serde_json::json;

    fn catalog() -> Catalog {
        let offer = |local: bool, names: &[&str]| {
            let tools = names.iter().map(|name| {
                let definition = Json::from(json!({ "name": name })).to_object().unwrap();
                ((*name).to_owned(), definition)
            });
            Offer {
                shelves: BTreeMap::from([(ShelfKind::Tools, tools.collect())]),
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
            assert_eq!(catalog.resolve(name).map(Entry::id), Ok(id.to_owned()), "{name}");
        }
    }

    #[test]
    fn a_name_with_several_owners_names_them() {
        let catalog = catalog();
        for name in ["list", "mcp.list"] {
            let error = catalog.resolve(name).unwrap_err();
            assert_eq!(error.to_string(), format!("`{name}` is ambiguous: files.list, notes.list"));
            assert_eq!(error.hint().as_deref(), Some("write it with its server"));
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
}
