//! Cache of compiled schemas: compiled one at a time in the background, within a memory limit.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use consort_core::Json;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Semaphore, watch};
use tokio_util::task::TaskTracker;

use super::{SchemaChecker, SchemaLimits};

/// Cache of validators, each compiled once.
#[derive(Debug)]
pub(crate) struct ValidatorStore {
    limits: SchemaLimits,
    kept: Arc<Mutex<KeptValidators>>,
    /// Permit of compilations and long validations: one at a time, so that no schema takes more than one core.
    worker: Arc<Semaphore>,
    crew: TaskTracker,
}

/// A validator: `None` while it is being compiled, `Some(None)` if the schema cannot be used.
type CompiledSchema = Option<Option<Arc<SchemaChecker>>>;

#[derive(Debug, Default)]
struct KeptValidators {
    entries: HashMap<Json, KeptValidator>,
    bytes: usize,
    clock: u64,
}

#[derive(Debug)]
struct KeptValidator {
    compiled: watch::Receiver<CompiledSchema>,
    /// Bytes of memory; zero while it is being compiled.
    weight: usize,
    used: u64,
}

impl ValidatorStore {
    /// Makes a store whose tasks belong to `crew`.
    pub(crate) fn new(limits: SchemaLimits, crew: TaskTracker) -> Self {
        Self { limits, kept: Arc::default(), worker: Arc::new(Semaphore::new(1)), crew }
    }

    /// Validates arguments against a schema. Arguments that cannot be validated here in time are left to the server.
    pub(crate) async fn check(&self, schema: &Json, arguments: &Json) -> Result<(), Vec<String>> {
        let mut compiled = self.entry(schema);
        let known = compiled.borrow().clone();
        if let Some(known) = known {
            let Some(checker) = known else { return Ok(()) };
            if checker.is_quick(arguments.as_bytes().len()) {
                return checker.check(arguments);
            }
        }
        let checked = async {
            let checker = compiled.wait_for(Option::is_some).await.ok()?.clone().flatten()?;
            if checker.is_quick(arguments.as_bytes().len()) {
                return Some(checker.check(arguments));
            }
            let place = Arc::clone(&self.worker).acquire_owned().await.ok()?;
            let arguments = arguments.clone();
            let checking = self.crew.spawn_blocking(move || {
                let checked = checker.check(&arguments);
                drop(place);
                checked
            });
            checking.await.ok()
        };
        match tokio::time::timeout(self.limits.wait, checked).await {
            Ok(Some(checked)) => checked,
            Ok(None) | Err(_) => Ok(()),
        }
    }

    /// Returns the entry of a schema; if it is new, its compilation begins.
    fn entry(&self, schema: &Json) -> watch::Receiver<CompiledSchema> {
        let mut kept = lock(&self.kept);
        kept.clock += 1;
        let now = kept.clock;
        if let Some(entry) = kept.entries.get_mut(schema) {
            entry.used = now;
            return entry.compiled.clone();
        }
        let (sender, compiled) = watch::channel(None);
        let entry = KeptValidator { compiled: compiled.clone(), weight: 0, used: now };
        let schema = schema.detached();
        kept.entries.insert(schema.clone(), entry);
        kept.evict(&self.limits);
        drop(kept);
        let compilation = SchemaCompilation { schema, sender, kept: Arc::clone(&self.kept) };
        let (worker, crew, limits) = (Arc::clone(&self.worker), self.crew.clone(), self.limits);
        self.crew.spawn(async move {
            let Ok(place) = worker.acquire_owned().await else { return };
            crew.spawn_blocking(move || {
                compilation.run(&limits);
                drop(place);
            });
        });
        compiled
    }
}

/// A compilation in progress. If it is dropped early, the next call starts another.
struct SchemaCompilation {
    schema: Json,
    sender: watch::Sender<CompiledSchema>,
    kept: Arc<Mutex<KeptValidators>>,
}

impl SchemaCompilation {
    fn run(&self, limits: &SchemaLimits) {
        // A fault of the compiler concerns this schema only.
        let made =
            std::panic::catch_unwind(AssertUnwindSafe(|| SchemaChecker::new(&self.schema, limits)));
        let checker = match made {
            Ok(Ok(checker)) => Some(Arc::new(checker)),
            Ok(Err(error)) => {
                tracing::debug!(%error, "a tool's input schema cannot be used");
                None
            }
            Err(_) => None,
        };
        let weight = checker.as_ref().map_or(0, |checker| checker.weight());
        self.sender.send_replace(Some(checker));
        lock(&self.kept).settle(&self.schema, weight, limits);
    }
}

impl Drop for SchemaCompilation {
    fn drop(&mut self) {
        if self.sender.borrow().is_none() {
            lock(&self.kept).entries.remove(&self.schema);
        }
    }
}

impl KeptValidators {
    /// Notes the weight of a validator that is ready now.
    fn settle(&mut self, schema: &Json, weight: usize, limits: &SchemaLimits) {
        if let Some(entry) = self.entries.get_mut(schema) {
            entry.weight = weight;
            self.bytes += weight;
        }
        self.evict(limits);
    }

    /// Drops the least recently used validators until the rest is within the limits.
    fn evict(&mut self, limits: &SchemaLimits) {
        while self.entries.len() > limits.entries || self.bytes > limits.compiled_bytes {
            let ready = self.entries.iter().filter(|(_, entry)| entry.compiled.borrow().is_some());
            let Some((oldest, _)) = ready.min_by_key(|(_, entry)| entry.used) else { return };
            let oldest = oldest.clone();
            if let Some(gone) = self.entries.remove(&oldest) {
                self.bytes -= gone.weight;
            }
        }
    }
}

fn lock(kept: &Mutex<KeptValidators>) -> MutexGuard<'_, KeptValidators> {
    kept.lock()
}

#[cfg(test)]
#[cfg(feature = "validation")]
mod tests {
    use serde_json::{Map, Value, json};

    use super::*;

    fn store(limits: SchemaLimits) -> ValidatorStore {
        ValidatorStore::new(limits, TaskTracker::new())
    }

    fn patterned(count: usize, pattern: impl Fn(usize) -> String) -> Json {
        let member = |at: usize| (format!("m{at}"), json!({ "pattern": pattern(at) }));
        let members: Map<String, Value> = (0..count).map(member).collect();
        json!({ "properties": members }).into()
    }

    #[tokio::test]
    async fn a_schema_too_large_to_compile_takes_no_memory_and_is_left_to_the_server() {
        let store = store(SchemaLimits::default());
        let bomb = patterned(1_000, |at| format!(r"\p{{L}}{{90}}{at}"));
        assert_eq!(store.check(&bomb, &json!({ "m1": "!" }).into()).await, Ok(()));
        let kept = lock(&store.kept);
        assert_eq!((kept.entries.len(), kept.bytes), (1, 0));
    }

    #[tokio::test]
    async fn compiled_schemas_stay_within_their_memory() {
        let limits = SchemaLimits { compiled_bytes: 1 << 20, ..SchemaLimits::default() };
        let store = store(limits);
        for round in 0..40 {
            let schema = patterned(2, |at| format!("^[a-z]{{1,3{at}}}{round}$"));
            let problems = store.check(&schema, &json!({ "m0": "!" }).into()).await.unwrap_err();
            assert_eq!(problems.len(), 1);
            assert!(lock(&store.kept).bytes <= limits.compiled_bytes);
        }
        let kept = lock(&store.kept);
        assert!(kept.entries.len() < 40 && kept.bytes > 0, "{} {}", kept.entries.len(), kept.bytes);
        let weights: usize = kept.entries.values().map(|entry| entry.weight).sum();
        assert_eq!(weights, kept.bytes);
    }

    #[tokio::test]
    async fn calls_of_one_schema_share_what_is_compiled() {
        let store = store(SchemaLimits::default());
        let schema: Json = json!({ "required": ["a"] }).into();
        let (empty, long) = (json!({}).into(), json!({ "b": "x".repeat(1 << 20) }).into());
        let (first, second) =
            tokio::join!(store.check(&schema, &empty), store.check(&schema, &long));
        assert_eq!(first, second, "a long value is checked as well, elsewhere");
        assert_eq!(first.unwrap_err(), [r#"at `/`: "a" is a required property"#]);
        assert_eq!(lock(&store.kept).entries.len(), 1);
    }

    #[tokio::test]
    async fn a_compilation_that_is_given_up_is_begun_anew() {
        let store = store(SchemaLimits::default());
        let schema: Json = json!({ "required": ["a"] }).into();
        let (sender, compiled) = watch::channel(None);
        let entry = KeptValidator { compiled, weight: 0, used: 0 };
        lock(&store.kept).entries.insert(schema.clone(), entry);
        drop(SchemaCompilation { schema: schema.clone(), sender, kept: Arc::clone(&store.kept) });
        assert!(store.check(&schema, &json!({}).into()).await.is_err());
    }
}
