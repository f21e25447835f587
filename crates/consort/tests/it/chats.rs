//! `consort chat`: conversations through a pipe and at a terminal.

use serde_json::{Value, json};

use crate::Home;
use crate::terminal::Terminal;

/// Turns in which a model greets, and then echoes.
fn greets() -> Value {
    json!([
        { "expect": { "contains": "hello" }, "text": "Hello, you." },
        { "expect": { "contains": "echo it" }, "calls": [{ "name": "echo", "arguments": { "text": "it" } }] },
        { "expect": { "role": "tool", "contains": "it" }, "text": "It is echoed." },
        { "expect": { "contains": "and then" }, "text": "Nothing more." },
    ])
}

/// The id that a chat says its conversation has.
fn ids(told: &str) -> Vec<String> {
    told.lines().filter_map(|line| line.strip_prefix("conversation ")).map(str::to_owned).collect()
}

#[test]
fn through_a_pipe_each_line_is_a_message() {
    let home = Home::new();
    let model = home.script(&greets());
    let ran = home.run_with(&["chat", "--model", &model], "hello\n\necho it\nand then\n");
    assert_eq!(ran.out, "Hello, you.\nIt is echoed.\nNothing more.\n", "{}", ran.err);
    assert_eq!(ran.code, 0);
    assert!(!ran.err.contains('\u{1b}'), "{}", ran.err);
    assert!(ran.err.contains("builtin.echo {\"text\":\"it\"}\n"), "{}", ran.err);
}

#[test]
fn a_fork_goes_on_from_where_it_was_taken() {
    let home = Home::new();
    let model = home.script(&greets());
    let lines = "hello\necho it\n/fork 2\necho it\n/usage\n/list\n/nonsense\n/quit\nnever said\n";
    let ran = home.run_with(&["chat", "--model", &model], lines);
    assert_eq!(ran.out, "Hello, you.\nIt is echoed.\nIt is echoed.\n", "{}", ran.err);
    let ids = ids(&ran.err);
    assert_eq!(ids.len(), 2, "{}", ran.err);
    assert!(ran.err.contains("5 turns, 2 calls"), "{}", ran.err);
    assert!(ran.err.contains("error: unknown prompt `nonsense`"), "{}", ran.err);
    let ran = home
        .run_with(&["chat", "--model", &model, &format!("--continue={}", ids[0])], "and then\n");
    assert_eq!(ran.out, "Nothing more.\n", "{}", ran.err);
    assert!(ran.err.contains("the last one: It is echoed."), "{}", ran.err);
}

#[test]
fn a_failure_is_told_and_the_chat_goes_on() {
    let home = Home::new();
    let model = home.script(&json!([
        { "error": { "kind": "refused", "message": "not that" } },
    ]));
    let ran = home.run_with(&["chat", "--model", &model], "first\n/model\n");
    assert!(ran.err.contains("error: ") && ran.err.contains("not that"), "{}", ran.err);
    assert!(ran.err.ends_with("scripted:script.json\n"), "{}", ran.err);
    assert_eq!(ran.code, 1, "how the last run ended");
}

#[test]
fn at_a_terminal_prompts_are_completed_and_rendered_by_their_server() {
    let home = Home::new();
    home.configure_everything();
    let model = home.script(&json!([
        { "expect": { "role": "user", "contains": "weather in Oslo" }, "text": "It rains." },
    ]));
    let mut terminal = Terminal::start(&home, &format!("chat --model {model}"));
    terminal.until_ready();
    terminal.type_in(b"/args\tcit\tOslo\r");
    terminal.until("It rains.");
    terminal.until_ready();
    terminal.type_in(b"\x04");
    assert_eq!(terminal.end().1, 0);
}

#[test]
fn lines_are_remembered_from_chat_to_chat() {
    let home = Home::new();
    let model =
        home.script(&json!([{ "expect": { "contains": "hello again" }, "text": "Again?" }]));
    for keys in [&b"hello again\r"[..], b"\x1b[A\r"] {
        let mut terminal = Terminal::start(&home, &format!("chat --model {model}"));
        terminal.until_ready();
        terminal.type_in(keys);
        terminal.until("Again?");
        terminal.until_ready();
        terminal.type_in(b"\x04");
        assert_eq!(terminal.end().1, 0);
    }
}

#[test]
fn what_is_pasted_is_one_message() {
    let home = Home::new();
    let model = home.script(&json!([
        { "expect": { "contains": "one\ntwo\nthree" }, "text": "Three lines." },
    ]));
    let mut terminal = Terminal::start(&home, &format!("chat --model {model}"));
    terminal.until_ready();
    terminal.type_in(b"\x1b[200~one\ntwo\nthree\x1b[201~\r");
    terminal.until("Three lines.");
    terminal.until_ready();
    terminal.type_in(b"\x04");
    assert_eq!(terminal.end().1, 0);
}

#[test]
fn ctrl_c_stops_an_answer_and_the_conversation_goes_on() {
    let home = Home::new();
    let model = home.script(&json!([
        { "text": "Wait.", "calls": [{ "name": "long_computation", "arguments": { "steps": 50 } }] },
        { "expect": { "role": "user", "contains": "never mind" }, "text": "Well then." },
    ]));
    let mut terminal = Terminal::start(&home, &format!("chat --model {model}"));
    terminal.until_ready();
    terminal.type_in(b"compute\r");
    terminal.until("1/50 step 1");
    terminal.type_in(b"\x03");
    terminal.until("stopped");
    terminal.until_ready();
    terminal.type_in(b"never mind\r");
    terminal.until("Well then.");
    terminal.until_ready();
    terminal.type_in(b"\x04");
    assert_eq!(terminal.end().1, 0);
}

#[test]
fn the_model_asks_and_the_person_answers() {
    let home = Home::new();
    let ask = json!({ "name": "ask_user", "arguments": { "question": "Which city?", "choices": ["Oslo", "Rome"] } });
    let model = home.script(&json!([
        { "calls": [ask] },
        { "expect": { "role": "tool", "contains": "Rome" }, "text": "Rome it is." },
    ]));
    let mut terminal = Terminal::start(&home, &format!("chat --model {model}"));
    terminal.until_ready();
    terminal.type_in(b"choose\r");
    terminal.until("Question from the model: Which city?");
    terminal.until_ready();
    terminal.until("[Oslo, Rome]");
    terminal.type_in(b"Rome\r");
    terminal.until("Rome it is.");
    terminal.until_ready();
    terminal.type_in(b"\x04");
    assert_eq!(terminal.end().1, 0);
}

#[test]
fn a_run_that_was_broken_off_is_offered_to_be_gone_on_with() {
    let home = Home::new();
    let model = home.script(&json!([
        { "text": "Wait.", "calls": [{ "name": "long_computation", "arguments": { "steps": 50 } }] },
        { "expect": { "role": "tool", "contains": "outcome unknown" }, "text": "I do not know." },
    ]));
    let mut child = home
        .command(&["ask", "--model", &model, "compute"])
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    testkit::OutputLines::new(child.stderr.take().unwrap()).wait_for("1/50 step 1");
    child.kill().unwrap();
    child.wait().unwrap();
    let ran = home.run_with(&["chat", "--model", &model, "--continue"], "/go\n");
    assert!(ran.err.contains("the last run was interrupted; /go resumes it"), "{}", ran.err);
    assert_eq!(ran.out, "I do not know.\n", "{}", ran.err);
}
