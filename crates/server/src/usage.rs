//! Use of the server by each identity that has ceilings: requests in progress, open streams, and a token bucket.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use consort_core::{Caller, CallerKind, Identity, IdentityId};
use consort_protocol::Notification;
use parking_lot::{Mutex, RwLock};
use tokio::time::Instant;

use crate::ceilings::{
    CeilingRefusal, CeilingRules, IdentityCeilings, ReachedCeiling, RequestRate,
};
use crate::server_observer::ServerObserver;

/// Number of identities beyond which those that use nothing are forgotten.
const TIDY: usize = 4096;

/// Credentials of one identity whose ceilings are remembered at once. Dropping one costs looking its ceilings up again.
const CREDENTIALS: usize = 4;

/// Time after which a request beyond a number of requests may be retried.
const SOON: Duration = Duration::from_secs(1);

/// The same for what rarely ends: streams and sessions.
const LATER: Duration = Duration::from_secs(10);

/// The use of every identity. Without rules it is empty, and a request costs one atomic load.
pub(crate) struct UsageRegistry {
    is_on: AtomicBool,
    rules: RwLock<Option<Arc<dyn CeilingRules>>>,
    table: Mutex<UsageTable>,
    started: Instant,
    observer: Arc<dyn ServerObserver>,
}

#[derive(Debug)]
struct UsageTable {
    usages: HashMap<IdentityId, Arc<IdentityUsage>>,
    /// The number of identities at which unused ones are removed.
    tidy_at: usize,
}

/// The use of one identity.
#[derive(Debug, Default)]
struct IdentityUsage(Mutex<UsageState>);

#[derive(Debug, Default)]
struct UsageState {
    /// Requests in progress, and open streams.
    held: [usize; 2],
    /// The nanosecond at which the bucket is full again, since the server started.
    full_at: u64,
    /// The ceilings of the credentials used last.
    ceilings: Vec<ResolvedCeilings>,
}

#[derive(Debug)]
struct ResolvedCeilings {
    kind: CallerKind,
    identity: Arc<Identity>,
    ceilings: IdentityCeilings,
}

/// Kind of use that a permit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PermitKind {
    Request,
    Stream,
}

/// A request in progress or an open stream of an identity that has ceilings, until it is dropped. A handler keeps that of
/// a request until it is answered.
pub struct UsagePermit {
    usage: Arc<IdentityUsage>,
    kind: PermitKind,
    max_suspended_calls: Option<usize>,
}

impl UsagePermit {
    /// Returns the ceiling of suspended calls that the identity has.
    pub fn max_suspended_calls(&self) -> Option<usize> {
        self.max_suspended_calls
    }
}

impl fmt::Debug for UsagePermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UsagePermit").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl Drop for UsagePermit {
    fn drop(&mut self) {
        let held = &mut self.usage.0.lock().held[self.kind as usize];
        *held = held.saturating_sub(1);
    }
}

impl UsageRegistry {
    pub(crate) fn new(
        rules: Option<Arc<dyn CeilingRules>>,
        observer: &Arc<dyn ServerObserver>,
    ) -> Self {
        Self {
            is_on: AtomicBool::new(rules.is_some()),
            rules: RwLock::new(rules),
            table: Mutex::new(UsageTable { usages: HashMap::new(), tidy_at: TIDY }),
            started: Instant::now(),
            observer: Arc::clone(observer),
        }
    }

    /// Replaces the rules. Requests in progress, streams and buckets stay.
    pub(crate) fn set_rules(&self, rules: Option<Arc<dyn CeilingRules>>) {
        let is_on = rules.is_some();
        *self.rules.write() = rules;
        for usage in self.table.lock().usages.values() {
            usage.0.lock().ceilings.clear();
        }
        self.is_on.store(is_on, Ordering::Release);
    }

    /// Admits a request within the ceilings of its caller, or says when it may be retried. A request that answers the
    /// question of a suspended call counts as others, and may exceed a ceiling by as much again: what it continues is held
    /// already.
    pub(crate) fn admit(
        &self,
        caller: &Caller,
        request: &Notification,
    ) -> Result<Option<UsagePermit>, CeilingRefusal> {
        if !self.is_on.load(Ordering::Acquire) {
            return Ok(None);
        }
        let is_stream = request.method == "subscriptions/listen";
        let kind = if is_stream { PermitKind::Stream } else { PermitKind::Request };
        let grace = usize::from(request.params.get_bytes("requestState").is_some());
        self.permit(caller, kind, 1 + grace)
    }

    /// Admits a stream of notifications that is no request of its own: a GET.
    pub(crate) fn admit_stream(
        &self,
        caller: &Caller,
    ) -> Result<Option<UsagePermit>, CeilingRefusal> {
        if !self.is_on.load(Ordering::Acquire) {
            return Ok(None);
        }
        self.permit(caller, PermitKind::Stream, 1)
    }

    /// Returns the ceilings of a caller.
    pub(crate) fn ceilings_of(&self, caller: &Caller) -> IdentityCeilings {
        if !self.is_on.load(Ordering::Acquire) {
            return IdentityCeilings::default();
        }
        let usage = self.usage_of(caller);
        let mut state = usage.0.lock();
        self.resolve(&mut state, caller)
    }

    /// Returns the refusal of a session beyond a ceiling.
    pub(crate) fn refuse_session(&self, most: usize) -> CeilingRefusal {
        self.refused(ReachedCeiling::Sessions(most), LATER)
    }

    /// Takes a permit within `times` the ceilings.
    fn permit(
        &self,
        caller: &Caller,
        kind: PermitKind,
        times: usize,
    ) -> Result<Option<UsagePermit>, CeilingRefusal> {
        let usage = self.usage_of(caller);
        let mut state = usage.0.lock();
        let ceilings = self.resolve(&mut state, caller);
        if ceilings == IdentityCeilings::default() {
            return Ok(None);
        }
        let held = state.held[kind as usize];
        let (most, reached, wait): (_, fn(usize) -> ReachedCeiling, _) = match kind {
            PermitKind::Request => (ceilings.max_concurrent_calls, ReachedCeiling::Calls, SOON),
            PermitKind::Stream => (ceilings.max_streams, ReachedCeiling::Streams, LATER),
        };
        if let Some(most) = most.filter(|most| held >= most.saturating_mul(times)) {
            return Err(self.refused(reached(most), wait));
        }
        if let Some(rate) = ceilings.rate {
            let burst = ceilings.burst.unwrap_or(rate.requests);
            let taken = state.take(rate, burst, times, self.now());
            taken.map_err(|wait| self.refused(ReachedCeiling::Rate(rate), wait))?;
        }
        state.held[kind as usize] += 1;
        drop(state);
        let max_suspended_calls = ceilings.max_suspended_calls;
        Ok(Some(UsagePermit { usage, kind, max_suspended_calls }))
    }

    fn refused(&self, ceiling: ReachedCeiling, retry_after: Duration) -> CeilingRefusal {
        self.observer.request_limited(ceiling.key());
        CeilingRefusal { ceiling, retry_after }
    }

    fn usage_of(&self, caller: &Caller) -> Arc<IdentityUsage> {
        let mut table = self.table.lock();
        if let Some(usage) = table.usages.get(caller.id()) {
            return Arc::clone(usage);
        }
        if table.usages.len() >= table.tidy_at {
            let now = self.now();
            table
                .usages
                .retain(|_, usage| Arc::strong_count(usage) > 1 || usage.0.lock().full_at > now);
            // Each identity is looked at once for each that is added.
            table.tidy_at = TIDY.max(2 * table.usages.len());
        }
        let usage = Arc::<IdentityUsage>::default();
        table.usages.insert(caller.id().clone(), Arc::clone(&usage));
        usage
    }

    /// Returns the ceilings of a caller, which are looked up again when its groups may have changed.
    fn resolve(&self, state: &mut UsageState, caller: &Caller) -> IdentityCeilings {
        let known = state.ceilings.iter().find(|known| {
            known.kind == caller.kind && Arc::ptr_eq(&known.identity, caller.identity())
        });
        if let Some(known) = known {
            return known.ceilings;
        }
        let rules = self.rules.read();
        let Some(rules) = &*rules else { return IdentityCeilings::default() };
        let ceilings = rules.ceilings_of(caller);
        if state.ceilings.len() >= CREDENTIALS {
            state.ceilings.remove(0);
        }
        let (kind, identity) = (caller.kind, Arc::clone(caller.identity()));
        state.ceilings.push(ResolvedCeilings { kind, identity, ceilings });
        ceilings
    }

    fn now(&self) -> u64 {
        nanos(self.started.elapsed())
    }
}

impl UsageState {
    /// Takes a token from the bucket, or returns the time until there is one.
    fn take(
        &mut self,
        rate: RequestRate,
        burst: u32,
        times: usize,
        now: u64,
    ) -> Result<(), Duration> {
        let each = nanos(rate.period.duration()) / u64::from(rate.requests.max(1));
        let burst = u64::from(burst.max(1)).saturating_mul(times as u64);
        let latest = now.saturating_add(each.saturating_mul(burst));
        let next = self.full_at.max(now).saturating_add(each);
        if next > latest {
            return Err(Duration::from_nanos(next - latest));
        }
        self.full_at = next;
        Ok(())
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl fmt::Debug for UsageRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UsageRegistry").field("rules", &self.rules).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
