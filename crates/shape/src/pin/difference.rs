//! Differences between the current definitions and the approved ones.

use std::collections::BTreeSet;
use std::fmt;

use consort_core::ServerId;
use serde::Serialize;

use super::ServerLaunch;
use super::lock::{LockedServer, PinnedItem, PinnedKind, describe_item};

/// A difference between the current definitions and the approved ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "difference", rename_all = "snake_case")]
pub enum LockDifference {
    /// A server that is not approved.
    ServerNew {
        /// The server.
        server: ServerId,
    },
    /// A server whose launch settings changed.
    ServerChanged {
        /// The server.
        server: ServerId,
        /// The approved settings.
        from: ServerLaunch,
        /// The current settings.
        to: ServerLaunch,
    },
    /// A server that is no longer configured.
    ServerGone {
        /// The server.
        server: ServerId,
    },
    /// A definition that changed.
    Changed {
        /// The server.
        server: ServerId,
        /// Kind of the item.
        kind: PinnedKind,
        /// The server's name for it.
        name: String,
        /// The approved definition.
        from: PinnedItem,
        /// The current definition.
        to: PinnedItem,
    },
    /// An item that is not approved, of an approved server.
    New {
        /// The server.
        server: ServerId,
        /// Kind of the item.
        kind: PinnedKind,
        /// The server's name for it.
        name: String,
        /// The current definition.
        to: PinnedItem,
    },
    /// An item that no longer exists.
    #[serde(rename = "gone")]
    Removed {
        /// The server.
        server: ServerId,
        /// Kind of the item.
        kind: PinnedKind,
        /// The server's name for it.
        name: String,
    },
}

impl LockDifference {
    /// The server it concerns.
    pub fn server(&self) -> &ServerId {
        match self {
            Self::ServerNew { server }
            | Self::ServerChanged { server, .. }
            | Self::ServerGone { server }
            | Self::Changed { server, .. }
            | Self::New { server, .. }
            | Self::Removed { server, .. } => server,
        }
    }
}

impl fmt::Display for LockDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ServerNew { server } => write!(f, "{server}: the server is not in the lock"),
            Self::ServerChanged { server, .. } => {
                write!(f, "{server}: its command or URL changed")
            }
            Self::ServerGone { server } => {
                write!(f, "{server}: the server is no longer configured")
            }
            Self::Changed { server, kind, name, .. } => {
                write!(f, "{server}: {} changed", describe_item(*kind, name))
            }
            Self::New { server, kind, name, .. } => {
                write!(f, "{server}: {} is new", describe_item(*kind, name))
            }
            Self::Removed { server, kind, name } => {
                write!(f, "{server}: {} was removed", describe_item(*kind, name))
            }
        }
    }
}

/// Appends the differences between two states of a server.
pub(super) fn compare(
    server: &ServerId,
    old: &LockedServer,
    new: &LockedServer,
    differences: &mut Vec<LockDifference>,
) {
    if old.launch != new.launch {
        differences.push(LockDifference::ServerChanged {
            server: server.clone(),
            from: old.launch.clone(),
            to: new.launch.clone(),
        });
    }
    let all: BTreeSet<&(PinnedKind, String)> = old.items.keys().chain(new.items.keys()).collect();
    for key in all {
        let (server, kind, name) = (server.clone(), key.0, key.1.clone());
        differences.extend(match (old.items.get(key), new.items.get(key)) {
            (Some(from), Some(to)) if from != to => {
                let (from, to) = (from.clone(), to.clone());
                Some(LockDifference::Changed { server, kind, name, from, to })
            }
            (Some(_), None) => Some(LockDifference::Removed { server, kind, name }),
            (None, Some(to)) => Some(LockDifference::New { server, kind, name, to: to.clone() }),
            _ => None,
        });
    }
}
