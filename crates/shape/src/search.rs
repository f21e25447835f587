//! Finding tools by words: an index in memory, without a model, the same answer every time.

use std::collections::HashMap;
use std::sync::Arc;

use consort_core::{Catalog, Object};

mod document;
mod english;
mod postings;
mod query;
mod rank;
mod stem;
mod typo;
mod words;

pub use document::Document;

use document::Counted;
use postings::Postings;
use query::Query;
use typo::Spellings;

/// How much is looked at; what is beyond is not, and is no error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a query.
    pub query_bytes: usize,
    /// Words of a query.
    pub query_words: usize,
    /// Hits of a search.
    pub hits: usize,
    /// Words of each kind of text a tool has: name, description and so on.
    pub field_words: usize,
    /// Parameters of a tool, nested ones included.
    pub parameters: usize,
    /// Choices (`enum`) of a parameter.
    pub choices: usize,
    /// How deep a parameter may be nested.
    pub schema_depth: usize,
}

impl Default for Limits {
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

/// Tools that can be found by words.
///
/// ```
/// use consort_shape::search::{Document, Index, Limits};
///
/// let tool = |id: &str, description: &str| Document {
///     id: format!("git.{id}"),
///     name: id.to_owned(),
///     description: description.to_owned(),
///     ..Document::default()
/// };
/// let tools = [tool("createIssue", "Opens a ticket."), tool("delete_branch", "Deletes a branch.")];
/// let index = Index::new(tools, Limits::default());
/// assert_eq!(index.search("please remove my old branches", 5)[0].id, "git.delete_branch");
/// assert_eq!(index.search("CREATEISSUE", 5)[0].id, "git.createIssue");
/// assert!(index.search("", 5).is_empty());
/// ```
#[derive(Debug)]
pub struct Index {
    limits: Limits,
    documents: Vec<Indexed>,
    postings: Postings,
    spellings: Spellings,
    /// Names and ids in lower case, each with the documents that bear it.
    exact: HashMap<String, Vec<usize>>,
    by_id: HashMap<String, usize>,
}

/// A tool that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit<'a> {
    /// What it is called, with its server: `server.name`.
    pub id: &'a str,
    /// Its place among the documents, or among the tools of the catalog.
    pub position: usize,
    /// How well it fits; comparable within one search only.
    pub score: f32,
    /// Whether the query is its name or id.
    pub exact: bool,
}

#[derive(Debug)]
struct Indexed {
    id: String,
    name: String,
    /// What it was made from, if from a catalog.
    definition: Option<Object>,
    counted: Arc<Counted>,
}

impl Index {
    /// An index of these documents, in their order.
    pub fn new(documents: impl IntoIterator<Item = Document>, limits: Limits) -> Self {
        let indexed = documents.into_iter().map(|document| Indexed::new(document, None, &limits));
        let indexed = indexed.collect();
        Self::build(indexed, limits)
    }

    /// An index of a catalog's tools, in their order.
    pub fn of(catalog: &Catalog, limits: Limits) -> Self {
        Self::build(Vec::new(), limits).updated(catalog)
    }

    /// The index of another catalog. What did not change is not read again.
    #[must_use]
    pub fn updated(&self, catalog: &Catalog) -> Self {
        let entries = catalog.tools.entries().iter().map(|entry| {
            let id = entry.id();
            let definition = entry.definition.clone();
            match self.by_id.get(&id).map(|&at| &self.documents[at]) {
                Some(known) if known.definition.as_ref() == Some(&definition) => Indexed {
                    id,
                    name: known.name.clone(),
                    definition: Some(definition),
                    counted: Arc::clone(&known.counted),
                },
                _ => {
                    Indexed::new(Document::of(entry, &self.limits), Some(definition), &self.limits)
                }
            }
        });
        Self::build(entries.collect(), self.limits.clone())
    }

    fn build(documents: Vec<Indexed>, limits: Limits) -> Self {
        let postings = Postings::new(documents.iter().map(|document| &document.counted));
        let spellings = Spellings::new(postings.all_stems());
        let mut exact: HashMap<String, Vec<usize>> = HashMap::new();
        let mut by_id = HashMap::new();
        for (at, document) in documents.iter().enumerate() {
            by_id.insert(document.id.clone(), at);
            let id = document.id.to_lowercase();
            let name = document.name.to_lowercase();
            if name != id {
                exact.entry(name).or_default().push(at);
            }
            exact.entry(id).or_default().push(at);
        }
        Self { limits, documents, postings, spellings, exact, by_id }
    }

    /// How many documents there are.
    pub fn len(&self) -> usize {
        self.documents.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// The `k` documents that fit best, best first. Nothing fits an empty query.
    pub fn search(&self, query: &str, k: usize) -> Vec<Hit<'_>> {
        self.search_among(query, k, |_| true)
    }

    /// The same among the documents whose positions are `visible`: for callers who may not see all.
    pub fn search_among(
        &self,
        query: &str,
        k: usize,
        visible: impl Fn(usize) -> bool,
    ) -> Vec<Hit<'_>> {
        let read = Query::new(query, &self.limits);
        let ranked = rank::rank(self, &read, &visible);
        let named: Vec<usize> = self.named(query).filter(|&at| visible(at)).collect();
        let score = |at: usize| {
            ranked
                .iter()
                .find(|scored| scored.document as usize == at)
                .map_or(0.0, |scored| scored.score)
        };
        let first = named.iter().map(|&at| self.hit(at, score(at), true));
        let rest = ranked.iter().map(|scored| (scored.document as usize, scored.score));
        let rest = rest
            .filter(|(at, _)| !named.contains(at))
            .map(|(at, score)| self.hit(at, score, false));
        first.chain(rest).take(k.min(self.limits.hits)).collect()
    }

    /// The documents whose name or id the query is.
    fn named(&self, query: &str) -> impl Iterator<Item = usize> {
        let query = query.trim();
        let name = (query.len() <= self.limits.query_bytes).then(|| query.to_lowercase());
        // `server:tool` is another spelling of `server.tool`.
        let other =
            name.as_ref().and_then(|name| name.split_once(':')).map(|(a, b)| format!("{a}.{b}"));
        let spellings = [name, other].into_iter().flatten();
        let found = spellings.filter_map(|name| self.exact.get(&name)).flatten().copied();
        let mut found: Vec<usize> = found.collect();
        found.sort_unstable();
        found.dedup();
        found.into_iter()
    }

    fn hit(&self, position: usize, score: f32, exact: bool) -> Hit<'_> {
        Hit { id: &self.documents[position].id, position, score, exact }
    }

    fn counted(&self, document: usize) -> &Counted {
        &self.documents[document].counted
    }
}

impl Indexed {
    fn new(document: Document, definition: Option<Object>, limits: &Limits) -> Self {
        let counted = Arc::new(Counted::new(&document, limits));
        Self { id: document.id, name: document.name, definition, counted }
    }
}
