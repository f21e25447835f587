//! Identifiers of catalogs in force.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use consort_core::Catalog;

use crate::active_config::Scene;

/// Assigns each catalog in force a unique identifier.
pub(crate) struct Generations {
    started: u128,
    last: Mutex<Option<Generation>>,
}

/// The number of a catalog under a config.
type Generation = (u64, Arc<Catalog>, Arc<Scene>);

impl Default for Generations {
    fn default() -> Self {
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        Self { started, last: Mutex::default() }
    }
}

impl Generations {
    pub(crate) fn of(&self, catalog: Arc<Catalog>, scene: Arc<Scene>) -> String {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let number = match &*last {
            Some((number, known, before))
                if Arc::ptr_eq(known, &catalog) && Arc::ptr_eq(before, &scene) =>
            {
                *number
            }
            Some((number, ..)) => number + 1,
            None => 0,
        };
        *last = Some((number, catalog, scene));
        format!("{:x}.{number}", self.started)
    }
}
