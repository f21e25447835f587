//! Requests of servers during a call, in both eras.

use std::sync::Arc;
use std::time::Duration;

use consort_client::{
    BoxFuture, ClientCallError, ClientHandler, ClientSettings, OutgoingRequest, PendingCall,
    PendingCallEvent, ServerAnswer, ServerRequest,
};
use consort_protocol::{ClientCapabilities, Json, RequestRefusal, ServerRequestHandling};
use parking_lot::Mutex;
use serde_json::{Value, json};
use testkit::rogue::{Manner, Step};

use crate::{Pair, Way, complete, quick, tool, write};

/// Accepts every form, after a while.
#[derive(Default)]
struct Person {
    asked: Mutex<Vec<ServerRequest>>,
    thinks: Duration,
}

impl ClientHandler for Person {
    fn offers(&self) -> ClientCapabilities {
        ClientCapabilities { form: true, roots: true, ..ClientCapabilities::default() }
    }

    fn answer(&self, question: ServerRequest) -> BoxFuture<'_, Result<Json, RequestRefusal>> {
        let answer = match question.method.as_str() {
            "roots/list" => Ok(json!({ "roots": [{ "uri": "file:///work" }] }).into()),
            _ if question.params.text("message").as_deref() == Some("no") => {
                Err(RequestRefusal { code: -1, message: "I would rather not".to_owned() })
            }
            _ => Ok(json!({ "action": "accept", "content": { "name": "Ada" } }).into()),
        };
        self.asked.lock().push(question);
        Box::pin(async move {
            tokio::time::sleep(self.thinks).await;
            answer
        })
    }
}

fn asked_by(person: &Arc<Person>) -> ClientSettings {
    ClientSettings { host: Arc::<Person>::clone(person), ..quick() }
}

fn form(message: &str) -> Value {
    json!({ "method": "elicitation/create", "params": { "message": message, "requestedSchema": { "type": "object" } } })
}

#[tokio::test]
async fn a_legacy_server_is_answered_in_the_middle_of_its_call() {
    let person = Arc::new(Person::default());
    let pair = Pair::with(Way::Stdio, Manner::legacy(), asked_by(&person)).await;
    let mut call = pair.client.call(tool("ask", &form("who?")));
    let id = call.id();
    let mut seen = Vec::new();
    while let Some(event) = call.next().await {
        match event {
            PendingCallEvent::Question(question) => seen.push(question.method),
            PendingCallEvent::End(end) => {
                let answer: Value = complete(end).unwrap().get("answer").unwrap().read().unwrap();
                assert_eq!(
                    answer["result"],
                    json!({ "action": "accept", "content": { "name": "Ada" } })
                );
                assert_eq!(answer["id"], "q");
                seen.push("end".to_owned());
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(seen, ["elicitation/create", "end"]);
    let asked = person.asked.lock().clone();
    assert_eq!(asked[0].call, Some(id));
    let declared = pair.until_seen(|message| message["method"] == "initialize").await;
    assert_eq!(
        declared["params"]["capabilities"],
        json!({ "roots": {}, "elicitation": { "form": {} } })
    );
}

#[tokio::test]
async fn what_is_not_offered_is_refused_and_ping_is_answered() {
    let pair = Pair::new(Way::Stdio, Manner::legacy()).await;
    let answer = async |question: Value| {
        let result = complete(pair.client.request(tool("ask", &question)).await).unwrap();
        result.get("answer").unwrap().read::<Value>().unwrap()
    };
    let refused = answer(form("who?")).await;
    assert_eq!(refused["error"]["code"], -32601);
    assert_eq!(refused["error"]["message"], "this client does not support elicitation/create");
    assert_eq!(
        answer(json!({ "method": "tools/call", "params": {} })).await["error"]["code"],
        -32601
    );
    assert_eq!(answer(json!({ "method": "ping", "params": {} })).await["result"], json!({}));
    assert_eq!(pair.client.faults().refused, 2);
    let declared = pair.until_seen(|message| message["method"] == "initialize").await;
    assert_eq!(declared["params"]["capabilities"], json!({}));
}

#[tokio::test]
async fn the_time_a_person_thinks_is_not_counted_as_the_servers_silence() {
    let person = Arc::new(Person { thinks: Duration::from_millis(700), ..Person::default() });
    let mut settings = asked_by(&person);
    settings.times.total = Duration::from_secs(5);
    let pair = Pair::with(Way::Stdio, Manner::legacy(), settings.clone()).await;
    assert!(complete(pair.client.request(tool("ask", &form("who?"))).await).is_ok());

    let manner = Manner::modern()
        .answer(
            "tools/call",
            &json!({ "resultType": "input_required", "inputRequests": { "a": form("who?") } }),
        )
        .answer("tools/call", &json!({ "resultType": "complete", "content": [] }));
    let pair = Pair::with(Way::Stdio, manner, settings).await;
    assert!(complete(pair.client.request(tool("x", &json!({}))).await).is_ok());
}

#[tokio::test]
async fn a_legacy_server_over_http_is_answered_by_a_post() {
    let person = Arc::new(Person::default());
    let pair = Pair::with(Way::Http, Manner::legacy(), asked_by(&person)).await;
    let mut question = form("who?");
    (question["jsonrpc"], question["id"]) = (json!("2.0"), json!(1));
    let answer = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}"#;
    let steps =
        [Step::Message(question.to_string()), Step::Sleep(300), Step::Message(answer.to_owned())];
    assert!(pair.write(&steps).await.is_ok());
    let posted = pair.until_seen(|message| message["result"]["action"] == "accept").await;
    assert_eq!(posted["id"], 1);
}

#[tokio::test]
async fn a_question_the_server_takes_back_is_not_answered() {
    let person = Arc::new(Person { thinks: Duration::from_millis(200), ..Person::default() });
    let pair = Pair::with(Way::Stdio, Manner::legacy(), asked_by(&person)).await;
    let mut question = form("who?");
    (question["jsonrpc"], question["id"]) = (json!("2.0"), json!("q1"));
    let steps = [
        Step::Message(question.to_string()),
        Step::notify("notifications/cancelled", &json!({ "requestId": "q1" })),
        Step::Sleep(350),
        Step::Message(r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}"#.to_owned()),
    ];
    assert!(pair.write(&steps).await.is_ok());
    assert!(!pair.seen().await.iter().any(|message| message["id"] == "q1"));
}

#[tokio::test]
async fn a_modern_server_gets_its_answers_in_the_next_round() {
    for way in [Way::Stdio, Way::Http] {
        let person = Arc::new(Person::default());
        let state = "opaque \u{e9} \"state\"";
        let first = json!({
            "resultType": "input_required",
            "inputRequests": { "who": form("who?"), "where": { "method": "roots/list" } },
            "requestState": state,
        });
        let manner = Manner::modern()
            .answer("tools/call", &first)
            .answer("tools/call", &json!({ "resultType": "input_required", "requestState": "two" }))
            .answer("tools/call", &json!({ "resultType": "complete", "content": [], "n": 7 }));
        let pair = Pair::with(way, manner, asked_by(&person)).await;
        let result = complete(pair.client.request(tool("x", &json!({ "a": 1 }))).await).unwrap();
        assert_eq!(result.get("n").unwrap().integer(), Some(7));
        let calls: Vec<Value> = pair.seen_calls().await;
        assert_eq!(calls.len(), 3);
        assert_eq!(calls[1]["params"]["requestState"], state);
        assert_eq!(calls[1]["params"]["inputResponses"]["who"]["content"]["name"], "Ada");
        assert_eq!(
            calls[1]["params"]["inputResponses"]["where"]["roots"][0]["uri"],
            "file:///work"
        );
        assert_eq!(calls[1]["params"]["arguments"], json!({ "a": 1 }));
        assert_eq!(calls[2]["params"]["requestState"], "two");
        assert!(calls[2]["params"].get("inputResponses").is_none());
        let ids: Vec<_> = calls.iter().map(|call| call["id"].clone()).collect();
        assert!(ids[0] != ids[1] && ids[1] != ids[2]);
    }
}

impl Pair {
    /// The tool calls the server received; its own `seen` is scripted away here.
    async fn seen_calls(&self) -> Vec<Value> {
        let seen = match &self.http {
            Some(http) => http.seen(),
            None => {
                let answer = self.client.request(OutgoingRequest::new("test/seen")).await.unwrap();
                answer.object().get("seen").unwrap().read().unwrap()
            }
        };
        seen.into_iter().filter(|message: &Value| message["method"] == "tools/call").collect()
    }
}

#[tokio::test]
async fn a_question_can_be_left_to_the_caller() {
    let first = json!({ "resultType": "input_required", "inputRequests": { "who": form("who?") }, "requestState": "s" });
    let pair = Pair::new(Way::Http, Manner::modern().answer("tools/call", &first)).await;
    let request = tool("x", &json!({})).questions(ServerRequestHandling::Return);
    let ServerAnswer::InputRequired(result) = pair.client.request(request).await.unwrap() else {
        panic!()
    };
    assert_eq!(result.text("requestState").as_deref(), Some("s"));
}

#[tokio::test]
async fn a_server_cannot_ask_for_ever_nor_what_was_not_offered() {
    let again = json!({ "resultType": "input_required", "requestState": "s" });
    let pair = Pair::new(Way::Http, Manner::modern().answer("tools/call", &again)).await;
    let error = pair.client.request(tool("x", &json!({}))).await.unwrap_err();
    assert!(matches!(error, ClientCallError::Rounds { rounds: 16 }), "{error}");

    let unasked =
        json!({ "resultType": "input_required", "inputRequests": { "who": form("who?") } });
    let pair = Pair::new(Way::Http, Manner::modern().answer("tools/call", &unasked)).await;
    let error = pair.client.request(tool("x", &json!({}))).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the server's response is invalid: it requests `elicitation/create`, which the client did not declare"
    );

    let nothing = json!({ "resultType": "input_required" });
    let pair = Pair::new(Way::Http, Manner::modern().answer("tools/call", &nothing)).await;
    let error = pair.client.request(tool("x", &json!({}))).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the server's response is invalid: it requests input without `inputRequests`"
    );

    let unknown = json!({ "resultType": "telepathy" });
    let pair = Pair::new(Way::Http, Manner::modern().answer("tools/call", &unknown)).await;
    let error = pair.client.request(tool("x", &json!({}))).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the server's response is invalid: unknown result type `telepathy`"
    );
}

#[tokio::test]
async fn a_caller_may_answer_for_itself() {
    let person = Arc::new(Person::default());
    let pair = Pair::with(Way::Stdio, Manner::legacy(), asked_by(&person)).await;
    for answers in [true, false] {
        let request = tool("ask", &form("who?")).questions(ServerRequestHandling::Hand);
        let mut call = pair.client.call(request);
        let answer = loop {
            match call.next().await.unwrap() {
                PendingCallEvent::Question(question) if answers => {
                    question.reply.unwrap().send(Ok(json!({ "action": "decline" }).into()));
                }
                // Dropped, so refused.
                PendingCallEvent::Question(_) => {}
                PendingCallEvent::End(end) => break complete(end).unwrap().get("answer").unwrap(),
                other => panic!("{other:?}"),
            }
        };
        let answer: Value = answer.read().unwrap();
        if answers {
            assert_eq!(answer["result"], json!({ "action": "decline" }));
        } else {
            assert_eq!(answer["error"]["message"], "no user is available to respond");
        }
    }
    assert!(person.asked.lock().is_empty());
}

/// A call that asks its caller by name after a pause in milliseconds, and returns the response.
fn asks(name: &str, pause: u64) -> OutgoingRequest {
    let params = json!({ "message": name, "requestedSchema": { "type": "object" } });
    let question =
        format!(r#"{{"jsonrpc":"2.0","id":$ASK,"method":"elicitation/create","params":{params}}}"#);
    let result = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"answer":$ANSWER}}"#;
    let steps = [Step::Sleep(pause), Step::Ask(question), Step::Message(result.to_owned())];
    write(&steps).questions(ServerRequestHandling::Hand)
}

/// Makes a call whose requests must carry its own name. Returns the response that its server got.
async fn own_answer(mut call: PendingCall, name: &str) -> Value {
    loop {
        match call.next().await.unwrap() {
            PendingCallEvent::Question(question) => {
                assert_eq!(question.params.text("message").as_deref(), Some(name));
                let answer = json!({ "action": "accept", "content": { "name": name } });
                question.reply.unwrap().send(Ok(answer.into()));
            }
            PendingCallEvent::End(end) => {
                return complete(end).unwrap().get("answer").unwrap().read().unwrap();
            }
            other => panic!("{other:?}"),
        }
    }
}

fn patient(person: &Arc<Person>) -> ClientSettings {
    let mut settings = asked_by(person);
    settings.times.idle = Duration::from_secs(20);
    settings.times.total = Duration::from_secs(20);
    settings
}

// R1
#[tokio::test]
async fn requests_that_may_be_of_several_clients_reach_their_own_or_are_refused() {
    let pair =
        Pair::with(Way::Stdio, Manner::legacy(), patient(&Arc::new(Person::default()))).await;
    for sessions in [[None, None, None], [Some(1), Some(2), None]] {
        let names = ["ada", "bob", "eve"];
        // The later a call came, the earlier it asks.
        let call = |n: usize| {
            let request = asks(names[n], 300 - 100 * n as u64).session(sessions[n]);
            own_answer(pair.client.call(request), names[n])
        };
        let (one, two, three) = tokio::join!(call(0), call(1), call(2));
        let answers = [one, two, three];
        let own = answers.iter().zip(names).filter(|(answer, name)| {
            let is_own = answer["result"]["content"]["name"] == **name;
            let refused = "this request may belong to calls of several clients; retry the call";
            assert!(is_own || answer["error"]["message"] == refused, "{answer}");
            is_own
        });
        assert!(own.count() > 0, "the last one left is asked: {answers:?}");
    }
    // Of one client, each of whose calls may carry any of its requests, none is refused.
    let call = || own_answer(pair.client.call(asks("ada", 100).session(Some(7))), "ada");
    let (one, two, three) = tokio::join!(call(), call(), call());
    for answer in [one, two, three] {
        assert_eq!(answer["result"]["action"], "accept", "{answer}");
    }
}

// R1
#[tokio::test]
async fn the_request_of_a_call_that_was_abandoned_reaches_no_other_client() {
    let pair =
        Pair::with(Way::Stdio, Manner::legacy(), patient(&Arc::new(Person::default()))).await;
    let (mut abandoned, other) =
        (pair.client.call(asks("ada", 300)), pair.client.call(asks("bob", 1500)));
    let left = tokio::time::timeout(Duration::from_millis(100), abandoned.next()).await;
    assert!(left.is_err());
    drop(abandoned);
    // This one asks later, and by then the abandoned one was answered: the server ignored that it was cancelled.
    let answer = own_answer(other, "bob").await;
    assert_eq!(answer["result"]["content"]["name"], "bob", "{answer}");
    let refused = pair.until_seen(|message| message["error"].is_object()).await;
    assert_eq!(refused["id"], "ask-0");
}
