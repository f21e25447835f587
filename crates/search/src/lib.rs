//! Keyword search for tools: an index in memory, without a model, deterministic.

mod content;
mod corpus;
mod cyrillic;
mod document;
mod english;
mod index;
mod limits;
mod phrase;
mod postings;
mod query;
mod rank;
mod stem;
mod synonyms;
mod tokenizer;
mod typo;

pub use document::ToolDocument;
pub use english::is_stop_word;
pub use index::{SearchHit, ToolIndex};
pub use limits::{SearchLimits, SearchSettings};
pub use stem::stem;
pub use synonyms::{InvalidSynonyms, SynonymTable};
