//! Settings of a hub and its servers, complete and validated.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use consort_client::{
    ClientHandler, ClientInfo, ConnectionValues, EraPreference, KeeperTimes, Limits, ResumeTimes,
    ServerLocation, SilentHandler, Times, ToolTimes,
};
use consort_core::{LocalTool, ServerId};
use consort_protocol::MemoryBudget;

use crate::connection_room::ConnectionRoom;
use crate::limits::{ConnectionLimits, ListLimits};
use crate::schema::SchemaLimits;
use crate::server_log::ServerLogSettings;

/// Idle time after which a ping keeps an HTTP+SSE stream of a server open: half of what proxies allow.
const STREAM_PING: Duration = Duration::from_secs(25);

/// Settings of a hub.
#[derive(Clone)]
pub struct HubSettings {
    /// The servers.
    pub servers: Vec<ServerSettings>,
    /// Servers that are configured and not started here, such as those that a lock withholds. They offer nothing, and
    /// no other server may use their names.
    pub reserved: BTreeSet<ServerId>,
    /// Groups of local tools, by name.
    pub local: BTreeMap<ServerId, Vec<Arc<dyn LocalTool>>>,
    /// Handler of the servers' requests.
    pub host: Arc<dyn ClientHandler>,
    /// Client info that is sent to servers.
    pub client: ClientInfo,
    /// The folder that stores servers' lists for the next start; they are not stored if absent.
    pub store_folder: Option<PathBuf>,
    /// Log files of servers; none are written if absent.
    pub logs: Option<ServerLogSettings>,
    /// Limits of servers' schemas.
    pub schemas: SchemaLimits,
    /// Time limits of the process that starts stdio servers. With several hubs, those of the last one apply.
    pub keeper: KeeperTimes,
    /// Wait limits and maximum age of servers' lists.
    pub lists: ListLimits,
    /// Idle time after which a ping keeps an HTTP+SSE stream of a server open; never if zero.
    pub stream_ping: Duration,
    /// Memory budget of large messages, for all its users together.
    pub budget: MemoryBudget,
    /// Times of the checks after the computer resumed.
    pub resumes: ResumeTimes,
}

impl Default for HubSettings {
    fn default() -> Self {
        Self {
            servers: Vec::new(),
            reserved: BTreeSet::new(),
            local: BTreeMap::new(),
            host: Arc::new(SilentHandler),
            client: ClientInfo::default(),
            store_folder: None,
            logs: None,
            schemas: SchemaLimits::default(),
            keeper: KeeperTimes::default(),
            lists: ListLimits::default(),
            stream_ping: STREAM_PING,
            budget: MemoryBudget::default(),
            resumes: ResumeTimes::default(),
        }
    }
}

impl std::fmt::Debug for HubSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HubSettings")
            .field("servers", &self.servers)
            .field("local", &self.local.keys())
            .finish_non_exhaustive()
    }
}

/// Percentage of connections that is the owner's by default.
const OWNER_RESERVE: usize = 5;

/// Settings of one server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerSettings {
    /// Its configured name.
    pub id: ServerId,
    /// Its command or URL.
    pub server: ServerLocation,
    /// Arguments, variables and headers that are read for each connection.
    pub values: Option<Arc<dyn ConnectionValues>>,
    /// Time of the first connection.
    pub connect: ConnectTrigger,
    /// Protocol era.
    pub speak: EraPreference,
    /// Size limits.
    pub limits: Limits,
    /// Timeouts.
    pub times: Times,
    /// Timeouts of single tools.
    pub tools: BTreeMap<String, ToolTimes>,
    /// The program that may fetch a package before the server starts, such as `npx`; the status explains the wait.
    pub installer: Option<String>,
    /// Idle time after which it is stopped; never if absent. The next call starts it.
    pub idle_stop: Option<Duration>,
    /// Interval of health probes of an unused server; never if absent.
    pub probe: Option<Duration>,
    /// True if it is disabled.
    pub disabled: bool,
    /// Validation of arguments against the input schema of its tools.
    pub validate: ArgumentCheck,
    /// Limits of its connections and reconnects.
    pub upkeep: ConnectionLimits,
    /// Connections beyond the first one, for other identities, capabilities and client sessions; the limit of `upkeep`
    /// if absent. When all are in use, calls wait.
    pub max_connections: Option<usize>,
    /// Idle time after which such a connection is closed; the time of `upkeep` if absent.
    pub connection_idle: Option<Duration>,
    /// Percentage of such connections reserved for the owner.
    pub owner_reserve: usize,
}

impl ServerSettings {
    /// Makes the settings of a server with every default.
    pub fn new(id: ServerId, server: ServerLocation) -> Self {
        Self {
            id,
            server,
            values: None,
            connect: ConnectTrigger::default(),
            speak: EraPreference::default(),
            limits: Limits::default(),
            times: Times::default(),
            tools: BTreeMap::new(),
            installer: None,
            idle_stop: None,
            probe: Some(Duration::from_mins(1)),
            disabled: false,
            validate: ArgumentCheck::default(),
            upkeep: ConnectionLimits::default(),
            max_connections: None,
            connection_idle: None,
            owner_reserve: OWNER_RESERVE,
        }
    }

    /// Returns the limit of connections beyond the first one.
    pub fn max_connections(&self) -> usize {
        self.max_connections.unwrap_or(self.upkeep.identities)
    }

    /// Returns the room for connections beyond the first one.
    pub(crate) fn connection_room(&self) -> ConnectionRoom {
        let most = self.max_connections();
        let reserved = most * self.owner_reserve / 100;
        ConnectionRoom { most, reserved, answer_hold: self.upkeep.answer_hold }
    }

    /// Returns the idle time after which a connection beyond the first one is closed.
    pub fn connection_idle(&self) -> Duration {
        self.connection_idle.unwrap_or(self.upkeep.identity_idle)
    }
}

/// Validation of a call's arguments against the input schema of its tool, the same for every client, agent and command.
/// Arguments of local tools are always validated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArgumentCheck {
    /// No validation.
    Off,
    /// The call is sent. If its server answers with an error, problems of the arguments are logged.
    #[default]
    Warn,
    /// A call with invalid arguments is refused before it is sent.
    Refuse,
}

/// Time of the first connection to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnectTrigger {
    /// At the start, in the background.
    #[default]
    Start,
    /// At the first call. If its lists are not known from the last run, also at the first list request.
    Call,
}

#[cfg(test)]
mod tests {
    use consort_client::{ServerCommand, ServerUrl};

    use super::*;

    // P13
    #[test]
    fn an_unused_connection_to_a_program_is_kept_for_an_hour_unless_it_is_set() {
        let id: ServerId = "a".parse().unwrap();
        let mut program =
            ServerSettings::new(id.clone(), ServerLocation::Command(ServerCommand::new("python3")));
        assert_eq!(program.connection_idle(), Duration::from_hours(1));
        program.connection_idle = Some(Duration::from_secs(5));
        assert_eq!(program.connection_idle(), Duration::from_secs(5));
        let endpoint = ServerUrl::new("http://127.0.0.1/mcp").unwrap();
        let http = ServerSettings::new(id, ServerLocation::Http(endpoint));
        assert_eq!(http.connection_idle(), Duration::from_hours(1));
    }
}
