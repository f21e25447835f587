//! Responses: JSON, event streams, empty success, or a refusal.

use std::borrow::Cow;
use std::pin::Pin;

use bytes::Bytes;
use consort_core::{Json, Object};
use consort_server::RouteBody;
use futures_core::Stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};
use schemars::{JsonSchema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
#[cfg(test)]
use serde_json::{Value, json};

/// A response of a route.
pub(crate) trait RouteResponse {
    fn into_response(self) -> Response<RouteBody>;
    /// Status and description for `OpenAPI`.
    #[cfg(test)]
    fn describe(generator: &mut SchemaGenerator) -> (u16, Value);
}

/// A JSON response.
pub(crate) struct JsonResponse<T>(pub(crate) T);

impl<T: Serialize + JsonSchema> RouteResponse for JsonResponse<T> {
    fn into_response(self) -> Response<RouteBody> {
        json(StatusCode::OK, &self.0)
    }

    #[cfg(test)]
    fn describe(generator: &mut SchemaGenerator) -> (u16, Value) {
        (200, content("application/json", &generator.subschema_for::<T>()))
    }
}

/// A JSON response that may set a cookie.
pub(crate) struct WithCookie<T> {
    pub(crate) body: T,
    pub(crate) cookie: Option<String>,
}

impl<T: Serialize + JsonSchema> RouteResponse for WithCookie<T> {
    fn into_response(self) -> Response<RouteBody> {
        let mut response = json(StatusCode::OK, &self.body);
        set_cookie(&mut response, self.cookie);
        response
    }

    #[cfg(test)]
    fn describe(generator: &mut SchemaGenerator) -> (u16, Value) {
        JsonResponse::<T>::describe(generator)
    }
}

fn set_cookie(response: &mut Response<RouteBody>, cookie: Option<String>) {
    if let Some(cookie) = cookie.and_then(|cookie| HeaderValue::from_str(&cookie).ok()) {
        response.headers_mut().insert(http::header::SET_COOKIE, cookie);
    }
}

/// A response for a created resource (201).
pub(crate) struct CreatedResponse<T>(pub(crate) T);

impl<T: Serialize + JsonSchema> RouteResponse for CreatedResponse<T> {
    fn into_response(self) -> Response<RouteBody> {
        json(StatusCode::CREATED, &self.0)
    }

    #[cfg(test)]
    fn describe(generator: &mut SchemaGenerator) -> (u16, Value) {
        (201, content("application/json", &generator.subschema_for::<T>()))
    }
}

/// A response for work that continues in the background (202).
pub(crate) struct AcceptedResponse;

impl RouteResponse for AcceptedResponse {
    fn into_response(self) -> Response<RouteBody> {
        let mut response = Response::new(RouteBody::Whole(Bytes::new()));
        *response.status_mut() = StatusCode::ACCEPTED;
        response
    }

    #[cfg(test)]
    fn describe(_: &mut SchemaGenerator) -> (u16, Value) {
        (202, json!({ "description": "Accepted: the work continues in the background." }))
    }
}

/// An empty response that may set a cookie.
#[derive(Default)]
pub(crate) struct EmptyResponse {
    pub(crate) cookie: Option<String>,
}

impl RouteResponse for EmptyResponse {
    fn into_response(self) -> Response<RouteBody> {
        let mut response = Response::new(RouteBody::Whole(Bytes::new()));
        *response.status_mut() = StatusCode::NO_CONTENT;
        set_cookie(&mut response, self.cookie);
        response
    }

    #[cfg(test)]
    fn describe(_: &mut SchemaGenerator) -> (u16, Value) {
        (204, json!({ "description": "Success, without content." }))
    }
}

/// A stream of events. `E` is an enum whose JSON is `{event, data}`.
pub(crate) struct EventStream<E> {
    stream: Pin<Box<dyn Stream<Item = Bytes> + Send>>,
    endless: bool,
    of: std::marker::PhantomData<E>,
}

impl<E: Serialize> EventStream<E> {
    /// A stream of events, each made by [`event`].
    pub(crate) fn new(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self { stream: Box::pin(stream), endless: false, of: std::marker::PhantomData }
    }

    /// Marks the stream as endless: shutdown does not wait for it.
    pub(crate) fn endless(mut self) -> Self {
        self.endless = true;
        self
    }
}

impl<E: JsonSchema> RouteResponse for EventStream<E> {
    fn into_response(self) -> Response<RouteBody> {
        let body = if self.endless { RouteBody::Endless } else { RouteBody::Stream };
        let mut response = Response::new(body(self.stream));
        let kind = HeaderValue::from_static("text/event-stream; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        response
    }

    #[cfg(test)]
    fn describe(generator: &mut SchemaGenerator) -> (u16, Value) {
        let mut described = content("text/event-stream", &json!({ "type": "string" }));
        // One line `event: …` and one line `data: …` for each of these.
        described["content"]["text/event-stream"]["x-events"] =
            generator.subschema_for::<E>().to_value();
        (200, described)
    }
}

/// Encodes one event. `E`'s JSON is `{event, data}`.
pub(crate) fn encode_event<E: Serialize>(event: &E) -> Bytes {
    /// An event whose data stays as the server wrote it.
    #[derive(Deserialize)]
    struct ServerJson<'a> {
        event: Cow<'a, str>,
        #[serde(borrow, default)]
        data: Option<&'a RawValue>,
    }
    let written = serde_json::to_string(event).unwrap_or_default();
    let Ok(ServerJson { event, data }) = serde_json::from_str(&written) else {
        return Bytes::new();
    };
    let data = data.map_or("null", RawValue::get);
    // A line break in JSON is no more than space.
    let data = if data.contains(['\n', '\r']) {
        Cow::Owned(data.replace(['\n', '\r'], " "))
    } else {
        Cow::Borrowed(data)
    };
    Bytes::from(format!("event: {event}\ndata: {data}\n\n"))
}

#[cfg(test)]
fn content(kind: &str, schema: &(impl Serialize + ?Sized)) -> Value {
    json!({ "description": "Success.", "content": { kind: { "schema": schema } } })
}

/// JSON written by a server, which matches `T` if the server follows the protocol.
pub(crate) struct UncheckedJson<T>(pub(crate) Json, pub(crate) std::marker::PhantomData<T>);

impl<T> UncheckedJson<T> {
    pub(crate) fn new(object: &Object) -> Self {
        Self(object.json().clone(), std::marker::PhantomData)
    }
}

impl<T> Serialize for UncheckedJson<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<T: JsonSchema> JsonSchema for UncheckedJson<T> {
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> schemars::Schema {
        T::json_schema(generator)
    }
}

/// A JSON response.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Response<RouteBody> {
    let written = serde_json::to_vec(value).unwrap_or_default();
    let mut response = Response::new(RouteBody::Whole(written.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
