//! The count and the log of refused requests.

use http::Request;
use http::header::{AUTHORIZATION, HOST, ORIGIN};

use crate::forwarded::ClientEnd;
use crate::guard::RequestRejection;
use crate::server_observer::LogDecision;
use crate::server_state::ServerState;

impl ServerState {
    /// Counts a refused request, and logs it within the rate limit. The log line omits the token.
    pub(crate) fn note_refusal<B>(
        &self,
        refused: RequestRejection,
        request: &Request<B>,
        client: &ClientEnd,
    ) {
        let (path, headers) = (request.uri().path(), request.headers());
        let reason = refused.as_str();
        if self.observer.request_refused(reason) == LogDecision::Suppress {
            return;
        }
        let most = self.settings.limits.logged_chars;
        let short = |text: &str| -> String {
            let short: String = text.chars().take(most).collect();
            short.escape_debug().to_string()
        };
        let header = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(short);
        let (host, origin) = (header(HOST), header(ORIGIN));
        let has_token = headers.contains_key(AUTHORIZATION);
        let (path, status) = (short(path), refused.status().as_u16());
        let client = short(&client.address());
        tracing::warn!(reason, status, path, host, origin, has_token, client, "request refused");
    }
}
