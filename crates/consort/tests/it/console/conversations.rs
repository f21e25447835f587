//! Agents talked to by the admin API, over real servers.

use rustix::process::Signal;
use serde_json::{Value, json};
use testkit::clients::Fixture;

use super::stream::Stream;
use super::{events, soon};
use crate::Home;
use crate::serve::Serving;

fn sum(a: i32, b: i32) -> Value {
    json!({ "name": "get-sum", "id": "sum", "arguments": { "a": a, "b": b } })
}

/// A gateway over two real servers, with an agent for each thing that can happen.
fn serving(home: &Home, policy: &Value) -> Serving {
    let scripts = [
        (
            "adder",
            json!([
                { "thinking": "Hm.", "text": "Let me add.", "calls": [sum(2, 3)],
                  "usage": { "input": 10, "output": 5 } },
                { "expect": { "role": "tool", "contains": "5" }, "text": "It is 5.",
                  "usage": { "input": 20, "output": 4 } },
                { "text": "Still 5." },
            ]),
        ),
        (
            "slow",
            json!([
                { "calls": [{ "name": "slow", "id": "slow", "arguments": { "steps": 1000, "ms": 50 } }] },
                { "expect": { "role": "tool" }, "text": "Never mind." },
            ]),
        ),
        (
            "asker",
            json!([
                { "calls": [{ "name": "ask_user", "id": "city",
                              "arguments": { "question": "Which city?", "choices": ["Oslo", "Rome"] } }] },
                { "expect": { "role": "tool", "contains": "Oslo" }, "text": "Oslo it is." },
            ]),
        ),
        (
            "form",
            json!([
                { "calls": [{ "name": "trigger-elicitation-request", "id": "form" }] },
                { "expect": { "role": "tool", "contains": "Name: Ada" }, "text": "Hello Ada." },
            ]),
        ),
    ];
    let mut agents = serde_json::Map::new();
    for (name, turns) in scripts {
        let script = json!({ "turns": turns }).to_string();
        std::fs::write(home.path(&format!("{name}.json")), script).unwrap();
        agents.insert(name.to_owned(), json!({ "model": format!("scripted:{name}.json") }));
    }
    agents["adder"]["description"] = "Adds.".into();
    let server = |fixture: Fixture| {
        let [command, arguments @ ..] = &fixture.command()[..] else { panic!("no command") };
        json!({ "command": command, "args": arguments })
    };
    let config = json!({
        "mcpServers": {
            "everything": server(Fixture::Everything), "reference": server(Fixture::Reference),
        },
        "consort": {
            "agents": agents,
            "providers": { "local": { "base_url": "http://127.0.0.1:9/v1", "tries": 1 } },
            "models": { "local:small": { "window": 8192 } },
            "policy": policy,
        },
    });
    std::fs::write(home.path("mcp.json"), config.to_string()).unwrap();
    Serving::start(home, &["--config", home.path("mcp.json").to_str().unwrap()])
}

fn asking() -> Value {
    json!({ "rules": [{ "tools": ["everything.get-sum"], "then": "ask" }] })
}

fn begin(serving: &Serving, agent: &str, text: &str) -> String {
    let body = json!({ "agent": agent, "text": text });
    let (status, made) = serving.api("POST", "/conversations", Some(&body));
    assert_eq!(status, 201, "{made}");
    made["id"].as_str().unwrap().to_owned()
}

/// Waits until nothing goes on in a conversation.
fn rested(serving: &Serving, id: &str) -> Value {
    soon("the end of the run", || {
        let told = serving.told(&format!("/conversations/{id}"));
        (told["running"] == false).then_some(told)
    })
}

/// Waits for a question of a conversation.
fn question(serving: &Serving, id: &str) -> Value {
    soon("a question", || {
        let told = serving.told("/pending-requests");
        let ours = |question: &&Value| question["conversation"] == id;
        told.as_array().unwrap().iter().find(ours).cloned()
    })
}

fn answer(serving: &Serving, question: &Value, content: &Value) -> (u16, Value) {
    let path = format!("/pending-requests/{}", question["id"].as_str().unwrap());
    let body = json!({ "action": "accept", "content": content });
    serving.api("POST", &path, Some(&body))
}

/// Follows the run that is on to its end.
fn followed(serving: &Serving, id: &str) -> Vec<(String, Value)> {
    let (status, stream) = serving.get(&format!("/api/conversations/{id}/events"));
    assert_eq!(status, 200, "{stream}");
    events(&stream)
}

fn names(events: &[(String, Value)]) -> Vec<&str> {
    events.iter().map(|(name, _)| name.as_str()).collect()
}

fn named<'a>(events: &'a [(String, Value)], name: &str) -> &'a Value {
    &events.iter().find(|(known, _)| known == name).unwrap_or_else(|| panic!("{name}")).1
}

#[test]
fn those_who_can_be_talked_to_are_listed() {
    let home = Home::new();
    let serving = serving(&home, &json!({}));
    let told = serving.told("/agents");
    let listed: Vec<(&str, bool, bool)> = told
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| {
            let flag = |name: &str| agent[name].as_bool().unwrap();
            (agent["name"].as_str().unwrap(), flag("scripted"), flag("default"))
        })
        .collect();
    assert_eq!(
        listed,
        [
            ("adder", true, true),
            ("asker", true, false),
            ("form", true, false),
            ("slow", true, false),
            ("local:small", false, false),
        ]
    );
    assert_eq!(told[0]["description"], "Adds.");
    assert_eq!(told[0]["model"], "scripted:adder.json");
    assert!(told[0]["tools"].as_u64().unwrap() > 10, "{told}");
    assert_eq!(serving.end().0, 0);
}

#[test]
fn a_conversation_is_had_kept_copied_and_removed() {
    let home = Home::new();
    let serving = serving(&home, &json!({}));
    for (body, status) in [
        (json!({ "agent": "addder", "text": "go" }), 422),
        (json!({ "agent": "adder", "text": " " }), 422),
        (json!({ "agent": "adder" }), 400),
    ] {
        assert_eq!(serving.api("POST", "/conversations", Some(&body)).0, status, "{body}");
    }
    let id = begin(&serving, "adder", "How much is 2 + 3?");
    let path = format!("/conversations/{id}");
    let told = rested(&serving, &id);
    let result = json!([{ "type": "text", "text": "The sum of 2 and 3 is 5." }]);
    assert_eq!(
        told["entries"],
        json!([
            { "role": "user", "parts": [{ "type": "text", "text": "How much is 2 + 3?" }] },
            { "role": "assistant", "parts": [
                { "type": "thinking", "text": "Hm." },
                { "type": "text", "text": "Let me add." },
                { "type": "call", "id": "sum", "name": "get-sum", "arguments": { "a": 2, "b": 3 } },
            ] },
            { "role": "tool", "parts": [
                { "type": "result", "call": "sum", "name": "get-sum", "is_error": false, "parts": result },
            ] },
            { "role": "assistant", "parts": [{ "type": "text", "text": "It is 5." }] },
        ])
    );
    assert_eq!((&told["agent"], &told["state"]), (&json!("adder"), &json!("completed")));
    assert_eq!(told["report"]["text"], "It is 5.");
    assert_eq!((&told["input"], &told["output"]), (&json!(30), &json!(9)));
    // Nothing is on, and nothing to resume.
    assert_eq!(names(&followed(&serving, &id)), ["idle"]);
    assert_eq!(serving.api("POST", &path, Some(&json!({}))).0, 409);
    // Whoever answered before goes on.
    let (status, said) = serving.api("POST", &path, Some(&json!({ "text": "Sure?" })));
    assert_eq!(status, 202, "{said}");
    assert_eq!(rested(&serving, &id)["entries"][5]["parts"][0]["text"], "Still 5.");
    let (status, copy) = serving.api("POST", &format!("{path}/fork"), Some(&json!({ "at": 2 })));
    assert_eq!(status, 201, "{copy}");
    let copy = copy["id"].as_str().unwrap().to_owned();
    let copied = serving.told(&format!("/conversations/{copy}"));
    assert_eq!(copied["entries"].as_array().unwrap().len(), 2);
    let none = serving.api("POST", &format!("{path}/fork"), Some(&json!({ "at": 99 })));
    assert_eq!(none.0, 422, "{none:?}");
    same_as_at_the_terminal(&home, &serving, &[&id, &copy]);
    assert_eq!(serving.api("DELETE", &format!("/conversations/{copy}"), None).0, 204);
    for strange in [&copy, "last", "..%2f..%2fetc"] {
        for (method, path) in [("GET", ""), ("GET", "/events"), ("POST", "/stop"), ("DELETE", "")] {
            let path = format!("/conversations/{strange}{path}");
            assert_eq!(serving.api(method, &path, None).0, 404, "{method} {path}");
        }
    }
    same_as_at_the_terminal(&home, &serving, &[&id]);
    assert_eq!(serving.end().0, 0);
}

/// The same are told here and at a terminal.
fn same_as_at_the_terminal(home: &Home, serving: &Serving, ids: &[&str]) {
    let listed = home.run(&["conversations", "list", "--json"]);
    let listed: Vec<Value> = serde_json::from_str(&listed.out).unwrap();
    let told = serving.told("/conversations");
    let told = told.as_array().unwrap();
    assert_eq!((told.len(), listed.len()), (ids.len(), ids.len()));
    for id in ids {
        let of = |all: &[Value]| all.iter().find(|one| one["id"] == *id).unwrap().clone();
        let (here, there) = (of(told), of(&listed));
        for field in ["title", "messages", "input", "output", "state"] {
            assert_eq!(here[field], there[field], "{field}");
        }
        let detail = serving.told(&format!("/conversations/{id}"));
        for (field, value) in here.as_object().unwrap() {
            assert_eq!(detail[field], *value, "{field}");
        }
    }
}

#[test]
fn a_run_is_followed_by_many_and_stopped() {
    let home = Home::new();
    let serving = serving(&home, &json!({}));
    let id = begin(&serving, "slow", "Take your time.");
    let path = format!("/conversations/{id}");
    std::thread::scope(|scope| {
        let first = scope.spawn(|| followed(&serving, &id));
        let running = soon("progress", || {
            let told = serving.told(&path);
            // What is on is told by its events.
            (told["running"] == true && told["entries"].as_array().unwrap().len() == 1)
                .then_some(told)
        });
        assert_eq!(running["state"], "unfinished");
        let second = scope.spawn(|| followed(&serving, &id));
        assert_eq!(serving.api("POST", &path, Some(&json!({ "text": "And?" }))).0, 409);
        assert_eq!(serving.api("DELETE", &path, None).0, 409);
        // Until the call is at its server and reports progress.
        soon("progress of the call", || {
            let calls = serving.told("/calls");
            let calls = calls.as_array().unwrap_or_else(|| calls["calls"].as_array().unwrap());
            calls.iter().any(|call| call["steps"].as_u64() > Some(2)).then_some(())
        });
        assert_eq!(serving.api("POST", &format!("{path}/stop"), Some(&json!({}))).0, 204);
        let (first, second) = (first.join().unwrap(), second.join().unwrap());
        for heard in [&first, &second] {
            assert_eq!(named(heard, "started")["model"], "scripted:slow.json");
            let called = named(heard, "call");
            assert_eq!(
                (&called["call"], &called["tool"]),
                (&json!("slow"), &json!("reference.slow"))
            );
            assert_eq!(called["arguments"]["steps"], 1000);
            assert_eq!(named(heard, "progress")["call"], "slow");
            let (name, over) = heard.last().unwrap();
            assert_eq!((&**name, &over["status"]), ("end", &json!("cancelled")));
        }
        assert!(names(&first).iter().filter(|name| **name == "progress").count() > 1);
    });
    let told = rested(&serving, &id);
    assert_eq!(
        (&told["state"], &told["report"]["status"]),
        (&json!("cancelled"), &json!("cancelled"))
    );
    // What was stopped can be gone on with.
    assert_eq!(serving.api("POST", &path, Some(&json!({}))).0, 202);
    let told = rested(&serving, &id);
    assert_eq!(
        (&told["state"], &told["report"]["text"]),
        (&json!("completed"), &json!("Never mind."))
    );
    assert_eq!(serving.end().0, 0);
}

#[test]
fn words_stream_and_every_step_is_told() {
    let home = Home::new();
    let serving = serving(&home, &asking());
    let id = begin(&serving, "adder", "How much?");
    let question = question(&serving, &id);
    let following = Stream::get(&serving, &format!("/api/conversations/{id}/events"));
    assert_eq!(answer(&serving, &question, &json!({ "decision": "once" })).0, 204);
    let heard = following.all();
    // Words are told as a whole to who comes later.
    let mut expected = vec!["started", "turn", "message", "call", "request", "result", "turn"];
    expected.extend(["delta", "delta", "delta", "message", "end"]);
    let mut heard_names = names(&heard);
    heard_names.retain(|name| *name != "delta");
    expected.retain(|name| *name != "delta");
    assert_eq!(heard_names, expected);
    assert_eq!(named(&heard, "result")["parts"][0]["text"], "The sum of 2 and 3 is 5.");
    assert_eq!(named(&heard, "request")["id"], question["id"]);
    assert_eq!(heard.last().unwrap().1["status"], "completed");
    serving.end();
}

#[test]
fn a_call_is_agreed_to_changed_or_denied_where_it_is_asked() {
    let home = Home::new();
    let serving = serving(&home, &asking());
    for (content, result) in [
        (json!({ "decision": "once" }), "The sum of 2 and 3 is 5."),
        (
            json!({ "decision": "once", "arguments": "{\"a\": 1, \"b\": 4}" }),
            "The sum of 1 and 4 is 5.",
        ),
    ] {
        let id = begin(&serving, "adder", "How much is it?");
        let asked = question(&serving, &id);
        assert_eq!((&asked["kind"], &asked["call"]), (&json!("approval"), &json!("sum")));
        assert_eq!((&asked["server"], &asked["tool"]), (&json!("everything"), &json!("get-sum")));
        assert_eq!(asked["caller"], "client:owner");
        let told = serving.told(&format!("/conversations/{id}"));
        assert_eq!(told["pending"][0]["id"], asked["id"], "{told}");
        assert_eq!(answer(&serving, &asked, &json!({ "decision": "perhaps" })).0, 422);
        assert_eq!(answer(&serving, &asked, &content).0, 204);
        let told = rested(&serving, &id);
        assert_eq!(told["entries"][2]["parts"][0]["parts"][0]["text"], result, "{told}");
        assert_eq!(answer(&serving, &asked, &json!({ "decision": "once" })).0, 404);
    }
    let id = begin(&serving, "adder", "How much is it?");
    let asked = question(&serving, &id);
    assert_eq!(
        answer(&serving, &asked, &json!({ "decision": "deny", "reason": "not today" })).0,
        204
    );
    let told = rested(&serving, &id);
    let result = &told["entries"][2]["parts"][0];
    assert_eq!(result["is_error"], true, "{told}");
    assert!(result["parts"][0]["text"].as_str().unwrap().contains("not today"), "{told}");
    // A run that is stopped asks nothing any more.
    let id = begin(&serving, "adder", "How much is it?");
    question(&serving, &id);
    serving.api("POST", &format!("/conversations/{id}/stop"), Some(&json!({})));
    rested(&serving, &id);
    assert_eq!(serving.told("/pending-requests"), json!([]));
    assert_eq!(serving.end().0, 0);
}

#[test]
fn models_and_servers_ask_people_by_the_desk() {
    let home = Home::new();
    let serving = serving(&home, &json!({}));
    let id = begin(&serving, "asker", "Where to?");
    let asked = question(&serving, &id);
    assert_eq!((&asked["kind"], &asked["message"]), (&json!("model"), &json!("Which city?")));
    assert_eq!(asked["schema"]["properties"]["answer"]["enum"], json!(["Oslo", "Rome"]));
    assert_eq!(answer(&serving, &asked, &json!({ "answer": "Paris" })).0, 422);
    assert_eq!(answer(&serving, &asked, &json!({ "answer": "Oslo" })).0, 204);
    assert_eq!(rested(&serving, &id)["report"]["text"], "Oslo it is.");
    // This server has that tool only for those who can be asked, and lists it a moment after they are connected.
    let (id, asked) = soon("the tool that asks", || {
        let id = begin(&serving, "form", "Who am I?");
        soon("a question or the end", || {
            let told = serving.told("/pending-requests");
            let ours = |question: &&Value| question["conversation"] == *id;
            let asked = told.as_array().unwrap().iter().find(ours).cloned();
            let is_over = || serving.told(&format!("/conversations/{id}"))["running"] == false;
            (asked.is_some() || is_over()).then_some(asked)
        })
        .map(|asked| (id, asked))
    });
    assert_eq!((&asked["kind"], &asked["server"]), (&json!("server"), &json!("everything")));
    let (status, said) = answer(&serving, &asked, &json!({ "name": "Ada" }));
    assert_eq!(status, 204, "{said}");
    assert_eq!(rested(&serving, &id)["report"]["text"], "Hello Ada.");
    assert_eq!(serving.end().0, 0);
}

#[test]
fn the_message_that_began_a_run_is_there_before_its_servers_are() {
    let home = Home::new();
    let serving = serving(&home, &json!({}));
    // The first run waits until servers list what they have for its capabilities.
    let id = begin(&serving, "asker", "Where to?");
    let told = serving.told(&format!("/conversations/{id}"));
    assert_eq!(told["entries"][0]["parts"][0]["text"], "Where to?", "{told}");
    assert_eq!(serving.end().0, 0);
}

#[test]
fn what_a_killed_gateway_left_goes_on_and_its_questions_can_be_answered() {
    let home = Home::new();
    let first = serving(&home, &asking());
    let slow = begin(&first, "slow", "Take your time.");
    let waits = begin(&first, "adder", "How much?");
    question(&first, &waits);
    soon("a call", || {
        let shown = home.run(&["conversations", "show", &slow, "--json"]).out;
        shown.contains("\"called\"").then_some(())
    });
    first.signal(Signal::KILL);
    let mut child = first.child;
    child.wait().unwrap();
    let second = serving(&home, &asking());
    // It is on the desk without anybody looking for it.
    let asked = question(&second, &waits);
    assert_eq!((&asked["tool"], &asked["call"]), (&json!("get-sum"), &json!("sum")));
    let path = format!("/conversations/{waits}");
    assert_eq!(second.told(&path)["pending"], json!([asked]));
    assert_eq!(second.told("/pending-requests").as_array().unwrap().len(), 1);
    // Dismissed, it stays.
    let dismissed = format!("/pending-requests/{}", asked["id"].as_str().unwrap());
    assert_eq!(second.api("POST", &dismissed, Some(&json!({ "action": "cancel" }))).0, 204);
    let asked = question(&second, &waits);
    assert_eq!(answer(&second, &asked, &json!({ "decision": "once" })).0, 204);
    let told = soon("the run", || {
        let told = second.told(&path);
        (told["state"] == "completed" && told["running"] == false).then_some(told)
    });
    assert_eq!(told["report"]["text"], "It is 5.");
    // What was on its way is unknown, and the model is told.
    let path = format!("/conversations/{slow}");
    assert_eq!(second.told(&path)["state"], "unfinished");
    assert_eq!(second.api("POST", &path, Some(&json!({}))).0, 202);
    let told = rested(&second, &slow);
    let unknown = told["entries"][2]["parts"][0]["parts"][0]["text"].as_str().unwrap();
    assert!(unknown.starts_with("outcome unknown"), "{unknown}");
    assert_eq!(told["report"]["text"], "Never mind.");
    assert_eq!(second.end().0, 0);
}

#[test]
fn a_gateway_that_ends_leaves_what_can_be_gone_on_with() {
    let home = Home::new();
    let first = serving(&home, &asking());
    let slow = begin(&first, "slow", "Take your time.");
    let waits = begin(&first, "adder", "How much?");
    question(&first, &waits);
    let begun = std::time::Instant::now();
    let following = Stream::get(&first, &format!("/api/conversations/{slow}/events"));
    first.signal(Signal::TERM);
    let followed = following.all();
    assert_eq!(followed.last().unwrap().1["status"], "cancelled");
    assert_eq!(first.end().0, 0);
    assert!(begun.elapsed() < super::PATIENCE, "{:?}", begun.elapsed());
    let second = serving(&home, &asking());
    assert_eq!(second.told(&format!("/conversations/{slow}"))["state"], "cancelled");
    // Whoever waited for a person still does.
    let path = format!("/conversations/{waits}");
    assert_eq!(second.told(&path)["state"], "waiting");
    let asked = question(&second, &waits);
    assert_eq!(second.api("POST", &path, Some(&json!({}))).0, 409);
    assert_eq!(answer(&second, &asked, &json!({ "decision": "once" })).0, 204);
    soon("the run", || (second.told(&path)["state"] == "completed").then_some(()));
    assert_eq!(second.end().0, 0);
}

#[test]
fn what_another_process_goes_on_with_is_left_alone() {
    let home = Home::new();
    let serving = serving(&home, &json!({}));
    let id = begin(&serving, "adder", "How much?");
    rested(&serving, &id);
    let file = home.path(&format!(".local/share/consort/conversations/{id}.jsonl"));
    let held = std::fs::File::open(file).unwrap();
    held.lock().unwrap();
    let path = format!("/conversations/{id}");
    let (status, said) = serving.api("POST", &path, Some(&json!({ "text": "And?" })));
    assert_eq!(
        (status, said["error"].as_str()),
        (409, Some(&*format!("conversation `{id}` is in use")))
    );
    assert_eq!(serving.api("DELETE", &path, None).0, 409);
    // To read and to copy need nobody's leave.
    assert_eq!(serving.told(&path)["state"], "completed");
    assert_eq!(serving.api("POST", &format!("{path}/fork"), Some(&json!({}))).0, 201);
    drop(held);
    assert_eq!(serving.api("POST", &path, Some(&json!({ "text": "And?" }))).0, 202);
    rested(&serving, &id);
    serving.end();
}

#[test]
fn only_so_many_runs_are_on_at_once() {
    let home = Home::new();
    let serving = serving(&home, &json!({}));
    for _ in 0..16 {
        begin(&serving, "asker", "Where to?");
    }
    let body = json!({ "agent": "asker", "text": "Where to?" });
    let (status, said) = serving.api("POST", "/conversations", Some(&body));
    assert_eq!((status, said["error"].as_str()), (503, Some("16 runs are already in progress")));
    assert_eq!(serving.told("/conversations").as_array().unwrap().len(), 16);
    assert_eq!(serving.end().0, 0);
}
