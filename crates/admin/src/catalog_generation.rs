//! Identifiers of catalogs in force.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use consort_core::Catalog;
use parking_lot::Mutex;

use crate::active_config::ActiveConfig;

/// Assigns each catalog in force a unique identifier.
pub(crate) struct GenerationCounter {
    started: u128,
    last: Mutex<Option<Generation>>,
}

/// The number of a catalog under a config.
type Generation = (u64, Arc<Catalog>, Arc<ActiveConfig>);

impl Default for GenerationCounter {
    fn default() -> Self {
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        Self { started, last: Mutex::default() }
    }
}

impl GenerationCounter {
    pub(crate) fn of(&self, catalog: Arc<Catalog>, active: Arc<ActiveConfig>) -> String {
        let mut last = self.last.lock();
        let number = match &*last {
            Some((number, known, before))
                if Arc::ptr_eq(known, &catalog) && Arc::ptr_eq(before, &active) =>
            {
                *number
            }
            Some((number, ..)) => number + 1,
            None => 0,
        };
        *last = Some((number, catalog, active));
        format!("{:x}.{number}", self.started)
    }
}
