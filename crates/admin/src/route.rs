//! A route of the admin API: path, input and response.

use std::sync::Arc;

use bytes::Bytes;
use consort_core::{BoxFuture, Caller, Rights};
use consort_server::{BrowserSession, BrowserSignIn, RouteBody};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method, Response, StatusCode};
use schemars::JsonSchema;
#[cfg(test)]
use schemars::{Schema, SchemaGenerator};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

pub(crate) use crate::admin_error::AdminError;
use crate::elicitation::console_capabilities;
pub(crate) use crate::response::{
    AcceptedResponse, CreatedResponse, EmptyResponse, EventStream, JsonResponse, RouteResponse,
    WithCookie, encode_event,
};
use crate::state::AdminState;

/// A route of the admin API.
pub(crate) struct ApiRoute {
    pub(crate) method: Method,
    /// The path, with `{name}` for its parameters.
    pub(crate) path: &'static str,
    /// The least rights of its callers; `None` if no authentication is needed.
    pub(crate) needs: Option<Rights>,
    /// Its `OpenAPI` description.
    #[cfg(test)]
    pub(crate) description: RouteDescription,
    run: RouteHandler,
}

/// The `OpenAPI` description of a route.
#[cfg(test)]
pub(crate) struct RouteDescription {
    /// One sentence.
    pub(crate) about: &'static str,
    /// Schema of the input: from the query of a `GET`, else from the body.
    pub(crate) takes: fn(&mut SchemaGenerator) -> Option<Schema>,
    /// Status and description of the response.
    pub(crate) says: fn(&mut SchemaGenerator) -> (u16, Value),
}

type RouteHandler =
    Box<dyn Fn(AdminState, RequestContext, Bytes) -> BoxFuture<'static, RouteResult> + Send + Sync>;

/// A response or a refusal.
pub(crate) type RouteResult = Result<Response<RouteBody>, AdminError>;

/// A request and its caller.
pub(crate) struct RequestContext {
    /// The caller; `None` is possible at an open route.
    pub(crate) caller: Option<Caller>,
    /// Checks tokens, and begins and ends browser sessions.
    pub(crate) door: BrowserSignIn,
    /// The browser session that the request belongs to. `None` if a token was sent.
    pub(crate) session: Option<Arc<BrowserSession>>,
    /// The path parameters, in order.
    pub(crate) at: Vec<String>,
    pub(crate) query: Option<String>,
    pub(crate) headers: HeaderMap,
}

impl RequestContext {
    /// Returns the caller; an error without authentication.
    pub(crate) fn caller(&self) -> Result<Caller, AdminError> {
        self.caller.clone().ok_or_else(AdminError::unauthenticated)
    }

    /// Returns the caller with the capabilities that the console declares in its calls, which servers' lists follow.
    pub(crate) fn client(&self) -> Result<Caller, AdminError> {
        Ok(self.caller()?.with_capabilities(console_capabilities()))
    }

    /// Requires the owner's token in a request of the owner's browser session. Other requests carry it already, and an
    /// operator has just signed in.
    pub(crate) async fn require_token(&self, token: Option<&str>) -> Result<(), AdminError> {
        if self.session.is_none() || !self.caller()?.is_owner() {
            return Ok(());
        }
        let caller = match token {
            Some(token) => self.door.caller_of(token).await,
            None => None,
        };
        if caller.is_some_and(|caller| caller.is_owner()) {
            return Ok(());
        }
        let error = match token {
            Some(_) => "invalid token",
            None => "adding servers requires the token again, as `token`",
        };
        Err(AdminError::new(StatusCode::FORBIDDEN, error)
            .hint("`consort serve` prints where the token is stored"))
    }

    /// A path parameter.
    pub(crate) fn path_parameter(&self, at: usize) -> &str {
        self.at.get(at).map(String::as_str).unwrap_or_default()
    }
}

/// A `GET` route.
pub(crate) fn get<I, O, F, R>(path: &'static str, about: &'static str, run: F) -> ApiRoute
where
    I: RouteInput,
    O: RouteResponse,
    F: Fn(AdminState, RequestContext, I) -> R + Send + Sync + 'static,
    R: Future<Output = Result<O, AdminError>> + Send + 'static,
{
    route(Method::GET, path, about, run)
}

/// A `POST` route.
pub(crate) fn post<I, O, F, R>(path: &'static str, about: &'static str, run: F) -> ApiRoute
where
    I: RouteInput,
    O: RouteResponse,
    F: Fn(AdminState, RequestContext, I) -> R + Send + Sync + 'static,
    R: Future<Output = Result<O, AdminError>> + Send + 'static,
{
    route(Method::POST, path, about, run)
}

/// A `DELETE` route.
pub(crate) fn delete<O, F, R>(path: &'static str, about: &'static str, run: F) -> ApiRoute
where
    O: RouteResponse,
    F: Fn(AdminState, RequestContext, NoInput) -> R + Send + Sync + 'static,
    R: Future<Output = Result<O, AdminError>> + Send + 'static,
{
    route(Method::DELETE, path, about, run)
}

#[cfg_attr(not(test), expect(unused_variables, reason = "the description is made by a test"))]
fn route<I, O, F, R>(method: Method, path: &'static str, about: &'static str, run: F) -> ApiRoute
where
    I: RouteInput,
    O: RouteResponse,
    F: Fn(AdminState, RequestContext, I) -> R + Send + Sync + 'static,
    R: Future<Output = Result<O, AdminError>> + Send + 'static,
{
    let run = Arc::new(run);
    let reads = method == Method::GET;
    let run: RouteHandler = Box::new(move |state, context, body| {
        let run = Arc::clone(&run);
        Box::pin(async move {
            let input = if reads {
                I::of_query(context.query.as_deref().unwrap_or_default())?
            } else {
                I::of_body(&context.headers, &body)?
            };
            run(state, context, input).await.map(RouteResponse::into_response)
        })
    });
    // A route that states no rights is the owner's.
    let needs = Some(Rights::Owner);
    ApiRoute {
        method,
        path,
        needs,
        #[cfg(test)]
        description: RouteDescription { about, takes: I::schema, says: O::describe },
        run,
    }
}

impl ApiRoute {
    /// Opens the route to unauthenticated requests.
    pub(crate) fn open(mut self) -> Self {
        self.needs = None;
        self
    }

    /// Opens the route to callers with these rights. Without it, the route is the owner's.
    pub(crate) fn for_rights(mut self, needed: Rights) -> Self {
        self.needs = Some(needed);
        self
    }

    /// Refuses a caller with fewer rights than the route needs.
    pub(crate) fn authorize(
        &self,
        caller: Option<&Caller>,
        door: &BrowserSignIn,
    ) -> Result<(), AdminError> {
        let Some(needed) = self.needs else { return Ok(()) };
        let Some(caller) = caller else { return Err(unauthenticated(door)) };
        if caller.rights().include(needed) {
            return Ok(());
        }
        Err(missing_rights(needed, caller, door))
    }

    /// Returns the path parameters if the path matches.
    pub(crate) fn at(&self, path: &str) -> Option<Vec<String>> {
        let (mut ours, mut theirs) = (self.path.split('/'), path.split('/'));
        let mut at = Vec::new();
        loop {
            match (ours.next(), theirs.next()) {
                (None, None) => return Some(at),
                (Some(our), Some(their)) if our.starts_with('{') => at.push(decode_percent(their)?),
                (Some(our), Some(their)) if our == their => {}
                _ => return None,
            }
        }
    }

    pub(crate) async fn run(
        &self,
        state: AdminState,
        context: RequestContext,
        body: Bytes,
    ) -> RouteResult {
        (self.run)(state, context, body).await
    }
}

/// Decodes a part of a path or a query.
fn decode_percent(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if byte == b'%' {
            let digits = std::str::from_utf8(bytes.get(at + 1..at + 3)?).ok()?;
            plain.push(u8::from_str_radix(digits, 16).ok()?);
            at += 3;
        } else {
            plain.push(byte);
            at += 1;
        }
    }
    String::from_utf8(plain).ok()
}

/// The input of a route.
pub(crate) trait RouteInput: Sized + Send {
    #[cfg(test)]
    fn schema(generator: &mut SchemaGenerator) -> Option<Schema>;
    fn of_query(query: &str) -> Result<Self, AdminError>;
    fn of_body(headers: &HeaderMap, body: &[u8]) -> Result<Self, AdminError>;
}

/// No input.
pub(crate) struct NoInput;

impl RouteInput for NoInput {
    #[cfg(test)]
    fn schema(_: &mut SchemaGenerator) -> Option<Schema> {
        None
    }

    fn of_query(_: &str) -> Result<Self, AdminError> {
        Ok(Self)
    }

    fn of_body(_: &HeaderMap, _: &[u8]) -> Result<Self, AdminError> {
        Ok(Self)
    }
}

impl<T: DeserializeOwned + JsonSchema + Send> RouteInput for T {
    #[cfg(test)]
    fn schema(generator: &mut SchemaGenerator) -> Option<Schema> {
        Some(generator.subschema_for::<T>())
    }

    fn of_query(query: &str) -> Result<Self, AdminError> {
        let mut members = Map::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let read = |text: &str| decode_percent(&text.replace('+', " "));
            let (Some(key), Some(value)) = (read(key), read(value)) else {
                return Err(AdminError::bad_request("invalid query string"));
            };
            if !value.is_empty() {
                members.insert(key, Value::String(value));
            }
        }
        // Read as a body, so that the program has the code to read each input once.
        let json = Value::Object(members).to_string();
        serde_json::from_slice(json.as_bytes()).map_err(|error| {
            let place = format!(" at line {} column {}", error.line(), error.column());
            let (error, place) = (error.to_string(), place.as_str());
            let error = error.strip_suffix(place).unwrap_or(&error);
            AdminError::bad_request(format!("invalid query string: {error}"))
        })
    }

    fn of_body(headers: &HeaderMap, body: &[u8]) -> Result<Self, AdminError> {
        let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/json") {
            let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            return Err(AdminError::new(status, "send `Content-Type: application/json`"));
        }
        serde_json::from_slice(body)
            .map_err(|error| AdminError::bad_request(format!("invalid request body: {error}")))
    }
}

/// Parses a number from a query, where everything is a string.
pub(crate) fn parse_number<'de, D: serde::Deserializer<'de>>(
    source: D,
) -> Result<Option<u64>, D::Error> {
    let text = Option::<String>::deserialize(source)?;
    let read = |text: String| text.parse().map_err(|_| serde::de::Error::custom("not a number"));
    text.map(read).transpose()
}

/// The refusal of a request without a caller. It says whether users sign in here, and nothing else.
pub(crate) fn unauthenticated(door: &BrowserSignIn) -> AdminError {
    let refusal = AdminError::unauthenticated();
    match door.user_pages() {
        Some(pages) => refusal.link(pages.sign_in),
        None => refusal,
    }
}

/// The refusal of a caller with fewer rights than needed.
pub(crate) fn missing_rights(needed: Rights, caller: &Caller, door: &BrowserSignIn) -> AdminError {
    let refused = |error: String| AdminError::new(StatusCode::FORBIDDEN, error);
    let pages = door.user_pages();
    let is_stale = door.rights_after_sign_in(caller).is_some_and(|rights| rights.include(needed));
    if let Some(pages) = pages.as_ref().filter(|_| is_stale) {
        let error = "this needs a sign-in of the last 10 minutes".to_owned();
        return refused(error)
            .hint(format!("sign in again at {}", pages.fresh_sign_in))
            .link(pages.fresh_sign_in.clone());
    }
    let refusal = match needed {
        Rights::Owner => refused("only the owner may do this".to_owned())
            .hint("use the owner's token, which `consort serve` created"),
        _ => refused(format!("this needs the role `{}`", needed.as_str()))
            .hint("the roles of users are in `[consort.roles]` of the config"),
    };
    match pages {
        Some(pages) => refusal.link(pages.account),
        None => refusal,
    }
}
