//! A server of the official Rust SDK with everything the official conformance suite asks of a server: its
//! tools, prompts and resources, by the names the suite knows them by.
//!
//! Each of them works in both eras. What needs the client (`test_sampling`, `test_elicitation…`,
//! `test_input_required_result_…`) asks a legacy client in the middle of the call and tells a modern one what
//! is required, whichever era the suite has it for: so a gateway between the eras can be held to both.

mod dialogue;
mod handler;
mod offers;
mod questions;
mod results;
mod tasks;
mod tools;

use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use consort_wire::Command;
use rmcp::ServiceExt;
use rmcp::model::{RequestId, RequestStateCodec};
use rmcp::service::{Peer, SubscriptionSink};
use rmcp::task_manager::TaskManager;
use rmcp::{RoleServer, transport};

use crate::reference::{Http, Speaks};

/// Long enough for the SDK. Nobody but tests is kept out by it.
const KEY: &[u8] = b"no secret: whoever reads this may forge what tests seal";

/// The server as a program on its standard input and output.
pub fn stdio(speaks: Speaks) -> Command {
    Command::new(crate::bin("conformance-server")).arguments([speaks.word()])
}

/// Serves on the standard input and output of this process until they end.
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

/// Starts the server without the tools that work as tasks: another one has them.
pub async fn http_without_tasks(speaks: Speaks) -> Http {
    let server = Conformant { offers_tasks: false, ..Conformant::new(speaks) };
    Http::start(speaks, move || server.session()).await
}

/// One session with the server, or all of them in the era that has none.
#[derive(Clone)]
struct Conformant {
    speaks: Speaks,
    /// Whether it offers the tools that work as tasks.
    offers_tasks: bool,
    shared: Arc<Shared>,
    /// What a legacy client asked for with `logging/setLevel`.
    level: Arc<Mutex<Option<Level>>>,
}

#[expect(deprecated, reason = "both eras have logging, though the modern one deprecates it")]
type Level = rmcp::model::LoggingLevel;

/// What all sessions share.
struct Shared {
    seal: RequestStateCodec,
    tasks: TaskManager,
    /// How often each list changed: tools, prompts.
    changes: [AtomicUsize; 2],
    listeners: Mutex<Listeners>,
}

/// Who is to hear of changes.
#[derive(Default)]
struct Listeners {
    /// Legacy sessions, which hear of every list.
    peers: Vec<Peer<RoleServer>>,
    /// Modern subscriptions by the request that made them.
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
        Self { speaks, offers_tasks: true, shared: Arc::new(shared), level: Arc::default() }
    }

    /// The same server in a session of its own.
    fn session(&self) -> Self {
        Self { level: Arc::default(), ..self.clone() }
    }

    fn listeners(&self) -> MutexGuard<'_, Listeners> {
        self.shared.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn level(&self) -> MutexGuard<'_, Option<Level>> {
        self.level.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
