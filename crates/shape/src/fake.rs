//! A toolbox that records the calls it receives, for tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use consort_core::{
    Call, CallEvent, CallEvents, CallOutcome, Caller, Catalog, CatalogChanges, ClientContext,
    DrivenStream, Json, Operation, PrimitiveKind, Progress, ServerCatalog, ServerId, Target,
    ToolResult, Toolbox,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// A toolbox that records the calls it receives.
pub(crate) struct Fake {
    catalog: Arc<Catalog>,
    /// `server.name arguments`, in order.
    pub(crate) calls: Mutex<Vec<String>>,
    /// The result of every call.
    pub(crate) result: ToolResult,
}

impl Fake {
    /// Servers with tools: definitions as JSON.
    pub(crate) fn new(servers: &[(&str, &[Value])]) -> Arc<Self> {
        let offer = |tools: &[Value]| {
            let tool = |tool: &Value| {
                let definition = Json::from(tool.clone()).to_object().unwrap();
                (tool["name"].as_str().unwrap().to_owned(), definition)
            };
            let tools = tools.iter().map(tool).collect();
            ServerCatalog {
                lists: BTreeMap::from([(PrimitiveKind::Tools, tools)]),
                ..ServerCatalog::default()
            }
        };
        let offers: BTreeMap<ServerId, ServerCatalog> =
            servers.iter().map(|(name, tools)| (name.parse().unwrap(), offer(tools))).collect();
        Arc::new(Self {
            catalog: Arc::new(Catalog::build(&offers)),
            calls: Mutex::default(),
            result: ToolResult::text("done"),
        })
    }

    /// Returns the calls received so far and clears them.
    pub(crate) fn taken(&self) -> Vec<String> {
        std::mem::take(&mut self.calls.lock())
    }

    fn went(&self, call: String) -> CallEvents {
        self.calls.lock().push(call);
        let result = self.result.clone();
        CallEvents::new(|emitter| async move {
            emitter.emit(CallEvent::Progress(Progress::new(1.0, None, None))).await;
            CallEvent::End(Ok(CallOutcome::Complete(result)))
        })
    }
}

impl Toolbox for Fake {
    fn catalog(&self, _caller: &Caller) -> Arc<Catalog> {
        Arc::clone(&self.catalog)
    }

    fn call(&self, call: Call) -> CallEvents {
        let name = call.operation.name().unwrap_or_default();
        self.went(format!("{}.{name} {}", call.server(), call.arguments()))
    }

    fn changes(&self) -> CatalogChanges {
        DrivenStream::new(|_| std::future::pending())
    }
}

/// A tool with these text arguments.
pub(crate) fn tool(name: &str, arguments: &[&str]) -> Value {
    let properties: serde_json::Map<String, Value> =
        arguments.iter().map(|name| ((*name).to_owned(), json!({ "type": "string" }))).collect();
    json!({
        "name": name, "description": format!("The tool {name}."),
        "inputSchema": { "type": "object", "properties": properties },
    })
}

/// The same call in two forms: made here, and with parameters as a client wrote them.
pub(crate) fn both(server: &str, name: &str, arguments: &Value) -> (Call, Call) {
    let caller = Caller::client("alice");
    let target = Target { server: server.parse().unwrap(), name: name.to_owned() };
    let params = json!({ "name": "as listed", "arguments": arguments });
    let params = Json::from(params).to_object().unwrap();
    let passed = Call::new(caller.clone(), Operation::CallTool(target.clone()), params);
    let passed = passed.by(ClientContext::default());
    (Call::tool(caller, target, arguments.clone().into()), passed)
}

/// Drives a call to its end and returns it; the fake never waits.
pub(crate) fn ended(mut events: CallEvents) -> Result<CallOutcome, consort_core::CallError> {
    let waker = std::task::Waker::noop();
    let mut context = std::task::Context::from_waker(waker);
    loop {
        let mut next = std::pin::pin!(events.next());
        match next.as_mut().poll(&mut context) {
            std::task::Poll::Ready(Some(CallEvent::End(end))) => return end,
            std::task::Poll::Ready(Some(_)) => {}
            other => panic!("no end: {other:?}"),
        }
    }
}
