//! Values derived from a catalog, cached as long as the catalog is in use.

use std::sync::Arc;

use consort_core::Catalog;
use parking_lot::Mutex;

/// Values derived from catalogs. Each is computed once for a catalog.
#[derive(Debug)]
pub struct CatalogMemo<T>(Mutex<Vec<(Arc<Catalog>, Arc<T>)>>);

impl<T> Default for CatalogMemo<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> CatalogMemo<T> {
    /// Returns the value derived from this catalog, computing it if necessary.
    pub fn get(&self, catalog: Arc<Catalog>, make: impl FnOnce(&Catalog) -> T) -> Arc<T> {
        let mut entries = self.0.lock();
        if let Some((_, value)) = entries.iter().find(|(key, _)| Arc::ptr_eq(key, &catalog)) {
            return Arc::clone(value);
        }
        // A catalog that only the memo still holds is not requested again.
        entries.retain(|(key, _)| Arc::strong_count(key) > 1);
        let new = Arc::new(make(&catalog));
        entries.push((catalog, Arc::clone(&new)));
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_catalog_is_made_once_and_an_old_one_is_forgotten() {
        let memo = CatalogMemo::default();
        let first = Arc::new(Catalog::default());
        assert_eq!(*memo.get(Arc::clone(&first), |_| 1), 1);
        assert_eq!(*memo.get(Arc::clone(&first), |_| 2), 1);
        drop(first);
        let second = Arc::new(Catalog::default());
        assert_eq!(*memo.get(Arc::clone(&second), |_| 3), 3);
        assert_eq!(memo.0.lock().len(), 1);
    }
}
