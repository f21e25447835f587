//! How to treat each server: complete and checked.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use consort_core::{LocalTool, ServerId};
use consort_wire::{
    ClientInfo, Host, KeeperTimes, Limits, MemoryBudget, Server, Silent, Speak, Times, ToolTimes,
};

use crate::limits::ListLimits;
use crate::schema::SchemaLimits;

/// Time after which an idle HTTP+SSE stream of a server is kept open by a ping: half of what proxies allow.
const STREAM_PING: Duration = Duration::from_secs(25);

/// Everything a hub needs to know.
#[derive(Clone)]
pub struct Settings {
    /// The servers.
    pub servers: Vec<ServerSettings>,
    /// Servers that are configured and not started here, as those that a lock withholds. They offer
    /// nothing, and no other server answers to their names.
    pub reserved: BTreeSet<ServerId>,
    /// Groups of local tools, by the name of their ensemble.
    pub local: BTreeMap<ServerId, Vec<Arc<dyn LocalTool>>>,
    /// Who answers the servers' questions.
    pub host: Arc<dyn Host>,
    /// Who we say we are.
    pub client: ClientInfo,
    /// Where what servers offer is kept for the next start; nowhere if absent.
    pub kept: Option<PathBuf>,
    /// How large the schemas of servers may become.
    pub schemas: SchemaLimits,
    /// Time limits of the process that starts stdio servers; of several hubs, the last one's hold.
    pub keeper: KeeperTimes,
    /// How long lists of servers are waited for, and how old they may become.
    pub lists: ListLimits,
    /// Time after which an idle HTTP+SSE stream of a server is kept open by a ping; never if zero.
    pub stream_ping: Duration,
    /// How many bytes of large messages may be in memory at once, together with whoever shares it.
    pub budget: MemoryBudget,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            servers: Vec::new(),
            reserved: BTreeSet::new(),
            local: BTreeMap::new(),
            host: Arc::new(Silent),
            client: ClientInfo::default(),
            kept: None,
            schemas: SchemaLimits::default(),
            keeper: KeeperTimes::default(),
            lists: ListLimits::default(),
            stream_ping: STREAM_PING,
            budget: MemoryBudget::default(),
        }
    }
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("servers", &self.servers)
            .field("local", &self.local.keys())
            .finish_non_exhaustive()
    }
}

/// How to treat one server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerSettings {
    /// What the user calls it.
    pub id: ServerId,
    /// Where it is.
    pub server: Server,
    /// When to connect.
    pub connect: Connect,
    /// Which era to speak.
    pub speak: Speak,
    /// How much.
    pub limits: Limits,
    /// How long.
    pub times: Times,
    /// How long, for single tools.
    pub tools: BTreeMap<String, ToolTimes>,
    /// The program that may fetch a package before the server starts, such as `npx`: whoever waits is told.
    pub installer: Option<String>,
    /// How long it may be unused before it is stopped; for ever if absent. The next call starts it.
    pub idle_stop: Option<Duration>,
    /// How often to ask an unused server whether it lives; never if absent.
    pub probe: Option<Duration>,
    /// Whether it is there at all.
    pub disabled: bool,
}

impl ServerSettings {
    /// A server with every default.
    pub fn new(id: ServerId, server: Server) -> Self {
        Self {
            id,
            server,
            connect: Connect::default(),
            speak: Speak::default(),
            limits: Limits::default(),
            times: Times::default(),
            tools: BTreeMap::new(),
            installer: None,
            idle_stop: None,
            probe: Some(Duration::from_mins(1)),
            disabled: false,
        }
    }
}

/// When to connect to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Connect {
    /// At the start, behind whatever else happens.
    #[default]
    Start,
    /// At the first call. If nothing is known of it from the last time, also at the first list.
    Call,
}
