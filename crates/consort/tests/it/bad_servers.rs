//! Single servers that cannot be used as they are written: the rest of the config counts, at a start and at a reload.

use serde_json::{Value, json};

use crate::Home;
use crate::serve::{Serving, demo, until};

/// A server `two` that cannot be used, and words of the reason.
const BAD: [(&str, &str); 6] = [
    ("[mcp.two]\ncomand = \"x\"\n", "unknown key `comand`"),
    ("[mcp.two]\nurl = \"http://tools.example/mcp\"\n", "plain HTTP to another machine"),
    ("[mcp.two]\ncommand = \"x\"\nenv.A = \"env:NOT_SET_HERE\"\n", "`NOT_SET_HERE` is not set"),
    ("[mcp.two]\ncommand = \"x\"\nenv.A = \"file:nowhere\"\n", "`nowhere`"),
    ("[mcp.two]\ncommand = \"x\"\nkeep = []\n", "empty list"),
    ("mcp.two = 3\n", "is a number: expected a table"),
];

const PROFILE: &str = "[consort.profiles.small]\ntools = [\"search\"]\n";

fn serve(home: &Home) -> Serving {
    Serving::start(home, &["-c", "consort.toml", "--no-ledger"])
}

fn unusable(serving: &Serving) -> Vec<Value> {
    let (status, told) = serving.api("GET", "/reload", None);
    assert_eq!(status, 200, "{told}");
    assert_eq!(told["rejected"], json!([]), "{told}");
    told["unusable"].as_array().unwrap().clone()
}

fn server(serving: &Serving, name: &str) -> Value {
    let (_, servers) = serving.api("GET", "/servers", None);
    let named = servers.as_array().unwrap().iter().find(|server| server["name"] == name);
    named.cloned().unwrap_or_default()
}

/// Looks at everything that a gateway says of a server `two` that is left out.
fn is_named_as_left_out(home: &Home, serving: &Serving, reason: &str) {
    assert_eq!(serving.tools("/mcp").len(), 5, "{reason}");
    assert_eq!(serving.tools("/mcp/small"), ["search"], "{reason}");
    let told = unusable(serving);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["server"], "two", "{told:?}");
    assert_eq!(told[0]["keeps_last_good"], false, "{told:?}");
    assert!(told[0]["reason"].as_str().unwrap().contains(reason), "{told:?}");
    let (_, session) = serving.api("GET", "/session", None);
    let problems = session["problems"].to_string();
    assert!(problems.contains("two: ") && problems.contains("it is omitted"), "{problems}");
    let listed = server(serving, "two");
    assert!(listed["error"].as_str().unwrap().contains("it is omitted"), "{listed}");
    let metrics = serving.get("/metrics").1;
    assert!(metrics.contains("consort_config_unusable_servers 1"), "{metrics}");
    assert!(metrics.contains("consort_config_last_reload_successful 0"), "{metrics}");
    let ran = home.run(&["-c", "consort.toml", "reload"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.out.contains("server `two` is omitted: "), "{ran:?}");
    let ran = home.run(&["-c", "consort.toml", "check"]);
    assert!(ran.code == 2 && ran.err.contains(reason), "{ran:?}");
}

#[test]
fn a_bad_server_is_named_and_left_out_and_all_else_counts_at_a_start_and_at_a_reload() {
    let reloaded = Home::new();
    reloaded.write("consort.toml", &demo("one"));
    let running = serve(&reloaded);
    assert_eq!(running.tools("/mcp").len(), 5);
    for (bad, reason) in BAD {
        let config = format!("{bad}{}{PROFILE}", demo("one"));
        let started = Home::new();
        started.write("consort.toml", &config);
        let serving = serve(&started);
        is_named_as_left_out(&started, &serving, reason);
        let (_, logged) = serving.end();
        assert!(logged.contains("it is omitted"), "{logged}");
        reloaded.write("consort.toml", &config);
        until(|| {
            unusable(&running).iter().any(|one| one["reason"].as_str().unwrap().contains(reason))
        });
        is_named_as_left_out(&reloaded, &running, reason);
    }
    reloaded.write("consort.toml", &format!("{}{}", demo("one"), demo("two")));
    until(|| running.tools("/mcp").len() == 10);
    assert_eq!(unusable(&running), Vec::<Value>::new());
    assert!(running.get("/metrics").1.contains("consort_config_last_reload_successful 1"));
    assert_eq!(reloaded.run(&["-c", "consort.toml", "reload"]).code, 0);
    let (_, logged) = running.end();
    assert!(logged.contains("it is omitted"), "{logged}");
}

#[test]
fn a_bad_server_that_was_good_goes_on_as_it_was_under_the_policy_of_now() {
    let home = Home::new();
    let narrowed = |name: &str| format!("{}drop = [\"get_weather\"]\n", demo(name));
    home.write("consort.toml", &format!("{}{}", demo("one"), narrowed("two")));
    let serving = serve(&home);
    until(|| serving.tools("/mcp").len() == 9);
    let tools = || serving.tools("/servers/two/mcp");
    let since = server(&serving, "two")["since"].clone();
    assert!(tools().len() == 4 && tools().contains(&"search".to_owned()));
    // A mistake in the server, and a rule that names it.
    let rule =
        "[[consort.policy.rules]]\nservers = [\"two\"]\ntools = [\"search\"]\nthen = \"deny\"\n";
    for bad in [
        narrowed("two").replace("command", "comand"),
        narrowed("two") + "env.A = \"env:NOT_SET_HERE\"\n",
        // What it would let through counts as little as the rest of it.
        demo("two") + "keep = []\n",
    ] {
        home.write("consort.toml", &format!("{bad}{}{}{rule}", demo("one"), demo("three")));
        until(|| unusable(&serving).first().is_some_and(|one| one["server"] == "two"));
        until(|| serving.get("/servers/three/mcp").0 != 404);
        let told = unusable(&serving);
        assert_eq!((told.len(), &told[0]["keeps_last_good"]), (1, &json!(true)), "{told:?}");
        assert_eq!(tools().len(), 3, "{:?}", tools());
        for denied in ["search", "get_weather"] {
            assert!(!tools().contains(&denied.to_owned()), "{:?}", tools());
        }
        let listed = server(&serving, "two");
        assert_eq!((&listed["state"], &listed["since"]), (&json!("ready"), &since), "{listed}");
        assert!(listed["error"].as_str().unwrap().contains("last valid settings stay"), "{listed}");
        let ran = home.run(&["-c", "consort.toml", "reload"]);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.out.contains("server `two` keeps its last valid settings: "), "{ran:?}");
        home.write("consort.toml", &format!("{}{}{rule}", demo("one"), narrowed("two")));
        until(|| unusable(&serving).is_empty());
        assert_eq!(tools().len(), 3);
        assert_eq!(server(&serving, "two")["since"], since);
    }
    // Whoever takes it out of the file has it ended.
    home.write("consort.toml", &format!("{}{rule}", demo("one")));
    until(|| serving.get("/servers/two/mcp").0 == 404);
    let (_, logged) = serving.end();
    assert!(logged.contains("its last valid settings stay in effect"), "{logged}");
}

#[test]
fn a_mistake_in_what_concerns_all_servers_keeps_the_whole_change_out() {
    let home = Home::new();
    home.write("consort.toml", &demo("one"));
    let serving = serve(&home);
    assert_eq!(serving.tools("/mcp").len(), 5);
    for (wrong, reason) in [
        ("[consort.policy]\ndefault = \"dney\"\n", "dney"),
        ("[consort.tokens]\nci = 3\n", "tokens.ci"),
        ("[consort.tokens]\nci = \"env:NOT_SET_HERE\"\n", "NOT_SET_HERE"),
        ("[consort.profiles.small]\ntols = [\"x\"]\n", "tols"),
        ("[consort.profiles.small.policy]\nrules = [{ then = \"x\" }]\n", "policy"),
    ] {
        let bad = "[mcp.bad]\ncomand = \"x\"\n";
        home.write("consort.toml", &format!("{}{}{bad}{wrong}", demo("one"), demo("two")));
        let why = || {
            let (_, told) = serving.api("GET", "/reload", None);
            told["rejected"].to_string()
        };
        until(|| why().contains(reason));
        assert_eq!(serving.tools("/mcp").len(), 5, "{reason}");
        assert_eq!(serving.api("GET", "/reload", None).1["unusable"], json!([]), "{reason}");
        assert_eq!(home.run(&["-c", "consort.toml", "serve", "--listen", "127.0.0.1:0"]).code, 2);
    }
    home.write("consort.toml", "mcp = 3\n");
    until(|| {
        serving.api("GET", "/reload", None).1["rejected"].to_string().contains("a table of servers")
    });
    assert_eq!(serving.tools("/mcp").len(), 5);
}

#[test]
fn servers_are_added_and_removed_at_the_console_beside_a_bad_one() {
    let home = Home::new();
    let bad =
        "[mcp.bad]\ncomand = \"x\"\n[mcp.unset]\ncommand = \"x\"\nenv.A = \"env:NOT_SET_HERE\"\n";
    home.write("consort.toml", &format!("{}{bad}", demo("one")));
    let serving = serve(&home);
    assert_eq!(serving.tools("/mcp").len(), 5);
    let entry = |command: &str| json!({ "mcpServers": { "new": { "command": command, "args": ["demo-server"] } } });
    let add =
        |text: &Value| serving.api("POST", "/servers", Some(&json!({ "text": text.to_string() })));
    let (status, told) = add(&entry("${NOT_SET_HERE}"));
    assert!(status == 422 && told.to_string().contains("NOT_SET_HERE"), "{status} {told}");
    let (status, told) = add(&entry(env!("CARGO_BIN_EXE_consort")));
    assert_eq!(status, 200, "{told}");
    until(|| serving.tools("/mcp").len() == 10);
    assert_eq!(unusable(&serving).len(), 2);
    // A bad one is taken out like any other, and its name is free.
    for name in ["bad", "unset"] {
        let (status, told) = serving.api("DELETE", &format!("/servers/{name}"), None);
        assert_eq!(status, 204, "{name}: {told}");
    }
    assert_eq!(unusable(&serving), Vec::<Value>::new());
    assert_eq!(home.run(&["-c", "consort.toml", "check"]).code, 0);
}

#[test]
fn the_lock_of_now_holds_for_the_last_good_settings_of_a_bad_server() {
    let home = Home::new();
    let lock = |config: &str| {
        home.write("consort.toml", config);
        assert_eq!(home.run(&["-c", "consort.toml", "lock", "--yes"]).code, 0);
        std::fs::read_to_string(home.path("consort.lock")).unwrap()
    };
    let one = lock(&demo("one"));
    std::fs::remove_file(home.path("consort.lock")).unwrap();
    let both = lock(&format!("{}{}", demo("one"), demo("two")));
    assert_ne!(one, both);
    let serving = serve(&home);
    until(|| serving.tools("/mcp").len() == 10);
    let broken = demo("two").replace("command", "comand");
    home.write("consort.toml", &format!("{}{broken}", demo("one")));
    until(|| unusable(&serving).len() == 1);
    assert_eq!(serving.tools("/mcp").len(), 10);
    home.write("consort.lock", &one);
    until(|| serving.tools("/mcp").len() == 5);
    home.write("consort.lock", &both);
    until(|| serving.tools("/mcp").len() == 10);
    assert_eq!(unusable(&serving)[0]["keeps_last_good"], true);
}
