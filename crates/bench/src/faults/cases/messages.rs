//! Messages that are malformed, too large, have a wrong id, or are no messages.

use std::time::Duration;

use serde_json::json;
use testkit::rogue::Step;

use super::super::stage::{IDLE, SLACK};
use super::super::trial::{FRAIL, Trial, answer, text};
use super::Done;
use crate::Failure;

const MALFORMED: [&str; 11] = [
    "not json",
    "{",
    "[]",
    "\"text\"",
    r#"{"jsonrpc":"1.0","id":$ID,"result":{}}"#,
    r#"{"jsonrpc":"2.0","result":{}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{},"error":{"code":1,"message":"both"}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":"text"}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"id":$ID,"result":{}}"#,
    r#"[{"jsonrpc":"2.0","id":$ID,"result":{}}]"#,
    r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":"x"}}"#,
];

/// Calls servers of every kind; all calls must succeed.
async fn fine(trial: &mut Trial<'_>, steps: impl Fn(&str) -> Vec<Step>) {
    for (n, server) in ["a3", "l0", "h", "hl"].into_iter().enumerate() {
        let ask = trial.ask(server, &steps);
        let record = trial.who(n + 1).call(&ask).await;
        trial.expect_soon(record, &["ok"]);
    }
}

/// F8: malformed messages are skipped; a server that sends nothing else is given up.
pub(super) async fn malformed(trial: &mut Trial<'_>) -> Result<Done, Failure> {
    let bad = *trial.chance.pick(&MALFORMED);
    fine(trial, |nonce| {
        let bad = [bad, MALFORMED[0], bad].map(|bad| Step::Message(bad.to_owned()));
        bad.into_iter().chain([answer(nonce)]).collect()
    })
    .await;
    let Some(server) = trial.stage.victim(&FRAIL) else { return Ok(Done::Inflicted) };
    let ask = trial.ask(server, |_| {
        let garbage = (0..100).map(|_| Step::Message("garbage".to_owned()));
        garbage.chain([Step::Hang]).collect()
    });
    let record = trial.who(0).call(&ask).await;
    trial.expect_soon(record, &["unknown"]);
    trial.works(server).await;
    Ok(Done::Inflicted)
}

/// F9: a response beyond the limit ends its own call; an endless one ends the connection.
pub(super) async fn giant(trial: &mut Trial<'_>) -> Result<Done, Failure> {
    let Some(server) = trial.stage.victim(&FRAIL) else { return Ok(Done::Skipped) };
    let beside = trial.ask(server, |nonce| vec![Step::Sleep(200), answer(nonce)]);
    let giant = trial.ask(server, |_| {
        let start = text(r#"{"jsonrpc":"2.0","id":$ID,"result":{"text":""#);
        let filling = (0..17).map(|_| Step::Repeat("x".to_owned(), 1 << 20));
        [start].into_iter().chain(filling).chain([text("\"}}\n")]).collect()
    });
    let first = trial.who(1).call(&giant).await;
    trial.expect(first, &["unknown"], Duration::ZERO, IDLE + SLACK);
    let second = trial.who(0).call(&beside).await;
    trial.expect_soon(second, &["ok"]);
    let endless = trial.ask(server, |_| {
        let flood = (0..90).map(|_| Step::Repeat("x".to_owned(), 1 << 20));
        flood.chain([Step::Hang]).collect()
    });
    let record = trial.who(2).call(&endless).await;
    trial.expect(record, &["unknown"], Duration::ZERO, IDLE + SLACK);
    trial.works(server).await;
    Ok(Done::Inflicted)
}

/// F10: the first response counts, and the second is dropped.
pub(super) async fn twice(trial: &mut Trial<'_>) -> Result<Done, Failure> {
    fine(trial, |nonce| vec![answer(nonce), answer("somebody else")]).await;
    fine(trial, |nonce| vec![answer(nonce), answer(nonce)]).await;
    Ok(Done::Inflicted)
}

/// F11: a response to no known call is dropped.
pub(super) async fn wrong_ids(trial: &mut Trial<'_>) -> Result<Done, Failure> {
    let far = trial.chance.within(1_000_000..=2_000_000);
    fine(trial, |nonce| {
        vec![
            Step::Answer(json!(far)),
            Step::Answer(json!(-1)),
            Step::Answer(json!("1")),
            Step::Message(r#"{"jsonrpc":"2.0","id":"$ID","result":{}}"#.to_owned()),
            Step::Message(r#"{"jsonrpc":"2.0","id":$ID.0,"result":{}}"#.to_owned()),
            Step::Message(
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"?"}}"#.to_owned(),
            ),
            Step::Sleep(10),
            answer(nonce),
        ]
    })
    .await;
    Ok(Done::Inflicted)
}

/// F12: output of a program beside its messages is skipped.
pub(super) async fn noise(trial: &mut Trial<'_>) -> Result<Done, Failure> {
    let controls: String = (0u8..0x20).filter(|byte| *byte != b'\n').map(char::from).collect();
    let controls = format!("{controls}\n");
    let lines = [
        "Listening…\n",
        "\r\n\n",
        "\u{1b}[31mred\u{1b}[0m\n",
        "{\"level\":\"info\"}\n",
        "null\n",
        "\u{0}\u{0}\n",
        "\u{80}\u{9f}\u{feff}\u{202e}\n",
        controls.as_str(),
    ];
    for n in 0..4 {
        let line = *trial.chance.pick(&lines);
        let server = if n % 2 == 0 { "a4" } else { "l1" };
        let ask = trial.ask(server, |nonce| vec![text(line), answer(nonce), text(line)]);
        let record = trial.who(n).call(&ask).await;
        trial.expect_soon(record, &["ok"]);
    }
    Ok(Done::Inflicted)
}

/// F13: a message may be split anywhere; one with invalid UTF-8 is refused.
pub(super) async fn split(trial: &mut Trial<'_>) -> Result<Done, Failure> {
    fine(trial, |nonce| vec![Step::Dribble, answer(&format!("日本€𐍈 {nonce}"))]).await;
    for (n, server) in ["a3", "h"].into_iter().enumerate() {
        let bytes = *trial.chance.pick(&["ff", "c080", "eda080", "e282"]);
        let (start, end) = if server == "h" { ("data: ", "\n\n") } else { ("", "\n") };
        let ask = trial.ask(server, |nonce| {
            let start = format!(r#"{start}{{"jsonrpc":"2.0","id":$ID,"result":{{"x":""#);
            let end = format!("\"}}}}{end}");
            vec![text(&start), Step::Hex(bytes.to_owned()), text(&end), answer(nonce)]
        });
        let record = trial.who(n).call(&ask).await;
        trial.expect_soon(record, &["ok"]);
    }
    Ok(Done::Inflicted)
}
