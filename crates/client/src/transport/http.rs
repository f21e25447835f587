//! Streamable HTTP: every message is a request of its own, answered by JSON or an SSE stream.

use std::pin::pin;
use std::sync::Arc;

use ::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE};
use ::http::uri::PathAndQuery;
use ::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use bytes::Bytes;
use consort_protocol::headers::encode_text;
use parking_lot::RwLock;

use super::SendPermit;
use super::credentials::{Credentials, RefusedRequest};
use super::http1::RequestWriter;
use super::pool::{ExchangeFailure, HttpConnectionPool, PooledResponse};
use super::request_headers::RequestHeaders;
use super::url::ServerUrl;
use crate::error::{ClientCallError, CloseReason, NotSent};
use crate::limits::{Limits, Times};
use crate::request::OutgoingRequest;
use crate::request::dialect::RequestDialect;
use crate::tool_requirements::ToolRequirements;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The transport to a Streamable HTTP server.
#[derive(Debug)]
pub(crate) struct HttpTransport {
    pool: HttpConnectionPool,
    redirects: u32,
    headers: RequestHeaders,
    meta_headers: Vec<(HeaderName, String)>,
    credentials: Option<Arc<dyn Credentials>>,
    path: RwLock<PathAndQuery>,
    session: RwLock<UpstreamSession>,
    /// Held while a lost session is being replaced.
    pub(crate) renewing: tokio::sync::Mutex<()>,
}

/// The session of a legacy server. A server may reuse a session id, so sessions are distinguished by number.
#[derive(Debug, Default)]
struct UpstreamSession {
    number: u64,
    id: Option<HeaderValue>,
}

impl HttpTransport {
    pub(crate) fn new(endpoint: &ServerUrl, limits: &Limits, times: &Times) -> Self {
        let url = endpoint.url.clone();
        Self {
            redirects: limits.redirects,
            headers: RequestHeaders::new(endpoint),
            meta_headers: endpoint.meta_headers.clone(),
            credentials: endpoint.credentials.clone(),
            path: RwLock::new(url.path.clone()),
            session: RwLock::default(),
            renewing: tokio::sync::Mutex::default(),
            pool: HttpConnectionPool::new(url, endpoint.network.clone(), limits, times),
        }
    }

    /// Posts a request; the reply is its answer, or the start of it.
    pub(crate) async fn post(
        &self,
        dialect: &RequestDialect,
        request: &OutgoingRequest,
        facts: &ToolRequirements,
        bytes: Bytes,
        ticket: &SendPermit,
    ) -> Result<PooledResponse, ClientCallError> {
        let headers = |writer: &mut RequestWriter| {
            self.write_request_headers(writer, dialect, request, facts);
        };
        // There is no session and no revision yet, whatever is configured.
        let early = [SESSION, VERSION];
        let except = if request.method == "initialize" { early.as_slice() } else { &[] };
        let reply = pin!(self.exchange(Method::POST, headers, except, bytes, ticket)).await?;
        if request.method == "initialize" && reply.status().is_success() {
            let id = reply.headers().get(SESSION).map(detached);
            let mut session = self.session.write();
            *session = UpstreamSession { number: session.number + 1, id };
        }
        Ok(reply)
    }

    /// Posts a notification, or a response to the server.
    pub(crate) async fn send(
        &self,
        dialect: &RequestDialect,
        bytes: Bytes,
        ticket: &SendPermit,
    ) -> Result<(), ClientCallError> {
        let headers = |writer: &mut RequestWriter| self.write_message_headers(writer, dialect);
        let reply = self.exchange(Method::POST, headers, &[], bytes, ticket).await?;
        if reply.status().is_success() {
            // Some servers answer with a body nobody asked for; reading it saves the connection.
            let _ = reply.collect_short().await;
            return Ok(());
        }
        Err(refused(reply).await)
    }

    /// Opens the common SSE stream, or resumes a broken one after `last_id`.
    pub(crate) async fn listen(
        &self,
        dialect: &RequestDialect,
        last_id: Option<&str>,
    ) -> Result<PooledResponse, ClientCallError> {
        let headers = |writer: &mut RequestWriter| {
            writer.text(&ACCEPT, "text/event-stream");
            self.write_state(writer, dialect);
            if let Some(id) = last_id.and_then(|id| HeaderValue::try_from(id).ok()) {
                writer.header(&LAST_EVENT_ID, &id);
            }
        };
        let permit = SendPermit::default();
        self.exchange(Method::GET, headers, &[CONTENT_TYPE], Bytes::new(), &permit).await
    }

    /// Ends the session at the server. It is a courtesy, and its failure is ignored.
    pub(crate) async fn leave(&self, dialect: &RequestDialect) {
        if self.session().is_some() {
            let headers = |writer: &mut RequestWriter| self.write_message_headers(writer, dialect);
            let permit = SendPermit::default();
            let _ = self.exchange(Method::DELETE, headers, &[], Bytes::new(), &permit).await;
        }
    }

    /// Posts to this URL from now on. Returns false if it has another origin.
    pub(crate) fn redirect(&self, reference: &str) -> bool {
        let Some(url) = self.pool.url().join(reference) else {
            return false;
        };
        *self.path.write() = url.path;
        true
    }

    pub(crate) fn session(&self) -> Option<HeaderValue> {
        self.session.read().id.clone()
    }

    /// The number of the current session.
    pub(crate) fn session_number(&self) -> u64 {
        self.session.read().number
    }

    fn write_request_headers(
        &self,
        writer: &mut RequestWriter,
        dialect: &RequestDialect,
        request: &OutgoingRequest,
        facts: &ToolRequirements,
    ) {
        if request.method == "initialize" {
            writer.keep_headers();
            write_json_headers(writer);
        } else {
            self.write_message_headers(writer, dialect);
        }
        if dialect.is_modern() {
            writer.text(&METHOD, &encode_text(&request.method));
            if let Some(subject) = request.subject() {
                writer.text(&NAME, &encode_text(&subject));
            }
            if let (Some(tool), Some(arguments)) = (request.tool_name(), request.param("arguments"))
            {
                for (name, value) in facts.mirrored(&tool, arguments) {
                    writer.text(&name, &encode_text(&value));
                }
            }
        }
        for (name, member) in &self.meta_headers {
            if let Some(text) = request.meta.as_ref().and_then(|meta| meta.text(member))
                && !writer.contains(name)
            {
                writer.text(name, &encode_text(&text));
            }
        }
    }

    /// Writes the headers of a message in the body.
    fn write_message_headers(&self, writer: &mut RequestWriter, dialect: &RequestDialect) {
        write_json_headers(writer);
        self.write_state(writer, dialect);
    }

    /// Writes the revision and the session.
    fn write_state(&self, writer: &mut RequestWriter, dialect: &RequestDialect) {
        if dialect.revision.has_version_header() {
            writer.text(&VERSION, dialect.revision.as_str());
        }
        if dialect.revision.has_sessions()
            && let Some(session) = &self.session.read().id
        {
            writer.header(&SESSION, session);
        }
    }

    async fn exchange(
        &self,
        method: Method,
        headers: impl Fn(&mut RequestWriter),
        except: &[HeaderName],
        bytes: Bytes,
        ticket: &SendPermit,
    ) -> Result<PooledResponse, ClientCallError> {
        for _ in 0..=self.redirects {
            let sent = self.headers.current();
            let shown = match &self.credentials {
                Some(credentials) => credentials.authorization().await,
                None => None,
            };
            let request = {
                let mut writer = self.pool.request(method.clone(), self.path.read().as_str());
                sent.write_always(&mut writer);
                headers(&mut writer);
                if let Some(shown) = &shown {
                    writer.header(&AUTHORIZATION, shown);
                }
                sent.write_others(&mut writer, except);
                writer.finish(bytes.clone(), ticket)
            };
            let reply = pin!(self.pool.send(request, ticket))
                .await
                .map_err(|failure| self.failed(failure))?;
            if reply.status() == StatusCode::UNAUTHORIZED && self.headers.renew(&sent).await {
                // Whoever is not let in has had nothing done.
                ticket.stay();
                continue;
            }
            if let Some(credentials) = &self.credentials
                && matches!(reply.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
            {
                let (status, challenge) = (reply.status().as_u16(), challenge(reply.headers()));
                drop(reply);
                let refused = RefusedRequest { status, challenge: challenge.clone(), shown };
                if let Err(advice) = credentials.refused(refused).await {
                    let advice = Some(advice);
                    return Err(ClientCallError::Unauthorized { status, challenge, advice });
                }
                ticket.stay();
                continue;
            }
            if !matches!(
                reply.status(),
                StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
            ) {
                return Ok(reply);
            }
            let location = reply.headers().get(LOCATION).and_then(|value| value.to_str().ok());
            if !location.is_some_and(|location| self.redirect(location)) {
                let body =
                    "it redirects to another origin, which must not get the credentials".to_owned();
                return Err(ClientCallError::Status {
                    status: reply.status().as_u16(),
                    retry_after: None,
                    body,
                });
            }
            // Whoever redirects has not done anything.
            ticket.stay();
        }
        Err(ClientCallError::Malformed("it redirects too often".to_owned()))
    }

    fn failed(&self, failure: ExchangeFailure) -> ClientCallError {
        match failure {
            ExchangeFailure::Unreachable(error) => {
                let host = self.pool.url().authority().to_owned();
                NotSent::Unreachable { host, reason: error.to_string() }.into()
            }
            ExchangeFailure::Broken(reason) => {
                ClientCallError::Unknown(CloseReason::Broken(reason))
            }
        }
    }
}

/// Writes the headers of requests with a JSON body.
fn write_json_headers(writer: &mut RequestWriter) {
    writer.lines(
        b"content-type: application/json\r\naccept: application/json, text/event-stream\r\n",
    );
}

/// Returns the `WWW-Authenticate` challenges of a reply.
fn challenge(headers: &HeaderMap) -> Option<String> {
    let challenges: Vec<&str> =
        headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok()).collect();
    (!challenges.is_empty()).then(|| challenges.join(", "))
}

/// Returns the error of a reply other than success.
pub(crate) async fn refused(reply: PooledResponse) -> ClientCallError {
    let text = |name: &str| {
        reply.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
    };
    let status = reply.status().as_u16();
    if matches!(status, 401 | 403) {
        let challenge = challenge(reply.headers());
        return ClientCallError::Unauthorized { status, challenge, advice: None };
    }
    let retry_after = text("retry-after");
    let proxy = reply.gateway_proxy();
    let body = reply.collect_short().await;
    match consort_protocol::JsonRpcMessage::parse(body.clone()) {
        Ok(consort_protocol::JsonRpcMessage::Error { error, .. }) => {
            ClientCallError::Refused(error)
        }
        _ => {
            let mut body: String = String::from_utf8_lossy(&body).chars().take(400).collect();
            if let Some(proxy) = proxy {
                // Behind it: of a long text the end is shown.
                body = format!("{} (possibly returned by the proxy `{proxy}`)", body.trim_end());
            }
            ClientCallError::Status { status, retry_after, body }
        }
    }
}

/// A copy with bytes of its own. The header of an answer is a slice of the buffer it was read into, which it would keep.
fn detached(value: &HeaderValue) -> HeaderValue {
    HeaderValue::from_bytes(value.as_bytes()).expect("it is the value of a header already")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_id_does_not_keep_the_buffer_it_was_read_into() {
        let buffer = Bytes::from(vec![b'a'; 8192]);
        let header = HeaderValue::from_maybe_shared(buffer.slice(..32)).unwrap();
        let id = detached(&header);
        drop(header);
        assert!(buffer.is_unique());
        assert_eq!(id.as_bytes(), &buffer[..32]);
    }
}
