//! One thing that can be asked of the admin API: where, with what, and what is answered.

use std::sync::Arc;

use bytes::Bytes;
use consort_core::{BoxFuture, Caller};
use consort_gateway::{BrowserSession, Door, SiteBody};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method, Response, StatusCode};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::Console;
pub(super) use super::reply::{
    Begun, Done, Events, Made, Refusal, Refused, Says, Told, WithCookie, event,
};

/// Something that can be asked.
pub(super) struct Route {
    pub(super) method: Method,
    /// With `{name}` for parts that vary.
    pub(super) path: &'static str,
    /// What it does, in a sentence.
    pub(super) about: &'static str,
    /// Whether one need not be known.
    pub(super) open: bool,
    /// What it takes: from the query of what only reads, else from the body.
    pub(super) takes: fn(&mut SchemaGenerator) -> Option<Schema>,
    /// What it answers, as `OpenAPI` describes it.
    pub(super) says: fn(&mut SchemaGenerator) -> (u16, Value),
    run: Run,
}

type Run = Box<dyn Fn(Console, Asked, Bytes) -> BoxFuture<'static, Answer> + Send + Sync>;

/// What is answered, or why not.
pub(super) type Answer = Result<Response<SiteBody>, Refusal>;

/// Who asks, and for what.
pub(super) struct Asked {
    /// Who it is; at an open entrance nobody may be known.
    pub(super) caller: Option<Caller>,
    /// Where tokens are checked and browser sessions begin and end.
    pub(super) door: Door,
    /// The browser session that the request belongs to. Absent when a token was sent.
    pub(super) session: Option<Arc<BrowserSession>>,
    /// The parts of the path that vary, in order.
    pub(super) at: Vec<String>,
    pub(super) query: Option<String>,
    pub(super) headers: HeaderMap,
}

impl Asked {
    /// Who it is.
    pub(super) fn caller(&self) -> Caller {
        self.caller.clone().unwrap_or_else(|| Caller::client(Caller::OWNER))
    }

    /// Demands the owner's token in a request of a browser session. Other requests carry it already.
    pub(super) fn demand_token(&self, token: Option<&str>) -> Result<(), Refusal> {
        if self.session.is_none() {
            return Ok(());
        }
        let caller = token.and_then(|token| self.door.caller_of(token));
        if caller.is_some_and(|caller| caller.name == Caller::OWNER) {
            return Ok(());
        }
        let error = match token {
            Some(_) => "that is not the token",
            None => "adding servers needs the token once more, as `token`",
        };
        Err(Refusal::new(StatusCode::FORBIDDEN, error)
            .hint("`consort serve` says where it is kept"))
    }

    /// A part of the path that varies.
    pub(super) fn part(&self, at: usize) -> &str {
        self.at.get(at).map(String::as_str).unwrap_or_default()
    }
}

/// Something that only reads.
pub(super) fn get<I, O, F, R>(path: &'static str, about: &'static str, run: F) -> Route
where
    I: Input,
    O: Says,
    F: Fn(Console, Asked, I) -> R + Send + Sync + 'static,
    R: Future<Output = Result<O, Refusal>> + Send + 'static,
{
    route(Method::GET, path, about, run)
}

/// Something that changes or does something.
pub(super) fn post<I, O, F, R>(path: &'static str, about: &'static str, run: F) -> Route
where
    I: Input,
    O: Says,
    F: Fn(Console, Asked, I) -> R + Send + Sync + 'static,
    R: Future<Output = Result<O, Refusal>> + Send + 'static,
{
    route(Method::POST, path, about, run)
}

/// Something that takes away.
pub(super) fn delete<O, F, R>(path: &'static str, about: &'static str, run: F) -> Route
where
    O: Says,
    F: Fn(Console, Asked, Nothing) -> R + Send + Sync + 'static,
    R: Future<Output = Result<O, Refusal>> + Send + 'static,
{
    route(Method::DELETE, path, about, run)
}

fn route<I, O, F, R>(method: Method, path: &'static str, about: &'static str, run: F) -> Route
where
    I: Input,
    O: Says,
    F: Fn(Console, Asked, I) -> R + Send + Sync + 'static,
    R: Future<Output = Result<O, Refusal>> + Send + 'static,
{
    let run = Arc::new(run);
    let reads = method == Method::GET;
    let run: Run = Box::new(move |console, asked, body| {
        let run = Arc::clone(&run);
        Box::pin(async move {
            let input = if reads {
                I::of_query(asked.query.as_deref().unwrap_or_default())?
            } else {
                I::of_body(&asked.headers, &body)?
            };
            run(console, asked, input).await.map(Says::say)
        })
    });
    Route { method, path, about, open: false, takes: I::schema, says: O::describe, run }
}

impl Route {
    /// The same, for whoever is not known as well.
    pub(super) fn open(mut self) -> Self {
        self.open = true;
        self
    }

    /// What varies in a path, if it is one of these.
    pub(super) fn at(&self, path: &str) -> Option<Vec<String>> {
        let (mut ours, mut theirs) = (self.path.split('/'), path.split('/'));
        let mut at = Vec::new();
        loop {
            match (ours.next(), theirs.next()) {
                (None, None) => return Some(at),
                (Some(our), Some(their)) if our.starts_with('{') => at.push(decoded(their)?),
                (Some(our), Some(their)) if our == their => {}
                _ => return None,
            }
        }
    }

    pub(super) async fn run(&self, console: Console, asked: Asked, body: Bytes) -> Answer {
        (self.run)(console, asked, body).await
    }
}

/// A part of a path or a query as it was meant.
fn decoded(text: &str) -> Option<String> {
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

/// What a route takes.
pub(super) trait Input: Sized + Send {
    fn schema(generator: &mut SchemaGenerator) -> Option<Schema>;
    fn of_query(query: &str) -> Result<Self, Refusal>;
    fn of_body(headers: &HeaderMap, body: &[u8]) -> Result<Self, Refusal>;
}

/// It takes nothing.
pub(super) struct Nothing;

impl Input for Nothing {
    fn schema(_: &mut SchemaGenerator) -> Option<Schema> {
        None
    }

    fn of_query(_: &str) -> Result<Self, Refusal> {
        Ok(Self)
    }

    fn of_body(_: &HeaderMap, _: &[u8]) -> Result<Self, Refusal> {
        Ok(Self)
    }
}

impl<T: DeserializeOwned + JsonSchema + Send> Input for T {
    fn schema(generator: &mut SchemaGenerator) -> Option<Schema> {
        Some(generator.subschema_for::<T>())
    }

    fn of_query(query: &str) -> Result<Self, Refusal> {
        let mut members = Map::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let read = |text: &str| decoded(&text.replace('+', " "));
            let (Some(key), Some(value)) = (read(key), read(value)) else {
                return Err(Refusal::bad("the query cannot be read"));
            };
            if !value.is_empty() {
                members.insert(key, Value::String(value));
            }
        }
        serde_json::from_value(Value::Object(members))
            .map_err(|error| Refusal::bad(format!("the query cannot be read: {error}")))
    }

    fn of_body(headers: &HeaderMap, body: &[u8]) -> Result<Self, Refusal> {
        let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/json") {
            let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            return Err(Refusal::new(status, "send `Content-Type: application/json`"));
        }
        serde_json::from_slice(body)
            .map_err(|error| Refusal::bad(format!("the body cannot be read: {error}")))
    }
}

/// Reads a number from a query, where everything is text.
pub(super) fn number<'de, D: serde::Deserializer<'de>>(source: D) -> Result<Option<u64>, D::Error> {
    let text = Option::<String>::deserialize(source)?;
    let read = |text: String| text.parse().map_err(|_| serde::de::Error::custom("not a number"));
    text.map(read).transpose()
}
