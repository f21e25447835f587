//! Responses over a pooled connection, and their bodies.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use ::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use consort_protocol::MemoryReservation;
use hyper::body::{Body, Incoming};

use super::{HttpConnectionPool, HttpPoolConnection};
use crate::limits::Times;

/// Bytes of an error body that are kept.
const SHORT_BODY: usize = 64 << 10;

/// Reason for which there is no body.
#[derive(Debug)]
pub(crate) enum BodyError {
    TooLarge,
    /// Other messages take all memory for large ones.
    NoRoom,
    Broken(String),
}

/// A response whose body is still to be read.
#[derive(Debug)]
pub(crate) struct PooledResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(super) body: Incoming,
    /// The connection, until the body has been read.
    pub(super) connection: Option<HttpPoolConnection>,
    pub(super) pool: HttpConnectionPool,
}

impl PooledResponse {
    /// Returns the next chunk of the body, `None` at its end.
    pub(crate) async fn chunk(&mut self) -> Option<Result<Bytes, String>> {
        let connection = self.connection.as_mut()?;
        let body = &mut self.body;
        let chunk = poll_fn(|cx| connection.poll_body(body, cx)).await;
        match &chunk {
            None => self.release().await,
            Some(Ok(_)) if self.body.is_end_stream() => self.release().await,
            Some(Ok(_)) => {}
            Some(Err(_)) => self.connection = None,
        }
        chunk
    }

    /// Returns the whole body, if it is no larger than `most` and gets memory in time.
    pub(crate) async fn collect(
        mut self,
        most: usize,
        mut room: MemoryReservation,
        times: &Times,
    ) -> Result<Bytes, BodyError> {
        if self.body.size_hint().lower() > most as u64 {
            return Err(BodyError::TooLarge);
        }
        let Some(first) = self.chunk().await else {
            return Ok(Bytes::new());
        };
        let mut bytes = first.map_err(BodyError::Broken)?;
        let mut all = bytes::BytesMut::new();
        while let Some(chunk) = self.chunk().await {
            let chunk = chunk.map_err(BodyError::Broken)?;
            let left = usize::try_from(self.body.size_hint().lower()).unwrap_or(0);
            let held = all.len().max(bytes.len()) + chunk.len() + left;
            if held > most {
                return Err(BodyError::TooLarge);
            }
            if !room.covers(held) {
                // Of a body whose length is known, no more than that is taken.
                let grown = if left > 0 { held } else { most };
                let extended = room.extend(held, grown);
                let extended =
                    consort_protocol::late::timeout(times.room, times.late, extended).await;
                extended.map_err(|_| BodyError::NoRoom)?;
            }
            if all.is_empty() {
                all.reserve(held);
                all.extend_from_slice(&bytes);
            }
            all.extend_from_slice(&chunk);
        }
        if !all.is_empty() {
            bytes = all.freeze();
        }
        if bytes.len() > most { Err(BodyError::TooLarge) } else { Ok(room.attach(bytes)) }
    }

    /// The proxy that may have answered in place of an unreachable server.
    pub(crate) fn gateway_proxy(&self) -> Option<String> {
        let proxy = self.pool.0.route.forward_proxy()?;
        matches!(self.status.as_u16(), 502..=504).then(|| proxy.to_string())
    }

    /// The body of an error or of an ignored answer; empty if it is large.
    pub(crate) async fn collect_short(self) -> Bytes {
        let times = Times { room: Duration::ZERO, ..Times::default() };
        self.collect(SHORT_BODY, MemoryReservation::default(), &times).await.unwrap_or_default()
    }

    /// Returns the connection to the pool, if it can be reused.
    async fn release(&mut self) {
        let Some(mut connection) = self.connection.take() else {
            return;
        };
        poll_fn(|cx| {
            connection.drive(cx);
            Poll::Ready(())
        })
        .await;
        if connection.end.is_none() && connection.sender.is_ready() {
            self.pool.keep(connection);
        }
    }
}
