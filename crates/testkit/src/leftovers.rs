//! A check that no process of a test is left behind.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use consort_client::ServerCommand;

/// The environment variable that marks a process and its descendants.
const MARK: &str = "TESTKIT_MARK";

/// Time limit for processes that were asked to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// Marks programs and finds those still running, with their descendants, orphans included.
#[derive(Debug)]
pub struct Leftovers {
    mark: String,
}

impl Default for Leftovers {
    fn default() -> Self {
        Self::new()
    }
}

impl Leftovers {
    /// Creates a unique mark.
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        Self { mark: format!("{}-{next}", std::process::id()) }
    }

    /// Marks a program, and with it its descendants.
    #[must_use]
    pub fn mark(&self, command: ServerCommand) -> ServerCommand {
        command.variable(MARK, self.mark.as_str())
    }

    /// The name of the variable, and its value.
    pub fn variable(&self) -> (&'static str, &str) {
        (MARK, &self.mark)
    }

    /// The running marked processes, by their command lines.
    pub fn running(&self) -> Vec<String> {
        let variable = format!("{MARK}={}", self.mark);
        let processes = std::fs::read_dir("/proc").expect("leftovers are found in /proc");
        processes
            .filter_map(|entry| command_line(&entry.ok()?.path(), variable.as_bytes()))
            .collect()
    }

    /// Panics if marked processes are running and do not end by themselves.
    pub fn assert_none(&self) {
        let start = Instant::now();
        loop {
            let running = self.running();
            if running.is_empty() {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "left behind:\n{}", running.join("\n"));
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The command line of a process whose environment has this variable.
fn command_line(process: &Path, variable: &[u8]) -> Option<String> {
    // A process that has ended has no environment any more, even before someone waits for it.
    let environment = std::fs::read(process.join("environ")).ok()?;
    if !environment.split(|byte| *byte == 0).any(|own| own == variable) {
        return None;
    }
    let line = std::fs::read(process.join("cmdline")).ok()?;
    Some(String::from_utf8_lossy(&line).replace('\0', " "))
}
