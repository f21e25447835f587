//! Names of tools, prompts and resources as clients see them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fs, io};

use consort_core::{CatalogEntry, CatalogRoute, PrimitiveKind, Problem, ServerId};
use consort_files::FileReaders;
use sha2::{Digest, Sha256};

mod record;

use record::StoredNames;
pub use record::{NameRecord, forget_names, read_names};

/// The longest name of a tool that every model provider takes.
const LONGEST: usize = 64;

/// Naming of the items of many servers in one listing.
///
/// A name once assigned is stable: it neither changes nor passes to another item, whatever servers are added or
/// removed, as long as the gateway runs or keeps its names in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NamingScheme {
    /// The server's own name, if no item of another server has it; else `server_name`.
    #[default]
    Auto,
    /// By a template with `{server}` and `{name}`.
    Template(String),
    /// Always the server's own name. Items of two servers with the same name are both left out.
    Never,
}

/// The names assigned so far.
#[derive(Debug)]
pub(crate) struct NameRegistry {
    naming: NamingScheme,
    /// The file that keeps them between runs.
    file: Option<PathBuf>,
    given: HashMap<(PrimitiveKind, CatalogRoute), String>,
    taken: HashMap<(PrimitiveKind, String), CatalogRoute>,
    /// Servers that are no longer configured, and since when, in seconds since 1970.
    removed: BTreeMap<ServerId, u64>,
    /// Time that names stay reserved for a server that is no longer configured.
    pub(crate) grace: Duration,
}

/// Consort's own groups of tools, which count as configured although they are no servers.
const OWN: [&str; 3] = ["agents", "builtin", "consort"];

impl NameRegistry {
    pub(crate) fn new(naming: NamingScheme) -> Self {
        let (given, taken) = (HashMap::new(), HashMap::new());
        Self { naming, file: None, given, taken, removed: BTreeMap::new(), grace: Duration::MAX }
    }

    /// Frees the names of servers that have not been configured for `grace`. A server that returns before that has its
    /// names again.
    pub(crate) fn free_removed(&mut self, configured: &BTreeSet<ServerId>, grace: Duration) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let is_there =
            |server: &ServerId| configured.contains(server) || OWN.contains(&server.as_str());
        let named: BTreeSet<&ServerId> =
            self.given.keys().map(|(_, route)| &route.server).collect();
        let mut removed = self.removed.clone();
        removed.retain(|server, _| !is_there(server) && named.contains(server));
        for server in named.into_iter().filter(|server| !is_there(server)) {
            removed.entry(server.clone()).or_insert(now);
        }
        let is_over = |since: &u64| now.saturating_sub(*since) >= grace.as_secs();
        let freed: BTreeSet<ServerId> = removed
            .iter()
            .filter(|(_, since)| is_over(since))
            .map(|(server, _)| server.clone())
            .collect();
        removed.retain(|server, _| !freed.contains(server));
        self.given.retain(|(_, route), _| !freed.contains(&route.server));
        self.taken.retain(|_, route| !freed.contains(&route.server));
        for server in &freed {
            tracing::info!(%server, "reserved names of a removed server were released");
        }
        if removed == self.removed && freed.is_empty() {
            return;
        }
        self.removed = removed;
        if let Err(error) = self.save() {
            tracing::warn!(%error, "cannot store the assigned names; they may change at the next start");
        }
    }

    /// Loads the names in a file, and keeps them there from now on. A file that cannot be read, or is of another
    /// naming, is ignored.
    pub(crate) fn open(naming: NamingScheme, file: PathBuf) -> Self {
        let mut names = Self::new(naming);
        let written = fs::read(&file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        if let Some(StoredNames { naming, names: written, removed }) = written
            && naming == format!("{:?}", names.naming)
        {
            for (kind, server, original, name) in written {
                let route = CatalogRoute { server, name: original };
                names.taken.insert((kind, name.clone()), route.clone());
                names.given.insert((kind, route), name);
            }
            names.removed = removed;
        }
        names.file = Some(file);
        names
    }

    /// Saves the names, atomically: the file is the old one or the new one, never half of either.
    fn save(&self) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let mut names: Vec<_> = self
            .given
            .iter()
            .map(|((kind, route), name)| {
                (*kind, route.server.clone(), route.name.clone(), name.clone())
            })
            .collect();
        names.sort_unstable();
        let naming = format!("{:?}", self.naming);
        let written = StoredNames { naming, names, removed: self.removed.clone() };
        let bytes = serde_json::to_vec(&written).map_err(io::Error::other)?;
        if let Some(folder) = file.parent() {
            consort_files::create_private_folder(folder)?;
        }
        consort_files::replace(file, &bytes, FileReaders::Owner)
    }

    /// Names every entry of one kind; `None` for one that is left out, with the problem noted.
    pub(crate) fn give(
        &mut self,
        kind: PrimitiveKind,
        entries: &[&CatalogEntry],
        problems: &mut Vec<Problem>,
    ) -> Vec<Option<String>> {
        if self.naming == NamingScheme::Never {
            return as_they_are(kind, entries, problems);
        }
        let mut wanted: HashMap<String, usize> = HashMap::new();
        for entry in entries.iter().filter(|entry| !self.knows(kind, entry)) {
            *wanted.entry(self.first(kind, entry)).or_default() += 1;
        }
        let mut names = Vec::new();
        let known = self.given.len();
        for entry in entries {
            let key = (kind, address(entry));
            if let Some(name) = self.given.get(&key) {
                names.push(Some(name.clone()));
                continue;
            }
            let first = self.first(kind, entry);
            let free = wanted[&first] == 1 && !self.taken.contains_key(&(kind, first.clone()));
            let name = if free { first } else { self.other(kind, entry) };
            if self.taken.contains_key(&(kind, name.clone())) {
                let one = kind.singular();
                let message = format!(
                    "{one} `{}` is omitted: the name `{name}` is already taken",
                    entry.name
                );
                let hint = "rename it with a transform, or choose another `naming`";
                problems.push(Problem::error(message).of(&entry.route.server).hint(hint));
                names.push(None);
                continue;
            }
            self.taken.insert((kind, name.clone()), address(entry));
            self.given.insert(key, name.clone());
            names.push(Some(name));
        }
        if self.given.len() > known
            && let Err(error) = self.save()
        {
            tracing::warn!(%error, "cannot store the assigned names; they may change at the next start");
        }
        names
    }

    /// Returns the item that has a name.
    pub(crate) fn route(&self, kind: PrimitiveKind, name: &str) -> Option<CatalogRoute> {
        self.taken.get(&(kind, name.to_owned())).cloned()
    }

    fn knows(&self, kind: PrimitiveKind, entry: &CatalogEntry) -> bool {
        self.given.contains_key(&(kind, address(entry)))
    }

    /// Returns the preferred name of an entry.
    fn first(&self, kind: PrimitiveKind, entry: &CatalogEntry) -> String {
        match (&self.naming, is_name(kind)) {
            (NamingScheme::Template(template), true) => {
                let name = template
                    .replace("{server}", entry.route.server.as_str())
                    .replace("{name}", &entry.name);
                legal(&name, entry)
            }
            (_, true) => legal(&entry.name, entry),
            (_, false) => entry.name.clone(),
        }
    }

    /// Returns the name of an entry whose preferred name is taken.
    fn other(&self, kind: PrimitiveKind, entry: &CatalogEntry) -> String {
        let server = entry.route.server.as_str();
        if !is_name(kind) {
            return apart(server, &entry.name);
        }
        let name = legal(&format!("{server}_{}", entry.name), entry);
        if self.taken.contains_key(&(kind, name.clone())) { hashed(&name, entry) } else { name }
    }
}

/// Returns the item that a name refers to: its server, and its name before conflicts are resolved.
fn address(entry: &CatalogEntry) -> CatalogRoute {
    CatalogRoute { server: entry.route.server.clone(), name: entry.name.clone() }
}

/// Uses the servers' own names; items of two servers with the same name are left out.
fn as_they_are(
    kind: PrimitiveKind,
    entries: &[&CatalogEntry],
    problems: &mut Vec<Problem>,
) -> Vec<Option<String>> {
    let (mut seen, mut twice) = (HashSet::new(), HashSet::new());
    for entry in entries {
        if !seen.insert(&entry.name) {
            twice.insert(&entry.name);
        }
    }
    let name = |entry: &&CatalogEntry| {
        if !twice.contains(&entry.name) {
            return Some(entry.name.clone());
        }
        let message = format!(
            "{} `{}` is omitted: more than one server provides it",
            kind.singular(),
            entry.name
        );
        problems
            .push(Problem::error(message).of(&entry.route.server).hint("choose another `naming`"));
        None
    };
    entries.iter().map(name).collect()
}

/// Returns true if items of this kind have names; the others have URIs.
fn is_name(kind: PrimitiveKind) -> bool {
    matches!(kind, PrimitiveKind::Tools | PrimitiveKind::Prompts)
}

/// Adapts a name to the characters and the length that every model provider accepts.
fn legal(name: &str, entry: &CatalogEntry) -> String {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !name.is_empty() && name.len() <= LONGEST && name.bytes().all(fits) {
        return name.to_owned();
    }
    let clean: String = name
        .chars()
        .map(
            |character| if character.is_ascii() && fits(character as u8) { character } else { '_' },
        )
        .collect();
    hashed(&clean, entry)
}

/// Appends a hash of the item to the name, the same each time.
fn hashed(name: &str, entry: &CatalogEntry) -> String {
    let digest = Sha256::digest(format!("{}\0{}", entry.route.server, entry.route.name));
    let mut mark = String::new();
    for byte in &digest[..4] {
        let _ = write!(mark, "{byte:02x}");
    }
    let room = LONGEST - mark.len() - 1;
    format!("{}_{mark}", &name[..name.len().min(room)])
}

/// Returns a URI with the server's name: `files+file:///a`, or `ui://files+a` where the scheme must stay.
fn apart(server: &str, uri: &str) -> String {
    if let Some(rest) = uri.strip_prefix("ui://") {
        return format!("ui://{server}+{rest}");
    }
    let scheme: String = server
        .chars()
        .map(|character| if character.is_ascii_alphanumeric() { character } else { '-' })
        .collect();
    format!("{}+{uri}", scheme.to_ascii_lowercase())
}

#[cfg(any(test, fuzzing))]
pub(crate) mod law;

#[cfg(test)]
mod tests {
    use super::law::entry;
    use super::*;

    fn give(names: &mut NameRegistry, kind: PrimitiveKind, things: &[(&str, &str)]) -> Vec<String> {
        let entries: Vec<CatalogEntry> =
            things.iter().map(|(server, name)| entry(server.parse().unwrap(), name)).collect();
        let entries: Vec<&CatalogEntry> = entries.iter().collect();
        let mut problems = Vec::new();
        let given = names.give(kind, &entries, &mut problems);
        given.into_iter().map(|name| name.unwrap_or_else(|| "-".to_owned())).collect()
    }

    #[test]
    fn a_name_of_one_server_only_is_kept() {
        let mut names = NameRegistry::new(NamingScheme::Auto);
        assert_eq!(
            give(
                &mut names,
                PrimitiveKind::Tools,
                &[("a", "search"), ("a", "read"), ("b", "search")]
            ),
            ["a_search", "read", "b_search"]
        );
    }

    #[test]
    fn an_assigned_name_stays_when_servers_are_added() {
        let mut names = NameRegistry::new(NamingScheme::Auto);
        assert_eq!(give(&mut names, PrimitiveKind::Tools, &[("b", "search")]), ["search"]);
        let both = [("a", "search"), ("b", "search")];
        assert_eq!(give(&mut names, PrimitiveKind::Tools, &both), ["a_search", "search"]);
        // Even when its owner is gone, it does not pass to another.
        assert_eq!(give(&mut names, PrimitiveKind::Tools, &[("c", "search")]), ["c_search"]);
        assert_eq!(give(&mut names, PrimitiveKind::Tools, &both), ["a_search", "search"]);
    }

    #[test]
    fn names_are_unique_and_valid_for_every_provider() {
        let mut names = NameRegistry::new(NamingScheme::Auto);
        let long = "x".repeat(100);
        let things = [
            ("a", "b.c"),
            ("a", "b/c"),
            ("a", "Größe"),
            ("a", long.as_str()),
            ("a_b", "c"),
            ("a", "b_c"),
            ("b", "c"),
        ];
        let given = give(&mut names, PrimitiveKind::Tools, &things);
        assert_eq!(given.iter().collect::<HashSet<_>>().len(), given.len(), "{given:?}");
        for name in &given {
            assert!((1..=64).contains(&name.len()), "{name}");
            assert!(
                name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)),
                "{name}"
            );
        }
        let again = give(&mut NameRegistry::new(NamingScheme::Auto), PrimitiveKind::Tools, &things);
        assert_eq!(given, again);
    }

    #[test]
    fn a_name_survives_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("names/whole.json");
        let alone = [("b", "search")];
        assert_eq!(
            give(
                &mut NameRegistry::open(NamingScheme::Auto, file.clone()),
                PrimitiveKind::Tools,
                &alone
            ),
            ["search"]
        );
        let both = [("a", "search"), ("b", "search")];
        let mut again = NameRegistry::open(NamingScheme::Auto, file.clone());
        assert_eq!(give(&mut again, PrimitiveKind::Tools, &both), ["a_search", "search"]);
        let mut other =
            NameRegistry::open(NamingScheme::Template("{server}-{name}".to_owned()), file.clone());
        assert_eq!(give(&mut other, PrimitiveKind::Tools, &alone), ["b-search"]);
        fs::write(&file, "{").unwrap();
        let mut broken = NameRegistry::open(NamingScheme::Auto, file);
        assert_eq!(give(&mut broken, PrimitiveKind::Tools, &alone), ["search"]);
    }

    #[test]
    fn names_of_a_removed_server_are_freed_after_a_grace_and_not_before() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("whole.json");
        let mut names = NameRegistry::open(NamingScheme::Auto, file.clone());
        assert_eq!(give(&mut names, PrimitiveKind::Tools, &[("fs", "read")]), ["read"]);
        let configured: BTreeSet<ServerId> = ["files".parse().unwrap()].into();
        names.free_removed(&configured, Duration::from_hours(1));
        assert_eq!(give(&mut names, PrimitiveKind::Tools, &[("files", "read")]), ["files_read"]);
        let said = read_names(&file).unwrap();
        let why = |name: &str| said.iter().find(|it| it.name == name).unwrap().reason.clone();
        assert_eq!(why("files_read"), "`read` is still reserved for `fs`, which was removed");
        // Whoever comes back in time has its names again, also over a restart.
        let mut again = NameRegistry::open(NamingScheme::Auto, file.clone());
        again.free_removed(
            &["fs".parse().unwrap(), "files".parse().unwrap()].into(),
            Duration::ZERO,
        );
        assert_eq!(give(&mut again, PrimitiveKind::Tools, &[("fs", "read")]), ["read"]);
        again.free_removed(&configured, Duration::ZERO);
        assert_eq!(give(&mut again, PrimitiveKind::Tools, &[("other", "read")]), ["read"]);
        // Somebody who does not want to wait has it named anew.
        assert_eq!(forget_names(&file, &"other".parse().unwrap()).unwrap(), 2);
        let mut anew = NameRegistry::open(NamingScheme::Auto, file);
        assert_eq!(give(&mut anew, PrimitiveKind::Tools, &[("files", "read")]), ["read"]);
    }

    #[test]
    fn a_naming_template_applies_to_every_tool_and_to_no_uri() {
        let mut names = NameRegistry::new(NamingScheme::Template("{server}__{name}".to_owned()));
        assert_eq!(give(&mut names, PrimitiveKind::Tools, &[("a", "search")]), ["a__search"]);
        assert_eq!(
            give(&mut names, PrimitiveKind::Resources, &[("a", "file:///x")]),
            ["file:///x"]
        );
    }

    #[test]
    fn without_naming_a_name_of_two_servers_is_omitted() {
        let mut names = NameRegistry::new(NamingScheme::Never);
        let things = [("a", "search"), ("b", "search"), ("b", "odd.name")];
        assert_eq!(give(&mut names, PrimitiveKind::Tools, &things), ["-", "-", "odd.name"]);
    }

    #[test]
    fn the_same_uri_of_two_servers_is_kept_apart() {
        let mut names = NameRegistry::new(NamingScheme::Auto);
        let things = [("a_1", "file:///x"), ("b", "file:///x"), ("b", "file:///y")];
        assert_eq!(
            give(&mut names, PrimitiveKind::Resources, &things),
            ["a-1+file:///x", "b+file:///x", "file:///y"]
        );
        let apps = [("a", "ui://app"), ("b", "ui://app")];
        assert_eq!(give(&mut names, PrimitiveKind::Resources, &apps), ["ui://a+app", "ui://b+app"]);
    }

    #[test]
    fn hostile_tool_names_get_valid_and_unique_names() {
        let names = testkit::fixtures::naughty_strings();
        let distinct: HashSet<String> = names.into_iter().collect();
        let mut things: Vec<(ServerId, String)> = Vec::new();
        for server in ["a", "b-2"] {
            things.extend(distinct.iter().map(|name| (server.parse().unwrap(), name.clone())));
        }
        things.sort_unstable();
        for naming in [
            NamingScheme::Auto,
            NamingScheme::Template("{server}.{name}".to_owned()),
            NamingScheme::Never,
        ] {
            law::check(&naming, &things, distinct.len() / 2);
        }
    }

    proptest::proptest! {
        /// Whatever servers come, in whatever order: no two things have one name, every name is legal,
        /// and none changes.
        #[test]
        fn naming_is_injective_and_stable_under_adding_servers(
            things in proptest::collection::hash_set(
                ("[ab]{1,2}", "([a-c._]|é){1,3}|x{60,70}"), 1..24,
            ),
            cut in 0_usize..24,
            naming in 0_usize..3,
        ) {
            let naming = [
                NamingScheme::Auto,
                NamingScheme::Template("{server}_{name}".to_owned()),
                NamingScheme::Template("{name}".to_owned()),
            ][naming].clone();
            let things: Vec<_> = things.iter().map(|(server, name)| (server.parse().unwrap(), name.clone())).collect();
            law::check(&naming, &things, cut);
        }
    }
}
