//! The endpoints of OAuth that clients call: token, revocation, registration.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use consort_oauth::form;
use consort_server::RouteBody;
use http::header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderValue, Method, Response, StatusCode};
use serde_json::{Value, json};

use super::{IdentityRoutes, RouteRequest, for_everybody, json, not_allowed, preflight};
use crate::authorization::client_directory::{ClientError, OAuthClient};
use crate::authorization::client_metadata::ClientMetadata;
use crate::authorization::dynamic_client::DynamicClient;
use crate::authorization::grants::{GrantError, IssuedTokens};
use crate::authorization::request::Parameters;
use crate::credential::access_token::AccessToken;
use crate::credential::refresh_token::RefreshToken;
use crate::digest::hex;
use crate::event::IdentityEventKind;
use crate::issuer::strict_json::parse_object;
use crate::pages::html::retry_after;
use crate::record::grant::GrantRecord;
use crate::state::nobody;

/// An error of an endpoint.
enum EndpointError {
    OAuth(StatusCode, &'static str, String),
    TooMany(u64),
    Unavailable(String),
}

impl EndpointError {
    fn bad(error: &'static str, description: impl Into<String>) -> Self {
        Self::OAuth(StatusCode::BAD_REQUEST, error, description.into())
    }

    /// Clients register again on this status and this code.
    fn invalid_client(description: impl Into<String>) -> Self {
        Self::OAuth(StatusCode::UNAUTHORIZED, "invalid_client", description.into())
    }
}

impl From<ClientError> for EndpointError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Unknown(reason) => Self::invalid_client(reason),
            ClientError::TooMany(seconds) => Self::TooMany(seconds),
            ClientError::Unavailable(reason) => Self::Unavailable(reason),
        }
    }
}

impl From<GrantError> for EndpointError {
    fn from(error: GrantError) -> Self {
        match error {
            GrantError::Refused(code, description) => Self::bad(code, description),
            GrantError::TooMany(seconds) => Self::TooMany(seconds),
            GrantError::Unavailable(reason) => Self::Unavailable(reason),
        }
    }
}

impl IdentityRoutes {
    pub(super) async fn endpoint(&self, request: RouteRequest) -> Response<RouteBody> {
        if request.method == Method::OPTIONS {
            return preflight("POST, OPTIONS");
        }
        if request.method != Method::POST {
            return for_everybody(not_allowed("POST, OPTIONS"));
        }
        let answered = match request.path.as_str() {
            "/oauth/token" => self.token(&request).await,
            "/oauth/revoke" => self.revoke_token(&request).await,
            _ => self.register(&request),
        };
        for_everybody(answered.unwrap_or_else(|error| respond_error(&request, error)))
    }

    /// Counts a request that no credential spoke for.
    fn count_anonymous(&self, request: &RouteRequest) -> Result<(), EndpointError> {
        let now = self.state.clock.now();
        self.state.rates.anonymous.count(request.network, now).map_err(EndpointError::TooMany)
    }

    async fn token(&self, request: &RouteRequest) -> Result<Response<RouteBody>, EndpointError> {
        let issued = self.issue_tokens(request).await;
        match issued {
            Ok(tokens) => Ok(json(
                StatusCode::OK,
                &json!({
                    "access_token": tokens.access_token,
                    "token_type": "Bearer",
                    "expires_in": tokens.expires_in,
                    "refresh_token": tokens.refresh_token,
                    "scope": "mcp",
                }),
            )),
            Err(error) => {
                // A known grant has a rate of its own; whoever only fails is limited by address.
                if matches!(error, EndpointError::OAuth(..)) {
                    self.count_anonymous(request)?;
                }
                Err(error)
            }
        }
    }

    async fn issue_tokens(&self, request: &RouteRequest) -> Result<IssuedTokens, EndpointError> {
        let form = read_form(request)?;
        let single = [
            "grant_type",
            "code",
            "redirect_uri",
            "code_verifier",
            "refresh_token",
            "client_id",
            "client_secret",
        ];
        if form.repeats(&single) {
            return Err(EndpointError::bad("invalid_request", "a parameter is repeated"));
        }
        if form.repeats(&["resource"]) {
            return Err(EndpointError::bad("invalid_target", "one `resource` is supported"));
        }
        let get = |name: &str| form.get(name).ok().flatten();
        let client = self.authenticate_client(request, &form).await?;
        let active = &request.active;
        match get("grant_type") {
            Some("authorization_code") => {
                let missing = |name: &str| {
                    EndpointError::bad("invalid_request", format!("`{name}` is missing"))
                };
                let code = get("code").ok_or_else(|| missing("code"))?;
                let verifier = get("code_verifier").ok_or_else(|| missing("code_verifier"))?;
                let redirect_uri = get("redirect_uri");
                let redeemed =
                    self.state.redeem_code(active, &client, code, verifier, redirect_uri).await;
                if let Err(GrantError::Refused(_, reason)) = &redeemed {
                    self.refused(&client, reason);
                }
                Ok(redeemed?)
            }
            Some("refresh_token") => {
                let missing =
                    || EndpointError::bad("invalid_request", "`refresh_token` is missing");
                let token = get("refresh_token").ok_or_else(missing)?;
                let resource = get("resource");
                let source = &request.source;
                let refreshed =
                    self.state.refresh_grant(active, &client, token, resource, source).await;
                if let Err(GrantError::Refused(_, reason)) = &refreshed {
                    self.refused(&client, reason);
                }
                Ok(refreshed?)
            }
            Some(_) => Err(EndpointError::bad(
                "unsupported_grant_type",
                "`authorization_code` and `refresh_token` are supported",
            )),
            None => Err(EndpointError::bad("invalid_request", "`grant_type` is missing")),
        }
    }

    fn refused(&self, client: &OAuthClient, reason: &str) {
        let subject = format!("{}: {reason}", client.name);
        self.state.record_refusal(IdentityEventKind::Token, nobody(), subject);
    }

    /// Returns the client of a request, which has proved itself if it has a secret.
    async fn authenticate_client(
        &self,
        request: &RouteRequest,
        form: &Parameters,
    ) -> Result<OAuthClient, EndpointError> {
        let basic = basic_credentials(request)?;
        let get = |name: &str| form.get(name).ok().flatten();
        let (id, secret) = match (&basic, get("client_id")) {
            (Some((id, _)), Some(other)) if other != id => {
                return Err(EndpointError::bad(
                    "invalid_request",
                    "two different clients are named",
                ));
            }
            (Some((id, secret)), _) => (id.as_str(), Some(secret.as_str())),
            (None, Some(id)) => (id, get("client_secret")),
            (None, None) => {
                return Err(EndpointError::bad("invalid_request", "`client_id` is missing"));
            }
        };
        let client = self.directory.find(&self.state, &request.active, id).await?;
        let is_proven =
            !client.is_confidential() || secret.is_some_and(|secret| client.is_secret(secret));
        if is_proven {
            Ok(client)
        } else {
            Err(EndpointError::invalid_client("the client secret is wrong or missing"))
        }
    }

    /// Revokes a token (RFC 7009). A token that is unknown is as good as revoked.
    async fn revoke_token(
        &self,
        request: &RouteRequest,
    ) -> Result<Response<RouteBody>, EndpointError> {
        self.count_anonymous(request)?;
        let form = read_form(request)?;
        let client = self.authenticate_client(request, &form).await?;
        let token = form.get("token").ok().flatten();
        let token =
            token.ok_or_else(|| EndpointError::bad("invalid_request", "`token` is missing"))?;
        let unavailable =
            |error: crate::store::IdentityStoreError| EndpointError::Unavailable(error.to_string());
        let refresh = RefreshToken::parse(token);
        let access = AccessToken::open(&self.state.keys, token);
        let grant = refresh.as_ref().map(|token| token.grant).or(access.map(|token| token.grant));
        if let Some(id) = grant.map(|grant| hex(&grant)) {
            let found =
                self.state.records.get::<GrantRecord>(id.as_str()).await.map_err(unavailable)?;
            let is_own = found.is_some_and(|found| {
                let salt = found.record.salt.as_bytes();
                found.record.client == client.digest
                    && refresh.is_none_or(|token| token.is_issued(&self.state.keys, salt))
            });
            if is_own {
                let kind = IdentityEventKind::Revocation;
                self.state
                    .end_grant(&id, kind, "by the client", None)
                    .await
                    .map_err(unavailable)?;
            }
        }
        Ok(json(StatusCode::OK, &json!({})))
    }

    /// Registers a client (RFC 7591). Nothing is stored.
    fn register(&self, request: &RouteRequest) -> Result<Response<RouteBody>, EndpointError> {
        let (active, now) = (&request.active, self.state.clock.now());
        let (settings, limits) = (&active.settings.authorization, &active.settings.limits);
        if !settings.dynamic_registration {
            let description = "clients are registered by the operator of this gateway";
            return Err(EndpointError::OAuth(
                StatusCode::FORBIDDEN,
                "access_denied",
                description.to_owned(),
            ));
        }
        let rates = &self.state.rates;
        rates.registrations.count(request.network, now).map_err(EndpointError::TooMany)?;
        rates.all_registrations.count((), now).map_err(EndpointError::TooMany)?;
        let refuse = |code, description: String| {
            self.state.record_refusal(
                IdentityEventKind::Registration,
                nobody(),
                description.clone(),
            );
            Err(EndpointError::bad(code, description))
        };
        if request.body.len() > limits.registration_bytes {
            return refuse(
                "invalid_client_metadata",
                format!("more than {} bytes", limits.registration_bytes),
            );
        }
        let members = match parse_object(&request.body) {
            Ok(members) => members,
            Err(error) => {
                return refuse("invalid_client_metadata", format!("not a JSON object: {error}"));
            }
        };
        let metadata = match ClientMetadata::read(&members, settings, limits.redirect_uris) {
            Ok(metadata) => metadata,
            Err(error) => return refuse(error.code(), error.to_string()),
        };
        // Those that name a method that is not supported have none; the response says so.
        let method = members.get("token_endpoint_auth_method").and_then(Value::as_str);
        let is_confidential = matches!(method, Some("client_secret_basic" | "client_secret_post"));
        let client = DynamicClient {
            name: metadata.name.clone(),
            redirect_uris: metadata.redirect_uris.clone(),
            is_confidential,
            issued_at: now,
            epoch: self.state.client_epoch(),
        };
        let id = client.seal(&self.state.keys);
        let mut response = json!({
            "client_id": id,
            "client_id_issued_at": now,
            "redirect_uris": metadata.redirect_uris,
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": if is_confidential { method } else { Some("none") },
            "scope": "mcp",
        });
        if let Some(name) = &metadata.name {
            response["client_name"] = name.as_str().into();
        }
        if is_confidential {
            response["client_secret"] = DynamicClient::secret(&self.state.keys, &id).into();
            response["client_secret_expires_at"] = 0.into();
        }
        let subject = metadata.name.unwrap_or_default();
        self.state.record(IdentityEventKind::Registration, nobody(), subject);
        Ok(json(StatusCode::CREATED, &response))
    }
}

fn read_form(request: &RouteRequest) -> Result<Parameters, EndpointError> {
    let kind =
        request.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        let description = "send `Content-Type: application/x-www-form-urlencoded`";
        return Err(EndpointError::bad("invalid_request", description));
    }
    let text = std::str::from_utf8(&request.body);
    let text = text.map_err(|_| EndpointError::bad("invalid_request", "the body is not UTF-8"))?;
    Ok(Parameters::parse(text))
}

/// The client id and secret in an `Authorization: Basic` header, each encoded as in a form.
fn basic_credentials(request: &RouteRequest) -> Result<Option<(String, String)>, EndpointError> {
    let Some(header) = request.headers.get(AUTHORIZATION) else { return Ok(None) };
    let invalid = || EndpointError::invalid_client("the `Authorization` header is not `Basic`");
    let (scheme, encoded) =
        header.to_str().ok().and_then(|text| text.split_once(' ')).ok_or_else(invalid)?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return Err(invalid());
    }
    let decoded =
        STANDARD.decode(encoded.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let decoded = decoded.ok_or_else(invalid)?;
    let (id, secret) = decoded.split_once(':').ok_or_else(invalid)?;
    let decode = |part: &str| {
        let fields = form::decode(&format!("part={part}"));
        fields.into_iter().next().map(|(_, value)| value).unwrap_or_default()
    };
    Ok(Some((decode(id), decode(secret))))
}

fn respond_error(request: &RouteRequest, error: EndpointError) -> Response<RouteBody> {
    match error {
        EndpointError::OAuth(status, error, description) => {
            let mut response =
                json(status, &json!({ "error": error, "error_description": description }));
            if status == StatusCode::UNAUTHORIZED && request.headers.contains_key(AUTHORIZATION) {
                let challenge = HeaderValue::from_static("Basic realm=\"consort\"");
                response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
            }
            response
        }
        EndpointError::TooMany(seconds) => {
            let description = format!("too many requests; retry in {seconds} s");
            let body =
                json!({ "error": "temporarily_unavailable", "error_description": description });
            retry_after(json(StatusCode::TOO_MANY_REQUESTS, &body), seconds)
        }
        EndpointError::Unavailable(reason) => {
            tracing::warn!(reason, path = request.path, "an OAuth endpoint is unavailable");
            let description = "the gateway cannot check this now; retry later";
            let body =
                json!({ "error": "temporarily_unavailable", "error_description": description });
            retry_after(json(StatusCode::SERVICE_UNAVAILABLE, &body), 5)
        }
    }
}
