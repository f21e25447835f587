//! Live event stream: the full state first, then every change.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use consort_audit::live_calls::FeedChanges;
use consort_core::{Caller, DrivenStream, Rights, StreamSender};
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

/// Interval at which the rights of a signed-in user are read again.
const RECHECK: Duration = Duration::from_secs(5);

/// Time after which the stream of an API key ends. Its client asks again.
const KEY_STREAM: Duration = Duration::from_mins(5);

pub(crate) fn routes() -> Vec<ApiRoute> {
    vec![
        get("/api/events", "Streams the full state, then every change.", follow)
            .for_rights(Rights::Admin),
    ]
}

/// A change of state.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "event", content = "data", rename_all = "lowercase")]
enum LiveEvent {
    /// Session of the console.
    Session(Box<SessionReport>),
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
        let last_sent = [const { Bytes::new() }; 3];
        EventSubscriber { state, context, emitter, last_sent }.send_events().await;
        // Who may still see it asks again.
        Bytes::from_static(b": over\n\n")
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

impl EventSubscriber {
    /// Sends events until the caller may see them no longer.
    async fn send_events(mut self) {
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
        self.send_pending().await;
        let begun = Instant::now();
        let mut recheck = tokio::time::interval_at(begun + RECHECK, RECHECK);
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
                    self.send_pending().await;
                }
                _ = recheck.tick() => match self.current_rights(begun).await {
                    Some(true) => {
                        due = Some(Instant::now());
                        self.send_pending().await;
                    }
                    Some(false) => {}
                    None => return,
                },
                news = watcher.next() => {
                    if self.calls(news).await {
                        due = Some(earlier(due, COUNT));
                    }
                }
                news = conversations.recv() => match news {
                    Ok((id, state)) if self.is_owner() => {
                        self.send(&LiveEvent::Conversation { id, state }).await;
                    }
                    Ok(_) | Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => std::future::pending().await,
                },
                else => std::future::pending().await,
            }
        }
    }

    fn is_owner(&self) -> bool {
        self.context.caller.as_ref().is_some_and(Caller::is_owner)
    }

    async fn send_pending(&self) {
        let Some(caller) = &self.context.caller else { return };
        self.send(&LiveEvent::Pending(self.state.0.pending.entries(caller))).await;
    }

    /// Reads the rights of the caller again, which may have changed since the stream began. Returns true if they did, and
    /// `None` if the caller may see nothing any longer or has to ask again.
    async fn current_rights(&mut self, begun: Instant) -> Option<bool> {
        let caller = self.context.caller.as_ref()?;
        let Some(session) = &self.context.session else {
            // A key is checked with each request.
            let lasts = caller.identity().lease.is_none() || begun.elapsed() < KEY_STREAM;
            return lasts.then_some(false);
        };
        let now = self.context.door.current_caller(session).await?;
        let is_changed = now != *caller;
        let may_see = now.rights().include(Rights::Admin);
        self.context.caller = Some(now);
        may_see.then_some(is_changed)
    }

    /// Sends the parts of the state that changed since they were sent last.
    async fn send_changes(&mut self) {
        let inner = &self.state.0;
        let catalog = Arc::clone(&inner.hub.watch().borrow());
        let generation = inner.generations.of(catalog, self.state.active());
        let state = self.state.clone();
        let viewer = self.context.caller.clone();
        let servers = run_blocking(move || {
            let reports = viewer.map(|viewer| servers::report_all(&state, &viewer));
            encode_event(&LiveEvent::Servers(reports.unwrap_or_default()))
        })
        .await;
        let now = [
            self.state
                .session(&self.context)
                .ok()
                .map(|it| encode_event(&LiveEvent::Session(Box::new(it)))),
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
            let report = self.context.caller.as_ref().map(|viewer| CallReport::new(call, viewer));
            if let Some(report) = report {
                self.send(&LiveEvent::Call(Box::new(report))).await;
            }
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
