//! Responses over a pooled connection, and their bodies.

use std::future::poll_fn;
use std::time::Duration;

use ::http::{HeaderMap, StatusCode};
use bytes::{Bytes, BytesMut};
use consort_protocol::MemoryReservation;

use super::{HttpConnectionPool, HttpPoolConnection, ResponseContent, ResponseHead};
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
    pub(super) head: ResponseHead,
    /// The connection, until the body has been read.
    pub(super) connection: Option<Box<HttpPoolConnection>>,
    pub(super) pool: HttpConnectionPool,
}

impl PooledResponse {
    pub(crate) fn status(&self) -> StatusCode {
        self.head.status
    }

    pub(crate) fn content(&self) -> ResponseContent {
        self.head.content
    }

    /// The content type, for an error message.
    pub(crate) fn content_type(&self) -> &str {
        self.head.content_type()
    }

    /// The headers, if the request wants them or the response is no success; see [`ResponseHead::headers`].
    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// Returns the bytes that the body lacks, if it has a length.
    fn remaining(&self) -> Option<usize> {
        let left =
            self.connection.as_ref().map_or(Some(0), |connection| connection.http.remaining())?;
        Some(usize::try_from(left).unwrap_or(usize::MAX))
    }

    /// Returns the next chunk of the body, `None` at its end.
    pub(crate) async fn chunk(&mut self) -> Option<Result<Bytes, String>> {
        let connection = self.connection.as_mut()?;
        let chunk = poll_fn(|cx| connection.http.poll_chunk(cx)).await;
        match &chunk {
            None => self.release(),
            Some(Ok(_)) if connection.http.is_complete() => self.release(),
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
        if self.remaining().is_some_and(|length| length > most) {
            return Err(BodyError::TooLarge);
        }
        let Some(first) = self.chunk().await else {
            return Ok(Bytes::new());
        };
        let first = first.map_err(BodyError::Broken)?;
        if self.connection.is_none() {
            return if first.len() > most {
                Err(BodyError::TooLarge)
            } else {
                Ok(room.attach(first))
            };
        }
        let mut bytes = BytesMut::new();
        let mut chunk = Some(first);
        while let Some(next) = chunk {
            let left = self.remaining();
            let held = bytes.len() + next.len() + left.unwrap_or(0);
            if held > most {
                return Err(BodyError::TooLarge);
            }
            if !room.covers(held) {
                // Of a body whose length is known, no more than that is taken.
                let grown = if left.is_some() { held } else { most };
                let extended = room.extend(held, grown);
                let extended =
                    consort_protocol::late::timeout(times.room, times.late, extended).await;
                extended.map_err(|_| BodyError::NoRoom)?;
            }
            if left.is_some() {
                bytes.reserve(held - bytes.len());
            }
            bytes.extend_from_slice(&next);
            chunk = if left.is_some() {
                self.read_rest(&mut bytes).await.map_err(BodyError::Broken)?;
                None
            } else {
                self.chunk().await.transpose().map_err(BodyError::Broken)?
            };
        }
        Ok(room.attach(bytes.freeze()))
    }

    /// Reads the rest of a body whose length is known.
    async fn read_rest(&mut self, bytes: &mut BytesMut) -> Result<(), String> {
        if let Some(connection) = &mut self.connection {
            poll_fn(|cx| connection.http.poll_rest(bytes, cx)).await?;
            self.release();
        }
        Ok(())
    }

    /// The proxy that may have answered in place of an unreachable server.
    pub(crate) fn gateway_proxy(&self) -> Option<String> {
        let proxy = self.pool.0.route.forward_proxy()?;
        matches!(self.status().as_u16(), 502..=504).then(|| proxy.to_string())
    }

    /// The body of an error or of an ignored answer; empty if it is large.
    pub(crate) async fn collect_short(self) -> Bytes {
        let times = Times { room: Duration::ZERO, ..Times::default() };
        self.collect(SHORT_BODY, MemoryReservation::default(), &times).await.unwrap_or_default()
    }

    /// Returns the connection to the pool, if it can be reused.
    fn release(&mut self) {
        if let Some(connection) = self.connection.take()
            && connection.http.is_reusable()
        {
            self.pool.keep(connection);
        }
    }
}
