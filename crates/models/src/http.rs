//! A provider over HTTP.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use consort_core::Emitting;
use consort_wire::{
    ConnectError, Emitter, NetworkSettings, Origin, ProxyChoice, Response, Times, Unanswered,
};
use http::header::{CONTENT_ENCODING, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Uri};
use tokio::time::Instant;

use crate::endpoint::{Endpoint, Header, HttpRequest, Value};
use crate::error::{Cause, ProviderError};
use crate::limits::Limits;
use crate::model::{Provider, Said};
use crate::patience::{Patience, chance};
use crate::reader::Reader;
use crate::reply::Reply;
use crate::request::{Ask, Delivery};
use crate::tool_list::Ready;
use crate::wire_format::Wire;

mod thoughts;

use thoughts::Refused;

/// Wait for the end of a body after the end of its answer, to reuse the connection.
const TRAILING: Duration = Duration::from_millis(20);

/// A provider over HTTP. A handle: clones share its connections.
///
/// ```no_run
/// use consort_models::{Http, Patience};
/// use consort_models::{Ask, Delta, Endpoint, Message, Provider, Said, Wire};
///
/// # async fn asks() -> Result<(), Box<dyn std::error::Error>> {
/// let endpoint = Endpoint::new("http://127.0.0.1:11434/v1");
/// let provider = Http::new(Wire::OpenAiChat, endpoint, Patience::default())?;
/// let mut said = provider.ask(Ask::new("some-model", vec![Message::user("Hello")]));
/// while let Some(said) = said.next().await {
///     match said {
///         Said::Delta(Delta::Text(text)) => print!("{text}"),
///         Said::Delta(_) => {}
///         Said::Again { error, after } => eprintln!("{error}; again in {after:?}"),
///         Said::End(reply) => println!("\n{:?}", reply?.usage),
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Http(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    wire: Wire,
    endpoint: Endpoint,
    origin: Origin,
    patience: Patience,
    limits: Limits,
    ready: Ready,
    refused: Refused,
}

/// Reason an endpoint cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// The base URL is invalid.
    #[error(transparent)]
    Address(#[from] ConnectError),
    /// The base URL has a query or a fragment.
    #[error("invalid base URL `{0}`: leave out what follows the `?` or `#`")]
    Query(String),
    /// A secret would be sent in cleartext.
    #[error("the key for `{host}` would go there unprotected: use https")]
    InTheClear {
        /// Host and port.
        host: String,
    },
    /// An invalid HTTP header.
    #[error("the header `{0}` cannot be sent: it has characters that HTTP does not allow")]
    Header(String),
}

impl Http {
    /// Creates the provider. It connects on the first request. An endpoint with secrets must use `https`, or be on this
    /// machine.
    pub fn new(wire: Wire, endpoint: Endpoint, patience: Patience) -> Result<Self, EndpointError> {
        Self::with_network(wire, endpoint, patience, Limits::default(), NetworkSettings::default())
    }

    /// Creates the provider with limits of its answers and network settings: a proxy and certificates.
    pub fn with_network(
        wire: Wire,
        endpoint: Endpoint,
        patience: Patience,
        limits: Limits,
        network: NetworkSettings,
    ) -> Result<Self, EndpointError> {
        if let Some((before, _)) = endpoint.base_url.split_once(['?', '#']) {
            return Err(EndpointError::Query(before.to_owned()));
        }
        let times = Times {
            connect: patience.connect,
            idle_connection: patience.idle_connection,
            ..Times::default()
        };
        // A proxy of a plain origin reads all that is sent, also to this machine.
        let is_read = matches!(network.proxy, ProxyChoice::Url(_))
            && !endpoint.base_url.to_ascii_lowercase().starts_with("https:");
        let usual = consort_wire::Limits::default();
        let origin = Origin::with_network(&endpoint.base_url, network, &usual, &times)?;
        let sent = endpoint.headers_for(wire, Delivery::Stream);
        let has_secrets = sent.iter().any(|header| matches!(header.value, Value::Secret(_)));
        if has_secrets && (is_read || !origin.is_private()) {
            return Err(EndpointError::InTheClear { host: origin.host().to_owned() });
        }
        header_map(&sent)?;
        Ok(Self(Arc::new(Shared {
            wire,
            endpoint,
            origin,
            patience,
            limits,
            ready: Ready::default(),
            refused: Refused::default(),
        })))
    }

    /// Returns the endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        &self.0.endpoint
    }

    /// Returns the wire format.
    pub fn wire(&self) -> Wire {
        self.0.wire
    }
}

impl Provider for Http {
    fn ask(&self, ask: Ask) -> Emitting<Said> {
        let shared = Arc::clone(&self.0);
        Emitting::new(|emitter| async move { Said::End(shared.answer(ask, &emitter).await) })
    }
}

impl Shared {
    /// Sends the request until there is an answer, or an error that cannot be retried.
    async fn answer(&self, mut ask: Ask, emitter: &Emitter<Said>) -> Result<Reply, ProviderError> {
        let until = self.patience.total.map(|total| Instant::now() + total);
        self.refused.leave_out(&mut ask);
        let offered = self.ready.get(self.wire, &ask);
        let sending =
            |ask: &Ask| Sending::new(self.wire.request_with(ask, &self.endpoint, &offered));
        let mut request = sending(&ask)?;
        let silence = match ask.delivery {
            Delivery::Stream => self.patience.silence,
            Delivery::Whole => self.patience.silence_whole,
        };
        let waits = Waits { silence, until };
        let mut asked = 0;
        loop {
            let reader = self.wire.reader_with(&ask, &self.endpoint, Arc::clone(&offered.names));
            let reader = reader.with_limits(self.limits.clone());
            let exchange = Exchange { reader, waits };
            let error = match exchange.run(&self.origin, request.again(), emitter).await {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            if error.cause == Cause::Thoughts
                && !error.handed_out
                && self.refused.leave_out_all(&mut ask)
            {
                request = sending(&ask)?;
                emitter.emit(Said::Again { error, after: Duration::ZERO }).await;
                continue;
            }
            asked += 1;
            let (error, after) = self.patience.wait(error, asked, chance())?;
            if until.is_some_and(|until| until <= Instant::now() + after) {
                return Err(error);
            }
            emitter.emit(Said::Again { error, after }).await;
            tokio::time::sleep(after).await;
        }
    }
}

/// A request, prepared to be sent more than once.
struct Sending {
    path: Uri,
    headers: HeaderMap,
    body: Bytes,
}

impl Sending {
    fn new(request: HttpRequest) -> Result<Self, ProviderError> {
        let refused = |why: &str| ProviderError::new(Cause::Invalid, why);
        let uri: Uri = request.url.parse().map_err(|_| refused("the model's name is no path"))?;
        let path = uri.into_parts().path_and_query.map(Uri::from).unwrap_or_default();
        let headers = header_map(&request.headers).map_err(|error| refused(&error.to_string()))?;
        Ok(Self { path, headers, body: request.body.into() })
    }

    fn again(&self) -> Request<Bytes> {
        let mut request = Request::new(self.body.clone());
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = self.path.clone();
        *request.headers_mut() = self.headers.clone();
        request
    }
}

fn header_map(headers: &[Header]) -> Result<HeaderMap, EndpointError> {
    let mut map = HeaderMap::with_capacity(headers.len() + 4);
    for header in headers {
        let wrong = || EndpointError::Header(header.name.clone());
        let name = HeaderName::try_from(&*header.name).map_err(|_| wrong())?;
        let mut value = HeaderValue::try_from(header.value.expose()).map_err(|_| wrong())?;
        value.set_sensitive(matches!(header.value, Value::Secret(_)));
        map.append(name, value);
    }
    Ok(map)
}

/// One request and the reading of its response.
struct Exchange {
    reader: Reader,
    waits: Waits,
}

impl Exchange {
    async fn run(
        mut self,
        origin: &Origin,
        request: Request<Bytes>,
        emitter: &Emitter<Said>,
    ) -> Result<Reply, ProviderError> {
        let mut response = match self.waits.within(origin.send(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(unanswered)) => return Err(lost(unanswered)),
            Err(cause) => return Err(ProviderError::new(cause, "")),
        };
        self.head(&response)?;
        while !self.reader.is_over() {
            match self.waits.within(response.chunk()).await {
                Ok(Some(Ok(bytes))) => {
                    for delta in self.reader.feed(&bytes) {
                        emitter.emit(Said::Delta(delta)).await;
                    }
                }
                Ok(Some(Err(broken))) => return self.reader.end_broken(lost(broken)),
                Ok(None) => return self.reader.end(),
                Err(cause) => return self.reader.end_broken(ProviderError::new(cause, "")),
            }
        }
        // Most often the end of the body has come already.
        let rest = async { while let Some(Ok(_)) = response.chunk().await {} };
        let _ = tokio::time::timeout(TRAILING, rest).await;
        self.reader.end()
    }

    /// Takes the status and the headers; returns an error if the body is useless.
    fn head(&mut self, response: &Response) -> Result<(), ProviderError> {
        let (status, headers) = (response.status(), response.headers());
        let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        let refused = |cause: Cause, message: &str| {
            let mut error = ProviderError::new(cause, message);
            error.status = Some(status);
            Err(error)
        };
        if (300..400).contains(&status) {
            // What follows a `?` may be secret.
            let to = text(LOCATION).unwrap_or("elsewhere").split(['?', '#']).next();
            let to = to.unwrap_or_default().chars().filter(|one| !one.is_control()).take(200);
            return refused(Cause::Elsewhere { to: to.collect() }, "");
        }
        if text(CONTENT_ENCODING).is_some_and(|coding| coding != "identity") {
            return refused(Cause::NotJson, "it is compressed, which nobody asked for");
        }
        let headers = headers.iter();
        let told = headers.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        self.reader.head(status, told);
        Ok(())
    }
}

/// Timeouts of one request.
#[derive(Clone, Copy)]
struct Waits {
    silence: Duration,
    until: Option<Instant>,
}

impl Waits {
    /// Returns the output of a future in time, else the timeout that was exceeded.
    async fn within<T>(self, wait: impl Future<Output = T>) -> Result<T, Cause> {
        let now = Instant::now();
        let quiet = now + self.silence;
        match self.until {
            Some(until) if until < quiet => {
                tokio::time::timeout_at(until, wait).await.map_err(|_| Cause::TooSlow)
            }
            _ => {
                let silent = |_| Cause::Silent { seconds: self.silence.as_secs() };
                tokio::time::timeout_at(quiet, wait).await.map_err(silent)
            }
        }
    }
}

/// Returns the error for a response that did not arrive, or not completely.
fn lost(unanswered: Unanswered) -> ProviderError {
    match unanswered {
        Unanswered::Unreachable { host, barrier, source } => {
            ProviderError::new(Cause::Unreachable { host, barrier }, source.to_string())
        }
        Unanswered::Broken(reason) => ProviderError::new(Cause::Cut, reason),
    }
}

#[cfg(test)]
mod tests;
