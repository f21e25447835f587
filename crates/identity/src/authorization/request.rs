//! Authorization requests, as clients send browsers with them.

use consort_oauth::form;

use super::client_directory::{ClientDirectory, ClientError, OAuthClient};
use super::redirect_uri;
use crate::resource::Resource;
use crate::state::{ActiveSettings, IdentityState};

/// Maximum length of `state`.
const STATE: usize = 2048;

/// An authorization request of a client that is known, to a redirect URI that is its own.
#[derive(Clone, Debug)]
pub(crate) struct AuthorizationRequest {
    pub(crate) client: OAuthClient,
    pub(crate) redirect_uri: String,
    pub(crate) state: Option<String>,
    /// The PKCE challenge.
    pub(crate) challenge: String,
    pub(crate) resource: Resource,
    /// True if the client named the resource.
    pub(crate) names_resource: bool,
}

/// The reason why an authorization request is not answered with a page of consent.
#[derive(Debug)]
pub(crate) enum RequestError {
    /// The client or its redirect URI is not proven: a page says so, and nothing is redirected.
    Unproven(ClientError),
    /// An error for the client.
    Refused(Box<RefusedRequest>),
}

/// An error that the client is told at its redirect URI.
#[derive(Debug)]
pub(crate) struct RefusedRequest {
    pub(crate) client: OAuthClient,
    pub(crate) redirect_uri: String,
    pub(crate) state: Option<String>,
    pub(crate) error: &'static str,
    pub(crate) description: &'static str,
}

/// Parameters of a query or a form.
#[derive(Debug)]
pub(crate) struct Parameters(Vec<(String, String)>);

impl Parameters {
    pub(crate) fn parse(text: &str) -> Self {
        Self(form::decode(text))
    }

    /// Returns a parameter that occurs once. An empty one is absent.
    pub(crate) fn get(&self, name: &str) -> Result<Option<&str>, RepeatedParameter> {
        match self.all(name).as_slice() {
            [] => Ok(None),
            [value] => Ok(Some(*value).filter(|value| !value.is_empty())),
            _ => Err(RepeatedParameter),
        }
    }

    /// Returns every value of a parameter.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        let named = self.0.iter().filter(|(known, _)| known == name);
        named.map(|(_, value)| value.as_str()).collect()
    }

    /// Returns true if one of these parameters occurs more than once.
    pub(crate) fn repeats(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.all(name).len() > 1)
    }
}

/// A parameter that must not be repeated is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RepeatedParameter;

impl AuthorizationRequest {
    /// Reads a request. The client and its redirect URI are checked first.
    pub(crate) async fn read(
        state: &IdentityState,
        active: &ActiveSettings,
        directory: &ClientDirectory,
        query: &str,
    ) -> Result<Self, RequestError> {
        let unproven =
            |reason: &str| RequestError::Unproven(ClientError::Unknown(reason.to_owned()));
        let parameters = Parameters::parse(query);
        let once =
            |name: &str| parameters.get(name).map_err(|_| unproven("a parameter is repeated"));
        let id = once("client_id")?.ok_or_else(|| unproven("`client_id` is missing"))?;
        let redirect_uri =
            once("redirect_uri")?.ok_or_else(|| unproven("`redirect_uri` is missing"))?;
        let client = directory.find(state, active, id).await.map_err(RequestError::Unproven)?;
        let settings = &active.settings.authorization;
        if !redirect_uri::is_sound(redirect_uri, settings)
            || !redirect_uri::is_registered(redirect_uri, &client.redirect_uris)
        {
            return Err(unproven("the redirect URI is not one of this client"));
        }
        let redirect_uri = redirect_uri.to_owned();
        let sent_state = parameters.get("state").ok().flatten();
        let refuse = |error, description| {
            let client_state = sent_state.filter(|state| state.len() <= STATE).map(str::to_owned);
            RequestError::Refused(Box::new(RefusedRequest {
                client: client.clone(),
                redirect_uri: redirect_uri.clone(),
                state: client_state,
                error,
                description,
            }))
        };
        let single = [
            "state",
            "response_type",
            "code_challenge",
            "code_challenge_method",
            "scope",
            "response_mode",
        ];
        if parameters.repeats(&single) {
            return Err(refuse("invalid_request", "a parameter is repeated"));
        }
        if sent_state.is_some_and(|state| state.len() > STATE) {
            return Err(refuse("invalid_request", "`state` is longer than 2048 characters"));
        }
        let get = |name: &str| parameters.get(name).ok().flatten();
        match get("response_type") {
            Some("code") => {}
            Some(_) => return Err(refuse("unsupported_response_type", "only `code` is supported")),
            None => return Err(refuse("invalid_request", "`response_type` is missing")),
        }
        if get("response_mode").is_some_and(|mode| mode != "query") {
            return Err(refuse("invalid_request", "only the response mode `query` is supported"));
        }
        if parameters.repeats(&["request", "request_uri"])
            || get("request").is_some()
            || get("request_uri").is_some()
        {
            return Err(refuse("request_not_supported", "request objects are not supported"));
        }
        if get("code_challenge_method") != Some("S256") {
            return Err(refuse(
                "invalid_request",
                "PKCE with `code_challenge_method=S256` is required",
            ));
        }
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let challenge =
            get("code_challenge").filter(|text| text.len() == 43 && text.bytes().all(plain));
        let challenge = challenge.map(str::to_owned).ok_or_else(|| {
            refuse("invalid_request", "`code_challenge` is the base64url digest of the verifier")
        })?;
        let mut resources = parameters.all("resource");
        resources.retain(|resource| !resource.is_empty());
        let resource = match resources.as_slice() {
            [] => Some(Resource::All),
            [url] => Resource::of_url(&active.settings.location, url),
            _ => None,
        };
        let resource = resource.ok_or_else(|| {
            refuse("invalid_target", "`resource` is not one endpoint of this gateway")
        })?;
        let client_state = sent_state.map(str::to_owned);
        let names_resource = !resources.is_empty();
        Ok(Self { client, redirect_uri, state: client_state, challenge, resource, names_resource })
    }
}
