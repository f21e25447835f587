//! A check that is made before each sending of a call.

use std::fmt;
use std::sync::Arc;

use crate::error::CallError;

/// A check before each sending of a call: between two attempts, the server may have reconnected and may define the
/// tool otherwise.
#[derive(Clone)]
pub struct AdmissionCheck(Arc<CheckFunction>);

type CheckFunction = dyn Fn() -> Result<(), CallError> + Send + Sync;

impl AdmissionCheck {
    /// Creates a check from a function.
    pub fn new(check: impl Fn() -> Result<(), CallError> + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }

    /// Returns the error with which the call ends if it must not be sent.
    pub fn check(&self) -> Result<(), CallError> {
        (self.0)()
    }
}

impl fmt::Debug for AdmissionCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AdmissionCheck")
    }
}
