//! The indexed documents, with their words.

use std::sync::Arc;

use consort_core::Object;

use crate::document::{Counted, Document};
use crate::limits::Limits;
use crate::postings::Postings;
use crate::typo::Spellings;

/// The indexed documents, with the postings and the spellings of their words.
#[derive(Debug)]
pub(crate) struct Corpus {
    pub(crate) documents: Vec<Indexed>,
    pub(crate) postings: Postings,
    pub(crate) spellings: Spellings,
}

#[derive(Debug)]
pub(crate) struct Indexed {
    pub(crate) id: String,
    pub(crate) name: String,
    /// The tool's definition, if it comes from a catalog.
    pub(crate) definition: Option<Object>,
    pub(crate) counted: Arc<Counted>,
}

impl Corpus {
    pub(crate) fn new(documents: Vec<Indexed>) -> Self {
        let postings = Postings::new(documents.iter().map(|document| &document.counted));
        let spellings = Spellings::new(postings.spellings());
        Self { documents, postings, spellings }
    }
}

impl Indexed {
    pub(crate) fn new(document: Document, definition: Option<Object>, limits: &Limits) -> Self {
        let counted = Arc::new(Counted::new(&document, limits));
        Self { id: document.id, name: document.name, definition, counted }
    }
}
