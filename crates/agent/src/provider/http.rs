//! A provider that is reached over HTTP.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use consort_core::Emitting;
use consort_wire::{ConnectError, Emitter, Origin, Response, Times, Unanswered};
use http::header::{CONTENT_ENCODING, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Uri};
use tokio::time::Instant;

use super::endpoint::Value;
use super::error::Cause;
use super::offered::Ready;
use super::patience::chance;
use super::thoughts::Refused;
use super::{
    Ask, Delivery, Endpoint, Header, HttpRequest, Limits, Patience, Provider, ProviderError,
    Reader, Reply, Said, Wire,
};

/// How long an unused connection is kept. Those in front of large providers keep theirs for minutes; one
/// that turns out to be closed costs a repeat, which is safe here.
const IDLE_CONNECTION: Duration = Duration::from_secs(30);

/// How long the end of a body is waited for behind the end of its answer, to use the connection again.
const TRAILING: Duration = Duration::from_millis(20);

/// A provider that is reached over HTTP. A handle: clones share its connections.
///
/// ```no_run
/// use consort_agent::provider::{Http, Patience};
/// use consort_agent::{Ask, Delta, Endpoint, Message, Provider, Said, Wire};
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

/// Why an endpoint cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// Its address cannot be used.
    #[error(transparent)]
    Address(#[from] ConnectError),
    /// Its address has more than a path.
    #[error("invalid base URL `{0}`: leave out what follows the `?` or `#`")]
    Query(String),
    /// A secret would go there for everybody to read.
    #[error("the key for `{host}` would go there unprotected: use https")]
    InTheClear {
        /// Host and port.
        host: String,
    },
    /// A header that HTTP does not allow.
    #[error("the header `{0}` cannot be sent: it has characters that HTTP does not allow")]
    Header(String),
}

impl Http {
    /// The provider there. Nothing connects before something is asked. An endpoint with secrets must be
    /// reached by `https`, or be on this machine.
    pub fn new(wire: Wire, endpoint: Endpoint, patience: Patience) -> Result<Self, EndpointError> {
        if let Some((before, _)) = endpoint.base_url.split_once(['?', '#']) {
            return Err(EndpointError::Query(before.to_owned()));
        }
        let times = Times {
            connect: patience.connect,
            idle_connection: IDLE_CONNECTION,
            ..Times::default()
        };
        let origin = Origin::new(&endpoint.base_url, &consort_wire::Limits::default(), &times)?;
        let sent = endpoint.headers_for(wire, Delivery::Stream);
        let has_secrets = sent.iter().any(|header| matches!(header.value, Value::Secret(_)));
        if has_secrets && !origin.is_private() {
            return Err(EndpointError::InTheClear { host: origin.host().to_owned() });
        }
        header_map(&sent)?;
        Ok(Self(Arc::new(Shared {
            wire,
            endpoint,
            origin,
            patience,
            limits: Limits::default(),
            ready: Ready::default(),
            refused: Refused::default(),
        })))
    }

    /// Where it is.
    pub fn endpoint(&self) -> &Endpoint {
        &self.0.endpoint
    }

    /// What it speaks.
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
    /// Asks until there is an answer, or an error that no repeat mends.
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

/// A request, made ready to be sent more than once.
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

/// One request and the reading of its answer.
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

    /// Takes the status and the headers, unless they say that what follows is of no use.
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

/// How long is waited.
#[derive(Clone, Copy)]
struct Waits {
    silence: Duration,
    until: Option<Instant>,
}

impl Waits {
    /// What comes of it in time, else why it is not waited for any longer.
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

/// The error for what never came, or not all of it.
fn lost(unanswered: Unanswered) -> ProviderError {
    match unanswered {
        Unanswered::Unreachable { host, barrier, source } => {
            ProviderError::new(Cause::Unreachable { host, barrier }, source.to_string())
        }
        Unanswered::Broken(reason) => ProviderError::new(Cause::Cut, reason),
    }
}

#[cfg(test)]
pub(super) mod peer;
#[cfg(test)]
mod tests;
