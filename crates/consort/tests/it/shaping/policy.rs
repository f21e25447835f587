//! Who may see and call what: allowed, unknown, or asked about.

use insta::assert_snapshot;
use serde_json::{Value, json};
use testkit::clients::Fixture;
use testkit::raw::Peer;

use super::{Stage, answering, at, calls, home, names, program, rogue, text};
use crate::Home;

fn able() -> Value {
    json!({ "elicitation": {} })
}

fn say(decision: &str) -> Value {
    json!({ "action": "accept", "content": { "decision": decision } })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_caller_may_not_see_is_unknown_to_it_and_others_have_it() {
    let home = Home::new();
    std::fs::write(home.path("ada.token"), "ada-0123456789-0123456789-0123456789").unwrap();
    let rules = format!(
        r#"
        [consort.tokens]
        ada = "file:{}"

        [[consort.policy.rules]]
        callers = ["client:ada"]
        tools = ["ref.echo", "ref.ask"]
        then = "deny"
        reason = "not for her"

        [[consort.policy.rules]]
        tools = ["ref.add"]
        when = {{ path = "a", less = 0 }}
        then = "deny"
        reason = "no negative numbers"
        "#,
        home.path("ada.token").display()
    );
    let config = program("ref", Fixture::Reference) + &rules;
    std::fs::write(home.path("consort.toml"), config).unwrap();
    let mut stage = Stage::at(home, &[]);
    let token = Some("ada-0123456789-0123456789-0123456789");
    let url = stage.url("/mcp");
    let hers = [
        Peer::modern(&url, token, json!({})),
        Peer::legacy(&url, token, json!({})).await,
        Peer::modern(&stage.url("/servers/ref/mcp"), token, json!({})),
    ];
    let owners = stage.both("/mcp", json!({})).await;
    for owner in &owners {
        assert!(names(owner).await.contains(&"echo".to_owned()));
        assert_eq!(text(&owner.call("echo", json!({ "message": "hi" })).await), "hi");
    }
    for ada in &hers {
        let listed = names(ada).await;
        assert!(listed.contains(&"add".to_owned()), "{listed:?}");
        assert!(!listed.contains(&"echo".to_owned()), "{listed:?}");
        let unknown = ada.call("echo", json!({ "message": "hi" })).await;
        let never = ada.call("echx", json!({ "message": "hi" })).await;
        // The same words as for what nobody has, but for the name.
        let words = |answer: &Value| answer["error"].to_string().replace("echx", "echo");
        assert_eq!(words(&unknown), words(&never));
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
        // What depends on arguments is listed, and says why.
        let refused = ada.call("add", json!({ "a": -1, "b": 1 })).await;
        assert!(refused["error"]["message"].as_str().unwrap().contains("no negative numbers"));
        assert_eq!(refused["error"]["code"], -31403, "{refused}");
        let mut facts = refused["error"]["data"]["gateway"].clone();
        facts.as_object_mut().unwrap().remove("reason");
        let expected =
            json!({ "class": "denied", "server": "ref", "sent": false, "retryable": false });
        assert_eq!(facts, expected);
        assert_eq!(text(&ada.call("add", json!({ "a": 1, "b": 1 })).await), "2");
    }
    let rows = stage.ledger();
    let of = |name: &str, outcome: &str| {
        let fits = |row: &&Value| row["name"] == name && row["outcome"] == outcome;
        rows.iter().filter(fits).count()
    };
    assert_eq!((of("echo", "ok"), of("add", "rejected"), of("add", "ok")), (2, 3, 3), "{rows:?}");
    // Of every refused call there is a record that says why, which its caller was not told.
    let why = |name: &str, reason: &str| {
        let fits = |row: &&Value| row["name"] == name && row["reason"] == reason;
        rows.iter().filter(fits).filter(|row| row["caller"] == "ada").count()
    };
    let counted = (why("echo", "policy_hidden"), why("echx", "unknown_name"));
    assert_eq!(counted, (3, 3), "{rows:?}");
    assert_eq!(why("add", "policy_denied"), 3, "{rows:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hidden_tool_that_is_called_through_a_search_is_recorded_too() {
    let rules = r#"
        [consort]
        exposure = "search"
        [[consort.policy.rules]]
        tools = ["ref.echo"]
        then = "deny"
    "#;
    let mut stage = Stage::new(&(program("ref", Fixture::Reference) + rules));
    let owner = stage.modern("/mcp", json!({}));
    let call = async |name: &str| {
        let arguments = json!({ "name": name, "arguments": { "message": "hi" } });
        owner.call("call_tool", arguments).await
    };
    let (hidden, missing) = (call("ref.echo").await, call("ref.echx").await);
    assert!(hidden["result"]["isError"].as_bool().unwrap(), "{hidden}");
    assert_eq!(text(&hidden), text(&missing).replace("echx", "echo"));
    // Names are whatever a caller likes to write.
    call(&format!("\u{1b}[31m{}", "x".repeat(100_000))).await;
    owner.call(&"x".repeat(2_000), json!({})).await;
    let rows = stage.ledger();
    let reason = |name: &str| {
        let row = rows.iter().find(|row| row["name"] == name);
        row.map(|row| row["reason"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(reason("ref.echo").as_deref(), Some("policy_hidden"), "{rows:?}");
    assert_eq!(reason("ref.echx").as_deref(), Some("unknown_name"), "{rows:?}");
    let odd: Vec<&str> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
    let odd: Vec<&&str> = odd.iter().filter(|name| name.contains("xxx")).collect();
    assert_eq!(odd.len(), 2, "{odd:?}");
    assert!(odd[0].starts_with("\\u{1b}[31mxxx"), "{odd:?}");
    assert!(odd.iter().all(|name| name.len() < 140), "{odd:?}");
}

const ASK: &str = r#"
    [[consort.policy.rules]]
    tools = ["r.find"]
    then = "ask"
    reason = "it costs money"
"#;

fn find(description: &str) -> Value {
    json!({
        "name": "find", "description": description,
        "inputSchema": { "type": "object", "properties": { "q": { "type": "string" } } },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_is_given_beside_the_policy_and_a_profile_knows_it_too() {
    let home = Home::new();
    std::fs::write(home.path("ada.token"), "ada-0123456789-0123456789-0123456789").unwrap();
    let rules = format!(
        r#"
        [consort.tokens]
        ada = "file:{}"

        [[consort.policy.rules]]
        callers = ["role:guest"]
        tools = ["ref.echo"]
        then = "deny"

        [consort.callers.ada]
        roles = ["guest"]

        [[consort.profiles.small.policy.rules]]
        callers = ["role:guest"]
        tools = ["ref.add"]
        then = "deny"
        "#,
        home.path("ada.token").display()
    );
    std::fs::write(home.path("consort.toml"), program("ref", Fixture::Reference) + &rules).unwrap();
    let stage = Stage::at(home, &[]);
    let token = Some("ada-0123456789-0123456789-0123456789");
    for (path, hidden) in [("/mcp", &["echo"][..]), ("/mcp/small", &["echo", "add"])] {
        let owner = names(&stage.modern(path, json!({}))).await;
        let ada = names(&Peer::modern(&stage.url(path), token, json!({}))).await;
        let missing: Vec<&String> = owner.iter().filter(|name| !ada.contains(name)).collect();
        assert_eq!(missing.len(), hidden.len(), "{missing:?}");
        assert!(hidden.iter().all(|name| owner.iter().any(|known| known == name)), "{owner:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_is_asked_through_the_client_in_either_era() {
    let http = rogue(&find("Finds.")).await;
    let stage = Stage::new(&(at("r", &http.url()) + ASK));
    let query = json!({ "q": "mcp" });
    for peer in stage.both("/mcp", able()).await {
        let (question, end) = answering(&peer, "find", query.clone(), &say("once")).await;
        assert_eq!(text(&end), r#"{"ok":true}"#);
        let question = question.unwrap();
        let message = question["message"].as_str().unwrap();
        assert!(message.starts_with("`client:owner` wants to call `r.find`"), "{message}");
        assert!(
            message.contains("it costs money") && message.contains(r#""q": "mcp""#),
            "{message}"
        );
        let no =
            json!({ "action": "accept", "content": { "decision": "deny", "reason": "too dear" } });
        let (_, end) = answering(&peer, "find", query.clone(), &no).await;
        let message = end["error"]["message"].as_str().unwrap();
        assert!(message.contains("denied by the user: too dear"), "{end}");
        let mut edited = say("once");
        edited["content"]["arguments"] = json!(r#"{"q":"something else"}"#);
        let (_, end) = answering(&peer, "find", query.clone(), &edited).await;
        assert_eq!(text(&end), r#"{"ok":true}"#);
    }
    for peer in stage.both("/mcp", json!({})).await {
        let answer = peer.call("find", query.clone()).await;
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("this client cannot ask its user"), "{answer}");
    }
    let sent = |q: &str| (json!("find"), json!({ "q": q }));
    assert_eq!(
        calls(&http),
        [sent("mcp"), sent("something else"), sent("mcp"), sent("something else")]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn always_holds_after_a_restart_until_the_definition_changes() {
    let (first, other) = (rogue(&find("Finds.")).await, rogue(&find("Finds more.")).await);
    let stage = Stage::new(&(at("r", &first.url()) + ASK));
    let [modern, legacy] = stage.both("/mcp", able()).await;
    let (question, _) = answering(&modern, "find", json!({ "q": "a" }), &say("always")).await;
    assert!(question.is_some());
    let (question, _) = answering(&legacy, "find", json!({ "q": "b" }), &say("deny")).await;
    assert_eq!(question, None);
    // Another shape of arguments is another matter.
    let more = json!({ "q": "b", "all": true });
    assert!(answering(&legacy, "find", more, &say("deny")).await.0.is_some());
    assert!(stage.home.path(".local/state/consort/approvals.json").exists());

    let stage = restarted(stage);
    let [modern, legacy] = stage.both("/mcp", able()).await;
    for peer in [&modern, &legacy] {
        let (question, end) = answering(peer, "find", json!({ "q": "c" }), &say("deny")).await;
        assert_eq!((question, text(&end)), (None, r#"{"ok":true}"#));
    }
    // And for a client that cannot ask.
    let mute = stage.modern("/mcp", json!({}));
    assert_eq!(text(&mute.call("find", json!({ "q": "d" })).await), r#"{"ok":true}"#);

    stage.configure(&(at("r", &other.url()) + ASK));
    let stage = restarted(stage);
    for peer in stage.both("/mcp", able()).await {
        let (question, _) = answering(&peer, "find", json!({ "q": "e" }), &say("deny")).await;
        assert!(question.is_some());
    }
    assert!(calls(&other).is_empty());
}

/// The same home with another gateway.
fn restarted(mut stage: Stage) -> Stage {
    assert_eq!(stage.serving.take().unwrap().end().0, 0);
    let home = std::mem::replace(&mut stage.home, Home::new());
    Stage::at(home, &[])
}

#[tokio::test(flavor = "multi_thread")]
async fn for_the_session_holds_as_long_as_the_gateway_whatever_the_config_becomes() {
    let http = rogue(&find("Finds.")).await;
    let config = at("r", &http.url()) + ASK;
    let stage = Stage::new(&config);
    let peer = stage.modern("/mcp", able());
    assert!(answering(&peer, "find", json!({ "q": "a" }), &say("session")).await.0.is_some());
    stage.configure(&format!("{config}\n[consort.profiles.new]\n"));
    crate::serve::until(|| stage.serving().get("/mcp/new").0 != 404);
    let (question, end) = answering(&peer, "find", json!({ "q": "b" }), &say("deny")).await;
    assert_eq!((question, text(&end)), (None, r#"{"ok":true}"#));
    assert!(!stage.home.path(".local/state/consort/approvals.json").exists());
    let stage = restarted(stage);
    let peer = stage.modern("/mcp", able());
    assert!(answering(&peer, "find", json!({ "q": "a" }), &say("deny")).await.0.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn read_only_leaves_what_only_reads() {
    let mut tool = find("Finds.");
    tool["annotations"] = json!({ "readOnlyHint": true });
    let http = rogue(&tool).await;
    let config = at("r", &http.url());
    let stage = Stage::with(&config, &["--read-only"]);
    for path in ["/mcp", "/servers/r/mcp"] {
        assert_eq!(names(&stage.modern(path, json!({}))).await, ["find"]);
    }
    let home = home(&format!("[consort]\nbuiltin = false\n{config}"));
    assert_snapshot!(home.run(&["--read-only", "tools"]).out, @"
    TOOL    DESCRIPTION
    r.find  Finds.
    ");
    assert_eq!(home.run(&["--read-only", "call", "r.find", "q=a"]).code, 0);
    assert_eq!(home.run(&["--read-only", "call", "r.seen"]).code, 2);
    assert_eq!(calls(&http).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_terminal_nobody_is_asked_and_the_call_is_denied() {
    let http = rogue(&find("Finds.")).await;
    let home = home(&(at("r", &http.url()) + ASK));
    let ran = home.run(&["call", "r.find", "q=a"]);
    assert_eq!(ran.code, 5);
    assert_snapshot!(ran.err, @"error: denied: not approved: no terminal");
    assert!(calls(&http).is_empty());
    assert_snapshot!(home.run(&["tools", "--explain", "r.find"]).out, @"
    r.find -> r.find
      no transforms apply
      policy: approval required by rule 1 (it costs money); the tool is destructive, open-world
    ");
}
