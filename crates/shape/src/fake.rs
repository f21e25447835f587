//! A toolbox that notes what reaches it, for tests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use consort_core::{
    Caller, Catalog, Changes, Emitting, Event, Events, Invocation, Json, Offer, Outcome, Passage,
    Progress, ServerId, ShelfKind, Target, ToolResult, Toolbox,
};
use serde_json::{Value, json};

/// A toolbox that notes what reaches it.
pub(crate) struct Fake {
    catalog: Arc<Catalog>,
    /// `server.name arguments`, in order.
    pub(crate) calls: Mutex<Vec<String>>,
    /// What every call comes back with.
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
            Offer { shelves: BTreeMap::from([(ShelfKind::Tools, tools)]), ..Offer::default() }
        };
        let offers: BTreeMap<ServerId, Offer> =
            servers.iter().map(|(name, tools)| (name.parse().unwrap(), offer(tools))).collect();
        Arc::new(Self {
            catalog: Arc::new(Catalog::build(&offers)),
            calls: Mutex::default(),
            result: ToolResult::text("done"),
        })
    }

    /// What reached it so far.
    pub(crate) fn taken(&self) -> Vec<String> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }

    fn went(&self, call: String) -> Events {
        self.calls.lock().unwrap().push(call);
        let result = self.result.clone();
        Emitting::new(|emitter| async move {
            emitter.emit(Event::Progress(Progress::new(1.0, None, None))).await;
            Event::End(Ok(Outcome::Complete(result)))
        })
    }
}

impl Toolbox for Fake {
    fn catalog(&self, _caller: &Caller) -> Arc<Catalog> {
        Arc::clone(&self.catalog)
    }

    fn call(&self, invocation: Invocation) -> Events {
        self.went(format!("{} {}", invocation.target, invocation.arguments))
    }

    fn pass(&self, passage: Passage) -> Events {
        let name = passage.get("name").or_else(|| passage.get("uri")).unwrap();
        let arguments = passage.get("arguments").unwrap_or_else(|| json!({}).into());
        self.went(format!("{}.{} {arguments}", passage.server, name.text().unwrap()))
    }

    fn changes(&self) -> Changes {
        Emitting::new(|_| std::future::pending())
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

/// The same call in both forms: by name, and as a client writes it.
pub(crate) fn both(server: &str, name: &str, arguments: &Value) -> (Invocation, Passage) {
    let caller = Caller::client("alice");
    let target = Target { server: server.parse().unwrap(), name: name.to_owned() };
    let invocation = Invocation::new(caller.clone(), target, arguments.clone().into());
    let params = Json::from(json!({ "name": name, "arguments": arguments })).to_object().unwrap();
    (invocation, Passage::new(caller, server.parse().unwrap(), "tools/call", params))
}

/// How a call ends, run to its end; the fake never waits.
pub(crate) fn ended(mut events: Events) -> Result<Outcome, consort_core::CallError> {
    let waker = std::task::Waker::noop();
    let mut context = std::task::Context::from_waker(waker);
    loop {
        let mut next = std::pin::pin!(events.next());
        match next.as_mut().poll(&mut context) {
            std::task::Poll::Ready(Some(Event::End(end))) => return end,
            std::task::Poll::Ready(Some(_)) => {}
            other => panic!("no end: {other:?}"),
        }
    }
}
