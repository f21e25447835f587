//! Keyword search for tools: an index in memory, without a model, deterministic.

mod content;
mod corpus;
mod document;
mod english;
mod index;
mod limits;
mod postings;
mod query;
mod rank;
mod stem;
mod typo;
mod words;

pub use document::Document;
pub use english::is_stop;
pub use index::{Hit, Index};
pub use limits::Limits;
pub use stem::stem;
