//! Why a conversation cannot be had.

use std::io;
use std::path::{Path, PathBuf};

use super::Id;

/// Why a conversation cannot be had, kept or removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Nothing can be read or written there.
    #[error("cannot use `{}`", path.display())]
    Unusable {
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// There is no such conversation.
    #[error("unknown conversation `{name}`")]
    Unknown {
        /// As asked for.
        name: String,
        /// What comes nearest.
        nearest: Vec<String>,
    },
    /// There is no conversation at all.
    #[error("there is no conversation yet")]
    Empty,
    /// Several conversations are meant.
    #[error("`{name}` is ambiguous: {}", .candidates.iter().map(Id::as_str).collect::<Vec<_>>().join(", "))]
    Ambiguous {
        /// As asked for.
        name: String,
        /// All that it could be.
        candidates: Vec<Id>,
    },
    /// Somebody else writes to it.
    #[error("conversation `{id}` is in use")]
    InUse {
        /// Which.
        id: Id,
    },
    /// It is not as it was written.
    #[error("conversation `{id}` is damaged: line {line}: {reason}")]
    Damaged {
        /// Which.
        id: Id,
        /// Where, counted from 1.
        line: usize,
        /// How.
        reason: String,
    },
    /// It was written by a later version.
    #[error("conversation `{id}` is of a later version ({version})")]
    Later {
        /// Which.
        id: Id,
        /// The version of its form.
        version: u32,
    },
    /// It has no such message.
    #[error("conversation `{id}` has no message {at}: it has {messages}")]
    NoMessage {
        /// Which.
        id: Id,
        /// The message asked for, counted from 1.
        at: usize,
        /// How many it has.
        messages: usize,
    },
}

impl StoreError {
    pub(super) fn unusable(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |source| Self::Unusable { path: path.to_owned(), source }
    }

    /// What to do next, if that can be said.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unusable { .. } => {
                Some("see that the folder can be written to and the disk has room".to_owned())
            }
            Self::Unknown { nearest, .. } if nearest.is_empty() => {
                Some("see those there are with `consort conversations list`".to_owned())
            }
            Self::Unknown { nearest, .. } => {
                let names: Vec<String> = nearest.iter().map(|name| format!("`{name}`")).collect();
                Some(format!("did you mean {}?", names.join(" or ")))
            }
            Self::Ambiguous { .. } => Some("write more of it".to_owned()),
            Self::InUse { .. } => Some(
                "end what uses it, or go on from a copy: `consort conversations fork`".to_owned(),
            ),
            Self::Damaged { line, .. } if *line > 1 => Some(
                "what comes before can be had: `consort conversations fork ID --at N`".to_owned(),
            ),
            Self::Later { .. } => Some("use the version of Consort that wrote it".to_owned()),
            Self::Damaged { .. } | Self::NoMessage { .. } | Self::Empty => None,
        }
    }
}
