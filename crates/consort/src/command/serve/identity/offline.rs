//! Users of a config while no gateway serves it.

use std::path::Path;
use std::sync::Arc;

use consort_config::ConsortOptions;
use consort_core::Caller;
use consort_identity::{IdentityService, IssuerSettings, RoleRights};
use consort_server::{BearerToken, ClientAccess};

use super::super::address::{DEFAULT_ADDRESS, base_path};
use super::super::token::{self, MissingToken};
use super::{ServedIdentity, issuer_settings, location, role_rights};
use crate::exit::CommandError;
use crate::recording::CommandRecords;

/// Users of a config, opened in the store.
pub(crate) struct OfflineIdentity {
    identity: ServedIdentity,
    records: CommandRecords,
}

impl OfflineIdentity {
    /// Opens the users of a config; none if it has no users. Secrets of the config are not read: nothing is asked of the
    /// issuer. Tokens are those that can be explained.
    pub(crate) async fn open(
        options: &ConsortOptions,
        config: Option<&Path>,
        tokens: Vec<BearerToken>,
        records: CommandRecords,
    ) -> Result<Option<Self>, CommandError> {
        if !options.has_authorization_server() {
            return Ok(None);
        }
        let options = without_secrets(options);
        let place = location(&options, &DEFAULT_ADDRESS, &base_path(&options)?)?;
        let (access, sinks) = (ClientAccess::Tokens(tokens), records.sinks());
        let opened = ServedIdentity::open(&options, config, Some(place), &access, &sinks).await?;
        Ok(opened.map(|identity| Self { identity, records }))
    }

    /// Returns the users.
    pub(crate) fn service(&self) -> &IdentityService {
        &self.identity.service
    }

    /// Writes what is pending, and closes the store and the ledger.
    pub(crate) async fn close(self) {
        ServedIdentity::close(Some(self.identity)).await;
        self.records.end();
    }
}

/// Returns the options without credentials at the issuer and of clients, which may be in the environment of a service only.
fn without_secrets(options: &ConsortOptions) -> ConsortOptions {
    let mut options = options.clone();
    for issuer in options.issuers.values_mut() {
        (issuer.client_secret, issuer.proxy) = (None, None);
    }
    if let Some(authorization) = &mut options.authorization {
        authorization.client_metadata_proxy = None;
        for client in authorization.clients.values_mut() {
            client.secret = None;
        }
    }
    options
}

/// The tokens of a config that can be read, and the reasons why others cannot.
pub(crate) struct ReadableTokens {
    pub(crate) tokens: Vec<BearerToken>,
    pub(crate) failures: Vec<CommandError>,
}

impl ReadableTokens {
    /// Reads the owner's token and those of the config.
    pub(crate) fn read(options: &ConsortOptions, config: Option<&Path>) -> Self {
        let (mut tokens, mut failures) = (Vec::new(), Vec::new());
        match token::stored_token(None, MissingToken::Leave) {
            Ok(stored) => tokens.extend(stored.map(|stored| BearerToken::owner(stored.secret))),
            Err(error) => failures.push(error),
        }
        // A command that explains a token runs no programs.
        for (name, secret) in token::each_of_callers(options, config, MissingToken::Skip) {
            match secret {
                Ok(secret) => tokens.push(BearerToken::client(name, secret)),
                Err(error) => failures.push(error),
            }
        }
        Self { tokens, failures }
    }
}

/// Returns the settings of the issuer of a config, with its secrets; none without an issuer.
pub(crate) fn configured_issuer(
    options: &ConsortOptions,
    config: Option<&Path>,
) -> Option<Result<IssuerSettings, CommandError>> {
    let folder = config.and_then(Path::parent).unwrap_or(Path::new(""));
    let (name, issuer) = options.issuers.iter().next()?;
    Some(issuer_settings(name, issuer, folder))
}

/// Returns the redirect URI of the gateway at an issuer.
pub(crate) fn redirect_uri(options: &ConsortOptions, issuer: &str) -> Result<String, CommandError> {
    let place = location(options, &DEFAULT_ADDRESS, &base_path(options)?)?;
    Ok(place.url(&format!("/oauth/callback/{issuer}")))
}

/// Returns the roles of a caller by a config.
pub(crate) fn roles_of(options: &ConsortOptions, caller: &Caller) -> Vec<String> {
    let authorization = options.authorization.clone().unwrap_or_default();
    let rights: Arc<dyn RoleRights> = role_rights(options, &authorization);
    rights.roles(caller)
}
