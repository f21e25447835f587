//! Errors of stored conversations.

use std::io;
use std::path::{Path, PathBuf};

use super::ConversationId;

/// Reason a conversation cannot be read, stored or removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A path cannot be read or written.
    #[error("cannot use `{}`", path.display())]
    Unusable {
        /// The path.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
    /// There is no such conversation.
    #[error("unknown conversation `{name}`")]
    Unknown {
        /// The name as given.
        name: String,
        /// Similar names.
        nearest: Vec<String>,
    },
    /// There are no conversations.
    #[error("no stored conversations")]
    Empty,
    /// A name that matches several conversations.
    #[error("`{name}` is ambiguous: {}", .candidates.iter().map(ConversationId::as_str).collect::<Vec<_>>().join(", "))]
    Ambiguous {
        /// The name as given.
        name: String,
        /// All matches.
        candidates: Vec<ConversationId>,
    },
    /// Another process writes to it.
    #[error("conversation `{id}` is in use")]
    InUse {
        /// Id of the conversation.
        id: ConversationId,
    },
    /// The file is damaged.
    #[error("conversation `{id}` is damaged: line {line}: {reason}")]
    Damaged {
        /// Id of the conversation.
        id: ConversationId,
        /// Number of the line, from 1.
        line: usize,
        /// Reason it is invalid.
        reason: String,
    },
    /// It was written by a later version.
    #[error("conversation `{id}` was written by a newer version ({version})")]
    Later {
        /// Id of the conversation.
        id: ConversationId,
        /// Version of its format.
        version: u32,
    },
    /// It has no such message.
    #[error("conversation `{id}` has no message {at}: it has {messages}")]
    NoMessage {
        /// Id of the conversation.
        id: ConversationId,
        /// The requested message, counted from 1.
        at: usize,
        /// Number of messages in it.
        messages: usize,
    },
}

impl StoreError {
    pub(super) fn unusable(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |source| Self::Unusable { path: path.to_owned(), source }
    }

    /// Returns advice for the user, if there is any.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unusable { .. } => {
                Some("check that the folder is writable and the disk has free space".to_owned())
            }
            Self::Unknown { nearest, .. } if nearest.is_empty() => {
                Some("list them with `consort conversations list`".to_owned())
            }
            Self::Unknown { nearest, .. } => {
                let names: Vec<String> = nearest.iter().map(|name| format!("`{name}`")).collect();
                Some(format!("did you mean {}?", names.join(" or ")))
            }
            Self::Ambiguous { .. } => Some("use a longer prefix".to_owned()),
            Self::InUse { .. } => Some(
                "stop the process that uses it, or continue in a copy: `consort conversations fork`".to_owned(),
            ),
            Self::Damaged { line, .. } if *line > 1 => Some(
                "copy the messages before the damage: `consort conversations fork ID --at N`".to_owned(),
            ),
            Self::Later { .. } => Some("use the version of Consort that wrote it, or a newer one".to_owned()),
            Self::Damaged { .. } | Self::NoMessage { .. } | Self::Empty => None,
        }
    }
}
