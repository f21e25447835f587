//! Whatever is written, nothing panics, and what was read can be written and read again.

use proptest::prelude::*;

use crate::law::{check, survive};

/// Pieces that configs are made of, so that many of the texts are nearly right.
const PIECES: [&str; 44] = [
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "=",
    "\n",
    "\"",
    "'",
    "#",
    "//",
    "/*",
    "*/",
    ".",
    "-",
    "5",
    "1e9",
    "true",
    "null",
    "mcpServers",
    "servers",
    "context_servers",
    "mcp_servers",
    "mcp",
    "tool_service",
    "serverName",
    "connection",
    "command",
    "args",
    "env",
    "url",
    "headers",
    "timeout",
    "tools",
    "auth",
    "inputs",
    "type",
    "https://x.example",
    "${",
    "env:A",
    "file:",
    "é\u{0}\u{202e}",
    "\\u00",
];

/// Pieces of YAML, in addition.
const YAML: [&str; 24] = [
    "- ",
    ": ",
    ":\n",
    "\n  ",
    "\n    ",
    "\t",
    "? ",
    "&a ",
    "*a",
    "<<: *a",
    "|\n  ",
    ">-\n",
    "!t ",
    "!!str ",
    "---\n",
    "...\n",
    "%YAML 1.2\n",
    "\r\n",
    " # ",
    "extensions:\n  a:\n    ",
    "mcpServers:\n  - ",
    "cmd: x\n    ",
    "uses: ",
    "customUserVars",
];

/// Texts that are right as JSON, with keys and values that may not be right.
fn json() -> impl Strategy<Value = String> {
    let word = prop::sample::select(&PIECES[18..]);
    let leaf = prop_oneof![
        word.clone().prop_map(|word| format!("{word:?}")),
        any::<i64>().prop_map(|number| number.to_string()),
        Just("null".to_owned()),
        Just("true".to_owned()),
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        let key = word.clone();
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|list| format!("[{}]", list.join(","))),
            prop::collection::vec((key, inner), 0..5).prop_map(|entries| {
                let entries: Vec<String> =
                    entries.iter().map(|(key, value)| format!("{key:?}:{value}")).collect();
                format!("{{{}}}", entries.join(","))
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_survived(text in "\\PC{0,60}") {
        check(&text);
    }

    #[test]
    fn any_pieces_of_a_config_are_survived(pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..40)) {
        check(&pieces.concat());
    }

    #[test]
    fn any_pieces_of_yaml_are_survived(pieces in prop::collection::vec(prop::sample::select([&YAML[..], &PIECES].concat()), 0..40)) {
        survive("config.yaml", &pieces.concat());
    }

    #[test]
    fn any_json_is_survived(text in json()) {
        survive("mcp.json", &text);
        survive("config.yaml", &format!("x: {text}"));
    }

    #[test]
    fn any_value_in_a_server_is_survived(key in prop::sample::select(&PIECES[18..]), value in json()) {
        survive("mcp.json", &format!("{{\"mcpServers\": {{\"a\": {{\"command\": \"x\", {key:?}: {value}}}}}}}"));
        survive("mcp.json", &format!("{{\"mcp\": {{\"a\": {{\"url\": \"https://x.example\", {key:?}: {value}}}}}}}"));
        survive("mcp.json", &format!("{{\"mcp\": {{\"a\": {{\"type\": \"remote\", {key:?}: {value}}}}}}}"));
        survive("x.yaml", &format!("extensions:\n  a: {{cmd: x, {key:?}: {value}}}\n"));
        survive("x.yaml", &format!("mcpServers:\n- {{name: x, command: x, {key:?}: {value}}}\n"));
    }
}

#[test]
fn naughty_strings_stand_anywhere_in_a_config() {
    for text in testkit::fixtures::naughty_strings() {
        check(&text);
        let text = serde_json::to_string(&text).unwrap();
        survive(
            "mcp.json",
            &format!(
                "{{\"mcpServers\": {{{text}: {{\"command\": {text}, \"args\": [{text}], \"env\": {{{text}: {text}}}, {text}: {text}}}}}}}"
            ),
        );
        survive(
            "mcp.json",
            &format!(
                "{{\"mcpServers\": {{\"a\": {{\"url\": {text}, \"headers\": {{{text}: {text}}}}}}}}}"
            ),
        );
    }
}

#[test]
fn depth_does_no_harm() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("{\"mcpServers\":", "}")] {
        for depth in [100, 100_000] {
            survive("mcp.json", &format!("{}1{}", open.repeat(depth), close.repeat(depth)));
        }
    }
    for piece in
        ["[", "{", "{a: ", "- ", "? ", "a: ", "!t ", "&a ", "*", "'", "\"", "|\n", "- \n", "a:\n "]
    {
        for text in [piece.repeat(100_000), format!("a:\n  {}", piece.repeat(100_000))] {
            survive("config.yaml", &text);
        }
    }
    let stairs: Vec<String> = (0..2_000).map(|n| format!("{}a:\n", " ".repeat(n))).collect();
    survive("config.yaml", &stairs.concat());
    survive("consort.toml", &format!("a = {}{}", "[".repeat(100_000), "]".repeat(100_000)));
    survive("consort.toml", &format!("[{}]", vec!["a"; 100_000].join(".")));
    survive("consort.toml", &format!("{} = 1", vec!["a"; 100_000].join(".")));
    let nested = format!("{}{}", "${A:-".repeat(50_000), "}".repeat(50_000));
    survive("mcp.json", &format!("{{\"mcpServers\": {{\"a\": {{\"command\": {nested:?}}}}}}}"));
}
