//! The gateway between real clients and real servers.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

mod clients;
mod conformance;

use std::sync::Arc;
use std::time::Duration;

use consort_gateway::{Gateway, Limits, Records, Settings};
use consort_hub::{Hub, ServerSettings};
use consort_wire::{Endpoint, Server};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A gateway over servers, on a free port of this process.
struct Served {
    hub: Hub,
    gateway: Gateway,
    url: String,
    serving: JoinHandle<()>,
}

impl Served {
    async fn new(servers: Vec<ServerSettings>, settings: Settings) -> Self {
        let hub = Hub::start(consort_hub::Settings { servers, ..consort_hub::Settings::default() });
        let known = {
            let hub = hub.clone();
            async move { hub.known().await }
        };
        let gateway = Gateway::start(Arc::new(hub.clone()), settings, Records::default(), known);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let serving = {
            let gateway = gateway.clone();
            tokio::spawn(async move { gateway.serve_http(listener, 1).await })
        };
        Self { hub, gateway, url, serving }
    }

    async fn end(self) {
        self.gateway.end().await;
        self.serving.await.unwrap();
        self.hub.drain().await;
    }
}

/// A server at a URL.
fn at(name: &str, url: &str) -> ServerSettings {
    ServerSettings::new(name.parse().unwrap(), Server::Http(Endpoint::new(url).unwrap()))
}

/// Settings that do not wait for long.
fn quick() -> Settings {
    let limits = Limits { drain: Duration::from_secs(2), ..Limits::default() };
    Settings { limits, ..Settings::default() }
}
