//! OAuth clients: those of the config, those with a document of their own, and those that registered themselves.

use std::sync::Arc;

use zeroize::Zeroizing;

use super::client_document::{
    ClientDocumentFetcher, ClientDocuments, DocumentError, check_url, host_of,
};
use super::dynamic_client::{self, DynamicClient};
use super::redirect_uri;
use crate::digest::digest_of;
use crate::record::client::ClientRecord;
use crate::state::{ActiveSettings, IdentityState};
use crate::store::IdentityStoreError;

/// Finds clients by their ids.
#[derive(Debug)]
pub(crate) struct ClientDirectory {
    documents: ClientDocuments,
}

/// A client.
#[derive(Clone, Debug)]
pub(crate) struct OAuthClient {
    pub(crate) id: String,
    /// The digest of the id, by which it is stored.
    pub(crate) digest: String,
    /// The name, as it calls itself unless the config names it.
    pub(crate) name: String,
    pub(crate) origin: ClientOrigin,
    pub(crate) redirect_uris: Vec<String>,
    /// Its secret, if it has one.
    secret: Option<Arc<Zeroizing<String>>>,
}

/// The party that vouches for a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClientOrigin {
    /// The operator.
    Config,
    /// The host of its document.
    Document(String),
    /// Nobody.
    Itself,
}

/// The reason why there is no such client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ClientError {
    /// The id is unknown, forgotten or blocked.
    #[error("{0}")]
    Unknown(String),
    /// Too many new clients; the seconds to wait.
    #[error("too many new clients: try again in {0} s")]
    TooMany(u64),
    /// The store does not work.
    #[error("{0}")]
    Unavailable(String),
}

impl From<IdentityStoreError> for ClientError {
    fn from(error: IdentityStoreError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

impl OAuthClient {
    /// Returns true if it must authenticate.
    pub(crate) fn is_confidential(&self) -> bool {
        self.secret.is_some()
    }

    /// Returns true if this is its secret. Digests are compared: how much of them agrees tells nothing.
    pub(crate) fn is_secret(&self, shown: &str) -> bool {
        self.secret.as_ref().is_some_and(|secret| digest_of(secret) == digest_of(shown))
    }

    /// Returns true if an error may be sent to a redirect URI without a page: the operator or the host of the client
    /// vouches that it belongs to the client.
    pub(crate) fn vouches_for(&self, uri: &str) -> bool {
        match &self.origin {
            ClientOrigin::Config => true,
            ClientOrigin::Document(host) => redirect_uri::https_host(uri) == Some(host),
            ClientOrigin::Itself => false,
        }
    }
}

impl ClientDirectory {
    pub(crate) fn new(state: &IdentityState, fetcher: Arc<dyn ClientDocumentFetcher>) -> Self {
        let limits = &state.active().settings.limits;
        Self { documents: ClientDocuments::new(fetcher, limits, state.clock.clone()) }
    }

    /// Returns a client by its id.
    pub(crate) async fn find(
        &self,
        state: &IdentityState,
        active: &ActiveSettings,
        id: &str,
    ) -> Result<OAuthClient, ClientError> {
        let digest = digest_of(id);
        let known = state.records.get::<ClientRecord>(digest.as_str()).await?;
        if known.is_some_and(|known| known.record.is_blocked) {
            return Err(ClientError::Unknown("this client is blocked".to_owned()));
        }
        let settings = &active.settings.authorization;
        let client = |name: String, origin, redirect_uris, secret| OAuthClient {
            id: id.to_owned(),
            digest,
            name,
            origin,
            redirect_uris,
            secret,
        };
        // One that the operator registered is never fetched, even if its id is a URL.
        if let Some(registered) = settings.clients.get(id) {
            let name = registered.name.clone().unwrap_or_else(|| id.to_owned());
            let uris = registered.redirect_uris.clone();
            return Ok(client(name, ClientOrigin::Config, uris, registered.secret.clone()));
        }
        if id.starts_with("https://") {
            check_url(id, settings, &active.settings.location)
                .map_err(|reason| ClientError::Unknown(reason.to_owned()))?;
            let (limits, new_hosts) = (&active.settings.limits, &state.rates.new_client_hosts);
            let document = self.documents.client(id, settings, limits, new_hosts).await;
            let document = document.map_err(|error| match error {
                DocumentError::TooMany(seconds) => ClientError::TooMany(seconds),
                DocumentError::Unusable(reason) => ClientError::Unknown(format!(
                    "the client metadata document cannot be used: {reason}"
                )),
            })?;
            let name = document.name.clone().unwrap_or_default();
            let origin = ClientOrigin::Document(host_of(id).to_owned());
            return Ok(client(name, origin, document.redirect_uris.clone(), None));
        }
        if id.starts_with(dynamic_client::PREFIX) {
            return dynamic(state, active, id)
                .map(|(dynamic, secret)| {
                    let name = dynamic.name.unwrap_or_else(|| "An unnamed client".to_owned());
                    client(name, ClientOrigin::Itself, dynamic.redirect_uris, secret)
                })
                .ok_or_else(|| {
                    ClientError::Unknown("this client is no longer registered here".to_owned())
                });
        }
        Err(ClientError::Unknown("unknown client".to_owned()))
    }
}

type DynamicEntry = (DynamicClient, Option<Arc<Zeroizing<String>>>);

fn dynamic(state: &IdentityState, active: &ActiveSettings, id: &str) -> Option<DynamicEntry> {
    let settings = &active.settings.authorization;
    let mut client = DynamicClient::open(&state.keys, id)?;
    if client.epoch != state.client_epoch() || !settings.dynamic_registration {
        return None;
    }
    // The config may have become narrower since.
    client.redirect_uris.retain(|uri| redirect_uri::is_sound(uri, settings));
    let mut secret = None;
    if client.is_confidential {
        secret = Some(Arc::new(Zeroizing::new(DynamicClient::secret(&state.keys, id)?)));
    }
    Some((client, secret))
}
