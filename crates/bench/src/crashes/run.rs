//! A running writer, and its output until its end.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::Failure;

/// Distance between the first numbers of two writers.
pub(super) const ROUND: u64 = 1_000_000;

/// Time limit of a writer that is not killed.
const PATIENCE: Duration = Duration::from_mins(1);

/// Output of a writer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) ready: bool,
    /// Acknowledged writes.
    pub(super) did: Vec<u64>,
    pub(super) failed: Vec<u64>,
    /// Number of calls that a lenient ledger counts.
    pub(super) sum: Option<u64>,
}

pub(super) struct Running {
    child: Child,
    reader: Option<JoinHandle<Said>>,
    /// A signal when it begins to write, and one after each write.
    news: Receiver<()>,
}

impl Running {
    pub(super) fn start(command: &mut Command) -> Result<Self, Failure> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let out = BufReader::new(child.stdout.take().ok_or("its output is piped")?);
        let (tell, news) = channel();
        let reader = std::thread::spawn(move || {
            let mut said = Said::default();
            // What is cut off by the end is not said.
            for line in out.split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).into_owned();
                match line.split_once(' ') {
                    None if line == "ready" => said.ready = true,
                    Some(("did", number)) => said.did.extend(number.parse::<u64>()),
                    Some(("failed", number)) => said.failed.extend(number.parse::<u64>()),
                    Some(("sum", number)) => said.sum = number.parse().ok(),
                    _ => {}
                }
                let _ = tell.send(());
            }
            said
        });
        Ok(Self { child, reader: Some(reader), news })
    }

    /// Returns its output, once it has ended.
    fn said(&mut self) -> Result<Said, Failure> {
        let reader = self.reader.take().ok_or("it was read before")?;
        Ok(reader.join().map_err(|_| "the reader panicked")?)
    }

    /// Waits until it begins to write.
    pub(super) fn ready(&self) -> Result<(), Failure> {
        self.news.recv_timeout(PATIENCE).map_err(|_| "the writer could not begin".into())
    }

    /// Waits until it has written this often.
    pub(super) fn written(&self, times: u64) -> Result<(), Failure> {
        for _ in 0..times {
            self.news.recv_timeout(PATIENCE).map_err(|_| "the writer does not write")?;
        }
        Ok(())
    }

    /// Kills it. An error if it had ended by itself.
    pub(super) fn kill(mut self) -> Result<Said, Failure> {
        if let Some(status) = self.child.try_wait()? {
            return Err(format!("the writer ended by itself: {status}").into());
        }
        self.child.kill()?;
        self.child.wait()?;
        self.said()
    }

    /// Waits for its end.
    pub(super) fn end(mut self) -> Result<(ExitStatus, Said), Failure> {
        let until = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait()? {
                break status;
            }
            if Instant::now() > until {
                self.child.kill()?;
                self.child.wait()?;
                return Err("the writer hangs".into());
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        Ok((status, self.said()?))
    }
}

/// Ends the writer, so that none is left behind after a failure.
impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
