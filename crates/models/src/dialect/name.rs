//! Tool names that a provider accepts.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use super::ToolDialect;

/// Returns the name if the provider accepts it, else the nearest legal one, with a deterministic suffix
/// that distinguishes it from similar names.
pub fn legal_name(dialect: ToolDialect, name: &str) -> Cow<'_, str> {
    if is_legal(dialect, name) {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(with_hash(dialect, name, 0))
    }
}

/// Returns a legal name for each name, in their order and all distinct: `names(…)[n]` stands for
/// `given[n]`.
pub fn assign_names(dialect: ToolDialect, given: &[&str]) -> Vec<String> {
    // A legal name stays, even if an earlier name would be changed into it.
    let mut kept: HashSet<&str> =
        given.iter().copied().filter(|name| is_legal(dialect, name)).collect();
    let mut taken: HashSet<String> = HashSet::new();
    let mut names = Vec::with_capacity(given.len());
    for name in given {
        let is_first = kept.remove(name);
        let mut tries = (0..).map(|again| with_hash(dialect, name, again));
        let free = |name: &String| !kept.contains(name.as_str()) && !taken.contains(name);
        let name = if is_first {
            (*name).to_owned()
        } else {
            tries.find(free).expect("some hash is free")
        };
        taken.insert(name.clone());
        names.push(name);
    }
    names
}

/// Returns true if a provider accepts the name.
pub(super) fn is_legal(dialect: ToolDialect, name: &str) -> bool {
    (1..=longest(dialect)).contains(&name.len())
        && name.chars().all(|one| fits(dialect, one))
        && starts(dialect, name)
}

fn longest(dialect: ToolDialect) -> usize {
    if dialect == ToolDialect::Anthropic { 128 } else { 64 }
}

fn fits(dialect: ToolDialect, one: char) -> bool {
    one.is_ascii_alphanumeric()
        || matches!(one, '_' | '-')
        || dialect == ToolDialect::Gemini && matches!(one, '.' | ':')
}

fn starts(dialect: ToolDialect, name: &str) -> bool {
    dialect != ToolDialect::Gemini
        || name.starts_with(|one: char| one.is_ascii_alphabetic() || one == '_')
}

/// Returns the name with illegal characters replaced, and a digest of the original.
fn with_hash(dialect: ToolDialect, name: &str, again: u32) -> String {
    let digest = match again {
        0 => Sha256::digest(name),
        _ => Sha256::digest(format!("{name}\0{again}")),
    };
    let mut mark = String::from("_");
    for byte in &digest[..4] {
        let _ = write!(mark, "{byte:02x}");
    }
    let mut legal = String::from(if starts(dialect, name) || name.is_empty() { "" } else { "_" });
    let room = longest(dialect) - mark.len();
    let clean = name.chars().map(|one| if fits(dialect, one) { one } else { '_' });
    legal.extend(clean.take(room - legal.len()));
    legal + &mark
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_that_fits_is_kept_and_another_is_marked() {
        assert_eq!(legal_name(ToolDialect::OpenAiChat, "get_weather"), "get_weather");
        assert_eq!(legal_name(ToolDialect::Gemini, "web:get.weather"), "web:get.weather");
        assert_eq!(legal_name(ToolDialect::OpenAiChat, "web.get"), "web_get_9f7983e4");
        assert_eq!(legal_name(ToolDialect::Gemini, "1st"), "_1st_e01ddf65");
        assert_eq!(legal_name(ToolDialect::Anthropic, ""), "_e3b0c442");
        assert_eq!(legal_name(ToolDialect::Anthropic, &"x".repeat(128)).len(), 128);
        assert_eq!(legal_name(ToolDialect::OpenAiChat, &"x".repeat(65)).len(), 64);
    }

    #[test]
    fn names_that_look_alike_are_told_apart_and_a_legal_one_is_never_taken() {
        let given = ["a.b", "a/b", "a_b", "a.b", "a_b"];
        let legal = assign_names(ToolDialect::OpenAiChat, &given);
        assert_eq!(legal[2], "a_b");
        assert_eq!(legal.iter().collect::<HashSet<_>>().len(), given.len(), "{legal:?}");
        let squatter = legal_name(ToolDialect::OpenAiChat, "a.b");
        let legal = assign_names(ToolDialect::OpenAiChat, &["a.b", &squatter]);
        assert_eq!(legal[1], squatter);
        assert_ne!(legal[0], squatter);
    }

    proptest! {
        #[test]
        fn every_name_becomes_a_legal_one_of_its_own(
            given in prop::collection::vec(prop_oneof!["[a-z.:/_]{0,3}", any::<String>(), "[a-zé]{60,140}"], 0..30),
        ) {
            let given: Vec<&str> = given.iter().map(String::as_str).collect();
            for dialect in ToolDialect::ALL {
                let legal = assign_names(dialect, &given);
                prop_assert!(legal.iter().all(|name| is_legal(dialect, name)), "{:?}", legal);
                prop_assert_eq!(legal.iter().collect::<HashSet<_>>().len(), given.len());
                for name in &given {
                    let once = legal_name(dialect, name);
                    prop_assert!(is_legal(dialect, &once));
                    prop_assert_eq!(legal_name(dialect, &once), once.as_ref());
                }
            }
        }
    }
}
