//! Users, keys and clients of a config: through the admin API of the gateway that serves it, or in the store.

use std::fmt::Write;
use std::time::Duration;

use consort_config::{Config, ConsortOptions};
use consort_core::escape::escape_text;
use consort_identity::{
    ClientSummary, CreatedKey, GrantSummary, KeyRequest, KeySummary, ManageError, SignInLink,
    TokenExplanation, UserSummary,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::admin_client::AdminRequest;
use crate::cli::{GlobalArguments, LedgerSelection};
use crate::command::{OfflineIdentity, ReadableTokens};
use crate::command_hub::{read_untrusted, refuse_blocking};
use crate::exit::{CommandError, ExitStatus};
use crate::gateways::{RunningGateway, config_file};
use crate::recording::CommandRecords;

/// Time limit of a request of `consort user`, `key`, `client` and `whoami` to the gateway.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Users, keys and clients of a config.
pub(crate) enum IdentityAdmin {
    /// Of a gateway that serves.
    Gateway(Box<RunningGateway>),
    /// In the store, which no gateway uses.
    Store(Box<OfflineIdentity>),
}

impl IdentityAdmin {
    /// Connects to the gateway of the config, or opens the store.
    pub(crate) async fn open(common: &GlobalArguments) -> Result<Self, CommandError> {
        if let Some(gateway) = gateway_of(common)? {
            return Ok(Self::Gateway(Box::new(gateway)));
        }
        let config = usable_config(common)?;
        let opened = open_store(config.as_ref(), None).await?;
        let opened = opened.ok_or_else(no_users)?;
        Ok(Self::Store(Box::new(opened)))
    }

    /// Writes what is pending.
    pub(crate) async fn close(self) {
        if let Self::Store(offline) = self {
            offline.close().await;
        }
    }

    /// Returns the users.
    pub(crate) async fn users(&self) -> Result<Vec<UserSummary>, CommandError> {
        match self {
            Self::Gateway(gateway) => get(gateway, "/api/users").await,
            Self::Store(offline) => Ok(offline.service().users().await?),
        }
    }

    /// Adds a user.
    pub(crate) async fn add_user(&self, name: &str) -> Result<SignInLink, CommandError> {
        match self {
            Self::Gateway(gateway) => post(gateway, "/api/users", &json!({ "name": name })).await,
            Self::Store(offline) => Ok(offline.service().add_user(name).await?),
        }
    }

    /// Removes a user; returns the name that replaces the user's if that is erased.
    pub(crate) async fn remove_user(
        &self,
        name: &str,
        erase: bool,
    ) -> Result<Option<String>, CommandError> {
        match self {
            Self::Gateway(gateway) => {
                let path = format!("/api/users/{}/remove", encode(name));
                let removed: Value = post(gateway, &path, &json!({ "erase": erase })).await?;
                Ok(removed["erased"].as_str().map(str::to_owned))
            }
            Self::Store(offline) if erase => Ok(Some(offline.service().erase_user(name).await?)),
            Self::Store(offline) => {
                offline.service().remove_user(name).await?;
                Ok(None)
            }
        }
    }

    /// Links a subject of the issuer to a user.
    pub(crate) async fn link_user(&self, name: &str, subject: &str) -> Result<(), CommandError> {
        match self {
            Self::Gateway(gateway) => {
                let path = format!("/api/users/{}/link", encode(name));
                post(gateway, &path, &json!({ "subject": subject })).await
            }
            Self::Store(offline) => Ok(offline.service().link_user(name, subject).await?),
        }
    }

    /// Returns the grants of a user.
    pub(crate) async fn grants(&self, name: &str) -> Result<Vec<GrantSummary>, CommandError> {
        match self {
            Self::Gateway(gateway) => {
                get(gateway, &format!("/api/users/{}/grants", encode(name))).await
            }
            Self::Store(offline) => Ok(offline.service().grants(name).await?),
        }
    }

    /// Ends the sessions and grants of a user, or of every user.
    pub(crate) async fn sign_out(&self, name: Option<&str>) -> Result<(), CommandError> {
        match (self, name) {
            (Self::Gateway(gateway), Some(name)) => {
                post(gateway, &format!("/api/users/{}/sign-out", encode(name)), &json!({})).await
            }
            (Self::Gateway(gateway), None) => post(gateway, "/api/sign-out-all", &json!({})).await,
            (Self::Store(offline), Some(name)) => Ok(offline.service().sign_out_user(name).await?),
            (Self::Store(offline), None) => Ok(offline.service().sign_out_all().await?),
        }
    }

    /// Returns the API keys.
    pub(crate) async fn keys(&self) -> Result<Vec<KeySummary>, CommandError> {
        match self {
            Self::Gateway(gateway) => get(gateway, "/api/keys").await,
            Self::Store(offline) => Ok(offline.service().keys().await?),
        }
    }

    /// Creates an API key.
    pub(crate) async fn create_key(&self, request: KeyRequest) -> Result<CreatedKey, CommandError> {
        match self {
            Self::Gateway(gateway) => post(gateway, "/api/keys", &json!(request)).await,
            Self::Store(offline) => Ok(offline.service().create_key(request).await?),
        }
    }

    /// Revokes an API key.
    pub(crate) async fn revoke_key(&self, id: &str) -> Result<(), CommandError> {
        match self {
            Self::Gateway(gateway) => delete(gateway, &format!("/api/keys/{}", encode(id))).await,
            Self::Store(offline) => Ok(offline.service().revoke_key(id).await?),
        }
    }

    /// Returns the OAuth clients.
    pub(crate) async fn clients(&self) -> Result<Vec<ClientSummary>, CommandError> {
        match self {
            Self::Gateway(gateway) => get(gateway, "/api/oauth-clients").await,
            Self::Store(offline) => Ok(offline.service().clients().await?),
        }
    }

    /// Blocks an OAuth client.
    pub(crate) async fn block_client(&self, id: &str) -> Result<(), CommandError> {
        match self {
            Self::Gateway(gateway) => {
                post(gateway, &format!("/api/oauth-clients/{}/block", encode(id)), &json!({})).await
            }
            Self::Store(offline) => Ok(offline.service().block_client(id).await?),
        }
    }

    /// Forgets every OAuth client that registered itself.
    pub(crate) async fn forget_clients(&self) -> Result<(), CommandError> {
        match self {
            Self::Gateway(gateway) => delete(gateway, "/api/oauth-clients").await,
            Self::Store(offline) => Ok(offline.service().forget_clients().await?),
        }
    }
}

/// Explains a token by the gateway of the config.
pub(crate) async fn explain_at(
    gateway: &RunningGateway,
    token: &str,
    at: &str,
) -> Result<TokenExplanation, CommandError> {
    post(gateway, "/api/whoami", &json!({ "token": token, "at": at })).await
}

/// Returns an answer of the admin API of a gateway.
pub(crate) async fn get<T: DeserializeOwned>(
    gateway: &RunningGateway,
    path: &str,
) -> Result<T, CommandError> {
    AdminRequest::get(path).answer(gateway, TIMEOUT).await
}

async fn post<T: DeserializeOwned>(
    gateway: &RunningGateway,
    path: &str,
    body: &Value,
) -> Result<T, CommandError> {
    AdminRequest::post(path, &body.to_string()).answer(gateway, TIMEOUT).await
}

async fn delete(gateway: &RunningGateway, path: &str) -> Result<(), CommandError> {
    AdminRequest::delete(path).answer(gateway, TIMEOUT).await
}

/// Returns the gateway that serves the config, if one does.
pub(crate) fn gateway_of(common: &GlobalArguments) -> Result<Option<RunningGateway>, CommandError> {
    let config = config_file(common)?;
    let ours = RunningGateway::all().into_iter().filter(|it| it.uses(config.as_deref()));
    let (mut with_api, without_api): (Vec<_>, Vec<_>) = ours.partition(|gateway| gateway.admin);
    if with_api.is_empty()
        && let Some(gateway) = without_api.first()
    {
        let address = gateway.local_address();
        let message = format!(
            "the gateway at {address} uses the identity store, and does not serve the admin API: it was started \
             with --no-console"
        );
        return Err(CommandError::usage(message)
            .hint("stop the gateway, or restart it without --no-console"));
    }
    Ok((!with_api.is_empty()).then(|| with_api.swap_remove(0)))
}

/// The config in force, if there is one. Nothing of it is started.
pub(crate) fn usable_config(common: &GlobalArguments) -> Result<Option<Config>, CommandError> {
    let config = read_untrusted(common)?;
    config.iter().try_for_each(refuse_blocking)?;
    Ok(config)
}

/// Opens the store of a config; none if it has no users.
pub(crate) async fn open_store(
    config: Option<&Config>,
    tokens: Option<ReadableTokens>,
) -> Result<Option<OfflineIdentity>, CommandError> {
    let usual = ConsortOptions::default();
    let options = config.map_or(&usual, |config| &config.options);
    let records = CommandRecords::new(&LedgerSelection::default(), config)?;
    let tokens = tokens.map(|tokens| tokens.tokens).unwrap_or_default();
    let file = config.map(|config| config.file.as_path());
    let opened = OfflineIdentity::open(options, file, tokens, records).await;
    opened.map_err(name_gateways)
}

/// Names the gateways that may use the store, where another process has it.
fn name_gateways(error: CommandError) -> CommandError {
    if !error.message.contains("in use by another process") {
        return error;
    }
    let running = RunningGateway::all();
    let known: Vec<String> = running
        .iter()
        .map(|gateway| match &gateway.config {
            Some(file) => {
                let file = escape_text(&file.display().to_string());
                format!("the gateway at {} with `--config {file}`", gateway.local_address())
            }
            None => format!("the gateway at {} without a config", gateway.local_address()),
        })
        .collect();
    match known.as_slice() {
        [] => error,
        known => {
            let exit = ExitStatus::Unreachable;
            let hint = format!(
                "it may be {}: use the same --config, or stop that gateway",
                known.join(", or ")
            );
            CommandError { exit, ..error }.hint(hint)
        }
    }
}

fn no_users() -> CommandError {
    CommandError::usage("users are not configured")
        .hint("add `[consort.authorization]` or an issuer, `[consort.issuers.NAME]`, to the config")
}

impl From<ManageError> for CommandError {
    fn from(error: ManageError) -> Self {
        let exit = match error {
            ManageError::Unavailable(_) => ExitStatus::Unreachable,
            ManageError::Unknown(_) | ManageError::Refused(_) => ExitStatus::Usage,
        };
        Self { exit, ..Self::usage(escape_text(&error.to_string())) }
    }
}

/// Encodes a part of a path.
fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            // A part of dots would be a step to another path.
            _ => {
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_part_of_a_path() {
        assert_eq!(encode("acme/ada@x.example"), "acme%2Fada%40x%2Eexample");
        assert_eq!(encode(".."), "%2E%2E");
        assert_eq!(encode("a b%?#ü"), "a%20b%25%3F%23%C3%BC");
    }
}
