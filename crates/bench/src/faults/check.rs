//! Final checks: of every call, of the ledger, of the logs, and of leftover processes.

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant};

use consort_audit::ledger::{CallFilter, LedgerRow, tail, verify};
use rustix::process::Signal;

use super::cases::Ran;
use super::proc;
use super::record::{Outcome, Record, wrong};
use super::stage::{Stage, canary};
use crate::Failure;

/// Time limit for a gateway to end, with its requests in progress and its programs.
const ENDING: Duration = Duration::from_secs(40);

/// Time limit for processes that were asked to end.
const GOING: Duration = Duration::from_secs(8);

/// Awaits all of these concurrently.
pub(super) async fn all<T: Send>(futures: Vec<impl Future<Output = T>>) -> Vec<T> {
    let mut futures: Vec<_> = futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(|cx| {
        let mut pending = false;
        for (future, done) in futures.iter_mut().filter(|(_, done)| done.is_none()) {
            match future.as_mut().poll(cx) {
                std::task::Poll::Ready(output) => *done = Some(output),
                std::task::Poll::Pending => pending = true,
            }
        }
        if pending { std::task::Poll::Pending } else { std::task::Poll::Ready(()) }
    })
    .await;
    futures.into_iter().filter_map(|(_, done)| done).collect()
}

/// Ends the gateway that a trial had of its own.
pub(super) async fn finish_own(mut ran: Ran, stage: Stage) -> Result<Ran, Failure> {
    ran.violations.extend(finish(stage).await?);
    Ok(ran)
}

/// Ends a gateway, and returns its violations.
pub(super) async fn finish(stage: Stage) -> Result<Vec<String>, Failure> {
    let mut violations = secrets_of_children(&stage);
    {
        let mut gateway = stage.gateway.lock().await;
        // It may have been told already.
        let _ = gateway.signal(Signal::TERM);
        match gateway.ended(ENDING).await {
            Ok(status) if status.success() => {}
            Ok(status) => violations.push(format!("I8: the gateway ended with {status}")),
            Err(_) => violations.push(format!("I8: the gateway does not end within {ENDING:?}")),
        }
    }
    stage.end_remotes().await?;
    violations.extend(left_behind(&stage).await);
    let records = stage.records.lock().clone();
    {
        // Again, for what was carried out after it was said not to be.
        let ledger = stage.ledger()?;
        violations.extend(records.iter().filter_map(|record| wrong(record, &ledger)));
    }
    let said = stage.stderr();
    if said.contains("panicked") {
        violations.push(format!("I8: {said}"));
    }
    violations.extend(written_down(&stage, &records)?);
    violations.extend(secrets(&stage, &said, &records));
    Ok(violations)
}

/// I5: the gateway's own ledger is intact, and agrees with each client about each call.
fn written_down(stage: &Stage, records: &[Record]) -> Result<Vec<String>, Failure> {
    let mut violations = Vec::new();
    let path = stage.folder.path().join("ledger.db");
    let report = verify(&path)?;
    if let Some(broken) = &report.broken {
        violations
            .push(format!("I5: the ledger is broken at {}: {}", broken.sequence, broken.reason));
    }
    if report.lost > 0 || !report.unfinished.is_empty() {
        let unfinished = report.unfinished.len();
        violations.push(format!("I5: {} calls are lost, {unfinished} have no end", report.lost));
    }
    let mut classes: HashMap<String, Vec<&'static str>> = HashMap::new();
    for row in tail(&path, usize::MAX, &CallFilter::default())? {
        if let LedgerRow::Call(call) = row {
            let class = call.outcome.map_or("unfinished", |class| class.as_str());
            classes.entry(call.digest).or_default().push(class);
        }
    }
    if report.dropped > 0 {
        return Ok(violations);
    }
    for record in records {
        let found = classes.get(&record.digest).map(Vec::as_slice).unwrap_or_default();
        let right: &[&str] = match record.outcome {
            Outcome::Ok => &["ok", "tool_error"],
            // An answer that made no sense is an error there.
            Outcome::Unknown => &["outcome_unknown", "error"],
            Outcome::NotSent => &["not_sent"],
            Outcome::Rejected => &["rejected"],
            Outcome::Error(_) => &["error", "rejected"],
            Outcome::Lost(_) => continue,
        };
        // A tool that nobody has is refused before it is a call.
        let unknown_tool = matches!(record.outcome, Outcome::Error(_)) && found.is_empty();
        if !unknown_tool && !matches!(found, [class] if right.contains(class)) {
            violations.push(format!(
                "I5: of `{}`, which is {:?}, the ledger says {found:?}",
                record.nonce,
                record.outcome.word()
            ));
        }
    }
    Ok(violations)
}

/// I6: no secret appears in logs, the ledger or responses.
fn secrets(stage: &Stage, said: &str, records: &[Record]) -> Vec<String> {
    let ledger = ["ledger.db", "ledger.db-wal"]
        .map(|name| fs::read(stage.folder.path().join(name)).unwrap_or_default());
    let has = |bytes: &[u8]| memchr::memmem::find(bytes, b"canary-").is_some();
    let mut violations = Vec::new();
    if has(said.as_bytes()) {
        violations.push("I6: a secret is in the log".to_owned());
    }
    if ledger.iter().any(|bytes| has(bytes)) {
        violations.push("I6: a secret is in the ledger".to_owned());
    }
    let told = records.iter().find(|record| has(record.said.as_bytes()));
    violations
        .extend(told.map(|record| format!("I6: a secret is in the answer to `{}`", record.nonce)));
    violations
}

/// I6: secrets in the gateway's environment are not in that of the servers.
fn secrets_of_children(stage: &Stage) -> Vec<String> {
    let secret = canary("env");
    let children = proc::children(stage.pid);
    let told = children.iter().map(proc::Child::told);
    told.filter(|(_, environment)| memchr::memmem::find(environment, secret.as_bytes()).is_some())
        .filter(|(command, _)| command.contains(super::server::WORD))
        .map(|(command, _)| format!("I6: a secret is in the environment of `{command}`"))
        .collect()
}

/// Returns leftover processes: those with the folder of the stage in their command line.
async fn left_behind(stage: &Stage) -> Vec<String> {
    let folder = stage.folder.path().to_string_lossy().into_owned();
    let running = || -> Vec<String> {
        let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
        let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
        let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
        lines.filter(|line| line.contains(&folder)).collect()
    };
    let begun = Instant::now();
    while !running().is_empty() && begun.elapsed() < GOING {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let left = running();
    left.into_iter().map(|line| format!("I7: left behind: {line}")).collect()
}
