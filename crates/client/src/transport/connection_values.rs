//! Values of a server that are read anew for each connection.

use std::fmt::Debug;

use consort_protocol::BoxFuture;

use super::location::ServerLocation;
use crate::helper_program::{HelperLimits, UnreadableValue};

/// Source of arguments, variables and headers that are read for each connection, such as short-lived tokens.
pub trait ConnectionValues: Send + Sync + Debug {
    /// An identifier of the source: two sources with equal keys are equal.
    fn key(&self) -> &str;

    /// Returns the server with its current values.
    fn read<'a>(
        &'a self,
        server: &'a ServerLocation,
        limits: HelperLimits,
    ) -> BoxFuture<'a, Result<ServerLocation, UnreadableValue>>;
}

impl PartialEq for dyn ConnectionValues {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
