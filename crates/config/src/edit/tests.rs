//! Tests of adding and removing servers.

mod formats;

use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;

fn pasted(text: &str) -> Vec<ServerConfig> {
    let config = Config::parse_pasted(Path::new("pasted"), text).unwrap();
    assert!(config.errors.is_empty(), "{:?}", config.errors);
    config.servers
}

fn added(file: &str, text: &str, new: &str) -> String {
    let edited = add_servers(Path::new(file), text, &pasted(new)).unwrap();
    assert_eq!(edited.problems, []);
    edited.text
}

fn removed(file: &str, text: &str, name: &str) -> String {
    remove_server(Path::new(file), text, &name.parse().unwrap()).unwrap()
}

const MEMORY: &str = r#"{"memory": {"command": "npx", "args": ["-y", "server-memory"], "env": {"KEY": "${MEMORY_KEY}"}}}"#;
const WEB: &str = r#"{"web": {"type": "sse", "url": "https://web.example/sse", "headers": {"Authorization": "Bearer ${env:TOKEN}"}, "keep": ["get_*"]}}"#;

#[test]
fn a_json_config_keeps_its_comments_and_commas() {
    let text = "{\n  // the team's\n  \"mcpServers\": {\n    \"files\": { \"command\": \"files\" }, // keep\n  },\n  \"consort\": { \"builtin\": true },\n}\n";
    assert_snapshot!(added(".mcp.json", text, MEMORY), @r#"
    {
      // the team's
      "mcpServers": {
        "files": { "command": "files" }, // keep
        "memory": {
          "command": "npx",
          "args": ["-y", "server-memory"],
          "env": {
            "KEY": "${MEMORY_KEY}",
          },
        },
      },
      "consort": { "builtin": true },
    }
    "#);
}

#[test]
fn a_table_is_added_to_in_the_way_it_is_written() {
    let inline = "mcp = { files = { command = \"files\" } } # all\n";
    assert_snapshot!(added("consort.toml", inline, MEMORY), @r#"mcp = { files = { command = "files" } , memory = { transport = "stdio", command = ["npx", "-y", "server-memory"], env = { KEY = "env:MEMORY_KEY" } } } # all"#);
    let dotted = "mcp.files.command = \"files\"\n[consort]\nbuiltin = true\n";
    assert_snapshot!(added("consort.toml", dotted, MEMORY), @r#"
    mcp.files.command = "files"
    mcp.memory.transport = "stdio"
    mcp.memory.command = ["npx", "-y", "server-memory"]
    mcp.memory.env = { KEY = "env:MEMORY_KEY" }
    [consort]
    builtin = true
    "#);
}

#[test]
fn marks_and_line_ends_stay() {
    let toml = "\u{feff}# mine\r\n[mcp.files]\r\ncommand = \"files\" # here\r\n";
    let after = added("consort.toml", toml, MEMORY);
    assert!(after.starts_with(toml), "{after:?}");
    assert_eq!(after.matches('\n').count(), after.matches("\r\n").count());
    assert_eq!(removed("consort.toml", &after, "memory"), toml);
    let json = "\u{feff}{\r\n  \"mcpServers\": {\r\n    \"files\": {\"command\": \"files\"}\r\n  }\r\n}\r\n";
    let after = added("mcp.json", json, MEMORY);
    assert!(after.starts_with('\u{feff}'));
    assert_eq!(after.matches('\n').count(), after.matches("\r\n").count(), "{after:?}");
    assert_eq!(removed("mcp.json", &after, "memory"), json);
}

#[test]
fn what_is_taken_out_takes_nothing_with_it() {
    let json = "{\n  \"mcpServers\": {\n    // first\n    \"a\": {\"command\": \"a\"}, // of a\n    // second\n    \"b\": {\"command\": \"b\"},\n    /* third */\n    \"c\": {\"command\": \"c\"},\n  },\n  \"other\": 1 // kept\n}\n";
    let all = ["a", "b", "c"].map(|name| removed("mcp.json", json, name));
    assert_snapshot!(all.concat(), @r#"
    {
      "mcpServers": {
        // first
        // second
        "b": {"command": "b"},
        /* third */
        "c": {"command": "c"},
      },
      "other": 1 // kept
    }
    {
      "mcpServers": {
        // first
        "a": {"command": "a"}, // of a
        // second
        /* third */
        "c": {"command": "c"},
      },
      "other": 1 // kept
    }
    {
      "mcpServers": {
        // first
        "a": {"command": "a"}, // of a
        // second
        "b": {"command": "b"},
        /* third */
      },
      "other": 1 // kept
    }
    "#);
    let toml = "# about the file\n\n[mcp.a] # of a\ncommand = \"a\"\n\n[mcp.a.tools.x]\ntimeout = { total = \"1m\" }\n\n# about b\n[mcp.b]\ncommand = \"b\"\n\n# at the end\n";
    let all = ["a", "b"].map(|name| removed("consort.toml", toml, name));
    assert_snapshot!(all.concat(), @r#"
    # about the file


    # about b
    [mcp.b]
    command = "b"

    # at the end
    # about the file

    [mcp.a] # of a
    command = "a"

    [mcp.a.tools.x]
    timeout = { total = "1m" }

    # about b

    # at the end
    "#);
    let inline = "[mcp]\n# about a\na = { command = \"a\" }\n# about b\nb = { command = \"b\" } # of b\n\n[consort]\nbuiltin = true\n";
    let all = ["a", "b"].map(|name| removed("consort.toml", inline, name));
    assert_snapshot!(all.concat(), @r#"
    [mcp]
    # about a
    # about b
    b = { command = "b" } # of b

    [consort]
    builtin = true
    [mcp]
    # about a
    a = { command = "a" }
    # about b

    [consort]
    builtin = true
    "#);
}

#[test]
fn the_last_one_can_be_taken_out() {
    for (file, text) in [
        ("consort.toml", "[mcp.a]\ncommand = \"a\"\n"),
        ("config.toml", "model = \"o3\"\n\n[mcp_servers.a]\ncommand = \"a\"\n"),
        ("mcp.json", r#"{"mcpServers": {"a": {"command": "a"}}}"#),
    ] {
        let after = removed(file, text, "a");
        assert_eq!(Config::parse(Path::new(file), &after).unwrap().servers, [], "{after}");
        assert!(added(file, &after, MEMORY).contains("memory"));
    }
}

#[test]
fn questions_come_along_once() {
    let new = r#"{"inputs": [{"id": "key", "type": "promptString", "password": true}],
        "servers": {"web": {"url": "https://web.example/mcp", "headers": {"X-Key": "${input:key}"}}}}"#;
    assert_snapshot!(added("mcp.json", r#"{"mcpServers": {}}"#, new), @r#"
    {
      "mcpServers": {
        "web": {
          "type": "http",
          "url": "https://web.example/mcp",
          "headers": {
            "X-Key": "${input:key}"
          }
        }
      },
      "inputs": [
        {
          "id": "key",
          "type": "promptString",
          "password": true
        }
      ]
    }
    "#);
    assert_snapshot!(added("consort.toml", "[mcp.a]\ncommand = \"a\"\n", new), @r#"
    [mcp.a]
    command = "a"

    [mcp.web]
    transport = "http"
    url = "https://web.example/mcp"
    headers = { X-Key = "${input:key}" }

    [[inputs]]
    id = "key"
    type = "promptString"
    password = true
    "#);
    let there = r#"{"servers": {}, "inputs": [{"id": "key", "type": "promptString"}]}"#;
    assert_eq!(added("mcp.json", there, new).matches("promptString").count(), 1);
}

#[test]
fn what_cannot_be_done_is_said() {
    let told = |file: &str, text: &str, new: &str| {
        let error = add_servers(Path::new(file), text, &pasted(new)).unwrap_err();
        format!("{error} ({})\n", error.hint().unwrap_or_default())
    };
    let list = r#"{"servers": [{"name": "a", "url": "https://a.example/mcp"}]}"#;
    let taken = "[mcp.memory]\ncommand = 1\n";
    let texts = [
        told("mcp.json", list, MEMORY),
        told("consort.toml", taken, MEMORY),
        told("mcp.json", r#"{"mcpServers": []}"#, MEMORY),
        told("consort.toml", "[mcp\n", MEMORY),
    ];
    assert_snapshot!(texts.concat(), @"
    cannot edit a config in the format of Elysia: the format is read-only (convert it with `consort config convert --to consort --output FILE`)
    a server named `memory` already exists (remove that server first, or choose another name)
    `mcpServers` is not a table (edit the file manually)
    consort.toml:1:5: not valid TOML: unclosed table, expected `]` ()
    ");
    let error =
        remove_server(Path::new("x"), "[mcp.memory]\ncommand = \"a\"\n", &"memry".parse().unwrap());
    let error = error.unwrap_err();
    assert_snapshot!(error.to_string() + " " + &error.hint().unwrap(), @"unknown server `memry` did you mean `memory`?");
}

#[test]
fn a_name_that_is_no_name_is_found_by_what_we_call_it() {
    let text = r#"{"mcpServers": {"git hub": {"command": "a"}, "b": {"command": "b"}}}"#;
    let id = ServerId::derive("git hub");
    let after = remove_server(Path::new("mcp.json"), text, &id).unwrap();
    assert!(!after.contains("git hub"), "{after}");
}

#[test]
fn entries_are_understood_without_what_is_around_them() {
    let names = |text: &str| -> Vec<String> {
        pasted(text).iter().map(|server| server.name.to_string()).collect()
    };
    assert_eq!(names(MEMORY), ["memory"]);
    assert_eq!(
        names(
            "// from the docs\n{\"a\": {\"type\": \"stdio\", \"command\": \"a\"}, \"b\": {\"serverUrl\": \"https://b.example/mcp\"},}"
        ),
        ["a", "b"]
    );
    assert_eq!(names("  \"a\": {\"command\": \"a\"},\n"), ["a"]);
    assert_eq!(names("[a]\ncommand = \"a\"\n"), ["a"]);
    assert_eq!(names("[mcp_servers.a]\ncommand = \"a\"\n"), ["a"]);
    assert_eq!(names("{\"context_servers\": {\"a\": {\"command\": {\"path\": \"a\"}}}}"), ["a"]);
    let alone = Config::parse_pasted(Path::new("pasted"), r#"{"command": "a"}"#).unwrap_err();
    assert_snapshot!(alone, @"pasted:1:1: `command` is not inside a named server");
}

proptest! {
    /// Whatever is added and taken out again, the file is as it was, and says so in between.
    #[test]
    fn what_was_added_can_be_taken_out_again(
        names in prop::collection::btree_set("[a-z][a-z0-9_-]{0,8}", 1..5),
        words in prop::collection::vec("[ -~é\n\t\"\\\\]{0,12}", 0..4),
        remote in any::<bool>(),
        json in any::<bool>(),
        noise in prop::sample::select(vec!["", "# a\n", "[consort]\nbuiltin = true\n", "# a\n[mcp.zzzzzzzzzzz]\ncommand = \"z\" # z\n\n\n# end\n"]),
    ) {
        let entry = if remote {
            serde_json::json!({ "url": "https://a.example/mcp", "headers": { "X-Word": "env:WORD" } })
        } else {
            // A `$` or a colon might begin a reference.
            let words: Vec<String> = words.iter().map(|word| word.replace(['$', ':'], "")).collect();
            serde_json::json!({ "command": "a", "args": words })
        };
        let new: serde_json::Map<_, _> = names.iter().map(|name| (name.clone(), entry.clone())).collect();
        let new = serde_json::Value::Object(new).to_string();
        let (file, text) = if json {
            ("mcp.json", "{\n  // mine\n  \"mcpServers\": {\n    \"zzzzzzzzzzz\": {\"command\": \"z\"} // z\n  }\n}\n")
        } else {
            ("consort.toml", noise)
        };
        let mut after = added(file, text, &new);
        for name in names.iter().rev() {
            after = removed(file, &after, name);
        }
        if json {
            prop_assert_eq!(after, text);
        } else {
            prop_assert_eq!(after.trim_end(), text.trim_end());
        }
    }
}
