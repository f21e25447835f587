//! A toolbox that caches the results of tools that the operator declares read-only.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use consort_core::{
    Call, CallError, Caller, Catalog, Changes, Event, Events, Outcome, Pattern, ServerId,
    ToolResult, Toolbox,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::limits::ResultLimits;
use crate::policy::Words;
use crate::transform::one_or_more;

/// Tools whose results are cached, and for how long. Only for tools that the operator knows to change
/// nothing: the server's annotations do not suffice.
#[derive(Clone, Debug, PartialEq)]
pub struct Remember {
    /// Tools, by their servers' names for them.
    pub tools: Vec<Pattern>,
    /// Lifetime of a cached result.
    pub time: Duration,
}

/// One entry of `cache`: tools, and the time to live of their results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CacheSpec {
    /// Tools to cache, by their names on the server: names or patterns.
    #[serde(deserialize_with = "one_or_more")]
    #[schemars(with = "Words")]
    pub tools: Vec<String>,
    /// Time to live of a result, in seconds.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub seconds: f64,
}

impl CacheSpec {
    /// Compiles this entry, or returns an error that says what is wrong with it.
    pub fn compile(&self) -> Result<Remember, String> {
        let time = Duration::try_from_secs_f64(self.seconds).ok().filter(|time| !time.is_zero());
        let time = time.ok_or_else(|| "`seconds` must be more than 0".to_owned())?;
        if self.tools.is_empty() {
            return Err("`tools` is empty: say which only read".to_owned());
        }
        Ok(Remember { tools: self.tools.iter().map(Pattern::new).collect(), time })
    }
}

/// A toolbox that caches results, separately for each caller.
pub struct Cached {
    inner: Arc<dyn Toolbox>,
    remember: Vec<Remember>,
    kept: Arc<Mutex<Kept>>,
    limits: ResultLimits,
}

impl fmt::Debug for Cached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cached").field(&self.remember).finish()
    }
}

/// Cache key of a result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    caller: Caller,
    server: ServerId,
    tool: String,
    arguments: String,
}

#[derive(Default)]
struct Kept {
    results: HashMap<Key, Slot>,
    bytes: usize,
}

enum Slot {
    Done {
        result: ToolResult,
        until: Instant,
    },
    /// A call is in flight; other calls with the same key wait for it.
    Flying(watch::Receiver<()>),
}

impl Cached {
    /// Creates a toolbox that caches results.
    pub fn new(inner: Arc<dyn Toolbox>, remember: Vec<Remember>) -> Self {
        Self { inner, remember, kept: Arc::default(), limits: ResultLimits::default() }
    }

    /// The same, with other limits.
    #[must_use]
    pub fn limited(mut self, limits: ResultLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Returns the cache key and the lifetime of the result of a call, if it is cached.
    fn key(&self, call: &Call) -> Result<Option<(Key, Duration)>, CallError> {
        let continued = ["task", "requestState", "inputResponses"];
        if call.tool_target().is_none()
            || continued.iter().any(|member| call.params.get_bytes(member).is_some())
        {
            return Ok(None);
        }
        let catalog = self.inner.catalog(&call.caller);
        let route = &catalog.tools.entries()[call.position(&catalog)?].route;
        let fits = |remember: &&Remember| {
            remember.tools.iter().any(|tool| tool.matches(route.server.as_str(), &route.name))
        };
        let remember = self.remember.iter().find(fits);
        Ok(remember.map(|remember| {
            let key = Key {
                caller: call.caller.clone(),
                server: route.server.clone(),
                tool: route.name.clone(),
                arguments: call.arguments().as_str().to_owned(),
            };
            (key, remember.time)
        }))
    }

    /// Makes a call whose result is cached, or waits for the same call in flight.
    fn go(&self, call: Call, key: Key, time: Duration) -> Events {
        let (inner, kept) = (Arc::clone(&self.inner), Arc::clone(&self.kept));
        let limits = self.limits;
        Events::new(|emitter| async move {
            let flight = loop {
                match found(&kept, &key) {
                    Found::Done(result) => return Event::End(Ok(Outcome::Complete(result))),
                    Found::Flying(mut other) => {
                        // However it ends, there is a result now, or it is our turn.
                        let _ = other.changed().await;
                    }
                    Found::Mine(flight) => break Flight { kept: &kept, key: &key, _over: flight },
                }
            };
            let end = inner.call(call).forward(&emitter).await;
            if let Event::End(Ok(Outcome::Complete(result))) = &end
                && !result.is_error()
            {
                keep(&kept, &key, result, time, limits);
            }
            drop(flight);
            end
        })
    }
}

enum Found {
    Done(ToolResult),
    Flying(watch::Receiver<()>),
    Mine(watch::Sender<()>),
}

fn found(kept: &Mutex<Kept>, key: &Key) -> Found {
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    match kept.results.get(key) {
        Some(Slot::Done { result, until }) if *until > Instant::now() => {
            Found::Done(result.clone())
        }
        Some(Slot::Flying(other)) => Found::Flying(other.clone()),
        _ => {
            kept.forget(key);
            let (mine, others) = watch::channel(());
            kept.results.insert(key.clone(), Slot::Flying(others));
            Found::Mine(mine)
        }
    }
}

fn keep(kept: &Mutex<Kept>, key: &Key, result: &ToolResult, time: Duration, limits: ResultLimits) {
    let bytes = size(result);
    if bytes > limits.largest_cached {
        return;
    }
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    kept.make_room(bytes, limits);
    let until = Instant::now() + time;
    kept.results.insert(key.clone(), Slot::Done { result: result.clone(), until });
    kept.bytes += bytes;
}

fn size(result: &ToolResult) -> usize {
    result.object().as_bytes().len()
}

/// A call in flight that others wait for. Dropping it wakes them.
struct Flight<'a> {
    kept: &'a Mutex<Kept>,
    key: &'a Key,
    _over: watch::Sender<()>,
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(kept.results.get(self.key), Some(Slot::Flying(_))) {
            kept.results.remove(self.key);
        }
    }
}

impl Kept {
    fn forget(&mut self, key: &Key) {
        if let Some(Slot::Done { result, .. }) = self.results.remove(key) {
            self.bytes -= size(&result);
        }
    }

    /// Drops expired results, then those that expire soonest, until this many bytes fit.
    fn make_room(&mut self, bytes: usize, limits: ResultLimits) {
        let now = Instant::now();
        while self.bytes + bytes > limits.cached_bytes || self.results.len() > limits.cached {
            let done = self.results.iter().filter_map(|(key, slot)| match slot {
                Slot::Done { until, .. } => Some((*until, key)),
                Slot::Flying(_) => None,
            });
            let mut over: Vec<(Instant, Key)> =
                done.map(|(until, key)| (until, key.clone())).collect();
            over.sort_by_key(|(until, _)| *until);
            if over.is_empty() {
                return;
            }
            let some = over.len().div_ceil(8);
            for (at, (until, key)) in over.into_iter().enumerate() {
                if until <= now || at < some {
                    self.forget(&key);
                }
            }
        }
    }
}

impl Toolbox for Cached {
    fn catalog(&self, caller: &Caller) -> Arc<Catalog> {
        self.inner.catalog(caller)
    }

    fn call(&self, call: Call) -> Events {
        match self.key(&call) {
            Ok(Some((key, time))) => self.go(call, key, time),
            Ok(None) => self.inner.call(call),
            Err(error) => Events::ended(Err(error)),
        }
    }

    fn inner(&self) -> Option<&dyn Toolbox> {
        Some(&*self.inner)
    }

    fn changes(&self) -> Changes {
        self.inner.changes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Fake, both, tool};
    use serde_json::json;

    fn cached(fake: &Arc<Fake>) -> Cached {
        let spec = CacheSpec { tools: vec!["s.read*".to_owned()], seconds: 60.0 };
        let inner = Arc::clone(fake) as Arc<dyn Toolbox>;
        Cached::new(inner, vec![spec.compile().unwrap()])
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
        assert!(matches!(leaving.next().await, Some(Event::Progress(_))));
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
        let kept = cached.kept.lock().unwrap();
        assert!(kept.bytes <= 16 << 20 && kept.bytes > 8 << 20, "{}", kept.bytes);
        let held: usize = kept
            .results
            .values()
            .map(|slot| match slot {
                Slot::Done { result, .. } => size(result),
                Slot::Flying(_) => 0,
            })
            .sum();
        assert_eq!(held, kept.bytes);
    }
}
