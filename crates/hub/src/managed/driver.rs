//! The task of a managed server: it performs the actions of the server's lifecycle, and feeds it their results. Every
//! decision is in `lifecycle.rs`.

mod link;
mod publish;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use consort_client::{ClientHandler, ClientInfo};
use consort_core::BoxFuture;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{CommandReceiver, ManagedServer};
use crate::attribution::AttributedHost;
use crate::catalog_store::{CatalogStore, StoredServer};
use crate::chance::chance;
use crate::connection_key::CallerHost;
use crate::lifecycle::{
    ConnectRequest, LifecycleAction, LifecycleInput, LifecycleMoment, LifecyclePolicy,
    ServerLifecycle,
};
use crate::shared_catalogs::SharedCatalogs;
use crate::tasks::ServerTasks;
use crate::writer::LatestWriter;
use link::ServerLink;

/// Task of a managed server.
pub(crate) struct ServerDriver {
    managed: Arc<ManagedServer>,
    shared: Arc<SharedCatalogs>,
    host: Arc<dyn ClientHandler>,
    client: ClientInfo,
    /// Stores the lists of the server.
    stored: Option<LatestWriter<StoredServer>>,
    stop: CancellationToken,
    lifecycle: ServerLifecycle,
    link: ServerLink,
    /// Completes when the credentials of the server change.
    credentials: Option<BoxFuture<'static, ()>>,
    is_stopping: bool,
}

impl ServerDriver {
    pub(crate) fn new(
        managed: Arc<ManagedServer>,
        shared: Arc<SharedCatalogs>,
        host: Arc<dyn ClientHandler>,
        client: ClientInfo,
        stored: Option<CatalogStore>,
        tasks: ServerTasks,
    ) -> Self {
        managed.pool.introduce(client.clone(), Arc::clone(&shared), tasks.clone());
        let stop = tasks.stop();
        let stored = stored.map(|stored| {
            let managed = Arc::clone(&managed);
            LatestWriter::new(tasks, move |memory| {
                if let Err(error) = stored.save(&managed.settings, &memory) {
                    tracing::warn!(server = %managed.id, %error, "cannot store the server's catalog");
                }
            })
        });
        let policy = LifecyclePolicy::new(&managed.settings, shared.limits, shared.stream_ping);
        let lifecycle = ServerLifecycle::new(policy, managed.status());
        let (link, credentials) = (ServerLink::default(), credential_change(&managed));
        let is_stopping = false;
        Self {
            managed,
            shared,
            host,
            client,
            stored,
            stop,
            lifecycle,
            link,
            credentials,
            is_stopping,
        }
    }

    /// Manages the server until the hub ends.
    pub(crate) async fn run(mut self, mut commands: CommandReceiver) {
        self.feed(LifecycleInput::Start, &mut commands);
        while !self.lifecycle.is_ended() {
            let input = self.next_input(&mut commands).await;
            self.feed(input, &mut commands);
        }
        self.managed.pool.close().await;
    }

    /// Waits for the next input. Nothing here decides: each branch is the result of an action, or an event.
    async fn next_input(&mut self, commands: &mut CommandReceiver) -> LifecycleInput {
        let deadline = self.lifecycle.next_deadline();
        let reads = self.lifecycle.takes_list_requests();
        let managed = &self.managed;
        tokio::select! {
            biased;
            () = self.stop.cancelled(), if !self.is_stopping => {
                self.is_stopping = true;
                LifecycleInput::Stop
            }
            Some((id, command)) = commands.next() => LifecycleInput::Command(id, command),
            () = managed.connect_now.notified() => LifecycleInput::ConnectNow,
            () = managed.retry_now.notified() => LifecycleInput::RetryNow,
            () = changed(&mut self.credentials) => {
                self.credentials = credential_change(managed);
                LifecycleInput::CredentialsChanged
            }
            kinds = managed.readings.requested(), if reads => LifecycleInput::ListsRequested(kinds),
            input = self.link.next_input(managed, deadline) => input,
        }
    }

    /// Feeds an input to the lifecycle, and performs its actions.
    fn feed(&mut self, input: LifecycleInput, commands: &mut CommandReceiver) {
        let moment = LifecycleMoment {
            now: Instant::now(),
            chance: chance(),
            is_in_use: self.managed.is_in_use(),
            unused: self.managed.unused(),
            credentials: self.managed.credentials(),
        };
        for action in self.lifecycle.handle(input, moment) {
            match action {
                LifecycleAction::Acknowledge(id, outcome) => commands.acknowledge(id, outcome),
                action => self.perform(action, moment.credentials),
            }
        }
    }

    fn perform(&mut self, action: LifecycleAction, credentials: u64) {
        let managed = &self.managed;
        match action {
            LifecycleAction::Connect(request) => self.connect(&request, credentials),
            LifecycleAction::AbortConnect => self.link.abort_connect(),
            LifecycleAction::Subscribe => self.link.subscribe(),
            LifecycleAction::ReadLists(request) => {
                self.link.read_lists(request, managed.settings.upkeep.retry_wait);
            }
            LifecycleAction::Probe => self.link.probe(),
            LifecycleAction::OfferConnection => {
                let main = self.link.offer(managed.pool.tasks());
                drop(managed.replace_main(main));
            }
            LifecycleAction::WithdrawConnection => {
                drop(managed.replace_main(None));
                self.link.withdraw(managed);
            }
            LifecycleAction::CloseConnection => self.link.close(),
            LifecycleAction::RetireConnections => {
                managed.pool.retire(managed, credentials);
                if let Some(main) = managed.replace_main(None) {
                    self.link.abandon();
                    let (client, used) = main.retire();
                    managed.close_unused(client, used);
                }
                self.shared.expire_variants(&managed.id);
            }
            LifecycleAction::NoteListChange(kinds) => {
                managed.readings.changed(&kinds, Instant::now());
            }
            LifecycleAction::PublishLists(publication) => self.publish_lists(publication),
            LifecycleAction::RecordFailure(record) => {
                managed.remember_end(&record.reason);
                let (reason, pause) = (record.reason, record.pause);
                managed.log_failure(&reason, pause);
                tracing::info!(server = %managed.id, reason, ?pause, "server is down");
            }
            LifecycleAction::RecordSlowStart(hint) => {
                managed.log_event(&hint);
                tracing::info!(server = %managed.id, hint, "server is slow to start");
            }
            LifecycleAction::PublishStatus => {
                managed.publish(self.lifecycle.snapshot());
                self.shared.stir();
            }
            LifecycleAction::Acknowledge(..) => {}
        }
    }

    fn connect(&mut self, request: &ConnectRequest, credentials: u64) {
        let managed = &self.managed;
        managed.first_request.get_or_init(Instant::now);
        // A server that was started again may be another version of itself.
        managed.modern_only.store(false, Ordering::Relaxed);
        let host: Arc<dyn ClientHandler> = match &request.adopted {
            Some(offers) => Arc::new(CallerHost::new(offers, Arc::clone(&managed.sends_requests))),
            None => Arc::new(AttributedHost {
                server: managed.id.clone(),
                inner: Arc::clone(&self.host),
            }),
        };
        let offers = Arc::new(host.offers());
        let settings = managed.wire_settings(request.protocol, host, &self.client);
        self.link.connect(&managed.settings.server, settings, offers, credentials);
    }
}

/// Returns a future that completes when the credentials of a server change; `None` if it has none.
fn credential_change(managed: &ManagedServer) -> Option<BoxFuture<'static, ()>> {
    let credentials = Arc::clone(managed.settings.server.credentials()?);
    Some(Box::pin(async move { credentials.changed().await }))
}

async fn changed(credentials: &mut Option<BoxFuture<'static, ()>>) {
    match credentials {
        Some(changed) => changed.await,
        None => std::future::pending().await,
    }
}

/// Waits until a time; forever if there is none.
pub(super) async fn sleep_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}
