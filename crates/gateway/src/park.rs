//! Calls that wait for their client: a legacy server asked in the middle of one, and a modern client
//! answers by asking again.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use consort_core::{Asked, Events, Json, LogLevel, Object, Refusal, Reply, ServerId};
use consort_wire::splice::Writer;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::seal::{Seal, random};

/// The largest answer kept for a client that asks once more.
const KEPT: usize = 64 << 10;

/// What our states are sealed for.
const PURPOSE: &str = "request state";

/// What a client carries from one request of a call to the next.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct State {
    /// Whose call it is.
    caller: String,
    /// What is being asked: method, name and arguments.
    digest: [u8; 16],
    /// In milliseconds since we began.
    expires: u64,
    pub(crate) server: ServerId,
    pub(crate) kind: Kind,
}

/// What a state stands for.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// A call that waits here.
    Parked { call: u64, turn: u32 },
    /// A server's own state, as JSON.
    Wrapped(String),
    /// Nothing but the wish to be asked again.
    Again,
}

/// Why a state is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("`requestState` is not one of ours, or was changed")]
    Broken,
    #[error("`requestState` belongs to another request")]
    Foreign,
    #[error("`requestState` is too old")]
    Expired,
}

/// Seals the state of a call.
pub(crate) fn seal(
    seal: &Seal,
    caller: &str,
    request: &Request<'_>,
    server: &ServerId,
    lasts: Duration,
    kind: Kind,
) -> String {
    let expires = now() + u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX / 2);
    let caller = caller.to_owned();
    let state = State { caller, digest: request.digest(), expires, server: server.clone(), kind };
    seal.seal(PURPOSE, &state)
}

/// Opens the state a client sent with a request.
pub(crate) fn open(
    seal: &Seal,
    caller: &str,
    request: &Request<'_>,
    text: &str,
) -> Result<State, Refused> {
    let state: State = seal.open(PURPOSE, text).ok_or(Refused::Broken)?;
    if state.caller != caller || state.digest != request.digest() {
        return Err(Refused::Foreign);
    }
    if state.expires < now() {
        return Err(Refused::Expired);
    }
    Ok(state)
}

/// Milliseconds since we began, by a clock that nobody sets: a state outlives neither us nor the key that seals it.
fn now() -> u64 {
    static BEGUN: LazyLock<std::time::Instant> = LazyLock::new(std::time::Instant::now);
    u64::try_from(BEGUN.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// What a state is bound to.
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    pub(crate) params: &'a Object,
}

impl Request<'_> {
    fn digest(&self) -> [u8; 16] {
        let mut hash = Sha256::new();
        hash.update(self.method);
        for name in ["name", "uri", "arguments"] {
            hash.update([0]);
            // However a client writes it the second time, it is the same.
            let value = self.params.get(name).and_then(|value| value.read().ok());
            let value: serde_json::Value = value.unwrap_or_default();
            hash.update(value.to_string());
        }
        hash.finalize()[..16].try_into().expect("a digest has 32 bytes")
    }
}

/// A call in progress, and what its server waits for.
#[derive(Debug)]
pub(crate) struct Parked {
    pub(crate) events: Events,
    pub(crate) server: ServerId,
    pub(crate) log: Option<LogLevel>,
    pub(crate) questions: Questions,
}

/// Questions of a server, each under a key.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    open: Vec<Open>,
    asked: u32,
    /// The beginning of every key.
    prefix: String,
}

#[derive(Debug)]
struct Open {
    key: String,
    method: String,
    params: Object,
    reply: Option<Reply>,
}

impl Questions {
    /// Questions whose keys no others have.
    pub(crate) fn unique() -> Self {
        let prefix = format!("{:08x}-", u32::from_be_bytes(random()));
        Self { prefix, ..Self::default() }
    }

    pub(crate) fn add(&mut self, asked: Asked) {
        self.asked += 1;
        let Asked { method, params, reply } = asked;
        let key = format!("{}q{}", self.prefix, self.asked);
        self.open.push(Open { key, method, params, reply });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Passes on the answers that are there; those without stay open.
    pub(crate) fn answer(&mut self, responses: &Object) {
        for mut question in std::mem::take(&mut self.open) {
            match responses.get(&question.key).filter(|response| response.to_object().is_some()) {
                Some(response) => {
                    if let Some(reply) = question.reply.take() {
                        reply.send(Ok(response));
                    }
                }
                None => self.open.push(question),
            }
        }
    }

    /// Refuses all of them.
    pub(crate) fn refuse(&mut self, message: &str) {
        for question in self.open.drain(..) {
            if let Some(reply) = question.reply {
                reply.send(Err(Refusal { code: -32603, message: message.to_owned() }));
            }
        }
    }

    /// As a modern client is asked.
    pub(crate) fn requests(&self) -> Json {
        let mut writer = Writer::new();
        for question in &self.open {
            writer.object(&question.key, |request| {
                request.text("method", &question.method);
                // The id is between the server and us.
                if question.params.get_bytes("elicitationId").is_some() {
                    request.object("params", |params| {
                        params.members(&question.params, &["elicitationId"]);
                    });
                } else {
                    request.raw("params", question.params.as_bytes());
                }
            });
        }
        writer.finish()
    }
}

/// The result that asks a client for more.
pub(crate) fn input_required(requests: &Json, state: &str) -> Json {
    let mut writer = Writer::new();
    writer.text("resultType", "input_required");
    writer.raw("inputRequests", requests.as_bytes());
    writer.text("requestState", state);
    writer.finish()
}

/// The calls that wait.
#[derive(Debug)]
pub(crate) struct Park {
    places: Mutex<HashMap<u64, Place>>,
    most: usize,
    lasts: Duration,
}

#[derive(Debug)]
struct Place {
    /// How often the client was asked so far.
    turn: u32,
    until: Instant,
    what: What,
}

#[derive(Debug)]
enum What {
    /// It waits for answers.
    Waiting(Box<Parked>),
    /// It goes on.
    Running,
    /// It ended with this result, kept for a client that lost it.
    Ended(Option<Bytes>),
}

/// What a client finds that comes back.
#[derive(Debug)]
pub(crate) enum Found {
    /// The call, to go on with.
    Waiting(Box<Parked>),
    /// Another request goes on with it.
    Running,
    /// It ended, with this result.
    Ended(Option<Bytes>),
    /// There is no such call (any more).
    Gone,
}

impl Park {
    pub(crate) fn new(most: usize, lasts: Duration) -> Self {
        Self { places: Mutex::default(), most, lasts }
    }

    /// Parks a call, at its old place if it has one. Returns it if there is no room.
    pub(crate) fn put(&self, place: Option<u64>, parked: Box<Parked>) -> Result<Kind, Box<Parked>> {
        let mut places = self.lock();
        let until = Instant::now() + self.lasts;
        if let Some((call, known)) = place.and_then(|call| Some((call, places.get_mut(&call)?))) {
            known.turn += 1;
            known.until = until;
            known.what = What::Waiting(parked);
            return Ok(Kind::Parked { call, turn: known.turn });
        }
        if places.len() >= self.most && !give_way(&mut places) {
            return Err(parked);
        }
        let call = u64::from_be_bytes(random());
        places.insert(call, Place { turn: 0, until, what: What::Waiting(parked) });
        Ok(Kind::Parked { call, turn: 0 })
    }

    /// Takes a call to go on with it.
    pub(crate) fn take(&self, call: u64, turn: u32) -> Found {
        let mut places = self.lock();
        let Some(place) = places.get_mut(&call) else { return Found::Gone };
        match std::mem::replace(&mut place.what, What::Running) {
            What::Waiting(parked) if place.turn == turn => Found::Waiting(parked),
            What::Ended(result) => {
                place.what = What::Ended(result.clone());
                Found::Ended(result)
            }
            // An answer to an earlier turn: it was used.
            other => {
                place.what = other;
                Found::Running
            }
        }
    }

    /// Notes the end of a call that was parked.
    pub(crate) fn ended(&self, call: u64, result: Option<Bytes>) {
        if let Some(place) = self.lock().get_mut(&call) {
            place.what = What::Ended(result.filter(|result| result.len() <= KEPT));
            place.until = Instant::now() + self.lasts.min(Duration::from_mins(1));
        }
    }

    /// Forgets a call that is over without a result.
    pub(crate) fn forget(&self, call: u64) {
        self.lock().remove(&call);
    }

    /// Ends those whose time is up: dropped, they are cancelled at their servers.
    pub(crate) fn sweep(&self) {
        let now = Instant::now();
        let late: Vec<Place> = {
            let mut places = self.lock();
            let late: Vec<u64> = places
                .iter()
                .filter(|(_, place)| place.until <= now && !matches!(place.what, What::Running))
                .map(|(call, _)| *call)
                .collect();
            late.iter().filter_map(|call| places.remove(call)).collect()
        };
        drop(late);
    }

    /// Ends all of them.
    pub(crate) fn end(&self) {
        let places = std::mem::take(&mut *self.lock());
        drop(places);
    }

    /// How many calls wait.
    pub(crate) fn len(&self) -> usize {
        self.lock().values().filter(|place| matches!(place.what, What::Waiting(_))).count()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Place>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes room by forgetting a result: of those kept, the one that was to go first.
fn give_way(places: &mut HashMap<u64, Place>) -> bool {
    let kept = places.iter().filter(|(_, place)| matches!(place.what, What::Ended(_)));
    let oldest = kept.min_by_key(|(_, place)| place.until).map(|(call, _)| *call);
    oldest.is_some_and(|call| places.remove(&call).is_some())
}

/// Forgets a parked call whose client went away.
pub(crate) struct Forget<'a> {
    pub(crate) gateway: &'a crate::gateway::Inner,
    pub(crate) call: u64,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.gateway.park.forget(self.call);
    }
}
