//! The server of a measurement: no SDK, both eras, and so little work that the client's shows.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use consort_wire::{Era, Id, Json, Notification, Object, Revision, splice, splice::Writer};
use serde_json::json;

use crate::{Failure, samples};

mod http;
mod stdio;

/// How the server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listen {
    Stdio,
    Http,
}

/// Serves until standard input closes, so that it never outlives who started it.
pub(crate) fn run(listen: Listen) -> Result<(), Failure> {
    match listen {
        Listen::Stdio => stdio::serve(&Tools::default()),
        Listen::Http => http::serve(),
    }
}

/// What a request comes to.
#[derive(Debug)]
enum Reply {
    Now(Bytes),
    Later(Slow),
}

/// A result that takes its time and reports progress meanwhile.
#[derive(Debug)]
struct Slow {
    steps: u64,
    pause: Duration,
    token: Option<Json>,
    end: Bytes,
}

impl Slow {
    /// The message about step `n`, if the caller wants to know.
    fn progress(&self, n: u64) -> Option<Bytes> {
        let mut params = Writer::new();
        params.raw("progressToken", self.token.as_ref()?.as_bytes());
        params.number("progress", n);
        params.number("total", self.steps);
        Some(splice::notification("notifications/progress", Some(&params.finish())))
    }
}

/// The tools, with the texts they returned already.
#[derive(Debug, Default)]
struct Tools {
    texts: Mutex<BTreeMap<usize, Json>>,
}

impl Tools {
    /// The answer to a request.
    fn reply(&self, id: &Id, body: &Notification, era: Era) -> Reply {
        let params = &body.params;
        let result = match (body.method.as_str(), era) {
            ("tools/call", _) => return self.call(id, body, era),
            ("tools/list", _) => listing(era),
            ("initialize", Era::Legacy) => {
                let revision = params
                    .text("protocolVersion")
                    .and_then(|text| text.parse::<Revision>().ok())
                    .filter(|revision| revision.era() == Era::Legacy)
                    .unwrap_or(Revision::NEWEST_LEGACY);
                Json::from(json!({
                    "protocolVersion": revision,
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "bench", "version": "0"},
                }))
            }
            ("server/discover", Era::Modern) => Json::from(json!({
                "resultType": "complete",
                "supportedVersions": [Revision::NEWEST_MODERN, Revision::NEWEST_LEGACY],
                "capabilities": {"tools": {}},
                "ttlMs": 3_600_000,
                "cacheScope": "public",
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "bench", "version": "0"}},
            })),
            ("ping", _) => Json::from(json!({})),
            _ => return Reply::Now(splice::error(Some(id), -32601, "unknown method", None)),
        };
        Reply::Now(splice::response(id, &result))
    }

    fn call(&self, id: &Id, body: &Notification, era: Era) -> Reply {
        let arguments = body.params.get("arguments").and_then(|json| json.to_object());
        let arguments = arguments.unwrap_or_else(Object::empty);
        let number = |name: &str, most: i64| {
            let number = arguments.get(name).and_then(|json| json.integer());
            u64::try_from(number.unwrap_or(0).clamp(0, most)).expect("clamped above")
        };
        let answer = |text: &Json| splice::response(id, &text_result(text, era));
        match body.params.text("name").as_deref() {
            Some("echo") => {
                let text = arguments.get("text");
                Reply::Now(answer(&text.unwrap_or_else(|| Json::string(""))))
            }
            Some("big") => {
                let bytes = usize::try_from(number("bytes", 16 << 20)).expect("at most 16 MB");
                Reply::Now(answer(&self.text(bytes)))
            }
            Some("slow") => {
                let steps = number("steps", 10_000).max(1);
                Reply::Later(Slow {
                    steps,
                    pause: Duration::from_micros(number("ms", 60_000) * 1000 / steps),
                    token: body.meta("progressToken"),
                    end: answer(&Json::string("done")),
                })
            }
            _ => Reply::Now(splice::error(Some(id), -32602, "unknown tool", None)),
        }
    }

    fn text(&self, bytes: usize) -> Json {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let text = texts.entry(bytes);
        text.or_insert_with(|| Json::string(&samples::text(bytes))).clone()
    }
}

/// A tool's result; `text` is a JSON string already.
fn text_result(text: &Json, era: Era) -> Json {
    let mut content = Vec::with_capacity(text.as_bytes().len() + 32);
    content.extend_from_slice(br#"[{"type":"text","text":"#);
    content.extend_from_slice(text.as_bytes());
    content.extend_from_slice(b"}]");
    let mut result = Writer::with_capacity(content.len() + 128);
    result.raw("content", &content);
    result.raw("isError", b"false");
    if era == Era::Modern {
        result.text("resultType", "complete");
    }
    result.finish()
}

fn listing(era: Era) -> Json {
    let tool = |name: &str, arguments: &[(&str, &str)]| {
        let properties: serde_json::Map<_, _> = arguments
            .iter()
            .map(|(name, kind)| ((*name).to_owned(), json!({ "type": kind })))
            .collect();
        json!({"name": name, "inputSchema": {"type": "object", "properties": properties}})
    };
    let tools = [
        tool("echo", &[("text", "string")]),
        tool("big", &[("bytes", "integer")]),
        tool("slow", &[("ms", "integer"), ("steps", "integer")]),
    ];
    Json::from(match era {
        Era::Legacy => json!({ "tools": tools }),
        Era::Modern => {
            json!({"tools": tools, "resultType": "complete", "ttlMs": 0, "cacheScope": "public"})
        }
    })
}
