//! Calls that wait for input from their client: a legacy server requested it during a call, and a modern client answers
//! by repeating the request.

mod input_requests;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use consort_core::{AccessLease, CallEvents, IdentityId, Json, LogLevel, Object, ServerId};
use consort_protocol::Holdings;
use consort_protocol::splice::ObjectWriter;
use consort_server::sealed_now;
use consort_server::sealing::{TokenSealer, random};
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::gateway_limits::GatewayLimits;

pub(crate) use input_requests::InputRequests;

/// The purpose that states are sealed for.
const PURPOSE: &str = "request state";

/// State that a client carries from one request of a call to the next.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ClientCallState {
    /// Identity of the call's caller.
    caller: IdentityId,
    /// Digest of the request: method, name and arguments.
    digest: [u8; 16],
    /// In milliseconds since 1970.
    expires: u64,
    pub(crate) server: ServerId,
    pub(crate) kind: CallStateKind,
}

/// Kind of a state.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum CallStateKind {
    /// A call suspended in this gateway.
    // The name in states that clients hold.
    #[serde(rename = "Parked")]
    Suspended { call: u64, turn: u32 },
    /// A server's own state, as JSON.
    Wrapped(String),
    /// No state: the request only has to be repeated.
    Again,
}

/// The reason why a state is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallStateError {
    #[error("invalid `requestState`: it was not issued by this gateway, or was changed")]
    Broken,
    #[error("`requestState` belongs to another request")]
    Foreign,
    #[error("`requestState` has expired")]
    Expired,
}

/// Seals the state of a call.
pub(crate) fn seal(
    seal: &TokenSealer,
    caller: &IdentityId,
    request: &StateBinding<'_>,
    server: &ServerId,
    lasts: Duration,
    kind: CallStateKind,
) -> String {
    let lasts = u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX);
    let expires = sealed_now().saturating_add(lasts);
    let caller = caller.clone();
    let state =
        ClientCallState { caller, digest: request.digest(), expires, server: server.clone(), kind };
    seal.seal(PURPOSE, &state)
}

/// Opens the state that a client sent with a request.
pub(crate) fn open(
    seal: &TokenSealer,
    caller: &IdentityId,
    request: &StateBinding<'_>,
    text: &str,
) -> Result<ClientCallState, CallStateError> {
    let state: ClientCallState = seal.open(PURPOSE, text).ok_or(CallStateError::Broken)?;
    if state.caller != *caller || state.digest != request.digest() {
        return Err(CallStateError::Foreign);
    }
    if state.expires < sealed_now() {
        return Err(CallStateError::Expired);
    }
    Ok(state)
}

/// The request that a state is bound to.
pub(crate) struct StateBinding<'a> {
    pub(crate) method: &'a str,
    pub(crate) params: &'a Object,
}

impl StateBinding<'_> {
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

/// A call in progress, with the input its server waits for.
#[derive(Debug)]
pub(crate) struct SuspendedCall {
    pub(crate) events: CallEvents,
    pub(crate) server: ServerId,
    pub(crate) log: Option<LogLevel>,
    pub(crate) questions: InputRequests,
    /// The identity of its caller.
    pub(crate) caller: IdentityId,
    /// The access of its caller, if that may be revoked.
    pub(crate) lease: Option<Arc<AccessLease>>,
}

/// Returns the result that requests input from a client.
pub(crate) fn input_required(requests: &Json, state: &str) -> Json {
    let mut writer = ObjectWriter::new();
    writer.text("resultType", "input_required");
    writer.raw("inputRequests", requests.as_bytes());
    writer.text("requestState", state);
    writer.finish()
}

/// The suspended calls.
#[derive(Debug)]
pub(crate) struct SuspendedCalls {
    places: Mutex<HashMap<u64, SuspendedEntry>>,
    most: usize,
    /// Maximum number per caller.
    most_each: usize,
    lasts: Duration,
    /// Maximum size of a result kept for a client that repeats its request.
    kept_bytes: usize,
}

#[derive(Debug)]
struct SuspendedEntry {
    /// Number of times the client was asked so far.
    turn: u32,
    until: Instant,
    what: EntryContent,
}

#[derive(Debug)]
enum EntryContent {
    /// It waits for input.
    Waiting(Box<SuspendedCall>),
    /// It is running.
    Running,
    /// It ended with this result, kept for a client that lost it.
    Ended(Option<Bytes>),
}

/// State of a call that a client returns to.
#[derive(Debug)]
pub(crate) enum ResumedCall {
    /// The call, to be resumed.
    Waiting(Box<SuspendedCall>),
    /// Another request has resumed it.
    Running,
    /// It ended, with this result.
    Ended(Option<Bytes>),
    /// There is no such call, or not any more.
    Gone,
}

impl SuspendedCalls {
    pub(crate) fn new(limits: &GatewayLimits) -> Self {
        Self {
            places: Mutex::default(),
            most: limits.suspended_calls,
            most_each: limits.suspended_calls_per_caller,
            lasts: limits.suspended_time,
            kept_bytes: limits.repeated_result_bytes,
        }
    }

    /// Suspends a call, under its old number if it has one. Returns it if there is no room. `most_each` is the ceiling of its
    /// caller, if that has one.
    pub(crate) fn put(
        &self,
        place: Option<u64>,
        suspended: Box<SuspendedCall>,
        most_each: Option<usize>,
    ) -> Result<CallStateKind, Box<SuspendedCall>> {
        let mut places = self.lock();
        let until = Instant::now() + self.lasts;
        if let Some((call, known)) = place.and_then(|call| Some((call, places.get_mut(&call)?))) {
            known.turn += 1;
            known.until = until;
            known.what = EntryContent::Waiting(suspended);
            return Ok(CallStateKind::Suspended { call, turn: known.turn });
        }
        // A caller that abandons its questions must not keep itself or others from being asked.
        let mut given_up =
            oldest_beyond(&mut places, &suspended.caller, most_each.unwrap_or(self.most_each));
        if places.len() >= self.most && !evict(&mut places) {
            given_up = yield_to(&mut places, &suspended.caller, self.most);
            if given_up.is_none() {
                return Err(suspended);
            }
        }
        let call = u64::from_be_bytes(random());
        places.insert(
            call,
            SuspendedEntry { turn: 0, until, what: EntryContent::Waiting(suspended) },
        );
        drop(places);
        drop(given_up);
        Ok(CallStateKind::Suspended { call, turn: 0 })
    }

    /// Takes a call to resume it.
    pub(crate) fn take(&self, call: u64, turn: u32) -> ResumedCall {
        let mut places = self.lock();
        let Some(place) = places.get_mut(&call) else { return ResumedCall::Gone };
        match std::mem::replace(&mut place.what, EntryContent::Running) {
            EntryContent::Waiting(suspended) if place.turn == turn => {
                ResumedCall::Waiting(suspended)
            }
            EntryContent::Ended(result) => {
                place.what = EntryContent::Ended(result.clone());
                ResumedCall::Ended(result)
            }
            // An answer to an earlier turn: it was used.
            other => {
                place.what = other;
                ResumedCall::Running
            }
        }
    }

    /// Records the end of a call that was suspended.
    pub(crate) fn ended(&self, call: u64, result: Option<Bytes>) {
        if let Some(place) = self.lock().get_mut(&call) {
            place.what =
                EntryContent::Ended(result.filter(|result| result.len() <= self.kept_bytes));
            place.until = Instant::now() + self.lasts.min(Duration::from_mins(1));
        }
    }

    /// Removes a call that ended without a result.
    pub(crate) fn forget(&self, call: u64) {
        self.lock().remove(&call);
    }

    /// Drops expired calls, and those of callers whose access was revoked, which cancels them at their servers.
    pub(crate) fn sweep(&self) {
        let now = Instant::now();
        let is_revoked = |what: &EntryContent| matches!(what, EntryContent::Waiting(call) if call.lease.as_ref().is_some_and(|it| it.is_over()));
        let late: Vec<SuspendedEntry> = {
            let mut places = self.lock();
            let late: Vec<u64> = places
                .iter()
                .filter(|(_, place)| {
                    let is_over = place.until <= now || is_revoked(&place.what);
                    is_over && !matches!(place.what, EntryContent::Running)
                })
                .map(|(call, _)| *call)
                .collect();
            late.iter().filter_map(|call| places.remove(call)).collect()
        };
        drop(late);
    }

    /// Drops all of them.
    pub(crate) fn end(&self) {
        let places = std::mem::take(&mut *self.lock());
        drop(places);
    }

    /// Returns the number of suspended calls.
    pub(crate) fn len(&self) -> usize {
        self.lock().values().filter(|place| matches!(place.what, EntryContent::Waiting(_))).count()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, SuspendedEntry>> {
        self.places.lock()
    }
}

/// Takes out the longest suspended call of a caller, if the caller is at its limit.
fn oldest_beyond(
    places: &mut HashMap<u64, SuspendedEntry>,
    caller: &IdentityId,
    most: usize,
) -> Option<SuspendedEntry> {
    let waits = |place: &SuspendedEntry| matches!(&place.what, EntryContent::Waiting(it) if it.caller == *caller);
    let waiting = || places.iter().filter(|(_, place)| waits(place));
    if waiting().count() < most {
        return None;
    }
    let oldest = waiting().min_by_key(|(_, place)| place.until).map(|(call, _)| *call)?;
    places.remove(&oldest)
}

/// Takes out the longest suspended call of the caller with the most, if that has more than its share of `most` and
/// `caller` does not.
fn yield_to(
    places: &mut HashMap<u64, SuspendedEntry>,
    caller: &IdentityId,
    most: usize,
) -> Option<SuspendedEntry> {
    let waiting = || {
        places.iter().filter_map(|(call, place)| match &place.what {
            EntryContent::Waiting(suspended) => Some((*call, place.until, &suspended.caller)),
            _ => None,
        })
    };
    let holdings: Holdings<_> = waiting().map(|(_, _, holder)| holder.clone()).collect();
    let yielding = waiting().filter(|(_, _, holder)| holdings.yields(most, holder, caller));
    let first = yielding.min_by_key(|(_, until, holder)| (Reverse(holdings.of(holder)), *until));
    let (call, ..) = first?;
    places.remove(&call)
}

/// Makes room by removing a result: of those kept, the one that expires first.
fn evict(places: &mut HashMap<u64, SuspendedEntry>) -> bool {
    let kept = places.iter().filter(|(_, place)| matches!(place.what, EntryContent::Ended(_)));
    let oldest = kept.min_by_key(|(_, place)| place.until).map(|(call, _)| *call);
    oldest.is_some_and(|call| places.remove(&call).is_some())
}

/// Removes a suspended call whose client disconnected.
pub(crate) struct SuspendedCallGuard<'a> {
    pub(crate) calls: &'a SuspendedCalls,
    pub(crate) call: u64,
}

impl Drop for SuspendedCallGuard<'_> {
    fn drop(&mut self) {
        self.calls.forget(self.call);
    }
}
