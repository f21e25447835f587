//! Servers that crash, hang, report progress for ever and restart.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use testkit::rogue::Step;

use super::super::proc;
use super::super::stage::{IDLE, SLACK, TOTAL};
use super::super::trial::{FRAIL, Trial, answer, signal};
use super::Done;
use crate::Failure;

/// F1: with another call in flight, which is lost too.
pub(super) async fn crash(trial: &mut Trial<'_>) -> Result<Done, Failure> {
    let Some(server) = trial.stage.victim(&FRAIL) else { return Ok(Done::Skipped) };
    let beside = trial.ask(server, |_| vec![Step::Hang]);
    let crash = trial.ask(server, |_| vec![Step::Exit(7)]);
    let (first, second) = tokio::join!(trial.who(1).call(&beside), async {
        trial.arrived(&beside).await?;
        Ok::<_, Failure>(trial.who(2).call(&crash).await)
    });
    trial.expect(first, &["unknown"], Duration::ZERO, IDLE.min(SLACK) + SLACK);
    trial.expect_soon(second?, &["unknown"]);
    trial.works(server).await;
    Ok(Done::Inflicted)
}

/// F2: a call that was not sent is sent once the server is back.
pub(super) async fn dead_before(trial: &mut Trial<'_>) -> Result<Done, Failure> {
    let Some(server) = trial.stage.victim(&FRAIL) else { return Ok(Done::Skipped) };
    trial.works(server).await;
    for process in trial.processes(server) {
        signal(process, Signal::KILL)?;
        let begun = Instant::now();
        while proc::lives(process) && begun.elapsed() < SLACK {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    // What the pipe took before its end was heard of may have been read, for all we know.
    let ask = trial.ask(server, |nonce| vec![answer(nonce)]);
    let record = trial.who(0).call(&ask).await;
    trial.expect(record, &["ok", "unknown"], Duration::ZERO, TOTAL + SLACK);
    trial.works(server).await;
    Ok(Done::Inflicted)
}

/// F3: over every transport and in both eras.
pub(super) async fn hang(trial: &mut Trial<'_>) -> Result<Done, Failure> {
    let servers = ["a0", "l0", "h", "hl"];
    let asks = servers.map(|server| trial.ask(server, |_| vec![Step::Hang]));
    for record in trial.all(&asks).await {
        trial.expect(record, &["unknown"], IDLE, IDLE + SLACK);
    }
    // Sessions of a legacy HTTP server share ids, so what it writes down does not say whose it was.
    for ask in &asks[..3] {
        trial.written(&format!("cancelled {}", ask.nonce), SLACK).await?;
    }
    Ok(Done::Inflicted)
}

/// F4: each progress report resets the idle timeout, not the total timeout of the call.
pub(super) async fn progress(trial: &mut Trial<'_>) -> Result<Done, Failure> {
    let report = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$TOKEN,"progress":1}}"#;
    let steps = |_: &str| -> Vec<Step> {
        (0..30).flat_map(|_| [Step::Message(report.to_owned()), Step::Sleep(300)]).collect()
    };
    let asks = ["a1", "l1", "h"].map(|server| trial.ask(server, steps));
    for record in trial.all(&asks).await {
        if record.progress < 3 {
            trial.fail(format!("call `{}`: {} reports", record.nonce, record.progress));
        }
        trial.expect(record, &["unknown"], TOTAL, TOTAL + SLACK);
    }
    Ok(Done::Inflicted)
}

/// F17: while calls are made all the time.
pub(super) async fn restart(trial: &mut Trial<'_>) -> Result<Done, Failure> {
    let Some(server) = trial.stage.victim(&["h", "hl"]) else { return Ok(Done::Skipped) };
    let handshakes = || -> Result<u32, Failure> { Ok(trial.stage.ledger()?.times("initialize")) };
    let before = handshakes()?;
    let calls = async {
        let mut records = Vec::new();
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(2) {
            let asks: Vec<_> =
                (0..4).map(|_| trial.ask(server, |nonce| vec![answer(nonce)])).collect();
            records.extend(trial.all(&asks).await);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        records
    };
    let restart = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        trial.stage.remote(server).restart().await
    };
    let (records, restarted) = tokio::join!(calls, restart);
    restarted?;
    let made = handshakes()? - before;
    // One for each who has a connection, at most twice, and the gateway's own; never one a call.
    if server == "hl" && made as usize > 2 * trial.stage.principals.len() + 2 {
        trial.fail(format!("{made} handshakes for one restart"));
    }
    for record in records {
        let by = TOTAL + SLACK;
        trial.expect(record, &["ok", "unknown", "not sent"], Duration::ZERO, by);
    }
    for _ in 0..trial.stage.principals.len() {
        trial.works(server).await;
    }
    Ok(Done::Inflicted)
}

/// F28: the child of a launcher outlives it, and is not left behind.
pub(super) async fn launcher(trial: &mut Trial<'_>) -> Result<Done, Failure> {
    let Some(server) = trial.stage.victim(&["launched"]) else { return Ok(Done::Skipped) };
    trial.works(server).await;
    let ask = trial.ask(server, |nonce| vec![Step::Sleep(300), answer(nonce)]);
    let processes = trial.processes(server);
    let (record, killed) = tokio::join!(trial.who(0).call(&ask), async {
        trial.arrived(&ask).await?;
        processes.iter().try_for_each(|process| signal(*process, Signal::KILL))
    });
    killed?;
    trial.expect(record, &["ok", "unknown"], Duration::ZERO, IDLE + SLACK);
    trial.works(server).await;
    // The launcher is buried with its server, not before: nobody else may get the number of its group.
    let ask = trial.ask(server, |_| vec![Step::Exit(0)]);
    let record = trial.who(1).call(&ask).await;
    trial.expect_soon(record, &["unknown"]);
    trial.works(server).await;
    Ok(Done::Inflicted)
}
