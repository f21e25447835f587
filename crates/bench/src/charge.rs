//! Cost of another process: its processor time and its memory, as the kernel reports them.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use crate::Failure;

/// One tick of the clock that a process's total is kept in.
const TICK: Duration = Duration::from_millis(10);

/// The processor time of a process up to a moment, its children's not included.
#[derive(Debug)]
pub(crate) struct Spent {
    /// Of each thread that lives, to the nanosecond.
    threads: BTreeMap<u32, Duration>,
    /// Of all threads, ended ones too, in ticks.
    total: Duration,
}

impl Spent {
    /// Returns the processor time spent between the two moments.
    pub(crate) fn since(&self, before: &Self) -> Duration {
        let of = |spent: &Self, thread| spent.threads.get(thread).copied().unwrap_or_default();
        let fine: Duration = self
            .threads
            .keys()
            .map(|thread| of(self, thread).saturating_sub(of(before, thread)))
            .sum();
        // Threads that ended meanwhile are only in the total, which is coarse at both ends.
        let coarse = self.total.saturating_sub(before.total);
        fine.max(coarse.saturating_sub(2 * TICK))
    }
}

/// Returns the processor time of a process so far.
pub(crate) fn processor_time(process: u32) -> Result<Spent, Failure> {
    let mut threads = BTreeMap::new();
    for entry in fs::read_dir(format!("/proc/{process}/task"))? {
        let entry = entry?;
        // A thread may end between being listed and being read.
        let Ok(text) = fs::read_to_string(entry.path().join("schedstat")) else { continue };
        let nanoseconds = text.split(' ').next().and_then(|word| word.parse().ok());
        let thread = entry.file_name().to_str().and_then(|name| name.parse().ok());
        if let (Some(thread), Some(nanoseconds)) = (thread, nanoseconds) {
            threads.insert(thread, Duration::from_nanos(nanoseconds));
        }
    }
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    let ticks = ticks(&stat).ok_or("no processor time in `/proc`")?;
    Ok(Spent { threads, total: TICK * ticks })
}

/// The memory of a process that is in use now, in KiB.
pub(crate) fn resident_kibibytes(process: u32) -> Result<u32, Failure> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    resident
        .and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
        .ok_or_else(|| "no memory in `/proc`".into())
}

/// The files, sockets and pipes a process has open.
pub(crate) fn descriptors(process: u32) -> Result<usize, Failure> {
    Ok(fs::read_dir(format!("/proc/{process}/fd"))?.count())
}

/// The servers it started that are still alive, with their command lines.
pub(crate) fn children(process: u32) -> Result<Vec<(u32, String)>, Failure> {
    let keepers = keepers(process)?;
    let mut children = Vec::new();
    for keeper in &keepers {
        children.extend(direct(*keeper)?);
    }
    children.retain(|(child, _)| !keepers.contains(child));
    Ok(children)
}

/// A process and its descendants that start servers on its behalf.
pub(crate) fn keepers(process: u32) -> Result<Vec<u32>, Failure> {
    let mut keepers = vec![process];
    let mut next = 0;
    while let Some(keeper) = keepers.get(next) {
        let children = direct(*keeper)?;
        let below = children.iter().filter(|(_, words)| words.split(' ').nth(1) == Some("keeper"));
        keepers.extend(below.map(|(child, _)| *child));
        next += 1;
    }
    Ok(keepers)
}

fn direct(process: u32) -> Result<Vec<(u32, String)>, Failure> {
    let mut children = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        let Some(child) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // A process may end between being listed and being read.
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        if parent(&stat) != Some(process) {
            continue;
        }
        let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        children.push((child, String::from_utf8_lossy(&words).replace('\0', " ")));
    }
    Ok(children)
}

/// Returns true if a process exists and is no zombie.
pub(crate) fn lives(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, fields)| !fields.starts_with('Z'))
}

/// Returns the parent of the process of this line.
fn parent(stat: &str) -> Option<u32> {
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

/// Returns user and system time from the line of a process; the name in it may hold anything.
fn ticks(stat: &str) -> Option<u32> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ').skip(11);
    let user: u32 = fields.next()?.parse().ok()?;
    let system: u32 = fields.next()?.parse().ok()?;
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 120 0 0 0 31 11 5 6 20 0 4 0 88";
        assert_eq!(ticks(stat), Some(42));
        assert_eq!(ticks("7 (a) S 1"), None);
        assert_eq!(parent(stat), Some(1));
        assert_eq!(parent("7 (a) S"), None);
    }

    #[test]
    fn what_threads_spent_that_ended_is_not_lost() {
        let spent = |threads: &[(u32, u64)], ticks: u32| Spent {
            threads: threads
                .iter()
                .map(|(thread, milliseconds)| (*thread, Duration::from_millis(*milliseconds)))
                .collect(),
            total: TICK * ticks,
        };
        let before = spent(&[(1, 100), (2, 300)], 40);
        assert_eq!(spent(&[(1, 105), (3, 2)], 41).since(&before), Duration::from_millis(7));
        assert_eq!(spent(&[(1, 105)], 90).since(&before), Duration::from_millis(480));
    }

    #[test]
    fn a_process_that_works_is_charged_for_it() {
        let process = std::process::id();
        let before = processor_time(process).unwrap();
        let begun = crate::statistics::process_time();
        while crate::statistics::process_time().saturating_sub(begun) < Duration::from_millis(50) {
            std::hint::spin_loop();
        }
        let after = processor_time(process).unwrap();
        assert!(after.since(&before) >= Duration::from_millis(30));
        assert!(resident_kibibytes(process).unwrap() > 100);
        assert!(descriptors(process).unwrap() > 2);
        assert!(lives(process));
    }
}
