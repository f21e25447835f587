//! A server of the official Rust SDK with everything that the official conformance suite tests: its tools, prompts and
//! resources, by the names the suite expects.
//!
//! Each of them works in both eras. Tools that need the client (`test_sampling`, `test_elicitation…`,
//! `test_input_required_result_…`) send a request to a legacy client during the call and an `input_required` result to
//! a modern one, whichever era the suite has them for: so a gateway between the eras can be tested for both.

mod dialogue;
mod handler;
mod offers;
mod questions;
mod results;
mod tasks;
mod tools;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use consort_client::ServerCommand;
use parking_lot::{Mutex, MutexGuard};
use rmcp::ServiceExt;
use rmcp::model::{RequestId, RequestStateCodec};
use rmcp::service::{Peer, SubscriptionSink};
use rmcp::task_manager::TaskManager;
use rmcp::{RoleServer, transport};

use crate::reference::{Http, Speaks};

/// Key of the length that the SDK requires. It protects nothing but tests.
const KEY: &[u8] = b"no secret: whoever reads this may forge what tests seal";

/// The server as a program on its standard input and output.
pub fn stdio(speaks: Speaks) -> ServerCommand {
    ServerCommand::new(crate::bin("conformance-server")).arguments([speaks.word()])
}

/// Serves on standard input and output of this process until they end.
pub async fn serve_stdio(speaks: Speaks) -> Result<(), Box<dyn std::error::Error>> {
    let running = Conformant::new(speaks).serve(transport::stdio()).await?;
    running.waiting().await?;
    Ok(())
}

/// Starts the server on a free port of this process.
pub async fn http(speaks: Speaks) -> Http {
    let server = Conformant::new(speaks);
    Http::start(speaks, move || server.session()).await
}

/// Starts the server without the tools that work as tasks: another server has them.
pub async fn http_without_tasks(speaks: Speaks) -> Http {
    let server = Conformant { offers_tasks: false, ..Conformant::new(speaks) };
    Http::start(speaks, move || server.session()).await
}

/// Starts a server of both eras whose tools request input in the way of one era each, whatever the client's:
/// `test_elicitation` and the like return a JSON-RPC error to modern clients.
pub async fn http_asking_by_era() -> Http {
    start_asking(Asking::ByEra).await
}

/// Starts a server of both eras that behaves as the conformance server in the repository of the SDK.
///
/// Its tools request input by era as well, but `test_elicitation` and the like report the SDK's refusal as a tool
/// error. It accepts any revision in `initialize`, notifies only modern clients of changes, does not declare
/// completions though it has them, does not list `test://watched-resource` though it can be subscribed to, and
/// `test_streaming_elicitation` requires input endlessly.
pub async fn http_as_the_sdk() -> Http {
    start_asking(Asking::AsTheSdk).await
}

async fn start_asking(asking: Asking) -> Http {
    let server = Conformant { asking, ..Conformant::new(Speaks::Everything) };
    Http::start(Speaks::Everything, move || server.session()).await
}

/// The eras in which a tool requests input.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asking {
    /// In both, in the way of the client's era.
    InBoth,
    /// In one; in the other it returns a JSON-RPC error.
    ByEra,
    /// In one; in the other the SDK decides the result.
    AsTheSdk,
}

/// One session with the server, or all of them in the era without sessions.
#[derive(Clone)]
struct Conformant {
    speaks: Speaks,
    /// True if it offers the tools that work as tasks.
    offers_tasks: bool,
    asking: Asking,
    shared: Arc<Shared>,
    /// Level that a legacy client set with `logging/setLevel`.
    level: Arc<Mutex<Option<Level>>>,
}

#[expect(deprecated, reason = "both eras have logging, though the modern one deprecates it")]
type Level = rmcp::model::LoggingLevel;

/// State shared by all sessions.
struct Shared {
    seal: RequestStateCodec,
    tasks: TaskManager,
    /// Number of changes of each list: tools, prompts.
    changes: [AtomicUsize; 2],
    listeners: Mutex<Listeners>,
}

/// Subscribers to changes.
#[derive(Default)]
struct Listeners {
    /// Legacy sessions, which are notified of every list.
    peers: Vec<Peer<RoleServer>>,
    /// Modern subscriptions by the request that created them.
    sinks: HashMap<RequestId, SubscriptionSink>,
}

impl Conformant {
    fn new(speaks: Speaks) -> Self {
        let shared = Shared {
            seal: RequestStateCodec::try_new(KEY).expect("it is long enough"),
            tasks: TaskManager::new(),
            changes: Default::default(),
            listeners: Mutex::default(),
        };
        Self {
            speaks,
            offers_tasks: true,
            asking: Asking::InBoth,
            shared: Arc::new(shared),
            level: Arc::default(),
        }
    }

    /// The same server in a session of its own.
    fn session(&self) -> Self {
        Self { level: Arc::default(), ..self.clone() }
    }

    fn listeners(&self) -> MutexGuard<'_, Listeners> {
        self.shared.listeners.lock()
    }

    fn level(&self) -> MutexGuard<'_, Option<Level>> {
        self.level.lock()
    }
}
