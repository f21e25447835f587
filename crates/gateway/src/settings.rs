//! How to serve: complete and checked.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use consort_core::{ServerId, Toolbox};
use consort_wire::MemoryBudget;

use crate::forwarded::{BasePath, TrustedProxy};
use crate::guard::HostPattern;
use crate::naming::Naming;
use crate::otlp::Via;
use crate::site::Site;

/// How a gateway serves.
#[derive(Clone)]
pub struct Settings {
    /// Who may use it.
    pub access: Access,
    /// Names under which clients may reach it, beside those of this machine's loopback.
    pub hosts: Vec<HostPattern>,
    /// The path prefix under which clients reach it.
    pub base_path: BasePath,
    /// Reverse proxies whose forwarding headers are believed.
    pub trusted_proxies: Vec<TrustedProxy>,
    /// What others than the owner and our own pages may do.
    pub permissions: Permissions,
    /// How things are named.
    pub naming: Naming,
    /// The folder where names are kept, so that they are the same after a restart; nowhere if absent.
    pub names: Option<PathBuf>,
    /// How every server is doing, for who watches over us.
    pub states: States,
    /// What is served beside MCP.
    pub sites: Vec<Arc<dyn Site>>,
    /// How much, and how long.
    pub limits: Limits,
    /// The memory for large bodies and answers, shared with whoever reads them from servers; a budget of
    /// [`Limits::held_bytes`] if absent.
    pub budget: Option<MemoryBudget>,
}

/// Returns how every server is doing.
pub type States = Arc<dyn Fn() -> Vec<ServerStatus> + Send + Sync>;

/// How a server is doing, and how it is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerStatus {
    /// The server.
    pub server: ServerId,
    /// The state it is in, in a word.
    pub state: &'static str,
    /// How often it was started again.
    pub restarts: u32,
    /// The revision of MCP that it speaks, once that is known.
    pub revision: Option<&'static str>,
    /// The transport, once that is known.
    pub via: Option<Via>,
    /// The host and the port of a server that is reached over HTTP.
    pub address: Option<(String, u16)>,
}

impl ServerStatus {
    /// A server of which only the state is known.
    pub fn new(server: ServerId, state: &'static str) -> Self {
        Self { server, state, restarts: 0, revision: None, via: None, address: None }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("access", &self.access).finish_non_exhaustive()
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            access: Access::Anyone,
            hosts: Vec::new(),
            base_path: BasePath::default(),
            trusted_proxies: Vec::new(),
            permissions: Permissions::default(),
            naming: Naming::default(),
            names: None,
            states: Arc::new(Vec::new),
            sites: Vec::new(),
            limits: Limits::default(),
            budget: None,
        }
    }
}

/// What a gateway serves.
#[derive(Clone)]
pub struct Toolboxes {
    /// At the address of the whole.
    pub whole: Arc<dyn Toolbox>,
    /// At the address of each server: what it offers, under its own names.
    pub servers: Arc<dyn Toolbox>,
    /// At an address of their own.
    pub profiles: BTreeMap<String, Profile>,
}

impl Toolboxes {
    /// One toolbox, everywhere.
    pub fn of(toolbox: Arc<dyn Toolbox>) -> Self {
        Self { whole: Arc::clone(&toolbox), servers: toolbox, profiles: BTreeMap::new() }
    }
}

impl fmt::Debug for Toolboxes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Toolboxes").field("profiles", &self.profiles.keys()).finish_non_exhaustive()
    }
}

/// A toolbox served at an address of its own.
#[derive(Clone)]
pub struct Profile {
    /// What it offers.
    pub toolbox: Arc<dyn Toolbox>,
    /// How its things are named, if not as elsewhere.
    pub naming: Option<Naming>,
}

impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Profile").field("naming", &self.naming).finish_non_exhaustive()
    }
}

/// What others than the owner and our own pages may do.
#[derive(Clone, Debug, Default)]
pub struct Permissions {
    /// Origins of web pages that may use the gateway, as in `https://tools.example`, beside its own.
    pub origins: Vec<String>,
    /// Callers that may read the metrics, beside the owner.
    pub metrics: Vec<String>,
}

/// Who may use a gateway.
#[derive(Clone, Debug)]
pub enum Access {
    /// Whoever reaches it.
    Anyone,
    /// Whoever shows one of these tokens.
    Tokens(Vec<Token>),
}

/// A secret that proves an identity.
#[derive(Clone)]
pub struct Token {
    /// Whose it is.
    pub name: String,
    /// What the client sends.
    pub secret: String,
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("name", &self.name).finish_non_exhaustive()
    }
}

/// How much a gateway takes on, and how long it waits.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes in the body of a request.
    pub body_bytes: usize,
    /// Bytes of bodies and answers held at once, for all clients together.
    pub held_bytes: usize,
    /// Connections open at once.
    pub connections: usize,
    /// File descriptors kept for answering 503 when the process has no others left.
    pub reserved_descriptors: usize,
    /// How long a client has to read such a 503: others wait for its descriptor.
    pub reserved_descriptor_hold: Duration,
    /// Sessions of legacy clients open at once.
    pub sessions: usize,
    /// Calls that wait for a client's answer at once.
    pub parked: usize,
    /// How long a call waits for its client's answer.
    pub park: Duration,
    /// How long a session may be unused.
    pub session: Duration,
    /// Browser sessions of the console open at once.
    pub browser_sessions: usize,
    /// How long a browser session may be unused; a page that is open uses it.
    pub browser_session_idle: Duration,
    /// How long a browser session may last altogether.
    pub browser_session_lifetime: Duration,
    /// How long the head of a request may take.
    pub head: Duration,
    /// How long the body of a request may take.
    pub body: Duration,
    /// How long the rest of a request that was refused is read, so that its client reads the answer.
    pub linger: Duration,
    /// Bytes of such a rest that are read.
    pub linger_bytes: usize,
    /// How long a client may not read what it is sent.
    pub stalled: Duration,
    /// How long a stream may be silent before it shows that it lives.
    pub silence: Duration,
    /// The least time between two notices to a client that a list changed.
    pub changes: Duration,
    /// Time that the first list waits for servers that are starting and of which nothing is known.
    pub list_wait: Duration,
    /// How long names stay reserved for a server that is no longer configured.
    pub name_grace: Duration,
    /// How long requests are still served, while `/readyz` says 503, before the gateway drains: the time that load
    /// balancers take to notice.
    pub lame_duck: Duration,
    /// Connections open at once at the listener for health and metrics.
    pub metrics_connections: usize,
    /// How long requests may take to end once the gateway shall.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 4 << 20,
            held_bytes: 256 << 20,
            connections: 4096,
            reserved_descriptors: 16,
            reserved_descriptor_hold: Duration::from_millis(250),
            sessions: 1000,
            parked: 1024,
            park: Duration::from_mins(10),
            session: Duration::from_mins(30),
            browser_sessions: 32,
            browser_session_idle: Duration::from_hours(2),
            browser_session_lifetime: Duration::from_hours(24),
            head: Duration::from_secs(10),
            body: Duration::from_secs(30),
            linger: Duration::from_secs(2),
            linger_bytes: 16 << 20,
            stalled: Duration::from_secs(30),
            silence: Duration::from_secs(15),
            changes: Duration::from_secs(1),
            list_wait: Duration::from_secs(1),
            name_grace: Duration::from_hours(24),
            lame_duck: Duration::ZERO,
            metrics_connections: 64,
            drain: Duration::from_secs(30),
        }
    }
}
