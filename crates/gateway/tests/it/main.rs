//! The gateway between real clients and real servers.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

mod attribution;
mod authentication;
mod capabilities;
mod ceilings;
mod clients;
mod conformance;
mod drain;
mod edge;
mod endpoints;
mod faults;
mod http_routes;
mod isolation;
mod junk;
mod legacy_tasks;
mod listening;
mod listings;
mod memory;
mod questions;
mod queues;
mod restarts;
mod resuming;
mod revocation;
mod starting;
mod suspended_calls;
mod tasks;

use std::sync::Arc;
use std::time::Duration;

use consort_audit::CallSinks;
use consort_audit::metrics::GatewayMetrics;
use consort_client::{ServerCommand, ServerLocation, ServerUrl, Times};
use consort_core::Caller;
use consort_gateway::{Gateway, GatewayCounts, GatewayLimits, GatewaySettings, ServedToolboxSet};
use consort_hub::{Hub, ListLimits, ServerSettings};
use consort_server::{BearerToken, ClientAccess, TransportLimits, TransportSettings};
use serde_json::{Value, json};
use testkit::raw::Peer;
use testkit::rogue::{self, Manner, Step};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Tolerated delay on a busy machine.
const SLACK: Duration = Duration::from_secs(1);

/// A gateway over servers, on a free port of this process.
struct Served {
    hub: Hub,
    gateway: Gateway,
    url: String,
    serving: JoinHandle<()>,
    metrics: Arc<GatewayMetrics>,
}

impl Served {
    /// A gateway whose servers are connected, so that requests reach them immediately.
    async fn new(servers: Vec<ServerSettings>, settings: GatewaySettings) -> Self {
        let served = Self::begun(servers, settings).await;
        let _ = tokio::time::timeout(Duration::from_secs(20), served.hub.known()).await;
        served
    }

    /// A gateway that has just been started.
    async fn begun(servers: Vec<ServerSettings>, settings: GatewaySettings) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::listening(servers, settings, listener)
    }

    /// The same at a listener of the test's choice.
    fn listening(
        servers: Vec<ServerSettings>,
        settings: GatewaySettings,
        listener: TcpListener,
    ) -> Self {
        let lists = ListLimits { wait: settings.limits.list_wait, ..ListLimits::default() };
        let hub = Hub::start(consort_hub::HubSettings {
            servers,
            lists,
            budget: settings.transports.budget.clone().unwrap_or_default(),
            ..consort_hub::HubSettings::default()
        });
        let known = {
            let hub = hub.clone();
            async move { hub.known().await }
        };
        let records = CallSinks::default();
        let metrics = Arc::clone(&records.metrics);
        let toolboxes = ServedToolboxSet::of(Arc::new(hub.clone()));
        let gateway = Gateway::start(toolboxes, settings, records, known);
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let serving = {
            let gateway = gateway.clone();
            tokio::spawn(async move { gateway.serve_http(listener, 1).await })
        };
        Self { hub, gateway, url, serving, metrics }
    }

    /// A gateway over one rogue on its standard input and output.
    async fn over(manner: &Manner) -> Self {
        Self::new(vec![stdio("r", manner)], quick()).await
    }

    /// A client of each era that declares these capabilities.
    async fn peers(&self, capabilities: Value) -> [Peer; 2] {
        [
            Peer::modern(&self.url, None, capabilities.clone()),
            Peer::legacy(&self.url, None, capabilities).await,
        ]
    }

    fn modern(&self) -> Peer {
        Peer::modern(&self.url, None, json!({}))
    }

    async fn legacy(&self) -> Peer {
        Peer::legacy(&self.url, None, json!({})).await
    }

    /// The URL of another endpoint.
    fn at(&self, path: &str) -> String {
        self.url.replace("/mcp", path)
    }

    /// Waits until only sessions are left of what clients began.
    async fn rests(&self) -> GatewayCounts {
        let rest = async {
            loop {
                let counts = self.gateway.counts();
                if counts.suspended_calls == 0 && counts.pipes == 0 && counts.requests == 0 {
                    return counts;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let rested = tokio::time::timeout(Duration::from_secs(10), rest).await;
        rested.unwrap_or_else(|_| panic!("left: {:?}", self.gateway.counts()))
    }

    async fn end(self) {
        self.gateway.end().await;
        self.serving.await.unwrap();
        self.hub.drain().await;
        let GatewayCounts { sessions, suspended_calls: suspended, pipes, requests } =
            self.gateway.counts();
        assert_eq!([sessions, suspended, pipes, requests], [0; 4]);
    }
}

/// A server at a URL.
fn at(name: &str, url: &str) -> ServerSettings {
    ServerSettings::new(name.parse().unwrap(), ServerLocation::Http(ServerUrl::new(url).unwrap()))
}

/// A server that is a program.
fn program(name: &str, command: ServerCommand) -> ServerSettings {
    ServerSettings::new(name.parse().unwrap(), ServerLocation::Command(command))
}

/// A rogue on its standard input and output, with limits short enough to wait for.
fn stdio(name: &str, manner: &Manner) -> ServerSettings {
    hasty(program(name, rogue::command(manner)))
}

fn hasty(mut settings: ServerSettings) -> ServerSettings {
    settings.times = Times {
        idle: Duration::from_millis(800),
        total: Duration::from_millis(2500),
        handshake: Duration::from_secs(10),
        close: Duration::from_millis(500),
        terminate: Duration::from_millis(500),
        ..Times::default()
    };
    settings
}

/// Settings with short timeouts, except for servers to start on a busy machine.
fn quick() -> GatewaySettings {
    let (drain, list_wait) = (Duration::from_secs(2), Duration::from_secs(20));
    let limits = GatewayLimits { list_wait, ..GatewayLimits::default() };
    let settings = GatewaySettings { limits, ..GatewaySettings::default() };
    limited(settings, TransportLimits { drain, ..TransportLimits::default() })
}

/// The same settings with these limits of the transports.
fn limited(settings: GatewaySettings, limits: TransportLimits) -> GatewaySettings {
    let transports = TransportSettings { limits, ..settings.transports };
    GatewaySettings { transports, ..settings }
}

/// The same settings with this authentication.
fn open_to(settings: GatewaySettings, access: ClientAccess) -> GatewaySettings {
    let transports = TransportSettings { access, ..settings.transports };
    GatewaySettings { transports, ..settings }
}

/// Settings in which each of these names has a token of its own: `t-NAME`.
fn with_tokens(names: impl IntoIterator<Item = String>) -> GatewaySettings {
    let token = |name: String| match name.as_str() {
        Caller::OWNER => BearerToken::owner("t-owner"),
        _ => BearerToken::client(&name, format!("t-{name}")),
    };
    let tokens = names.into_iter().map(token).collect();
    open_to(quick(), ClientAccess::Tokens(tokens))
}

/// The arguments that make a rogue take steps.
fn steps(steps: &[Step]) -> Value {
    json!({ "steps": steps })
}

/// Waits until this returns a value.
async fn until<T>(what: &str, mut so: impl AsyncFnMut() -> Option<T>) -> T {
    let mut found = None;
    testkit::wait_until_async(what, async || {
        found = so().await;
        found.is_some()
    })
    .await;
    found.expect("it was waited for")
}
