//! `consort ask`: a model asked once, with tools that are really called.

use std::time::{Duration, Instant};

use insta::assert_snapshot;
use serde_json::{Value, json};
use testkit::rogue::{Http, Manner, Step};

use crate::terminal::Terminal;
use crate::{Home, Ran};

/// Turns in which a model computes for a while and then says so.
fn computes() -> Value {
    json!([
        {
            "text": "I'll see.", "usage": { "input": 100, "output": 10 },
            "calls": [{ "name": "long_computation", "arguments": { "steps": 2 } }],
        },
        { "expect": { "role": "tool", "contains": "\"steps\":2" }, "text": "Done." },
    ])
}

/// A line without what differs from time to time.
fn steady(text: &str) -> String {
    let lines = text.lines().map(|line| match line.split_once(" done in ") {
        Some((tool, _)) => format!("{tool} done"),
        None => line.to_owned(),
    });
    lines.filter(|line| !line.starts_with("conversation ")).collect::<Vec<_>>().join("\n")
}

#[test]
fn words_are_the_output_and_calls_are_told_aside() {
    let home = Home::new();
    let model = home.script(&computes());
    let ran = home.run(&["ask", "--model", &model, "compute", "something"]);
    assert_eq!((&*ran.out, ran.code), ("I'll see.\nDone.\n", 0), "{}", ran.err);
    assert_snapshot!(steady(&ran.err), @r#"
    demo.long_computation {"steps":2}
    demo.long_computation: 1/2 step 1 took 300 ms
    demo.long_computation: 2/2 step 2 took 500 ms
    demo.long_computation done
    "#);
}

#[test]
fn the_script_of_the_readme_plays() {
    let home = Home::new();
    let script = concat!("scripted:", env!("CARGO_MANIFEST_DIR"), "/../../docs/demo.script.json");
    let ran = home.run(&["ask", "--model", script, "what", "do", "you", "find"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.ends_with("Found it: one door for many servers.\n"), "{}", ran.out);
    let again = home.run(&["ask", "--model", script, "--continue"]);
    assert_eq!((&*again.out, again.code), ("Found it: one door for many servers.\n", 0));
}

#[test]
fn programs_get_an_event_a_line_when_it_happens() {
    let home = Home::new();
    let model = home.script(&computes());
    let ran = home.run(&["ask", "--json", "--model", &model, "compute"]);
    let lines: Vec<Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let events: Vec<&str> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
    let events: Vec<&str> = events.into_iter().filter(|event| *event != "delta").collect();
    assert_eq!(
        events,
        [
            "conversation",
            "began",
            "asking",
            "said",
            "called",
            "progress",
            "progress",
            "result",
            "asking",
            "said",
            "over"
        ]
    );
    let numbers: Vec<u64> =
        lines.iter().map(|line| line["sequence_id"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=lines.len() as u64).collect::<Vec<_>>());
    let times: Vec<&str> = lines
        .iter()
        .filter(|line| line["event"] == "progress")
        .map(|line| line["timestamp"].as_str().unwrap())
        .collect();
    assert_ne!(times[0], times[1], "each is told when it happens");
    assert_eq!(lines.last().unwrap()["report"]["status"], "completed");
    assert_eq!(ran.code, 0);
}

#[test]
fn what_is_piped_is_asked_too() {
    let home = Home::new();
    let expects = |text: &str| {
        home.script(&json!([{ "expect": { "role": "user", "contains": text }, "text": "ok" }]))
    };
    let ok = |ran: &Ran| assert_eq!((&*ran.out, ran.code), ("ok\n", 0), "{}", ran.err);
    let model = expects("from the pipe");
    ok(&home.run_with(&["ask", "--model", &model], "from the pipe\n"));
    ok(&home.run_with(&["ask", "--model", &model, "-"], "from the pipe\n"));
    let model = expects("sum this up\n\na\nb");
    ok(&home.run_with(&["ask", "--model", &model, "sum", "this", "up"], "a\nb\n"));
}

#[test]
fn mistakes_are_told_before_anybody_is_asked() {
    let home = Home::new();
    let model = home.script(&json!([]));
    home.write("photo.png", "not a picture");
    home.write("broken.json", r#"{"turns":[{"txet":""}]}"#);
    let cases = [
        vec!["ask"],
        vec!["ask", "hello", "--model", "scripted:none.json"],
        vec!["ask", "hello", "--model", "scripted:broken.json"],
        vec!["ask", "hello", "--model", &model, "--tools", "get_wether"],
        vec!["ask", "hello", "--model", &model, "--image", "photo.png"],
        vec!["ask", "hello", "--model", &model, "--instructions", "@none.txt"],
        vec!["ask", "hello", "--model", &model, "--attach", "x://y"],
    ];
    let told = cases.iter().map(|words| {
        let ran = home.run(words);
        let told = ran.err.replace(home.folder.path().to_str().unwrap(), "HOME");
        format!("$ consort {}\n{told}[exit {}]", words.join(" "), ran.code)
    });
    assert_snapshot!(told.collect::<Vec<_>>().join("\n\n"), @"
    $ consort ask
    error: empty prompt
    hint: add a prompt, such as `consort ask how is the weather in Oslo`, or pipe it to standard input
    [exit 2]

    $ consort ask hello --model scripted:none.json
    error: cannot read the script `HOME/none.json`: No such file or directory (os error 2)
    [exit 2]

    $ consort ask hello --model scripted:broken.json
    error: cannot use the script `HOME/broken.json`: not a script of turns: unknown field `txet`, expected one of `expect`, `thinking`, `text`, `calls`, `usage`, `stop`, `pause_ms`, `error` at line 1 column 17
    [exit 2]

    $ consort ask hello --model scripted:script.json --tools get_wether
    error: unknown tool `get_wether`
    hint: did you mean `get_weather`?
    [exit 2]

    $ consort ask hello --model scripted:script.json --image photo.png
    error: `photo.png` is not a supported image format
    hint: supported formats are PNG, JPEG, GIF and WebP
    [exit 2]

    $ consort ask hello --model scripted:script.json --instructions @none.txt
    error: cannot read `none.txt`: No such file or directory (os error 2)
    [exit 2]

    $ consort ask hello --model scripted:script.json --attach x://y
    error: unknown resource `x://y`
    [exit 2]
    ");
}

#[test]
fn how_it_ended_is_in_the_exit_code() {
    let home = Home::new();
    let model = home.script(&computes());
    let ask = ["ask", "--model", &model, "compute"];
    let code = |more: &[&str]| {
        let ran = home.run(&[&ask[..], more].concat());
        let last = ran.err.lines().rfind(|line| line.starts_with("error: "));
        (ran.code, last.unwrap_or_default().to_owned())
    };
    let limit = |text: &str| (8, format!("error: limit reached: {text}"));
    assert_eq!(code(&["--max-turns", "1"]), limit("1 model requests were sent, the maximum"));
    assert_eq!(code(&["--max-calls", "0"]), limit("0 tool calls were made, the maximum"));
    assert_eq!(code(&["--max-tokens", "50"]), limit("the run used 110 of 50 tokens"));
    assert_eq!(code(&["--max-time", "200ms"]), limit("the run took longer than 200ms"));
    assert_eq!(code(&[]), (0, String::new()));
    let failing = json!([{ "error": { "kind": "authentication", "message": "no such key" } }]);
    home.script(&failing);
    let (code, error) = code(&[]);
    assert_eq!(code, 1);
    assert!(error.contains("no such key"), "{error}");
}

#[test]
fn a_picture_and_a_resource_go_along() {
    let home = Home::new();
    home.configure_everything();
    std::fs::write(home.path("a.png"), b"\x89PNG\r\n\x1a\n").unwrap();
    let resource = "demo://resource/static/document/features.md";
    let model = home.script(&json!([{ "expect": { "role": "user" }, "text": "ok" }]));
    let said = |words: &[&str]| {
        let ran = home.run(&[&["ask", "--model", &model], words].concat());
        assert_eq!((&*ran.out, ran.code), ("ok\n", 0), "{}", ran.err);
        let kept = home.run(&["conversations", "show", "last", "--json"]);
        kept.out
    };
    let kept = said(&["--image", "a.png", "--attach", resource, "what", "is", "this?"]);
    assert!(kept.contains("image/png") && kept.contains(resource), "{kept}");
    let kept = said(&[&format!("sum up @{resource}, please")]);
    assert!(kept.contains("text/markdown"), "{kept}");
}

#[tokio::test]
async fn ctrl_c_ends_the_run_and_the_server_is_told() {
    let (home, server) = rogue().await;
    let steps = json!([
        Step::notify(
            "notifications/progress",
            &json!({
                "progressToken": "$TOKEN", "progress": 1, "message": "on it",
            })
        ),
        Step::Hang
    ]);
    let model = home.script(&json!([
        { "calls": [{ "name": "write", "arguments": { "steps": steps } }] }, { "text": "no" },
    ]));
    let child = home
        .command(&["ask", "--model", &model, "go"])
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let has = |method: &str| server.seen().iter().any(|message| message["method"] == method);
    until(|| has("tools/call")).await;
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    until(|| has("notifications/cancelled")).await;
    let ran = tokio::task::spawn_blocking(|| Ran::from(child.wait_with_output().unwrap()));
    assert_eq!(ran.await.unwrap().code, 130);
}

/// A home in which there is one server that does as it is told.
async fn rogue() -> (Home, Http) {
    let server = Http::start(Manner::legacy()).await;
    let home = Home::new();
    home.write("consort.toml", &format!("[mcp.rogue]\nurl = \"{}\"\n", server.url()));
    (home, server)
}

/// Waits until something is so.
async fn until(is_so: impl Fn() -> bool) {
    testkit::wait_until_async("the state that is waited for", async || is_so()).await;
}

#[test]
fn at_a_terminal_each_call_has_a_bar_that_moves() {
    let home = Home::new();
    let model = home.script(&json!([
        { "text": "Both.", "calls": [
            { "name": "long_computation", "arguments": { "steps": 2 } },
            { "name": "long_computation", "arguments": { "steps": 3 } },
        ] },
        { "text": "Done." },
    ]));
    let mut terminal = Terminal::start(&home, &format!("ask --model {model} compute"));
    terminal.until("Both.");
    terminal.until("1/3 step 1");
    let begun = Instant::now();
    terminal.until("2/3 step 2");
    assert!(begun.elapsed() > Duration::from_millis(300), "each step is shown when it is made");
    terminal.until("Done.");
    let (rest, code) = terminal.end();
    assert!(rest.contains("2 turns, 2 calls"), "{rest}");
    assert_eq!(code, 0);
}

#[test]
fn a_person_at_the_terminal_approves_edits_or_denies() {
    let home = Home::new();
    home.configure("[consort.policy]\ndefault = \"ask\"\n");
    let call = json!({ "name": "get_weather", "arguments": { "location": "Rome" } });
    let model = |contains: &str| {
        home.script(
            &json!([{ "calls": [call] }, { "expect": { "contains": contains }, "text": "Right." }]),
        )
    };
    let started = |model: &str| {
        let mut terminal = Terminal::start(&home, &format!("ask --model {model} go"));
        terminal.until("wants to call `demo.get_weather`");
        terminal.until_ready();
        terminal
    };
    let ended = |terminal: Terminal| {
        let (shown, code) = terminal.end();
        assert!(shown.contains("Right."), "{shown}");
        assert_eq!(code, 0);
    };
    let mut terminal = started(&model("Oslo"));
    terminal.type_in(b"e\r");
    terminal.until("\"Rome\"}");
    terminal.type_in(b"\x15{\"location\":\"Oslo\"}\r");
    terminal.until_ready();
    terminal.type_in(b"o\r");
    ended(terminal);
    let mut terminal = started(&model("too warm there"));
    terminal.type_in(b"deny\r");
    terminal.until_ready();
    terminal.type_in(b"too warm there\r");
    ended(terminal);
    let mut terminal = started(&model("never seen"));
    terminal.type_in(b"\x03");
    assert_eq!(terminal.end().1, 130, "Ctrl-C at a question stops the run");
}

#[test]
fn without_a_terminal_what_needs_a_person_is_denied_or_waits() {
    let home = Home::new();
    home.configure("[consort.policy]\ndefault = \"ask\"\n");
    let model = home.script(&json!([
        { "calls": [{ "name": "get_weather", "arguments": { "location": "Rome" } }] },
        { "text": "Too bad." },
    ]));
    let ran = home.run(&["ask", "--model", &model, "go"]);
    assert_eq!((&*ran.out, ran.code), ("Too bad.\n", 0), "the model is told: {}", ran.err);
    assert!(ran.err.contains("failed (denied)"), "{}", ran.err);
    let ran = home.run(&["ask", "--wait", "--model", &model, "go"]);
    assert_eq!(ran.code, 9, "{ran:?}");
    assert!(
        ran.err.contains("error: waiting for a user: `agent:consort` wants to call"),
        "{}",
        ran.err
    );
    let mut terminal = Terminal::start(&home, &format!("ask --model {model} --continue"));
    terminal.until_ready();
    terminal.type_in(b"once\r");
    terminal.until("Too bad.");
    assert_eq!(terminal.end().1, 0);
}

#[test]
fn a_run_is_recorded_and_played_again_without_a_model_and_without_servers() {
    let home = Home::new();
    home.configure("");
    let model = home.script(&computes());
    let first = home.run(&["ask", "--model", &model, "--record", "run.jsonl", "compute"]);
    assert_eq!((&*first.out, first.code), ("I'll see.\nDone.\n", 0), "{}", first.err);
    // Nothing is left to ask or to call.
    std::fs::remove_file(home.path("script.json")).unwrap();
    home.write("consort.toml", "[mcp.demo]\ncommand = [\"/nowhere/at/all\"]\n");
    let again = home.run(&["ask", "--replay", "run.jsonl", "compute"]);
    assert_eq!((&again.out, again.code), (&first.out, 0), "{}", again.err);
    assert_eq!(steady(&again.err), steady(&first.err));
    let other = home.run(&["ask", "--replay", "run.jsonl", "compute less"]);
    assert_eq!(other.code, 7, "{}", other.err);
    let told = "error: turn 1: the model request differs: message 1 (user) differs";
    assert!(other.err.contains(told), "{}", other.err);
    let missing = home.run(&["ask", "--replay", "nothing.jsonl", "compute"]);
    assert_eq!(missing.code, 2, "{}", missing.err);
}

#[test]
fn an_agent_of_the_config_brings_its_model_its_tools_and_its_limits() {
    let home = Home::new();
    let model = home.script(&json!([
        { "calls": [{ "name": "long_computation" }, { "name": "get_weather", "arguments": { "location": "Oslo" } }] },
        { "expect": { "results": 2, "contains": "unknown tool `long_computation`" }, "text": "Cold." },
    ]));
    let agent = format!("[consort.agents.weather]\nmodel = {model:?}\ntools = [\"get_*\"]\n");
    home.configure(&agent);
    let ran = home.run(&["ask", "--agent", "weather", "how is it?"]);
    assert_eq!((&*ran.out, ran.code), ("Cold.\n", 0), "{}", ran.err);
    home.configure(&format!("{agent}max_turns = 1\n"));
    let ran = home.run(&["ask", "--agent", "weather", "how is it?"]);
    assert_eq!(ran.code, 8, "{}", ran.err);
    let ran = home.run(&["ask", "--agent", "wether", "how is it?"]);
    assert_snapshot!(ran.err, @"
    error: unknown agent `wether`
    hint: did you mean `weather`?
    ");
}

#[test]
fn a_server_asks_the_person_in_the_middle_of_a_call() {
    let home = Home::new();
    let manner = serde_json::to_string(&Manner::legacy()).unwrap();
    let server = format!("command = {}\nargs = [{}]", json!(testkit::bin("rogue")), json!(manner));
    home.write("consort.toml", &format!("[mcp.rogue]\n{server}\n"));
    let form = json!({ "message": "Who is there?", "requestedSchema": {
        "type": "object", "properties": { "name": { "type": "string", "title": "Your name" } },
        "required": ["name"],
    } });
    let model = home.script(&json!([
        { "calls": [{ "name": "ask", "arguments": { "method": "elicitation/create", "params": form } }] },
        { "expect": { "results": 1, "is_error": false }, "text": "Hello, Ada." },
    ]));
    let mut terminal = Terminal::start(&home, &format!("ask --model {model} go"));
    terminal.until("`rogue` requests input: Who is there?");
    terminal.until_ready();
    terminal.until("Your name (required): ");
    terminal.type_in(b"Ada\r");
    terminal.until("Hello, Ada.");
    assert_eq!(terminal.end().1, 0);
}

#[test]
fn thoughts_are_shown_where_they_are_wished_for() {
    let home = Home::new();
    let model = home.script(&json!([{ "thinking": "hm, hm", "text": "Yes." }]));
    let ran = home.run(&["ask", "--no-store", "--model", &model, "so?"]);
    assert_eq!(ran, Ran { out: "Yes.\n".to_owned(), err: String::new(), code: 0 });
    let ran =
        home.run(&["ask", "--no-store", "--thinking", "--no-stream", "--model", &model, "so?"]);
    assert_eq!(ran, Ran { out: "Yes.\n".to_owned(), err: "hm, hm\n".to_owned(), code: 0 });
}

/// A home with an agent that asks another one for the weather.
fn office(tools: &str, more: &str) -> Home {
    let home = Home::new();
    let asks = json!({ "turns": [
        { "calls": [{ "name": "ask_forecaster", "arguments": { "query": "and now?" } }] },
        { "expect": { "contains": "As usual." }, "text": "So they say." },
    ]});
    home.write("asks.json", &asks.to_string());
    let forecast = json!({ "turns": [
        { "calls": [{ "name": "get_weather", "arguments": { "location": "Oslo" } }] },
        { "expect": { "role": "tool" }, "text": "As usual." },
    ]});
    home.write("forecast.json", &forecast.to_string());
    let config = format!(
        "{}[consort.agents.forecaster]\nmodel = \"scripted:forecast.json\"\n\
         [consort.agents.boss]\nmodel = \"scripted:asks.json\"\ntools = {tools}\n{more}",
        crate::serve::demo("demo")
    );
    home.write("consort.toml", &config);
    home
}

#[test]
fn an_agent_asks_the_agents_that_it_names() {
    for tools in [r#"["ask_forecaster"]"#, r#"["agents.*"]"#] {
        let home = office(tools, "");
        let ran = home.run(&["ask", "--agent", "boss", "how", "is", "it"]);
        assert_eq!((&*ran.out, ran.code), ("So they say.\n", 0), "{}", ran.err);
        assert!(ran.err.contains("calling demo.get_weather"), "{}", ran.err);
    }
    // One that it does not name is not there.
    let home = office(r#"["demo.*"]"#, "");
    let ran = home.run(&["ask", "--agent", "boss", "how", "is", "it"]);
    assert!(ran.err.contains("unknown tool `ask_forecaster`"), "{} {}", ran.out, ran.err);
    // One that cannot be used is told of.
    let more = "[consort.agents.broken]\nmodel = \"scripted:none.json\"\n";
    let home = office(r#"["ask_forecaster", "ask_broken"]"#, more);
    let ran = home.run(&["ask", "--agent", "boss", "how", "is", "it"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("the agent `broken` is omitted"), "{}", ran.err);
}

#[test]
fn tools_of_an_agent_are_named_alike_in_the_config_and_on_the_command_line() {
    let script = json!({ "turns": [
        { "calls": [{ "name": "get_weather", "arguments": { "location": "Oslo" } }] },
        { "expect": { "role": "tool", "contains": "Oslo" }, "text": "As usual." },
    ]});
    for name in ["get_weather", "demo.get_weather", "demo:get_weather", "mcp.get_weather", "get_*"]
    {
        let home = Home::new();
        home.write("weather.json", &script.to_string());
        let agent = |tools: &str| {
            // Whatever the exposure is: tools are chosen before it.
            let config = format!(
                "consort.exposure = \"per-server\"\n{}[consort.agents.a]\nmodel = \"scripted:weather.json\"\n{tools}",
                crate::serve::demo("demo")
            );
            home.write("consort.toml", &config);
        };
        agent("");
        let ran = home.run(&["ask", "--agent", "a", "--tools", name, "go"]);
        assert_eq!((&*ran.out, ran.code), ("As usual.\n", 0), "{name}: {}", ran.err);
        agent(&format!("tools = [{name:?}]\n"));
        let ran = home.run(&["tools", "--exposed"]);
        assert!(ran.out.contains("mcp_demo"), "{}", ran.out);
        let ran = home.run(&["ask", "--agent", "a", "--tools", name, "go"]);
        assert_eq!((&*ran.out, ran.code), ("As usual.\n", 0), "{name}: {}", ran.err);
    }
    let home = office(r#"["ask_forecaster", "get_wether"]"#, "");
    let ran = home.run(&["ask", "--agent", "boss", "how"]);
    assert!(ran.err.contains("`get_wether` in the agent's `tools` matches no tool"), "{}", ran.err);
}

#[test]
fn a_cost_limit_is_refused_where_no_price_is_known() {
    let home = Home::new();
    home.write(
        "consort.toml",
        "[consort.providers.local]\nwire = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"\ntries = 1\n",
    );
    let ran = home.run(&["ask", "--model", "local:m", "--max-cost", "0.5", "hello"]);
    assert_eq!((&*ran.out, ran.code), ("", 1), "{}", ran.err);
    assert!(
        ran.err.contains("`max_cost` cannot be enforced: the price of `local:m`"),
        "{}",
        ran.err
    );
    let mut config = std::fs::read_to_string(home.path("consort.toml")).unwrap();
    config.push_str("[consort.agents.a]\nmodel = \"local:m\"\nmax_cost = 1\n");
    home.write("consort.toml", &config);
    let ran = home.run(&["check"]);
    assert!(ran.err.contains("the agent `a` refuses every run"), "{}", ran.err);
    config.push_str("[consort.models.\"local:m\"]\nprice = { input = 0, output = 0 }\n");
    home.write("consort.toml", &config);
    assert!(!home.run(&["check"]).err.contains("refuses every run"));
}
