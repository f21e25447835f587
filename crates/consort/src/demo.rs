//! The bundled demo: a small MCP server over stdio, so that Consort can be tried before anything is configured. It
//! supports every revision.

mod tools;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use consort_client::{ServerCommand, ServerLocation};
use consort_core::{CallEvent, LocalTool, ProgressReporter, ServerId, ToolResult};
use consort_hub::ServerSettings;
use consort_protocol::line_decoder::{DecodedLine, LineDecoder};
use consort_protocol::splice::{self, ObjectWriter};
use consort_protocol::{Era, Json, JsonRpcMessage, Notification, Object, RequestId, Revision};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Stdout};
use tokio::sync::{Mutex, mpsc};
use tokio::task::{AbortHandle, JoinSet};

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const MESSAGE_BYTES: usize = 4 << 20;

/// The argument that, as the only one, makes a program the demo server.
pub const WORD: &str = "demo-server";

/// The demo server as a child process: a new process of this program. Its `main` must then call [`serve`] if it is
/// [`asked_for`].
pub fn server() -> io::Result<ServerSettings> {
    let command = ServerCommand::new(std::env::current_exe()?).arguments([WORD]);
    Ok(ServerSettings::new(ServerId::derive("demo"), ServerLocation::Command(command)))
}

/// Returns true if this process was started as the demo server.
pub fn asked_for() -> bool {
    std::env::args().nth(1).as_deref() == Some(WORD)
}

/// Serves until the standard input closes.
pub async fn serve() -> io::Result<()> {
    let server =
        Arc::new(DemoHandler { out: Mutex::new(tokio::io::stdout()), tools: tools::tools() });
    let mut lines = LineDecoder::new(MESSAGE_BYTES, MESSAGE_BYTES);
    let mut input = tokio::io::stdin();
    let mut calls = CancellableCalls::default();
    loop {
        while let Some(line) = lines.next_line() {
            match line {
                DecodedLine::Whole(line) if line.iter().all(u8::is_ascii_whitespace) => {}
                DecodedLine::Whole(line) => match JsonRpcMessage::parse(line) {
                    Ok(message) => calls.handle_message(&server, message),
                    Err(_) => server.send(&splice::error(None, -32700, "parse error", None)).await,
                },
                DecodedLine::Oversized { .. } => {
                    server
                        .send(&splice::error(None, -32600, "the request is too large", None))
                        .await;
                }
                DecodedLine::Endless => return Ok(()),
            }
        }
        if input.read_buf(lines.buffer()).await? == 0 {
            return Ok(());
        }
    }
}

struct DemoHandler {
    out: Mutex<Stdout>,
    tools: Vec<Arc<dyn LocalTool>>,
}

/// The calls in progress, so that they can be cancelled.
#[derive(Default)]
struct CancellableCalls {
    running: JoinSet<RequestId>,
    handles: HashMap<RequestId, AbortHandle>,
}

impl CancellableCalls {
    fn handle_message(&mut self, server: &Arc<DemoHandler>, message: JsonRpcMessage) {
        while let Some(Ok(id)) = self.running.try_join_next() {
            self.handles.remove(&id);
        }
        match message {
            JsonRpcMessage::Request { id, body } => {
                let server = Arc::clone(server);
                let answered = id.clone();
                let call = async move {
                    server.answer(&answered, &body).await;
                    answered
                };
                self.handles.insert(id, self.running.spawn(call));
            }
            JsonRpcMessage::Notification(body) if body.method == "notifications/cancelled" => {
                let id = body.params.get("requestId").and_then(RequestId::from_json);
                if let Some(call) = id.and_then(|id| self.handles.remove(&id)) {
                    call.abort();
                }
            }
            _ => {}
        }
    }
}

impl DemoHandler {
    async fn answer(&self, id: &RequestId, body: &Notification) {
        let era = match body
            .meta(VERSION)
            .and_then(|version| version.text().map(|text| text.parse::<Revision>()))
        {
            None => Era::Legacy,
            Some(Ok(revision)) if revision.era() == Era::Modern => Era::Modern,
            Some(_) => {
                let data = Json::from(json!({ "supported": [Revision::NEWEST_MODERN.as_str()] }));
                let error =
                    splice::error(Some(id), -32022, "unsupported protocol version", Some(&data));
                return self.send(&error).await;
            }
        };
        let answer = match (body.method.as_str(), era) {
            ("initialize", _) => Ok(initialize_result(&body.params)),
            ("server/discover", Era::Modern) => Ok(discover_result()),
            ("ping", Era::Legacy) => Ok(Json::from(json!({}))),
            ("tools/list", _) => Ok(self.list(era)),
            ("tools/call", _) => {
                self.call(&body.params).await.map(|result| encode_result(&result, era))
            }
            (method, _) => Err((-32601, format!("unknown method `{method}`"))),
        };
        let bytes = match answer {
            Ok(result) => splice::response(id, &result),
            Err((code, message)) => splice::error(Some(id), code, &message, None),
        };
        self.send(&bytes).await;
    }

    fn list(&self, era: Era) -> Json {
        let definitions = self.tools.iter().map(|tool| tool.definition());
        let tools: Vec<Json> =
            definitions.map(|definition| definition.definition().json().clone()).collect();
        let mut result = json!({ "tools": tools });
        if era == Era::Modern {
            result["resultType"] = json!("complete");
            result["ttlMs"] = json!(3_600_000);
            result["cacheScope"] = json!("public");
        }
        result.into()
    }

    async fn call(&self, params: &Object) -> Result<Object, (i64, String)> {
        let name = params.text("name").unwrap_or_default();
        let arguments = params.get("arguments").unwrap_or_else(|| Json::from(json!({})));
        let token = params.get("_meta").and_then(|meta| meta.to_object()?.get("progressToken"));
        let tool = self.tools.iter().find(|tool| tool.definition().name() == name);
        let tool = tool.ok_or_else(|| (-32602, format!("unknown tool `{name}`")))?;
        let (sender, mut reported) = mpsc::unbounded_channel();
        let reporter = ProgressReporter::new(move |event| {
            let _ = sender.send(event);
        });
        let mut running = tool.run(arguments, reporter);
        let result = loop {
            tokio::select! {
                biased;
                Some(event) = reported.recv() => self.report(token.as_ref(), &event).await,
                result = &mut running => break result,
            }
        };
        while let Ok(event) = reported.try_recv() {
            self.report(token.as_ref(), &event).await;
        }
        Ok(result.unwrap_or_else(ToolResult::error).object().clone())
    }

    async fn report(&self, token: Option<&Json>, event: &CallEvent) {
        let (Some(token), CallEvent::Progress(progress)) = (token, event) else { return };
        let mut params = ObjectWriter::new();
        params.raw("progressToken", token.as_bytes());
        params.members(progress.params(), &[]);
        self.send(&splice::notification("notifications/progress", Some(&params.finish()))).await;
    }

    async fn send(&self, bytes: &[u8]) {
        let mut out = self.out.lock().await;
        // The reader is gone; the end of the standard input follows.
        let _ = out.write_all(&[bytes, b"\n"].concat()).await;
        let _ = out.flush().await;
    }
}

fn initialize_result(params: &Object) -> Json {
    let asked = params.text("protocolVersion").and_then(|version| version.parse::<Revision>().ok());
    let revision =
        asked.filter(|revision| revision.era() == Era::Legacy).unwrap_or(Revision::NEWEST_LEGACY);
    json!({
        "protocolVersion": revision,
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "consort-demo", "version": env!("CARGO_PKG_VERSION") },
        "instructions": "Demo tools with made-up data.",
    })
    .into()
}

fn discover_result() -> Json {
    let revisions: Vec<&str> =
        Revision::ALL.iter().rev().map(|revision| revision.as_str()).collect();
    json!({
        "resultType": "complete",
        "supportedVersions": revisions,
        "capabilities": { "tools": {} },
        "instructions": "Demo tools with made-up data.",
        "ttlMs": 3_600_000,
        "cacheScope": "public",
        "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "consort-demo", "version": env!("CARGO_PKG_VERSION") } },
    })
    .into()
}

/// A result in the format of its era.
fn encode_result(result: &Object, era: Era) -> Json {
    if era == Era::Legacy {
        return result.json().clone();
    }
    let mut writer = ObjectWriter::with_capacity(result.as_bytes().len() + 32);
    writer.text("resultType", "complete");
    writer.members(result, &[]);
    writer.finish()
}
