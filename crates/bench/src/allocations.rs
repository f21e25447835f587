//! Allocations of a client for one call.

use serde::Serialize;

use crate::Failure;
use crate::client::{Measure, Who};
use crate::contest::{Contest, Course};
use crate::options::Options;

/// One course with the results of all clients.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    #[serde(flatten)]
    pub(crate) course: Course,
    pub(crate) results: Vec<Memory>,
}

/// One client's result, per call.
#[derive(Debug, Serialize)]
pub(crate) struct Memory {
    pub(crate) who: Who,
    pub(crate) allocations: f64,
    pub(crate) bytes: f64,
    /// Ratio of this client's allocations to Consort's.
    pub(crate) times_our_allocations: f64,
    /// Ratio of this client's allocated bytes to Consort's.
    pub(crate) times_our_bytes: f64,
}

/// Counts on every course, one call at a time.
pub(crate) async fn measure(contest: &Contest, options: &Options) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for course in Course::all(&[1]) {
        let mut results: Vec<Memory> = Vec::new();
        for who in course.via.contestants() {
            let load = contest.run(course, *who, Measure::Allocations).await?;
            let allocations = a_call(load.allocations, options.calls);
            let bytes = a_call(load.bytes, options.calls);
            // Ours comes first.
            let (our_allocations, our_bytes) =
                results.first().map_or((allocations, bytes), |ours| (ours.allocations, ours.bytes));
            results.push(Memory {
                who: *who,
                allocations,
                bytes,
                times_our_allocations: allocations / our_allocations,
                times_our_bytes: bytes / our_bytes,
            });
        }
        rows.push(Row { course, results });
    }
    Ok(rows)
}

#[expect(clippy::cast_precision_loss, reason = "a count beyond 2^52 is not reached")]
fn a_call(total: u64, calls: u32) -> f64 {
    total as f64 / f64::from(calls)
}
