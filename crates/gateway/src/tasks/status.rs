//! Status notifications of 2025-11-25 tasks: for legacy clients as the server sends them, for modern ones with the
//! whole state, as the extension defines it.

use std::collections::BTreeMap;
use std::sync::Arc;

use consort_core::{ClientCapabilities, Object, ServerId, SubscriptionEvent, SubscriptionEvents};
use consort_protocol::splice;
use consort_server::ClientSessionState;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::request::TaskRequest;
use super::{TaskRef, TaskStore, inputs, is_terminal, renamed};
use crate::endpoint::GatewayEndpoint;
use crate::request::ClientRequest;

/// The notification of 2025-11-25.
const STATUS: &str = "notifications/tasks/status";

/// The notification of the extension.
const UPDATED: &str = "notifications/tasks";

/// Notifies a legacy client about its new task until that ends.
pub(super) fn notify_legacy(
    endpoint: &Arc<GatewayEndpoint>,
    session: &Arc<ClientSessionState>,
    server: &ServerId,
    task: String,
    name: &str,
    mut last: Option<String>,
) {
    if is_terminal(last.as_deref()) {
        return;
    }
    let about = TaskRequest::of_session(endpoint, session, server, task);
    let (session_of, name_of) = (Arc::downgrade(session), name.to_owned());
    let mut telling = JoinSet::new();
    telling.spawn(async move {
        let Some(mut events) = about.listen().await else { return };
        // It may have changed before we listened.
        let mut state = about.ask("tasks/get").await.ok();
        loop {
            let status = state.as_ref().and_then(|state| state.text("status"));
            if let Some(state) = state.filter(|_| status != last) {
                let Some(session) = session_of.upgrade() else { return };
                let params = renamed(&state, &name_of);
                session.notify(splice::notification(STATUS, Some(params.json())));
            }
            if is_terminal(status.as_deref()) {
                break;
            }
            // What is said again may say more.
            last = None;
            state = match next(&mut events).await {
                Some((task, state)) if task == about.task => Some(state),
                Some(_) => None,
                None => break,
            };
        }
        if let Some(session) = session_of.upgrade() {
            session.unfollow(&name_of);
        }
    });
    session.follow(name.to_owned(), telling);
}

/// The next state of any task on a connection.
async fn next(events: &mut SubscriptionEvents) -> Option<(String, Object)> {
    loop {
        match events.next().await? {
            SubscriptionEvent::Notification { method, params } if method == STATUS => {
                return Some((params.text("taskId").unwrap_or_default(), params));
            }
            SubscriptionEvent::End(_) => return None,
            _ => {}
        }
    }
}

/// Notifies a modern client about tasks of 2025-11-25 on one connection, beginning with their current state. Returns
/// the ids of the tasks it will be notified about.
pub(crate) async fn notify_modern(
    store: &Arc<TaskStore>,
    request: &ClientRequest,
    offers: &Arc<ClientCapabilities>,
    tickets: Vec<(String, TaskRef)>,
    sender: mpsc::Sender<(String, Object)>,
    telling: &mut JoinSet<()>,
) -> Vec<String> {
    let about = |(name, ticket): (String, TaskRef)| {
        let about = TaskRequest::new(request, &ticket, offers).quiet();
        (ticket.task, (about, name))
    };
    let tasks: BTreeMap<String, (TaskRequest, String)> = tickets.into_iter().map(about).collect();
    let Some((first, _)) = tasks.values().next() else { return Vec::new() };
    let Some(mut events) = first.listen().await else { return Vec::new() };
    let names = tasks.values().map(|(_, name)| name.clone()).collect();
    let store = Arc::clone(store);
    telling.spawn(async move {
        let tell = async |(about, name): &(TaskRequest, String)| {
            match inputs::detailed(&store, about, name).await {
                Ok(state) => sender.send((UPDATED.to_owned(), state)).await.is_ok(),
                // Whoever asks for it is told why it cannot be had.
                Err(_) => true,
            }
        };
        for task in tasks.values() {
            if !tell(task).await {
                return;
            }
        }
        while let Some((task, _)) = next(&mut events).await {
            if let Some(task) = tasks.get(&task)
                && !tell(task).await
            {
                return;
            }
        }
    });
    names
}
