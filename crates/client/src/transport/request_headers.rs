//! Headers of every request to a server, of which some may be read anew.

use std::sync::Arc;
use std::time::Instant;

use ::http::header::{HOST, USER_AGENT};
use ::http::{HeaderMap, HeaderName, HeaderValue};
use parking_lot::RwLock;

use super::connection_values::ConnectionValues;
use super::location::ServerLocation;
use super::url::ServerUrl;
use crate::helper_program::HelperLimits;

/// A list of headers.
pub(crate) type HeaderList = Vec<(HeaderName, HeaderValue)>;

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
    current: RwLock<Arc<HeaderList>>,
    renewal: Option<Arc<HeaderRenewal>>,
    /// The last time that they were read anew and were the same. Held while they are read.
    unchanged_at: tokio::sync::Mutex<Option<Instant>>,
}

impl RequestHeaders {
    pub(crate) fn new(endpoint: &ServerUrl) -> Self {
        Self {
            current: RwLock::new(Arc::new(all_headers(endpoint))),
            renewal: endpoint.renewal.clone(),
            unchanged_at: tokio::sync::Mutex::default(),
        }
    }

    pub(crate) fn current(&self) -> Arc<HeaderList> {
        Arc::clone(&self.current.read())
    }

    /// Returns a map of them, with room for a few more.
    pub(crate) fn to_map(&self) -> HeaderMap {
        let current = self.current();
        // Room for all of them: a map that grows is made twice.
        let mut headers = HeaderMap::with_capacity(current.len() + 8);
        for (name, value) in current.iter() {
            headers.append(name, value.clone());
        }
        headers
    }

    /// Reads them anew after a server refused these. Returns false if they are the same: the refusal stands.
    pub(crate) async fn renew(&self, refused: &Arc<HeaderList>) -> bool {
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
        let headers = read.ok().and_then(|server| server.url().map(all_headers));
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

fn all_headers(endpoint: &ServerUrl) -> HeaderList {
    let agent = concat!("consort/", env!("CARGO_PKG_VERSION"));
    let authority =
        HeaderValue::try_from(endpoint.url.authority()).expect("an authority is a header value");
    let own = [(HOST, authority), (USER_AGENT, HeaderValue::from_static(agent))];
    own.into_iter().chain(endpoint.headers.iter().cloned()).collect()
}
