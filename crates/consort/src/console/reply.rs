//! Responses: JSON, event streams, empty success, or a refusal.

use std::borrow::Cow;
use std::pin::Pin;

use bytes::Bytes;
use consort_gateway::SiteBody;
use futures_core::Stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};
use schemars::{JsonSchema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// A response of a route.
pub(super) trait Says {
    fn say(self) -> Response<SiteBody>;
    fn describe(generator: &mut SchemaGenerator) -> (u16, Value);
}

/// A JSON response.
pub(super) struct Told<T>(pub(super) T);

impl<T: Serialize + JsonSchema> Says for Told<T> {
    fn say(self) -> Response<SiteBody> {
        json(StatusCode::OK, &self.0)
    }

    fn describe(generator: &mut SchemaGenerator) -> (u16, Value) {
        (200, content("application/json", &generator.subschema_for::<T>()))
    }
}

/// A JSON response that may set a cookie.
pub(super) struct WithCookie<T> {
    pub(super) body: T,
    pub(super) cookie: Option<String>,
}

impl<T: Serialize + JsonSchema> Says for WithCookie<T> {
    fn say(self) -> Response<SiteBody> {
        let mut response = json(StatusCode::OK, &self.body);
        set_cookie(&mut response, self.cookie);
        response
    }

    fn describe(generator: &mut SchemaGenerator) -> (u16, Value) {
        Told::<T>::describe(generator)
    }
}

fn set_cookie(response: &mut Response<SiteBody>, cookie: Option<String>) {
    if let Some(cookie) = cookie.and_then(|cookie| HeaderValue::from_str(&cookie).ok()) {
        response.headers_mut().insert(http::header::SET_COOKIE, cookie);
    }
}

/// A response for a created resource (201).
pub(super) struct Made<T>(pub(super) T);

impl<T: Serialize + JsonSchema> Says for Made<T> {
    fn say(self) -> Response<SiteBody> {
        json(StatusCode::CREATED, &self.0)
    }

    fn describe(generator: &mut SchemaGenerator) -> (u16, Value) {
        (201, content("application/json", &generator.subschema_for::<T>()))
    }
}

/// A response for work that continues in the background (202).
pub(super) struct Begun;

impl Says for Begun {
    fn say(self) -> Response<SiteBody> {
        let mut response = Response::new(SiteBody::Whole(Bytes::new()));
        *response.status_mut() = StatusCode::ACCEPTED;
        response
    }

    fn describe(_: &mut SchemaGenerator) -> (u16, Value) {
        (202, json!({ "description": "It has begun." }))
    }
}

/// An empty response that may set a cookie.
#[derive(Default)]
pub(super) struct Done {
    pub(super) cookie: Option<String>,
}

impl Says for Done {
    fn say(self) -> Response<SiteBody> {
        let mut response = Response::new(SiteBody::Whole(Bytes::new()));
        *response.status_mut() = StatusCode::NO_CONTENT;
        set_cookie(&mut response, self.cookie);
        response
    }

    fn describe(_: &mut SchemaGenerator) -> (u16, Value) {
        (204, json!({ "description": "It is done." }))
    }
}

/// A stream of events. `E` is an enum whose JSON is `{event, data}`.
pub(super) struct Events<E> {
    stream: Pin<Box<dyn Stream<Item = Bytes> + Send>>,
    endless: bool,
    of: std::marker::PhantomData<E>,
}

impl<E: Serialize> Events<E> {
    /// A stream of events, each made by [`event`].
    pub(super) fn new(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self { stream: Box::pin(stream), endless: false, of: std::marker::PhantomData }
    }

    /// Marks the stream as endless: shutdown does not wait for it.
    pub(super) fn endless(mut self) -> Self {
        self.endless = true;
        self
    }
}

impl<E: JsonSchema> Says for Events<E> {
    fn say(self) -> Response<SiteBody> {
        let body = if self.endless { SiteBody::Endless } else { SiteBody::Stream };
        let mut response = Response::new(body(self.stream));
        let kind = HeaderValue::from_static("text/event-stream; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        response
    }

    fn describe(generator: &mut SchemaGenerator) -> (u16, Value) {
        let mut described = content("text/event-stream", &json!({ "type": "string" }));
        // One line `event: …` and one line `data: …` for each of these.
        described["content"]["text/event-stream"]["x-events"] =
            generator.subschema_for::<E>().to_value();
        (200, described)
    }
}

/// Encodes one event. `E`'s JSON is `{event, data}`.
pub(super) fn event<E: Serialize>(event: &E) -> Bytes {
    /// An event whose data stays as the server wrote it.
    #[derive(Deserialize)]
    struct Written<'a> {
        event: Cow<'a, str>,
        #[serde(borrow, default)]
        data: Option<&'a RawValue>,
    }
    let written = serde_json::to_string(event).unwrap_or_default();
    let Ok(Written { event, data }) = serde_json::from_str(&written) else { return Bytes::new() };
    let data = data.map_or("null", RawValue::get);
    // A line break in JSON is no more than space.
    let data = if data.contains(['\n', '\r']) {
        Cow::Owned(data.replace(['\n', '\r'], " "))
    } else {
        Cow::Borrowed(data)
    };
    Bytes::from(format!("event: {event}\ndata: {data}\n\n"))
}

fn content(kind: &str, schema: &(impl Serialize + ?Sized)) -> Value {
    json!({ "description": "As it is now.", "content": { kind: { "schema": schema } } })
}

/// A refused request.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    told: Refused,
}

/// Error and suggested remedy.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Refused {
    /// Error message.
    error: String,
    /// Suggested remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self { status, told: Refused { error: error.into(), hint: None } }
    }

    /// A malformed request.
    pub(super) fn bad(error: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }

    /// An unknown name.
    pub(super) fn missing(error: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, error)
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.told.hint = Some(hint.into());
        self
    }

    pub(super) fn say(&self) -> Response<SiteBody> {
        json(self.status, &self.told)
    }
}

/// A JSON response.
fn json(status: StatusCode, value: &impl Serialize) -> Response<SiteBody> {
    let written = serde_json::to_vec(value).unwrap_or_default();
    let mut response = Response::new(SiteBody::Whole(written.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
