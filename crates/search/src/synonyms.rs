//! Synonyms: words and phrases with the same meaning.

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::sync::{Arc, LazyLock};

use crate::content::ContentWords;
use crate::stem::stem;
use crate::tokenizer::WordKind;

/// The built-in groups.
const TABLE: &str = include_str!("synonyms.txt");

/// A word or a phrase, as the stems of its words.
pub(crate) type SynonymTerm = Vec<String>;

static BUILT_IN: LazyLock<Arc<SynonymTable>> = LazyLock::new(|| {
    let lines = TABLE.lines().map(str::trim);
    let groups = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut table = SynonymTable { others: HashMap::new(), longest: 1 };
    for group in groups {
        table.add(&terms(group));
    }
    Arc::new(table)
});

/// Groups of synonyms: the built-in ones, and those that a config adds.
///
/// ```
/// use std::sync::Arc;
///
/// use consort_search::{SearchLimits, SearchSettings, SynonymTable, ToolDocument, ToolIndex};
///
/// let synonyms = SynonymTable::with_groups(["vendor, supplier"]).expect("two terms");
/// let settings = SearchSettings { synonyms, ..SearchSettings::default() };
/// let tool = ToolDocument { id: "crm.list_suppliers".to_owned(), name: "list_suppliers".to_owned(), ..ToolDocument::default() };
/// let index = ToolIndex::new([tool], settings);
/// assert_eq!(index.search("vendors", 5)[0].id, "crm.list_suppliers");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SynonymTable {
    /// The other terms of the groups of a term, in the order of the table.
    others: HashMap<SynonymTerm, Vec<SynonymTerm>>,
    /// Words of the longest term.
    longest: usize,
}

/// An error: a group with fewer than two different terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidSynonyms {
    group: String,
}

impl fmt::Display for InvalidSynonyms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let group = self.group.escape_debug();
        write!(
            f,
            "`{group}` is no group of synonyms: write at least two different terms, as in `vendor, supplier`"
        )
    }
}

impl Error for InvalidSynonyms {}

impl SynonymTable {
    /// Returns the built-in groups.
    pub fn built_in() -> Arc<Self> {
        Arc::clone(&BUILT_IN)
    }

    /// Returns the built-in groups and others, each a list of terms separated by commas.
    pub fn with_groups<'a>(
        groups: impl IntoIterator<Item = &'a str>,
    ) -> Result<Arc<Self>, InvalidSynonyms> {
        let mut table = Self::built_in();
        for group in groups {
            let terms = terms(group);
            if terms.len() < 2 {
                return Err(InvalidSynonyms { group: group.to_owned() });
            }
            Arc::make_mut(&mut table).add(&terms);
        }
        Ok(table)
    }

    fn add(&mut self, group: &[SynonymTerm]) {
        for term in group {
            self.longest = self.longest.max(term.len());
            let others = self.others.entry(term.clone()).or_default();
            for other in group {
                if other != term && !others.contains(other) {
                    others.push(other.clone());
                }
            }
        }
    }

    /// Returns the synonyms of a word or a phrase, given as its stems.
    pub(crate) fn of(&self, term: &[String]) -> &[SynonymTerm] {
        self.others.get(term).map(Vec::as_slice).unwrap_or_default()
    }

    /// Number of words of the longest phrase.
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }
}

/// Returns the terms of a group, each once.
fn terms(group: &str) -> Vec<SynonymTerm> {
    let mut terms: Vec<SynonymTerm> = Vec::new();
    for term in group.split(',').map(term).filter(|term| !term.is_empty()) {
        if !terms.contains(&term) {
            terms.push(term);
        }
    }
    terms
}

/// Returns the stems of a term. An identifier such as `k8s` is one word.
fn term(text: &str) -> SynonymTerm {
    let text = text.trim();
    let mut words = ContentWords::default();
    words.add(text, usize::MAX);
    let of = |kind| words.iter().filter(move |(_, other)| *other == kind);
    let whole = of(WordKind::Joined).next().filter(|_| !text.contains(char::is_whitespace));
    match whole {
        Some((word, _)) => vec![stem(word).into_owned()],
        None => of(WordKind::Part).map(|(word, _)| stem(word).into_owned()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::english::is_stop_word;

    fn stems(words: &str) -> SynonymTerm {
        words.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_synonym_of_a_term_has_the_term_as_its_synonym() {
        let table = SynonymTable::built_in();
        for (term, others) in &table.others {
            for other in others {
                assert!(table.of(other).contains(term), "{term:?} {other:?}");
            }
        }
        assert_eq!(table.of(&stems("delet"))[..4], ["remov", "eras", "destroi", "drop"].map(stems));
        assert!(table.of(&stems("unheard")).is_empty());
    }

    #[test]
    fn phrases_and_identifiers_are_terms() {
        let table = SynonymTable::built_in();
        assert_eq!(table.of(&stems("pr"))[..2], ["pull request", "merg request"].map(stems));
        assert!(table.of(&stems("pull request")).contains(&stems("pr")));
        assert_eq!(table.of(&stems("k8s")), [stems("kubernet")]);
        assert!(table.of(&stems("电子 子邮 邮件")).contains(&stems("email")));
        assert_eq!(table.longest(), 6);
    }

    #[test]
    fn every_line_of_the_table_is_a_group_without_stop_words() {
        let lines = TABLE.lines().map(str::trim);
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let written: Vec<&str> = line.split(',').map(str::trim).collect();
            assert!(terms(line).len() >= 2, "{line}");
            assert!(written.iter().all(|term| !term.is_empty() && !is_stop_word(term)), "{line}");
        }
    }

    #[test]
    fn groups_of_a_config_are_added_and_one_term_is_no_group() {
        let table = SynonymTable::with_groups(["vendor, supplier", "drop, deposit"]).unwrap();
        assert_eq!(table.of(&stems("vendor")), [stems("supplier")]);
        let drop = table.of(&stems("drop"));
        assert!(drop.contains(&stems("delet")) && drop.contains(&stems("deposit")));
        for group in ["", "vendor", "vendor,", "vendor, vendors", " , "] {
            let error = SynonymTable::with_groups([group]).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!(
                    "`{group}` is no group of synonyms: write at least two different terms, as in \
                     `vendor, supplier`"
                )
            );
        }
    }
}
