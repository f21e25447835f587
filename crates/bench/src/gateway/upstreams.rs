//! One gateway over many servers: the same load, distributed among them.

use std::path::Path;

use consort_protocol::Era;
use serde_json::{Map, Value};
use tempfile::TempDir;

use super::compare::{self, Comparison, Course, Target};
use super::field::{By, Lane, PREFIX, Upstream, Via, listed};
use super::options::Options;
use super::process::{Process, configured};
use super::{ECHO, Work};
use crate::Failure;
use crate::load::Listing;
use crate::server::{Listen, Serve};

const COUNTS: [usize; 3] = [1, 20, 100];
const CLIENTS: &[u32] = &[32];

/// A gateway over several servers of a kind, and those of them that run by themselves.
struct Many {
    upstream: Upstream,
    gateway: Process,
    servers: Vec<Process>,
    prefixes: Vec<String>,
    _folder: TempDir,
}

/// Measures modern clients and servers: only the number of servers varies. A contestant that only forwards bytes has
/// one.
pub(super) async fn measure(
    consort: Option<&Path>,
    options: &Options,
) -> Result<Comparison, Failure> {
    let serve = serve(Listen::Http, PREFIX.to_owned());
    let server = Process::server(&serve).await?;
    let proxy = Process::proxy(&server).await?;
    let own = Upstream::one(Via::Http, Era::Modern);
    let echo = Work::echo(PREFIX, ECHO);
    let mut lanes = vec![
        (Lane { by: By::Direct, upstream: own, place: server.free() }, echo.clone()),
        (Lane { by: By::Raw, upstream: own, place: proxy.charged() }, echo),
    ];
    let mut all = Vec::new();
    if let Some(consort) = consort {
        for via in [Via::Http, Via::Stdio] {
            for count in COUNTS {
                all.push(Many::open(consort, via, count).await?);
            }
        }
    }
    lanes.extend(all.iter().map(|many| {
        let place = many.gateway.charged();
        let lane = Lane { by: By::Consort, upstream: many.upstream, place };
        (lane, Work::echoes(&many.prefixes, ECHO))
    }));
    let course = Course {
        work: Work::echo(PREFIX, ECHO),
        clients: CLIENTS,
        target: Some(Target { times_raw_cpu: 2.0, times_raw_rate: None }),
        weight: 1,
    };
    let rows = compare::rows(&lanes, Era::Modern, &course, options).await?;
    for many in all {
        many.close().await?;
    }
    proxy.end().await?;
    server.end().await?;
    Ok(Comparison { target: course.target, rows })
}

impl Many {
    async fn open(consort: &Path, via: Via, count: usize) -> Result<Self, Failure> {
        let prefixes: Vec<_> = (0..count).map(|n| format!("server{n}_")).collect();
        let listen = match via {
            Via::Http => Listen::Http,
            Via::Stdio => Listen::Stdio,
        };
        let (mut config, mut servers, mut tools) = (Map::new(), Vec::new(), Vec::<Value>::new());
        for prefix in &prefixes {
            let serve = serve(listen, prefix.clone());
            tools.extend(serve.tools());
            let name = prefix.trim_end_matches('_').to_owned();
            match via {
                Via::Http => {
                    let server = Process::server(&serve).await?;
                    config.insert(name, configured(&serve, &server)?);
                    servers.push(server);
                }
                Via::Stdio => {
                    config.insert(name, super::process::started(&serve)?);
                }
            }
        }
        let folder = TempDir::with_prefix("consort-bench-")?;
        let gateway = Process::gateway(consort, &config, folder.path()).await?;
        listed(gateway.url(), &Listing::new(tools)).await?;
        let upstream = Upstream { via, era: Era::Modern, count };
        Ok(Self { upstream, gateway, servers, prefixes, _folder: folder })
    }

    async fn close(self) -> Result<(), Failure> {
        self.gateway.end().await?;
        for server in self.servers {
            server.end().await?;
        }
        Ok(())
    }
}

fn serve(listen: Listen, prefix: String) -> Serve {
    Serve { era: Some(Era::Modern), prefix, ..Serve::new(listen) }
}
