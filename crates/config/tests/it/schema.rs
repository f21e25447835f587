//! The JSON Schema of the config: what the reader takes it accepts, what the reader refuses it refuses.

use std::path::Path;

use consort_config::{Config, config_schema, generate_config_schema};
use jsonschema::Validator;
use serde_json::{Value, json};

fn validator() -> Validator {
    let schema = config_schema();
    jsonschema::meta::validate(&schema).unwrap();
    jsonschema::draft202012::new(&schema).unwrap()
}

/// A config as a value, whatever it is written in.
fn value(name: &str, text: &str) -> Option<Value> {
    let comments = |text: &str| {
        // JSON with comments, as editors keep it.
        let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        lines.collect::<Vec<_>>().join("\n")
    };
    if Path::new(name).extension().is_some_and(|ending| ending == "toml") {
        toml::from_str::<Value>(text).ok()
    } else {
        serde_json::from_str(&comments(text)).ok()
    }
}

/// The blocks of TOML and JSON in the documentation, and the sample configs of the tests.
fn examples() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root.join("../../docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "md") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let page = path.file_name().unwrap().to_str().unwrap().to_owned();
        for (n, block) in text.split("\n```").skip(1).step_by(2).enumerate() {
            let (language, body) = block.split_once('\n').unwrap_or((block, ""));
            if matches!(language.trim(), "toml" | "json") {
                found.push((format!("{page}-{n}.{}", language.trim()), body.to_owned()));
            }
        }
    }
    for entry in std::fs::read_dir(root.join("tests/it/samples")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            found.push((name, std::fs::read_to_string(&path).unwrap()));
        }
    }
    found
}

#[test]
fn every_example_config_is_accepted() {
    let validator = validator();
    let mut checked = 0;
    for (name, text) in examples() {
        let Ok(config) = Config::parse(Path::new(&name), &text) else { continue };
        let ours =
            text.contains("mcpServers") || text.contains("[mcp.") || text.contains("consort");
        if !config.errors.is_empty() || !ours {
            continue;
        }
        let Some(value) = value(&name, &text) else { continue };
        let wrong: Vec<String> = validator
            .iter_errors(&value)
            .map(|error| format!("{name}{}: {error}", error.instance_path()))
            .collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
        checked += 1;
    }
    assert!(checked >= 20, "only {checked} examples are configs");
}

#[test]
fn what_the_reader_refuses_is_refused() {
    let validator = validator();
    for text in [
        "[mcp.x]\ncommand = \"x\"\n[consort]\npolcy = {}\n",
        "[mcp.x]\ncommand = \"x\"\n[consort.limits]\nmesage_bytes = 65536\n",
        "[mcp.x]\ncommand = \"x\"\n[consort.limits]\nmessage_bytes = 1\n",
        "[mcp.x]\ncommand = \"x\"\n[consort.limits]\nqueue_wait = \"soon\"\n",
        "[mcp.x]\ncommand = \"x\"\n[consort.limits]\nrequest_body_timeout = 99999\n",
        "[mcp.x]\ncommand = \"x\"\n[consort.serve]\nlog_server_output = \"loud\"\n",
        "[mcp.x]\ncommand = \"x\"\n[consort.serve]\nlingr = 3\n",
        "[mcp.x]\ncommand = \"x\"\n[[consort.policy.rules]]\nthen = \"perhaps\"\n",
        "[mcp.x]\ncommand = \"x\"\n[[consort.policy.rules]]\ntools = [\"a\"]\n",
        "[mcp.x]\ncommand = \"x\"\n[[consort.transforms]]\nprefx = \"a\"\n",
        "[mcp.x]\ncommand = \"x\"\n[consort.agents.a]\nmax_turns = 3\n",
        "[mcp.x]\ncommand = \"x\"\n[consort]\nexposure = \"all\"\n",
        "[mcp.x]\ncommandd = \"x\"\n",
        "[mcp.x]\ncommand = \"x\"\nera = \"ancient\"\n",
        "[mcp.x]\ncommand = \"x\"\ntimeout = { idel = 3 }\n",
        "[mcp.x]\ncommand = \"x\"\n[polcy]\ndefault = \"deny\"\n",
    ] {
        let config = Config::parse(Path::new("consort.toml"), text).unwrap();
        assert!(!config.errors.is_empty(), "the reader takes\n{text}");
        assert!(!validator.is_valid(&value("consort.toml", text).unwrap()), "{text}");
    }
}

#[test]
fn a_reference_to_the_schema_is_read_over() {
    let toml = "#:schema ./consort.schema.json\n[mcp.x]\ncommand = \"x\"\n";
    let mcp = r#"{"$schema": "./consort.schema.json", "mcp": {"x": {"command": "x"}}}"#;
    let servers = r#"{"$schema": "./consort.schema.json", "mcpServers": {"x": {"command": "x"}}}"#;
    let validator = validator();
    for (name, text) in [("consort.toml", toml), ("consort.json", mcp), (".mcp.json", servers)] {
        let config = Config::parse(Path::new(name), text).unwrap();
        assert!(config.errors.is_empty() && config.problems.is_empty(), "{:?}", config.problems);
        assert_eq!(config.servers.len(), 1);
        assert!(validator.is_valid(&value(name, text).unwrap()));
    }
}

/// `UPDATE_DOCS=1` writes it anew.
#[test]
fn the_schema_is_of_the_declared_keys() {
    testkit::docs::hold_json("docs/config.schema.json", &generate_config_schema());
}

#[test]
fn every_key_has_a_description() {
    let schema = config_schema();
    for (table, definition) in schema["$defs"].as_object().unwrap() {
        for (key, property) in definition["properties"].as_object().into_iter().flatten() {
            assert!(property["description"].is_string(), "{table}.{key}");
        }
    }
    let limits = &schema["$defs"]["Limits"]["properties"];
    assert_eq!(limits["sessions"]["default"], 1000);
    assert_eq!(limits["sessions"]["minimum"], 1);
    assert_eq!(limits["request_body_timeout"]["default"], "30s");
    assert_eq!(limits["request_body_timeout"]["anyOf"][0]["maximum"], json!(3600.0));
}

/// The validator of Python's `jsonschema` agrees.
#[test]
fn python_jsonschema_accepts_the_schema_and_refuses_a_misspelt_key() {
    const SCRIPT: &str = "\
import json, sys, jsonschema
schema = json.load(sys.stdin)
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
good = {'mcp': {'x': {'command': 'x'}}, 'consort': {'limits': {'sessions': 5, 'queue_wait': '5s'}}}
bad = {'mcp': {'x': {'command': 'x'}}, 'consort': {'limits': {'sesions': 5}}}
assert not list(validator.iter_errors(good)), list(validator.iter_errors(good))
assert list(validator.iter_errors(bad))
";
    use std::io::Write as _;
    let mut python = std::process::Command::new(testkit::fixtures::python("python3"))
        .args(["-c", SCRIPT])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    python.stdin.take().unwrap().write_all(config_schema().to_string().as_bytes()).unwrap();
    assert!(python.wait().unwrap().success());
}
