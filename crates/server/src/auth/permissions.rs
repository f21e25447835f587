//! Permissions that can be replaced while the server runs.

use std::sync::Arc;

use consort_core::IdentityId;

use crate::ceilings::CeilingRules;

/// Permissions of web origins other than the server's own and of callers other than the owner.
#[derive(Clone, Debug, Default)]
pub struct ClientPermissions {
    /// Origins of web pages that may use the server, as in `https://tools.example`, besides its own.
    pub origins: Vec<String>,
    /// True if pages of every origin may use what requires a token: their tokens are their own, and cookies never count.
    pub any_origin: bool,
    /// Callers that may read the metrics, besides the owner.
    pub metrics: Vec<IdentityId>,
    /// Ceilings of identities; absent if fair shares alone count.
    pub ceilings: Option<Arc<dyn CeilingRules>>,
}
