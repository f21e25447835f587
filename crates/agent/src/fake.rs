//! A toolbox of tools with various behaviors, for tests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use consort_core::{
    Call, CallError, CallEvent, CallEvents, CallOutcome, Caller, Catalog, CatalogChanges,
    DrivenStream, Json, OperatorText, PendingServerRequest, PrimitiveKind, Progress,
    RequestRefusal, RequestResponder, ServerCatalog, SharedError, StreamSender, Target, ToolResult,
    Toolbox,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::oneshot;

/// A toolbox of two servers, `one` and `two`, each with every tool, and `only` with one.
#[derive(Clone, Default)]
pub(crate) struct Fake(Arc<Seen>);

/// Observations of the toolbox.
#[derive(Default)]
pub(crate) struct Seen {
    /// `server.tool arguments` of every call that was sent.
    pub(crate) left: Mutex<Vec<String>>,
    /// `_meta` that servers received.
    pub(crate) meta: Mutex<Vec<String>>,
    now: AtomicUsize,
    /// Most concurrent calls.
    pub(crate) most: AtomicUsize,
    /// Number of calls for which `gone` is unreachable.
    pub(crate) gone: AtomicUsize,
}

/// Tools, named by their behavior.
const TOOLS: [&str; 10] =
    ["echo", "slow", "fail", "gone", "lost", "guarded", "big", "asks", "samples", "hangs"];

impl Fake {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn left(&self) -> Vec<String> {
        self.left.lock().clone()
    }

    async fn run(
        self,
        call: Call,
        emitter: &StreamSender<CallEvent>,
    ) -> Result<ToolResult, CallError> {
        let Target { server, name: tool } = call.tool_target().cloned().unwrap();
        let arguments: Value = call.arguments().read().unwrap();
        if tool == "guarded" {
            let reason = "not approved".to_owned();
            let answer = ask(emitter, CallEvent::Approval, "elicitation/create").await;
            let answer =
                answer.map_err(|_| CallError::Denied { server: None, reason: reason.clone() })?;
            if answer["action"] != "accept" {
                return Err(CallError::Denied { server: None, reason });
            }
        }
        if tool == "gone" && self.gone.load(Ordering::Relaxed) > 0 {
            self.gone.fetch_sub(1, Ordering::Relaxed);
            let source = SharedError::new(std::io::Error::other("refused"));
            return Err(CallError::Connection { server, source, detail: OperatorText::default() });
        }
        self.left.lock().push(format!("{server}.{tool} {arguments}"));
        if let Some(meta) = call.meta() {
            self.meta.lock().push(meta.json().to_string());
        }
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        emitter.emit(CallEvent::Progress(Progress::new(1.0, Some(2.0), Some("half")))).await;
        let text = arguments["text"].as_str().unwrap_or("done").to_owned();
        let end = match &*tool {
            "slow" => {
                let millis = arguments["ms"].as_u64().unwrap_or(10);
                tokio::time::sleep(Duration::from_millis(millis)).await;
                Ok(ToolResult::text(text))
            }
            "fail" => Ok(ToolResult::error("it broke")),
            "lost" => Err(CallError::OutcomeUnknown {
                server,
                reason: "it went away".to_owned(),
                detail: OperatorText::default(),
            }),
            "big" => Ok(ToolResult::text("é".repeat(100_000))),
            "asks" => {
                let answer = ask(emitter, CallEvent::Question, "elicitation/create").await;
                Ok(ToolResult::text(
                    answer.map_or("refused".to_owned(), |answer| answer.to_string()),
                ))
            }
            "samples" => {
                let answer = ask(emitter, CallEvent::Question, "sampling/createMessage").await;
                Ok(ToolResult::text(
                    answer.map_or("refused".to_owned(), |answer| answer.to_string()),
                ))
            }
            "hangs" => std::future::pending().await,
            _ => Ok(ToolResult::text(text)),
        };
        self.now.fetch_sub(1, Ordering::SeqCst);
        end
    }
}

impl std::ops::Deref for Fake {
    type Target = Seen;

    fn deref(&self) -> &Seen {
        &self.0
    }
}

async fn ask(
    emitter: &StreamSender<CallEvent>,
    event: impl FnOnce(PendingServerRequest) -> CallEvent,
    method: &str,
) -> Result<Value, RequestRefusal> {
    let (sender, answer) = oneshot::channel();
    let reply = RequestResponder::new(move |answer| {
        let _ = sender.send(answer);
    });
    let params = json!({
        "message": "really?", "requestedSchema": {},
        "messages": [{ "role": "user", "content": { "type": "text", "text": "sum up" } }],
    });
    let params = Json::from(params).to_object().unwrap();
    emitter
        .emit(event(PendingServerRequest { method: method.to_owned(), params, reply: Some(reply) }))
        .await;
    answer.await.unwrap().map(|answer| answer.read().unwrap())
}

impl Toolbox for Fake {
    fn catalog(&self, _: &Caller) -> Arc<Catalog> {
        let tool = |name: &str| {
            let definition = json!({
                "name": name, "description": format!("The tool {name}."),
                "inputSchema": { "type": "object", "properties": { "list": { "type": "array" } } },
            });
            (name.to_owned(), Json::from(definition).to_object().unwrap())
        };
        let offer = |tools: &[&str]| {
            let tools = tools.iter().map(|name| tool(name)).collect();
            ServerCatalog {
                lists: BTreeMap::from([(PrimitiveKind::Tools, tools)]),
                ..ServerCatalog::default()
            }
        };
        let offers =
            [("one", offer(&TOOLS)), ("two", offer(&["echo"])), ("only", offer(&["search"]))];
        let offers = offers.into_iter().map(|(name, offer)| (name.parse().unwrap(), offer));
        Arc::new(Catalog::build(&offers.collect()))
    }

    fn call(&self, call: Call) -> CallEvents {
        let fake = self.clone();
        CallEvents::new(|emitter| async move {
            CallEvent::End(fake.run(call, &emitter).await.map(CallOutcome::Complete))
        })
    }

    fn changes(&self) -> CatalogChanges {
        DrivenStream::new(|_| std::future::pending())
    }
}
