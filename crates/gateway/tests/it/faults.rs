//! Servers that crash, hang, lie, flood and break off: the effects on clients of either era, and their timing.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use consort_client::Limits;
use serde_json::{Value, json};
use testkit::rogue::{Http, Manner, Step};

use crate::{SLACK, Served, at, hasty, quick, stdio, steps, until};
use testkit::raw::Peer;

const ANSWER: &str = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"n":7}}"#;

fn text(text: &str) -> Step {
    Step::Text(text.to_owned())
}

fn done() -> Step {
    Step::Message(ANSWER.to_owned())
}

/// A rogue behind a gateway, over each transport and in both eras.
struct Way {
    served: Served,
    http: Option<Http>,
}

impl Way {
    async fn all() -> Vec<Self> {
        let mut ways = Vec::new();
        for manner in [Manner::legacy(), Manner::modern()] {
            ways.push(Self { served: Served::over(&manner).await, http: None });
            ways.push(Self::http(manner).await);
        }
        ways
    }

    async fn http(manner: Manner) -> Self {
        let http = Http::start(manner).await;
        let served = Served::new(vec![hasty(at("r", &http.url()))], quick()).await;
        Self { served, http: Some(http) }
    }

    /// A line of stdio or an event of a stream.
    fn framed(&self, payload: &str) -> Step {
        let framed = if self.http.is_none() {
            format!("{payload}\n")
        } else {
            format!("data: {payload}\n\n")
        };
        Step::Text(framed)
    }

    /// Waits until a server received a cancellation, as a message or as a disconnect.
    async fn cancelled(&self, peer: &Peer, times: usize) {
        let told = async || {
            let seen = match &self.http {
                Some(http) => http.seen(),
                None => peer.seen("seen").await,
            };
            let told = seen.iter().filter(|m| m["method"] == "notifications/cancelled").count();
            (told >= times).then_some(())
        };
        match &self.http {
            Some(http) => {
                tokio::select! {
                    () = until("the server is told", told) => {}
                    () = http.gone(times) => {}
                }
            }
            None => until("the server is told", told).await,
        }
    }
}

/// A log of executions, written by the servers themselves.
pub(crate) struct Ledger(pub(crate) PathBuf);

impl Ledger {
    pub(crate) fn new(name: &str) -> Self {
        let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let file = directory.join(format!("ledger-{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&file);
        Self(file)
    }

    fn times(&self, nonce: &str) -> usize {
        self.lines().iter().filter(|line| *line == nonce).count()
    }

    /// The executions, in order.
    pub(crate) fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        text.lines().map(ToOwned::to_owned).collect()
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Asserts that a call ended with a result that reports an unknown outcome.
#[track_caller]
fn unknown(answer: &Value) {
    let result = &answer["result"];
    assert_eq!(result["isError"], true, "{answer}");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("outcome") && text.contains("unknown"), "{text}");
    let call = &result["_meta"]["consort/call"];
    assert_eq!(call["class"], "outcome_unknown");
    assert_eq!((&call["server"], &call["sent"]), (&json!("r"), &json!(true)));
    assert_eq!(call["retryable"], false);
}

// F1, I2, I3
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_crashes_in_a_call_leaves_its_outcome_unknown_and_comes_back() {
    for manner in [Manner::legacy(), Manner::modern()] {
        let ledger = Ledger::new(if manner.modern { "crash-modern" } else { "crash-legacy" });
        let manner = Manner { ledger: Some(ledger.0.clone()), ..manner };
        let served = Served::over(&manner).await;
        for (n, peer) in served.peers(json!({})).await.iter().enumerate() {
            let (nonce, other) = (format!("crash {n}"), format!("beside {n}"));
            let beside = peer.next(
                "tools/call",
                &json!({ "name": "write", "arguments": { "steps": [Step::Hang], "nonce": other } }),
            );
            let beside = peer.sent(&beside).await;
            until("the other call runs", async || (ledger.times(&other) == 1).then_some(())).await;
            let begun = Instant::now();
            let crash = json!({ "steps": [Step::Exit(7)], "nonce": nonce });
            unknown(&peer.call("write", crash).await);
            unknown(&testkit::raw::Exchange::of(beside).await.end().await);
            assert!(begun.elapsed() < SLACK, "{:?}", begun.elapsed());
            assert_eq!((ledger.times(&nonce), ledger.times(&other)), (1, 1));
            let fine = json!({ "raw": "{\"content\":[]}", "nonce": format!("{nonce} after") });
            let after = peer.call("result", fine).await;
            assert!(after["result"]["content"].is_array(), "{after}");
            assert_eq!(ledger.times(&format!("{nonce} after")), 1);
        }
        served.rests().await;
        served.end().await;
    }
}

// F2: what never left is sent once the server is back, and only then runs.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_to_a_server_that_just_died_waits_for_the_restart_and_runs_once() {
    let ledger = Ledger::new("before");
    let manner = Manner { ledger: Some(ledger.0.clone()), ..Manner::modern() };
    let served = Served::over(&manner).await;
    for (n, peer) in served.peers(json!({})).await.iter().enumerate() {
        unknown(&peer.call("write", steps(&[Step::Exit(1)])).await);
        let nonce = format!("late {n}");
        let answer = peer.call("result", json!({ "raw": "{}", "nonce": nonce })).await;
        assert!(answer["result"].is_object(), "{answer}");
        assert_eq!(ledger.times(&nonce), 1);
    }
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_to_a_server_that_cannot_be_reached_was_not_sent() {
    let http = Http::start(Manner::modern()).await;
    let served = Served::new(vec![hasty(at("r", &http.url()))], quick()).await;
    let peers = served.peers(json!({})).await;
    assert!(peers[0].call("result", json!({ "raw": "{}" })).await["result"].is_object());
    let address = http.url().replace("http://", "");
    let address = address.split('/').next().unwrap().to_owned();
    drop(http);
    testkit::wait_until_async("the server is gone", async || {
        tokio::net::TcpStream::connect(&address).await.is_err()
    })
    .await;
    for peer in peers {
        let begun = Instant::now();
        let answer = peer.call("result", json!({ "raw": "{}" })).await;
        let gateway = &answer["error"]["data"]["gateway"];
        assert_eq!(
            (&gateway["class"], &gateway["sent"]),
            (&json!("not_sent"), &json!(false)),
            "{answer}"
        );
        assert!(begun.elapsed() < Duration::from_secs(6));
    }
    served.end().await;
}

// F3
#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_call_ends_at_its_time_limit_and_is_cancelled_at_the_server() {
    for way in Way::all().await {
        for (n, peer) in way.served.peers(json!({})).await.iter().enumerate() {
            let begun = Instant::now();
            unknown(&peer.call("write", steps(&[Step::Hang])).await);
            let took = begun.elapsed();
            assert!(
                took >= Duration::from_millis(800) && took < Duration::from_millis(800) + SLACK
            );
            way.cancelled(peer, if way.http.is_some() { n + 1 } else { 1 }).await;
        }
        way.served.rests().await;
        way.served.end().await;
    }
}

// F3
#[tokio::test(flavor = "multi_thread")]
async fn a_late_answer_reaches_nobody() {
    let served = Served::over(&Manner::legacy()).await;
    for peer in served.peers(json!({})).await {
        unknown(&peer.call("write", steps(&[Step::Sleep(1000), done()])).await);
        let mine = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"n":8}}"#.to_owned();
        let answer = peer.call("write", steps(&[Step::Sleep(400), Step::Message(mine)])).await;
        assert_eq!(answer["result"]["n"], 8);
    }
    served.end().await;
}

// F4
#[tokio::test(flavor = "multi_thread")]
async fn progress_renews_the_idle_timeout_up_to_the_total_timeout() {
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$TOKEN,"progress":1}}"#;
    let forever: Vec<Step> =
        (0..20).flat_map(|_| [Step::Message(progress.to_owned()), Step::Sleep(400)]).collect();
    let mut running = tokio::task::JoinSet::new();
    for way in Way::all().await {
        let forever = steps(&forever);
        running.spawn(async move {
            let way = way;
            for peer in way.served.peers(json!({})).await {
                let begun = Instant::now();
                let messages = peer.begin_call("write", forever.clone()).await.all().await;
                let took = begun.elapsed();
                let (end, reports) = messages.split_last().unwrap();
                unknown(end);
                assert!(took >= Duration::from_millis(2500) && took < Duration::from_millis(3500));
                assert!((5..=7).contains(&reports.len()), "{}", reports.len());
                assert!(reports.iter().all(|m| m["params"]["progressToken"] == "token"));
            }
            way.served.end().await;
        });
    }
    running.join_all().await;
}

// F5
#[tokio::test(flavor = "multi_thread")]
async fn bytes_without_a_message_do_not_renew_the_idle_timeout() {
    for way in Way::all().await {
        let nothing = if way.http.is_none() { "\n" } else { ": still here\n\n" };
        let nothing: Vec<Step> = (0..60).flat_map(|_| [text(nothing), Step::Sleep(20)]).collect();
        let trickle: Vec<Step> = (0..60).flat_map(|_| [text("x"), Step::Sleep(20)]).collect();
        let [modern, legacy] = way.served.peers(json!({})).await;
        let begun = Instant::now();
        let (first, second) = tokio::join!(
            modern.call("write", steps(&nothing)),
            legacy.call("write", steps(&trickle))
        );
        unknown(&first);
        unknown(&second);
        assert!(begun.elapsed() < Duration::from_millis(1100) + SLACK);
        way.served.end().await;
    }
}

// F6
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_cut_anywhere_loses_the_call_unless_its_answer_was_whole() {
    let way = Way::http(Manner::modern()).await;
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#;
    let transcript = format!(": hi\r\ndata: {progress}\r\n\r\ndata: {ANSWER}\n\n");
    for peer in way.served.peers(json!({})).await {
        for at in (0..=transcript.len()).step_by(3).chain([transcript.len()]) {
            let head = &transcript[..at];
            if head.ends_with('$') || head.ends_with("$I") {
                continue;
            }
            let begun = Instant::now();
            let answer = peer.call("write", steps(&[text(head), Step::Cut])).await;
            assert!(begun.elapsed() < SLACK);
            if at == transcript.len() {
                assert_eq!(answer["result"]["n"], 7);
            } else {
                unknown(&answer);
            }
        }
    }
    way.served.rests().await;
    way.served.end().await;
}

// F8
#[tokio::test(flavor = "multi_thread")]
async fn malformed_messages_of_a_server_are_ignored_and_later_ones_are_read() {
    let bad = [
        "not json",
        "{",
        "[]",
        r#"{"jsonrpc":"1.0","id":$ID,"result":{}}"#,
        r#"{"jsonrpc":"2.0","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":$ID,"result":{},"error":{"code":1,"message":"both"}}"#,
        r#"{"jsonrpc":"2.0","id":$ID,"result":"text"}"#,
        r#"{"jsonrpc":"2.0","id":$ID,"id":$ID,"result":{}}"#,
        r#"[{"jsonrpc":"2.0","id":$ID,"result":{}}]"#,
    ];
    for way in Way::all().await {
        let mut all: Vec<Step> = bad.iter().map(|bad| Step::Message((*bad).to_owned())).collect();
        all.push(done());
        let garbage: Vec<Step> = (0..100).map(|_| Step::Message("garbage".to_owned())).collect();
        let garbage = steps(&[garbage, vec![Step::Hang]].concat());
        let peers = way.served.peers(json!({})).await;
        for peer in &peers {
            let answer = peer.call("write", steps(&all)).await;
            assert_eq!(answer["result"]["n"], 7, "{answer}");
        }
        // A server that sends nothing else is given up at once, and reached again.
        for peer in &peers {
            let begun = Instant::now();
            unknown(&peer.call("write", garbage.clone()).await);
            assert!(begun.elapsed() < SLACK);
            let answer = peer.call("write", steps(&[done()])).await;
            assert_eq!(answer["result"]["n"], 7, "{answer}");
        }
        way.served.end().await;
    }
}

// F9
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_too_large_ends_its_own_call_only() {
    let mut server = stdio("r", &Manner::modern());
    server.limits = Limits { message_bytes: 64 << 10, skipped_bytes: 1 << 20, ..Limits::default() };
    let served = Served::new(vec![server], quick()).await;
    let giant = [
        text(r#"{"jsonrpc":"2.0","id":$ID,"result":{"text":""#),
        Step::Repeat("x".to_owned(), 500 << 10),
        text("\"}}\n"),
    ];
    let endless = [Step::Repeat("x".to_owned(), 3 << 20), Step::Hang];
    for peer in served.peers(json!({})).await {
        let beside = peer.next(
            "tools/call",
            &json!({ "name": "write", "arguments": steps(&[Step::Sleep(300), done()]) }),
        );
        let beside = peer.sent(&beside).await;
        let refused = peer.call("write", steps(&giant)).await;
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains("larger than 65536 bytes"), "{message}");
        assert_eq!(testkit::raw::Exchange::of(beside).await.end().await["result"]["n"], 7);
        unknown(&peer.call("write", steps(&endless)).await);
        assert_eq!(peer.call("write", steps(&[done()])).await["result"]["n"], 7);
    }
    served.end().await;
}

// F10, F11
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_counts_once_and_only_under_its_own_id() {
    let wrong = [
        Step::Answer(json!(999_999)),
        Step::Answer(json!(-1)),
        Step::Answer(json!("1")),
        Step::Message(r#"{"jsonrpc":"2.0","id":"$ID","result":{"n":8}}"#.to_owned()),
        Step::Message(
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"whose?"}}"#.to_owned(),
        ),
        Step::Sleep(20),
        done(),
    ];
    for way in Way::all().await {
        for peer in way.served.peers(json!({})).await {
            let twice = steps(&[done(), Step::Message(ANSWER.replace('7', "8"))]);
            for _ in 0..10 {
                assert_eq!(peer.call("write", twice.clone()).await["result"]["n"], 7);
            }
            assert_eq!(peer.call("write", steps(&wrong)).await["result"]["n"], 7);
        }
        way.served.end().await;
    }
}

// F12
#[tokio::test(flavor = "multi_thread")]
async fn noise_between_messages_is_harmless() {
    let served = Served::over(&Manner::legacy()).await;
    let controls: String = (0u8..0x20).filter(|byte| *byte != b'\n').map(char::from).collect();
    let noise =
        ["Listening…\n", "\r\n\n", "\u{1b}[31mred\n", "{\"level\":1}\n", "null\n", "\u{0}\n"];
    for peer in served.peers(json!({})).await {
        for line in noise.into_iter().chain([format!("{controls}\n").as_str()]) {
            let noisy = [text(line), text(&format!("{ANSWER}\r\n")), text(line)];
            assert_eq!(peer.call("write", steps(&noisy)).await["result"]["n"], 7, "{line:?}");
        }
    }
    served.end().await;
}

// F13
#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_read_however_it_is_split_and_invalid_utf8_is_ignored() {
    for way in Way::all().await {
        let split = way
            .framed(r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"text":"日本€𐍈\u00e9"}}"#);
        let (start, end) = match way.http {
            None => (r#"{"jsonrpc":"2.0","id":$ID,"result":{"x":""#.to_owned(), "\"}}\n"),
            Some(_) => {
                (r#"data: {"jsonrpc":"2.0","id":$ID,"result":{"x":""#.to_owned(), "\"}}\n\n")
            }
        };
        for peer in way.served.peers(json!({})).await {
            let answer = peer.call("write", steps(&[Step::Dribble, split.clone()])).await;
            assert_eq!(answer["result"]["text"], "日本€𐍈é");
            let invalid = [text(&start), Step::Hex("ff".to_owned()), text(end), done()];
            assert_eq!(peer.call("write", steps(&invalid)).await["result"]["n"], 7);
        }
        way.served.end().await;
    }
}

// F14
#[tokio::test(flavor = "multi_thread")]
async fn an_endless_list_is_omitted_and_other_lists_are_served() {
    let circle = Manner { circle: true, ..Manner::modern() };
    let pages = Manner { pages: 1_000_000, ..Manner::legacy() };
    let servers =
        vec![stdio("circle", &circle), stdio("pages", &pages), stdio("fine", &Manner::modern())];
    let served = Served::new(servers, quick()).await;
    for peer in served.peers(json!({})).await {
        let list = peer.ask("tools/list", json!({})).await;
        let tools = list["result"]["tools"].as_array().unwrap();
        let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["result", "progress", "write", "ask", "seen"]);
    }
    served.end().await;
}

// F15
#[tokio::test(flavor = "multi_thread")]
async fn list_changes_reach_clients_at_most_once_a_second_and_the_last_state_wins() {
    let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
    let page = |n: usize| json!({ "tools": [tool("write"), tool(&format!("v{n}"))], "resultType": "complete", "ttlMs": 0, "cacheScope": "private" });
    let mut manner = Manner::legacy();
    manner.capabilities = json!({ "tools": { "listChanged": true } });
    // Every reading of the list finds another, until the last.
    let manner = (0..=5).fold(manner, |manner, n| manner.answer("tools/list", &page(n)));
    let http = Http::start(manner).await;
    let served = Served::new(vec![hasty(at("r", &http.url()))], quick()).await;
    let [modern, legacy] = served.peers(json!({})).await;
    let wanted = json!({ "notifications": { "toolsListChanged": true } });
    let mut subscription = modern.begin("subscriptions/listen", wanted).await;
    subscription.next().await.unwrap();
    let mut common = legacy.bare("GET").await;
    let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
    let begun = Instant::now();
    let mut heard = [Vec::new(), Vec::new()];
    while begun.elapsed() < Duration::from_secs(4) {
        for _ in 0..100 {
            http.say(&changed);
        }
        for (stream, heard) in [&mut subscription, &mut common].into_iter().zip(&mut heard) {
            let next = tokio::time::timeout(Duration::from_millis(50), stream.next());
            if let Ok(Some(message)) = next.await {
                assert_eq!(message["method"], "notifications/tools/list_changed");
                heard.push(begun.elapsed());
            }
        }
    }
    let readings = http.seen().iter().filter(|m| m["method"] == "tools/list").count();
    assert!((2..=7).contains(&readings), "{readings}");
    for heard in heard {
        assert!((1..=5).contains(&heard.len()), "{heard:?}");
        let near = |pair: &[Duration]| pair[1] < pair[0] + Duration::from_millis(900);
        assert!(!heard.windows(2).any(near), "{heard:?}");
    }
    // Whatever was read last is what is offered.
    until("the last state is offered", async || {
        let readings = http.seen().iter().filter(|m| m["method"] == "tools/list").count();
        let list = modern.ask("tools/list", json!({})).await;
        let last = format!("v{}", (readings - 1).min(5));
        (list["result"]["tools"][1]["name"] == last.as_str()).then_some(())
    })
    .await;
    served.end().await;
}

// F17
#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_server_costs_one_handshake_and_no_call() {
    let way = Way::http(Manner::legacy()).await;
    let http = way.http.as_ref().unwrap();
    for peer in way.served.peers(json!({})).await {
        assert_eq!(peer.call("write", steps(&[done()])).await["result"]["n"], 7);
        let handshakes = || http.seen().iter().filter(|m| m["method"] == "initialize").count();
        let before = handshakes();
        http.forget_sessions();
        assert_eq!(peer.call("write", steps(&[done()])).await["result"]["n"], 7);
        let made = handshakes() - before;
        assert!((1..=2).contains(&made), "{made}");
    }
    way.served.end().await;
}
