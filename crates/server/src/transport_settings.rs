//! Settings of the transports, complete and validated.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use consort_protocol::MemoryBudget;

use crate::auth::authenticator::ClientAccess;
use crate::auth::permissions::ClientPermissions;
use crate::forwarded::ProxySettings;
use crate::guard::HostPattern;
use crate::http_routes::HttpRoutes;
use crate::limits::TransportLimits;
use crate::sealing::SealingKey;

/// Settings of the transports.
#[derive(Clone)]
pub struct TransportSettings {
    /// Authentication of clients.
    pub access: ClientAccess,
    /// Host names that clients may use, besides the loopback names of this machine.
    pub hosts: Vec<HostPattern>,
    /// The path prefix under which clients reach the server, and the reverse proxies in front of it.
    pub proxies: ProxySettings,
    /// Permissions of web origins other than the server's own and of callers other than the owner.
    pub permissions: ClientPermissions,
    /// HTTP routes served besides MCP.
    pub routes: Vec<Arc<dyn HttpRoutes>>,
    /// Limits and timeouts.
    pub limits: TransportLimits,
    /// The memory budget of large bodies and answers, shared with the readers of server messages; a budget of
    /// [`TransportLimits::held_bytes`] if absent.
    pub budget: Option<MemoryBudget>,
    /// The secret that seals session ids, task ids and `requestState`; a generated one is valid until the process ends.
    pub key: SealingKey,
    /// The file that stores ended sessions until they expire; in memory alone if absent.
    pub ended_sessions: Option<PathBuf>,
}

impl fmt::Debug for TransportSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransportSettings").field("access", &self.access).finish_non_exhaustive()
    }
}

impl Default for TransportSettings {
    fn default() -> Self {
        Self {
            access: ClientAccess::Anyone,
            hosts: Vec::new(),
            proxies: ProxySettings::default(),
            permissions: ClientPermissions::default(),
            routes: Vec::new(),
            limits: TransportLimits::default(),
            budget: None,
            key: SealingKey::default(),
            ended_sessions: None,
        }
    }
}
