//! Connections to a legacy server beyond the main one: one for each identity and what it can answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use consort_core::{CallError, Caller, LogLevel, Offers, Source};
use consort_wire::{Client, ClientInfo, Declared, Json, Request};
use tokio::time::Instant;

use crate::connection::{Connection, chain};

/// Connections to one legacy server, each for one identity and what it can answer.
const LINES: usize = 64;

/// How long such a connection may be unused before it is closed.
const UNUSED: Duration = Duration::from_mins(5);

/// A server reached, and what was declared to it.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) client: Client,
    pub(crate) offers: Arc<Offers>,
    /// The resources it watches: for how many, and in which session.
    pub(crate) watched: Arc<tokio::sync::Mutex<HashMap<String, (usize, u64)>>>,
    /// The level of log messages it was asked for, and in which session.
    level: Arc<tokio::sync::Mutex<Option<(LogLevel, u64)>>>,
    /// Held by whoever uses it.
    _used: Option<Arc<()>>,
}

impl Line {
    pub(crate) fn new(client: Client, offers: Arc<Offers>) -> Self {
        Self { client, offers, watched: Arc::default(), level: Arc::default(), _used: None }
    }

    /// Asks a legacy server for log messages from this level on, unless it sends them already.
    pub(crate) async fn log(&self, level: LogLevel) {
        let mut current = self.level.lock().await;
        // A session that replaced another knows nothing of it.
        let session = self.client.session();
        if current.is_none_or(|(current, of)| level < current || of != session)
            && self.client.about().offers("logging")
            && self.client.log_level(level).await.is_ok()
        {
            *current = Some((level, session));
        }
    }

    /// Has a legacy server tell of updates of a resource, as long as what is returned is held.
    pub(crate) async fn watch(&self, uri: &str) -> Result<Watching, consort_wire::CallError> {
        let mut watched = self.watched.lock().await;
        self.subscribe(uri, &mut watched).await?;
        watched.entry(uri.to_owned()).or_default().0 += 1;
        Ok(Watching { line: self.clone(), uri: uri.to_owned() })
    }

    /// The same for one that is watched already, once another session is in force.
    pub(crate) async fn watch_again(&self, uri: &str) -> Result<(), consort_wire::CallError> {
        self.subscribe(uri, &mut *self.watched.lock().await).await
    }

    /// Subscribes to a resource, unless that was done in this session.
    async fn subscribe(
        &self,
        uri: &str,
        watched: &mut HashMap<String, (usize, u64)>,
    ) -> Result<(), consort_wire::CallError> {
        let session = self.client.session();
        if watched.get(uri).is_some_and(|(_, of)| *of == session) {
            return Ok(());
        }
        let request = Request::new("resources/subscribe").with("uri", Json::string(uri));
        self.client.request(request).await?;
        watched.entry(uri.to_owned()).or_default().1 = session;
        Ok(())
    }
}

/// A resource that is watched. Dropped by the last who watches, the server is told.
#[derive(Debug)]
pub(crate) struct Watching {
    line: Line,
    uri: String,
}

impl Drop for Watching {
    fn drop(&mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (line, uri) = (self.line.clone(), std::mem::take(&mut self.uri));
        runtime.spawn(async move {
            let mut watched = line.watched.lock().await;
            let Some((count, _)) = watched.get_mut(&uri) else { return };
            *count -= 1;
            if *count == 0 {
                watched.remove(&uri);
                let request = Request::new("resources/unsubscribe").with("uri", Json::string(&uri));
                let _ = line.client.request(request).await;
            }
        });
    }
}

/// The connections beyond the main one.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    open: Mutex<HashMap<(String, Arc<Offers>), Slot>>,
    client: OnceLock<ClientInfo>,
}

/// A connection, once it is made; who wants it meanwhile waits for the same.
#[derive(Clone, Debug)]
struct Slot {
    line: Arc<tokio::sync::Mutex<Option<Line>>>,
    /// Alive while anybody uses it.
    used: Weak<()>,
    last: Instant,
}

impl Lines {
    /// Who we say we are.
    pub(crate) fn introduce(&self, client: ClientInfo) {
        let _ = self.client.set(client);
    }

    /// The connection for a caller, made if there is none.
    pub(crate) async fn get(
        &self,
        connection: &Arc<Connection>,
        main: &Client,
        caller: &Caller,
        offers: &Arc<Offers>,
    ) -> Result<Line, CallError> {
        let used = Arc::new(());
        let slot = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            let key = (caller.name.clone(), Arc::clone(offers));
            if !open.contains_key(&key) && open.len() >= LINES && !give_way(&mut open) {
                return Err(CallError::Overloaded {
                    server: connection.id.clone(),
                    reason: format!("{LINES} connections to it are in use"),
                });
            }
            let slot = open.entry(key).or_insert_with(|| Slot {
                line: Arc::default(),
                used: Weak::new(),
                last: Instant::now(),
            });
            slot.last = Instant::now();
            let used = slot.used.upgrade().unwrap_or_else(|| Arc::clone(&used));
            slot.used = Arc::downgrade(&used);
            (Arc::clone(&slot.line), used)
        };
        let (line, used) = slot;
        let mut line = line.lock().await;
        if let Some(line) = line.as_ref().filter(|line| !line.client.is_closed()) {
            return Ok(Line { _used: Some(used), ..line.clone() });
        }
        if let Some(gone) = line.take() {
            connection.remember_stderr(&gone.client.stderr());
            connection.remember_end(&gone.client.closed().await.to_string());
        }
        let host = Arc::new(Declared(Offers::clone(offers)));
        let info = self.client.get().cloned().unwrap_or_default();
        let settings = connection.wire_settings(Some(main.about().found), host, &info);
        let client = Client::connect(&connection.settings.server, settings).await;
        let client = client.map_err(|error| CallError::Connection {
            server: connection.id.clone(),
            source: Source::new(Unreached(chain(&error))),
            detail: error.detail(),
        })?;
        client.learn_from(main);
        let made = line.insert(Line::new(client, Arc::clone(offers)));
        Ok(Line { _used: Some(used), ..made.clone() })
    }

    /// Closes those nobody used for a while.
    pub(crate) fn sweep(&self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, slot| {
            if slot.used.strong_count() > 0 {
                slot.last = Instant::now();
            }
            slot.last.elapsed() < UNUSED
        });
    }

    /// Closes all of them, and waits until nothing of them is left.
    pub(crate) async fn close(&self) {
        let open = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *open)
        };
        for slot in open.into_values() {
            if let Some(line) = slot.line.lock().await.take() {
                line.client.close().await;
            }
        }
    }
}

/// Makes room by closing a connection: of those nobody uses, the one longest unused.
fn give_way(open: &mut HashMap<(String, Arc<Offers>), Slot>) -> bool {
    let unused = open.iter().filter(|(_, slot)| slot.used.strong_count() == 0);
    let oldest = unused.min_by_key(|(_, slot)| slot.last).map(|(key, _)| key.clone());
    oldest.is_some_and(|key| open.remove(&key).is_some())
}

/// Why a connection was not made.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Unreached(String);
