//! Subscriptions to updates of resources and tasks of one server.

use std::sync::Arc;

use consort_client::ConnectionNotice;
use consort_core::{
    CallError, Json, ServerId, StreamSender, Subscription, SubscriptionEvent, attributed_requests,
};
use consort_protocol::Era;
use tokio::sync::mpsc;

use crate::call::explained;
use crate::chance::chance;
use crate::connection_key::ConnectionParty;
use crate::hub::Inner;
use crate::managed::ManagedServer;
use crate::upstream::UpstreamConnection;

/// Queued notifications of a subscriber.
const HEARD: usize = 256;

/// The delay before a lost subscription is requested again.
const AGAIN: std::time::Duration = std::time::Duration::from_secs(1);

/// Error code if a server does not report updates of a resource.
const NOT_TOLD: i64 = -32601;

/// Forwards notifications until it is dropped, and subscribes again if a connection ends. Returns the error if the
/// server refused the first subscription.
pub(crate) async fn run(
    hub: &Inner,
    subscription: &Subscription,
    emitter: &StreamSender<SubscriptionEvent>,
) -> CallError {
    let Some(managed) = &hub.server(&subscription.server) else {
        let name = subscription.server.to_string();
        return CallError::Unknown { kind: "server", name, nearest: Vec::new() };
    };
    let (sender, mut heard) = mpsc::channel(HEARD);
    let hearing = async {
        let mut first = true;
        loop {
            match subscribe_once(managed, subscription, &sender, first).await {
                Err(error) if first => return error,
                _ => first = false,
            }
            tokio::time::sleep(AGAIN.mul_f64(1.0 + chance())).await;
        }
    };
    let mut hearing = std::pin::pin!(hearing);
    loop {
        tokio::select! {
            biased;
            Some(event) = heard.recv() => emitter.emit(event).await,
            error = &mut hearing => return error,
        }
    }
}

/// Subscribes on one connection until it ends. If it is not the `first`, notifications may have been missed.
async fn subscribe_once(
    managed: &Arc<ManagedServer>,
    subscription: &Subscription,
    sender: &mpsc::Sender<SubscriptionEvent>,
    first: bool,
) -> Result<(), CallError> {
    let upstream = managed.upstream_for(&ConnectionParty::of_subscriber(subscription)).await?;
    let _in_use = managed.in_use();
    let failed = |error| explained(&managed.id, error);
    let uris = &subscription.resources;
    let updated = |uri: &str| {
        let params = Json::from(serde_json::json!({ "uri": uri })).to_object();
        SubscriptionEvent::Notification {
            method: "notifications/resources/updated".to_owned(),
            params: params.expect("it was written as one"),
        }
    };
    if upstream.client.about().protocol.revision.era() == Era::Modern {
        let filter = consort_client::SubscriptionFilter {
            resource_subscriptions: uris.clone(),
            task_ids: subscription.tasks.clone(),
            ..consort_client::SubscriptionFilter::default()
        };
        let mut notices = upstream.client.listen(filter).await.map_err(failed)?;
        let promised = &notices.accepted().resource_subscriptions;
        if let Some(uri) = uris.iter().find(|uri| !promised.contains(uri)) {
            return Err(untold(&managed.id, uri));
        }
        announce(sender, first, uris, updated).await;
        while let Some(notice) = until_retired(&upstream, notices.next()).await {
            pass_on(&managed.id, sender, notice, uris, updated, |_| true).await;
        }
        return Ok(());
    }
    let mut notices = upstream.client.notices();
    let mut watching = Vec::new();
    for uri in uris {
        watching.push(upstream.watch(uri).await.map_err(failed)?);
    }
    announce(sender, first, uris, updated).await;
    while let Some(notice) = until_retired(&upstream, notices.next()).await {
        if notice == ConnectionNotice::Renewed {
            // The server forgot with its session what it was asked to tell.
            for uri in uris {
                upstream.watch_again(uri).await.map_err(failed)?;
            }
        }
        let known = |uri: &str| uris.iter().any(|known| known == uri);
        pass_on(&managed.id, sender, notice, uris, updated, known).await;
    }
    Ok(())
}

/// Waits for the next notice; `None` also if the connection serves no new calls, because it was made with earlier
/// credentials.
async fn until_retired(
    upstream: &UpstreamConnection,
    next: impl Future<Output = Option<ConnectionNotice>>,
) -> Option<ConnectionNotice> {
    tokio::select! {
        biased;
        () = upstream.retired() => None,
        notice = next => notice,
    }
}

/// Returns the error of a server that accepts the subscription, but not for this resource.
fn untold(server: &ServerId, uri: &str) -> CallError {
    let message = format!("it does not support subscriptions to `{uri}`");
    let raw = serde_json::json!({ "code": NOT_TOLD, "message": message }).into();
    CallError::Execution { server: server.clone(), message, code: NOT_TOLD, raw }
}

/// Sends `Accepted` for the first subscription. For later ones, sends an update of every resource, since some may have
/// been missed.
async fn announce(
    sender: &mpsc::Sender<SubscriptionEvent>,
    first: bool,
    uris: &[String],
    updated: impl Fn(&str) -> SubscriptionEvent,
) {
    if first {
        let _ = sender.send(SubscriptionEvent::Accepted).await;
        return;
    }
    for uri in uris {
        let _ = sender.send(updated(uri)).await;
    }
}

async fn pass_on(
    server: &ServerId,
    sender: &mpsc::Sender<SubscriptionEvent>,
    notice: ConnectionNotice,
    uris: &[String],
    updated: impl Fn(&str) -> SubscriptionEvent,
    wanted: impl Fn(&str) -> bool,
) {
    match notice {
        ConnectionNotice::Notification(body)
            if body.method == "notifications/resources/updated" =>
        {
            if body.params.text("uri").is_some_and(|uri| wanted(&uri)) {
                let event =
                    SubscriptionEvent::Notification { method: body.method, params: body.params };
                let _ = sender.send(event).await;
            }
        }
        ConnectionNotice::Notification(body) if body.method.starts_with("notifications/tasks") => {
            // A task that waits for answers says in its state what it asks.
            let params = attributed_requests(server, body.params);
            let event = SubscriptionEvent::Notification { method: body.method, params };
            let _ = sender.send(event).await;
        }
        ConnectionNotice::Notification(_) => {}
        ConnectionNotice::Lost(_) | ConnectionNotice::Renewed | ConnectionNotice::Reopened => {
            for uri in uris {
                let _ = sender.send(updated(uri)).await;
            }
        }
    }
}
