//! Users, API keys and clients from the command line, with a running gateway and without one.

use std::fs;

use serde_json::{Value, json};

use crate::serve::{Serving, demo};
use crate::{Home, Ran};

const USERS: &str = "[consort.authorization]\n[consort.services.ci]\ndescription = \"builds\"\n\
     [consort.services.deploy]\n[consort.roles]\nadmin = [\"user:service/deploy\"]\n\
     reviewer = [\"user:local/ada\", \"owner\"]\n";

/// A home with a config that has users.
fn home() -> Home {
    let home = Home::new();
    home.write("consort.toml", &format!("{}{USERS}", demo("demo")));
    home
}

/// Runs a command that succeeds, and returns its JSON.
fn json_of(home: &Home, arguments: &[&str]) -> Value {
    let ran = home.run(&[arguments, &["--json"]].concat());
    assert_eq!(ran.code, 0, "{arguments:?}: {ran:?}");
    serde_json::from_str(&ran.out).unwrap()
}

/// Runs a command that fails, and returns its message, its hint and its exit code.
fn failure(home: &Home, arguments: &[&str]) -> (String, String, i32) {
    let ran = home.run(&[arguments, &["--json"]].concat());
    let told = ran.err.lines().chain(ran.out.lines()).find_map(|line| {
        serde_json::from_str::<Value>(line).ok().filter(|told| told["error"].is_object())
    });
    let told = told.unwrap_or_else(|| panic!("{arguments:?}: {ran:?}"));
    let text = |name: &str| told["error"][name].as_str().unwrap_or_default().to_owned();
    assert_eq!(told["error"]["exit_code"], ran.code);
    (text("message"), text("hint"), ran.code)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value}"))
}

/// The status of a request to the gateway with another token.
fn status(serving: &mut Serving, path: &str, token: &str) -> u16 {
    let own = serving.token.replace(token.to_owned());
    let (status, _) = serving.get(path);
    serving.token = own;
    status
}

/// Every command about keys, whoever has the store.
fn keys(home: &Home) {
    let created = json_of(home, &["key", "new", "laptop"]);
    let (id, key) = (text(&created["id"]), text(&created["key"]));
    assert!(key.starts_with(&format!("ck_{id}_")), "{created}");
    assert_eq!(created["user"], "local/owner");
    let listed = json_of(home, &["key", "list"]);
    let one = &listed[0];
    assert_eq!(
        (&one["id"], &one["name"], &one["admin"]),
        (&json!(id), &json!("laptop"), &json!(false))
    );
    assert_eq!((&one["user"], &one["endpoints"]), (&json!("local/owner"), &json!([])));
    let lasts = one["expires_at"].as_u64().unwrap() - one["created_at"].as_u64().unwrap();
    assert_eq!(lasts, 90 * 86_400, "by default, a key expires");
    assert!(!listed.to_string().contains(key));
    let args = ["key", "new", "build", "--service", "ci", "--endpoint", "/mcp/review"];
    let ran = home.run(&[&args[..], &["--endpoint", "/v1", "--expires", "never"]].concat());
    // The key alone, for a pipe; everything else is for people.
    let key = ran.out.trim_end();
    assert!(key.starts_with("ck_") && !key.contains(char::is_whitespace), "{ran:?}");
    assert!(
        ran.err.contains(" of service/ci: it does not expire. It is not shown again"),
        "{ran:?}"
    );
    assert!(!ran.err.contains(key));
    let ran = home.run(&["key", "list"]);
    assert!(ran.out.starts_with("ID "), "{ran:?}");
    let row = ran.out.lines().find(|line| line.contains("service/ci")).unwrap();
    for part in ["build", "/mcp/review /v1", "never"] {
        assert!(row.contains(part), "{part}: {row}");
    }
    let unconfirmed = failure(home, &["key", "revoke", id]);
    let message = "confirmation required; nothing was changed";
    assert_eq!(unconfirmed.0, message);
    assert_eq!(
        (&*unconfirmed.1, unconfirmed.2),
        ("run it in a terminal, or confirm with --yes", 5)
    );
    assert_eq!(json_of(home, &["key", "revoke", id, "--yes"]), json!({ "revoked": id }));
    assert_eq!(json_of(home, &["key", "list"]).as_array().unwrap().len(), 1);
    let gone = failure(home, &["key", "revoke", id, "--yes"]);
    assert_eq!((gone.0, gone.2), (format!("unknown key `{id}`"), 2));
    for (arguments, message) in [
        (
            &["--service", "none"][..],
            "unknown service account `none`: add `[consort.services.none]`",
        ),
        (&["--user", "bob"], "unknown user `bob`"),
        (
            &["--endpoint", "/api"],
            "`/api` is no endpoint: use a path such as `/mcp/PROFILE` or `/v1`",
        ),
    ] {
        let failed = failure(home, &[&["key", "new", "x"], arguments].concat());
        assert_eq!((&*failed.0, failed.2), (message, 2));
    }
}

#[test]
fn keys_are_made_listed_and_revoked_without_a_gateway() {
    keys(&home());
}

#[test]
fn keys_are_made_listed_and_revoked_by_a_running_gateway() {
    let home = home();
    let serving = Serving::start(&home, &["-c", "consort.toml"]);
    keys(&home);
    assert_eq!(serving.end().0, 0);
}

#[test]
fn a_key_works_until_it_is_revoked_and_not_a_request_longer() {
    let home = home();
    let offline = json_of(&home, &["key", "new", "before", "--service", "ci"]);
    let mut serving = Serving::start(&home, &["-c", "consort.toml"]);
    let online = json_of(&home, &["key", "new", "after", "--endpoint", "/servers/demo/mcp"]);
    let admin = json_of(&home, &["key", "new", "ops", "--service", "deploy", "--admin"]);
    for created in [&offline, &online] {
        let key = text(&created["key"]).to_owned();
        serving.token.replace(key.clone());
        assert!(serving.tools("/servers/demo/mcp").contains(&"get_weather".to_owned()));
        let refused = status(&mut serving, "/mcp", &key) == 401;
        assert_eq!(refused, created == &online, "its endpoint alone");
        for path in ["/api/session", "/metrics", "/v1/models"] {
            assert_eq!(status(&mut serving, path, &key), 401, "{path}");
        }
        json_of(&home, &["key", "revoke", text(&created["id"]), "--yes"]);
        assert_eq!(status(&mut serving, "/servers/demo/mcp", &key), 401);
    }
    // A key of an administrator opens no endpoint of clients.
    assert_eq!(status(&mut serving, "/mcp", text(&admin["key"])), 401);
    let key = text(&admin["key"]).to_owned();
    let told = home.run_with(&["whoami", "--token-file", "-", "--at", "/api/keys", "--json"], &key);
    let told: Value = serde_json::from_str(&told.out).unwrap();
    assert_eq!((&told["valid"], &told["user"]["rights"]), (&json!(true), &json!("admin")));
    assert_eq!(serving.end().0, 0);
}

/// Every command about users and clients, whoever has the store.
fn users(home: &Home, origin: &str) {
    let added = json_of(home, &["user", "add", "ada"]);
    assert_eq!(added["user"], "local/ada");
    assert!(text(&added["url"]).starts_with(&format!("{origin}/oauth/link/")), "{added}");
    let ran = home.run(&["user", "add", "bob"]);
    assert!(ran.out.starts_with(origin) && ran.out.lines().count() == 1, "{ran:?}");
    assert!(ran.err.contains("signs local/bob in once"), "{ran:?}");
    let listed = json_of(home, &["user", "list"]);
    let names: Vec<&str> =
        listed.as_array().unwrap().iter().map(|user| text(&user["name"])).collect();
    assert_eq!(names, ["local/ada", "local/bob"]);
    let id = text(&listed[0]["id"]).to_owned();
    assert_eq!((id.len(), &listed[0]["suspended"]), (32, &json!(false)));
    let key = json_of(home, &["key", "new", "x", "--user", &id]);
    assert_eq!(key["user"], "local/ada");
    assert!(home.run(&["user", "list"]).out.contains("active"));
    assert_eq!(json_of(home, &["user", "grants", "ada"]), json!([]));
    assert_eq!(home.run(&["user", "grants", "local/ada"]).out, "no grants\n");
    let linked = failure(home, &["user", "link", "ada", "00u1"]);
    assert_eq!((&*linked.0, linked.2), ("no issuer is configured", 2));
    let signed_out = json_of(home, &["user", "sign-out", "ada", "--yes"]);
    assert_eq!(signed_out, json!({ "signed_out": "ada", "all": false }));
    let all = json_of(home, &["user", "sign-out", "--all", "--yes"]);
    assert_eq!(all, json!({ "signed_out": null, "all": true }));
    let removed = json_of(home, &["user", "remove", "bob", "--yes"]);
    assert_eq!(removed, json!({ "removed": "bob", "erased": null }));
    let erased = json_of(home, &["user", "remove", "ada", "--erase", "--yes"]);
    let name = format!("erased/{}", &id[..8]);
    assert_eq!(erased, json!({ "removed": "ada", "erased": name }));
    let listed = json_of(home, &["user", "list"]);
    assert_eq!((&listed[0]["id"], &listed[0]["name"]), (&json!(id), &json!(name)));
    assert!(!listed.to_string().contains("ada"), "{listed}");
    assert_eq!(json_of(home, &["key", "list"]), json!([]), "the user's keys are gone");
    for (arguments, message, code) in [
        (&["user", "remove", "carol", "--yes"][..], "unknown user `carol`", 2),
        (&["user", "remove", "owner", "--yes"], "the owner cannot be removed", 2),
        (&["user", "sign-out", "carol", "--yes"], "unknown user `carol`", 2),
        (&["user", "grants", "acme/x@y.example"], "unknown user `acme/x@y.example`", 2),
        (&["user", "remove", "ada"], "confirmation required; nothing was changed", 5),
        (&["user", "sign-out", "--all"], "confirmation required; nothing was changed", 5),
        (&["client", "block", "0123456789ab", "--yes"], "unknown client `0123456789ab`", 2),
        (&["client", "block", "x"], "confirmation required; nothing was changed", 5),
        (&["client", "forget-all"], "confirmation required; nothing was changed", 5),
    ] {
        let failed = failure(home, arguments);
        assert_eq!((&*failed.0, failed.2), (message, code), "{arguments:?}");
    }
    let invalid = failure(home, &["user", "add", "a/b"]).0;
    assert!(invalid.starts_with("invalid name `a/b`: use 1 to 64 letters"), "{invalid}");
    assert_eq!(json_of(home, &["client", "list"]), json!([]));
    assert_eq!(home.run(&["client", "list"]).out, "no clients\n");
    assert_eq!(json_of(home, &["client", "forget-all", "--yes"]), json!({ "forgotten": true }));
}

#[test]
fn users_are_added_signed_out_and_removed_without_a_gateway() {
    users(&home(), "http://127.0.0.1:8808");
}

#[test]
fn users_are_added_signed_out_and_removed_by_a_running_gateway() {
    let home = home();
    let serving = Serving::start(&home, &["-c", "consort.toml"]);
    users(&home, &format!("http://{}", serving.address));
    assert_eq!(serving.end().0, 0);
}

#[test]
fn a_link_that_was_made_before_the_gateway_started_signs_in_once() {
    let home = home();
    let url = json_of(&home, &["user", "add", "ada"])["url"].clone();
    let path = text(&url).strip_prefix("http://127.0.0.1:8808").unwrap();
    let mut serving = Serving::start(&home, &["-c", "consort.toml"]);
    serving.token = None;
    let head = format!("GET {path} HTTP/1.1\r\nHost: {}", serving.address);
    let (status, page) = serving.ask(&head, "");
    assert!(status == 200 && page.contains("local/ada"), "{status} {page}");
    assert_eq!(serving.end().0, 0);
}

#[test]
fn what_stands_in_the_way_is_named_with_the_way_out() {
    let home = Home::new();
    home.write("consort.toml", &demo("demo"));
    for arguments in [&["key", "list"][..], &["user", "list"], &["client", "list"]] {
        let (message, hint, code) = failure(&home, arguments);
        assert_eq!((&*message, code), ("users are not configured", 2));
        assert!(hint.contains("add `[consort.authorization]`"), "{hint}");
    }
    let serving = Serving::start(&home, &["-c", "consort.toml"]);
    let (message, hint, code) = failure(&home, &["key", "new", "x"]);
    assert_eq!((&*message, code), ("users are not configured", 2));
    assert!(hint.contains("restart the gateway"), "{hint}");
    for (method, path) in [("GET", "/users"), ("GET", "/keys"), ("DELETE", "/grants/x")] {
        let (status, told) = serving.api(method, path, None);
        assert_eq!((status, &told["error"]), (404, &json!("users are not configured")), "{path}");
    }
    assert_eq!(serving.end().0, 0);
    home.write("consort.toml", &format!("{}{USERS}", demo("demo")));
    let serving = Serving::start(&home, &["-c", "consort.toml", "--no-console"]);
    let (message, hint, code) = failure(&home, &["key", "list"]);
    assert!(message.contains("it was started with --no-console"), "{message}");
    assert_eq!((&*hint, code), ("stop the gateway, or restart it without --no-console", 2));
    // The store is for one gateway; a command with another config says which has it.
    home.write("other.toml", USERS);
    let (message, hint, code) = failure(&home, &["-c", "other.toml", "key", "list"]);
    assert!(message.ends_with("is in use by another process"), "{message}");
    let named = format!("the gateway at {} with `--config ", serving.address);
    assert!(hint.contains(&named) && hint.contains("consort.toml`"), "{hint}");
    assert_eq!((code, serving.end().0), (3, 0));
}

#[test]
fn wrong_arguments_are_refused_before_anything_is_opened() {
    let home = home();
    for (arguments, part) in [
        (&["key", "new"][..], "<NAME>"),
        (&["key", "new", ""], "expected 1 to 64 characters"),
        (&["key", "new", "x", "--expires", "0"], "expected a duration from 1s to 3650d"),
        (&["key", "new", "x", "--expires", "soon"], "such as 90d, or `never`"),
        (&["key", "new", "x", "--user", "a", "--service", "b"], "cannot be used with"),
        (&["user", "sign-out"], "<NAME|--all>"),
        (&["user", "sign-out", "ada", "--all"], "cannot be used with"),
        (&["whoami", "--at", "/mcp"], "--token-file"),
        (&["whoami", "--token-file", "x", "--at", "mcp"], "expected the path of an endpoint"),
    ] {
        let ran = home.run(arguments);
        assert_eq!(ran.code, 2, "{arguments:?}: {ran:?}");
        assert!(ran.err.contains(part), "{arguments:?}: {}", ran.err);
    }
    assert!(!home.path(".local/state/consort/identity.db").exists());
}

#[test]
fn the_key_of_a_user_store_that_was_replaced_is_refused_with_the_way_out() {
    let home = home();
    json_of(&home, &["key", "new", "x"]);
    let file = home.path(".local/state/consort/identity.key");
    fs::write(&file, "damaged").unwrap();
    let (message, hint, code) = failure(&home, &["key", "list"]);
    assert!(message.contains("identity.key") && code == 2, "{message}");
    assert!(hint.contains("restore the key from a backup"), "{hint}");
}

/// Every explanation of tokens, whoever has the store.
fn explanations(home: &Home) {
    let owner = fs::read_to_string(home.path(".local/state/consort/token")).unwrap();
    let key = json_of(home, &["key", "new", "k", "--service", "ci", "--endpoint", "/mcp/review"]);
    let short = json_of(home, &["key", "new", "s", "--expires", "1s"]);
    let gone = json_of(home, &["key", "new", "g"]);
    json_of(home, &["key", "revoke", text(&gone["id"]), "--yes"]);
    // A key expires by the wall clock, in whole seconds.
    std::thread::sleep(std::time::Duration::from_secs(2));
    let explain = |token: &str, more: &[&str]| -> (Ran, Value) {
        home.write("token.txt", &format!("{token}\n"));
        let arguments = [&["-v", "whoami", "--token-file", "token.txt"], more].concat();
        let (plain, json) =
            (home.run(&arguments), home.run(&[&arguments[..], &["--json"]].concat()));
        let told: Value = serde_json::from_str(&json.out).unwrap();
        assert_eq!((plain.code, told["valid"] == true), (json.code, json.code == 0), "{json:?}");
        for shown in [&plain.out, &plain.err, &json.out, &json.err] {
            assert!(!shown.contains(token), "the token is shown: {shown}");
        }
        (plain, told)
    };
    let key = text(&key["key"]);
    let (plain, told) = explain(key, &["--at", "/mcp/review"]);
    assert_eq!(plain.code, 0, "{plain:?}");
    assert!(plain.out.ends_with("/mcp/review: valid\n"), "{}", plain.out);
    assert!(plain.out.contains("user:service/ci"), "{}", plain.out);
    assert_eq!((&told["kind"], &told["audience"]), (&json!("api-key"), &json!(["/mcp/review"])));
    let user = &told["user"];
    assert_eq!((&user["name"], &user["rights"]), (&json!("service/ci"), &json!("member")));
    let (plain, told) = explain(key, &[]);
    assert_eq!(told["error"], "invalid token: issued for /mcp/review, not /mcp");
    assert_eq!(plain.code, 5);
    assert!(plain.out.ends_with("/mcp: invalid token: issued for /mcp/review, not /mcp\n"));
    let (_, told) = explain(text(&short["key"]), &[]);
    let error = text(&told["error"]);
    assert!(error.starts_with("invalid token: expired ") && error.ends_with(" ago"), "{error}");
    assert_eq!(told["user"]["roles"], json!(["reviewer"]), "{told}");
    let (_, told) = explain(text(&gone["key"]), &[]);
    assert_eq!((&told["error"], &told["user"]), (&json!("invalid token: revoked"), &Value::Null));
    let (_, told) = explain("an-unknown-token-0123456789", &[]);
    assert_eq!((&told["kind"], &told["error"]), (&json!("unknown"), &json!("invalid token")));
    let (_, told) = explain(owner.trim(), &[]);
    assert_eq!((&told["kind"], &told["valid"]), (&json!("owner-token"), &json!(true)));
    assert_eq!(told["user"]["roles"], json!(["reviewer"]));
    for (content, message) in
        [("", "the file contains no token"), ("a b", "the file contains more than one word")]
    {
        home.write("token.txt", content);
        let failed = failure(home, &["whoami", "--token-file", "token.txt"]);
        assert_eq!((&*failed.0, failed.2), (message, 2));
    }
    let missing = failure(home, &["whoami", "--token-file", "none.txt"]).0;
    assert!(missing.starts_with("cannot read the token from `none.txt`: "), "{missing}");
}

#[test]
fn tokens_are_explained_without_a_gateway() {
    let home = home();
    // The owner's token is made by the first gateway.
    assert_eq!(Serving::start(&home, &["-c", "consort.toml"]).end().0, 0);
    explanations(&home);
}

#[test]
fn tokens_are_explained_by_a_running_gateway() {
    let home = home();
    let serving = Serving::start(&home, &["-c", "consort.toml"]);
    explanations(&home);
    let (code, logged) = serving.end();
    assert!(code == 0 && !logged.contains("ck_"), "{logged}");
}

#[test]
fn tokens_of_the_config_are_explained_without_users_too() {
    let home = Home::new();
    home.write("ada", "a-token-of-ada-0123456789\n");
    let tokens = "[consort.tokens]\nada = \"file:ada\"\nbob = \"env:NOT_SET_HERE\"\n";
    home.write("consort.toml", &format!("{}{tokens}", demo("demo")));
    let explain = |expected: &str| {
        let told = home.run(&["whoami", "--token-file", "ada", "--json"]);
        let document: Value = serde_json::from_str(&told.out).unwrap();
        assert_eq!(document["user"]["rule"], expected, "{told:?}");
        told
    };
    let told = explain("client:ada");
    assert!(told.err.contains("warning: the token of `bob`: "), "{told:?}");
    assert!(told.err.contains("NOT_SET_HERE"), "{told:?}");
    home.write(
        "consort.toml",
        &format!("{}{}", demo("demo"), &tokens[..tokens.find("bob").unwrap()]),
    );
    let serving = Serving::start(&home, &["-c", "consort.toml"]);
    explain("client:ada");
    let unknown = home.run_with(&["whoami", "--token-file", "-"], "x-unknown-token-x");
    assert_eq!(unknown.code, 5, "{unknown:?}");
    assert!(unknown.out.ends_with("/mcp: invalid token\n"), "{unknown:?}");
    assert_eq!(serving.end().0, 0);
}

#[test]
fn the_owner_is_told_who_the_owner_is() {
    let home = home();
    let told = json_of(&home, &["whoami"]);
    assert_eq!((&told["caller"]["rights"], &told["gateway"]), (&json!("owner"), &Value::Null));
    assert_eq!(told["token_file"], Value::Null);
    assert!(text(&told["command_caller"]["rule"]).starts_with("person:"), "{told}");
    assert!(!home.path(".local/state/consort/identity.db").exists(), "nothing is opened");
    let serving = Serving::start(&home, &["-c", "consort.toml"]);
    let told = json_of(&home, &["whoami"]);
    assert_eq!(told["gateway"], serving.address);
    assert_eq!(told["caller"]["roles"], json!(["reviewer"]));
    assert!(text(&told["token_file"]).ends_with("/consort/token"));
    let plain = home.run(&["whoami"]);
    assert!(plain.out.contains("client:owner (owner, with the roles reviewer)"), "{plain:?}");
    assert_eq!(serving.end().0, 0);
}

#[test]
fn events_of_users_are_in_the_ledger_with_id_name_and_subject() {
    let home = home();
    let key = json_of(&home, &["key", "new", "first", "--service", "ci"]);
    let serving = Serving::start(&home, &["-c", "consort.toml"]);
    json_of(&home, &["key", "revoke", text(&key["id"]), "--yes"]);
    json_of(&home, &["user", "add", "ada"]);
    let id = json_of(&home, &["user", "list"])[0]["id"].clone();
    assert_eq!(serving.end().0, 0);
    json_of(&home, &["user", "remove", "ada", "--erase", "--yes"]);
    let export = |more: &[&str]| -> Vec<Value> {
        let ran = home.run(&[&["ledger", "export", "--since", "1h", "--json"], more].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let events = export(&["--endpoint", "identity"]);
    let shown: Vec<[&str; 3]> = events
        .iter()
        .map(|event| [text(&event["method"]), text(&event["caller"]), text(&event["name"])])
        .collect();
    let (id, key) = (format!("user:{}", text(&id)), text(&key["id"]));
    let erased = format!("erased/{}", &id[5..13]);
    assert_eq!(
        shown,
        [
            ["identity/key-created", "service/ci", &format!("{key} first")],
            ["identity/key-revoked", "service/ci", &format!("{key} first, by the operator")],
            ["identity/user", "local/ada", "added, with a sign-in link"],
            ["identity/user", &erased, "removed, and its name erased"],
        ]
    );
    assert!(events.iter().all(|event| event["outcome"] == "ok"), "{events:?}");
    // The id is the same before and after.
    let of_ada = export(&["--caller", &id]);
    assert_eq!(of_ada, events[2..]);
    let tail = home.run(&["ledger", "tail", "--endpoint", "identity"]);
    assert!(tail.out.contains("identity/key-created"), "{tail:?}");
    let csv = home.run(&["ledger", "export", "--format", "csv", "--endpoint", "identity"]);
    assert!(csv.out.lines().next().unwrap().ends_with(",caller_id"), "{csv:?}");
    assert!(csv.out.lines().last().unwrap().ends_with(&format!(",{id}")), "{csv:?}");
    assert_eq!(home.run(&["ledger", "verify"]).code, 0);
}

/// An issuer that answers with these documents until the process ends.
fn issuer(metadata: impl Fn(&str) -> Value + Send + 'static, date: &'static str) -> String {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let own = url.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut head = [0; 4096];
            let read = stream.read(&mut head).unwrap_or_default();
            let head = String::from_utf8_lossy(&head[..read]).into_owned();
            let keys = json!({ "keys": [{ "kty": "EC", "crv": "P-256", "use": "sig", "kid": "1",
                "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4",
                "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM" }] });
            let body = if head.contains(" /jwks ") { keys } else { metadata(&own) }.to_string();
            let length = body.len();
            let date = if date.is_empty() { String::new() } else { format!("Date: {date}\r\n") };
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{date}Connection: close\r\n\
                 Content-Length: {length}\r\n\r\n{body}"
            );
        }
    });
    url
}

fn metadata(issuer: &str) -> Value {
    json!({
        "issuer": issuer, "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"), "jwks_uri": format!("{issuer}/jwks"),
        "response_types_supported": ["code"], "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
        "code_challenge_methods_supported": ["S256"],
        "scopes_supported": ["openid", "profile", "email", "offline_access"],
    })
}

fn signs_in_at(home: &Home, issuer: &str, more: &str) {
    let issuer = format!(
        "[consort]\npublic_url = \"https://mcp.example\"\n[consort.issuers.acme]\nissuer = \"{issuer}\"\n\
         client_id = \"gateway\"\n{more}"
    );
    home.write("consort.toml", &format!("{}{issuer}", demo("demo")));
}

/// The messages of the problems that `doctor` finds, with the exit code and the document.
fn diagnosis(home: &Home) -> (Vec<String>, i32, Value) {
    let ran = home.run(&["doctor", "--json"]);
    let told: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{ran:?}"));
    let problems = told["problems"].as_array().unwrap().iter();
    let problems = problems.map(|problem| text(&problem["message"]).to_owned());
    let of_users = |message: &String| {
        ["issuer", "url", "accessible", "is not set"].iter().any(|it| message.contains(it))
    };
    (problems.filter(of_users).collect(), ran.code, told)
}

#[test]
fn doctor_asks_the_issuer_and_names_what_to_set_there() {
    let home = Home::new();
    signs_in_at(&home, &issuer(metadata, ""), "");
    let (problems, code, told) = diagnosis(&home);
    assert_eq!((problems.as_slice(), code), (&[][..], 0));
    let asked = &told["issuer"];
    assert_eq!(asked["redirect_uri"], "https://mcp.example/oauth/callback/acme");
    assert_eq!(
        (&asked["report"]["keys"], &asked["report"]["announces_pkce"]),
        (&json!(1), &json!(true))
    );
    assert_eq!(asked["report"]["scopes"], json!(["openid", "profile", "email", "offline_access"]));
    let plain = home.run(&["doctor"]);
    for part in
        ["redirect URI", "https://mcp.example/oauth/callback/acme", "S256", "public, with PKCE"]
    {
        assert!(plain.out.contains(part), "{part}: {plain:?}");
    }
    assert!(plain.out.contains("no problems"), "{plain:?}");
}

#[test]
fn doctor_finds_what_keeps_users_from_signing_in() {
    let home = Home::new();
    let without = |issuer: &str| {
        let mut document = metadata(issuer);
        for name in ["code_challenge_methods_supported", "scopes_supported"] {
            document.as_object_mut().unwrap().remove(name);
        }
        document
    };
    signs_in_at(&home, &issuer(without, "Sun, 06 Nov 1994 08:49:37 GMT"), "");
    let (problems, code, _) = diagnosis(&home);
    assert_eq!(problems[0], "issuer `acme`: PKCE with `S256` is not announced");
    assert!(problems[1].contains("`offline_access` is not requested"), "{problems:?}");
    assert!(problems[2].ends_with(" s behind the clock of this machine"), "{problems:?}");
    assert_eq!((problems.len(), code), (3, 1));
    // An issuer that is another one, or none.
    signs_in_at(&home, &issuer(|_| metadata("https://other.example"), ""), "");
    let (problems, code, told) = diagnosis(&home);
    assert!(problems[0].starts_with("issuer `acme`: "), "{problems:?}");
    assert_eq!((problems.len(), code, &told["issuer"]["report"]), (1, 1, &Value::Null));
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    signs_in_at(&home, &format!("http://{closed}"), "");
    let plain = home.run(&["doctor"]);
    assert!(plain.code == 1 && plain.err.contains("error: issuer `acme`: "), "{plain:?}");
    assert!(plain.err.contains("hint: nobody can sign in: check `issuer`"), "{plain:?}");
    signs_in_at(&home, &issuer(metadata, ""), "client_secret = \"env:NOT_SET_HERE\"\n");
    let (problems, code, _) = diagnosis(&home);
    let unset = "`consort.issuers.acme.client_secret`: `NOT_SET_HERE` is not set";
    assert_eq!((problems, code), (vec![unset.to_owned()], 1));
}

#[test]
fn doctor_finds_exposed_keys_and_urls_without_tls() {
    use std::os::unix::fs::PermissionsExt;
    let home = home();
    json_of(&home, &["key", "new", "x"]);
    assert_eq!(diagnosis(&home).0, [""; 0]);
    let file = home.path(".local/state/consort/identity.key");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let (problems, code, _) = diagnosis(&home);
    assert!(
        problems[0].ends_with("identity.key` is accessible to other users (mode 644)"),
        "{problems:?}"
    );
    assert_eq!((problems.len(), code), (1, 1));
    home.write(
        "consort.toml",
        &format!(
            "{}[consort]\npublic_url = \"http://mcp.example\"\n[consort.authorization]\n",
            demo("demo")
        ),
    );
    let ran = home.run(&["doctor"]);
    assert!(ran.code == 2 && ran.err.contains("`public_url`"), "{ran:?}");
    assert!(ran.err.contains("expected `https`: plain `http` is for loopback"), "{ran:?}");
    let unnamed = issuer(metadata, "");
    home.write(
        "consort.toml",
        &format!(
            "{}[consort.issuers.acme]\nissuer = \"{unnamed}\"\nclient_id = \"x\"\n",
            demo("demo")
        ),
    );
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let (problems, code, told) = diagnosis(&home);
    assert!(problems[0].starts_with("`public_url` is not set: "), "{problems:?}");
    assert_eq!((problems.len(), code), (1, 0));
    assert_eq!(told["issuer"]["redirect_uri"], "http://127.0.0.1:8808/oauth/callback/acme");
}

#[test]
fn with_an_issuer_commands_go_through_the_owners_own_listener() {
    let home = Home::new();
    let url = issuer(metadata, "");
    home.write(
        "consort.toml",
        &format!(
            "{}[consort.issuers.acme]\nissuer = \"{url}\"\nclient_id = \"gateway\"\n",
            demo("demo")
        ),
    );
    let mut serving = Serving::start(&home, &["-c", "consort.toml"]);
    let owner = serving.token.clone().unwrap();
    assert_eq!(status(&mut serving, "/api/session", &owner), 401, "the public listener");
    let added = json_of(&home, &["user", "add", "ada"]);
    let linked = json_of(&home, &["user", "link", "ada", "00u1"]);
    assert_eq!(linked, json!({ "user": "ada", "subject": "00u1" }));
    json_of(&home, &["user", "add", "bob"]);
    let (message, _, code) = failure(&home, &["user", "link", "bob", "00u1"]);
    assert!(message.starts_with("this subject belongs to the user ") && code == 2, "{message}");
    let key = json_of(&home, &["key", "new", "x", "--user", text(&added["user"])]);
    assert!(status(&mut serving, "/mcp", text(&key["key"])) != 401);
    let socket = text(&json_of(&home, &["whoami"])["gateway"]).to_owned();
    assert!(socket.starts_with("unix:") && socket.ends_with("owner.sock"), "{socket}");
    let explain = || {
        let file = home.path(".local/state/consort/token");
        let ran = home.run(&["whoami", "--token-file", file.to_str().unwrap(), "--json"]);
        serde_json::from_str::<Value>(&ran.out).unwrap()["error"].clone()
    };
    let elsewhere = json!("invalid token: accepted at the owner's listener only");
    assert_eq!(explain(), elsewhere);
    assert_eq!(serving.end().0, 0);
    assert_eq!(explain(), elsewhere, "without a gateway too");
}
