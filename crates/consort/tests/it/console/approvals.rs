//! Calls of any client, agreed to by whoever looks at the console.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::clients::Fixture;
use testkit::raw::Peer;

use super::{PATIENCE, soon};
use crate::Home;
use crate::serve::Serving;

/// A gateway of which a tool is asked about.
fn serving(home: &Home) -> Serving {
    let server = format!("[mcp.everything]\ncommand = {:?}\n", Fixture::Everything.command());
    let rules = "[[consort.policy.rules]]\ntools = [\"everything.get-sum\"]\nthen = \"ask\"\n";
    let limits = "[consort.limits]\ndetached_call = \"1s\"\n";
    std::fs::write(home.path("consort.toml"), server + rules + limits).unwrap();
    Serving::start(home, &[])
}

/// Looks at the console until it is dropped.
fn look(serving: &Serving) -> TcpStream {
    let mut stream = TcpStream::connect(&serving.address).unwrap();
    stream.set_read_timeout(Some(testkit::WAIT_LIMIT)).unwrap();
    let token = serving.token.as_ref().unwrap();
    let request = format!(
        "GET /api/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut head = [0; 15];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 200 OK");
    // The first event comes when somebody looks.
    let mut seen = String::new();
    while !seen.contains("event: ") {
        let mut more = [0; 1024];
        let read = stream.read(&mut more).unwrap();
        assert!(read > 0, "{seen}");
        seen.push_str(&String::from_utf8_lossy(&more[..read]));
    }
    stream
}

/// Waits until something is on the desk, while others go on.
async fn question(serving: &Serving) -> Value {
    let mut asked = None;
    testkit::wait_until_async("a question", async || {
        asked = serving.told("/pending-requests").get(0).cloned();
        asked.is_some()
    })
    .await;
    asked.expect("it was waited for")
}

/// Waits until nothing is on the desk.
fn rested(serving: &Serving) {
    soon("a desk without questions", || {
        (serving.told("/pending-requests") == json!([])).then_some(())
    });
}

/// What a call comes to that is answered like this by whoever looks; and what was asked.
async fn answered(serving: &Serving, peer: &Peer, content: Value) -> (String, Value) {
    let answering = async {
        let asked = question(serving).await;
        assert_eq!(answer(serving, &asked, &content), 204);
        asked
    };
    let (end, asked) = tokio::join!(peer.ask("tools/call", sum()), answering);
    (words(&end), asked)
}

fn answer(serving: &Serving, question: &Value, content: &Value) -> u16 {
    let path = format!("/pending-requests/{}", question["id"].as_str().unwrap());
    serving.api("POST", &path, Some(&json!({ "action": "accept", "content": content }))).0
}

async fn peers(serving: &Serving, capabilities: &Value) -> [Peer; 2] {
    let url = format!("http://{}/mcp", serving.address);
    let token = serving.token.as_deref();
    let legacy = Peer::legacy(&url, token, capabilities.clone()).await;
    [Peer::modern(&url, token, capabilities.clone()), legacy]
}

fn sum() -> Value {
    json!({ "name": "get-sum", "arguments": { "a": 2, "b": 3 } })
}

fn words(answer: &Value) -> String {
    let text = answer["result"]["content"][0]["text"].as_str();
    text.or(answer["error"]["message"].as_str()).unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_cannot_ask_waits_for_whoever_looks() {
    let home = Home::new();
    let serving = serving(&home);
    for peer in &peers(&serving, &json!({})).await {
        // Nobody looks.
        let denied = words(&peer.ask("tools/call", sum()).await);
        assert!(denied.contains("this client cannot ask its user"), "{denied}");
        let looking = look(&serving);
        for (content, came) in [
            (json!({ "decision": "once" }), "The sum of 2 and 3 is 5."),
            (
                json!({ "decision": "once", "arguments": "{\"a\":1,\"b\":1}" }),
                "The sum of 1 and 1 is 2.",
            ),
            (json!({ "decision": "deny", "reason": "not today" }), "not today"),
        ] {
            let (end, asked) = answered(&serving, peer, content).await;
            assert_eq!(
                (&asked["kind"], &asked["caller"]),
                (&json!("approval"), &json!("client:owner"))
            );
            assert_eq!(
                (&asked["server"], &asked["tool"]),
                (&json!("everything"), &json!("get-sum"))
            );
            assert!(asked["expires"].is_string() && asked.get("conversation").is_none(), "{asked}");
            assert!(end.contains(came), "{end}");
            assert_eq!(serving.told("/pending-requests"), json!([]));
        }
        // A client that leaves waits no more; a legacy one, which may come back, for `detached_call`.
        tokio::select! {
            end = peer.ask("tools/call", sum()) => panic!("{end}"),
            _ = question(&serving) => {}
        }
        rested(&serving);
        drop(looking);
        // Whoever is asked before that is seen waits; so do not.
        let deadline = Instant::now() + PATIENCE;
        let moment = Duration::from_millis(500);
        loop {
            let call = peer.ask("tools/call", sum());
            match tokio::time::timeout(moment, call).await {
                Ok(end) if words(&end).contains("this client cannot ask its user") => break,
                other => assert!(Instant::now() < deadline, "somebody still looks: {other:?}"),
            }
        }
        // A call of a legacy client that was given up here may still wait.
        rested(&serving);
    }
    // What was agreed to for the session holds for whoever has that identity, and is not asked again.
    let looking = look(&serving);
    let [modern, legacy] = peers(&serving, &json!({})).await;
    let (end, _) = answered(&serving, &modern, json!({ "decision": "session" })).await;
    assert_eq!(end, "The sum of 2 and 3 is 5.");
    assert_eq!(words(&legacy.ask("tools/call", sum()).await), "The sum of 2 and 3 is 5.");
    drop(looking);
    serving.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_answer_counts_and_the_other_is_taken_back() {
    let home = Home::new();
    let serving = serving(&home);
    let looking = look(&serving);
    let yes = json!({ "action": "accept", "content": { "decision": "once" } });
    let [modern, legacy] = peers(&serving, &json!({ "elicitation": {} })).await;
    // The client is first.
    let mut call = legacy.begin("tools/call", sum()).await;
    let asked = call.until(|message| message["method"] == "elicitation/create").await;
    question(&serving).await;
    let reply = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": yes });
    assert_eq!(legacy.post(&reply).await.head.status, 202);
    assert_eq!(words(&call.end().await), "The sum of 2 and 3 is 5.");
    assert_eq!(serving.told("/pending-requests"), json!([]));
    // The console is first, and the client is told so.
    let mut call = legacy.begin("tools/call", sum()).await;
    let asked = call.until(|message| message["method"] == "elicitation/create").await;
    assert_eq!(answer(&serving, &question(&serving).await, &json!({ "decision": "once" })), 204);
    let taken_back = call.until(|message| message["method"] == "notifications/cancelled").await;
    assert_eq!(taken_back["params"]["requestId"], asked["id"]);
    assert_eq!(words(&call.end().await), "The sum of 2 and 3 is 5.");
    // A modern client comes back for what was agreed to meanwhile, whatever it says itself.
    for first_at_the_console in [true, false] {
        let asked = modern.ask("tools/call", sum()).await;
        let waits = question(&serving).await;
        let mut says = yes.clone();
        if first_at_the_console {
            assert_eq!(answer(&serving, &waits, &json!({ "decision": "once" })), 204);
            says = json!({ "action": "decline" });
        }
        let requests =
            asked["result"]["inputRequests"].as_object().unwrap_or_else(|| panic!("{asked}"));
        let mut again = sum();
        again["inputResponses"] = json!({ (requests.keys().next().unwrap()): says });
        again["requestState"] = asked["result"]["requestState"].clone();
        assert_eq!(words(&modern.ask("tools/call", again).await), "The sum of 2 and 3 is 5.");
        assert_eq!(serving.told("/pending-requests"), json!([]));
    }
    drop(looking);
    serving.end();
}
