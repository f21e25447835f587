//! Leases of grants, keys and sessions: one for each, shared by everything that is done under it.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use consort_core::AccessLease;
use parking_lot::Mutex;

/// Number of leases beyond which those that nobody holds are removed, at first.
const TIDY: usize = 1024;

/// The leases in use.
#[derive(Debug, Default)]
pub(crate) struct LeaseRegistry {
    leases: Mutex<LeaseTable>,
}

#[derive(Debug, Default)]
struct LeaseTable {
    by_key: HashMap<LeaseKey, Weak<AccessLease>>,
    tidy_at: usize,
}

/// The access that a lease is of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LeaseKey {
    /// A grant, by its id.
    Grant(String),
    /// An API key, by its id.
    Key(String),
    /// A browser session, by its digest.
    Session(String),
}

impl LeaseRegistry {
    /// Returns the lease of an access. To be called before the access is looked up: one that is revoked after the lookup
    /// then ends this lease.
    pub(crate) fn lease(&self, key: LeaseKey) -> Arc<AccessLease> {
        let mut table = self.leases.lock();
        if let Some(lease) = table.by_key.get(&key).and_then(Weak::upgrade) {
            return lease;
        }
        if table.by_key.len() >= table.tidy_at.max(TIDY) {
            table.by_key.retain(|_, lease| lease.strong_count() > 0);
            table.tidy_at = table.by_key.len() * 2;
        }
        let lease = Arc::new(AccessLease::default());
        table.by_key.insert(key, Arc::downgrade(&lease));
        lease
    }

    /// Returns the accesses under which something is done or remembered.
    pub(crate) fn held(&self) -> Vec<LeaseKey> {
        let table = self.leases.lock();
        let held = table.by_key.iter().filter(|(_, lease)| lease.strong_count() > 0);
        held.map(|(key, _)| key.clone()).collect()
    }

    /// Ends a lease. Later ones of the same access are new.
    pub(crate) fn end(&self, key: &LeaseKey) {
        let lease = self.leases.lock().by_key.remove(key);
        if let Some(lease) = lease.and_then(|lease| lease.upgrade()) {
            lease.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_under_one_access_shares_its_lease_and_the_next_is_new() {
        let registry = LeaseRegistry::default();
        let (grant, key) = (LeaseKey::Grant("a".to_owned()), LeaseKey::Key("a".to_owned()));
        let [first, second] = [(); 2].map(|()| registry.lease(grant.clone()));
        let other = registry.lease(key);
        assert!(Arc::ptr_eq(&first, &second));
        registry.end(&grant);
        assert!(first.is_over() && !other.is_over());
        assert!(!registry.lease(grant).is_over());
    }

    #[test]
    fn leases_that_nobody_holds_are_removed() {
        let registry = LeaseRegistry::default();
        let held = registry.lease(LeaseKey::Grant("held".to_owned()));
        for n in 0..10 * TIDY {
            registry.lease(LeaseKey::Grant(n.to_string()));
        }
        assert!(registry.leases.lock().by_key.len() <= TIDY);
        registry.end(&LeaseKey::Grant("held".to_owned()));
        assert!(held.is_over());
    }
}
