//! Values of a server that are read anew for each connection.

use std::fmt::Debug;

use consort_protocol::{BoxFuture, OperatorText};

use crate::helper_program::HelperLimits;
use crate::settings::ServerLocation;

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

/// The reason why a value could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({hint})")]
pub struct UnreadableValue {
    /// The problem, which names the reference.
    pub message: String,
    /// The way out.
    pub hint: &'static str,
    /// The standard error of the program, for the operator only.
    pub detail: OperatorText,
}

impl UnreadableValue {
    /// A problem without further detail.
    pub fn new(message: impl Into<String>, hint: &'static str) -> Self {
        Self { message: message.into(), hint, detail: OperatorText::default() }
    }
}
