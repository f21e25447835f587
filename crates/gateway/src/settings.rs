//! Settings of a gateway, complete and validated.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use consort_audit::ServerStatuses;
use consort_core::Toolbox;
use consort_protocol::MemoryBudget;

use crate::authenticator::ClientAccess;
use crate::forwarded::{BasePath, ProxyHeaders, TrustedProxy};
use crate::guard::HostPattern;
use crate::http_routes::HttpRoutes;
use crate::limits::GatewayLimits;
use crate::naming::NamingScheme;
use crate::permissions::GatewayPermissions;
use crate::sealing::SealingKey;

/// Settings of a gateway.
#[derive(Clone)]
pub struct GatewaySettings {
    /// Authentication of clients.
    pub access: ClientAccess,
    /// Host names that clients may use, besides the loopback names of this machine.
    pub hosts: Vec<HostPattern>,
    /// The path prefix under which clients reach it.
    pub base_path: BasePath,
    /// Reverse proxies whose forwarding headers are trusted.
    pub trusted_proxies: Vec<TrustedProxy>,
    /// The forwarding headers that they set.
    pub proxy_headers: ProxyHeaders,
    /// Permissions of web origins other than the gateway's own and of callers other than the owner.
    pub permissions: GatewayPermissions,
    /// Naming of tools, prompts and resources.
    pub naming: NamingScheme,
    /// The folder that stores names, so that they survive a restart; in memory alone if absent.
    pub names: Option<PathBuf>,
    /// Source of the status of every server, for monitoring.
    pub states: ServerStatuses,
    /// HTTP routes served besides MCP.
    pub sites: Vec<Arc<dyn HttpRoutes>>,
    /// Limits and timeouts.
    pub limits: GatewayLimits,
    /// The memory budget of large bodies and answers, shared with the readers of server messages; a budget of
    /// [`GatewayLimits::held_bytes`] if absent.
    pub budget: Option<MemoryBudget>,
    /// The secret that seals session ids, task ids and `requestState`; a generated one is valid until the process ends.
    pub key: SealingKey,
    /// The file that stores ended sessions until they expire; in memory alone if absent.
    pub ended_sessions: Option<PathBuf>,
}

impl fmt::Debug for GatewaySettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("access", &self.access).finish_non_exhaustive()
    }
}

impl Default for GatewaySettings {
    fn default() -> Self {
        Self {
            access: ClientAccess::Anyone,
            hosts: Vec::new(),
            base_path: BasePath::default(),
            trusted_proxies: Vec::new(),
            proxy_headers: ProxyHeaders::default(),
            permissions: GatewayPermissions::default(),
            naming: NamingScheme::default(),
            names: None,
            states: Arc::new(Vec::new),
            sites: Vec::new(),
            limits: GatewayLimits::default(),
            budget: None,
            key: SealingKey::default(),
            ended_sessions: None,
        }
    }
}

/// The toolboxes that a gateway serves.
#[derive(Clone)]
pub struct ServedToolboxSet {
    /// The toolbox at the endpoint of all servers.
    pub all_servers: Arc<dyn Toolbox>,
    /// The toolbox at the endpoint of each server, under the server's own names.
    pub servers: Arc<dyn Toolbox>,
    /// Profiles by name, each at its own endpoint.
    pub profiles: BTreeMap<String, ServedProfile>,
}

impl ServedToolboxSet {
    /// Serves one toolbox at every endpoint.
    pub fn of(toolbox: Arc<dyn Toolbox>) -> Self {
        Self { all_servers: Arc::clone(&toolbox), servers: toolbox, profiles: BTreeMap::new() }
    }
}

impl fmt::Debug for ServedToolboxSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Toolboxes").field("profiles", &self.profiles.keys()).finish_non_exhaustive()
    }
}

/// A toolbox served at its own endpoint.
#[derive(Clone)]
pub struct ServedProfile {
    /// Its toolbox.
    pub toolbox: Arc<dyn Toolbox>,
    /// Its naming, if it differs from [`GatewaySettings::naming`].
    pub naming: Option<NamingScheme>,
}

impl fmt::Debug for ServedProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Profile").field("naming", &self.naming).finish_non_exhaustive()
    }
}
