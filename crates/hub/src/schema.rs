//! Validation of arguments against a tool's schema, with bounded cost.

#[cfg(feature = "validation")]
mod checker;
mod limits;
#[cfg(feature = "validation")]
mod measure;
#[cfg(feature = "validation")]
mod pattern;
mod store;
#[cfg(not(feature = "validation"))]
mod unchecked;
#[cfg(feature = "validation")]
mod work;

use consort_core::Json;

#[cfg(feature = "validation")]
use checker::SchemaChecker;
pub use limits::SchemaLimits;
pub(crate) use store::ValidatorStore;
#[cfg(not(feature = "validation"))]
use unchecked::SchemaChecker;

/// Reason why a schema cannot be used for validation. The tool can still be called.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the arguments cannot be validated by the gateway: {0}")]
struct UnusableSchema(String);

/// Returns an error if arguments cannot be validated against a schema here.
pub fn check_schema(schema: &Json, limits: &SchemaLimits) -> Result<(), String> {
    SchemaChecker::new(schema, limits).map(|_| ()).map_err(|error| error.to_string())
}

/// Validates a value against a schema. Returns the problems, each with its JSON Pointer. It may take about a tenth of a
/// second.
pub fn check_value(schema: &Json, value: &Json, limits: &SchemaLimits) -> Result<(), Vec<String>> {
    SchemaChecker::new(schema, limits).map_err(|error| vec![error.to_string()])?.check(value)
}
