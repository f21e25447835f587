//! Timing on a noisy machine: processor time, short batches in turns, medians, and ratios within one
//! round.

use std::hint::black_box;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Duration of one batch: long compared with the clock's resolution, short compared with the noise.
const BATCH: Duration = Duration::from_millis(10);

/// The median.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

/// Median ratio of `other` to `base`. The two were measured in turns, so a slow phase of the machine affected both.
pub(crate) fn ratio(other: &[f64], base: &[f64]) -> f64 {
    median(other.iter().zip(base).map(|(other, base)| other / base))
}

/// A piece of work that can be repeated.
pub(crate) type Subject<'a, T> = Box<dyn FnMut() -> T + 'a>;

/// The processor time of this process, all threads together, in kernel and user mode.
pub(crate) fn process_time() -> Duration {
    time(ClockId::ProcessCPUTime)
}

/// The processor time of this thread, which is hardly affected by other load.
fn thread_time() -> Duration {
    time(ClockId::ThreadCPUTime)
}

/// The time since the machine started; the same for all processes.
pub(crate) fn monotonic() -> Duration {
    time(ClockId::Monotonic)
}

fn time(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::from_secs(time.tv_sec.cast_unsigned())
        + Duration::from_nanos(time.tv_nsec.cast_unsigned())
}

/// Runs the subjects in turns and returns the seconds of processor time per run of each, round by round.
pub(crate) fn in_turns<T>(mut subjects: Vec<Subject<'_, T>>, rounds: u32) -> Vec<Vec<f64>> {
    let counts: Vec<u32> = subjects.iter_mut().map(runs_of_a_batch).collect();
    let mut seconds = vec![Vec::new(); subjects.len()];
    for _ in 0..rounds {
        for (n, subject) in subjects.iter_mut().enumerate() {
            let taken = batch(subject, counts[n]);
            seconds[n].push(taken.as_secs_f64() / f64::from(counts[n]));
        }
    }
    seconds
}

/// Warms the subject up and returns the number of runs per batch.
fn runs_of_a_batch<T>(subject: &mut Subject<'_, T>) -> u32 {
    let mut runs = 1;
    while batch(subject, runs) < BATCH && runs < 1 << 24 {
        runs *= 2;
    }
    runs
}

fn batch<T>(subject: &mut Subject<'_, T>, runs: u32) -> Duration {
    let start = thread_time();
    for _ in 0..runs {
        black_box(subject());
    }
    thread_time().saturating_sub(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_ignores_what_stands_out() {
        assert!((median([1.0, 100.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!((median([4.0, 1.0, 2.0, 100.0]) - 3.0).abs() < 1e-9);
        assert!(median([]).is_nan());
    }

    #[test]
    fn a_ratio_is_taken_within_a_round() {
        let base = [1.0, 10.0, 2.0];
        let other = [3.0, 30.0, 6.0];
        assert!((ratio(&other, &base) - 3.0).abs() < 1e-9);
    }

    #[test]
    fn every_subject_runs_in_every_round() {
        let subjects: Vec<Subject<'_, u32>> = vec![Box::new(|| 1), Box::new(|| 2)];
        let seconds = in_turns(subjects, 3);
        assert_eq!(seconds.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3]);
    }
}
