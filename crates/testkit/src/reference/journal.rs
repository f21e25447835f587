//! Journal and changes of a reference server, and the subscribers to changes.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use rmcp::RoleServer;
use rmcp::model::{RequestId, ResourceUpdatedNotificationParam};
use rmcp::service::{Peer, SubscriptionSink};
use tokio::sync::watch;

/// The resource that can be subscribed to.
pub(super) const NOTE: &str = "memo://note";

/// Time that a change waits for subscriptions in progress.
const PATIENCE: Duration = Duration::from_secs(5);

/// State of a reference server across its sessions.
#[derive(Default)]
pub(super) struct Journal {
    pages: Mutex<Pages>,
    /// Subscriptions that the SDK has acknowledged, but not yet handed over. Their clients may expect every
    /// notification from now on.
    arriving: watch::Sender<usize>,
}

#[derive(Default)]
struct Pages {
    lines: Vec<String>,
    changed: BTreeSet<Change>,
    /// Legacy sessions, which are notified of every list.
    peers: Vec<Peer<RoleServer>>,
    /// Legacy sessions that are subscribed to the note.
    watchers: Vec<Peer<RoleServer>>,
    /// Modern subscriptions by the request that created them.
    sinks: HashMap<RequestId, SubscriptionSink>,
}

/// Kinds of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Change {
    Tools,
    Prompts,
    Resources,
    Note,
}

impl Change {
    pub(super) fn parse(word: &str) -> Option<Self> {
        match word {
            "tools" => Some(Self::Tools),
            "prompts" => Some(Self::Prompts),
            "resources" => Some(Self::Resources),
            "note" => Some(Self::Note),
            _ => None,
        }
    }
}

impl Journal {
    pub(super) fn write(&self, line: impl Into<String>) {
        self.pages().lines.push(line.into());
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.pages().lines.clone()
    }

    pub(super) fn has(&self, change: Change) -> bool {
        self.pages().changed.contains(&change)
    }

    pub(super) fn joined(&self, peer: Peer<RoleServer>) {
        self.pages().peers.push(peer);
    }

    pub(super) fn watched(&self, peer: Peer<RoleServer>) {
        self.pages().watchers.push(peer);
    }

    pub(super) fn subscribing(&self) {
        self.arriving.send_modify(|arriving| *arriving += 1);
    }

    pub(super) fn subscribed(&self, id: RequestId, sink: SubscriptionSink) {
        self.pages().sinks.insert(id, sink);
        self.arriving.send_modify(|arriving| *arriving -= 1);
    }

    pub(super) fn unsubscribed(&self, id: &RequestId) {
        let mut pages = self.pages();
        pages.sinks.remove(id);
        pages.lines.push("unsubscribed".to_owned());
    }

    /// Makes a change and notifies all subscribers. Disconnected ones are ignored.
    pub(super) async fn change(&self, change: Change) {
        let mut arriving = self.arriving.subscribe();
        let arrived = arriving.wait_for(|arriving| *arriving == 0);
        let _ = tokio::time::timeout(PATIENCE, arrived).await;
        let (peers, sinks) = {
            let mut pages = self.pages();
            pages.changed.insert(change);
            let peers = match change {
                Change::Note => pages.watchers.clone(),
                _ => pages.peers.clone(),
            };
            let sinks: Vec<_> = pages.sinks.values().cloned().collect();
            (peers, sinks)
        };
        for peer in peers {
            let _ = match change {
                Change::Tools => peer.notify_tool_list_changed().await,
                Change::Prompts => peer.notify_prompt_list_changed().await,
                Change::Resources => peer.notify_resource_list_changed().await,
                Change::Note => {
                    let updated = ResourceUpdatedNotificationParam::new(NOTE);
                    peer.notify_resource_updated(updated).await
                }
            };
        }
        for sink in sinks {
            let _ = match change {
                Change::Tools => sink.notify_tool_list_changed().await,
                Change::Prompts => sink.notify_prompt_list_changed().await,
                Change::Resources => sink.notify_resource_list_changed().await,
                Change::Note => sink.notify_resource_updated(NOTE).await,
            };
        }
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock()
    }
}
