//! All routes of the admin API, and the page beside them.

use std::sync::OnceLock;

use bytes::Bytes;
use consort_core::{BoxFuture, Rights};
use consort_server::{HttpRequestContext, HttpRoutes, RouteAccess, RouteBody};
use http::header::ALLOW;
use http::{HeaderValue, Method, Request, Response, StatusCode};

use crate::route::{AdminError, ApiRoute, JsonResponse, NoInput, RequestContext, RouteResult, get};
use crate::state::AdminState;
use crate::{
    agents, approvals, assets, calls, connect, conversations, events, keys, oauth_clients, openapi,
    pins, profiles, prompts, reload, resources, servers, session, tool_calls, tools, users, whoami,
};

/// All routes of the API.
pub(crate) fn routes() -> &'static [ApiRoute] {
    static ROUTES: OnceLock<Vec<ApiRoute>> = OnceLock::new();
    ROUTES.get_or_init(|| {
        let all = [
            openapi_routes(),
            session::routes(),
            servers::routes(),
            profiles::routes(),
            connect::routes(),
            calls::routes(),
            approvals::routes(),
            events::routes(),
            tool_calls::routes(),
            pins::routes(),
            prompts::routes(),
            reload::routes(),
            resources::routes(),
            tools::routes(),
            agents::routes(),
            conversations::routes(),
            users::routes(),
            keys::routes(),
            oauth_clients::routes(),
            whoami::routes(),
        ];
        all.into_iter().flatten().collect()
    })
}

fn openapi_routes() -> Vec<ApiRoute> {
    vec![
        get("/api/openapi.json", "Returns this OpenAPI description.", describe)
            .for_rights(Rights::Admin),
    ]
}

async fn describe(
    _: AdminState,
    _: RequestContext,
    _: NoInput,
) -> Result<JsonResponse<serde_json::Value>, AdminError> {
    Ok(JsonResponse(openapi::document()))
}

impl AdminState {
    /// Answers a request to the API.
    async fn ask(self, visit: HttpRequestContext, request: Request<Bytes>) -> RouteResult {
        let (head, body) = request.into_parts();
        let path = head.uri.path();
        let here: Vec<(&ApiRoute, Vec<String>)> =
            routes().iter().filter_map(|route| Some((route, route.at(path)?))).collect();
        let (mut methods, mut found) = (Vec::new(), None);
        for (route, at) in here {
            methods.push(route.method.as_str());
            if route.method == head.method {
                // A path that is written out comes before one that varies.
                found = found.or(Some((route, at)));
            }
        }
        let Some((route, at)) = found else {
            if methods.is_empty() {
                let refusal = AdminError::not_found("not found");
                return Err(refusal.hint("see /api/openapi.json"));
            }
            let error = format!("use {}", methods.join(" or "));
            let mut response = AdminError::new(StatusCode::METHOD_NOT_ALLOWED, error).to_response();
            if let Ok(allow) = HeaderValue::from_str(&methods.join(", ")) {
                response.headers_mut().insert(ALLOW, allow);
            }
            return Ok(response);
        };
        route.authorize(visit.caller.as_ref(), &visit.sign_in)?;
        let query = head.uri.query().map(str::to_owned);
        let HttpRequestContext { caller, sign_in: door, session, .. } = visit;
        let context = RequestContext { caller, door, session, at, query, headers: head.headers };
        route.run(self, context, body).await
    }
}

impl HttpRoutes for AdminState {
    fn has(&self, path: &str) -> bool {
        path == "/api" || path.starts_with("/api/") || assets::has(path)
    }

    fn access(&self, path: &str) -> RouteAccess {
        // The page has no secrets; each route checks its own authorization.
        if assets::has(path) || path == "/api/session" {
            RouteAccess::Open
        } else {
            RouteAccess::Pass
        }
    }

    fn answer(
        &self,
        visit: HttpRequestContext,
        request: Request<Bytes>,
    ) -> BoxFuture<'static, Response<RouteBody>> {
        let state = self.clone();
        Box::pin(async move {
            let path = request.uri().path();
            let mut response = match assets::has(path) {
                true if request.method() == Method::GET => {
                    assets::file(path, request.extensions().get(), request.headers())
                }
                true => AdminError::new(StatusCode::METHOD_NOT_ALLOWED, "use GET").to_response(),
                false => {
                    state.ask(visit, request).await.unwrap_or_else(|refusal| refusal.to_response())
                }
            };
            assets::protect(response.headers_mut());
            response
        })
    }

    fn refuse(&self, status: StatusCode, message: &str) -> Response<RouteBody> {
        let mut response = AdminError::new(status, message).to_response();
        assets::protect(response.headers_mut());
        response
    }
}

#[cfg(test)]
mod tests;
