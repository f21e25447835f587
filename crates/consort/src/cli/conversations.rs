//! What can be typed about conversations.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Conversations with models that are kept.
#[derive(Args, Debug)]
pub(crate) struct Conversations {
    /// Their folder (default: consort/conversations in the user's data folder)
    #[arg(long, global = true, value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: ConversationsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConversationsCommand {
    /// Show every conversation
    List,
    /// Show what was said and done in one
    Show {
        /// Its id, the beginning of it, the four digits at its end, or `last`
        id: String,
    },
    /// Copy one, and print the id of the copy
    Fork {
        /// Its id, the beginning of it, the four digits at its end, or `last`
        id: String,
        /// Copy up to and with this message, by its number in `show` (default: all)
        #[arg(long, value_name = "N")]
        at: Option<usize>,
    },
    /// Remove conversations for good
    Delete {
        /// Their ids, beginnings of them, the four digits at their ends, or `last`
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
        /// Remove without being asked
        #[arg(long, short)]
        yes: bool,
    },
}
