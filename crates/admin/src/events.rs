//! Live event stream: the full state first, then every change.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use consort_core::{Emitter, Emitting};
use consort_gateway::feed::News;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

use crate::blocking::aside;
use crate::calls::Call;
use crate::pending_requests::Question;
use crate::route::{Asked, Events, Nothing, Refusal, Route, event, get};
use crate::servers::{self, Server};
use crate::session::Session;
use crate::state::Console;

/// Time over which changes are collected.
const GATHER: Duration = Duration::from_millis(200);

/// Time over which changes caused only by calls are collected.
const COUNT: Duration = Duration::from_secs(2);

pub(crate) fn routes() -> Vec<Route> {
    vec![get("/api/events", "Everything as it is now, and then whatever changes.", follow)]
}

/// A change of state.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "event", content = "data", rename_all = "lowercase")]
#[schemars(rename = "LiveEvent")]
enum Happening {
    /// Session of the console.
    Session(Session),
    /// All servers.
    Servers(Vec<Server>),
    /// Tools, prompts or resources changed: read them again.
    Catalog {
        /// Token that changes with every change.
        generation: String,
    },
    /// A call started, made progress or ended.
    Call(Box<Call>),
    /// Events were dropped, because there were too many calls.
    Missed {
        /// Number of dropped events.
        news: u64,
    },
    /// All pending requests.
    Questions(Vec<Question>),
    /// A run of a conversation started, waits or ended.
    Conversation {
        /// Id of the conversation.
        id: String,
        /// State of the conversation.
        state: String,
    },
}

async fn follow(console: Console, asked: Asked, _: Nothing) -> Result<Events<Happening>, Refusal> {
    let stream = Emitting::new(|emitter| async move {
        let never = Telling { console, asked, emitter, told: [const { Bytes::new() }; 3] };
        match never.tell().await {}
    });
    Ok(Events::new(stream).endless())
}

/// One subscriber of the stream.
struct Telling {
    console: Console,
    asked: Asked,
    emitter: Emitter<Bytes>,
    /// The last events sent of the session, the servers and the catalog.
    told: [Bytes; 3],
}

enum Never {}

impl Telling {
    async fn tell(mut self) -> Never {
        let console = self.console.clone();
        let inner = &console.0;
        // From before the first look, so that nothing falls between the two.
        let mut changed = inner.changed.subscribe();
        let mut stirred = inner.hub.stirred();
        let mut catalog = inner.hub.watch();
        let mut asking = inner.desk.stirred();
        let mut conversations = inner.news.subscribe();
        let mut watcher = inner.records.feed.watch();
        let _looking = inner.desk.look();
        stirred.mark_unchanged();
        catalog.mark_unchanged();
        self.all().await;
        self.say(&Happening::Questions(inner.desk.waiting())).await;
        // When all of it is looked at again.
        let mut due: Option<Instant> = None;
        loop {
            let soon = due.unwrap_or_else(Instant::now);
            tokio::select! {
                Ok(()) = changed.changed() => due = Some(earlier(due, GATHER)),
                Ok(()) = stirred.changed() => due = Some(earlier(due, GATHER)),
                Ok(()) = catalog.changed() => due = Some(earlier(due, GATHER)),
                () = tokio::time::sleep_until(soon), if due.is_some() => {
                    due = None;
                    self.all().await;
                }
                Ok(()) = asking.changed() => {
                    self.say(&Happening::Questions(inner.desk.waiting())).await;
                }
                news = watcher.next() => {
                    if self.calls(news).await {
                        due = Some(earlier(due, COUNT));
                    }
                }
                heard = conversations.recv() => match heard {
                    Ok((id, state)) => self.say(&Happening::Conversation { id, state }).await,
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => std::future::pending().await,
                },
                else => std::future::pending().await,
            }
        }
    }

    /// Sends the parts of the state that changed since they were sent last.
    async fn all(&mut self) {
        let inner = &self.console.0;
        let catalog = Arc::clone(&inner.hub.watch().borrow());
        let generation = inner.generations.of(catalog, self.console.scene());
        let console = self.console.clone();
        let servers = aside(move || event(&Happening::Servers(servers::all(&console)))).await;
        let now = [
            self.console.session(&self.asked).ok().map(|it| event(&Happening::Session(it))),
            servers.ok(),
            Some(event(&Happening::Catalog { generation })),
        ];
        for (now, told) in now.into_iter().zip(&mut self.told) {
            if let Some(now) = now.filter(|now| now != told) {
                *told = now.clone();
                self.emitter.emit(now).await;
            }
        }
    }

    /// Sends news of calls. Returns true if one ended.
    async fn calls(&self, news: News) -> bool {
        let mut ended = false;
        for call in &news.calls {
            ended |= call.end().is_some();
            self.say(&Happening::Call(Box::new(call.into()))).await;
        }
        if news.missed > 0 {
            self.say(&Happening::Missed { news: news.missed }).await;
        }
        ended
    }

    async fn say(&self, happening: &Happening) {
        self.emitter.emit(event(happening)).await;
    }
}

/// Returns the earlier of the time already due and the end of this wait.
fn earlier(due: Option<Instant>, wait: Duration) -> Instant {
    let then = Instant::now() + wait;
    due.map_or(then, |due| due.min(then))
}
