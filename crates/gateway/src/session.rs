//! A legacy client that shook hands: what it can answer, what it waits for, what it is to be told.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use consort_core::{Caller, Json, LogLevel, Offers, Refusal, Reply};
use consort_wire::{Id, Revision};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::front::Front;
use crate::seal::secret;

/// Notices kept for a client that does not listen at the moment.
const NOTICES: usize = 256;

/// A session that was not used for this part of the time it may be unused is given up for a new one.
const LEFT: u32 = 30;

/// A legacy client.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) front: Arc<Front>,
    pub(crate) caller: Caller,
    pub(crate) revision: Revision,
    /// What it declared that it can answer.
    pub(crate) offers: Arc<Offers>,
    /// Ends everything that belongs to it.
    pub(crate) over: CancellationToken,
    state: Mutex<State>,
    numbers: AtomicU64,
    told: Notify,
    /// Whether it was told that everything may be asked for, while some server was not known.
    promised_all: AtomicBool,
}

#[derive(Debug)]
struct State {
    level: Option<LogLevel>,
    questions: HashMap<u64, Reply>,
    running: HashMap<Id, CancellationToken>,
    notices: VecDeque<Bytes>,
    /// Whether somebody reads the notices.
    listening: bool,
    /// What tells it of resources, by URI.
    watching: HashMap<String, JoinSet<()>>,
    /// The part that tells it of its tasks, by their names.
    following: HashMap<String, JoinSet<()>>,
    used: Instant,
}

impl Session {
    pub(crate) fn new(
        front: Arc<Front>,
        caller: Caller,
        revision: Revision,
        offers: Offers,
    ) -> Arc<Self> {
        Arc::new(Self {
            id: secret(),
            front,
            caller,
            revision,
            offers: Arc::new(offers),
            over: CancellationToken::new(),
            state: Mutex::new(State {
                level: None,
                questions: HashMap::new(),
                running: HashMap::new(),
                notices: VecDeque::new(),
                listening: false,
                watching: HashMap::new(),
                following: HashMap::new(),
                used: Instant::now(),
            }),
            numbers: AtomicU64::new(1),
            told: Notify::new(),
            promised_all: AtomicBool::new(false),
        })
    }

    /// Notes that the client was told that everything may be asked for.
    pub(crate) fn promise_all(&self) {
        self.promised_all.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_promised_all(&self) -> bool {
        self.promised_all.load(Ordering::Relaxed)
    }

    pub(crate) fn level(&self) -> Option<LogLevel> {
        self.lock().level
    }

    pub(crate) fn set_level(&self, level: LogLevel) {
        self.lock().level = Some(level);
    }

    /// Notes a question to the client; its number is what the answer will carry.
    pub(crate) fn ask(&self, reply: Reply) -> u64 {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        self.lock().questions.insert(number, reply);
        number
    }

    /// The client answers a question. False if nobody asked.
    pub(crate) fn answer(&self, id: &Id, answer: Result<Json, Refusal>) -> bool {
        let reply = id.number().and_then(|number| self.lock().questions.remove(&number));
        let asked = reply.is_some();
        if let Some(reply) = reply {
            reply.send(answer);
        }
        asked
    }

    /// Forgets questions that are no longer asked; those that were not answered are told.
    pub(crate) fn forget(&self, numbers: &[u64]) -> Vec<u64> {
        let mut state = self.lock();
        let open = |number: &u64| Some((*number, state.questions.remove(number)?));
        let gone: Vec<(u64, Reply)> = numbers.iter().filter_map(open).collect();
        drop(state);
        gone.into_iter().map(|(number, _)| number).collect()
    }

    /// A request begins. `None` if one of that id is running.
    pub(crate) fn begin(self: &Arc<Self>, id: &Id) -> Option<Running> {
        let mut state = self.lock();
        state.used = Instant::now();
        if state.running.contains_key(id) {
            return None;
        }
        let cancelled = CancellationToken::new();
        state.running.insert(id.clone(), cancelled.clone());
        Some(Running { session: Arc::clone(self), id: id.clone(), cancelled })
    }

    /// The client no longer wants an answer.
    pub(crate) fn cancel(&self, id: &Id) {
        if let Some(cancelled) = self.lock().running.get(id) {
            cancelled.cancel();
        }
    }

    /// Tells the client something that belongs to no request. What it was not told yet it is not told
    /// twice, and the oldest gives way to the newest.
    pub(crate) fn tell(&self, notice: Bytes) {
        let mut state = self.lock();
        if !state.notices.contains(&notice) {
            if state.notices.len() >= NOTICES {
                state.notices.pop_front();
            }
            state.notices.push_back(notice);
        }
        drop(state);
        self.told.notify_one();
    }

    /// Begins to read the notices. `None` if somebody does already.
    pub(crate) fn listen(self: &Arc<Self>) -> Option<Listening> {
        let mut state = self.lock();
        if std::mem::replace(&mut state.listening, true) {
            return None;
        }
        Some(Listening(Arc::clone(self)))
    }

    pub(crate) fn watch(&self, uri: String, task: JoinSet<()>) {
        let before = self.lock().watching.insert(uri, task);
        drop(before);
    }

    pub(crate) fn unwatch(&self, uri: &str) -> bool {
        let before = self.lock().watching.remove(uri);
        before.is_some()
    }

    /// Keeps what tells the client of a task. Beyond as many as notices are kept, it is dropped: a client that
    /// wants to know asks.
    pub(crate) fn follow(&self, task: String, telling: JoinSet<()>) {
        let mut state = self.lock();
        if self.over.is_cancelled() || state.following.len() >= NOTICES {
            return;
        }
        let before = state.following.insert(task, telling);
        drop(state);
        drop(before);
    }

    /// Ends what tells the client of a task.
    pub(crate) fn unfollow(&self, task: &str) {
        let before = self.lock().following.remove(task);
        drop(before);
    }

    pub(crate) fn touch(&self) {
        self.lock().used = Instant::now();
    }

    /// How long nobody has used it; `None` if somebody does.
    fn unused(&self) -> Option<Duration> {
        let state = self.lock();
        let idle = state.running.is_empty() && !state.listening;
        idle.then(|| state.used.elapsed())
    }

    /// Ends it.
    pub(crate) fn end(&self) {
        self.over.cancel();
        let (questions, watching, following) = {
            let mut state = self.lock();
            let State { questions, watching, following, .. } = &mut *state;
            (std::mem::take(questions), std::mem::take(watching), std::mem::take(following))
        };
        drop(questions);
        drop(watching);
        drop(following);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request of a session.
#[derive(Debug)]
pub(crate) struct Running {
    session: Arc<Session>,
    id: Id,
    pub(crate) cancelled: CancellationToken,
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut state = self.session.lock();
        state.running.remove(&self.id);
        state.used = Instant::now();
    }
}

/// The reader of a session's notices.
#[derive(Debug)]
pub(crate) struct Listening(Arc<Session>);

impl Listening {
    /// The next notice; `None` when the session is over.
    pub(crate) async fn next(&self) -> Option<Bytes> {
        loop {
            let told = self.0.told.notified();
            if let Some(notice) = self.0.lock().notices.pop_front() {
                return Some(notice);
            }
            tokio::select! {
                () = told => {}
                () = self.0.over.cancelled() => return None,
            }
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.listening = false;
        state.used = Instant::now();
    }
}

/// The sessions open over HTTP, by id.
#[derive(Debug)]
pub(crate) struct Sessions {
    open: Mutex<HashMap<String, Arc<Session>>>,
    most: usize,
    unused: Duration,
}

impl Sessions {
    pub(crate) fn new(most: usize, unused: Duration) -> Self {
        Self { open: Mutex::default(), most, unused }
    }

    /// Takes a session in. If there is no room, the one that was not used for longest gives way, since few
    /// clients say that they leave. False if all of them are in use, or were until a moment ago.
    pub(crate) fn add(&self, session: &Arc<Session>) -> bool {
        let mut open = self.lock();
        let mut left = None;
        if open.len() >= self.most {
            let unused = open.values().filter_map(|known| Some((known.unused()?, &known.id)));
            let longest = unused.filter(|(unused, _)| *unused >= self.unused / LEFT).max();
            let Some(id) = longest.map(|(_, id)| id.clone()) else { return false };
            left = open.remove(&id);
        }
        open.insert(session.id.clone(), Arc::clone(session));
        drop(open);
        if let Some(left) = left {
            left.end();
        }
        true
    }

    /// The session of this id, if it is this caller's, at this address.
    pub(crate) fn get(
        &self,
        id: &str,
        caller: &Caller,
        front: &Arc<Front>,
    ) -> Option<Arc<Session>> {
        let open = self.lock();
        let session = open.get(id)?;
        (session.caller == *caller && session.front.place == front.place)
            .then(|| Arc::clone(session))
    }

    pub(crate) fn remove(&self, session: &Session) {
        let removed = self.lock().remove(&session.id);
        if let Some(session) = removed {
            session.end();
        }
    }

    /// Ends those nobody used for long.
    pub(crate) fn sweep(&self) {
        let late: Vec<Arc<Session>> = {
            let open = self.lock();
            let late = |session: &&Arc<Session>| session.unused() >= Some(self.unused);
            open.values().filter(late).cloned().collect()
        };
        for session in late {
            self.remove(&session);
        }
    }

    pub(crate) fn end(&self) {
        let open = std::mem::take(&mut *self.lock());
        for session in open.into_values() {
            session.end();
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
