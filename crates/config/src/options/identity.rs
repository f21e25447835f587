//! `[consort.issuers]`, `[consort.authorization]` and the other tables about users of a gateway.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::duration::LongDuration;

/// The table `[consort.tls]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TlsConfig {
    /// File with the certificate and its intermediate certificates, as PEM, relative to the config.
    pub certificate: String,
    /// File with the private key, as PEM, relative to the config.
    pub key: String,
}

/// The table `[consort.issuers.NAME]`: an `OpenID` Connect provider that signs users in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct IssuerConfig {
    /// Issuer identifier, exactly as in its metadata.
    pub issuer: String,
    /// Client id of the gateway at the issuer.
    pub client_id: String,
    /// Client secret of the gateway: `env:NAME`, or `file:PATH` relative to the config.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    /// Claim that names users in rules: `email`, if verified, or `sub`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["email", "sub"]))]
    pub username_claim: Option<String>,
    /// Trusts e-mail addresses without `email_verified`: only if the administrator of the issuer assigns all of them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub trust_email: bool,
    /// Claims that identify a user; for Entra `["tid", "oid"]`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subject_claims: Vec<String>,
    /// Claim with the groups of a user, as in `groups` or `realm_access.roles`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups_claim: Option<String>,
    /// Claims that a user must have, with their values, as in `{ hd = "acme.example" }`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub required_claims: BTreeMap<String, Value>,
    /// Scopes to request beside `openid`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// Additional parameters of authorization requests at the issuer.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub authorization_params: BTreeMap<String, String>,
    /// Interval after which the issuer is asked whether a user may still sign in, or `off`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recheck_interval: Option<RecheckInterval>,
    /// Time for which users stay signed in while the issuer does not respond.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_stale: Option<LongDuration>,
    /// Proxy for connections to the issuer: a URL, `env:NAME`, `file:PATH`, or `none`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// File with certificates that are trusted in addition, as PEM, relative to the config.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<String>,
}

/// Interval of rechecks, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum RecheckInterval {
    /// No rechecks: grants then live for 12 hours.
    Off(RechecksOff),
    /// A time.
    Every(LongDuration),
}

/// The word for no rechecks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RechecksOff {
    /// `off`
    Off,
}

/// The table `[consort.authorization]`: the authorization server of the gateway.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AuthorizationConfig {
    /// Allows clients to register themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dynamic_registration: Option<bool>,
    /// Hosts of client metadata documents, as in `claude.ai` or `*.example.com`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_client_hosts: Option<Vec<String>>,
    /// Proxy for client metadata documents: a URL, `env:NAME`, or `file:PATH`. Needs `allowed_client_hosts`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_metadata_proxy: Option<String>,
    /// Redirect URIs of applications with schemes of their own, as in `cursor://…`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_redirect_schemes: Option<Vec<String>>,
    /// The only redirect URIs that clients may have, each exactly or with a `*` at its end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_redirect_uris: Vec<String>,
    /// Lifetime of access tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_token_ttl: Option<LongDuration>,
    /// Lifetime of refresh tokens; each use renews it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh_token_ttl: Option<LongDuration>,
    /// Lifetime of a grant, however often it is refreshed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant_ttl: Option<LongDuration>,
    /// Time for which a refresh token that was exchanged is answered again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh_token_grace: Option<LongDuration>,
    /// Users that may have API keys: `users`, `admins` or `off`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["users", "admins", "off"]))]
    pub api_keys: Option<String>,
    /// Lets users change what programs run if only a group gives them the role `operator`. Otherwise the role must name
    /// the user, because the administrators of the issuer's groups could run programs here.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allow_program_changes: bool,
    /// Clients that are registered beforehand, by their client ids.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub clients: BTreeMap<String, RegisteredClientConfig>,
}

/// The table `[consort.authorization.clients.ID]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RegisteredClientConfig {
    /// Name that users see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Redirect URIs.
    pub redirect_uris: Vec<String>,
    /// Client secret: `env:NAME`, or `file:PATH` relative to the config. A client without one is public.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// The table `[consort.services.NAME]`: a service account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ServiceConfig {
    /// Description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}
