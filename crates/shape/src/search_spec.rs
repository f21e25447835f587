//! `[consort.search]`: settings of tool search as they are written in a config.

use std::sync::Arc;

use consort_search::SynonymTable;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of tool search.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SearchSpec {
    /// Groups of synonyms beside the built-in ones, each a string of terms separated by commas, such as
    /// `"vendor, supplier"`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub synonyms: Vec<String>,
}

impl SearchSpec {
    /// Compiles the synonyms, or returns an error that says what is wrong with them.
    pub fn compile(&self) -> Result<Arc<SynonymTable>, String> {
        let groups = self.synonyms.iter().map(String::as_str);
        SynonymTable::with_groups(groups).map_err(|error| format!("`synonyms`: {error}"))
    }

    /// Returns the synonyms of a config, whose errors were reported when it was read.
    pub fn synonyms_of(spec: Option<&Self>) -> Arc<SynonymTable> {
        spec.and_then(|spec| spec.compile().ok()).unwrap_or_else(SynonymTable::built_in)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_added_to_the_built_in_ones_and_a_single_term_is_refused() {
        let spec = |groups: &[&str]| SearchSpec {
            synonyms: groups.iter().map(|&group| group.to_owned()).collect(),
        };
        assert_eq!(spec(&[]).compile(), Ok(SynonymTable::built_in()));
        let own = spec(&["vendor, supplier"]);
        assert_eq!(SearchSpec::synonyms_of(Some(&own)), own.compile().unwrap());
        assert_ne!(own.compile().unwrap(), SynonymTable::built_in());
        assert_eq!(SearchSpec::synonyms_of(None), SynonymTable::built_in());
        assert_eq!(
            spec(&["vendor"]).compile().unwrap_err(),
            "`synonyms`: `vendor` is no group of synonyms: write at least two different terms, as in `vendor, \
             supplier`"
        );
    }
}
