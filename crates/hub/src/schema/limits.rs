//! Limits of servers' schemas.

use std::time::Duration;

/// Limits of servers' schemas. Arguments of a schema beyond a limit are not validated here; the server validates them.
///
/// ```
/// let limits = consort_hub::SchemaLimits { patterns: 16, ..Default::default() };
/// assert_eq!(limits.pattern_states, 25_000);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchemaLimits {
    /// Different regular expressions in one schema.
    pub patterns: usize,
    /// States of one regular expression, counted before it is compiled: `[a-z]{1,100}` has about 1,000.
    pub pattern_states: usize,
    /// States of all regular expressions in one schema.
    pub schema_states: usize,
    /// Bytes of memory that compiled schemas may take; the least recently used is dropped first.
    pub compiled_bytes: usize,
    /// Compiled schemas kept ready; the least recently used is dropped first.
    pub entries: usize,
    /// Time that a call waits for its schema to be compiled and its arguments to be validated.
    pub wait: Duration,
    /// Bytes of a schema that is used at all.
    pub bytes: usize,
    /// Levels that a schema may nest.
    pub depth: usize,
    /// Length of a chain of references.
    pub chain: usize,
    /// Subschemas, counting each as often as it is referred to, since a hostile schema multiplies references.
    pub subschemas: usize,
    /// Steps that a validation may take: about a tenth of a second.
    pub steps: u64,
    /// Problems reported at once: enough to correct a call without flooding a model.
    pub problems: usize,
}

impl Default for SchemaLimits {
    fn default() -> Self {
        Self {
            patterns: 256,
            pattern_states: 25_000,
            schema_states: 50_000,
            compiled_bytes: 64 << 20,
            entries: 4096,
            wait: Duration::from_secs(2),
            bytes: 64 << 10,
            depth: 64,
            chain: 100,
            subschemas: 10_000,
            steps: 200_000,
            problems: 8,
        }
    }
}
