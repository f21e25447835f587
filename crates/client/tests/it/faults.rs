//! Servers that hang, lie, flood, trickle and break off: the caller's results, and their times.

use std::time::{Duration, Instant};

use consort_client::{
    CallEffect, ClientCallError, ClientSettings, CloseReason, Limits, PendingCallEvent,
    TimeLimitKind,
};
use serde_json::json;
use testkit::rogue::{Manner, Step};

use crate::{Pair, WAYS, Way, complete, quick, result, tool, write};

/// Tolerance for the time of an answer.
const SLACK: Duration = Duration::from_secs(1);

fn manner(way: Way) -> Manner {
    if way == Way::Http { Manner::modern() } else { Manner::legacy() }
}

fn text(text: &str) -> Step {
    Step::Text(text.to_owned())
}

/// Frames a message as a line of stdio or an SSE event.
fn framed(way: Way, payload: &str) -> String {
    if way == Way::Stdio { format!("{payload}\n") } else { format!("data: {payload}\n\n") }
}

const ANSWER: &str = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"n":7}}"#;

/// Checks that the call ended by this limit, at its time.
#[track_caller]
fn timed_out(
    error: &ClientCallError,
    limit: TimeLimitKind,
    settings: &ClientSettings,
    begun: Instant,
) {
    let ClientCallError::TimedOut { kind, sent: true, .. } = error else { panic!("{error}") };
    assert_eq!(*kind, limit);
    assert_eq!(error.effect(), CallEffect::Unknown);
    let time =
        if limit == TimeLimitKind::Idle { settings.times.idle } else { settings.times.total };
    let took = begun.elapsed();
    assert!(took >= time && took < time + SLACK, "{took:?}");
}

// F3
#[tokio::test]
async fn a_call_that_hangs_ends_in_time_and_the_server_is_told() {
    for way in WAYS {
        for manner in [Manner::legacy(), Manner::modern()] {
            if way == Way::Sse && manner.modern {
                continue;
            }
            let modern = manner.modern;
            let pair = Pair::new(way, manner).await;
            let begun = Instant::now();
            let error = pair.write(&[Step::Hang]).await.unwrap_err();
            timed_out(&error, TimeLimitKind::Idle, &quick(), begun);
            if way == Way::Http && modern {
                let http = pair.http.as_ref().unwrap();
                tokio::time::timeout(SLACK, http.gone(1)).await.expect("the stream closes");
            } else {
                let cancelled =
                    pair.until_seen(|message| message["method"] == "notifications/cancelled").await;
                let call = pair.until_seen(|message| message["params"]["name"] == "write").await;
                assert_eq!(cancelled["params"]["requestId"], call["id"], "{way:?}");
            }
            assert!(complete(pair.client.request(result("{}")).await).is_ok(), "{way:?} goes on");
        }
    }
}

// F3
#[tokio::test]
async fn a_late_answer_reaches_nobody() {
    for way in [Way::Stdio, Way::Sse] {
        let pair = Pair::new(way, Manner::legacy()).await;
        let late = [Step::Sleep(600), Step::Message(ANSWER.to_owned())];
        assert!(matches!(pair.write(&late).await, Err(ClientCallError::TimedOut { .. })));
        let next = [
            Step::Sleep(250),
            Step::Message(r#"{"jsonrpc":"2.0","id":$ID,"result":{"mine":1}}"#.to_owned()),
        ];
        let answer = pair.write(&next).await.unwrap();
        assert!(answer.get("mine").is_some());
        assert_eq!(pair.client.faults().stray, 1, "{way:?}");
    }
}

// F4
#[tokio::test]
async fn progress_keeps_a_call_alive_but_not_for_ever() {
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$TOKEN,"progress":1}}"#;
    for way in WAYS {
        let pair = Pair::new(way, manner(way)).await;
        let steps: Vec<Step> =
            (0..20).flat_map(|_| [Step::Message(progress.to_owned()), Step::Sleep(200)]).collect();
        let begun = Instant::now();
        let mut call = pair.client.call(write(&steps));
        let mut seen = 0;
        let error = loop {
            match call.next().await.expect("an end comes") {
                PendingCallEvent::Progress(_) => seen += 1,
                PendingCallEvent::End(end) => break end.unwrap_err(),
                other => panic!("{other:?}"),
            }
        };
        timed_out(&error, TimeLimitKind::Total, &quick(), begun);
        assert!((5..=7).contains(&seen), "{way:?}: {seen}");
    }
}

// F5
#[tokio::test]
async fn bytes_that_say_nothing_do_not_keep_a_call_alive() {
    for way in WAYS {
        let pair = Pair::new(way, manner(way)).await;
        let nothing = if way == Way::Stdio { "\n" } else { ": still here\n\n" };
        let steps: Vec<Step> = (0..50).flat_map(|_| [text(nothing), Step::Sleep(20)]).collect();
        let begun = Instant::now();
        let error = pair.write(&steps).await.unwrap_err();
        timed_out(&error, TimeLimitKind::Idle, &quick(), begun);

        let trickle: Vec<Step> = (0..50).flat_map(|_| [text("x"), Step::Sleep(20)]).collect();
        let begun = Instant::now();
        let error = pair.write(&trickle).await.unwrap_err();
        timed_out(&error, TimeLimitKind::Idle, &quick(), begun);
    }
}

// F6
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_cut_anywhere_loses_the_call_unless_its_answer_was_whole() {
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$TOKEN,"progress":1}}"#;
    let transcripts = [
        format!("data: {ANSWER}\n\n"),
        format!(": hi\r\nevent: message\r\ndata: {progress}\r\n\r\ndata: {ANSWER}\r\n\r\n"),
        format!(
            "data: {progress}\n\ndata: {{\"jsonrpc\":\"2.0\",\ndata: \"id\":$ID,\"result\":{{\"content\":[],\"n\":7}}}}\n\n"
        ),
    ];
    let pair = Pair::new(Way::Http, Manner::modern()).await;
    for transcript in transcripts {
        // The placeholders are longer than what takes their place, so whole tokens are cut.
        let cuts = (0..=transcript.len()).filter(|at| transcript.is_char_boundary(*at));
        for at in cuts {
            let head = &transcript[..at];
            let torn =
                ["$", "$I", "$T", "$TO", "$TOK", "$TOKE"].iter().any(|part| head.ends_with(part));
            if torn {
                continue;
            }
            let begun = Instant::now();
            let answer = pair.write(&[text(head), Step::Cut]).await;
            assert!(begun.elapsed() < SLACK);
            let whole = head.ends_with("\n\n") && head.contains("\"n\":7")
                || head.ends_with("\r\n\r\n") && head.contains("\"n\":7");
            let whole = whole || head.ends_with("\r\n\r") && head.contains("\"n\":7");
            match answer {
                Ok(result) => {
                    assert!(whole, "{head:?}");
                    assert_eq!(result.get("n").unwrap().integer(), Some(7));
                }
                Err(ClientCallError::Unknown(CloseReason::Broken(_))) => {
                    assert!(!whole, "{head:?}");
                }
                Err(other) => panic!("{head:?}: {other}"),
            }
        }
    }
}

// F6, F1: the channel all calls share breaks.
#[tokio::test]
async fn a_server_that_dies_ends_every_call_at_once_and_says_why() {
    let pair = Pair::new(Way::Stdio, Manner::legacy()).await;
    let other = pair.client.clone();
    let waiting = tokio::spawn(async move { other.request(write(&[Step::Hang])).await });
    pair.until_seen(|message| message["params"]["name"] == "write").await;
    let begun = Instant::now();
    let error = pair.write(&[Step::Exit(7)]).await.unwrap_err();
    assert!(begun.elapsed() < SLACK);
    assert_eq!(error.effect(), CallEffect::Unknown);
    let ClientCallError::Unknown(CloseReason::Exited { status, incident, stderr }) = &error else {
        panic!("{error:?}")
    };
    assert_eq!((status.as_str(), stderr.for_operator()), ("exit status: 7", ""));
    assert_eq!(
        error.to_string(),
        format!(
            "outcome unknown: the process exited (exit status: 7, incident {incident}); check before retrying"
        )
    );
    // Whoever called it is given the same id.
    let ClientCallError::Unknown(other) = waiting.await.unwrap().unwrap_err() else { panic!() };
    assert_eq!(other, pair.client.closed().await);
    assert!(other.to_string().contains(&incident.to_string()), "{other}");
    // What is asked of a dead server never leaves.
    let error = pair.client.request(result("{}")).await.unwrap_err();
    assert_eq!(error.effect(), CallEffect::None);
}

// F8
#[tokio::test]
async fn what_is_malformed_is_ignored_and_what_follows_is_not() {
    let bad = [
        "",
        "not json",
        "{",
        "[]",
        "\"text\"",
        r#"{"jsonrpc":"1.0","id":$ID,"result":{}}"#,
        r#"{"id":$ID,"result":{}}"#,
        r#"{"jsonrpc":"2.0","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":$ID,"result":{},"error":{"code":1,"message":"both"}}"#,
        r#"{"jsonrpc":"2.0","id":$ID,"result":"text"}"#,
        r#"{"jsonrpc":"2.0","id":$ID,"id":$ID,"result":{}}"#,
        r#"[{"jsonrpc":"2.0","id":$ID,"result":{}}]"#,
        r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":"x"}}"#,
    ];
    for way in WAYS {
        let pair = Pair::new(way, manner(way)).await;
        let mut steps: Vec<Step> =
            bad.iter().map(|line| Step::Message((*line).to_owned())).collect();
        steps.push(Step::Message(ANSWER.to_owned()));
        let result = pair.write(&steps).await.unwrap();
        assert_eq!(result.get("n").unwrap().integer(), Some(7), "{way:?}");
        assert_eq!(pair.client.faults().malformed, bad.len() as u64 - 1, "{way:?}");
    }
}

// F8
#[tokio::test]
async fn a_server_that_sends_only_garbage_is_given_up() {
    for way in WAYS {
        let pair = Pair::new(way, manner(way)).await;
        let begun = Instant::now();
        let garbage: Vec<Step> = (0..100).map(|_| Step::Message("garbage".to_owned())).collect();
        let error = pair.write(&[garbage, vec![Step::Hang]].concat()).await.unwrap_err();
        assert!(
            matches!(error, ClientCallError::Unknown(CloseReason::Malformed)),
            "{way:?}: {error}"
        );
        assert!(begun.elapsed() < SLACK);
        assert_eq!(pair.client.faults().malformed, 100);
    }
}

fn small() -> ClientSettings {
    let limits = Limits { message_bytes: 64 << 10, skipped_bytes: 1 << 20, ..Limits::default() };
    ClientSettings { limits, ..quick() }
}

// F9
#[tokio::test]
async fn an_answer_that_is_too_large_ends_its_own_call_only() {
    let pair = Pair::with(Way::Stdio, Manner::legacy(), small()).await;
    let other = pair.client.clone();
    let waiting = tokio::spawn(async move {
        other.request(write(&[Step::Sleep(300), Step::Message(ANSWER.to_owned())])).await
    });
    pair.until_seen(|message| message["params"]["name"] == "write").await;
    let giant = [
        text(r#"{"jsonrpc":"2.0","id":$ID,"result":{"text":""#),
        Step::Repeat("x".to_owned(), 500 << 10),
        text("\"}}\n"),
    ];
    let error = pair.write(&giant).await.unwrap_err();
    assert_eq!(error.to_string(), "the response is larger than 65536 bytes");
    assert!(complete(waiting.await.unwrap()).is_ok());
    assert_eq!(pair.client.faults().oversized, 1);
}

// F9
#[tokio::test]
async fn a_message_without_end_ends_the_connection_and_takes_no_memory() {
    fn resident() -> usize {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        statm.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
    }
    // What the rogue says over SSE waits in this very process, so it would count against us.
    for way in [Way::Stdio, Way::Http] {
        let mut settings = quick();
        settings.times.idle = Duration::from_secs(20);
        settings.times.total = Duration::from_mins(1);
        let limit = settings.limits.message_bytes;
        let pair = Pair::with(way, manner(way), settings).await;
        let before = resident();
        let flood: Vec<Step> = (0..64).map(|_| Step::Repeat("x".to_owned(), 4 << 20)).collect();
        let error = pair.write(&[flood, vec![Step::Hang]].concat()).await.unwrap_err();
        match way {
            Way::Http => assert!(matches!(error, ClientCallError::TooLarge { .. }), "{error}"),
            _ => assert!(
                matches!(error, ClientCallError::Unknown(CloseReason::Oversized)),
                "{error}"
            ),
        }
        // The rogue over HTTP lives in this process too and holds one chunk at a time.
        let growth = resident().saturating_sub(before);
        assert!(growth < 4 * limit + (64 << 20), "{way:?}: {} MiB", growth >> 20);
    }
}

// F10, F11
#[tokio::test]
async fn an_answer_counts_once_and_only_under_its_own_id() {
    for way in WAYS {
        let pair = Pair::new(way, manner(way)).await;
        let twice = [Step::Message(ANSWER.to_owned()), Step::Message(ANSWER.replace('7', "8"))];
        for _ in 0..20 {
            let result = pair.write(&twice).await.unwrap();
            assert_eq!(result.get("n").unwrap().integer(), Some(7), "{way:?}");
        }
        let wrong = [
            Step::Answer(json!("$ID")),
            Step::Answer(json!(999_999)),
            Step::Answer(json!(-1)),
            Step::Answer(json!("1")),
            Step::Message(r#"{"jsonrpc":"2.0","id":"$ID","result":{"n":8}}"#.to_owned()),
            Step::Message(r#"{"jsonrpc":"2.0","id":$ID.0,"result":{"n":8}}"#.to_owned()),
            Step::Message(
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"whose?"}}"#.to_owned(),
            ),
            Step::Sleep(20),
            Step::Message(ANSWER.to_owned()),
        ];
        let result = pair.write(&wrong).await.unwrap();
        assert_eq!(result.get("n").unwrap().integer(), Some(7), "{way:?}");
    }
}

// F12
#[tokio::test]
async fn noise_between_messages_is_harmless() {
    let pair = Pair::new(Way::Stdio, Manner::legacy()).await;
    let controls: String = (0u8..0x20).filter(|byte| *byte != b'\n').map(char::from).collect();
    let noise = [
        "Server listening…\n",
        "\r\n",
        "\n\n",
        "\u{1b}[31mred\u{1b}[0m\n",
        "{\"level\":\"info\"}\n",
        "null\n",
        "\u{0}\u{0}\n",
        "\u{80}\u{9f}\u{feff}\u{202e}\n",
        "Ω≈ç√∫˜µ≤≥÷ <script>alert(1)</script> $HOME %s%n {{7*7}}\n",
        &format!("{controls}\n"),
    ];
    for line in noise {
        let steps = [text(line), text(&format!("{ANSWER}\r\n")), text(line)];
        let result = pair.write(&steps).await.unwrap();
        assert_eq!(result.get("n").unwrap().integer(), Some(7), "{line:?}");
    }
}

// F13
#[tokio::test]
async fn a_message_is_whole_however_it_is_split() {
    let answer = r#"{"jsonrpc":"2.0","id":$ID,"result":{"text":"日本€𐍈\u00e9","n":7}}"#;
    for way in [Way::Stdio, Way::Http] {
        let pair = Pair::new(way, manner(way)).await;
        let frame = framed(way, answer);
        let result = pair.write(&[Step::Dribble, text(&frame)]).await.unwrap();
        assert_eq!(result.text("text").as_deref(), Some("日本€𐍈é"), "{way:?}");
    }
}

// F13
#[tokio::test]
async fn invalid_utf8_is_malformed_even_where_nobody_looks() {
    for way in [Way::Stdio, Way::Http] {
        let pair = Pair::new(way, manner(way)).await;
        let [start, end] = [r#"{"jsonrpc":"2.0","id":$ID,"result":{"ignored":""#, r#""}}"#];
        let (start, end) = match way {
            Way::Stdio => (start.to_owned(), format!("{end}\n")),
            _ => (format!("data: {start}"), format!("{end}\n\n")),
        };
        for bytes in ["ff", "c080", "eda080", "e282"] {
            let steps = [
                text(&start),
                Step::Hex(bytes.to_owned()),
                text(&end),
                Step::Message(ANSWER.to_owned()),
            ];
            let result = pair.write(&steps).await.unwrap();
            assert_eq!(result.get("n").unwrap().integer(), Some(7), "{way:?} {bytes}");
        }
        assert_eq!(pair.client.faults().malformed, 4);
    }
}

#[tokio::test]
async fn a_caller_who_leaves_cancels_the_call() {
    for way in WAYS {
        let pair = Pair::new(way, Manner::legacy()).await;
        let mut call = pair.client.call(write(&[Step::Hang]));
        let leaving = tokio::time::timeout(Duration::from_millis(50), call.next()).await;
        assert!(leaving.is_err());
        drop(call);
        pair.until_seen(|message| message["method"] == "notifications/cancelled").await;

        let cancel = consort_client::CancelHandle::new();
        let request = write(&[Step::Hang]).cancelled_by(&cancel);
        let is_call = |message: &&serde_json::Value| message["params"]["name"] == "write";
        let (end, ()) = tokio::join!(pair.client.request(request), async {
            let what = "the second call is at the server";
            testkit::wait_until_async(what, async || {
                pair.seen().await.iter().filter(is_call).count() == 2
            })
            .await;
            cancel.cancel();
        });
        assert!(matches!(end, Err(ClientCallError::Cancelled { sent: true })), "{way:?}");
    }
}

#[tokio::test]
async fn a_tool_may_have_limits_of_its_own() {
    let mut settings = quick();
    let patient = consort_client::ToolTimes {
        idle: Some(Duration::from_secs(5)),
        total: Some(Duration::from_secs(5)),
    };
    settings.tools.insert("write".to_owned(), patient);
    let pair = Pair::with(Way::Stdio, Manner::legacy(), settings).await;
    assert!(pair.write(&[Step::Sleep(600), Step::Message(ANSWER.to_owned())]).await.is_ok());
    let impatient = write(&[Step::Hang]).idle(Duration::from_millis(50));
    let begun = Instant::now();
    assert!(matches!(pair.client.request(impatient).await, Err(ClientCallError::TimedOut { .. })));
    assert!(begun.elapsed() < Duration::from_secs(2));
    assert!(complete(pair.client.request(tool("seen", &json!({}))).await).is_ok());
}

#[tokio::test]
async fn an_answer_that_is_nested_too_deep_ends_its_own_call_at_once() {
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    for way in WAYS {
        let mut settings = quick();
        settings.times.idle = Duration::from_mins(5);
        settings.times.total = Duration::from_mins(5);
        let pair = Pair::with(way, manner(way), settings).await;
        for answer in [
            format!(r#"{{"jsonrpc":"2.0","id":$ID,"result":{{"content":[],"x":{deep}}}}}"#),
            // As the TypeScript SDK orders them.
            format!(r#"{{"result":{{"content":[],"x":{deep}}},"jsonrpc":"2.0","id":$ID}}"#),
        ] {
            let error = pair.write(&[Step::Message(answer), Step::Hang]).await.unwrap_err();
            assert!(matches!(error, ClientCallError::TooDeep { limit: 128 }), "{way:?}: {error}");
            assert!(error.to_string().contains("128 levels"), "{error}");
            assert_eq!(error.effect(), CallEffect::Answered);
        }
        let good = pair.write(&[Step::Message(ANSWER.to_owned())]).await;
        assert!(good.is_ok(), "{way:?}: the connection serves others");
    }
}
