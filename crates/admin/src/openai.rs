//! `/v1`: agents and models for clients that use `OpenAI`'s formats and not MCP.

mod path;
mod run;

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use consort_agent::openai::{ApiError, ApiFormat, ApiRequest, ModelListing, PendingToolCalls};
use consort_config::AgentLimits;
use consort_core::{BoxFuture, Caller};
use consort_server::{HttpRequestContext, HttpRoutes, RouteBody};
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use parking_lot::RwLock;
use serde_json::Value;

use crate::served_agents::ServedAgents;
use path::{ApiPath, ApiResource};
use run::CompletionRun;

/// Agents and models, served in `OpenAI`'s formats. Clones share state.
#[derive(Clone)]
pub struct OpenAiEndpoint(Arc<EndpointState>);

struct EndpointState {
    agents: RwLock<Arc<ServedAgents>>,
    pending_tool_calls: PendingToolCalls,
    /// Time limit for the first token of a streamed answer. An error within it is sent with its HTTP status.
    first_word: Duration,
}

impl OpenAiEndpoint {
    /// Serves these agents and models.
    pub fn new(agents: Arc<ServedAgents>, limits: AgentLimits) -> Self {
        let (agents, handed_out) =
            (RwLock::new(agents), PendingToolCalls::new(limits.handed_calls));
        Self(Arc::new(EndpointState {
            agents,
            pending_tool_calls: handed_out,
            first_word: limits.first_word,
        }))
    }

    /// Replaces the agents and models. Running requests continue with the old ones.
    pub fn set(&self, agents: Arc<ServedAgents>) {
        *self.0.agents.write() = agents;
    }

    async fn respond(
        self,
        caller: Caller,
        request: Request<Bytes>,
    ) -> Result<Response<RouteBody>, OpenAiError> {
        let inner = &self.0;
        let agents = Arc::clone(&inner.agents.read());
        let Some(ApiPath { profile, resource: what }) = ApiPath::parse(request.uri().path()) else {
            return Err(unknown_path().into());
        };
        let profile = profile.as_deref();
        if profile.is_some_and(|profile| !agents.has(profile)) {
            return Err(ApiError::refused(404, "unknown profile").into());
        }
        let method = match what {
            ApiResource::Models | ApiResource::Model(_) => Method::GET,
            ApiResource::Completion(_) => Method::POST,
        };
        if *request.method() != method {
            let error = ApiError::refused(405, format!("use {method}"));
            return Err(OpenAiError { allow: Some(method), ..error.into() });
        }
        let listed = || -> Vec<ModelListing> {
            let listed = agents.list(profile, &caller).into_iter();
            listed.map(|(id, description)| listing(id, description)).collect()
        };
        match what {
            ApiResource::Models => Ok(json(StatusCode::OK, &ModelListing::list_json(&listed()))),
            ApiResource::Model(id) => match listed().into_iter().find(|listed| listed.id == id) {
                Some(listed) => Ok(json(StatusCode::OK, &listed.to_json())),
                None => Err(ApiError::no_model(&id, None).into()),
            },
            ApiResource::Completion(format) => {
                let asked = read(format, &request)?;
                let found = agents.find(&asked.model, profile, &caller);
                let found =
                    found.map_err(|near| ApiError::no_model(&asked.model, near.as_deref()))?;
                let mut found = found;
                found.settings.parent = consort_protocol::trace::meta_of(request.headers());
                let running = CompletionRun::start(self.clone(), found, caller, asked);
                Ok(running.respond().await?)
            }
        }
    }
}

/// A refused request.
struct OpenAiError {
    error: ApiError,
    /// The method for the `Allow` header.
    allow: Option<Method>,
}

impl From<ApiError> for OpenAiError {
    fn from(error: ApiError) -> Self {
        Self { error, allow: None }
    }
}

impl HttpRoutes for OpenAiEndpoint {
    fn has(&self, path: &str) -> bool {
        path == "/v1" || path.starts_with("/v1/") || path.starts_with("/profiles/")
    }

    fn answer(
        &self,
        visit: HttpRequestContext,
        request: Request<Bytes>,
    ) -> BoxFuture<'static, Response<RouteBody>> {
        let this = self.clone();
        let caller = visit.caller.expect("the OpenAI endpoint has no open route");
        Box::pin(async move {
            let responded = this.respond(caller, request).await;
            responded.unwrap_or_else(|OpenAiError { error, allow }| {
                let mut response = error_response(&error);
                let allow = allow.and_then(|allow| HeaderValue::from_str(allow.as_str()).ok());
                if let Some(allow) = allow {
                    response.headers_mut().insert(ALLOW, allow);
                }
                response
            })
        })
    }

    fn refuse(&self, status: StatusCode, message: &str) -> Response<RouteBody> {
        error_response(&ApiError::refused(status.as_u16(), message))
    }
}

fn unknown_path() -> ApiError {
    let paths = "`/v1/chat/completions`, `/v1/responses` and `/v1/models`";
    ApiError::refused(404, format!("not found: the endpoints are {paths}"))
}

fn read(format: ApiFormat, request: &Request<Bytes>) -> Result<ApiRequest, ApiError> {
    let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let essence = kind.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        return Err(ApiError::refused(415, "send `Content-Type: application/json`"));
    }
    ApiRequest::parse(format, request.body())
}

fn listing(id: String, description: Option<String>) -> ModelListing {
    let owner = match id.split_once(':') {
        Some((provider, _)) => provider.to_owned(),
        None => "consort".to_owned(),
    };
    ModelListing { id, owner, description }
}

/// An error response.
fn error_response(error: &ApiError) -> Response<RouteBody> {
    let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json(status, &error.json());
    if let Some(wait) = error.wait {
        response.headers_mut().insert(RETRY_AFTER, wait.into());
    }
    if error.has_side_effects {
        // Clients repeat what failed with such a status on their own; what was called would be called
        // again.
        response.headers_mut().insert("x-should-retry", HeaderValue::from_static("false"));
    }
    response
}

fn json(status: StatusCode, value: &Value) -> Response<RouteBody> {
    let mut response = Response::new(RouteBody::Whole(value.to_string().into()));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// A unique id.
fn random_id() -> String {
    let random = || RandomState::new().hash_one(0);
    format!("{:016x}{:08x}", random(), random() & 0xffff_ffff)
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

impl std::fmt::Debug for OpenAiEndpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenAiEndpoint").finish_non_exhaustive()
    }
}
