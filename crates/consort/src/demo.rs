//! The bundled demo: a small MCP server over stdio, so that Consort can be tried before anything is configured. It
//! supports every revision.

mod tools;

use std::io;
use std::sync::Arc;

use consort_client::{ServerCommand, ServerLocation};
use consort_core::{CallEvent, Caller, LocalTool, ServerId, ToolContext, ToolResult};
use consort_hub::ServerSettings;
use consort_protocol::splice::{self, ObjectWriter};
use consort_protocol::{DrivenStream, Era, Json, Object, Revision, StreamSender};
use consort_server::answer::{INVALID_PARAMS, RequestAnswer, RequestFailure};
use consort_server::{
    AnsweringRequest, ClientDialect, ClientMessage, ClientSessionState, EndpointKey, EndpointPath,
    McpServer, ReceivedRequest, ServedEndpoint, ServerHandler, TransportSettings,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

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
pub async fn serve() {
    let endpoint = Arc::new(DemoEndpoint { key: EndpointKey::new("demo"), tools: tools::tools() });
    let handler = Arc::new(DemoHandler(Arc::clone(&endpoint)));
    let settings = TransportSettings::default();
    let server = McpServer::new(settings, handler, Arc::new(()), Arc::default());
    server.serve_streams(endpoint, tokio::io::stdin(), tokio::io::stdout()).await;
}

/// A handler of the demo endpoint alone.
struct DemoHandler(Arc<DemoEndpoint>);

impl ServerHandler for DemoHandler {
    fn endpoint(&self, _: &str, _: &Caller) -> Option<EndpointPath> {
        Some(EndpointPath::Mcp(Arc::clone(&self.0) as Arc<dyn ServedEndpoint>))
    }
}

struct DemoEndpoint {
    key: EndpointKey,
    tools: Vec<Arc<dyn LocalTool>>,
}

impl std::fmt::Debug for DemoEndpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DemoEndpoint").field("key", &self.key).finish_non_exhaustive()
    }
}

impl ServedEndpoint for DemoEndpoint {
    fn key(&self) -> &EndpointKey {
        &self.key
    }

    fn serve(self: Arc<Self>, request: ReceivedRequest) -> AnsweringRequest {
        DrivenStream::new(|sender| async move {
            let era = match request.dialect {
                ClientDialect::Legacy(_) => Era::Legacy,
                ClientDialect::Modern(_) => Era::Modern,
            };
            ClientMessage::End(match self.answer(&request, era, &sender).await {
                Ok(result) => RequestAnswer::result(&request.id, &result),
                Err(failure) => RequestAnswer::error(era, Some(&request.id), &failure),
            })
        })
    }

    fn initialize(&self, session: &ClientSessionState) -> Json {
        let mut result = server_description();
        result["protocolVersion"] = json!(session.revision);
        result["serverInfo"] = server_info();
        result.into()
    }
}

impl DemoEndpoint {
    async fn answer(
        &self,
        request: &ReceivedRequest,
        era: Era,
        sender: &StreamSender<ClientMessage>,
    ) -> Result<Json, RequestFailure> {
        match (request.method.as_str(), era) {
            ("server/discover", Era::Modern) => Ok(discover_result()),
            ("ping", Era::Legacy) => Ok(Json::from(json!({}))),
            ("tools/list", _) => Ok(self.list(era)),
            ("tools/call", _) => {
                let result = self.call(&request.params, sender).await?;
                Ok(encode_result(&result, era))
            }
            (method, _) => Err(RequestFailure::unknown_method(method)),
        }
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

    async fn call(
        &self,
        params: &Object,
        sender: &StreamSender<ClientMessage>,
    ) -> Result<Object, RequestFailure> {
        let name = params.text("name").unwrap_or_default();
        let arguments = params.get("arguments").unwrap_or_else(|| Json::from(json!({})));
        let token = params.meta().and_then(|meta| meta.get("progressToken"));
        let tool = self.tools.iter().find(|tool| tool.definition().name() == name);
        let tool = tool
            .ok_or_else(|| RequestFailure::new(INVALID_PARAMS, format!("unknown tool `{name}`")))?;
        let (reports, mut reported) = mpsc::unbounded_channel();
        let context = ToolContext::new(Caller::client("demo"), move |event| {
            let _ = reports.send(event);
        });
        let mut running = tool.run(arguments, context);
        let result = loop {
            tokio::select! {
                biased;
                Some(event) = reported.recv() => report(sender, token.as_ref(), &event).await,
                result = &mut running => break result,
            }
        };
        while let Ok(event) = reported.try_recv() {
            report(sender, token.as_ref(), &event).await;
        }
        Ok(result.unwrap_or_else(ToolResult::error).object().clone())
    }
}

/// Sends progress to a client that requested it.
async fn report(sender: &StreamSender<ClientMessage>, token: Option<&Json>, event: &CallEvent) {
    let (Some(token), CallEvent::Progress(progress)) = (token, event) else { return };
    let mut params = ObjectWriter::new();
    params.raw("progressToken", token.as_bytes());
    params.members(progress.params(), &[]);
    let message = splice::notification("notifications/progress", Some(&params.finish()));
    sender.emit(ClientMessage::Message(message.into())).await;
}

fn server_info() -> Value {
    json!({ "name": "consort-demo", "version": env!("CARGO_PKG_VERSION") })
}

fn server_description() -> Value {
    json!({ "capabilities": { "tools": {} }, "instructions": "Demo tools with made-up data." })
}

fn discover_result() -> Json {
    let revisions: Vec<&str> =
        Revision::ALL.iter().rev().map(|revision| revision.as_str()).collect();
    let mut result = server_description();
    result["resultType"] = json!("complete");
    result["supportedVersions"] = json!(revisions);
    result["ttlMs"] = json!(3_600_000);
    result["cacheScope"] = json!("public");
    result["_meta"] = json!({ "io.modelcontextprotocol/serverInfo": server_info() });
    result.into()
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
