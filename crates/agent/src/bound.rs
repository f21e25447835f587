//! The tools of a run: chosen once, under names that tell them apart, and the same until it is over.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use consort_core::{Catalog, Entry, Pattern, ServerId, Tool, Unresolved, nearest};
use serde_json::json;

/// The tool by which a model asks a person.
pub const ASK_USER: &str = "ask_user";

/// The tool by which a model reads the rest of a result that was too large.
pub const READ_RESULT: &str = "read_result";

/// The tools of a run. Each has a name of its own and leads to one tool of one server.
#[derive(Clone, Debug, Default)]
pub struct Bound {
    definitions: Arc<[Tool]>,
    /// By the name the model knows: the name in the catalog, `server.tool`, and its server.
    names: HashMap<String, Target>,
    /// Names that were asked for and may not be used.
    pub denied: Vec<String>,
}

/// What a name leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// `server.tool`, as the toolbox knows it.
    pub id: String,
    /// The server, for those who count by server.
    pub server: ServerId,
    /// Where its definition is.
    place: usize,
}

impl Bound {
    /// Everything a catalog has.
    pub fn all(catalog: &Catalog) -> Self {
        Self::of(catalog.tools.entries().iter())
    }

    /// What these names mean: friendly ones, full ones, or patterns such as `files.*`. A name that leads
    /// nowhere is an error, unless `whole`, what there is to those who may do everything, has it: then it
    /// is left out and named in [`denied`](Self::denied).
    pub fn chosen(
        catalog: &Catalog,
        names: &[String],
        whole: Option<&Catalog>,
    ) -> Result<Self, Unresolved> {
        let mut chosen: Vec<&Entry> = Vec::new();
        let mut denied = Vec::new();
        for name in names {
            if name.contains(['*', '?']) {
                let pattern = Pattern::new(name);
                let fits =
                    |entry: &&Entry| pattern.matches(entry.route.server.as_str(), &entry.name);
                let before = chosen.len();
                chosen.extend(catalog.tools.entries().iter().filter(fits));
                if chosen.len() == before {
                    let nearest = Vec::new();
                    return Err(Unresolved::Unknown { kind: "tool", name: name.clone(), nearest });
                }
                continue;
            }
            match catalog.resolve(name) {
                Ok(entry) => chosen.push(entry),
                Err(_) if whole.is_some_and(|whole| whole.resolve(name).is_ok()) => {
                    denied.push(name.clone());
                }
                Err(error) => return Err(error),
            }
        }
        let mut seen = HashSet::new();
        chosen.retain(|entry| seen.insert(entry.id()));
        Ok(Self { denied, ..Self::of(chosen.into_iter()) })
    }

    fn of<'a>(entries: impl Iterator<Item = &'a Entry> + Clone) -> Self {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for entry in entries.clone() {
            *counts.entry(&entry.name).or_default() += 1;
        }
        let mut definitions = Vec::new();
        let mut names = HashMap::new();
        for entry in entries {
            let own = [ASK_USER, READ_RESULT].contains(&entry.name.as_str());
            // One that shares its name is told by its server too.
            let name =
                if counts[&*entry.name] > 1 || own { entry.id() } else { entry.name.clone() };
            definitions.push(renamed(&entry.tool(), &name));
            let server = entry.route.server.clone();
            let place = definitions.len() - 1;
            names.insert(name, Target { id: entry.id(), server, place });
        }
        Self { definitions: definitions.into(), names, denied: Vec::new() }
    }

    /// The definitions, under the names that the model knows.
    pub fn definitions(&self) -> &Arc<[Tool]> {
        &self.definitions
    }

    /// What a name leads to; else those that come nearest.
    pub fn find(&self, name: &str) -> Result<(&Target, &Tool), Vec<String>> {
        let found = self.names.get(name).or_else(|| {
            // A model that writes the server too means the same.
            self.names.values().find(|target| target.id == name)
        });
        match found {
            Some(target) => Ok((target, &self.definitions[target.place])),
            None => Err(self.nearest(name)),
        }
    }

    /// The names that come nearest, with or without their server.
    fn nearest(&self, name: &str) -> Vec<String> {
        let bare =
            |target: &Target| target.id.split_once('.').map_or("", |(_, bare)| bare).to_owned();
        let known: BTreeMap<&String, String> =
            self.names.iter().map(|(name, target)| (name, bare(target))).collect();
        let all = known.iter().flat_map(|(name, bare)| [name.as_str(), bare.as_str()]);
        let near = nearest(name, all.collect::<BTreeSet<_>>());
        let mut found: Vec<String> = Vec::new();
        for near in near {
            let meant = known.iter().filter(|(name, bare)| name.as_str() == near || *bare == near);
            found.extend(meant.map(|(name, _)| (*name).clone()));
        }
        found.dedup();
        found
    }

    /// `server.tool` of each.
    pub fn ids(&self) -> Vec<String> {
        let mut ids: Vec<String> = self.names.values().map(|target| target.id.clone()).collect();
        ids.sort();
        ids
    }
}

/// The same tool under another name.
fn renamed(tool: &Tool, name: &str) -> Tool {
    if tool.name() == name {
        return tool.clone();
    }
    let mut writer = consort_wire::splice::Writer::new();
    writer.text("name", name);
    writer.members(tool.definition(), &["name"]);
    Tool::from_object(writer.finish_object())
}

/// The definition of [`ASK_USER`].
pub(crate) fn ask_user() -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "question": { "type": "string", "description": "What to ask, in a sentence or two." },
            "choices": {
                "type": "array",
                "items": { "type": "string" },
                "description": "Answers to choose from, if there are only some.",
            },
        },
        "required": ["question"],
    });
    let about =
        "Asks the person you work for, and waits for the answer. Use it when only they can know.";
    Tool::new(ASK_USER, about, &schema.into())
}

/// The definition of [`READ_RESULT`].
pub(crate) fn read_result() -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "call": { "type": "string", "description": "The id that the shortened result names." },
            "from": { "type": "integer", "minimum": 0, "description": "The byte to begin at." },
        },
        "required": ["call"],
    });
    Tool::new(
        READ_RESULT,
        "Reads on in a result that was too large to be shown whole.",
        &schema.into(),
    )
}
