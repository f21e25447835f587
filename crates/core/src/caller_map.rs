//! A bounded map of values that are kept per caller.

use std::collections::HashMap;

use crate::caller::Caller;

/// Callers for which derived values are kept. Dropping one costs deriving it again, so there is no key for it.
const DERIVED_VALUES: usize = 4096;

/// Values by caller. Beyond a number of callers the least recently used value is dropped.
///
/// ```
/// use consort_core::{Caller, CallerMap};
///
/// let mut map = CallerMap::new(2);
/// for name in ["a", "b"] {
///     map.insert(Caller::client(name), name);
/// }
/// assert_eq!(map.get(&Caller::client("a")), Some(&"a"));
/// map.insert(Caller::client("c"), "c");
/// assert_eq!(map.get(&Caller::client("a")), Some(&"a"));
/// assert_eq!(map.get(&Caller::client("b")), None);
/// ```
#[derive(Debug)]
pub struct CallerMap<T> {
    /// Each value with the number of its last use.
    values: HashMap<Caller, (u64, T)>,
    most: usize,
    uses: u64,
}

impl<T> Default for CallerMap<T> {
    fn default() -> Self {
        Self::new(DERIVED_VALUES)
    }
}

impl<T> CallerMap<T> {
    /// Creates a map for values of at most so many callers.
    pub fn new(most: usize) -> Self {
        Self { values: HashMap::new(), most, uses: 0 }
    }

    /// Returns the value of a caller.
    pub fn get(&mut self, caller: &Caller) -> Option<&T> {
        self.uses += 1;
        let (last, value) = self.values.get_mut(caller)?;
        *last = self.uses;
        Some(value)
    }

    /// Stores the value of a caller.
    pub fn insert(&mut self, caller: Caller, value: T) {
        if self.values.len() >= self.most && !self.values.contains_key(&caller) {
            let oldest = self.values.iter().min_by_key(|(_, (last, _))| *last);
            if let Some(oldest) = oldest.map(|(caller, _)| caller.clone()) {
                self.values.remove(&oldest);
            }
        }
        self.uses += 1;
        self.values.insert(caller, (self.uses, value));
    }

    /// Returns the value of a caller, a new one if there is none.
    pub fn get_or_default(&mut self, caller: &Caller) -> T
    where
        T: Clone + Default,
    {
        if let Some(value) = self.get(caller) {
            return value.clone();
        }
        let value = T::default();
        self.insert(caller.clone(), value.clone());
        value
    }
}
