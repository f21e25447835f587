//! Settings of a gateway, complete and validated.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use consort_audit::ServerStatuses;
use consort_core::Toolbox;
use consort_server::TransportSettings;

use crate::gateway_limits::GatewayLimits;
use crate::naming::NamingScheme;

/// Settings of a gateway.
#[derive(Clone)]
pub struct GatewaySettings {
    /// Settings of the transports.
    pub transports: TransportSettings,
    /// Naming of tools, prompts and resources.
    pub naming: NamingScheme,
    /// The folder that stores names, so that they survive a restart; in memory alone if absent.
    pub names: Option<PathBuf>,
    /// Source of the status of every server, for monitoring.
    pub states: ServerStatuses,
    /// Limits and timeouts, besides those of the transports.
    pub limits: GatewayLimits,
}

impl fmt::Debug for GatewaySettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("transports", &self.transports).finish_non_exhaustive()
    }
}

impl Default for GatewaySettings {
    fn default() -> Self {
        Self {
            transports: TransportSettings::default(),
            naming: NamingScheme::default(),
            names: None,
            states: Arc::new(Vec::new),
            limits: GatewayLimits::default(),
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
        f.debug_struct("ServedToolboxSet")
            .field("profiles", &self.profiles.keys())
            .finish_non_exhaustive()
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
