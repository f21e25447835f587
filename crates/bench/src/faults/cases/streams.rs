//! Streams that trickle or break off, and half-open connections.

use std::time::Duration;

use rustix::process::Signal;
use testkit::rogue::Step;

use super::super::stage::{IDLE, SLACK};
use super::super::trial::{FRAIL, Trial, answer, signal, text};
use super::Done;
use crate::Failure;

/// F5: bytes that are no events keep no call alive.
pub(super) async fn slow(trial: &mut Trial<'_>) -> Result<Done, Failure> {
    let comments = |nonce: &str| -> Vec<Step> {
        let comments = (0..60).flat_map(|_| [text(": still here\n\n"), Step::Sleep(50)]);
        comments.chain([answer(nonce)]).collect()
    };
    let letters = |_: &str| -> Vec<Step> {
        (0..24).flat_map(|_| [text("x"), Step::Sleep(50)]).chain([text("\n")]).collect()
    };
    let asks = [
        trial.ask("h", comments),
        trial.ask_through("h", Some("trickle 40"), |nonce| vec![answer(nonce)]),
        trial.ask("a2", letters),
    ];
    for record in trial.all(&asks).await {
        trial.expect(record, &["unknown"], IDLE, IDLE + SLACK);
    }
    // Nothing else is heard from who is in the middle of a line, and on a busy machine its pauses are longer.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    trial.works("a2").await;
    Ok(Done::Inflicted)
}

/// F6: cut by the server, at known message boundaries; and by the proxy, at any byte.
pub(super) async fn cut(trial: &mut Trial<'_>) -> Result<Done, Failure> {
    let report = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$TOKEN,"progress":1}}"#;
    for n in 0..8 {
        let transcript = |nonce: &str| {
            format!(
                ": hi\ndata: {report}\n\ndata: {{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{{\"content\":\
                 [{{\"type\":\"text\",\"text\":\"{nonce}\"}}]}}}}\n\n"
            )
        };
        let mut at = trial.chance.size(0..=250);
        let ask = trial.ask("h", |nonce| {
            let whole = transcript(nonce);
            at = at.min(whole.len());
            // A placeholder is not cut: what takes its place is shorter.
            at = whole[..at].rfind('$').filter(|from| at - from < 6).unwrap_or(at);
            if n == 0 {
                at = whole.len();
            }
            vec![text(&whole[..at]), Step::Cut]
        });
        let record = trial.who(n).call(&ask).await;
        let whole = at == transcript(&ask.nonce).len();
        trial.expect_soon(record, &[if whole { "ok" } else { "unknown" }]);
    }
    for n in 0..8 {
        let how = if n % 2 == 0 { "cut" } else { "reset" };
        let at = if n < 2 { 0 } else { trial.chance.within(0..=320) };
        let server = if n < 6 { "h" } else { "hl" };
        let ask =
            trial.ask_through(server, Some(&format!("{how} {at}")), |nonce| vec![answer(nonce)]);
        let record = trial.who(n).call(&ask).await;
        // The head of an answer alone is longer than this.
        let ways: &[&str] = if at < 60 { &["unknown"] } else { &["unknown", "ok"] };
        trial.expect_soon(record, ways);
    }
    trial.works("h").await;
    trial.works("hl").await;
    Ok(Done::Inflicted)
}

/// F7: no response arrives, or the request is swallowed, or the server is stopped.
pub(super) async fn half_open(trial: &mut Trial<'_>) -> Result<Done, Failure> {
    let stopped = *trial.chance.pick(&FRAIL);
    trial.works(stopped).await;
    let asks = [
        trial.ask_through("h", Some("stall"), |nonce| vec![answer(nonce)]),
        trial.ask_through("h", Some("hold"), |nonce| vec![answer(nonce)]),
        trial.ask(stopped, |nonce| vec![answer(nonce)]),
    ];
    let processes = trial.processes(stopped);
    processes.iter().try_for_each(|process| signal(*process, Signal::STOP))?;
    let records = trial.all(&asks).await;
    processes.iter().try_for_each(|process| signal(*process, Signal::CONT))?;
    for record in records {
        trial.expect(record, &["unknown"], IDLE, IDLE + SLACK);
    }
    // What it then answers late reaches nobody.
    tokio::time::sleep(Duration::from_millis(50)).await;
    trial.works(stopped).await;
    trial.works("h").await;
    Ok(Done::Inflicted)
}
