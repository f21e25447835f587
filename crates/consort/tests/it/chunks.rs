//! Events as lines of JSON, and the schema that every line has.

use consort::{Caller, Chunk, ChunkType, OpenOptions, tool};
use serde_json::{Value, json};

use crate::Home;

/// Returns the lines of an output that are not as the schema says, with the reason.
fn invalid_lines(schema: &Value, output: &str) -> Vec<String> {
    let validator = jsonschema::options().build(schema).unwrap();
    let lines = output.lines().map(|line| (line, serde_json::from_str::<Value>(line).unwrap()));
    let errors = lines.filter_map(|(line, value)| {
        validator.iter_errors(&value).next().map(|error| format!("{error}: {line}"))
    });
    errors.collect()
}

#[test]
fn every_line_of_a_call_and_a_run_is_as_the_printed_schema_says() {
    let home = Home::new();
    let printed = home.run(&["config", "schema", "events"]);
    let schema: Value = serde_json::from_str(&printed.out).unwrap();
    assert_eq!(schema, Chunk::schema());
    let model = home.script(&json!([
        { "calls": [{ "name": "long_computation", "arguments": { "steps": 1 } }, { "name": "nothing" }] },
        { "text": "Done." },
    ]));
    home.write("task.toml", "description = \"compute\"\ntools = [\"long_computation\"]\n");
    let cases: [&[&str]; 5] = [
        &["call", "long_computation", "steps=2", "--json"],
        &["call", "builtin.echo", "--json"],
        &["call", "nobody.nothing", "--json"],
        &["ask", "--json", "--model", &model, "compute"],
        &["run", "task.toml", "--json", "--model", &model],
    ];
    for arguments in cases {
        let ran = home.run(arguments);
        assert!(ran.out.lines().count() > 0, "{arguments:?}: {}", ran.err);
        assert_eq!(invalid_lines(&schema, &ran.out), Vec::<String>::new(), "{arguments:?}");
    }
}

#[test]
fn a_line_of_a_call_is_read_as_a_chunk_of_the_library() {
    let ran = Home::new().run(&["call", "long_computation", "steps=1", "--json"]);
    let chunks: Vec<Chunk> =
        ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<ChunkType> = chunks.iter().map(|chunk| chunk.chunk_type).collect();
    assert_eq!(kinds, [ChunkType::Progress, ChunkType::Complete]);
    assert!(chunks.iter().all(|chunk| chunk.tool_name == "demo.long_computation"));
}

#[tokio::test]
async fn the_library_streams_the_same_chunks() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mcp.json");
    std::fs::write(&file, r#"{"mcpServers": {}}"#).unwrap();
    let count = tool("count", "Counts.", async |_: Value, context| {
        context.progress(1.0, Some(1.0), "one");
        context.log("info", "counted");
        Err::<String, _>("and failed")
    });
    let options = OpenOptions::default().caller(Caller::person("ada"));
    let toolbox = options.tools("own".parse().unwrap(), vec![count]).open(&file).unwrap();
    let mut stream = toolbox.chunks("count", json!({})).await.unwrap();
    let (mut lines, mut kinds) = (String::new(), Vec::new());
    while let Some(chunk) = stream.next().await {
        kinds.push(chunk.chunk_type);
        lines += &(serde_json::to_string(&chunk).unwrap() + "\n");
    }
    assert_eq!(kinds, [ChunkType::Progress, ChunkType::Log, ChunkType::Complete]);
    assert_eq!(invalid_lines(&Chunk::schema(), &lines), Vec::<String>::new());
    assert!(lines.contains(r#""is_error":true"#), "{lines}");
    toolbox.close().await;
}
