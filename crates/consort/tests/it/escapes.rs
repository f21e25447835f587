//! Text of others on a real terminal: nothing in it is obeyed.

use serde_json::json;
use testkit::rogue::Manner;

use crate::Home;
use crate::terminal::Terminal;

/// The parameters of our own styles.
const STYLES: [&str; 6] = ["0", "1", "2", "31", "32", "33"];

/// The first thing that a terminal obeys and that is not ours.
fn obeyed(shown: &str) -> Option<String> {
    // The terminal writes a carriage return before each line feed; bars go back to the start of their line.
    let shown = shown.replace('\r', "");
    let mut rest = shown.as_str();
    while let Some(at) = rest.find(|c: char| c.is_control() && !matches!(c, '\n' | '\t')) {
        let sequence = rest[at..].strip_prefix("\u{1b}[").map(|after| {
            let end = after.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(0);
            (&after[..end], &after[end..=end], &after[end + 1..])
        });
        match sequence {
            Some((parameters, "m", after)) if STYLES.contains(&parameters) => rest = after,
            // Bars, the line editor, and `watch`.
            Some((
                "" | "1" | "2" | "6" | "?25" | "?2004",
                "K" | "J" | "H" | "A" | "G" | "h" | "l" | "n",
                after,
            )) => rest = after,
            _ => return Some(format!("{:?}", rest[at..].chars().take(40).collect::<String>())),
        }
    }
    None
}

/// Every naughty string, and every character that a terminal obeys, in one text.
fn naughty() -> String {
    let strings = testkit::fixtures::naughty_strings().join(" ");
    let controls = (1..0x20).chain(0x7f..0xa0).filter_map(char::from_u32).collect::<String>();
    // What is shown of a long text is its start.
    let first = "\u{1b}]0;title\u{7}\u{1b}[2J\u{9b}1A\r\u{202e}";
    format!("{first} {} {controls} {first}", strings.replace('\0', ""))
}

#[test]
fn no_naughty_string_is_obeyed_in_any_error_hint_or_listing() {
    let home = Home::new();
    let naughty = naughty();
    home.write("naughty", &naughty);
    let tool = json!({
        "name": format!("add{naughty}"), "title": naughty, "description": naughty,
        "inputSchema": { "type": "object", "properties": { naughty.as_str(): { "description": naughty } } },
    });
    let manner = Manner { extra_tool: Some(tool.to_string()), ..Manner::modern() };
    let arguments = [serde_json::to_string(&manner).unwrap()];
    let server = json!({ "command": testkit::bin("rogue"), "args": arguments });
    home.write("mcp.json", &json!({ "mcpServers": { "sums": server } }).to_string());
    let commands = [
        "tools --fresh",
        "tools --long",
        "tools --json",
        "tools \"$(cat naughty)\"",
        "tools --explain \"$(cat naughty)\"",
        "search \"$(cat naughty)\"",
        "search add",
        "call \"add$(cat naughty)\"",
        "call \"$(cat naughty)\"",
        "call sums.result \"$(cat naughty)\"",
        "read \"$(cat naughty)\"",
        "read \"file:///$(cat naughty)\"",
        "read x --server \"$(cat naughty)\"",
        "prompt \"$(cat naughty)\"",
        "resources \"$(cat naughty)\"",
        "login \"$(cat naughty)\"",
        "--profile \"$(cat naughty)\" tools",
        "--config \"$(cat naughty)\" tools",
        "config remove \"$(cat naughty)\"",
        "remove \"$(cat naughty)\"",
        "add \"$(cat naughty)\" x",
        "add x --no-connect \"$(cat naughty)\"",
        "add y \"$(cat naughty)\"",
        "add z https://127.0.0.1:9/ \"$(cat naughty)\"",
        "add-json j \"$(cat naughty)\"",
        "logout \"http://$(cat naughty)\"",
        "list --no-connect",
        "status",
        "init",
        "",
        "conversations show \"$(cat naughty)\"",
        "ledger --file \"$(cat naughty)\" tail",
        "ask --agent \"$(cat naughty)\" hi",
        "run \"$(cat naughty)\"",
        "tokens --long",
        "dialect openai",
        "doctor",
        "servers",
        "\"--$(cat naughty)\"",
        "lock --yes",
        "lock --check --json",
    ];
    let mut said = 0;
    for command in commands {
        let (shown, _) = Terminal::start(&home, command).end();
        assert_eq!(obeyed(&shown), None, "{command}");
        said += usize::from(shown.contains("\\u{1b}"));
    }
    assert!(said > 12, "what a terminal would obey was shown as an escape by {said} commands only");
}

#[test]
fn what_is_ours_is_told_from_what_is_not() {
    assert_eq!(obeyed("\u{1b}[32mready\u{1b}[0m\r\n\u{1b}[2K\u{1b}[1A\tx"), None);
    for foreign in ["\u{1b}[0;31mred", "\u{1b}]0;x", "\u{9b}2J", "\u{7}", "\u{1b}c", "\u{1b}[5i"] {
        assert!(obeyed(foreign).is_some(), "{foreign:?}");
    }
}
