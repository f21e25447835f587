//! `consort secret`.

use clap::{Args, Subcommand};

use super::examples;

#[derive(Debug, Subcommand)]
pub(crate) enum SecretCommand {
    /// Store a secret in the system's keyring, or the answer to an input of the config
    ///
    /// The value is read from standard input, or from a hidden prompt; it is never an argument.
    #[command(after_help = examples::SECRET_SET)]
    Set(SecretSelection),
    /// Remove a secret from the system's keyring, or the stored answer to an input
    #[command(after_help = examples::SECRET_REMOVE)]
    Remove(SecretSelection),
    /// List the stored answers to inputs, without their values
    #[command(after_help = examples::SECRET_LIST)]
    List,
}

/// A secret.
#[derive(Args, Debug)]
pub(crate) struct SecretSelection {
    /// Entry of the keyring, which configs refer to as `keyring:SERVICE/NAME`
    #[arg(value_name = "SERVICE/NAME", required_unless_present = "input")]
    pub(crate) entry: Option<String>,
    /// Input of the config, which it refers to as `${input:ID}`
    #[arg(long, value_name = "ID", conflicts_with = "entry")]
    pub(crate) input: Option<String>,
}
