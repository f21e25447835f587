//! Settings and limits of indexing and search.

use std::sync::Arc;

use crate::synonyms::SynonymTable;

/// Settings of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchSettings {
    /// The limits.
    pub limits: SearchLimits,
    /// The synonyms of words.
    pub synonyms: Arc<SynonymTable>,
}

impl Default for SearchSettings {
    fn default() -> Self {
        SearchLimits::default().into()
    }
}

impl From<SearchLimits> for SearchSettings {
    fn from(limits: SearchLimits) -> Self {
        Self { limits, synonyms: SynonymTable::built_in() }
    }
}

/// Limits of indexing and search; input beyond them is ignored without an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchLimits {
    /// Bytes of a search query.
    pub query_bytes: usize,
    /// Words of a search query.
    pub query_words: usize,
    /// Hits of a search.
    pub hits: usize,
    /// Words of each field of a tool: name, description and so on.
    pub field_words: usize,
    /// Parameters of a tool, nested ones included.
    pub parameters: usize,
    /// Choices (`enum`) of a parameter.
    pub choices: usize,
    /// Nesting depth of a parameter.
    pub schema_depth: usize,
}

impl Default for SearchLimits {
    fn default() -> Self {
        Self {
            query_bytes: 4096,
            query_words: 256,
            hits: 100,
            field_words: 2048,
            parameters: 256,
            choices: 32,
            schema_depth: 8,
        }
    }
}
