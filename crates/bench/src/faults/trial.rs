//! One fault, inflicted once: the calls made meanwhile, and their violations.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use testkit::rogue::Step;

use super::cases::Ran;
use super::check::all;
use super::client::{Ask, Principal};
use super::proc;
use super::record::{Record, wrong};
use super::stage::{SLACK, Stage, TOTAL, canary, mark, next};
use crate::Failure;
use crate::chance::Chance;

/// Servers that may crash.
pub(super) const FRAIL: [&str; 6] = ["a0", "a1", "a2", "a3", "a4", "a5"];

/// One fault, inflicted once.
#[derive(Debug)]
pub(super) struct Trial<'a> {
    pub(super) stage: &'a Stage,
    pub(super) chance: Chance,
    fault: &'static str,
    pub(super) records: Vec<Record>,
    pub(super) violations: Vec<String>,
    /// True if there is time for steps that take half a minute.
    pub(super) thorough: bool,
}

/// The answer of a working server: the nonce.
pub(super) fn answer(nonce: &str) -> Step {
    Step::result(&json!({ "content": [{ "type": "text", "text": nonce }] }))
}

/// A step that writes these bytes.
pub(super) fn text(text: &str) -> Step {
    Step::Text(text.to_owned())
}

impl<'a> Trial<'a> {
    pub(super) fn new(
        stage: &'a Stage,
        fault: &'static str,
        chance: Chance,
        thorough: bool,
    ) -> Self {
        Self { stage, chance, fault, records: Vec::new(), violations: Vec::new(), thorough }
    }

    /// The `n`th caller, modulo their number.
    pub(super) fn who(&self, n: usize) -> &'a Principal {
        &self.stage.principals[n % self.stage.principals.len()]
    }

    /// A call of a server that takes these steps, which may contain the call's nonce.
    pub(super) fn ask(&self, server: &str, steps: impl FnOnce(&str) -> Vec<Step>) -> Ask {
        self.ask_through(server, None, steps)
    }

    /// The same, with the fault that the proxy before the server applies.
    pub(super) fn ask_through(
        &self,
        server: &str,
        proxy: Option<&str>,
        steps: impl FnOnce(&str) -> Vec<Step>,
    ) -> Ask {
        let nonce = format!("{}-{}", self.fault, next());
        let mut arguments = json!({
            "nonce": nonce, "secret": canary("argument"), "steps": steps(&nonce),
        });
        if let Some(proxy) = proxy {
            arguments["proxy"] = proxy.into();
        }
        Ask { tool: format!("{server}__write"), nonce, arguments: arguments.to_string() }
    }

    /// Makes these calls concurrently, each by another caller.
    pub(super) async fn all(&self, asks: &[Ask]) -> Vec<Record> {
        all(asks.iter().enumerate().map(|(n, ask)| self.who(n).call(ask)).collect()).await
    }

    /// Records a violation.
    pub(super) fn fail(&mut self, what: impl Into<String>) {
        self.violations.push(what.into());
    }

    /// Checks a call: it must have one of these outcomes, between these times.
    pub(super) fn expect(&mut self, record: Record, ways: &[&str], from: Duration, by: Duration) {
        let (word, took) = (record.outcome.word(), record.took);
        let about = format!("call `{}` of `{}`", record.nonce, record.principal);
        if !ways.contains(&word) {
            let said: String = record.said.chars().take(300).collect();
            self.fail(format!(
                "{about}: `{word}` instead of `{}`; {:?} {said}",
                ways.join("` or `"),
                record.outcome
            ));
        }
        if took < from || took > by {
            self.fail(format!("{about}: `{word}` after {took:?}, not within {from:?} to {by:?}"));
        }
        self.records.push(record);
    }

    /// Checks a call that must end immediately, with one of these outcomes.
    pub(super) fn expect_soon(&mut self, record: Record, ways: &[&str]) {
        self.expect(record, ways, Duration::ZERO, SLACK);
    }

    /// Checks that the server works: a call of it succeeds, after a while if it is restarting.
    pub(super) async fn works(&mut self, server: &str) {
        let ask = self.ask(server, |nonce| vec![answer(nonce)]);
        let who = self.who(self.records.len());
        let record = who.call(&ask).await;
        self.expect(record, &["ok"], Duration::ZERO, TOTAL + SLACK);
    }

    /// Waits until the log of the servers has this line.
    pub(super) async fn written(&mut self, line: &str, by: Duration) -> Result<(), Failure> {
        let begun = Instant::now();
        while self.stage.ledger()?.times(line) == 0 {
            if begun.elapsed() > by {
                self.fail(format!("`{line}` was not written within {by:?}"));
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    /// Makes a call, and returns once the server has received it.
    pub(super) async fn arrived(&self, ask: &Ask) -> Result<(), Failure> {
        let begun = Instant::now();
        while self.stage.ledger()?.times(&ask.nonce) == 0 {
            if begun.elapsed() > TOTAL + SLACK {
                return Err(format!("call `{}` never arrives", ask.nonce).into());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    /// The processes of a server, as the gateway started them.
    pub(super) fn processes(&self, server: &str) -> Vec<u32> {
        let children = proc::children(self.stage.pid);
        let ours = children.iter().filter(|child| child.told().0.contains(&mark(server)));
        ours.map(|child| child.process).collect()
    }

    /// Ends a trial with a gateway of its own.
    pub(super) fn done(mut self) -> Result<Ran, Failure> {
        self.end()?;
        Ok(Ran { records: self.records, violations: self.violations })
    }

    /// Moves the records to the stage, and adds the violations of the invariants.
    pub(super) fn end(&mut self) -> Result<(), Failure> {
        let ledger = self.stage.ledger()?;
        self.violations.extend(self.records.iter().filter_map(|record| wrong(record, &ledger)));
        let mut records = self.stage.records.lock();
        records.extend(self.records.iter().cloned());
        Ok(())
    }
}

/// Sends a process a signal.
pub(super) fn signal(process: u32, signal: Signal) -> Result<(), Failure> {
    let pid = Pid::from_raw(process.cast_signed()).ok_or("no process")?;
    Ok(kill_process(pid, signal)?)
}
