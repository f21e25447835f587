//! A request body that reports when its last byte was written.

use std::sync::Arc;

use bytes::{Buf, Bytes};

use super::Ticket;
use crate::ask::Postmark;

/// A request body.
#[derive(Debug)]
pub(crate) struct Letter {
    bytes: Bytes,
    postmark: Option<Arc<dyn Postmark>>,
}

impl Letter {
    pub(crate) fn new(bytes: Bytes, ticket: &Ticket) -> Self {
        Self { bytes, postmark: ticket.postmark().cloned() }
    }
}

impl Buf for Letter {
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
