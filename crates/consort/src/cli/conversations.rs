//! `consort conversations`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::examples;

/// Stored conversations with models.
#[derive(Args, Debug)]
pub(crate) struct ConversationsArguments {
    /// Folder of the conversations [default: consort/conversations in the user's data folder]
    #[arg(long, global = true, value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: ConversationsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConversationsCommand {
    /// List all conversations
    #[command(after_help = examples::CONVERSATIONS_LIST)]
    List,
    /// Show the messages and calls of a conversation
    #[command(after_help = examples::CONVERSATIONS_SHOW)]
    Show {
        /// Conversation id, a prefix of it, its last four digits, or `last`
        id: String,
    },
    /// Copy a conversation, and print the id of the copy
    #[command(after_help = examples::CONVERSATIONS_FORK)]
    Fork {
        /// Conversation id, a prefix of it, its last four digits, or `last`
        id: String,
        /// Last message to copy, by its number in `show` [default: all]
        #[arg(long, value_name = "N")]
        at: Option<usize>,
    },
    /// Delete conversations permanently
    #[command(after_help = examples::CONVERSATIONS_DELETE)]
    Delete {
        /// Conversation ids, prefixes of them, their last four digits, or `last`
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
        /// Delete without confirmation
        #[arg(long, short)]
        yes: bool,
    },
}
