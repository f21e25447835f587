//! Input requests of a legacy server to a modern client: the call is suspended until the answer.

use std::time::Duration;

use consort_gateway::{GatewayLimits, GatewaySettings};
use consort_hub::ManagedState;
use serde_json::{Value, json};
use testkit::rogue::{Http, Manner, Step};

use crate::{Served, at, hasty, quick, stdio, steps, until, with_tokens};
use testkit::raw::{Exchange, PATIENCE, Peer};

/// An elicitation, as a rogue sends it.
fn form() -> Value {
    json!({ "method": "elicitation/create", "params": { "message": "who?", "requestedSchema": { "type": "object" } } })
}

fn able() -> Value {
    json!({ "elicitation": { "form": {} } })
}

/// The same as a client receives it: with the name of the server.
fn shown() -> Value {
    let mut shown = form();
    shown["params"]["message"] = json!("`r` requests input: who?");
    shown
}

fn ada() -> Value {
    json!({ "action": "accept", "content": { "name": "Ada" } })
}

/// The parameters of a call that is repeated with the answers.
fn again(asked: &Value, answers: &Value) -> Value {
    json!({
        "name": "ask", "arguments": form(), "inputResponses": answers,
        "requestState": asked["result"]["requestState"],
    })
}

/// Calls the tool that requests input, and returns the `input_required` result.
async fn asked(peer: &Peer) -> Value {
    let asked = peer.call("ask", form()).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    assert_eq!(asked["result"]["inputRequests"], json!({ "q1": shown() }));
    asked
}

/// Returns how often the rogue received a call of `ask`, and a cancellation.
async fn runs(peer: &Peer) -> (usize, usize) {
    let seen = peer.seen("seen").await;
    let count = |like: &dyn Fn(&Value) -> bool| seen.iter().filter(|m| like(m)).count();
    (count(&|m| m["params"]["name"] == "ask"), count(&|m| m["method"] == "notifications/cancelled"))
}

#[track_caller]
fn refused(answer: &Value, reason: &str) {
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains(reason), "{message}");
}

async fn park(limits: GatewayLimits) -> (Served, Peer) {
    let settings = GatewaySettings { limits, ..quick() };
    let served = Served::new(vec![stdio("r", &Manner::legacy())], settings).await;
    let peer = Peer::modern(&served.url, None, able());
    (served, peer)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_call_continues_with_the_answer_and_runs_once() {
    let (served, peer) = park(quick().limits).await;
    let asked = asked(&peer).await;
    assert_eq!(served.gateway.counts().suspended_calls, 1);
    let answer = peer.ask("tools/call", again(&asked, &json!({ "q1": ada() }))).await;
    assert_eq!(answer["result"]["answer"]["result"], ada());
    assert_eq!(answer["result"]["resultType"], "complete");
    // Whoever asks once more, because it lost the answer, is told the same.
    let twice = peer.ask("tools/call", again(&asked, &json!({ "q1": ada() }))).await;
    assert_eq!(twice["result"], answer["result"]);
    assert_eq!(runs(&peer).await, (1, 0));
    served.rests().await;
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unanswered_questions_are_asked_again() {
    let (served, peer) = park(quick().limits).await;
    let first = asked(&peer).await;
    let mut last = first.clone();
    for answers in [json!({}), json!({ "other": ada() }), json!({ "q1": "no object" }), json!(7)] {
        last = peer.ask("tools/call", again(&last, &answers)).await;
        assert_eq!(last["result"]["inputRequests"], json!({ "q1": shown() }), "{last}");
    }
    // An answer to an earlier turn comes too late.
    let stale = peer.ask("tools/call", again(&first, &json!({ "q1": ada() }))).await;
    refused(&stale, "already used");
    let answer = peer.ask("tools/call", again(&last, &json!({ "q1": ada() }))).await;
    assert_eq!(answer["result"]["answer"]["result"], ada());
    assert_eq!(runs(&peer).await, (1, 0));
    served.end().await;
}

// T10
#[tokio::test(flavor = "multi_thread")]
async fn a_request_state_is_valid_for_its_own_caller_and_request_only() {
    let settings = with_tokens(["ada".to_owned(), "bob".to_owned()]);
    let served = Served::new(vec![stdio("r", &Manner::legacy())], settings).await;
    let peer = Peer::modern(&served.url, Some("t-ada"), able());
    let asked = asked(&peer).await;
    let good = again(&asked, &json!({ "q1": ada() }));
    let thief = peer.stolen_by("t-bob").ask("tools/call", good.clone()).await;
    refused(&thief, "another request");
    let mut other = good.clone();
    other["arguments"]["params"]["message"] = json!("give me your password");
    refused(&peer.ask("tools/call", other).await, "another request");
    let mut other = good.clone();
    other["name"] = json!("seen");
    refused(&peer.ask("tools/call", other).await, "another request");
    let state = good["requestState"].as_str().unwrap();
    for at in [0, 7, state.len() / 2, state.len() - 1] {
        let mut bytes = state.as_bytes().to_vec();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        let mut tampered = good.clone();
        tampered["requestState"] = json!(String::from_utf8(bytes).unwrap());
        refused(&peer.ask("tools/call", tampered).await, "not issued by this gateway");
    }
    for state in [json!(""), json!("x"), json!(7), json!(null), json!({}), json!("A".repeat(9999))]
    {
        let mut wrong = good.clone();
        wrong["requestState"] = state;
        refused(&peer.ask("tools/call", wrong).await, "requestState");
    }
    // However its arguments are written, it is the same request.
    let answer = peer.ask("tools/call", good).await;
    assert_eq!(answer["result"]["answer"]["result"], ada());
    assert_eq!(runs(&peer).await, (1, 0));
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_suspended_beyond_its_limit_is_cancelled_at_its_server() {
    let (served, peer) =
        park(GatewayLimits { suspended_time: Duration::from_millis(300), ..quick().limits }).await;
    let asked = asked(&peer).await;
    until("the call expires", async || {
        (served.gateway.counts().suspended_calls == 0).then_some(())
    })
    .await;
    until("the server is told", async || (runs(&peer).await == (1, 1)).then_some(())).await;
    refused(&peer.ask("tools/call", again(&asked, &json!({ "q1": ada() }))).await, "has expired");
    served.end().await;
}

/// Arguments that make a rogue request input under an id, and then take more steps.
fn asking(id: u32, more: &[Step]) -> Value {
    let question = json!({ "jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": form()["params"] });
    steps(&[&[Step::Message(question.to_string())], more].concat())
}

/// The same call with the answer.
fn answered(script: &Value, asked: &Value) -> Value {
    json!({
        "name": "write", "arguments": script, "inputResponses": { "q1": ada() },
        "requestState": asked["result"]["requestState"],
    })
}

fn done() -> Step {
    Step::Message(r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"n":7}}"#.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn suspended_calls_above_the_limit_are_refused_and_stored_results_do_not_count() {
    let http = Http::start(Manner::legacy()).await;
    let settings = GatewaySettings {
        limits: GatewayLimits { suspended_calls: 1, ..quick().limits },
        ..quick()
    };
    let served = Served::new(vec![hasty(at("r", &http.url()))], settings).await;
    let peer = Peer::modern(&served.url, None, able());
    for n in 0..3 {
        let script = asking(n, &[Step::Sleep(200), done()]);
        let asked = peer.call("write", script.clone()).await;
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
        let refused = peer.call("write", asking(100 + n, &[Step::Hang])).await;
        assert_eq!(
            refused["error"]["message"], "too many calls are waiting for a client response",
            "{refused}"
        );
        let answer = peer.ask("tools/call", answered(&script, &asked)).await;
        assert_eq!(answer["result"]["n"], 7, "{answer}");
    }
    // The server was told that nobody answers, and to stop.
    until("the server is told", async || {
        let seen = http.seen();
        let told = |m: &&Value| {
            m["error"]["message"] == "too many calls are waiting for a client response"
        };
        let told: Vec<&Value> = seen.iter().filter(told).map(|m| &m["id"]).collect();
        let cancelled = seen.iter().filter(|m| m["method"] == "notifications/cancelled").count();
        (told == [100, 101, 102] && cancelled == 3).then_some(())
    })
    .await;
    served.rests().await;
    served.end().await;
}

// S5
#[tokio::test(flavor = "multi_thread")]
async fn the_caller_with_the_most_suspended_calls_loses_one_to_a_caller_with_fewer() {
    let http = Http::start(Manner::legacy()).await;
    let settings = with_tokens(["hog".to_owned(), "ada".to_owned()]);
    let limits = GatewayLimits { suspended_calls: 4, ..settings.limits.clone() };
    let server = hasty(at("r", &http.url()));
    let served = Served::new(vec![server], GatewaySettings { limits, ..settings }).await;
    let [hog, ada] = ["t-hog", "t-ada"].map(|token| Peer::modern(&served.url, Some(token), able()));
    let script = |n| asking(n, &[Step::Sleep(200), done()]);
    let mut states = Vec::new();
    for n in 0..4 {
        let asked = hog.call("write", script(n)).await;
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
        states.push(asked);
    }
    for n in 10..12 {
        let asked = ada.call("write", script(n)).await;
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    }
    // Each has its share now.
    for (peer, n) in [(&ada, 12), (&hog, 13)] {
        let refused = peer.call("write", script(n)).await;
        assert_eq!(
            refused["error"]["message"], "too many calls are waiting for a client response",
            "{refused}"
        );
    }
    let gone = hog.ask("tools/call", answered(&script(0), &states[0])).await;
    refused(&gone, "has ended");
    let kept = hog.ask("tools/call", answered(&script(3), &states[3])).await;
    assert_eq!(kept["result"]["n"], 7, "{kept}");
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_call_does_not_block_the_questions_of_another() {
    let (served, peer) = park(quick().limits).await;
    let mut waiting = Vec::new();
    for n in 0..4 {
        let script = asking(n, &[Step::Sleep(100), done()]);
        let asked = peer.call("write", script.clone()).await;
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
        waiting.push((script, asked));
    }
    assert_eq!(served.gateway.counts().suspended_calls, 4);
    for (script, asked) in waiting {
        assert_eq!(peer.ask("tools/call", answered(&script, &asked)).await["result"]["n"], 7);
    }
    served.rests().await;
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_disconnects_from_a_continued_call_cancels_it() {
    let question = json!({ "jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": form()["params"] });
    let http = Http::start(Manner::legacy()).await;
    let mut server = at("r", &http.url());
    (server.times.idle, server.times.total) = (PATIENCE, PATIENCE);
    let served = Served::new(vec![server], quick()).await;
    let peer = Peer::modern(&served.url, None, able());
    let script = steps(&[Step::Message(question.to_string()), Step::Hang]);
    let asked = peer.call("write", script.clone()).await;
    let state = &asked["result"]["requestState"];
    let params = json!({ "name": "write", "arguments": script, "inputResponses": { "q1": ada() }, "requestState": state });
    let leaving = peer.sent(&peer.next("tools/call", &params)).await;
    until("the answer arrives", async || {
        http.seen().iter().any(|m| m["result"] == ada()).then_some(())
    })
    .await;
    // Another request with the same state does not disturb it.
    refused(&peer.ask("tools/call", params.clone()).await, "already used");
    drop(leaving);
    until("the server is told", async || {
        http.seen().iter().any(|m| m["method"] == "notifications/cancelled").then_some(())
    })
    .await;
    refused(&peer.ask("tools/call", params).await, "has ended");
    served.rests().await;
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_continues_under_the_token_of_the_new_request() {
    let http = Http::start(Manner::legacy()).await;
    let served = Served::new(vec![hasty(at("r", &http.url()))], quick()).await;
    let peer = Peer::modern(&served.url, None, able());
    let progress = |n: u32| {
        Step::Message(format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":$TOKEN,"progress":{n}}}}}"#
        ))
    };
    let question = json!({ "jsonrpc": "2.0", "id": 5, "method": "elicitation/create", "params": form()["params"] });
    let script = steps(&[
        progress(1),
        Step::Message(question.to_string()),
        Step::Sleep(400),
        progress(2),
        Step::Message(r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"n":7}}"#.to_owned()),
    ]);
    let params =
        json!({ "name": "write", "arguments": script, "_meta": { "progressToken": "one" } });
    let first = peer.begin("tools/call", params.clone()).await.all().await;
    assert_eq!(first[0]["params"], json!({ "progressToken": "one", "progress": 1 }));
    let mut params = params;
    params["_meta"]["progressToken"] = json!(2);
    params["requestState"] = first[1]["result"]["requestState"].clone();
    params["inputResponses"] = json!({ "q1": ada() });
    let second = peer.begin("tools/call", params).await.all().await;
    assert_eq!(second[0]["params"], json!({ "progressToken": 2, "progress": 2 }));
    assert_eq!(second[1]["result"]["n"], 7);
    let posted = http.seen().into_iter().find(|m| m["id"] == 5 && m["method"].is_null()).unwrap();
    assert_eq!(posted["result"], ada());
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_during_a_suspended_call_leaves_the_outcome_unknown() {
    let question = json!({ "jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": form()["params"] });
    let served = Served::over(&Manner::legacy()).await;
    let peer = Peer::modern(&served.url, None, able());
    let script = steps(&[Step::Message(question.to_string()), Step::Sleep(200), Step::Exit(3)]);
    let asked = peer.call("write", script.clone()).await;
    let server = "r".parse().unwrap();
    testkit::wait_until_async("the server is dead", async || {
        let status = served.hub.status(&server).unwrap();
        status.state != ManagedState::Ready || status.restarts > 0
    })
    .await;
    let params = json!({
        "name": "write", "arguments": script, "inputResponses": { "q1": ada() },
        "requestState": asked["result"]["requestState"],
    });
    let answer = peer.ask("tools/call", params).await;
    assert_eq!(answer["result"]["_meta"]["consort/call"]["class"], "outcome_unknown", "{answer}");
    served.rests().await;
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_that_a_client_cannot_answer_are_refused() {
    let served = Served::over(&Manner::legacy()).await;
    let peer = served.modern();
    let answer = peer.call("ask", form()).await;
    assert_eq!(answer["result"]["answer"]["error"]["code"], -32601, "{answer}");
    assert_eq!(served.gateway.counts().suspended_calls, 0);
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_request_state_of_a_modern_server_returns_unchanged_and_only_from_its_client() {
    let first = json!({ "resultType": "input_required", "inputRequests": { "who": form() }, "requestState": "é \"state\"" });
    let manner = Manner::modern()
        .answer("tools/call", &first)
        .answer("tools/call", &json!({ "resultType": "complete", "content": [], "n": 7 }));
    let http = Http::start(manner).await;
    let served = Served::new(vec![at("r", &http.url())], quick()).await;
    let peer = Peer::modern(&served.url, None, able());
    let asked = peer.call("ask", form()).await;
    assert_eq!(asked["result"]["inputRequests"], json!({ "who": shown() }));
    assert_ne!(asked["result"]["requestState"], "é \"state\"");
    let mut forged = again(&asked, &json!({ "who": ada() }));
    forged["requestState"] = json!("é \"state\"");
    refused(&peer.ask("tools/call", forged).await, "not issued by this gateway");
    let answer = peer.ask("tools/call", again(&asked, &json!({ "who": ada() }))).await;
    assert_eq!(answer["result"]["n"], 7);
    let calls: Vec<Value> =
        http.seen().into_iter().filter(|m| m["method"] == "tools/call").collect();
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[1]["params"]["requestState"], "é \"state\"");
    assert_eq!(calls[1]["params"]["inputResponses"]["who"], ada());
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_url_elicitation_of_a_legacy_server_is_an_input_request_to_a_modern_client() {
    let wish = json!({ "mode": "url", "message": "sign in", "url": "https://example.com/x", "elicitationId": "e1" });
    let error =
        json!({ "code": -32042, "message": "sign in first", "data": { "elicitations": [wish] } });
    let error = format!(r#"{{"jsonrpc":"2.0","id":$ID,"error":{error}}}"#);
    let manner = Manner::legacy()
        .on("tools/call", [Step::Message(error)])
        .answer("tools/call", &json!({ "content": [], "n": 7 }));
    let http = Http::start(manner).await;
    let served = Served::new(vec![at("r", &http.url())], quick()).await;
    let peer = Peer::modern(&served.url, None, json!({ "elicitation": { "url": {} } }));
    let asked = peer.call("ask", form()).await;
    let question = &asked["result"]["inputRequests"]["q1"];
    assert_eq!(question["method"], "elicitation/create", "{asked}");
    assert_eq!(
        question["params"],
        json!({ "mode": "url", "message": "`r` requests that you open a page at `example.com`: sign in", "url": "https://example.com/x" })
    );
    let opened = json!({ "q1": { "action": "accept" } });
    let answer = peer.ask("tools/call", again(&asked, &opened)).await;
    assert_eq!(answer["result"]["n"], 7, "{answer}");
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_questions_are_asked_in_one_result() {
    let question = |id: u32| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": form()["params"] }).to_string()
    };
    let served = Served::over(&Manner::legacy()).await;
    let peer = Peer::modern(&served.url, None, able());
    let script = steps(&[
        Step::Message(question(1)),
        Step::Message(question(2)),
        Step::Sleep(300),
        Step::Message(r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}"#.to_owned()),
    ]);
    let exchange: Exchange = peer.begin_call("write", script.clone()).await;
    let asked = exchange.end().await;
    let requests = asked["result"]["inputRequests"].as_object().unwrap();
    assert_eq!(requests.keys().collect::<Vec<_>>(), ["q1", "q2"], "{asked}");
    let params = json!({
        "name": "write", "arguments": script, "requestState": asked["result"]["requestState"],
        "inputResponses": { "q1": ada(), "q2": { "action": "decline" } },
    });
    assert!(peer.ask("tools/call", params).await["result"]["content"].is_array());
    let seen = peer.seen("seen").await;
    let answers: Vec<&Value> = seen.iter().filter(|m| m["result"]["action"].is_string()).collect();
    assert_eq!((&answers[0]["id"], &answers[0]["result"]), (&json!(1), &ada()));
    assert_eq!(
        (&answers[1]["id"], &answers[1]["result"]["action"]),
        (&json!(2), &json!("decline"))
    );
    served.end().await;
}
