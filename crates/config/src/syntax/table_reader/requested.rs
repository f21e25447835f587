//! The keys that readers request, for the test that compares them with the reference.

use std::cell::RefCell;
use std::collections::BTreeSet;

thread_local! {
    /// The requested keys, with their full paths.
    static KEYS: RefCell<BTreeSet<String>> = RefCell::default();
}

pub(super) fn record(of_server: bool, path: &str) {
    let table = if of_server { "mcp.NAME" } else { "consort" };
    KEYS.with_borrow_mut(|keys| keys.insert(format!("{table}.{path}")));
}

/// Returns the keys requested on this thread since the last call.
pub(crate) fn take() -> BTreeSet<String> {
    KEYS.take()
}
