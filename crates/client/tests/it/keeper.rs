//! The keeper: processes left by servers end with them, whichever process is killed.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use testkit::rogue::Manner;

/// The time after which no process may be left; the keeper promises two seconds on an idle machine.
const LIMIT: Duration = Duration::from_secs(6);

/// Starts two daemons that leave group, session and parent, one of them its environment too; then runs a server
/// as a launcher does, and stays. Each has the mark among its arguments.
const SERVER: &str = r"
import os, signal, subprocess, sys
mark, server = sys.argv[1], sys.argv[2:]
for environment in (dict(os.environ), {}):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            null = os.open(os.devnull, os.O_RDWR)
            for descriptor in range(3):
                os.dup2(null, descriptor)
            program = [sys.executable, '-Sc', 'import time; time.sleep(600)', mark]
            os.execve(sys.executable, program, environment)
        os._exit(0)
    os.wait()
sys.exit(subprocess.call(server))
";

/// Returns the running processes: parent and command line of each.
fn processes() -> BTreeMap<u32, (u32, Vec<String>)> {
    let read = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let mut words = stat.rsplit_once(')')?.1.split_whitespace();
        let (state, parent) = (words.next()?, words.next()?.parse().ok()?);
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).split('\0').map(str::to_owned).collect();
        (state != "Z").then_some((pid, (parent, line)))
    };
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    entries.filter_map(|entry| read(entry.file_name().to_str()?.parse().ok()?)).collect()
}

fn is_marked((_, line): &(u32, Vec<String>), mark: &str) -> bool {
    line.iter().any(|word| word == mark)
}

/// A program that runs one server through a keeper, and its processes.
struct Held {
    holder: Child,
    lines: testkit::OutputLines,
    guard: u32,
    starter: u32,
    /// The launcher and its two daemons.
    marked: BTreeSet<u32>,
}

impl Held {
    fn start(name: &str) -> Self {
        let mark = format!("mark-{name}-{}", std::process::id());
        let mut holder = hold(&mark);
        let mut lines = testkit::OutputLines::new(holder.stdout.take().unwrap());
        assert_eq!(lines.next().as_deref(), Some("ready"));
        let (guard, starter, marked) = wait_for_all(holder.id(), &mark);
        Self { holder, lines, guard, starter, marked }
    }

    fn kill(&self, victims: &[Victim]) {
        for victim in victims {
            let pid = match victim {
                Victim::Holder => self.holder.id(),
                Victim::Guard => self.guard,
                Victim::Starter => self.starter,
            };
            kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
        }
    }

    /// Panics unless all of its processes end by themselves.
    fn assert_gone(mut self, what: &str) {
        let begun = Instant::now();
        let mut ours = self.marked.clone();
        ours.extend([self.guard, self.starter]);
        loop {
            let _ = self.holder.try_wait();
            let running = processes();
            let left: Vec<_> = ours.iter().filter_map(|pid| running.get(pid)).collect();
            if left.is_empty() {
                break;
            }
            assert!(begun.elapsed() < LIMIT, "{what}: left behind: {left:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
        self.holder.wait().unwrap();
    }
}

/// Waits for the guard, the starter, and the three marked processes below a holder, and returns them.
fn wait_for_all(holder: u32, mark: &str) -> (u32, u32, BTreeSet<u32>) {
    let begun = Instant::now();
    loop {
        let running = processes();
        let keeper = |of| {
            let is_keeper = |line: &[String]| line.get(1).is_some_and(|word| word == "keeper");
            let below = |(_, (parent, line)): &(&u32, &(u32, Vec<String>))| {
                *parent == of && is_keeper(line)
            };
            running.iter().find(below).map(|(pid, _)| *pid)
        };
        let marked =
            running.iter().filter(|(pid, entry)| **pid != holder && is_marked(entry, mark));
        let marked: BTreeSet<u32> = marked.map(|(pid, _)| *pid).collect();
        if let Some(guard) = keeper(holder)
            && let Some(starter) = keeper(guard)
            && marked.len() == 3
        {
            return (guard, starter, marked);
        }
        assert!(begun.elapsed() < LIMIT, "not all is there: {running:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns a program that runs this server through a keeper.
fn hold(mark: &str) -> Child {
    let rogue = testkit::bin("rogue");
    let manner = serde_json::to_string(&Manner::legacy()).unwrap();
    std::process::Command::new(testkit::bin("holder"))
        .arg("kept")
        .arg(testkit::fixtures::python("python3"))
        .args(["-c", SERVER, mark, rogue.to_str().unwrap(), &manner])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[derive(Clone, Copy, Debug)]
enum Victim {
    Holder,
    Guard,
    Starter,
}

#[test]
fn nothing_of_a_server_outlives_any_of_three_that_is_killed_or_two_at_once() {
    use Victim::{Guard, Holder, Starter};
    let plans: [&[Victim]; 6] =
        [&[Holder], &[Guard], &[Starter], &[Guard, Holder], &[Starter, Holder], &[Guard, Starter]];
    for (n, plan) in plans.into_iter().enumerate() {
        let held = Held::start(&format!("plan{n}"));
        held.kill(plan);
        held.assert_gone(&format!("{plan:?}"));
    }
}

#[test]
fn a_connection_ends_when_its_keeper_is_killed() {
    let mut held = Held::start("closed");
    held.kill(&[Victim::Guard, Victim::Starter]);
    let line = held.lines.next();
    let expected = "closed: the connection was lost: the keeper process was killed";
    assert_eq!(line.as_deref(), Some(expected));
    held.assert_gone("both keepers");
}

#[test]
fn orphans_are_reaped_and_a_launcher_that_is_killed_leaves_no_zombie() {
    let held = Held::start("launcher");
    let launcher = *held
        .marked
        .iter()
        .find(|pid| processes()[pid].0 == held.starter && processes()[pid].1.len() > 6)
        .unwrap();
    for pid in &held.marked {
        kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
    }
    let exists = |pid: &u32| std::path::Path::new(&format!("/proc/{pid}")).exists();
    let what = format!("no zombie is left of {:?}, launcher {launcher}", held.marked);
    testkit::wait_until(&what, || !held.marked.iter().any(exists));
    let rogue = |of| processes().values().any(|(parent, _)| *parent == of);
    assert!(rogue(held.starter), "the server goes on below the keeper");
    held.kill(&[Victim::Holder]);
    held.assert_gone("a launcher");
}

#[test]
fn signals_that_end_programs_politely_do_not_end_the_keeper() {
    let held = Held::start("polite");
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
        for pid in [held.guard, held.starter] {
            kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
        }
    }
    // Nothing tells that a signal was ignored.
    std::thread::sleep(Duration::from_millis(200));
    let running = processes();
    assert!(running.contains_key(&held.guard) && running.contains_key(&held.starter));
    assert!(held.marked.iter().all(|pid| running.contains_key(pid)), "no server was ended");
    held.kill(&[Victim::Holder]);
    held.assert_gone("polite signals");
}
