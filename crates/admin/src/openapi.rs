//! `OpenAPI` description of the admin API. A test generates it from the routes, so that the program holds the text and
//! not the code that makes it.

#[cfg(test)]
pub(crate) mod generated;

use serde_json::Value;

/// Returns the description of all routes, as `OpenAPI` 3.1.
pub(crate) fn document() -> Value {
    serde_json::from_str(include_str!("../../../docs/openapi.json")).expect("a test writes it")
}
