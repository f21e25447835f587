//! Properties that hold for all names, for tests and for a fuzz target.

use std::collections::HashSet;

use consort_core::{CatalogEntry, CatalogRoute, Json, Object, PrimitiveKind, ServerId};
use serde_json::json;

use super::{LONGEST, NameRegistry, NamingScheme, address, is_name};

/// An item of a server.
pub(crate) fn entry(server: ServerId, name: &str) -> CatalogEntry {
    let definition = Json::from(json!({ "name": name })).to_object();
    CatalogEntry {
        route: CatalogRoute { server, name: name.to_owned() },
        name: name.to_owned(),
        definition: definition.unwrap_or_else(Object::empty),
    }
}

/// Parses bytes as items of servers, a line `server name` each. The first two bytes choose the naming, and the number
/// of items that are present before the others.
#[cfg(fuzzing)]
pub fn names(bytes: &[u8]) {
    let Some(([naming, cut], text)) = bytes.split_first_chunk() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let (template, text) = text.split_once('\n').unwrap_or_default();
    let naming = match naming % 5 {
        0 => NamingScheme::Auto,
        1 => NamingScheme::Template("{server}_{name}".to_owned()),
        2 => NamingScheme::Template("{name}".to_owned()),
        3 => NamingScheme::Template(template.to_owned()),
        _ => NamingScheme::Never,
    };
    let mut seen = HashSet::new();
    let things: Vec<_> = text
        .lines()
        .filter_map(|line| {
            let (server, name) = line.split_once(' ')?;
            Some((server.parse().ok()?, name.to_owned()))
        })
        .filter(|thing| seen.insert(thing.clone()))
        .collect();
    check(&naming, &things, usize::from(*cut));
}

/// Checks, for any servers in any order: no two items share a name, every name is legal and resolves to its item, none
/// changes, and naming the same items again gives the same names.
pub(crate) fn check(naming: &NamingScheme, things: &[(ServerId, String)], cut: usize) {
    let entries: Vec<CatalogEntry> =
        things.iter().map(|(server, name)| entry(server.clone(), name)).collect();
    let entries: Vec<&CatalogEntry> = entries.iter().collect();
    let first = &entries[..cut.min(entries.len())];
    for kind in [
        PrimitiveKind::Tools,
        PrimitiveKind::Prompts,
        PrimitiveKind::Resources,
        PrimitiveKind::Templates,
    ] {
        let give = |names: &mut NameRegistry, entries: &[&CatalogEntry]| {
            let mut problems = Vec::new();
            let given = names.give(kind, entries, &mut problems);
            let left_out = given.iter().filter(|name| name.is_none()).count();
            assert_eq!(problems.len(), left_out, "what is left out is told");
            given
        };
        let mut names = NameRegistry::new(naming.clone());
        let before = give(&mut names, first);
        let after = give(&mut names, &entries);
        let mut again = NameRegistry::new(naming.clone());
        assert_eq!(
            (give(&mut again, first), give(&mut again, &entries)),
            (before.clone(), after.clone())
        );
        let given: Vec<&String> = after.iter().flatten().collect();
        let distinct: HashSet<&&String> = given.iter().collect();
        assert_eq!(distinct.len(), given.len(), "two things of one name: {after:?}");
        if *naming == NamingScheme::Never {
            continue;
        }
        for (before, after) in before.iter().zip(&after).filter(|(before, _)| before.is_some()) {
            assert_eq!(before, after, "a name changed");
        }
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        for (entry, name) in entries.iter().zip(&after) {
            let Some(name) = name else { continue };
            assert_eq!(names.taken.get(&(kind, name.clone())), Some(&address(entry)));
            if is_name(kind) {
                assert!((1..=LONGEST).contains(&name.len()) && name.bytes().all(fits), "{name}");
            }
        }
    }
}
