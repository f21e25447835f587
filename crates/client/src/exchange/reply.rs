//! The answer to a request over HTTP: a JSON body, or a stream of events.

use std::pin::pin;

use consort_protocol::late::timeout;
use consort_protocol::{MemoryReservation, Object, sse};
use tokio::time::sleep;

use super::resuming::StreamResumption;
use crate::call::mailbox::CallMailbox;
use crate::connection::MessageOrigin;
use crate::error::{ClientCallError, CloseReason};
use crate::exchange::context::CallExecution;
use crate::request::dialect::RequestDialect;
use crate::settings::ClientSettings;
use crate::transport::http::HttpTransport;
use crate::transport::pool::{BodyError, PooledResponse, ResponseContent};

impl CallExecution<'_> {
    /// Reads the answer from a JSON body. Nothing else can follow, so unreadable bytes are an error.
    pub(super) async fn read_json(
        &self,
        id: u64,
        reply: PooledResponse,
        mailbox: &CallMailbox,
    ) -> Result<Object, ClientCallError> {
        let ClientSettings { limits, times, budget, .. } = &self.link.settings;
        let room = budget.reservation_of(self.request.holder());
        let body = pin!(reply.collect(limits.message_bytes, room, times)).await;
        let body = body.map_err(|error| match error {
            BodyError::TooLarge => self.too_large(),
            BodyError::NoRoom => self.no_room(),
            BodyError::Broken(reason) => ClientCallError::Unknown(CloseReason::Broken(reason)),
        })?;
        let answer = self.link.parse_answer(&body, id);
        if answer.is_none() {
            self.link.receive(&body, MessageOrigin::Call(id)).map_err(ClientCallError::Unknown)?;
        }
        while let Some(arrival) = mailbox.try_next() {
            if let Some(end) = pin!(self.take(arrival)).await {
                return end;
            }
        }
        if let Some(answer) = answer {
            self.pulse.beat();
            return answer.map_err(ClientCallError::Refused);
        }
        Err(ClientCallError::Malformed("its body has no response to the request".to_owned()))
    }

    /// Reads an SSE stream up to the answer, resuming it where a legacy server allows that.
    pub(super) async fn read_events(
        &self,
        http: &HttpTransport,
        dialect: &RequestDialect,
        id: u64,
        mut reply: PooledResponse,
        mailbox: &CallMailbox,
    ) -> Result<Object, ClientCallError> {
        let ClientSettings { limits, times, .. } = &self.link.settings;
        let mut resuming = StreamResumption::default();
        loop {
            let mut room = self.link.settings.budget.reservation_of(self.request.holder());
            let mut events = sse::SseDecoder::new(limits.message_bytes);
            let broken = loop {
                if let Some(end) = self.drain(&mut events, &mut room, id, mailbox).await? {
                    return end;
                }
                tokio::select! {
                    biased;
                    arrival = mailbox.next() => if let Some(end) = self.take(arrival).await {
                        return end;
                    },
                    chunk = reply.chunk() => match chunk {
                        Some(Ok(bytes)) => {
                            let held = events.held() + bytes.len();
                            if !room.covers(held) {
                                let extended = room.extend(held, limits.message_bytes);
                                let extended = timeout(times.room, times.late, extended).await;
                                extended.map_err(|_| self.no_room())?;
                            }
                            events.push(&bytes);
                        }
                        Some(Err(reason)) => break reason,
                        None => break "its event stream ended".to_owned(),
                    },
                }
            };
            resuming.note(&events);
            reply = loop {
                let Some(last) = resuming.last.clone().filter(|_| !dialect.is_modern()) else {
                    return Err(ClientCallError::Unknown(CloseReason::Broken(broken)));
                };
                let Some(pause) = resuming.pause(&self.link.settings) else {
                    return Err(ClientCallError::Unknown(CloseReason::Broken(broken)));
                };
                sleep(pause).await;
                match http.listen(dialect, Some(&last)).await {
                    Ok(reply)
                        if reply.status().is_success()
                            && reply.content() == ResponseContent::Events =>
                    {
                        break reply;
                    }
                    // It is not offered, or no longer known: nothing more will come.
                    Ok(reply) if reply.status().is_client_error() => {
                        return Err(ClientCallError::Unknown(CloseReason::Broken(broken)));
                    }
                    _ => {}
                }
            };
        }
    }

    /// Handles the complete events one by one, so that none waits behind the limit.
    async fn drain(
        &self,
        events: &mut sse::SseDecoder,
        room: &mut MemoryReservation,
        id: u64,
        mailbox: &CallMailbox,
    ) -> Result<Option<Result<Object, ClientCallError>>, ClientCallError> {
        while let Some(event) = events.next_event().map_err(|_| self.too_large())? {
            if event.kind != "message" {
                continue;
            }
            self.link
                .receive(&room.attach(event.data), MessageOrigin::Call(id))
                .map_err(ClientCallError::Unknown)?;
            while let Some(arrival) = mailbox.try_next() {
                if let Some(end) = self.take(arrival).await {
                    return Ok(Some(end));
                }
            }
        }
        Ok(None)
    }
}
