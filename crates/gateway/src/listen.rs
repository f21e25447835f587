//! Change notifications to clients, in the form of their era.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use consort_core::{
    Caller, ClientCapabilities, ClientSession, Json, Object, PrimitiveKind, ServerId, StreamSender,
    Subscription, SubscriptionEvent, SubscriptionEvents,
};
use consort_protocol::splice::{self, ObjectWriter};
use consort_protocol::{Era, RequestId};
use consort_server::answer::{self, INVALID_PARAMS, RequestAnswer, RequestFailure};
use consort_server::{ClientDialect, ClientMessage, ClientSessionState, SessionStart};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::endpoint::GatewayEndpoint;
use crate::era_results::{call_failure, empty, unknown_resource};
use crate::gateway_state::GatewayState;
use crate::listing::EndpointListing;
use crate::request::ClientRequest;
use crate::tasks;

/// Names at the server, mapped to names at the client.
type ClientNames = BTreeMap<String, String>;

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
const UPDATED: &str = "notifications/resources/updated";

/// Primitive kinds, and the notification of a change to their list.
const LISTS: [(PrimitiveKind, &str); 4] = [
    (PrimitiveKind::Tools, "notifications/tools/list_changed"),
    (PrimitiveKind::Prompts, "notifications/prompts/list_changed"),
    (PrimitiveKind::Resources, "notifications/resources/list_changed"),
    (PrimitiveKind::Templates, "notifications/resources/list_changed"),
];

/// Notification filter of a modern client.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NotificationFilter {
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    tools_list_changed: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    prompts_list_changed: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    resources_list_changed: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resource_subscriptions: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    task_ids: Vec<String>,
}

impl NotificationFilter {
    fn includes(&self, kind: PrimitiveKind) -> bool {
        match kind {
            PrimitiveKind::Tools => self.tools_list_changed,
            PrimitiveKind::Prompts => self.prompts_list_changed,
            PrimitiveKind::Resources | PrimitiveKind::Templates => self.resources_list_changed,
        }
    }
}

/// Handles `subscriptions/listen`: sends a modern client the notifications it requested until it disconnects.
pub(crate) async fn listen(
    gateway: &Arc<GatewayState>,
    request: &ClientRequest,
    emitter: &StreamSender<ClientMessage>,
) -> Result<RequestAnswer, RequestFailure> {
    let invalid = || RequestFailure::new(INVALID_PARAMS, "`notifications` is missing or malformed");
    let wanted = request.params.get("notifications").ok_or_else(invalid)?;
    let mut wanted: NotificationFilter = wanted.read().map_err(|_| invalid())?;
    let ClientDialect::Modern(modern) = &request.dialect else { return Err(invalid()) };
    let listing = request.current_listing();
    wanted.prompts_list_changed &= listing.has(PrimitiveKind::Prompts);
    wanted.resources_list_changed &= listing.has(PrimitiveKind::Resources);
    let (sender, mut heard) = mpsc::channel(gateway.settings.limits.subscription_updates);
    let mut telling = JoinSet::new();
    let uris = std::mem::take(&mut wanted.resource_subscriptions);
    let names = std::mem::take(&mut wanted.task_ids);
    let (endpoint, caller) = (&request.endpoint, &request.caller);
    let watch = |server| UpstreamSubscriber {
        endpoint,
        caller,
        offers: &modern.offers,
        session: modern.session.clone(),
        server,
    };
    for (server, uris) in by_server(&listing, &uris) {
        // What a server does not tell of is not promised.
        if let Ok(events) = watch(server).begin(Some(&uris), None).await {
            wanted.resource_subscriptions.extend(uris.values().cloned());
            telling.spawn(updates(events, uris, sender.clone()));
        }
    }
    if !names.is_empty() && !modern.knows_tasks() {
        return Err(tasks::needs_extension());
    }
    for ((server, legacy), tickets) in tasks_by_server(gateway, &request.caller, &names) {
        if legacy.is_some() {
            let (offers, sender) = (&modern.offers, sender.clone());
            let told = tasks::notify_modern(
                &gateway.tasks,
                request,
                offers,
                tickets,
                sender,
                &mut telling,
            );
            wanted.task_ids.extend(Box::pin(told).await);
            continue;
        }
        let names: ClientNames =
            tickets.into_iter().map(|(name, ticket)| (ticket.task, name)).collect();
        if let Ok(events) = watch(server).begin(None, Some(&names)).await {
            wanted.task_ids.extend(names.values().cloned());
            telling.spawn(updates(events, names, sender.clone()));
        }
    }
    let tagged = |method: &str, params: &Object| notification(method, params, Some(&request.id));
    let mut accepted = ObjectWriter::new();
    let filter = Json::from_value(&wanted).expect("a filter always serialises");
    accepted.raw("notifications", filter.as_bytes());
    let accepted = accepted.finish_object();
    // From here on nothing is missed, and so only now is it promised.
    let mut changes = ListingChanges::new(&request.endpoint, &request.caller);
    let first = tagged("notifications/subscriptions/acknowledged", &accepted);
    emitter.emit(ClientMessage::Message(first.into())).await;
    loop {
        tokio::select! {
            methods = changes.next(gateway, |kind| wanted.includes(kind)) => {
                for method in methods {
                    emitter.emit(ClientMessage::Message(tagged(method, &Object::empty()).into())).await;
                }
            }
            Some((method, params)) = heard.recv() => {
                emitter.emit(ClientMessage::Message(tagged(&method, &params).into())).await;
            }
            () = gateway.lifecycle.draining.cancelled() => {
                let over = json!({ "resultType": "complete" });
                return Ok(RequestAnswer::result(&request.id, &over.into()));
            }
        }
    }
}

/// Sends list change notifications to a legacy client as long as its session lasts. For a session restored from its id,
/// every list may have changed.
pub(crate) async fn follow(
    gateway: Arc<GatewayState>,
    endpoint: Arc<GatewayEndpoint>,
    session: Arc<ClientSessionState>,
    start: SessionStart,
) {
    // Before that, whoever lists waits.
    gateway.settled().await;
    let mut changes = ListingChanges::new(&endpoint, &session.caller);
    if start == SessionStart::Restored {
        announce(&endpoint, &session);
    }
    loop {
        tokio::select! {
            methods = changes.next(&gateway, |_| true) => {
                for method in methods {
                    session.notify(notification(method, &Object::empty(), None));
                }
            }
            () = session.over.cancelled() => return,
            () = gateway.lifecycle.draining.cancelled() => return,
        }
    }
}

/// Notifies a legacy client that every list may have changed, since earlier notifications may be lost.
pub(crate) fn announce(endpoint: &GatewayEndpoint, session: &ClientSessionState) {
    let listing = endpoint.current_listing(&session.caller);
    for (_, method) in LISTS.iter().filter(|(kind, _)| listing.has(*kind)) {
        session.notify(notification(method, &Object::empty(), None));
    }
}

/// Handles `resources/subscribe` of a legacy client.
pub(crate) async fn subscribe(
    gateway: &Arc<GatewayState>,
    request: &ClientRequest,
    session: &Arc<ClientSessionState>,
) -> Result<RequestAnswer, RequestFailure> {
    let uri = request.text("uri")?;
    let listing = request.current_listing();
    let (server, uris) = by_server(&listing, std::slice::from_ref(&uri))
        .pop_first()
        .ok_or_else(|| unknown_resource(Era::Legacy, &uri))?;
    let (endpoint, caller) = (&request.endpoint, &session.caller);
    let watch = UpstreamSubscriber {
        endpoint,
        caller,
        offers: &session.offers,
        session: Some(session.client.clone()),
        server,
    };
    let events = watch.begin(Some(&uris), None).await?;
    let (sender, mut heard) = mpsc::channel(gateway.settings.limits.subscription_updates);
    let told = Arc::downgrade(session);
    let mut tasks = JoinSet::new();
    tasks.spawn(updates(events, uris, sender));
    tasks.spawn(async move {
        while let Some((method, params)) = heard.recv().await {
            let Some(session) = told.upgrade() else { return };
            session.notify(notification(&method, &params, None));
        }
    });
    session.watch(uri, tasks);
    Ok(RequestAnswer::result(&request.id, &empty()))
}

/// Groups resources by server: the URI at the server, mapped to the URI at the client.
fn by_server(listing: &EndpointListing, uris: &[String]) -> BTreeMap<ServerId, ClientNames> {
    let mut servers: BTreeMap<ServerId, ClientNames> = BTreeMap::new();
    for uri in uris {
        let known =
            listing.board(PrimitiveKind::Resources).get(uri).map(|choice| choice.route.clone());
        if let Some(route) = known.or_else(|| listing.owner(uri)) {
            servers.entry(route.server).or_default().insert(route.name, uri.clone());
        }
    }
    servers
}

/// The tasks of each connection: its server and, for a legacy one, the capabilities declared on it.
type TasksByServer = BTreeMap<(ServerId, Option<String>), Vec<(String, tasks::TaskRef)>>;

/// Resolves task names and groups the tasks by their connection.
fn tasks_by_server(gateway: &GatewayState, caller: &Caller, names: &[String]) -> TasksByServer {
    let mut servers = TasksByServer::new();
    for name in names {
        if let Some(ticket) = tasks::open(&gateway.tasks, caller, name) {
            let connection = (ticket.server.clone(), ticket.legacy.clone());
            servers.entry(connection).or_default().push((name.clone(), ticket));
        }
    }
    servers
}

/// A subscriber to a server's resources or tasks.
struct UpstreamSubscriber<'a> {
    endpoint: &'a GatewayEndpoint,
    caller: &'a Caller,
    offers: &'a Arc<ClientCapabilities>,
    session: Option<ClientSession>,
    server: ServerId,
}

impl UpstreamSubscriber<'_> {
    /// Subscribes. Returns once the server has accepted.
    async fn begin(
        self,
        resources: Option<&ClientNames>,
        tasks: Option<&ClientNames>,
    ) -> Result<SubscriptionEvents, RequestFailure> {
        let names = |names: Option<&ClientNames>| {
            names.into_iter().flat_map(ClientNames::keys).cloned().collect()
        };
        let mut events = self.endpoint.subscribe(Subscription {
            caller: self.caller.clone(),
            server: self.server,
            resources: names(resources),
            tasks: names(tasks),
            offers: Arc::clone(self.offers),
            session: self.session,
        });
        match events.next().await {
            Some(SubscriptionEvent::End(error)) => Err(call_failure(Era::Legacy, &error)),
            Some(_) => Ok(events),
            None => Err(RequestFailure::new(
                answer::INTERNAL,
                "the server does not support this subscription",
            )),
        }
    }
}

/// Forwards notifications under the names that the client knows.
async fn updates(
    mut events: SubscriptionEvents,
    names: ClientNames,
    sender: mpsc::Sender<(String, Object)>,
) {
    while let Some(event) = events.next().await {
        let SubscriptionEvent::Notification { method, params } = event else { continue };
        let member = if method == UPDATED { "uri" } else { "taskId" };
        let public = params.text(member).and_then(|name| names.get(&name));
        let Some(public) = public else { continue };
        let mut writer = ObjectWriter::new();
        writer.text(member, public);
        writer.members(&params, &[member]);
        let params = writer.finish_object();
        if sender.send((method, params)).await.is_err() {
            return;
        }
    }
}

/// Changes to the lists of an endpoint.
struct ListingChanges {
    listings: tokio::sync::watch::Receiver<Arc<EndpointListing>>,
    known: [(u64, u64); 4],
    quiet: tokio::time::Instant,
}

impl ListingChanges {
    fn new(endpoint: &GatewayEndpoint, caller: &Caller) -> Self {
        let listings = endpoint.follow(caller);
        let known = states(&listings.borrow());
        Self { listings, known, quiet: tokio::time::Instant::now() }
    }

    /// Waits until a list of the filter changes and returns the methods of the notifications.
    async fn next(
        &mut self,
        gateway: &GatewayState,
        wanted: impl Fn(PrimitiveKind) -> bool,
    ) -> Vec<&'static str> {
        loop {
            let changed = states(&self.listings.borrow_and_update()) != self.known;
            if changed {
                tokio::time::sleep_until(self.quiet).await;
                let now = states(&self.listings.borrow_and_update());
                let mut methods = Vec::new();
                for ((kind, method), (before, now)) in LISTS.iter().zip(self.known.iter().zip(&now))
                {
                    if before != now && wanted(*kind) && !methods.contains(method) {
                        methods.push(*method);
                    }
                }
                self.known = now;
                if !methods.is_empty() {
                    self.quiet = tokio::time::Instant::now() + gateway.settings.limits.changes;
                    return methods;
                }
            }
            if self.listings.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

fn states(listing: &EndpointListing) -> [(u64, u64); 4] {
    LISTS.map(|(kind, _)| listing.list_state(kind))
}

/// Builds a notification; for a modern client, with its subscription id.
fn notification(method: &str, params: &Object, subscription: Option<&RequestId>) -> Bytes {
    let Some(id) = subscription else {
        let params = (!params.is_empty()).then(|| without_subscription(params));
        return splice::notification(method, params.as_ref());
    };
    let mut writer = ObjectWriter::new();
    writer.members(params, &["_meta"]);
    writer.object("_meta", |meta| {
        if let Some(own) = params.meta() {
            meta.members(own, &[SUBSCRIPTION]);
        }
        meta.raw(SUBSCRIPTION, id.json().as_bytes());
    });
    splice::notification(method, Some(&writer.finish()))
}

/// Returns parameters without the id of the subscription between the server and the gateway.
fn without_subscription(params: &Object) -> Json {
    let Some(meta) = params.meta() else { return params.json().clone() };
    let mut writer = ObjectWriter::new();
    writer.members(params, &["_meta"]);
    writer.object("_meta", |written| written.members(meta, &[SUBSCRIPTION]));
    writer.finish()
}
