//! Allocations of a gateway for one call: the product's layers in this process, on a thread of their own.

use std::sync::{Arc, mpsc};
use std::thread;

use consort::toolbox_layers::ToolboxLayers;
use consort_audit::ledger::{Ledger, LedgerSettings};
use consort_audit::live_calls::CallFeed;
use consort_audit::{CallRecorder, CallSinks};
use consort_client::{ServerCommand, ServerLocation, ServerUrl};
use consort_core::ServerId;
use consort_gateway::{Gateway, GatewaySettings, ServedToolboxSet};
use consort_hub::{Hub, ServerSettings};
use consort_protocol::Era;
use serde::Serialize;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::ECHO;
use super::field::{PREFIX, Upstream, Via, listed};
use super::options::Options;
use super::process::Process;
use crate::load::{Client, Listing, Work};
use crate::server::{Listen, Serve};
use crate::{Failure, allocator};

/// Calls that are not counted: they open connections and allocate buffers.
const WARM_UP: u64 = 50;
const CALLS: u32 = 500;

#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) client: Era,
    pub(super) server: Upstream,
    /// Per call.
    pub(super) allocations: f64,
    pub(super) bytes: f64,
}

/// Measures every pairing of eras, over HTTP and over stdio.
pub(super) async fn measure(options: &Options) -> Result<Vec<Row>, Failure> {
    let calls = CALLS.min(options.calls);
    let mut rows = Vec::new();
    for via in [Via::Http, Via::Stdio] {
        for era in [Era::Legacy, Era::Modern] {
            let listen = match via {
                Via::Http => Listen::Http,
                Via::Stdio => Listen::Stdio,
            };
            let serve = Serve { era: Some(era), prefix: PREFIX.to_owned(), ..Serve::new(listen) };
            let http = Process::server(&Serve { listen: Listen::Http, ..serve.clone() }).await?;
            let server = match via {
                Via::Http => ServerLocation::Http(ServerUrl::new(http.url())?),
                Via::Stdio => ServerLocation::Command(
                    ServerCommand::new(std::env::current_exe()?).arguments(serve.words()),
                ),
            };
            let gateway = Inside::start(server)?;
            listed(&gateway.url, &Listing::new(serve.tools())).await?;
            for client in [Era::Legacy, Era::Modern] {
                let (allocations, bytes) = counted(&gateway.url, client, calls).await?;
                let server = Upstream::one(via, era);
                rows.push(Row { client, server, allocations, bytes });
            }
            gateway.end()?;
            http.end().await?;
        }
    }
    Ok(rows)
}

/// Returns allocations and bytes per call.
async fn counted(url: &str, era: Era, calls: u32) -> Result<(f64, f64), Failure> {
    let mut client = Client::connect(url, era).await?;
    let work = Work::echo(PREFIX, ECHO);
    for call in 0..WARM_UP {
        work.once(&mut client, 0, call).await?;
    }
    let counting = async {
        for call in 0..calls {
            work.once(&mut client, 1, call.into()).await?;
        }
        Ok::<_, Failure>(())
    };
    let (done, count) = allocator::counted_on_marked(counting).await;
    done?;
    client.close().await?;
    Ok((a_call(count.allocations, calls), a_call(count.bytes, calls)))
}

#[expect(clippy::cast_precision_loss, reason = "a count beyond 2^52 is not reached")]
fn a_call(total: u64, calls: u32) -> f64 {
    total as f64 / f64::from(calls)
}

/// A gateway in this process.
struct Inside {
    url: String,
    stop: oneshot::Sender<()>,
    thread: thread::JoinHandle<Result<(), String>>,
}

impl Inside {
    fn start(server: ServerLocation) -> Result<Self, Failure> {
        let (told, url) = mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let thread = thread::spawn(move || {
            allocator::mark();
            serve(server, &told, stopped).map_err(|error| error.to_string())
        });
        let url = url.recv().map_err(|_| "the gateway did not start")?;
        Ok(Self { url, stop, thread })
    }

    fn end(self) -> Result<(), Failure> {
        // One that is gone has ended.
        let _ = self.stop.send(());
        Ok(self.thread.join().map_err(|_| "the gateway panicked")??)
    }
}

fn serve(
    server: ServerLocation,
    told: &mpsc::Sender<String>,
    stopped: oneshot::Receiver<()>,
) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let folder = TempDir::with_prefix("consort-bench-")?;
        let servers = vec![ServerSettings::new("bench".parse::<ServerId>()?, server)];
        let hub =
            Hub::start(consort_hub::HubSettings { servers, ..consort_hub::HubSettings::default() });
        let ledger = Ledger::open(&folder.path().join("ledger"), LedgerSettings::default())?;
        let records = CallSinks {
            ledger: Some(ledger.clone()),
            feed: CallFeed::new(),
            ..CallSinks::default()
        };
        let wrap = |toolbox, endpoint: &str| -> Arc<dyn consort_core::Toolbox> {
            Arc::new(CallRecorder::new(toolbox, records.clone(), endpoint))
        };
        let toolbox_layers = ToolboxLayers::default();
        let layers = toolbox_layers.over(Arc::new(hub.clone()), &wrap);
        let whole = layers.exposed_tools(None).ok_or("nothing is on offer")?;
        let known = {
            let hub = hub.clone();
            async move { hub.known().await }
        };
        let toolboxes =
            ServedToolboxSet { servers: layers.servers(), ..ServedToolboxSet::of(whole) };
        let gateway = Gateway::start(toolboxes, GatewaySettings::default(), records.clone(), known);
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        told.send(format!("http://{}/mcp", listener.local_addr()?))?;
        tokio::select! {
            () = gateway.serve_http(listener, 1) => {}
            _ = stopped => {}
        }
        gateway.end().await;
        hub.drain().await;
        ledger.close();
        Ok(())
    })
}
