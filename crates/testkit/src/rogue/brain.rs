//! Reactions of the rogue to messages, over any transport.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::{Manner, Probe, Step};

/// Maximum number of messages remembered: the last ones.
const MEMORY: usize = 10_000;

/// The rogue's memory and behaviour.
#[derive(Debug)]
pub struct Brain {
    pub(super) manner: Manner,
    seen: Mutex<VecDeque<Value>>,
    /// The nonces of calls, by the ids they came with last.
    nonces: Mutex<HashMap<String, String>>,
    script: Mutex<BTreeMap<String, VecDeque<Vec<Step>>>>,
    /// Requests of its own that wait for a response, by their ids.
    asked: Mutex<HashMap<String, oneshot::Sender<Value>>>,
    requests: AtomicU64,
}

impl Brain {
    /// A rogue with this behaviour.
    pub fn new(manner: Manner) -> Self {
        let script = Mutex::new(manner.script.clone());
        Self {
            script,
            seen: Mutex::default(),
            nonces: Mutex::default(),
            asked: Mutex::default(),
            requests: AtomicU64::new(0),
            manner,
        }
    }

    /// Every message received so far.
    pub fn seen(&self) -> Vec<Value> {
        self.seen.lock().iter().cloned().collect()
    }

    /// Begins a request of its own. Returns its id and its response.
    pub(super) fn ask(&self) -> (String, oneshot::Receiver<Value>) {
        let id = format!("ask-{}", self.requests.fetch_add(1, Ordering::Relaxed));
        let (sender, answer) = oneshot::channel();
        self.asked.lock().insert(id.clone(), sender);
        (id, answer)
    }

    /// Returns the steps in response to a message.
    pub fn react(&self, message: &Value) -> Vec<Step> {
        {
            let mut seen = self.seen.lock();
            seen.push_back(message.clone());
            let excess = seen.len().saturating_sub(MEMORY);
            seen.drain(..excess);
        }
        self.note(message);
        let id = &message["id"];
        let asked = id.as_str().filter(|_| message["method"].is_null());
        let asked = asked.and_then(|id| self.asked.lock().remove(id));
        if let Some(asked) = asked {
            let _ = asked.send(message.clone());
        }
        let Some(method) = message["method"].as_str().filter(|_| !id.is_null()) else {
            return Vec::new();
        };
        if let Some(steps) = self.scripted(method) {
            return fill(steps, id, &message["params"]["_meta"]["progressToken"]);
        }
        match method {
            "initialize" => match &self.manner.legacy {
                Some(revision) => answer(
                    id,
                    &json!({
                        "protocolVersion": revision,
                        "capabilities": self.capabilities(),
                        "serverInfo": { "name": "rogue", "version": "0" },
                    }),
                ),
                None => error(id, -32601, "no handshake here"),
            },
            "server/discover" if self.manner.modern => answer(
                id,
                &json!({
                    "resultType": "complete",
                    "supportedVersions": self.manner.supported,
                    "capabilities": self.capabilities(),
                    "ttlMs": 0,
                    "cacheScope": "private",
                }),
            ),
            "server/discover" => match self.manner.probe {
                Probe::Error => error(id, -32601, "unknown method"),
                Probe::Silence => Vec::new(),
                Probe::Exit => vec![Step::Exit(3)],
            },
            "tools/list" => self.tools(id, &message["params"]["cursor"]),
            "tools/call" => self.call(id, &message["params"]),
            "ping" => answer(id, &json!({})),
            "test/seen" => answer(id, &json!({ "seen": self.seen() })),
            _ => error(id, -32601, "unknown method"),
        }
    }

    /// Appends a request to the file that outlives this process: the nonce of a call, `cancelled` and the nonce of a
    /// cancelled one, the method of a handshake or a listing.
    fn note(&self, message: &Value) {
        let Some(ledger) = &self.manner.ledger else { return };
        let mut nonces = self.nonces.lock();
        let line = match message["method"].as_str() {
            Some("notifications/cancelled") => {
                let id = message["params"]["requestId"].to_string();
                nonces.remove(&id).map(|nonce| format!("cancelled {nonce}"))
            }
            // Of a list its first page.
            Some(method @ ("initialize" | "tools/list")) => {
                message["params"]["cursor"].is_null().then(|| method.to_owned())
            }
            _ => message["params"]["arguments"]["nonce"].as_str().map(|nonce| {
                nonces.insert(message["id"].to_string(), nonce.to_owned());
                nonce.to_owned()
            }),
        };
        if let Some(line) = line {
            append(ledger, &line);
        }
    }

    /// Records that the client of this call disconnected before its end.
    pub(super) fn left(&self, message: &Value) {
        let nonce = message["params"]["arguments"]["nonce"].as_str();
        if let (Some(ledger), Some(nonce)) = (&self.manner.ledger, nonce) {
            append(ledger, &format!("cancelled {nonce}"));
        }
    }

    fn scripted(&self, method: &str) -> Option<Vec<Step>> {
        let mut script = self.script.lock();
        let steps = script.get_mut(method)?;
        if steps.len() > 1 { steps.pop_front() } else { steps.front().cloned() }
    }

    fn capabilities(&self) -> Value {
        let mut capabilities = json!({ "tools": {} });
        if let Some(more) = self.manner.capabilities.as_object() {
            for (name, value) in more {
                capabilities[name] = value.clone();
            }
        }
        capabilities
    }

    fn tools(&self, id: &Value, cursor: &Value) -> Vec<Step> {
        let page: usize = cursor.as_str().and_then(|page| page.parse().ok()).unwrap_or(0);
        let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
        let mut tools = if page == 0 {
            ["result", "progress", "write", "ask", "seen"].map(tool).to_vec()
        } else {
            vec![tool(&format!("page-{page}"))]
        };
        if let Some(extra) = self.manner.extra_tool.as_ref().filter(|_| page == 0) {
            tools.push(serde_json::from_str(extra).expect("the test gives JSON"));
        }
        let mut result = json!({ "tools": tools, "resultType": "complete" });
        if self.manner.circle {
            result["nextCursor"] = json!("1");
        } else if page < self.manner.pages {
            result["nextCursor"] = json!((page + 1).to_string());
        }
        answer(id, &result)
    }

    fn call(&self, id: &Value, params: &Value) -> Vec<Step> {
        let arguments = &params["arguments"];
        let token = &params["_meta"]["progressToken"];
        match params["name"].as_str() {
            Some("result") => {
                let raw = arguments["raw"].as_str().unwrap_or("{}");
                vec![Step::Message(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{raw}}}"#))]
            }
            Some("progress") => {
                let count = arguments["count"].as_u64().unwrap_or(1);
                let progress = |n| {
                    Step::Message(
                        json!({
                            "jsonrpc": "2.0",
                            "method": "notifications/progress",
                            "params": { "progressToken": token, "progress": n, "total": count },
                        })
                        .to_string(),
                    )
                };
                (1..=count).map(progress).chain(answer(id, &json!({ "content": [] }))).collect()
            }
            Some("write") => {
                let steps: Vec<Step> = serde_json::from_value(arguments["steps"].clone())
                    .expect("the test gives steps");
                fill(steps, id, token)
            }
            Some("seen") => answer(id, &json!({ "content": [], "seen": self.seen() })),
            _ => error(id, -32602, "unknown tool"),
        }
    }
}

/// Appends a line with one write, so that rogues can share a file.
fn append(ledger: &Path, line: &str) {
    let file = std::fs::OpenOptions::new().create(true).append(true).open(ledger);
    file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()))
        .expect("the test gives a file that can be written");
}

/// Replaces `$ID` and `$TOKEN` in the texts by the request's id and token.
fn fill(steps: Vec<Step>, id: &Value, token: &Value) -> Vec<Step> {
    let fill =
        |text: String| text.replace("$ID", &id.to_string()).replace("$TOKEN", &token.to_string());
    let filled = |step| match step {
        Step::Message(text) => Step::Message(fill(text)),
        Step::Ask(text) => Step::Ask(fill(text)),
        Step::Filled(text, letters) => Step::Filled(fill(text), letters),
        Step::Text(text) => Step::Text(fill(text)),
        Step::Repeat(text, count) => Step::Repeat(fill(text), count),
        other => other,
    };
    steps.into_iter().map(filled).collect()
}

/// The response to a request.
pub(super) fn answer(id: &Value, result: &Value) -> Vec<Step> {
    vec![Step::Message(json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string())]
}

fn error(id: &Value, code: i64, message: &str) -> Vec<Step> {
    let error = json!({ "code": code, "message": message });
    vec![Step::Message(json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string())]
}
