//! Headers of every request to a server, of which some may be read anew.

use std::sync::Arc;
use std::time::Instant;

use ::http::header::{HOST, USER_AGENT};
use ::http::{HeaderName, HeaderValue};
use parking_lot::RwLock;

use super::connection_values::ConnectionValues;
use super::http1::RequestWriter;
use super::location::ServerLocation;
use super::url::ServerUrl;
use crate::helper_program::HelperLimits;

/// Names that the transport sets: a configured header of that name is sent only in requests in which it does not.
const SET_BY_TRANSPORT: [&str; 8] = [
    "accept",
    "authorization",
    "content-type",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
];
/// Prefix of headers that mirror arguments.
const MIRRORED: &str = "mcp-param-";

/// The configured headers of a server, with `host` and `user-agent`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ConfiguredHeaders {
    /// Rendered headers that are sent in all requests.
    always: Vec<u8>,
    /// Headers that are sent unless the transport sets one of that name.
    otherwise: Vec<(HeaderName, HeaderValue)>,
}

/// Source of headers that a server may refuse once they are out of date.
#[derive(Clone, Debug)]
pub(crate) struct HeaderRenewal {
    /// The server, without the values.
    pub(crate) server: ServerLocation,
    pub(crate) values: Arc<dyn ConnectionValues>,
    pub(crate) limits: HelperLimits,
}

/// The headers of every request.
#[derive(Debug)]
pub(crate) struct RequestHeaders {
    current: RwLock<Arc<ConfiguredHeaders>>,
    renewal: Option<Arc<HeaderRenewal>>,
    /// The last time that they were read anew and were the same. Held while they are read.
    unchanged_at: tokio::sync::Mutex<Option<Instant>>,
}

impl RequestHeaders {
    pub(crate) fn new(endpoint: &ServerUrl) -> Self {
        Self {
            current: RwLock::new(Arc::new(ConfiguredHeaders::new(endpoint))),
            renewal: endpoint.renewal.clone(),
            unchanged_at: tokio::sync::Mutex::default(),
        }
    }

    pub(crate) fn current(&self) -> Arc<ConfiguredHeaders> {
        Arc::clone(&self.current.read())
    }

    /// Reads them anew after a server refused these. Returns false if they are the same: the refusal stands.
    pub(crate) async fn renew(&self, refused: &Arc<ConfiguredHeaders>) -> bool {
        let Some(renewal) = &self.renewal else { return false };
        let mut unchanged_at = self.unchanged_at.lock().await;
        if !Arc::ptr_eq(refused, &self.current()) {
            // Another request was refused before.
            return true;
        }
        let is_recent = |last: Instant| last.elapsed() < renewal.limits.time;
        if unchanged_at.is_some_and(is_recent) {
            return false;
        }
        let read = renewal.values.read(&renewal.server, renewal.limits.clone()).await;
        let headers = read.ok().and_then(|server| server.url().map(ConfiguredHeaders::new));
        match headers.filter(|headers| *headers != **refused) {
            Some(headers) => {
                *self.current.write() = Arc::new(headers);
                *unchanged_at = None;
                true
            }
            None => {
                *unchanged_at = Some(Instant::now());
                false
            }
        }
    }
}

impl ConfiguredHeaders {
    fn new(endpoint: &ServerUrl) -> Self {
        let agent = concat!("consort/", env!("CARGO_PKG_VERSION"));
        let authority = HeaderValue::try_from(endpoint.url.authority());
        let authority = authority.expect("an authority is a header value");
        let own = [(HOST, authority), (USER_AGENT, HeaderValue::from_static(agent))];
        let is_configured =
            |name: &HeaderName| endpoint.headers.iter().any(|(known, _)| known == name);
        let own = own.into_iter().filter(|(name, _)| !is_configured(name));
        let mut headers = Self { always: Vec::new(), otherwise: Vec::new() };
        for (name, value) in own.chain(endpoint.headers.iter().cloned()) {
            let may_be_set = SET_BY_TRANSPORT.contains(&name.as_str())
                || name.as_str().starts_with(MIRRORED)
                || endpoint.meta_headers.iter().any(|(known, _)| *known == name);
            if may_be_set {
                headers.otherwise.push((name, value));
            } else {
                headers.always.extend_from_slice(name.as_str().as_bytes());
                headers.always.extend_from_slice(b": ");
                headers.always.extend_from_slice(value.as_bytes());
                headers.always.extend_from_slice(b"\r\n");
            }
        }
        headers
    }

    /// Writes the headers of all requests.
    pub(crate) fn write_always(&self, request: &mut RequestWriter) {
        request.lines(&self.always);
    }

    /// Writes the headers that the request lacks, except these.
    pub(crate) fn write_others(&self, request: &mut RequestWriter, except: &[HeaderName]) {
        request.missing(self.otherwise.iter().filter(|(name, _)| !except.contains(name)));
    }
}

#[cfg(test)]
mod tests {
    use ::http::Method;
    use ::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};

    use super::*;

    #[test]
    fn configured_headers_yield_to_those_of_the_transport_and_replace_the_usual() {
        let configured = [
            ("User-Agent", "team/1"),
            ("X-Team", "blue"),
            ("X-Team", "red"),
            ("Authorization", "Bearer configured"),
            ("Accept", "text/html"),
            ("Content-Type", "text/plain"),
        ];
        let endpoint = configured.into_iter().fold(
            ServerUrl::new("https://mcp.example.com/mcp").unwrap(),
            |endpoint, (name, value)| endpoint.header(name, value).unwrap(),
        );
        let headers = ConfiguredHeaders::new(&endpoint);
        let written = |login: Option<&str>| {
            let mut request = RequestWriter::new(Method::POST, &["/mcp"]);
            headers.write_always(&mut request);
            request.text(&ACCEPT, "application/json");
            if let Some(login) = login {
                request.text(&AUTHORIZATION, login);
            }
            headers.write_others(&mut request, &[CONTENT_TYPE]);
            request.written().to_owned()
        };
        let always = "POST /mcp HTTP/1.1\r\nhost: mcp.example.com\r\nuser-agent: team/1\r\nx-team: blue\r\n\
                      x-team: red\r\naccept: application/json\r\nauthorization: ";
        assert_eq!(written(None), format!("{always}Bearer configured\r\n"));
        assert_eq!(written(Some("Bearer login")), format!("{always}Bearer login\r\n"));
    }
}
