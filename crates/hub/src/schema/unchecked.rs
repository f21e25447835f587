//! The validator of a build without the feature `validation`: every schema is left to its server.

use consort_core::Json;

use super::{SchemaLimits, UnusableSchema};

/// A compiled schema, of which this build has none.
#[derive(Debug)]
pub(super) enum SchemaChecker {}

impl SchemaChecker {
    /// Returns an error that names the feature.
    pub(super) fn new(_: &Json, _: &SchemaLimits) -> Result<Self, UnusableSchema> {
        Err(UnusableSchema(
            "this program is built without the feature `validation` of `consort-hub`".to_owned(),
        ))
    }

    /// Bytes of memory, estimated.
    pub(super) fn weight(&self) -> usize {
        match *self {}
    }

    /// Returns true if any value of so many bytes is validated in few steps.
    pub(super) fn is_quick(&self, _: usize) -> bool {
        match *self {}
    }

    /// Validates arguments.
    pub(super) fn check(&self, _: &Json) -> Result<(), Vec<String>> {
        match *self {}
    }
}
