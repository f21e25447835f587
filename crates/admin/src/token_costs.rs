//! Token costs of tool definitions, counted once.

use std::collections::HashMap;
use std::sync::Arc;

use consort_core::{Catalog, Object};
use consort_models::tokens::{TokenVocabulary, count, definition_text};
use parking_lot::Mutex;

/// Token cost of each tool of the catalog requested last.
#[derive(Default)]
pub(crate) struct TokenCosts(Mutex<CountedCatalog>);

#[derive(Default)]
struct CountedCatalog {
    catalog: Arc<Catalog>,
    /// In the catalog's order.
    tokens: Arc<[usize]>,
}

impl TokenCosts {
    /// Returns the token cost of each tool of a catalog, in its order. Unchanged definitions are not counted again.
    pub(crate) fn of(&self, catalog: &Arc<Catalog>) -> Arc<[usize]> {
        let known = {
            let known = self.0.lock();
            if Arc::ptr_eq(&known.catalog, catalog) {
                return Arc::clone(&known.tokens);
            }
            CountedCatalog {
                catalog: Arc::clone(&known.catalog),
                tokens: Arc::clone(&known.tokens),
            }
        };
        let entries = known.catalog.tools.entries().iter().zip(known.tokens.iter());
        let before: HashMap<(&str, &str), (&Object, usize)> = entries
            .map(|(entry, tokens)| {
                let place = (entry.route.server.as_str(), entry.name.as_str());
                (place, (&entry.definition, *tokens))
            })
            .collect();
        let tokens = catalog.tools.entries().iter().map(|entry| {
            let place = (entry.route.server.as_str(), entry.name.as_str());
            match before.get(&place) {
                Some((definition, tokens)) if **definition == entry.definition => *tokens,
                _ => count(TokenVocabulary::default(), &definition_text(&entry.tool())),
            }
        });
        let tokens: Arc<[usize]> = tokens.collect();
        let now = CountedCatalog { catalog: Arc::clone(catalog), tokens: Arc::clone(&tokens) };
        *self.0.lock() = now;
        tokens
    }
}
