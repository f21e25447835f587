//! Checks of URLs and headers, with messages that never quote a possible secret.

use consort_client::{ConnectError, ServerUrl};

use crate::error::ConfigErrorKind;
use crate::server::HttpConfig;
use crate::syntax::names::shorten_name;
use crate::template::TemplatePart;

/// Checks a URL as far as possible before its references are resolved.
pub(crate) fn check_url(key: &str, address: &HttpConfig) -> Result<(), ConfigErrorKind> {
    let start = match address.url.parts().first() {
        Some(TemplatePart::Literal(start)) => start.to_ascii_lowercase(),
        _ => String::new(),
    };
    if start.starts_with("ws://") || start.starts_with("wss://") {
        return Err(ConfigErrorKind::WebSocket(key.to_owned()));
    }
    match address.url.as_literal() {
        Some(url) => endpoint(key, &url, address.insecure).map(drop),
        None => Ok(()),
    }
}

/// Parses a URL.
pub(crate) fn endpoint(key: &str, url: &str, insecure: bool) -> Result<ServerUrl, ConfigErrorKind> {
    let plain = ServerUrl::plain(url).map_err(|error| {
        let reason = match error {
            ConnectError::Address { reason, .. } if url.contains("://") => reason,
            _ => "expected a URL that starts with http:// or https://",
        };
        ConfigErrorKind::InvalidUrl { key: key.to_owned(), reason }
    })?;
    if insecure {
        return Ok(plain);
    }
    ServerUrl::new(url).map_err(|_| ConfigErrorKind::PlainHttp(key.to_owned()))
}

/// Checks the name of a header.
pub(crate) fn check_header(name: &str) -> Result<(), ConfigErrorKind> {
    let endpoint = ServerUrl::plain("http://localhost/").expect("that is a URL");
    header(endpoint, name, "").map(drop)
}

/// Adds a header to an endpoint.
pub(crate) fn header(
    endpoint: ServerUrl,
    name: &str,
    value: &str,
) -> Result<ServerUrl, ConfigErrorKind> {
    endpoint.header(name, value).map_err(|error| {
        let reason = match error {
            ConnectError::Address { reason, .. } => reason,
            _ => "not a valid HTTP header",
        };
        ConfigErrorKind::Header { header: shorten_name(name), reason }
    })
}
