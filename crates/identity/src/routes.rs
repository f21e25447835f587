//! The HTTP routes of identities: metadata, the endpoints of OAuth, and the pages.

mod account_route;
mod authorize;
mod callback;
mod endpoint;
mod page_guard;
mod sign_in_route;

use std::sync::Arc;

use bytes::Bytes;
use consort_core::BoxFuture;
use consort_server::{HttpRequestContext, HttpRoutes, ListenerRole, RouteAccess, RouteBody};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ALLOW, CACHE_CONTROL, USER_AGENT,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use serde_json::Value;

use crate::authorization::client_directory::ClientDirectory;
use crate::authorization::metadata;
use crate::cookies::BrowserCookies;
use crate::pages::html::{self, retry_after};
use crate::pages::sign_in::error_page;
use crate::rate_limit::ClientNetwork;
use crate::record::grant::RequestSource;
use crate::state::{ActiveSettings, IdentityState};

const PROTECTED_RESOURCE: &str = "/.well-known/oauth-protected-resource";
const AUTHORIZATION_SERVER: &str = "/.well-known/oauth-authorization-server";

/// Characters of a user agent that are kept.
const USER_AGENT_CHARS: usize = 120;

/// The HTTP routes of identities.
#[derive(Clone, Debug)]
pub struct IdentityRoutes {
    pub(crate) state: Arc<IdentityState>,
    pub(crate) directory: Arc<ClientDirectory>,
}

/// A request to one of them.
pub(crate) struct RouteRequest {
    pub(crate) active: Arc<ActiveSettings>,
    pub(crate) cookies: BrowserCookies,
    pub(crate) network: ClientNetwork,
    pub(crate) source: RequestSource,
    pub(crate) listener: ListenerRole,
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl RouteRequest {
    fn new(state: &IdentityState, context: &HttpRequestContext, request: Request<Bytes>) -> Self {
        let (head, body) = request.into_parts();
        let active = state.active();
        let agent = head.headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok());
        let user_agent = agent.unwrap_or_default().chars().take(USER_AGENT_CHARS).collect();
        Self {
            cookies: BrowserCookies::of(&active.settings.location),
            network: ClientNetwork::of(context.client.ip()),
            source: RequestSource { address: context.client.address(), user_agent },
            listener: context.sign_in.listener(),
            method: head.method,
            path: head.uri.path().to_owned(),
            query: head.uri.query().unwrap_or_default().to_owned(),
            headers: head.headers,
            active,
            body,
        }
    }

    pub(crate) fn base_path(&self) -> &str {
        &self.active.settings.location.base_path
    }

    fn reads(&self) -> bool {
        matches!(self.method, Method::GET | Method::HEAD)
    }
}

impl IdentityRoutes {
    async fn route(&self, request: RouteRequest) -> Response<RouteBody> {
        let path = request.path.as_str();
        if path == "/oauth/pages.css" {
            return style(&request);
        }
        if let Some(resource) = path.strip_prefix(PROTECTED_RESOURCE) {
            let location = &request.active.settings.location;
            return document(&request, metadata::protected_resource(location, resource));
        }
        if path == AUTHORIZATION_SERVER {
            let (location, settings) =
                (&request.active.settings.location, &request.active.settings.authorization);
            return document(&request, Some(metadata::authorization_server(location, settings)));
        }
        match path {
            "/oauth/token" | "/oauth/register" | "/oauth/revoke" => self.endpoint(request).await,
            _ => self.page(request).await,
        }
    }

    /// Answers at a page, to requests that are navigations of a browser to this gateway.
    async fn page(&self, request: RouteRequest) -> Response<RouteBody> {
        let now = self.state.clock.now();
        if let Err(seconds) = self.state.rates.anonymous.count(request.network, now) {
            return too_many_page(&request, seconds);
        }
        if let Err(refusal) = page_guard::check(&request) {
            return *refusal;
        }
        let path = request.path.as_str();
        let not_allowed = || not_allowed("GET, POST");
        match path {
            "/oauth/authorize" if request.reads() => self.authorize(request).await,
            "/oauth/sign-in" if request.reads() => self.show_sign_in(&request, None),
            "/oauth/sign-in" if request.method == Method::POST => self.sign_in(request).await,
            "/me" if request.reads() => self.show_account(&request).await,
            "/me" if request.method == Method::POST => self.change_account(request).await,
            "/oauth/authorize" | "/oauth/sign-in" | "/me" => not_allowed(),
            _ => {
                if let Some(flow) = path.strip_prefix("/oauth/consent/").map(str::to_owned) {
                    return match request.method {
                        Method::GET | Method::HEAD => self.show_consent(&request, &flow).await,
                        Method::POST => self.answer_consent(request, &flow).await,
                        _ => not_allowed(),
                    };
                }
                if let Some(issuer) = path.strip_prefix("/oauth/callback/").map(str::to_owned) {
                    if request.reads() {
                        return self.callback(request, &issuer).await;
                    }
                    return not_allowed();
                }
                if let Some(secret) = path.strip_prefix("/oauth/link/").map(str::to_owned) {
                    return match request.method {
                        Method::GET | Method::HEAD => self.show_link(&request, &secret).await,
                        Method::POST => self.use_link_route(request, &secret).await,
                        _ => not_allowed(),
                    };
                }
                error_page(request.base_path(), StatusCode::NOT_FOUND, "Not found", &[])
            }
        }
    }
}

impl HttpRoutes for IdentityRoutes {
    fn has(&self, path: &str) -> bool {
        path == "/me"
            || path.starts_with("/oauth/")
            || path == AUTHORIZATION_SERVER
            || path
                .strip_prefix(PROTECTED_RESOURCE)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    fn access(&self, _path: &str) -> RouteAccess {
        // OAuth clients in browsers and redirects of the issuer come from other sites. Each route checks what it needs.
        RouteAccess::Unchecked
    }

    fn answer(
        &self,
        context: HttpRequestContext,
        request: Request<Bytes>,
    ) -> BoxFuture<'static, Response<RouteBody>> {
        let routes = self.clone();
        let request = RouteRequest::new(&self.state, &context, request);
        Box::pin(async move { routes.route(request).await })
    }
}

/// A metadata document, for everybody.
fn document(request: &RouteRequest, document: Option<Value>) -> Response<RouteBody> {
    let response = match (&request.method, document) {
        (&Method::OPTIONS, _) => return preflight("GET, HEAD, OPTIONS"),
        (_, None) => json(StatusCode::NOT_FOUND, &serde_json::json!({ "error": "not_found" })),
        (&Method::GET | &Method::HEAD, Some(document)) => {
            let mut response = json(StatusCode::OK, &document);
            let cache = HeaderValue::from_static("public, max-age=300");
            response.headers_mut().insert(CACHE_CONTROL, cache);
            response
        }
        _ => not_allowed("GET, HEAD, OPTIONS"),
    };
    for_everybody(response)
}

fn style(request: &RouteRequest) -> Response<RouteBody> {
    if !request.reads() {
        return not_allowed("GET, HEAD");
    }
    let mut response = html::respond(
        StatusCode::OK,
        "text/css; charset=utf-8",
        Bytes::from_static(html::STYLE.as_bytes()),
    );
    let cache = HeaderValue::from_static("public, max-age=300");
    response.headers_mut().insert(CACHE_CONTROL, cache);
    response
}

/// A JSON response that nobody stores.
pub(crate) fn json(status: StatusCode, value: &Value) -> Response<RouteBody> {
    html::respond(status, "application/json", value.to_string().into())
}

/// Lets pages of every origin read a response. It depends on no cookie.
pub(crate) fn for_everybody(mut response: Response<RouteBody>) -> Response<RouteBody> {
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    let exposed = HeaderValue::from_static("WWW-Authenticate, Retry-After");
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    response
}

/// The response to a CORS preflight.
pub(crate) fn preflight(methods: &'static str) -> Response<RouteBody> {
    let mut response = Response::new(RouteBody::Whole(Bytes::new()));
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ALLOW, HeaderValue::from_static(methods));
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(methods));
    let allowed =
        HeaderValue::from_static("authorization, content-type, accept, mcp-protocol-version");
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    for_everybody(response)
}

fn not_allowed(methods: &'static str) -> Response<RouteBody> {
    let body = Bytes::from_static(b"method not allowed\n");
    let mut response =
        html::respond(StatusCode::METHOD_NOT_ALLOWED, "text/plain; charset=utf-8", body);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
    response
}

pub(crate) fn too_many_page(request: &RouteRequest, seconds: u64) -> Response<RouteBody> {
    let text = format!("Try again in {seconds} s.");
    let page = error_page(
        request.base_path(),
        StatusCode::TOO_MANY_REQUESTS,
        "Too many requests",
        &[&text],
    );
    retry_after(page, seconds)
}

pub(crate) fn unavailable_page(request: &RouteRequest, reason: &str) -> Response<RouteBody> {
    tracing::warn!(reason, path = request.path, "a page of sign-in is unavailable");
    let page = error_page(
        request.base_path(),
        StatusCode::SERVICE_UNAVAILABLE,
        "This cannot be done now",
        &[reason, "Try again in a moment."],
    );
    retry_after(page, 5)
}
