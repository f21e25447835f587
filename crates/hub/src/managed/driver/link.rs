//! The main connection of a server as its task holds it: the connection, and the requests in progress on it.

use std::sync::Arc;
use std::time::Duration;

use consort_client::{
    ChangeSubscription, ChangedLists, Client, ClientSettings, CloseReason, ConnectError,
    ConnectionNotice, ListChanges, ServerLocation, SubscriptionFilter,
};
use consort_core::{BoxFuture, ClientCapabilities, PrimitiveKind};
use consort_protocol::{Era, SERVER_OUTPUT};

use tokio::time::Instant;

use super::sleep_until;
use crate::lease::ConnectionUse;
use crate::lifecycle::{
    ChangeDelivery, ConnectFailure, ConnectedServer, ConnectionLoss, FailureKind, LifecycleInput,
    ListChange, ListReading, ListRequest, ProbeResult,
};
use crate::managed::reading::{probe, read_requested, reported_by};
use crate::managed::{ManagedServer, chain};
use crate::tasks::ServerTasks;
use crate::upstream::{ConnectionOwnership, UpstreamConnection};

/// A request in progress, if there is one.
type InProgress<T> = Option<BoxFuture<'static, T>>;

/// The main connection of a server, and the requests in progress on it.
#[derive(Default)]
pub(super) struct ServerLink {
    connecting: InProgress<Result<Client, ConnectError>>,
    closing: InProgress<()>,
    /// The capabilities and the generation of the credentials of the attempt or connection.
    offers: Arc<ClientCapabilities>,
    credentials: u64,
    open: Option<OpenLink>,
}

/// An open connection.
struct OpenLink {
    client: Client,
    /// Changes that are notified outside of a subscription.
    changes: ListChanges,
    subscription: Option<ChangeSubscription>,
    subscribing: InProgress<Option<ChangeSubscription>>,
    reading: InProgress<Vec<ListReading>>,
    probing: InProgress<ProbeResult>,
}

impl ServerLink {
    pub(super) fn connect(
        &mut self,
        server: &ServerLocation,
        settings: ClientSettings,
        offers: Arc<ClientCapabilities>,
        credentials: u64,
    ) {
        let server = server.clone();
        (self.offers, self.credentials) = (offers, credentials);
        self.connecting = Some(Box::pin(async move { Client::connect(&server, settings).await }));
    }

    pub(super) fn abort_connect(&mut self) {
        self.connecting = None;
    }

    pub(super) fn client(&self) -> Option<&Client> {
        self.open.as_ref().map(|open| &open.client)
    }

    /// Returns the capabilities declared on the connection.
    pub(super) fn offers(&self) -> &Arc<ClientCapabilities> {
        &self.offers
    }

    pub(super) fn subscribe(&mut self) {
        if let Some(open) = &mut self.open {
            let client = open.client.clone();
            open.subscribing =
                Some(Box::pin(
                    async move { client.listen(SubscriptionFilter::lists()).await.ok() },
                ));
        }
    }

    pub(super) fn read_lists(&mut self, request: ListRequest, retry_wait: Duration) {
        if let Some(open) = &mut self.open {
            let reading = read_requested(open.client.clone(), request, retry_wait);
            open.reading = Some(Box::pin(reading));
        }
    }

    pub(super) fn probe(&mut self) {
        if let Some(open) = &mut self.open {
            let client = open.client.clone();
            open.probing = Some(Box::pin(async move {
                let answered = probe(&client).await.is_ok();
                if answered { ProbeResult::Alive } else { ProbeResult::Silent }
            }));
        }
    }

    /// Returns the connection for callers.
    pub(super) fn offer(&self, tasks: Option<ServerTasks>) -> Option<UpstreamConnection> {
        let client = self.client()?.clone();
        let offers = Arc::clone(&self.offers);
        let used = Arc::new(ConnectionUse::new(&Arc::default()));
        let main = UpstreamConnection::new(
            client,
            offers,
            self.credentials,
            ConnectionOwnership::default(),
            tasks,
        );
        Some(main.in_use(used, None))
    }

    /// Ends the requests in progress, and keeps the end of the server's standard error.
    pub(super) fn withdraw(&mut self, managed: &ManagedServer) {
        if let Some(open) = &mut self.open {
            managed.remember_stderr(&open.client.stderr());
            open.subscription = None;
            (open.subscribing, open.reading, open.probing) = (None, None, None);
        }
    }

    pub(super) fn close(&mut self) {
        if let Some(open) = self.open.take() {
            self.closing = Some(Box::pin(open.client.close()));
        }
    }

    /// Leaves the connection to others that hold it.
    pub(super) fn abandon(&mut self) {
        self.open = None;
    }

    /// Waits for the end of a request in progress, the end of the connection, the deadline, or a change of the server's
    /// lists. Changes come last: however many there are, the rest goes on. It can be cancelled: nothing is lost.
    pub(super) async fn next_input(
        &mut self,
        managed: &ManagedServer,
        deadline: Option<Instant>,
    ) -> LifecycleInput {
        let Self { connecting, closing, offers, open, .. } = self;
        tokio::select! {
            biased;
            connected = current(connecting) => match connected {
                Ok(client) => {
                    let server = connected_server(&client, offers);
                    *open = Some(OpenLink::new(client));
                    LifecycleInput::Connected(server)
                }
                Err(error) => LifecycleInput::ConnectFailed(connect_failure(managed, &error)),
            },
            () = current(closing) => LifecycleInput::Closed,
            input = next_input_of(open, deadline) => input,
        }
    }
}

async fn next_input_of(open: &mut Option<OpenLink>, deadline: Option<Instant>) -> LifecycleInput {
    match open {
        Some(open) => open.next_input(deadline).await,
        None => {
            sleep_until(deadline).await;
            LifecycleInput::DeadlineReached
        }
    }
}

impl OpenLink {
    fn new(client: Client) -> Self {
        Self {
            changes: client.list_changes(),
            client,
            subscription: None,
            subscribing: None,
            reading: None,
            probing: None,
        }
    }

    async fn next_input(&mut self, deadline: Option<Instant>) -> LifecycleInput {
        let is_modern = self.client.about().protocol.revision.era() == Era::Modern;
        tokio::select! {
            biased;
            closed = self.client.closed() => LifecycleInput::Lost(connection_loss(&closed)),
            subscription = current(&mut self.subscribing) => {
                self.subscription = subscription;
                match self.subscription {
                    Some(_) => LifecycleInput::Subscribed,
                    None => LifecycleInput::SubscribeFailed,
                }
            }
            readings = current(&mut self.reading) => LifecycleInput::ListsRead(readings),
            result = current(&mut self.probing) => LifecycleInput::Probed(result),
            () = sleep_until(deadline) => LifecycleInput::DeadlineReached,
            lists = changed_lists(&mut self.changes, &self.client, is_modern) => {
                LifecycleInput::ListsChanged(lists)
            }
            notice = next_notice(&mut self.subscription) => match notice {
                Some(notice) => LifecycleInput::ListsChanged(list_change(&notice)),
                None => {
                    self.subscription = None;
                    LifecycleInput::SubscriptionEnded
                }
            },
        }
    }
}

/// Waits for a change that is notified outside of a subscription. A modern server notifies there of none.
async fn changed_lists(changes: &mut ListChanges, client: &Client, is_modern: bool) -> ListChange {
    loop {
        match changes.next().await {
            Some(ChangedLists { missed: true, .. }) => return ListChange::missed(),
            Some(lists) if !is_modern => {
                let kinds = reported(client, lists);
                if !kinds.is_empty() {
                    return ListChange { kinds, is_reported: true };
                }
            }
            Some(_) => {}
            // The end of the connection is another input.
            None => std::future::pending().await,
        }
    }
}

/// Waits for a request in progress, if there is one.
async fn current<T>(request: &mut InProgress<T>) -> T {
    let Some(pending) = request else { return std::future::pending().await };
    let result = pending.await;
    *request = None;
    result
}

async fn next_notice(subscription: &mut Option<ChangeSubscription>) -> Option<ConnectionNotice> {
    match subscription {
        Some(subscription) => subscription.next().await,
        None => std::future::pending().await,
    }
}

/// Returns the lists whose changes a legacy server declares to report.
fn reported(client: &Client, lists: ChangedLists) -> Vec<PrimitiveKind> {
    let about = client.about();
    let is_changed = |kind: &PrimitiveKind| {
        let is_changed = match kind {
            PrimitiveKind::Tools => lists.tools,
            PrimitiveKind::Prompts => lists.prompts,
            PrimitiveKind::Resources | PrimitiveKind::Templates => lists.resources,
        };
        is_changed && about.offers(reported_by(*kind))
    };
    PrimitiveKind::ALL.into_iter().filter(is_changed).collect()
}

/// Returns the change that a notice of a subscription reports.
fn list_change(notice: &ConnectionNotice) -> ListChange {
    let kinds: &[PrimitiveKind] = match notice {
        ConnectionNotice::Notification(body) => match body.method.as_str() {
            "notifications/tools/list_changed" => &[PrimitiveKind::Tools],
            "notifications/prompts/list_changed" => &[PrimitiveKind::Prompts],
            _ => &[PrimitiveKind::Resources, PrimitiveKind::Templates],
        },
        ConnectionNotice::Lost(_) | ConnectionNotice::Renewed | ConnectionNotice::Reopened => {
            return ListChange::missed();
        }
    };
    ListChange { kinds: kinds.to_vec(), is_reported: true }
}

fn connected_server(client: &Client, offers: &Arc<ClientCapabilities>) -> ConnectedServer {
    let about = client.about();
    let list_changes = match about.protocol.revision.era() {
        Era::Modern => ChangeDelivery::Subscription,
        Era::Legacy => ChangeDelivery::Unasked,
    };
    ConnectedServer {
        protocol: about.protocol,
        name: about.server.as_ref().and_then(server_name),
        capabilities: Arc::clone(offers),
        list_changes,
    }
}

fn server_name(info: &consort_core::Json) -> Option<String> {
    let info = info.to_object()?;
    let (name, version) = (info.text("name")?, info.text("version").unwrap_or_default());
    Some(format!("{name} {version}").trim_end().to_owned())
}

/// Returns the failure of a connection attempt, and keeps the server's own output about it.
fn connect_failure(managed: &ManagedServer, error: &ConnectError) -> ConnectFailure {
    let (reason, detail) = (chain(error), error.detail());
    if matches!(error, ConnectError::Closed(_) | ConnectError::TimedOut { .. }) {
        managed.remember_stderr(&detail);
    }
    // What a process wrote that ended is in the log already.
    if !matches!(error, ConnectError::Closed(_)) {
        for line in detail.lines_for_operator() {
            tracing::debug!(target: SERVER_OUTPUT, server = %managed.id, line, "failed handshake");
        }
    }
    ConnectFailure {
        kind: failure_kind(error),
        is_unauthorized: matches!(error, ConnectError::Unauthorized { .. }),
        reason,
        detail,
        hint: error.hint().map(str::to_owned),
    }
}

/// Returns the kind of a failed connection attempt. A proxy answers 502 to 504 for an absent server.
fn failure_kind(error: &ConnectError) -> FailureKind {
    match error {
        ConnectError::Unreachable { .. } | ConnectError::Status { status: 502..=504, .. } => {
            FailureKind::Connection
        }
        _ => FailureKind::Crash,
    }
}

/// Returns the loss of a closed connection. Only a broken connection is no crash of the server.
fn connection_loss(closed: &CloseReason) -> ConnectionLoss {
    let kind = match closed {
        CloseReason::Broken(_) => FailureKind::Connection,
        _ => FailureKind::Crash,
    };
    ConnectionLoss { kind, reason: closed.to_string(), detail: closed.detail() }
}
