//! The messages that are measured: typical server messages of typical sizes.

use bytes::Bytes;
use consort_protocol::{Json, RequestId, splice};
use serde_json::{Value, json};

/// A message from a server.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) name: &'static str,
    pub(crate) bytes: Bytes,
}

/// Typical text of tool results: prose, code, logs, tables, and some text beyond ASCII.
const LINES: [&str; 10] = [
    "## What was found",
    "The query returned 25 issues; the oldest is more than a year old \u{2014} nobody answered it.",
    "    let reply = client.get(\"/v1/items\").header(\"accept\", \"application/json\").send().await?;",
    "2026-03-14T09:26:53.589Z INFO request{id=4711 path=\"/v1/items\"} finished status=200 in 31ms",
    "| 17 | Jos\u{e9} M\u{fc}ller | open | The size of the file exceeds the limit of 16 MB |",
    "- [x] Read `README.md`, then run `make test` and compare the output with the one below",
    "https://example.com/projects/concert/issues/231?state=open&sort=created&direction=desc",
    "",
    "It follows that the first attempt fails whenever the second one has not been made yet, which is",
    "\tat Object.<anonymous> (/srv/app/dist/index.js:112:17)",
];

/// At least `bytes` bytes of such text.
pub(crate) fn text(bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 128);
    for line in LINES.iter().cycle() {
        if text.len() >= bytes {
            break;
        }
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// One of each kind.
pub(crate) fn all() -> Vec<Sample> {
    let sample = |name, result: &Value| Sample {
        name,
        bytes: splice::response(&RequestId::from(4711), &Json::from(result.clone())),
    };
    vec![
        sample("text, 1 KB", &text_result(&text(900))),
        sample("text, 32 KB", &text_result(&text(31 << 10))),
        sample("text, 1 MB", &text_result(&text(1000 << 10))),
        sample("image, 1 MB", &image_result(1000 << 10)),
        sample("JSON as text, 32 KB", &text_result(&rows(120).to_string())),
        sample("structured, 1 KB", &structured_result(4)),
        sample("structured, 32 KB", &structured_result(135)),
        sample("structured, 1 MB", &structured_result(4250)),
        sample("tools/list, 500 tools", &json!({ "tools": tools(500) })),
    ]
}

fn text_result(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}], "isError": false})
}

/// An image in base64: one long string without anything to stop at.
fn image_result(bytes: usize) -> Value {
    let data = "iVBORw0KGgoAAAANSUhEUgAAB+4/".repeat(bytes / 28);
    json!({"content": [{"type": "image", "data": data, "mimeType": "image/png"}], "isError": false})
}

fn structured_result(count: u32) -> Value {
    json!({
        "content": [{"type": "text", "text": format!("{count} rows")}],
        "structuredContent": {"rows": rows(count), "total": count},
        "isError": false
    })
}

/// Rows of a table as an API returns them: many keys, numbers and levels.
fn rows(count: u32) -> Value {
    (0..count)
        .map(|n| {
            json!({
                "id": 100_000 + n,
                "name": format!("item-{n}"),
                "price": f64::from(n) * 1.25 + 0.99,
                "active": n % 3 != 0,
                "parent": null,
                "tags": ["new", "on sale", "fragile"],
                "stock": {"north": n % 17, "south": n % 5, "reserved": {"count": n % 3, "until": "2026-09-30"}},
                "location": [f64::from(n) / 7.0, -f64::from(n) / 13.0],
            })
        })
        .collect()
}

/// Tool definitions typical of large servers.
pub(crate) fn tools(count: usize) -> Vec<Value> {
    const VERBS: [&str; 8] =
        ["create", "list", "get", "update", "delete", "search", "merge", "export"];
    const NOUNS: [&str; 6] = ["issue", "invoice", "customer", "document", "ticket", "dataset"];
    (0..count)
        .map(|n| {
            let (verb, noun) = (VERBS[n % 8], NOUNS[n / 8 % 6]);
            json!({
                "name": format!("{verb}_{noun}_{n}"),
                "title": format!("{verb} {noun} ({n})"),
                "description": format!(
                    "Runs {verb} on a {noun} of the workspace. Use it when the user names a {noun} or \
                     gives its identifier.\nReturns the {noun} in its current state, or says why the \
                     caller may not {verb} it."
                ),
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "workspace": {"type": "string", "description": "Where the resource lives"},
                        "id": {"type": "string", "description": format!("Identifier of the {noun}"), "maxLength": 64},
                        "fields": {"type": "array", "items": {"type": "string"}},
                        "state": {"type": "string", "enum": ["open", "closed", "all"], "default": "open"},
                        "limit": {"type": "integer", "minimum": 1, "maximum": 200, "default": 50},
                    },
                    "required": ["workspace", "id"]
                },
                "annotations": {"readOnlyHint": verb == "list" || verb == "get", "destructiveHint": verb == "delete"}
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_protocol::JsonRpcMessage;

    #[test]
    fn each_sample_is_a_message_about_as_large_as_its_name_says() {
        for sample in all() {
            let size = sample.bytes.len();
            let expected = match sample.name.split_once(", ").expect("kind and size").1 {
                "1 KB" => 900..1200,
                "32 KB" => 30_000..36_000,
                "1 MB" => 950_000..1_150_000,
                "500 tools" => 300_000..500_000,
                other => panic!("{other}"),
            };
            assert!(expected.contains(&size), "{}: {size}", sample.name);
            assert!(matches!(
                JsonRpcMessage::parse(sample.bytes),
                Ok(JsonRpcMessage::Response { .. })
            ));
        }
    }

    #[test]
    fn text_is_no_shorter_than_asked_and_hardly_longer() {
        for size in [0, 1, 1000, 40_000] {
            assert!((size..size + 128).contains(&text(size).len()));
        }
    }
}
