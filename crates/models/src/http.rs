//! A provider over HTTP.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use consort_client::{
    ConnectError, HttpOrigin, HttpRequestError, HttpResponse, NetworkSettings, ProxyChoice, Times,
};
use consort_core::DrivenStream;
use consort_protocol::StreamSender;
use http::header::{CONTENT_ENCODING, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Uri};
use tokio::time::Instant;

use crate::api_key::ApiKey;
use crate::endpoint::{HttpRequest, ProviderEndpoint, RequestHeader, RequestHeaderValue};
use crate::error::{ProviderError, ProviderErrorKind};
use crate::limits::AnswerLimits;
use crate::model::{ModelProvider, ProviderEvent};
use crate::reader::ResponseReader;
use crate::reply::ModelReply;
use crate::request::{ModelRequest, ReplyDelivery};
use crate::timeouts::{ProviderTimeouts, jitter};
use crate::tool_list::PreparedToolsCache;
use crate::wire_format::WireFormat;

mod rejected_thinking;

use rejected_thinking::RejectedThinking;

/// Wait for the end of a body after the end of its answer, to reuse the connection.
const TRAILER_WAIT: Duration = Duration::from_millis(20);

/// A provider over HTTP. A handle: clones share its connections.
///
/// ```no_run
/// use consort_models::{HttpProvider, ProviderTimeouts};
/// use consort_models::{ModelRequest, ReplyDelta, ProviderEndpoint, ChatMessage, ModelProvider, ProviderEvent, WireFormat};
///
/// # async fn asks() -> Result<(), Box<dyn std::error::Error>> {
/// let endpoint = ProviderEndpoint::new("http://127.0.0.1:11434/v1");
/// let provider = HttpProvider::new(WireFormat::OpenAiChat, endpoint, ProviderTimeouts::default())?;
/// let mut events = provider.request(ModelRequest::new("some-model", vec![ChatMessage::user("Hello")]));
/// while let Some(event) = events.next().await {
///     match event {
///         ProviderEvent::Delta(ReplyDelta::Text(text)) => print!("{text}"),
///         ProviderEvent::Delta(_) => {}
///         ProviderEvent::Retry { error, after } => eprintln!("{error}; again in {after:?}"),
///         ProviderEvent::End(reply) => println!("\n{:?}", reply?.usage),
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct HttpProvider(Arc<ProviderInner>);

#[derive(Debug)]
struct ProviderInner {
    format: WireFormat,
    endpoint: ProviderEndpoint,
    origin: HttpOrigin,
    timeouts: ProviderTimeouts,
    limits: AnswerLimits,
    prepared_tools: PreparedToolsCache,
    rejected_thinking: RejectedThinking,
}

/// Reason an endpoint cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// The base URL is invalid.
    #[error(transparent)]
    Address(#[from] ConnectError),
    /// The base URL has a query or a fragment.
    #[error("invalid base URL `{0}`: remove the query and fragment (`?` or `#`)")]
    Query(String),
    /// A secret would be sent in cleartext.
    #[error("the API key for `{host}` would be sent unencrypted: use https")]
    InTheClear {
        /// Host and port.
        host: String,
    },
    /// An invalid HTTP header.
    #[error("the header `{0}` cannot be sent: it has characters that HTTP does not allow")]
    Header(String),
}

impl HttpProvider {
    /// Creates the provider. It connects on the first request. An endpoint with secrets must use `https`, or be on this
    /// machine.
    pub fn new(
        wire: WireFormat,
        endpoint: ProviderEndpoint,
        timeouts: ProviderTimeouts,
    ) -> Result<Self, EndpointError> {
        Self::with_network(
            wire,
            endpoint,
            timeouts,
            AnswerLimits::default(),
            NetworkSettings::default(),
        )
    }

    /// Creates the provider with limits of its answers and network settings: a proxy and certificates.
    pub fn with_network(
        wire: WireFormat,
        endpoint: ProviderEndpoint,
        timeouts: ProviderTimeouts,
        limits: AnswerLimits,
        network: NetworkSettings,
    ) -> Result<Self, EndpointError> {
        if let Some((before, _)) = endpoint.base_url.split_once(['?', '#']) {
            return Err(EndpointError::Query(before.to_owned()));
        }
        let times = Times {
            connect: timeouts.connect,
            idle_connection: timeouts.idle_connection,
            ..Times::default()
        };
        // A proxy of a plain origin reads all that is sent, also to this machine.
        let is_read = matches!(network.proxy, ProxyChoice::Url(_))
            && !endpoint.base_url.to_ascii_lowercase().starts_with("https:");
        let usual = consort_client::Limits::default();
        let origin = HttpOrigin::with_network(&endpoint.base_url, network, &usual, &times)?;
        let sent = endpoint.headers_for(wire, ReplyDelivery::Stream);
        let has_secrets =
            sent.iter().any(|header| matches!(header.value, RequestHeaderValue::Secret(_)))
                || endpoint.key.as_ref().is_some_and(ApiKey::is_pending);
        if has_secrets && (is_read || !origin.is_private()) {
            return Err(EndpointError::InTheClear { host: origin.host().to_owned() });
        }
        header_map(&sent)?;
        Ok(Self(Arc::new(ProviderInner {
            format: wire,
            endpoint,
            origin,
            timeouts,
            limits,
            prepared_tools: PreparedToolsCache::default(),
            rejected_thinking: RejectedThinking::default(),
        })))
    }

    /// Returns the endpoint.
    pub fn endpoint(&self) -> &ProviderEndpoint {
        &self.0.endpoint
    }

    /// Returns the wire format.
    pub fn wire_format(&self) -> WireFormat {
        self.0.format
    }
}

impl ModelProvider for HttpProvider {
    fn request(&self, model_request: ModelRequest) -> DrivenStream<ProviderEvent> {
        let shared = Arc::clone(&self.0);
        DrivenStream::new(|emitter| async move {
            ProviderEvent::End(shared.answer(model_request, &emitter).await)
        })
    }
}

impl ProviderInner {
    /// Sends the request until there is an answer, or an error that cannot be retried.
    async fn answer(
        &self,
        mut model_request: ModelRequest,
        emitter: &StreamSender<ProviderEvent>,
    ) -> Result<ModelReply, ProviderError> {
        if let Some(key) = &self.endpoint.key {
            key.read().await?;
        }
        let until = self.timeouts.total.map(|total| Instant::now() + total);
        self.rejected_thinking.remove_known(&mut model_request);
        let prepared = self.prepared_tools.get(self.format, &model_request);
        let sending = |model_request: &ModelRequest| {
            PreparedRequest::new(self.format.request_with(model_request, &self.endpoint, &prepared))
        };
        let mut request = sending(&model_request)?;
        let silence = match model_request.delivery {
            ReplyDelivery::Stream => self.timeouts.idle,
            ReplyDelivery::Complete => self.timeouts.idle_whole,
        };
        let waits = RequestDeadlines { idle: silence, until };
        let mut attempts = 0;
        loop {
            let reader = self.format.reader_with(
                &model_request,
                &self.endpoint,
                Arc::clone(&prepared.names),
            );
            let reader = reader.with_limits(self.limits.clone());
            let exchange = ModelExchange { reader, deadlines: waits };
            let error = match exchange.run(&self.origin, request.to_request(), emitter).await {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            if error.kind == ProviderErrorKind::RejectedThinking
                && !error.mid_answer
                && self.rejected_thinking.remove_all(&mut model_request)
            {
                request = sending(&model_request)?;
                emitter.emit(ProviderEvent::Retry { error, after: Duration::ZERO }).await;
                continue;
            }
            attempts += 1;
            let (error, after) = self.timeouts.next_retry(error, attempts, jitter())?;
            if until.is_some_and(|until| until <= Instant::now() + after) {
                return Err(error);
            }
            emitter.emit(ProviderEvent::Retry { error, after }).await;
            tokio::time::sleep(after).await;
        }
    }
}

/// A request, prepared to be sent more than once.
struct PreparedRequest {
    path: Uri,
    headers: HeaderMap,
    body: Bytes,
}

impl PreparedRequest {
    fn new(request: HttpRequest) -> Result<Self, ProviderError> {
        let refused = |why: &str| ProviderError::new(ProviderErrorKind::Invalid, why);
        let uri: Uri =
            request.url.parse().map_err(|_| refused("the model name is not a valid URL path"))?;
        let path = uri.into_parts().path_and_query.map(Uri::from).unwrap_or_default();
        let headers = header_map(&request.headers).map_err(|error| refused(&error.to_string()))?;
        Ok(Self { path, headers, body: request.body.into() })
    }

    fn to_request(&self) -> Request<Bytes> {
        let mut request = Request::new(self.body.clone());
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = self.path.clone();
        *request.headers_mut() = self.headers.clone();
        request
    }
}

fn header_map(headers: &[RequestHeader]) -> Result<HeaderMap, EndpointError> {
    let mut map = HeaderMap::with_capacity(headers.len() + 4);
    for header in headers {
        let wrong = || EndpointError::Header(header.name.clone());
        let name = HeaderName::try_from(&*header.name).map_err(|_| wrong())?;
        let mut value = HeaderValue::try_from(header.value.expose()).map_err(|_| wrong())?;
        value.set_sensitive(matches!(header.value, RequestHeaderValue::Secret(_)));
        map.append(name, value);
    }
    Ok(map)
}

/// One request and the reading of its response.
struct ModelExchange {
    reader: ResponseReader,
    deadlines: RequestDeadlines,
}

impl ModelExchange {
    async fn run(
        mut self,
        origin: &HttpOrigin,
        request: Request<Bytes>,
        emitter: &StreamSender<ProviderEvent>,
    ) -> Result<ModelReply, ProviderError> {
        let mut response = match self.deadlines.within(origin.send(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(unanswered)) => return Err(connection_error(unanswered)),
            Err(cause) => return Err(ProviderError::new(cause, "")),
        };
        self.head(&response)?;
        while !self.reader.is_complete() {
            match self.deadlines.within(response.chunk()).await {
                Ok(Some(Ok(bytes))) => {
                    for delta in self.reader.feed(&bytes) {
                        emitter.emit(ProviderEvent::Delta(delta)).await;
                    }
                }
                Ok(Some(Err(broken))) => return self.reader.end_broken(connection_error(broken)),
                Ok(None) => return self.reader.end(),
                Err(cause) => return self.reader.end_broken(ProviderError::new(cause, "")),
            }
        }
        // Most often the end of the body has come already.
        let rest = async { while let Some(Ok(_)) = response.chunk().await {} };
        let _ = tokio::time::timeout(TRAILER_WAIT, rest).await;
        self.reader.end()
    }

    /// Takes the status and the headers; returns an error if the body is useless.
    fn head(&mut self, response: &HttpResponse) -> Result<(), ProviderError> {
        let (status, headers) = (response.status(), response.headers());
        let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        let refused = |cause: ProviderErrorKind, message: &str| {
            let mut error = ProviderError::new(cause, message);
            error.status = Some(status);
            Err(error)
        };
        if (300..400).contains(&status) {
            // What follows a `?` may be secret.
            let to = text(LOCATION).unwrap_or("elsewhere").split(['?', '#']).next();
            let to = to.unwrap_or_default().chars().filter(|one| !one.is_control()).take(200);
            return refused(ProviderErrorKind::Redirected { to: to.collect() }, "");
        }
        if text(CONTENT_ENCODING).is_some_and(|coding| coding != "identity") {
            return refused(
                ProviderErrorKind::MalformedResponse,
                "it is compressed, which was not requested",
            );
        }
        let headers = headers.iter();
        let headers =
            headers.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        self.reader.head(status, headers);
        Ok(())
    }
}

/// Timeouts of one request.
#[derive(Clone, Copy)]
struct RequestDeadlines {
    idle: Duration,
    until: Option<Instant>,
}

impl RequestDeadlines {
    /// Returns the output of a future in time, else the timeout that was exceeded.
    async fn within<T>(self, wait: impl Future<Output = T>) -> Result<T, ProviderErrorKind> {
        let now = Instant::now();
        let quiet = now + self.idle;
        match self.until {
            Some(until) if until < quiet => {
                tokio::time::timeout_at(until, wait).await.map_err(|_| ProviderErrorKind::Timeout)
            }
            _ => {
                let silent = |_| ProviderErrorKind::IdleTimeout { seconds: self.idle.as_secs() };
                tokio::time::timeout_at(quiet, wait).await.map_err(silent)
            }
        }
    }
}

/// Returns the error for a response that did not arrive, or not completely.
fn connection_error(unanswered: HttpRequestError) -> ProviderError {
    match unanswered {
        HttpRequestError::Unreachable { host, barrier, source } => {
            ProviderError::new(ProviderErrorKind::Unreachable { host, barrier }, source.to_string())
        }
        HttpRequestError::Broken(reason) => {
            ProviderError::new(ProviderErrorKind::Truncated, reason)
        }
    }
}

#[cfg(test)]
mod tests;
