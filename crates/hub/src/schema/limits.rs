//! How large a server's schema may become here.

use std::time::Duration;

/// How large a server's schema may become here. Arguments of a schema beyond a limit are not checked; the server
/// checks them.
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
    /// Time that a call waits for its schema to be compiled and its arguments to be checked.
    pub wait: Duration,
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
        }
    }
}
