//! Calls per second of a client, and processor time per call.

use serde::Serialize;

use crate::Failure;
use crate::client::{Measure, Who};
use crate::contest::{Contest, Course};
use crate::options::Options;
use crate::statistics::{median, ratio};

/// One course with the results of all clients.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    #[serde(flatten)]
    pub(crate) course: Course,
    pub(crate) results: Vec<Speed>,
}

/// One client's result.
#[derive(Debug, Serialize)]
pub(crate) struct Speed {
    pub(crate) who: Who,
    pub(crate) calls_per_second: f64,
    pub(crate) cpu_microseconds: f64,
    /// Ratio of Consort's calls per second to this client's.
    pub(crate) ours_faster: f64,
    /// Ratio of this client's processor time to Consort's.
    pub(crate) times_our_cpu: f64,
}

/// Runs the contestants in turns on every course.
pub(crate) async fn measure(contest: &Contest, options: &Options) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for course in Course::all(&[1, 32]) {
        rows.push(row(contest, course, options).await?);
    }
    Ok(rows)
}

async fn row(contest: &Contest, course: Course, options: &Options) -> Result<Row, Failure> {
    let contestants = course.via.contestants();
    let mut seconds = vec![Vec::new(); contestants.len()];
    let mut cpu_seconds = seconds.clone();
    for _ in 0..options.rounds {
        for (n, who) in contestants.iter().enumerate() {
            let load = contest.run(course, *who, Measure::Time).await?;
            seconds[n].push(load.seconds / f64::from(options.calls));
            cpu_seconds[n].push(load.cpu_seconds / f64::from(options.calls));
        }
    }
    // Ours comes first.
    let results = contestants
        .iter()
        .enumerate()
        .map(|(n, who)| Speed {
            who: *who,
            calls_per_second: 1.0 / median(seconds[n].iter().copied()),
            cpu_microseconds: median(cpu_seconds[n].iter().copied()) * 1e6,
            ours_faster: ratio(&seconds[n], &seconds[0]),
            times_our_cpu: ratio(&cpu_seconds[n], &cpu_seconds[0]),
        })
        .collect();
    Ok(Row { course, results })
}
