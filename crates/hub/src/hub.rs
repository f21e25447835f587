//! The hub: all servers and all groups of local tools as one toolbox.

mod reload;
mod starter;

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use consort_client::{Client, ResumeTimes};
use consort_core::{
    BoxFuture, Call, CallError, CallEvent, CallEvents, Caller, Catalog, CatalogChanges,
    ListPurpose, LocalTool, MissingName, OperatorText, ServerId, Subscription, SubscriptionEvent,
    SubscriptionEvents, Toolbox,
};
use consort_protocol::DrivenStream;
use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::call;
use crate::catalog_store::CatalogStore;
use crate::lifecycle::ConnectionCommand;
use crate::local;
use crate::managed::driver::ServerDriver;
use crate::managed::{self, ManagedServer};
use crate::schema::ValidatorStore;
use crate::server_log::ServerLog;
use crate::settings::{HubSettings, ServerSettings};
use crate::shared_catalogs::{ServerNames, SharedCatalogs};
use crate::status::ManagedStatus;
use crate::subscribe;
use crate::tasks::ServerTasks;
use starter::{HubStarter, PreparedServer};

/// Interval between two sweeps of unused connections.
const SWEEP: Duration = Duration::from_secs(30);

/// Every server and every group of local tools, as one toolbox. Clones are the same hub.
///
/// ```
/// use consort_core::{Caller, Toolbox};
/// use consort_hub::{Hub, HubSettings, builtin};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let mut settings = HubSettings::default();
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

pub(crate) type ManagedServers = BTreeMap<ServerId, Arc<ManagedServer>>;

/// Local tools by group.
type LocalTools = BTreeMap<ServerId, Arc<[Arc<dyn LocalTool>]>>;

pub(crate) struct Inner {
    pub(crate) shared: Arc<SharedCatalogs>,
    servers: RwLock<Arc<ManagedServers>>,
    starter: HubStarter,
    local: RwLock<LocalTools>,
    pub(crate) validators: ValidatorStore,
    /// Time of the last check for stale lists, by kind.
    pub(crate) looked: Mutex<[Option<Instant>; 4]>,
    stop: CancellationToken,
    crew: TaskTracker,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").field("servers", &self.servers().keys()).finish_non_exhaustive()
    }
}

impl Hub {
    /// Starts a hub. It offers the stored lists of the last run at once, and connects to all servers concurrently in
    /// the background.
    pub fn start(settings: HubSettings) -> Self {
        consort_client::keeper::set_times(settings.keeper);
        let stream_ping = Some(settings.stream_ping).filter(|ping| !ping.is_zero());
        let HubSettings { servers, mut reserved, local, host, client, store_folder: kept, .. } =
            settings;
        let HubSettings { schemas, lists, budget, resumes, logs, .. } = settings;
        let mut offers: BTreeMap<ServerId, _> =
            local.iter().map(|(id, tools)| (id.clone(), local::offer(tools))).collect();
        let local: LocalTools =
            local.into_iter().map(|(group, tools)| (group, tools.into())).collect();
        reserved.extend(local.keys().cloned());
        reserved.extend(servers.iter().map(|server| server.id.clone()));
        let names = ServerNames { reserved, expected: expected(&servers) };
        let starter = HubStarter { store: kept.map(CatalogStore::new), host, client, budget, logs };
        let prepared: Vec<_> =
            servers.into_iter().map(|server| starter.prepare(server, &mut offers)).collect();
        let crew = TaskTracker::new();
        let inner = Arc::new(Inner {
            shared: Arc::new(SharedCatalogs::new(offers, names, lists, stream_ping)),
            servers: RwLock::default(),
            starter,
            local: RwLock::new(local),
            validators: ValidatorStore::new(schemas, crew.clone()),
            looked: Mutex::default(),
            stop: CancellationToken::new(),
            crew,
        });
        let servers = prepared.into_iter().map(|prepared| inner.manage(prepared)).collect();
        inner.replace(servers);
        inner.crew.spawn(sweep(Arc::downgrade(&inner), inner.stop.clone()));
        inner.crew.spawn(watch_resumes(Arc::downgrade(&inner), resumes, inner.stop.clone()));
        Self(inner)
    }

    /// Subscribes to the catalog.
    pub fn watch(&self) -> watch::Receiver<Arc<Catalog>> {
        self.0.shared.watch()
    }

    /// Returns the status of every server.
    pub fn statuses(&self) -> Vec<ManagedStatus> {
        self.0.servers().values().map(|managed| managed.status()).collect()
    }

    /// Returns the status of one server.
    pub fn status(&self, server: &ServerId) -> Option<ManagedStatus> {
        self.0.server(server).map(|managed| managed.status())
    }

    /// Returns the host and the port of a server that is connected over HTTP.
    pub fn address(&self, server: &ServerId) -> Option<(String, u16)> {
        Some(self.0.server(server)?.settings.server.url()?.address())
    }

    /// Subscribes to a counter that increases whenever a server's status changes.
    pub fn status_changes(&self) -> watch::Receiver<u64> {
        self.0.shared.status_changes()
    }

    /// Waits until every server that connects at the start is connected, or its attempt has failed.
    pub async fn settled(&self) {
        for managed in self.0.servers().values() {
            managed.settled().await;
        }
    }

    /// Waits until the lists of each server are known, from now or from the last run, or its connection attempt has
    /// failed.
    pub async fn known(&self) {
        for (server, managed) in self.0.servers().iter() {
            if !self.0.shared.catalog().abouts().contains_key(server) {
                managed.settled().await;
            }
        }
    }

    /// Waits until the connection attempt to one server has ended.
    pub async fn settled_one(&self, server: &ServerId) {
        if let Some(managed) = self.0.server(server) {
            managed.settled().await;
        }
    }

    /// Connects a server that is not connected, and waits until the attempt has ended, at most
    /// [`ListLimits::server_wait`](crate::ListLimits::server_wait). Returns false if there is no such server.
    pub async fn connect(&self, server: &ServerId) -> bool {
        self.command(server, ConnectionCommand::Connect).await
    }

    /// Disconnects a server and waits until the connection is closed; a call connects it again.
    pub async fn disconnect(&self, server: &ServerId) -> bool {
        self.command(server, ConnectionCommand::Disconnect).await
    }

    /// Restarts a server in any state. It waits as [`Self::connect`] does: a later call uses the new connection.
    pub async fn restart(&self, server: &ServerId) -> bool {
        self.command(server, ConnectionCommand::Restart).await
    }

    /// Disables a server until it is connected or restarted, and waits until its connections are closed.
    pub async fn disable(&self, server: &ServerId) -> bool {
        self.command(server, ConnectionCommand::Disable).await
    }

    async fn command(&self, server: &ServerId, command: ConnectionCommand) -> bool {
        match self.0.server(server) {
            Some(managed) => {
                managed.run_command(command, self.0.shared.limits.server_wait).await;
                true
            }
            None => false,
        }
    }

    /// Returns the end of a server's standard error.
    pub fn stderr(&self, server: &ServerId) -> OperatorText {
        self.0.server(server).map(|managed| managed.stderr()).unwrap_or_default()
    }

    /// Returns the last line of a server's standard error, also while it starts.
    pub fn last_stderr_line(&self, server: &ServerId) -> Option<OperatorText> {
        self.0.server(server)?.last_stderr_line()
    }

    /// Returns the client of a server, connected if need be, for methods that [`Toolbox`] does not have.
    pub async fn client(&self, server: &ServerId) -> Result<Client, CallError> {
        match self.0.server(server) {
            Some(managed) => managed.client().await,
            None => Err(unknown_server(server)),
        }
    }

    /// Connects to a server and probes it: `ping`, or `server/discover` of a modern one. Returns an error if it does
    /// not answer, also if it ended after it connected: the first failure counts.
    pub async fn probe(&self, server: &ServerId) -> Result<(), CallError> {
        let managed = self.0.server(server).ok_or_else(|| unknown_server(server))?;
        let client = managed.connect_once().await?;
        managed::probe(&client).await.map_err(|error| call::explained(server, error))
    }

    /// Ends every connection and waits until all are closed.
    pub async fn drain(&self) {
        self.0.stop.cancel();
        self.0.crew.close();
        self.0.crew.wait().await;
    }
}

impl Toolbox for Hub {
    fn catalog(&self, caller: &Caller) -> Arc<Catalog> {
        self.0.shared.catalog_for(caller)
    }

    fn call(&self, call: Call) -> CallEvents {
        let inner = Arc::clone(&self.0);
        CallEvents::new(|emitter| async move {
            CallEvent::End(pin!(call::run(&inner, &call, &emitter)).await)
        })
    }

    fn subscribe(&self, subscription: Subscription) -> SubscriptionEvents {
        let inner = Arc::clone(&self.0);
        DrivenStream::new(|emitter| async move {
            SubscriptionEvent::End(subscribe::run(&inner, &subscription, &emitter).await)
        })
    }

    fn await_lists(
        &self,
        caller: &Caller,
        purpose: ListPurpose,
    ) -> Option<BoxFuture<'static, bool>> {
        self.0.await_lists(caller, purpose)
    }

    fn find_missing(&self, missing: MissingName) -> BoxFuture<'static, Result<bool, CallError>> {
        let inner = Arc::clone(&self.0);
        Box::pin(async move { inner.find_missing(missing).await })
    }

    fn await_definitions(
        &self,
        caller: &Caller,
        server: &ServerId,
    ) -> Option<BoxFuture<'static, Result<(), CallError>>> {
        self.0.await_definitions(caller, server)
    }

    fn changes(&self) -> CatalogChanges {
        let mut catalog = self.watch();
        DrivenStream::new(|emitter| async move {
            while catalog.changed().await.is_ok() {
                emitter.emit(()).await;
            }
        })
    }
}

fn unknown_server(server: &ServerId) -> CallError {
    CallError::Unknown { kind: "server", name: server.to_string(), nearest: Vec::new() }
}

/// Returns the servers that are enabled.
fn expected(servers: &[ServerSettings]) -> BTreeSet<ServerId> {
    let enabled = servers.iter().filter(|server| !server.disabled);
    enabled.map(|server| server.id.clone()).collect()
}

/// Closes unused connections periodically, until the hub ends.
async fn sweep(hub: Weak<Inner>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(SWEEP) => {}
        }
        let Some(hub) = hub.upgrade() else { return };
        for managed in hub.servers().values() {
            managed.pool.sweep(managed.settings.connection_idle());
        }
    }
}

/// Reconnects servers that are down as soon as the computer resumes, until the hub ends.
async fn watch_resumes(hub: Weak<Inner>, times: ResumeTimes, stop: CancellationToken) {
    let resumed = || {
        if let Some(hub) = hub.upgrade() {
            for managed in hub.servers().values() {
                managed.retry_now();
            }
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = consort_client::watch_resumes(times, resumed) => {}
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Inner {
    /// Returns all servers.
    /// The local tools of a group.
    pub(crate) fn local_tools(&self, group: &ServerId) -> Option<Arc<[Arc<dyn LocalTool>]>> {
        self.local.read().get(group).cloned()
    }

    pub(crate) fn servers(&self) -> Arc<ManagedServers> {
        Arc::clone(&self.servers.read())
    }

    /// Returns a server.
    pub(crate) fn server(&self, server: &ServerId) -> Option<Arc<ManagedServer>> {
        self.servers.read().get(server).cloned()
    }

    fn replace(&self, servers: ManagedServers) {
        *self.servers.write() = Arc::new(servers);
    }

    /// Starts the task of a server.
    fn manage(&self, (managed, commands): PreparedServer) -> (ServerId, Arc<ManagedServer>) {
        let HubStarter { store: kept, host, client, logs, .. } = &self.starter;
        let stop = self.stop.child_token();
        managed.stops_by(stop.clone());
        let tasks = ServerTasks::new(self.crew.clone(), stop);
        managed.logs_to(ServerLog::new(logs.as_ref(), &managed.id, &tasks));
        let driver = ServerDriver::new(
            Arc::clone(&managed),
            Arc::clone(&self.shared),
            Arc::clone(host),
            client.clone(),
            kept.clone(),
            tasks,
        );
        self.crew.spawn(driver.run(commands));
        (managed.id.clone(), managed)
    }
}
