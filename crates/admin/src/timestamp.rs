//! Times in responses.

use std::time::{SystemTime, UNIX_EPOCH};

use consort_core::utc;

/// Formats a time as ISO 8601.
pub(crate) fn iso_time(time: SystemTime) -> String {
    utc(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
}
