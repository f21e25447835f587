//! Transports: a child process, Streamable HTTP, or HTTP+SSE.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

pub(crate) mod addresses;
pub(crate) mod credentials;
pub(crate) mod http;
#[cfg(target_os = "linux")]
pub(crate) mod keeper;
mod live;
pub(crate) mod network;
pub(crate) mod origin;
mod origin_route;
pub(crate) mod pool;
pub(crate) mod process;
pub(crate) mod proxy;
pub(crate) mod request_body;
pub(crate) mod resume;
pub(crate) mod sse;
pub(crate) mod stdio;
mod stream;
#[cfg(feature = "tls")]
pub(crate) mod tls;
pub(crate) mod url;
mod watchdog;

use consort_protocol::SendObserver;
use http::HttpTransport;
use sse::SseTransport;
use stdio::StdioTransport;

/// The transport to one server.
#[derive(Debug)]
pub(crate) enum Transport {
    Stdio(StdioTransport),
    Http(HttpTransport),
    Sse(SseTransport),
}

/// Send state of a request, which makes "not sent" provable.
#[derive(Debug, Default)]
pub(crate) struct SendPermit {
    state: AtomicU8,
    postmark: Option<Arc<dyn SendObserver>>,
}

const WAITING: u8 = 0;
const LEAVING: u8 = 1;
const WITHDRAWN: u8 = 2;

impl SendPermit {
    /// Creates the state of a request, with an observer of its sending.
    pub(crate) fn new(postmark: Option<Arc<dyn SendObserver>>) -> Self {
        Self { state: AtomicU8::new(WAITING), postmark }
    }

    /// Observer to notify when the last byte was written.
    pub(crate) fn postmark(&self) -> Option<&Arc<dyn SendObserver>> {
        self.postmark.as_ref()
    }

    /// Marks it as being sent. Returns false if it was withdrawn: then it must not be sent.
    pub(crate) fn leave(&self) -> bool {
        self.state.compare_exchange(WAITING, LEAVING, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Marks it as provably not sent after all.
    pub(crate) fn stay(&self) {
        self.state.store(WAITING, Ordering::Release);
    }

    /// Returns true if it was sent, or may have been. If it was not, it is withdrawn and never will be.
    pub(crate) fn left(&self) -> bool {
        match self.state.compare_exchange(WAITING, WITHDRAWN, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) | Err(WITHDRAWN) => false,
            Err(_) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_did_not_leave_never_will() {
        let waiting = SendPermit::default();
        assert!(!waiting.left());
        assert!(!waiting.leave());

        let sent = SendPermit::default();
        assert!(sent.leave());
        assert!(sent.left());
        sent.stay();
        assert!(!sent.left());
    }
}
