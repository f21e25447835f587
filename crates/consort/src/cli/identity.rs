//! `consort key`, `consort user`, `consort client` and `consort whoami`.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Subcommand};
use consort_config::LongDuration;

use super::identity_examples as examples;

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Create an API key, and print it: it is shown only once
    #[command(after_help = examples::KEY_NEW)]
    New(NewKeyArguments),
    /// List the API keys, without their secrets
    #[command(after_help = examples::KEY_LIST)]
    List,
    /// Revoke an API key: the next request with it is refused
    #[command(after_help = examples::KEY_REVOKE)]
    Revoke {
        /// Id of the key, as `consort key list` shows it
        id: String,
        #[command(flatten)]
        confirmation: ConfirmationArguments,
    },
}

/// A new API key.
#[derive(Args, Debug)]
pub(crate) struct NewKeyArguments {
    /// Name of the key, by which it is listed
    #[arg(value_parser = key_name)]
    pub(crate) name: String,
    /// Lifetime of the key, such as 90d or 12h, or `never`
    #[arg(long, value_name = "TIME", default_value = "90d")]
    pub(crate) expires: KeyLifetime,
    /// Endpoint that the key opens, such as /mcp/review or /v1; repeatable [default: every MCP endpoint; with --admin, none]
    #[arg(long = "endpoint", value_name = "PATH")]
    pub(crate) endpoints: Vec<String>,
    /// Service account that the key is for, from `[consort.services]`
    #[arg(long, value_name = "NAME", conflicts_with = "user")]
    pub(crate) service: Option<String>,
    /// User that the key is for, by name or id [default: the owner]
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// Open the admin API too, if the user's roles allow it
    #[arg(long)]
    pub(crate) admin: bool,
}

/// The lifetime of an API key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyLifetime {
    /// It does not expire.
    Never,
    /// A time.
    For(Duration),
}

impl FromStr for KeyLifetime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "never" {
            return Ok(Self::Never);
        }
        let time: LongDuration = text.parse().map_err(|_| {
            "expected a duration from 1s to 3650d, such as 90d, or `never`".to_owned()
        })?;
        Ok(Self::For(time.get()))
    }
}

/// Confirmation of a command that takes something away.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct ConfirmationArguments {
    /// Do not ask for confirmation
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum UserCommand {
    /// Add a user, and print a link that signs the user in once
    #[command(after_help = examples::USER_ADD)]
    Add {
        /// Name of the user; rules match it as `user:local/NAME`
        name: String,
    },
    /// List the users
    #[command(after_help = examples::USER_LIST)]
    List,
    /// Remove a user, with the user's sessions, grants and API keys
    #[command(after_help = examples::USER_REMOVE)]
    Remove {
        /// Name of the user in rules, such as `ada` or `acme/ada@acme.example`, or id
        name: String,
        /// Keep the id under a name made of it, and erase the name from the identity store
        #[arg(long)]
        erase: bool,
        #[command(flatten)]
        confirmation: ConfirmationArguments,
    },
    /// Make a user known by another subject of the issuer too, after a move of the issuer
    #[command(after_help = examples::USER_LINK)]
    Link {
        /// Name or id of the user
        name: String,
        /// Subject at the configured issuer
        subject: String,
    },
    /// List the clients that act for a user
    #[command(after_help = examples::USER_GRANTS)]
    Grants {
        /// Name or id of the user
        name: String,
    },
    /// End the sessions and grants of a user, or of every user
    #[command(after_help = examples::USER_SIGN_OUT)]
    SignOut {
        #[command(flatten)]
        users: SignOutUsers,
        #[command(flatten)]
        confirmation: ConfirmationArguments,
    },
}

/// The users to sign out.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct SignOutUsers {
    /// Name or id of the user
    pub(crate) name: Option<String>,
    /// Sign out every user
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ClientCommand {
    /// List the OAuth clients that a user allowed something, or that are blocked
    #[command(after_help = examples::CLIENT_LIST)]
    List,
    /// Block an OAuth client: its grants end, and it gets no new ones
    #[command(after_help = examples::CLIENT_BLOCK)]
    Block {
        /// Id of the client, as `consort client list` shows it, or client id
        id: String,
        #[command(flatten)]
        confirmation: ConfirmationArguments,
    },
    /// Forget every OAuth client that registered itself: all of them must register again
    #[command(after_help = examples::CLIENT_FORGET_ALL)]
    ForgetAll {
        #[command(flatten)]
        confirmation: ConfirmationArguments,
    },
}

/// Options of `consort whoami`.
#[derive(Args, Debug)]
pub(crate) struct WhoamiArguments {
    /// File with the token to explain; `-` reads it from standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Endpoint to explain the token at
    #[arg(
        long,
        value_name = "PATH",
        default_value = "/mcp",
        requires = "token_file",
        value_parser = endpoint_path
    )]
    pub(crate) at: String,
}

fn key_name(text: &str) -> Result<String, String> {
    let is_name = !text.trim().is_empty()
        && text.chars().count() <= 64
        && !text.chars().any(char::is_control);
    is_name.then(|| text.to_owned()).ok_or_else(|| "expected 1 to 64 characters".to_owned())
}

fn endpoint_path(text: &str) -> Result<String, String> {
    let is_path = text.starts_with('/') && text.bytes().all(|byte| byte.is_ascii_graphic());
    is_path
        .then(|| text.to_owned())
        .ok_or_else(|| "expected the path of an endpoint, such as /mcp or /mcp/review".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_without_expiry_is_spelled_out() {
        assert_eq!("never".parse(), Ok(KeyLifetime::Never));
        let ninety = Duration::from_hours(90 * 24);
        assert_eq!("90d".parse(), Ok(KeyLifetime::For(ninety)));
        for text in ["", "0", "Never", "none", "-1d", "11y", "4000d"] {
            assert!(text.parse::<KeyLifetime>().is_err(), "{text}");
        }
    }
}
