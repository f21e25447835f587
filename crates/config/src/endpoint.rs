//! Checks of URLs and headers, with messages that never quote a possible secret.

use consort_wire::{ConnectError, Endpoint};

use crate::error::Mistake;
use crate::names::shortened;
use crate::server::Address;
use crate::text::Part;

/// Checks a URL as far as possible before its references are resolved.
pub(crate) fn check_url(key: &str, address: &Address) -> Result<(), Mistake> {
    let start = match address.url.parts().first() {
        Some(Part::Literal(start)) => start.to_ascii_lowercase(),
        _ => String::new(),
    };
    if start.starts_with("ws://") || start.starts_with("wss://") {
        return Err(Mistake::WebSocket(key.to_owned()));
    }
    match address.url.as_literal() {
        Some(url) => endpoint(key, &url, address.insecure).map(drop),
        None => Ok(()),
    }
}

/// Parses a URL.
pub(crate) fn endpoint(key: &str, url: &str, insecure: bool) -> Result<Endpoint, Mistake> {
    let plain = Endpoint::plain(url).map_err(|error| {
        let reason = match error {
            ConnectError::Address { reason, .. } if url.contains("://") => reason,
            _ => "start it with http:// or https://",
        };
        Mistake::Address { key: key.to_owned(), reason }
    })?;
    if insecure {
        return Ok(plain);
    }
    Endpoint::new(url).map_err(|_| Mistake::Plain(key.to_owned()))
}

/// Checks the name of a header.
pub(crate) fn check_header(name: &str) -> Result<(), Mistake> {
    let endpoint = Endpoint::plain("http://localhost/").expect("that is a URL");
    header(endpoint, name, "").map(drop)
}

/// Adds a header to an endpoint.
pub(crate) fn header(endpoint: Endpoint, name: &str, value: &str) -> Result<Endpoint, Mistake> {
    endpoint.header(name, value).map_err(|error| {
        let reason = match error {
            ConnectError::Address { reason, .. } => reason,
            _ => "that is not an HTTP header",
        };
        Mistake::Header { header: shortened(name), reason }
    })
}
