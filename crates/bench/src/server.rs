//! The server of a measurement: no SDK, both eras, and so cheap that the client's cost dominates.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use consort_protocol::{
    Era, Json, Notification, Object, RequestId, Revision, splice, splice::ObjectWriter,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::statistics::monotonic;
use crate::{Failure, samples};

mod http;
mod stdio;

const UNSUPPORTED_VERSION: i64 = -32022;
const UNKNOWN_METHOD: i64 = -32601;

/// Result of the tool `exact`: escapes, member order, number formats and an integer that no float can represent.
pub(crate) const EXACT_CONTENT: &str = r#"[{"type":"text","text":"caf\u00e9 \/ na\u00efve","annotations":{"priority":1.0,"audience":["user"]}}]"#;
pub(crate) const EXACT_STRUCTURE: &str =
    r#"{"z":1.0,"a":[1e2,0.10,9007199254740993],"nothing":null}"#;
pub(crate) const EXACT_META: &str = r#"{"bench.example/trace":"t-1"}"#;

/// Options of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Serve {
    pub(crate) listen: Listen,
    /// The only era it supports, if not both.
    pub(crate) era: Option<Era>,
    /// Number of tools that are never called, beyond the working ones.
    pub(crate) fillers: usize,
    /// Prefix of every tool name.
    pub(crate) prefix: String,
}

/// Transport of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listen {
    Stdio,
    Http,
}

impl Serve {
    pub(crate) fn new(listen: Listen) -> Self {
        Self { listen, era: None, fillers: 0, prefix: String::new() }
    }

    /// The command-line arguments of such a server.
    pub(crate) fn words(&self) -> Vec<String> {
        let listen = match self.listen {
            Listen::Stdio => "stdio",
            Listen::Http => "http",
        };
        let mut words = vec!["serve".to_owned(), listen.to_owned()];
        let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
        if let Some(era) = self.era {
            option("--era", era.to_string());
        }
        if self.fillers > 0 {
            option("--fillers", self.fillers.to_string());
        }
        if !self.prefix.is_empty() {
            option("--prefix", self.prefix.clone());
        }
        words
    }

    /// The definitions of its tools.
    pub(crate) fn tools(&self) -> Vec<Value> {
        let tool = |name: &str, arguments: &[(&str, &str)]| {
            let properties: serde_json::Map<_, _> = arguments
                .iter()
                .map(|(name, kind)| ((*name).to_owned(), json!({ "type": kind })))
                .collect();
            let schema = json!({"type": "object", "properties": properties});
            json!({"name": name, "inputSchema": schema})
        };
        let mut tools = vec![
            tool("echo", &[("text", "string")]),
            tool("big", &[("bytes", "integer")]),
            tool("slow", &[("ms", "integer"), ("steps", "integer")]),
            tool("exact", &[]),
        ];
        tools.extend(samples::tools(self.fillers));
        for tool in &mut tools {
            let name = format!("{}{}", self.prefix, tool["name"].as_str().unwrap_or_default());
            tool["name"] = name.into();
        }
        tools
    }
}

/// Serves until standard input closes, so that it never outlives its parent.
pub(crate) fn run(serve: &Serve) -> Result<(), Failure> {
    let tools = Tools::new(serve);
    match serve.listen {
        Listen::Stdio => stdio::serve(&tools),
        Listen::Http => http::serve(tools),
    }
}

/// Response to a request.
#[derive(Debug)]
enum Reply {
    Now(Bytes),
    Later(Slow),
}

/// A delayed result with progress notifications.
#[derive(Debug)]
struct Slow {
    steps: u64,
    pause: Duration,
    token: Option<Json>,
    end: Bytes,
}

impl Slow {
    /// The message about step `n`, if the caller requested progress.
    fn progress(&self, n: u64) -> Option<Bytes> {
        let mut params = ObjectWriter::new();
        params.raw("progressToken", self.token.as_ref()?.as_bytes());
        params.number("progress", n);
        params.number("total", self.steps);
        // When it was written, for who measures how long it was on its way.
        params.text("message", &format!("t={}", monotonic().as_nanos()));
        Some(splice::notification("notifications/progress", Some(&params.finish())))
    }
}

/// The tools, with the large results they returned already.
#[derive(Debug)]
struct Tools {
    era: Option<Era>,
    prefix: String,
    legacy_list: Json,
    modern_list: Json,
    results: Mutex<BTreeMap<(usize, &'static str), Json>>,
}

impl Tools {
    fn new(serve: &Serve) -> Self {
        let tools = serve.tools();
        Self {
            era: serve.era,
            prefix: serve.prefix.clone(),
            legacy_list: Json::from(json!({ "tools": tools })),
            modern_list: Json::from(json!({
                "tools": tools, "resultType": "complete", "ttlMs": 0, "cacheScope": "public",
            })),
            results: Mutex::default(),
        }
    }

    fn speaks(&self, era: Era) -> bool {
        self.era.is_none_or(|only| only == era)
    }

    /// The response to a request of an unsupported era, as servers of the other era give it.
    fn refusal(&self, id: &RequestId) -> Bytes {
        match self.era {
            Some(Era::Modern) => {
                let data = Json::from(json!({ "supported": [Revision::NEWEST_MODERN] }));
                splice::error(Some(id), UNSUPPORTED_VERSION, "unsupported version", Some(&data))
            }
            _ => splice::error(Some(id), UNKNOWN_METHOD, "unknown method", None),
        }
    }

    /// The answer to a request.
    fn reply(&self, id: &RequestId, body: &Notification, era: Era) -> Reply {
        if !self.speaks(era) {
            return Reply::Now(self.refusal(id));
        }
        let params = &body.params;
        let result = match (body.method.as_str(), era) {
            ("tools/call", _) => return self.call(id, body, era),
            ("tools/list", Era::Legacy) => self.legacy_list.clone(),
            ("tools/list", Era::Modern) => self.modern_list.clone(),
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
            ("server/discover", Era::Modern) => {
                let revisions = [Revision::NEWEST_MODERN, Revision::NEWEST_LEGACY];
                let spoken: Vec<_> =
                    revisions.into_iter().filter(|revision| self.speaks(revision.era())).collect();
                Json::from(json!({
                    "resultType": "complete",
                    "supportedVersions": spoken,
                    "capabilities": {"tools": {}},
                    "ttlMs": 3_600_000,
                    "cacheScope": "public",
                    "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "bench", "version": "0"}},
                }))
            }
            ("ping", _) => Json::from(json!({})),
            _ => {
                return Reply::Now(splice::error(Some(id), UNKNOWN_METHOD, "unknown method", None));
            }
        };
        Reply::Now(splice::response(id, &result))
    }

    fn call(&self, id: &RequestId, body: &Notification, era: Era) -> Reply {
        let arguments = body.params.get("arguments").and_then(|json| json.to_object());
        let arguments = arguments.unwrap_or_else(Object::empty);
        let number = |name: &str, most: i64| {
            let number = arguments.get(name).and_then(|json| json.integer());
            u64::try_from(number.unwrap_or(0).clamp(0, most)).expect("clamped above")
        };
        let answer = |text: &Json| splice::response(id, &text_result(text, era));
        let name = body.params.text("name").unwrap_or_default();
        match name.strip_prefix(&self.prefix) {
            Some("echo") => {
                let text = arguments.get("text");
                Reply::Now(answer(&text.unwrap_or_else(|| Json::string(""))))
            }
            Some("big") => {
                let bytes = usize::try_from(number("bytes", 16 << 20)).expect("at most 16 MB");
                Reply::Now(splice::response(id, &self.large(bytes, era)))
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
            Some("exact") => Reply::Now(splice::response(id, &exact_result(era))),
            _ => Reply::Now(splice::error(Some(id), -32602, "unknown tool", None)),
        }
    }

    /// Returns a large result, built once: a copy per response is work enough for a server that should cost little.
    fn large(&self, bytes: usize, era: Era) -> Json {
        let mut results = self.results.lock();
        let key = match era {
            Era::Legacy => (bytes, "legacy"),
            Era::Modern => (bytes, "modern"),
        };
        let make = || text_result(&Json::string(&samples::text(bytes)), era);
        results.entry(key).or_insert_with(make).clone()
    }
}

/// A result that contains everything that is easily lost in forwarding.
fn exact_result(era: Era) -> Json {
    let mut result = ObjectWriter::new();
    result.raw("content", EXACT_CONTENT.as_bytes());
    result.raw("structuredContent", EXACT_STRUCTURE.as_bytes());
    result.raw("isError", b"false");
    result.raw("_meta", EXACT_META.as_bytes());
    if era == Era::Modern {
        result.text("resultType", "complete");
    }
    result.finish()
}

/// A tool's result; `text` is a JSON string already.
fn text_result(text: &Json, era: Era) -> Json {
    let mut content = Vec::with_capacity(text.as_bytes().len() + 32);
    content.extend_from_slice(br#"[{"type":"text","text":"#);
    content.extend_from_slice(text.as_bytes());
    content.extend_from_slice(b"}]");
    let mut result = ObjectWriter::with_capacity(content.len() + 128);
    result.raw("content", &content);
    result.raw("isError", b"false");
    if era == Era::Modern {
        result.text("resultType", "complete");
    }
    result.finish()
}
