//! All contestants: servers of each era, a raw proxy before each, a gateway over each kind of server.

use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use consort_protocol::Era;
use serde::Serialize;
use serde_json::Map;
use tempfile::TempDir;

use super::process::{Process, configured};
use crate::Failure;
use crate::load::{Client, Listing, Place};
use crate::server::{Listen, Serve};

/// Prefix of all tool names, so that none is also a tool of the gateway itself.
pub(super) const PREFIX: &str = "bench_";

/// Time limit for a gateway to list all tools of its servers.
const PATIENCE: Duration = Duration::from_secs(20);

/// Pause before an incomplete listing is requested again.
const PAUSE: Duration = Duration::from_millis(1);

/// Contestant that answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) enum By {
    /// The server itself, over HTTP.
    #[serde(rename = "direct")]
    Direct,
    #[serde(rename = "raw proxy")]
    Raw,
    #[serde(rename = "consort")]
    Consort,
}

impl By {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Raw => "raw proxy",
            Self::Consort => "consort",
        }
    }
}

/// The server behind the contestant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Upstream {
    pub(super) via: Via,
    pub(super) era: Era,
    /// Number of servers.
    pub(super) count: usize,
}

impl Upstream {
    pub(super) fn one(via: Via, era: Era) -> Self {
        Self { via, era, count: 1 }
    }
}

/// Transport of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Via {
    Http,
    Stdio,
}

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let via = match self.via {
            Via::Http => "HTTP",
            Via::Stdio => "stdio",
        };
        match self.count {
            1 => write!(f, "{via}, {}", self.era),
            count => write!(f, "{count} x {via}, {}", self.era),
        }
    }
}

/// One route to an answer.
#[derive(Clone, Debug)]
pub(super) struct Lane {
    pub(super) by: By,
    pub(super) upstream: Upstream,
    pub(super) place: Place,
}

/// The processes of all lanes.
#[derive(Debug)]
pub(super) struct Field {
    eras: Vec<(Era, Process, Process)>,
    gateways: Vec<(Upstream, Process, TempDir)>,
    serve: Serve,
}

impl Field {
    /// Starts all contestants, with servers that have `fillers` tools that are never called.
    pub(super) async fn open(consort: Option<&Path>, fillers: usize) -> Result<Self, Failure> {
        let serve = Serve { fillers, prefix: PREFIX.to_owned(), ..Serve::new(Listen::Http) };
        let mut field = Self { eras: Vec::new(), gateways: Vec::new(), serve };
        for era in [Era::Legacy, Era::Modern] {
            let server = Process::server(&Serve { era: Some(era), ..field.serve.clone() }).await?;
            let proxy = Process::proxy(&server).await?;
            for via in [Via::Http, Via::Stdio] {
                if let Some(consort) = consort {
                    let gateway = field.gateway(consort, via, era, &server).await?;
                    field.gateways.push(gateway);
                }
            }
            field.eras.push((era, server, proxy));
        }
        Ok(field)
    }

    async fn gateway(
        &self,
        consort: &Path,
        via: Via,
        era: Era,
        server: &Process,
    ) -> Result<(Upstream, Process, TempDir), Failure> {
        let listen = match via {
            Via::Http => Listen::Http,
            Via::Stdio => Listen::Stdio,
        };
        let serve = Serve { listen, era: Some(era), ..self.serve.clone() };
        let servers = Map::from_iter([("bench".to_owned(), configured(&serve, server)?)]);
        let folder = TempDir::with_prefix("consort-bench-")?;
        let gateway = Process::gateway(consort, &servers, folder.path()).await?;
        listed(gateway.url(), &self.listing()).await?;
        Ok((Upstream::one(via, era), gateway, folder))
    }

    /// The tools of every server here.
    pub(super) fn listing(&self) -> Listing {
        Listing::new(self.serve.tools())
    }

    /// The routes of a client of this era. A contestant that only forwards bytes has a server of the client's own era
    /// over HTTP, since no other would understand it.
    pub(super) fn lanes(&self, client: Era) -> Vec<Lane> {
        let own = Upstream::one(Via::Http, client);
        let mut lanes = Vec::new();
        for (era, server, proxy) in &self.eras {
            if *era == client {
                lanes.push(Lane { by: By::Direct, upstream: own, place: server.free() });
                lanes.push(Lane { by: By::Raw, upstream: own, place: proxy.charged() });
            }
        }
        lanes.extend(self.gateways.iter().map(|(upstream, gateway, _)| Lane {
            by: By::Consort,
            upstream: *upstream,
            place: gateway.charged(),
        }));
        // What is like the raw proxy comes first, what is least like it last.
        lanes.sort_by_key(|lane| {
            let far =
                u8::from(lane.upstream.via != own.via) * 2 + u8::from(lane.upstream.era != own.era);
            (lane.by == By::Consort, far)
        });
        lanes
    }

    /// Ends all processes, gateways first.
    pub(super) async fn close(self) -> Result<(), Failure> {
        for (_, gateway, _) in self.gateways {
            gateway.end().await?;
        }
        for (_, server, proxy) in self.eras {
            proxy.end().await?;
            server.end().await?;
        }
        Ok(())
    }
}

/// Waits until all of these tools are listed.
pub(crate) async fn listed(url: &str, listing: &Listing) -> Result<(), Failure> {
    let until = Instant::now() + PATIENCE;
    let mut client = Client::connect(url, Era::Modern).await?;
    while let Some(missing) = listing.missing(&mut client).await? {
        if Instant::now() >= until {
            return Err(
                format!("`{missing}` is not on offer, or not as its server defined it").into()
            );
        }
        tokio::time::sleep(PAUSE).await;
    }
    client.close().await
}

/// The order of a round: forward in one, backward in the next, so that none always comes last.
pub(super) fn order(round: u32, lanes: usize) -> Vec<usize> {
    if round.is_multiple_of(2) { (0..lanes).collect() } else { (0..lanes).rev().collect() }
}
