//! A toolbox that caches the results of tools that the operator declares read-only.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use consort_core::{
    Call, CallError, CallEvent, CallEvents, CallOutcome, Caller, Catalog, CatalogChanges,
    NamePattern, ServerId, ToolResult, Toolbox,
};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::limits::ResultLimits;
use crate::policy::StringOrList;
use crate::transform::one_or_more;

/// Tools whose results are cached, and for how long. Only for tools that the operator knows to change
/// nothing: the server's annotations do not suffice.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheRule {
    /// Tools, by their servers' names for them.
    pub tools: Vec<NamePattern>,
    /// Lifetime of a cached result.
    pub ttl: Duration,
}

/// One entry of `cache`: tools, and the time to live of their results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CacheSpec {
    /// Tools to cache, by their names on the server: names or patterns.
    #[serde(deserialize_with = "one_or_more")]
    #[schemars(with = "StringOrList")]
    pub tools: Vec<String>,
    /// Time to live of a result, in seconds.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub seconds: f64,
}

impl CacheSpec {
    /// Compiles this entry, or returns an error that says what is wrong with it.
    pub fn compile(&self) -> Result<CacheRule, String> {
        let time = Duration::try_from_secs_f64(self.seconds).ok().filter(|time| !time.is_zero());
        let time = time.ok_or_else(|| "`seconds` must be greater than 0".to_owned())?;
        if self.tools.is_empty() {
            return Err("`tools` is empty: list the read-only tools to cache".to_owned());
        }
        Ok(CacheRule { tools: self.tools.iter().map(NamePattern::new).collect(), ttl: time })
    }
}

/// A toolbox that caches results, separately for each caller.
pub struct CacheToolbox {
    inner: Arc<dyn Toolbox>,
    rules: Vec<CacheRule>,
    results: Arc<Mutex<CachedResults>>,
    limits: ResultLimits,
}

impl fmt::Debug for CacheToolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CacheToolbox").field(&self.rules).finish()
    }
}

/// Cache key of a result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CacheKey {
    caller: Caller,
    server: ServerId,
    tool: String,
    arguments: String,
}

#[derive(Default)]
struct CachedResults {
    results: HashMap<CacheKey, CacheSlot>,
    bytes: usize,
}

enum CacheSlot {
    Stored {
        result: ToolResult,
        until: Instant,
    },
    /// A call is in flight; other calls with the same key wait for it.
    InFlight(watch::Receiver<()>),
}

impl CacheToolbox {
    /// Creates a toolbox that caches results.
    pub fn new(inner: Arc<dyn Toolbox>, rules: Vec<CacheRule>) -> Self {
        Self { inner, rules, results: Arc::default(), limits: ResultLimits::default() }
    }

    /// The same, with other limits.
    #[must_use]
    pub fn with_limits(mut self, limits: ResultLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Returns the cache key and the lifetime of the result of a call, if it is cached.
    fn key(&self, call: &Call) -> Result<Option<(CacheKey, Duration)>, CallError> {
        let continued = ["task", "requestState", "inputResponses"];
        if call.tool_target().is_none()
            || continued.iter().any(|member| call.params.get_bytes(member).is_some())
        {
            return Ok(None);
        }
        let catalog = self.inner.catalog(&call.caller);
        let route = &catalog.tools.entries()[call.position(&catalog)?].route;
        let fits = |rule: &&CacheRule| {
            rule.tools.iter().any(|tool| tool.matches(route.server.as_str(), &route.name))
        };
        let rule = self.rules.iter().find(fits);
        Ok(rule.map(|rule| {
            let key = CacheKey {
                caller: call.caller.clone(),
                server: route.server.clone(),
                tool: route.name.clone(),
                arguments: call.arguments().as_str().to_owned(),
            };
            (key, rule.ttl)
        }))
    }

    /// Makes a call whose result is cached, or waits for the same call in flight.
    fn call_cached(&self, call: Call, key: CacheKey, time: Duration) -> CallEvents {
        let (inner, results) = (Arc::clone(&self.inner), Arc::clone(&self.results));
        let limits = self.limits;
        CallEvents::new(|emitter| async move {
            let flight = loop {
                match look_up(&results, &key) {
                    CacheLookup::Hit(result) => {
                        return CallEvent::End(Ok(CallOutcome::Complete(result)));
                    }
                    CacheLookup::InFlight(mut other) => {
                        // However it ends, there is a result now, or it is our turn.
                        let _ = other.changed().await;
                    }
                    CacheLookup::Miss(flight) => {
                        break InFlightCall { results: &results, key: &key, _ended: flight };
                    }
                }
            };
            let end = inner.call(call).forward(&emitter).await;
            if let CallEvent::End(Ok(CallOutcome::Complete(result))) = &end
                && !result.is_error()
            {
                store_result(&results, &key, result, time, limits);
            }
            drop(flight);
            end
        })
    }
}

enum CacheLookup {
    Hit(ToolResult),
    InFlight(watch::Receiver<()>),
    Miss(watch::Sender<()>),
}

fn look_up(results: &Mutex<CachedResults>, key: &CacheKey) -> CacheLookup {
    let mut results = results.lock();
    match results.results.get(key) {
        Some(CacheSlot::Stored { result, until }) if *until > Instant::now() => {
            CacheLookup::Hit(result.clone())
        }
        Some(CacheSlot::InFlight(other)) => CacheLookup::InFlight(other.clone()),
        _ => {
            results.remove(key);
            let (mine, others) = watch::channel(());
            results.results.insert(key.clone(), CacheSlot::InFlight(others));
            CacheLookup::Miss(mine)
        }
    }
}

fn store_result(
    results: &Mutex<CachedResults>,
    key: &CacheKey,
    result: &ToolResult,
    time: Duration,
    limits: ResultLimits,
) {
    let bytes = size(result);
    if bytes > limits.largest_cached {
        return;
    }
    let mut results = results.lock();
    results.make_room(bytes, limits);
    let until = Instant::now() + time;
    results.results.insert(key.clone(), CacheSlot::Stored { result: result.clone(), until });
    results.bytes += bytes;
}

fn size(result: &ToolResult) -> usize {
    result.object().as_bytes().len()
}

/// A call in flight that others wait for. Dropping it wakes them.
struct InFlightCall<'a> {
    results: &'a Mutex<CachedResults>,
    key: &'a CacheKey,
    _ended: watch::Sender<()>,
}

impl Drop for InFlightCall<'_> {
    fn drop(&mut self) {
        let mut results = self.results.lock();
        if matches!(results.results.get(self.key), Some(CacheSlot::InFlight(_))) {
            results.results.remove(self.key);
        }
    }
}

impl CachedResults {
    fn remove(&mut self, key: &CacheKey) {
        if let Some(CacheSlot::Stored { result, .. }) = self.results.remove(key) {
            self.bytes -= size(&result);
        }
    }

    /// Drops expired results, then those that expire soonest, until this many bytes fit.
    fn make_room(&mut self, bytes: usize, limits: ResultLimits) {
        let now = Instant::now();
        while self.bytes + bytes > limits.cached_bytes || self.results.len() > limits.cached {
            let done = self.results.iter().filter_map(|(key, slot)| match slot {
                CacheSlot::Stored { until, .. } => Some((*until, key)),
                CacheSlot::InFlight(_) => None,
            });
            let mut over: Vec<(Instant, CacheKey)> =
                done.map(|(until, key)| (until, key.clone())).collect();
            over.sort_by_key(|(until, _)| *until);
            if over.is_empty() {
                return;
            }
            let some = over.len().div_ceil(8);
            for (at, (until, key)) in over.into_iter().enumerate() {
                if until <= now || at < some {
                    self.remove(&key);
                }
            }
        }
    }
}

impl Toolbox for CacheToolbox {
    fn catalog(&self, caller: &Caller) -> Arc<Catalog> {
        self.inner.catalog(caller)
    }

    fn call(&self, call: Call) -> CallEvents {
        match self.key(&call) {
            Ok(Some((key, time))) => self.call_cached(call, key, time),
            Ok(None) => self.inner.call(call),
            Err(error) => CallEvents::ended(Err(error)),
        }
    }

    fn inner(&self) -> Option<&dyn Toolbox> {
        Some(&*self.inner)
    }

    fn changes(&self) -> CatalogChanges {
        self.inner.changes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Fake, both, tool};
    use serde_json::json;

    fn cached(fake: &Arc<Fake>) -> CacheToolbox {
        let spec = CacheSpec { tools: vec!["s.read*".to_owned()], seconds: 60.0 };
        let inner = Arc::clone(fake) as Arc<dyn Toolbox>;
        CacheToolbox::new(inner, vec![spec.compile().unwrap()])
    }

    fn fake() -> Arc<Fake> {
        Fake::new(&[("s", &[tool("read", &["x"]), tool("write", &["x"])])])
    }

    async fn call(toolbox: &dyn Toolbox, name: &str, who: &str, x: u8) {
        let (mut call, _) = both("s", name, &json!({ "x": x }));
        call.caller = Caller::client(who);
        consort_core::end(toolbox.call(call)).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_result_is_remembered_for_its_caller_and_its_time() {
        let fake = fake();
        let cached = cached(&fake);
        for (name, who, x) in [
            ("read", "alice", 1),
            ("read", "alice", 1),
            ("read", "alice", 2),
            ("read", "bob", 1),
            ("write", "alice", 1),
            ("write", "alice", 1),
        ] {
            call(&cached, name, who, x).await;
        }
        assert_eq!(
            fake.taken(),
            [
                r#"s.read {"x":1}"#,
                r#"s.read {"x":2}"#,
                r#"s.read {"x":1}"#,
                r#"s.write {"x":1}"#,
                r#"s.write {"x":1}"#,
            ]
        );
        tokio::time::advance(Duration::from_secs(61)).await;
        call(&cached, "read", "alice", 1).await;
        assert_eq!(fake.taken().len(), 1);
    }

    #[tokio::test]
    async fn calls_at_once_are_one_and_whoever_leaves_makes_room() {
        let fake = fake();
        let cached = cached(&fake);
        let (first, second) = (both("s", "read", &json!({})), both("s", "read", &json!({})));
        let mut leaving = cached.call(first.0);
        // It is on its way: the first event is progress.
        assert!(matches!(leaving.next().await, Some(CallEvent::Progress(_))));
        let mut waiting = cached.call(second.1);
        tokio::select! {
            biased;
            _ = waiting.next() => panic!("the first is not over"),
            () = tokio::task::yield_now() => {}
        }
        drop(leaving);
        consort_core::end(waiting).await.unwrap();
        assert_eq!(fake.taken().len(), 2);
        let calls = [(); 3].map(|()| cached.call(both("s", "read", &json!({})).0));
        for events in calls {
            consort_core::end(events).await.unwrap();
        }
        assert!(fake.taken().is_empty());
    }

    #[tokio::test]
    async fn an_error_is_not_remembered() {
        let mut fake = fake();
        Arc::get_mut(&mut fake).unwrap().result = ToolResult::error("no");
        let cached = cached(&fake);
        for _ in 0..2 {
            call(&cached, "read", "alice", 1).await;
        }
        assert_eq!(fake.taken().len(), 2);
    }

    #[tokio::test]
    async fn only_so_many_are_remembered() {
        let mut fake = fake();
        Arc::get_mut(&mut fake).unwrap().result = ToolResult::text("z".repeat(512 << 10));
        let cached = cached(&fake);
        for x in 0..100 {
            call(&cached, "read", "alice", x).await;
        }
        let results = cached.results.lock();
        assert!(results.bytes <= 16 << 20 && results.bytes > 8 << 20, "{}", results.bytes);
        let held: usize = results
            .results
            .values()
            .map(|slot| match slot {
                CacheSlot::Stored { result, .. } => size(result),
                CacheSlot::InFlight(_) => 0,
            })
            .sum();
        assert_eq!(held, results.bytes);
    }
}
