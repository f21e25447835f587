//! Process trees from `/proc`: descendants of a process, and the processes of a server.
//!
//! A process is identified by its ancestors while they live, and by a mark after that: the soft limit of
//! `RLIMIT_LOCKS`, which the kernel passes on to children and through `exec`, shows to everyone, and has not
//! enforced since Linux 2.4.25. Unlike an environment variable it survives a cleared environment.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, getrlimit, kill_process, setrlimit,
    waitid,
};

use super::channel::LOOK;

/// Rounds of stopping before processes are killed, for those that fork faster than they are found.
const ROUNDS: usize = 20;

/// The running processes of this machine, each with its parent.
#[derive(Debug)]
struct ProcessTable {
    parents: HashMap<i32, i32>,
}

impl ProcessTable {
    fn read() -> Self {
        let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
        let running = |name: &str| {
            let pid: i32 = name.parse().ok()?;
            let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
            // A program's name may hold anything, but it ends with the last bracket.
            let rest = &stat[stat.iter().rposition(|byte| *byte == b')')? + 1..];
            let mut words = str::from_utf8(rest).ok()?.split_ascii_whitespace();
            let state = words.next()?;
            let parent = words.next()?.parse().ok()?;
            (!matches!(state, "Z" | "X")).then_some((pid, parent))
        };
        let parents = entries.filter_map(|entry| running(entry.file_name().to_str()?)).collect();
        Self { parents }
    }

    /// Returns true if `pid` is one of `ancestors`, or below one of them.
    fn is_below(&self, mut pid: i32, ancestors: &BTreeSet<i32>) -> bool {
        // The table is no snapshot: parents that were read at different times could form a circle.
        for _ in 0..self.parents.len() {
            if ancestors.contains(&pid) {
                return true;
            }
            match self.parents.get(&pid) {
                Some(parent) => pid = *parent,
                None => return false,
            }
        }
        false
    }

    /// Returns the processes below `ancestors`, and `ancestors` themselves if they run.
    fn below(&self, ancestors: &BTreeSet<i32>) -> Vec<Pid> {
        let mut below: Vec<i32> = self.parents.keys().copied().collect();
        below.retain(|pid| self.is_below(*pid, ancestors));
        below.into_iter().filter_map(Pid::from_raw).collect()
    }
}

/// All processes below this one, without itself.
pub(super) fn all_below_us() -> Vec<Pid> {
    if !has_children() {
        return Vec::new();
    }
    let us = rustix::process::getpid();
    let mut below = below(us);
    below.retain(|pid| *pid != us);
    below
}

/// Returns false for a subreaper without children, so that `/proc` need not be read.
fn has_children() -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::All, options), Err(rustix::io::Errno::CHILD))
}

/// Returns a process and all below it.
pub(crate) fn below(process: Pid) -> Vec<Pid> {
    ProcessTable::read().below(&BTreeSet::from([process.as_raw_nonzero().get()]))
}

/// Returns all processes with this mark, and all below them.
pub(super) fn marked(mark: u64) -> Vec<Pid> {
    let table = ProcessTable::read();
    let marked = table.parents.keys().copied().filter(|pid| mark_of(*pid) == Some(mark)).collect();
    table.below(&marked)
}

/// Returns the processes of a server below this one: `main` while it runs, the marked ones, and all below.
pub(super) fn of_server(main: Option<Pid>, mark: u64) -> Vec<Pid> {
    if !has_children() {
        return Vec::new();
    }
    let table = ProcessTable::read();
    let us = rustix::process::getpid();
    let ours = table.below(&BTreeSet::from([us.as_raw_nonzero().get()]));
    let belongs =
        |pid: &Pid| Some(*pid) == main || mark_of(pid.as_raw_nonzero().get()) == Some(mark);
    let roots = ours.into_iter().filter(|pid| *pid != us).filter(belongs);
    table.below(&roots.map(|pid| pid.as_raw_nonzero().get()).collect())
}

/// Returns a mark that no other server has.
pub(crate) fn new_mark() -> u64 {
    // `RandomState` is seeded by the operating system. Infinity is no mark, and 0 nobody's choice of a limit.
    RandomState::new().hash_one(std::process::id()) >> 2 | 1
}

/// Runs `start` so that its processes have this mark. The caller, which has it meanwhile, is single-threaded.
pub(super) fn with_mark<T>(mark: u64, start: impl FnOnce() -> T) -> T {
    let own = getrlimit(Resource::Locks);
    // Without the mark a server is still known by its ancestors.
    let _ = setrlimit(Resource::Locks, Rlimit { current: Some(mark), maximum: own.maximum });
    let started = start();
    let _ = setrlimit(Resource::Locks, own);
    started
}

fn mark_of(pid: i32) -> Option<u64> {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let locks = limits.lines().find_map(|line| line.strip_prefix("Max file locks"))?;
    locks.split_ascii_whitespace().next()?.parse().ok()
}

/// Sends a signal to each of them.
pub(super) fn signal(processes: &[Pid], signal: Signal) {
    for process in processes {
        // An error means that it is gone, or that it is not ours to signal: it changed its user.
        let _ = kill_process(*process, signal);
    }
}

/// Kills the processes that `find` returns. They are stopped first, so that none can fork unseen.
pub(crate) fn kill(find: impl Fn() -> Vec<Pid>) {
    let mut stopped = BTreeSet::new();
    for _ in 0..ROUNDS {
        let found = find();
        let new: Vec<Pid> =
            found.into_iter().filter(|pid| !stopped.contains(&pid.as_raw_nonzero())).collect();
        if new.is_empty() {
            break;
        }
        signal(&new, Signal::STOP);
        stopped.extend(new.iter().map(|pid| pid.as_raw_nonzero()));
    }
    for process in stopped {
        let _ = kill_process(Pid::from_raw(process.get()).expect("it was one"), Signal::KILL);
    }
}

/// Kills until `find` returns no process that can be killed, at most for `limit`.
pub(super) async fn kill_until_gone(find: impl Fn() -> Vec<Pid>, limit: Duration) {
    let begun = Instant::now();
    let killable = || -> Vec<Pid> { find().into_iter().filter(|pid| is_killable(*pid)).collect() };
    while !killable().is_empty() && begun.elapsed() < limit {
        kill(killable);
        tokio::time::sleep(LOOK).await;
    }
}

/// Returns false for a process of another user, which cannot be killed.
fn is_killable(process: Pid) -> bool {
    rustix::process::test_kill_process(process) != Err(rustix::io::Errno::PERM)
}
