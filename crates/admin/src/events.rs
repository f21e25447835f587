//! Live event stream: the full state first, then every change.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use consort_audit::live_calls::FeedChanges;
use consort_core::{DrivenStream, StreamSender};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

use crate::blocking::run_blocking;
use crate::calls::CallReport;
use crate::pending_requests::PendingRequest;
use crate::route::{AdminError, ApiRoute, EventStream, NoInput, RequestContext, encode_event, get};
use crate::servers::{self, ServerReport};
use crate::session::SessionReport;
use crate::state::AdminState;

/// Time over which changes are collected.
const GATHER: Duration = Duration::from_millis(200);

/// Time over which changes caused only by calls are collected.
const COUNT: Duration = Duration::from_secs(2);

pub(crate) fn routes() -> Vec<ApiRoute> {
    vec![get("/api/events", "Streams the full state, then every change.", follow)]
}

/// A change of state.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "event", content = "data", rename_all = "lowercase")]
enum LiveEvent {
    /// Session of the console.
    Session(SessionReport),
    /// All servers.
    Servers(Vec<ServerReport>),
    /// Tools, prompts or resources changed: read them again.
    Catalog {
        /// Token that changes with every change.
        generation: String,
    },
    /// A call started, made progress or ended.
    Call(Box<CallReport>),
    /// Events were dropped, because there were too many calls.
    Missed {
        /// Number of dropped events.
        events: u64,
    },
    /// All pending requests.
    Pending(Vec<PendingRequest>),
    /// A run of a conversation started, waits or ended.
    Conversation {
        /// Id of the conversation.
        id: String,
        /// State of the conversation.
        state: String,
    },
}

async fn follow(
    state: AdminState,
    context: RequestContext,
    _: NoInput,
) -> Result<EventStream<LiveEvent>, AdminError> {
    let stream = DrivenStream::new(|emitter| async move {
        let never =
            EventSubscriber { state, context, emitter, last_sent: [const { Bytes::new() }; 3] };
        match never.send_events().await {}
    });
    Ok(EventStream::new(stream).endless())
}

/// One subscriber of the stream.
struct EventSubscriber {
    state: AdminState,
    context: RequestContext,
    emitter: StreamSender<Bytes>,
    /// The last events sent of the session, the servers and the catalog.
    last_sent: [Bytes; 3],
}

enum NeverEnds {}

impl EventSubscriber {
    async fn send_events(mut self) -> NeverEnds {
        let state = self.state.clone();
        let inner = &state.0;
        // Subscribed before the first read, so that no change is missed.
        let mut changed = inner.changed.subscribe();
        let mut servers_changed = inner.hub.status_changes();
        let mut catalog = inner.hub.watch();
        let mut pending_changed = inner.pending.subscribe();
        let mut conversations = inner.conversation_news.subscribe();
        let mut watcher = inner.records.feed.watch();
        let _presence = inner.pending.register_console();
        servers_changed.mark_unchanged();
        catalog.mark_unchanged();
        self.send_changes().await;
        self.send(&LiveEvent::Pending(inner.pending.entries())).await;
        // When all of it is looked at again.
        let mut due: Option<Instant> = None;
        loop {
            let soon = due.unwrap_or_else(Instant::now);
            tokio::select! {
                Ok(()) = changed.changed() => due = Some(earlier(due, GATHER)),
                Ok(()) = servers_changed.changed() => due = Some(earlier(due, GATHER)),
                Ok(()) = catalog.changed() => due = Some(earlier(due, GATHER)),
                () = tokio::time::sleep_until(soon), if due.is_some() => {
                    due = None;
                    self.send_changes().await;
                }
                Ok(()) = pending_changed.changed() => {
                    self.send(&LiveEvent::Pending(inner.pending.entries())).await;
                }
                news = watcher.next() => {
                    if self.calls(news).await {
                        due = Some(earlier(due, COUNT));
                    }
                }
                news = conversations.recv() => match news {
                    Ok((id, state)) => self.send(&LiveEvent::Conversation { id, state }).await,
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => std::future::pending().await,
                },
                else => std::future::pending().await,
            }
        }
    }

    /// Sends the parts of the state that changed since they were sent last.
    async fn send_changes(&mut self) {
        let inner = &self.state.0;
        let catalog = Arc::clone(&inner.hub.watch().borrow());
        let generation = inner.generations.of(catalog, self.state.active());
        let state = self.state.clone();
        let servers =
            run_blocking(move || encode_event(&LiveEvent::Servers(servers::report_all(&state))))
                .await;
        let now = [
            self.state.session(&self.context).ok().map(|it| encode_event(&LiveEvent::Session(it))),
            servers.ok(),
            Some(encode_event(&LiveEvent::Catalog { generation })),
        ];
        for (now, last) in now.into_iter().zip(&mut self.last_sent) {
            if let Some(now) = now.filter(|now| now != last) {
                *last = now.clone();
                self.emitter.emit(now).await;
            }
        }
    }

    /// Sends news of calls. Returns true if one ended.
    async fn calls(&self, news: FeedChanges) -> bool {
        let mut ended = false;
        for call in &news.calls {
            ended |= call.end().is_some();
            self.send(&LiveEvent::Call(Box::new(call.into()))).await;
        }
        if news.missed > 0 {
            self.send(&LiveEvent::Missed { events: news.missed }).await;
        }
        ended
    }

    async fn send(&self, event: &LiveEvent) {
        self.emitter.emit(encode_event(event)).await;
    }
}

/// Returns the earlier of the time already due and the end of this wait.
fn earlier(due: Option<Instant>, wait: Duration) -> Instant {
    let then = Instant::now() + wait;
    due.map_or(then, |due| due.min(then))
}
