//! The user at the terminal.

use consort_core::Caller;

/// Returns the user at the terminal as a caller.
pub(crate) fn caller() -> Caller {
    let name = std::env::var("USER").or_else(|_| std::env::var("LOGNAME"));
    Caller::person(name.unwrap_or_else(|_| "somebody".to_owned()))
}
