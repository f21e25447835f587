//! What concerns all servers.

use serde::Serialize;

/// The table `[consort]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Options {
    /// Whether our own tools are on offer; as the program decides if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub builtin: Option<bool>,
}
