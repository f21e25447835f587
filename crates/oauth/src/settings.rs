//! Settings of one server's login.

use std::fmt;

use consort_client::NetworkSettings;

use crate::limits::LoginLimits;

/// Settings of the login at one server.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct LoginSettings {
    /// The server's URL.
    pub server: String,
    /// Client credentials, if registered at the authorization server beforehand.
    pub client: Option<ClientCredentials>,
    /// URL of the client ID metadata document, for authorization servers that support it.
    pub client_metadata_url: Option<String>,
    /// Scopes to request, instead of those that the server advertises.
    pub scope: Option<String>,
    /// The authorization server, instead of the one that the server names.
    pub issuer: Option<String>,
    /// True to use the client credentials grant, without a user.
    pub client_credentials_grant: bool,
    /// Advice in the error if there is no login.
    pub advice: String,
    /// Proxy and certificates of the server's connections.
    pub network: NetworkSettings,
    /// Limits of time and size.
    pub limits: LoginLimits,
}

/// A client that was registered beforehand.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientCredentials {
    /// `client_id`.
    pub id: String,
    /// `client_secret`.
    pub secret: Option<String>,
}

/// Hides secrets.
impl fmt::Debug for LoginSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginSettings").field("server", &self.server).finish_non_exhaustive()
    }
}

/// Hides secrets.
impl fmt::Debug for ClientCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCredentials").field("id", &self.id).finish_non_exhaustive()
    }
}
