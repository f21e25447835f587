//! A run that is killed at any of its steps goes on where it was: nothing is called twice, nothing is lost.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::rogue::{Manner, Step};

use crate::Home;

/// A home with a server that writes down every call, and a model that makes three.
fn home() -> (Home, String) {
    let home = Home::new();
    let manner = Manner { ledger: Some(home.path("ledger")), ..Manner::modern() };
    let server = json!({
        "command": testkit::bin("rogue"), "args": [serde_json::to_string(&manner).unwrap()],
    });
    home.write("mcp.json", &json!({ "mcpServers": { "r": server } }).to_string());
    let call = |nonce: &str| {
        let steps = [
            Step::Sleep(30),
            Step::result(&json!({ "content": [{ "type": "text", "text": nonce }] })),
        ];
        json!({ "name": "write", "arguments": { "nonce": nonce, "steps": steps } })
    };
    let model = home.script(&json!([
        { "pause_ms": 5, "text": "First.", "calls": [call("a"), call("b")] },
        { "pause_ms": 5, "calls": [call("c")] },
        { "pause_ms": 5, "text": "Done." },
    ]));
    (home, model)
}

/// The lines of the only conversation there is.
fn lines(home: &Home) -> Vec<String> {
    let folder = home.path(".local/share/consort/conversations");
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files = files.map(|entry| entry.path()).filter(|path| is_conversation(path));
    let text = files.next().and_then(|file| std::fs::read_to_string(file).ok());
    text.unwrap_or_default().lines().map(str::to_owned).collect()
}

fn is_conversation(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "jsonl")
}

#[test]
fn a_run_killed_at_any_step_goes_on_and_calls_nothing_twice() {
    let (whole, model) = home();
    let ran = whole.run(&["ask", "--model", &model, "go"]);
    assert_eq!((&*ran.out, ran.code), ("First.\nDone.\n", 0), "{}", ran.err);
    let steps = lines(&whole).len();
    // A head, a beginning, what was said, three answers, three calls with their results, an end.
    assert_eq!(steps, 13, "{:#?}", lines(&whole));
    let mut unknown = 0;
    for killed in 3..steps {
        let (home, model) = home();
        let mut asking = home.command(&["ask", "--model", &model, "go"]);
        let mut asking = asking.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let until = Instant::now() + testkit::WAIT_LIMIT;
        while lines(&home).len() < killed {
            assert!(Instant::now() < until, "not {killed} steps: {:#?}", lines(&home));
            // Killed right after a step, not up to 10 ms later.
            std::thread::sleep(Duration::from_micros(200));
        }
        asking.kill().unwrap();
        asking.wait().unwrap();
        let ran = home.run(&["ask", "--json", "--model", &model, "--continue"]);
        let over: Value = serde_json::from_str(ran.out.lines().last().unwrap_or_default()).unwrap();
        assert_eq!(
            over["report"]["status"], "completed",
            "after {killed} steps: {} {}",
            ran.out, ran.err
        );
        let ledger = std::fs::read_to_string(home.path("ledger")).unwrap_or_default();
        let is_call = |line: &&str| ["a", "b", "c"].contains(line);
        let mut made: Vec<&str> = ledger.lines().filter(is_call).collect();
        made.sort_unstable();
        let once: BTreeSet<&str> = made.iter().copied().collect();
        assert_eq!(made.len(), once.len(), "twice after {killed} steps: {made:?}");
        let kept = lines(&home);
        let told = |word: &str| kept.iter().filter(|line| line.contains(word)).count();
        let lost = told(r#""error":"outcome_unknown""#);
        unknown += lost;
        // Each of the three was made and answered, or is said to be unknown.
        assert_eq!(told(r#""step":"result""#), 3, "after {killed} steps: {kept:#?}");
        assert!(made.len() + lost >= 3, "lost after {killed} steps: {made:?}");
    }
    assert!(unknown > 0, "no call was under way when it was killed");
}
