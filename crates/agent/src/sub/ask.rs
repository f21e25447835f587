//! A run as a call of a tool: a question in, progress on the way, the last words out.

use std::sync::Arc;

use consort_core::{
    Caller, Catalog, Changes, Content, CostMeter, Emitter, Emitting, Event as Happening, Events,
    Invocation, Json, Object, Outcome, Passage, Progress, Tool, ToolResult, Toolbox,
};
use consort_wire::splice::{self, Writer};
use serde_json::json;

use crate::agent::Agent;
use crate::conversation::Conversation;
use crate::event::Event;
use crate::message::Message;
use crate::step::{Report, Status};

/// The member of `_meta` that says which agents asked which. It never leaves for a server.
pub const CHAIN: &str = "consort/agents";

/// How deep agents may ask agents.
pub const DEEPEST: usize = 3;

/// The definition of a tool that asks an agent.
pub(super) fn definition(name: &str, description: &str) -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "query": { "type": "string", "description": "What to find out or to do, in full sentences." },
            "context": { "type": "string", "description": "What the agent must know for that." },
        },
        "required": ["query"],
    });
    Tool::new(name, description, &schema.into())
}

/// Who asks an agent.
pub(super) struct Asking {
    pub(super) caller: Caller,
    /// Which agents asked which.
    pub(super) chain: Vec<String>,
    /// The meter of the run that asks.
    pub(super) meter: Option<Arc<dyn CostMeter>>,
    /// The `_meta` of the request, whose trace the run continues.
    pub(super) meta: Option<Object>,
}

impl From<&Invocation> for Asking {
    fn from(invocation: &Invocation) -> Self {
        let (caller, chain) = (invocation.caller.clone(), chain(invocation));
        Self { caller, chain, meter: invocation.meter.clone(), meta: invocation.meta.clone() }
    }
}

impl From<&Passage> for Asking {
    fn from(passage: &Passage) -> Self {
        let meta = passage.get("_meta").and_then(|meta| meta.to_object());
        Self { caller: passage.caller.clone(), chain: Vec::new(), meter: None, meta }
    }
}

/// Asks an agent on a caller's account. It runs while the events are read; dropping them cancels the run
/// and its calls.
pub(super) fn ask(mut agent: Agent, asking: Asking, arguments: &Json) -> Events {
    let Asking { caller, chain, meter, meta } = asking;
    let input = match input(arguments) {
        Ok(input) => input,
        Err(wrong) => return answered(ToolResult::error(wrong)),
    };
    if chain.len() >= DEEPEST {
        let asked = chain.join(" → ");
        let text = format!("agents may ask agents {DEEPEST} deep, and this is deeper: {asked}");
        return answered(ToolResult::error(text));
    }
    let chain = chain.into_iter().chain([agent.settings.name.clone()]).collect();
    agent.settings.caller = caller;
    (agent.settings.parent, agent.settings.meter) = (meta, meter);
    agent.toolbox = Arc::new(Nested { inner: agent.toolbox, chain });
    Emitting::new(|emitter| async move {
        let report = followed(agent.run(&Conversation::new(), vec![input]), &emitter).await;
        Happening::End(Ok(Outcome::Complete(result(&report))))
    })
}

/// A call that is over before it began.
pub(super) fn answered(result: ToolResult) -> Events {
    let end = Happening::End(Ok(Outcome::Complete(result)));
    Emitting::new(|_| std::future::ready(end))
}

/// Which agents asked which, as an invocation has it.
fn chain(invocation: &Invocation) -> Vec<String> {
    let chain = invocation.meta.as_ref().and_then(|meta| meta.get(CHAIN));
    chain.and_then(|chain| chain.read().ok()).unwrap_or_default()
}

/// The same invocation, as it may leave.
pub(super) fn unchained(mut invocation: Invocation) -> Invocation {
    if let Some(meta) = &invocation.meta
        && meta.get_bytes(CHAIN).is_some()
    {
        let mut writer = Writer::new();
        writer.members(meta, &[CHAIN]);
        invocation.meta = Some(writer.finish_object());
    }
    invocation
}

/// What is asked, from the arguments of the tool.
fn input(arguments: &Json) -> Result<Message, String> {
    let arguments = arguments.to_object();
    let text = |name: &str| arguments.as_ref().and_then(|object| object.text(name));
    let query = text("query").filter(|query| !query.trim().is_empty());
    let query = query.ok_or("`query` is missing: say what to find out or to do")?;
    Ok(Message::user(match text("context").filter(|context| !context.trim().is_empty()) {
        Some(context) => format!("{query}\n\nContext:\n{context}"),
        None => query,
    }))
}

/// Follows a run to its end, and tells how it comes along.
async fn followed(mut events: Emitting<Event>, emitter: &Emitter<Happening>) -> Report {
    let mut steps = 0.0;
    let mut tools: Vec<(String, String)> = Vec::new();
    loop {
        let tool = |call: &str| {
            let found = tools.iter().find(|(known, _)| known == call);
            found.map_or_else(|| "a tool".to_owned(), |(_, tool)| tool.clone())
        };
        let told = match events.next().await {
            Some(Event::Over { report }) => return report,
            Some(Event::Asking { turn }) => format!("turn {turn}"),
            Some(Event::Called { call, tool }) => {
                tools.push((call.id, tool.clone()));
                format!("calling {tool}")
            }
            Some(Event::Progress { call, progress, total, message }) => {
                let total = total.map(|total| format!("/{total}")).unwrap_or_default();
                let message = message.map(|text| format!(" {text}")).unwrap_or_default();
                format!("{}: {progress}{total}{message}", tool(&call))
            }
            Some(Event::Result { result, .. }) => {
                let word = if result.is_error { "failed" } else { "done" };
                format!("{}: {word}", tool(&result.call))
            }
            Some(Event::Again { error, after }) => {
                format!("the model is asked again in {after} ms: {error}")
            }
            Some(_) => continue,
            None => unreachable!("an end comes before nothing"),
        };
        steps += 1.0;
        emitter.emit(Happening::Progress(Progress::new(steps, None, Some(&told)))).await;
    }
}

/// What a run came to, as the result of a tool.
fn result(report: &Report) -> ToolResult {
    let mut data = json!({
        "status": report.status, "turns": report.turns, "calls": report.calls,
        "failed": report.failed, "usage": report.usage,
    });
    if let Some(cost) = report.cost {
        data["cost"] = cost.into();
    }
    let completed = report.status == Status::Completed;
    let mut text = report.text.clone();
    if !completed || text.is_empty() {
        data["reason"] = report.reason.as_str().into();
        let reason = if report.reason.is_empty() { "it said nothing" } else { &report.reason };
        let hint = report.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        let gap = if text.is_empty() { "" } else { "\n\n" };
        text = format!("{text}{gap}[the agent did not complete this: {reason}{hint}]");
    }
    ToolResult::new(&[Content::text(text)], Some(&data.into()), !completed)
}

/// A toolbox whose calls say which agents asked which.
struct Nested {
    inner: Arc<dyn Toolbox>,
    chain: Vec<String>,
}

impl Toolbox for Nested {
    fn catalog(&self, caller: &Caller) -> Arc<Catalog> {
        self.inner.catalog(caller)
    }

    fn call(&self, mut invocation: Invocation) -> Events {
        let meta = invocation.meta.take().unwrap_or_else(Object::empty);
        invocation.meta = Some(splice::replaced(&meta, CHAIN, &json!(self.chain).into()));
        self.inner.call(invocation)
    }

    fn pass(&self, passage: Passage) -> Events {
        self.inner.pass(passage)
    }

    fn inner(&self) -> Option<&dyn Toolbox> {
        Some(&*self.inner)
    }

    fn changes(&self) -> Changes {
        self.inner.changes()
    }
}
