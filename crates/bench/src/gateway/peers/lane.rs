//! A route to an answer, as the report names it, and its failures.

use serde::Serialize;

use super::super::field::Via;

/// A contestant, and the transport of the server behind it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Lane {
    pub(super) by: String,
    pub(super) server: Via,
}

/// A failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Failed {
    pub(super) lane: Lane,
    pub(super) at: String,
    pub(super) error: String,
    /// The end of the program's output, if there is any.
    pub(super) last_words: String,
}

/// Maximum length of the output that is repeated.
const WORDS: usize = 400;

/// The end of a text, on one line, without the path of this repository.
pub(super) fn last_words(text: &str) -> String {
    let text = text.replace(root(), "");
    let words: Vec<_> = text.split_whitespace().collect();
    let words = words.join(" ");
    let skipped = words.chars().count().saturating_sub(WORDS);
    words.chars().skip(skipped).collect()
}

/// The folder of this repository, with a slash.
fn root() -> &'static str {
    env!("CARGO_MANIFEST_DIR").trim_end_matches("crates/bench")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_words_are_the_end_on_one_line() {
        assert_eq!(last_words("a\n  b\tc\n"), "a b c");
        assert_eq!(
            last_words(concat!("in ", env!("CARGO_MANIFEST_DIR"), "/x")),
            "in crates/bench/x"
        );
        let long = format!("{}é end", "x".repeat(1000));
        assert_eq!(last_words(&long).chars().count(), WORDS);
        assert!(last_words(&long).ends_with("xé end"));
    }
}
