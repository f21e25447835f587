//! Keys of MCP endpoints.

use std::fmt;
use std::sync::Arc;

/// The key of an endpoint. A session belongs to one, also after a restart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EndpointKey(Arc<str>);

impl EndpointKey {
    /// A key.
    pub fn new(key: impl Into<Arc<str>>) -> Self {
        Self(key.into())
    }

    /// The text of the key.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EndpointKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
