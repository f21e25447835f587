//! The hub: every server and every group of local tools as one toolbox.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use consort_core::{
    CallError, Caller, Catalog, Changes, Event, Events, Invocation, Json, LocalTool, Object,
    Passage, Route, ServerId, ShelfKind, Toolbox, Unresolved,
};
use consort_wire::{Client, Emitting, Request};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::call;
use crate::connection::{Connection, Keeper, Wish};
use crate::kept::Kept;
use crate::local;
use crate::pass;
use crate::schema::Checkers;
use crate::settings::Settings;
use crate::shared::Shared;
use crate::state::Status;

/// How often unused connections are looked for.
const SWEEP: Duration = Duration::from_secs(30);

/// Every server and every group of local tools, as one toolbox. Clones are the same hub.
///
/// ```
/// use consort_core::{Caller, Toolbox};
/// use consort_hub::{Hub, Settings, builtin};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let mut settings = Settings::default();
/// settings.local.insert("builtin".parse()?, builtin());
/// let hub = Hub::start(settings);
/// let catalog = hub.catalog(&Caller::person("me"));
/// assert_eq!(catalog.resolve("echo")?.id(), "builtin.echo");
/// hub.drain().await;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).map_err(|error| std::io::Error::other(error.to_string()))?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Hub(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) shared: Arc<Shared>,
    pub(crate) connections: BTreeMap<ServerId, Arc<Connection>>,
    pub(crate) local: BTreeMap<ServerId, Vec<Arc<dyn LocalTool>>>,
    pub(crate) checkers: Mutex<Checkers>,
    stop: CancellationToken,
    crew: TaskTracker,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").field("servers", &self.connections.keys()).finish_non_exhaustive()
    }
}

impl Hub {
    /// Starts a hub. It lists at once what is kept from the last time, and connects behind that, to all
    /// servers side by side.
    pub fn start(settings: Settings) -> Self {
        let Settings { servers, local, transforms, host, client, kept } = settings;
        let kept = kept.map(Kept::new);
        let mut offers: BTreeMap<ServerId, _> =
            local.iter().map(|(id, tools)| (id.clone(), local::offer(tools))).collect();
        let mut prepared = Vec::new();
        for server in servers {
            let memory =
                kept.as_ref().filter(|_| !server.disabled).and_then(|kept| kept.load(&server));
            let (connection, wishes) = Connection::new(server);
            if let Some(memory) = memory {
                connection.remember(&memory);
                offers.insert(connection.id.clone(), memory.offer);
            }
            prepared.push((connection, wishes));
        }
        let shared = Arc::new(Shared::new(offers, transforms));
        let (stop, crew) = (CancellationToken::new(), TaskTracker::new());
        let mut connections = BTreeMap::new();
        for (connection, wishes) in prepared {
            let keeper = Keeper::new(
                Arc::clone(&connection),
                wishes,
                Arc::clone(&shared),
                Arc::clone(&host),
                client.clone(),
                kept.clone(),
                stop.clone(),
            );
            crew.spawn(keeper.keep());
            connections.insert(connection.id.clone(), connection);
        }
        crew.spawn(sweep(connections.values().cloned().collect(), stop.clone()));
        Self(Arc::new(Inner { shared, connections, local, checkers: Mutex::default(), stop, crew }))
    }

    /// What is on offer, now and whenever it changes.
    pub fn watch(&self) -> watch::Receiver<Arc<Catalog>> {
        self.0.shared.watch()
    }

    /// How every server is doing.
    pub fn statuses(&self) -> Vec<Status> {
        self.0.connections.values().map(|connection| connection.status()).collect()
    }

    /// Wakes whenever a server's status changes.
    pub fn stirred(&self) -> watch::Receiver<u64> {
        self.0.shared.stirred()
    }

    /// Waits until every server that connects at the start is up, or down for now.
    pub async fn settled(&self) {
        for connection in self.0.connections.values() {
            connection.settled().await;
        }
    }

    /// Waits until what each server offers is known, from now or from the last time, or the server is
    /// down for now.
    pub async fn known(&self) {
        for (server, connection) in &self.0.connections {
            if !self.0.shared.catalog().abouts().contains_key(server) {
                connection.settled().await;
            }
        }
    }

    /// Waits until one server is up, or down for now.
    pub async fn settled_one(&self, server: &ServerId) {
        if let Some(connection) = self.0.connections.get(server) {
            connection.settled().await;
        }
    }

    /// Connects a server that is not. False if there is none of that name.
    pub async fn connect(&self, server: &ServerId) -> bool {
        self.wish(server, Wish::Connect).await
    }

    /// Disconnects a server; a call connects it again.
    pub async fn disconnect(&self, server: &ServerId) -> bool {
        self.wish(server, Wish::Disconnect).await
    }

    /// Ends a server and starts it again, whatever state it is in.
    pub async fn restart(&self, server: &ServerId) -> bool {
        self.wish(server, Wish::Restart).await
    }

    /// Switches a server off, until it is connected or restarted.
    pub async fn disable(&self, server: &ServerId) -> bool {
        self.wish(server, Wish::Disable).await
    }

    async fn wish(&self, server: &ServerId, wish: Wish) -> bool {
        match self.0.connections.get(server) {
            Some(connection) => {
                connection.wish(wish).await;
                true
            }
            None => false,
        }
    }

    /// The end of what a server wrote to its standard error.
    pub fn stderr(&self, server: &ServerId) -> String {
        self.0.connections.get(server).map(|connection| connection.stderr()).unwrap_or_default()
    }

    /// A server, reached: for what no toolbox has a word for.
    pub async fn client(&self, server: &ServerId) -> Result<Client, CallError> {
        match self.0.connections.get(server) {
            Some(connection) => connection.client().await,
            None => Err(CallError::Unknown { name: server.to_string(), nearest: Vec::new() }),
        }
    }

    /// Renders a prompt, named as a tool would be.
    pub async fn prompt(&self, name: &str, arguments: &Json) -> Result<Object, CallError> {
        let catalog = self.0.shared.catalog();
        let route = &catalog.resolve_on(ShelfKind::Prompts, name).map_err(unresolved)?.route;
        self.ask(route, Request::prompt(&route.name, arguments)).await
    }

    /// Reads a resource. One that no server lists is read from the server given, or from the only one
    /// that has templates.
    pub async fn read(&self, uri: &str, server: Option<&ServerId>) -> Result<Object, CallError> {
        let catalog = self.0.shared.catalog();
        let route = match (server, catalog.resolve_on(ShelfKind::Resources, uri)) {
            (Some(server), _) => Route { server: server.clone(), name: uri.to_owned() },
            (None, Ok(entry)) => entry.route.clone(),
            (None, Err(error)) => {
                let mut owners: Vec<_> = catalog
                    .templates
                    .entries()
                    .iter()
                    .map(|entry| entry.route.server.clone())
                    .collect();
                owners.dedup();
                match owners.as_slice() {
                    [owner] => Route { server: owner.clone(), name: uri.to_owned() },
                    _ => return Err(unresolved(error)),
                }
            }
        };
        self.ask(&route, Request::resource(&route.name)).await
    }

    async fn ask(&self, route: &Route, request: Request) -> Result<Object, CallError> {
        let connection = self.0.connections.get(&route.server).ok_or_else(|| {
            CallError::Unknown { name: route.server.to_string(), nearest: Vec::new() }
        })?;
        call::ask(connection, request).await
    }

    /// Ends every connection and waits until nothing of them is left.
    pub async fn drain(&self) {
        self.0.stop.cancel();
        self.0.crew.close();
        self.0.crew.wait().await;
    }
}

impl Toolbox for Hub {
    fn catalog(&self, _caller: &Caller) -> Arc<Catalog> {
        self.0.shared.catalog()
    }

    fn call(&self, invocation: Invocation) -> Events {
        let inner = Arc::clone(&self.0);
        Emitting::new(
            |emitter| async move { Event::End(call::run(&inner, invocation, &emitter).await) },
        )
    }

    fn pass(&self, passage: Passage) -> Events {
        let inner = Arc::clone(&self.0);
        Emitting::new(
            |emitter| async move { Event::End(pass::run(&inner, passage, &emitter).await) },
        )
    }

    fn changes(&self) -> Changes {
        let mut catalog = self.watch();
        Emitting::new(|emitter| async move {
            while catalog.changed().await.is_ok() {
                emitter.emit(()).await;
            }
        })
    }
}

/// Closes connections nobody uses, until the hub ends.
async fn sweep(connections: Vec<Arc<Connection>>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            () = tokio::time::sleep(SWEEP) => {}
        }
        for connection in &connections {
            connection.lines.sweep();
        }
    }
    for connection in &connections {
        connection.lines.close().await;
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Inner {
    /// Checks arguments against a tool's schema, read once.
    pub(crate) fn check(&self, schema: &Json, arguments: &Json) -> Result<(), Vec<String>> {
        let checker = self.checkers.lock().unwrap_or_else(PoisonError::into_inner).get(schema);
        match checker {
            Ok(checker) => checker.check(arguments),
            // The server checks too; what we cannot read, it may.
            Err(_) => Ok(()),
        }
    }
}

pub(crate) fn unresolved(error: Unresolved) -> CallError {
    match error {
        Unresolved::Unknown { name, nearest, .. } => CallError::Unknown { name, nearest },
        Unresolved::Ambiguous { name, candidates } => CallError::Ambiguous { name, candidates },
    }
}
