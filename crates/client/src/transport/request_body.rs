//! A request body that reports when its last byte was written.

use std::sync::Arc;

use bytes::{Buf, Bytes};
use consort_protocol::SendObserver;

use super::SendPermit;

/// A request body.
#[derive(Debug)]
pub(crate) struct RequestBody {
    bytes: Bytes,
    postmark: Option<Arc<dyn SendObserver>>,
}

impl RequestBody {
    pub(crate) fn new(bytes: Bytes, ticket: &SendPermit) -> Self {
        Self { bytes, postmark: ticket.postmark().cloned() }
    }
}

impl Buf for RequestBody {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    /// Skips written bytes: after the last byte, the request is sent.
    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        if !self.bytes.has_remaining()
            && let Some(postmark) = self.postmark.take()
        {
            postmark.sent();
        }
    }
}
