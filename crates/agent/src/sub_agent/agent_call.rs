//! A run as a tool call: a question in, progress on the way, the last text out.

use std::sync::Arc;

use consort_core::{
    Call, CallEvent as Happening, CallEvents, CallOutcome, Caller, Catalog, CatalogChanges,
    ContentBlock, CostMeter, DrivenStream, Json, Object, Progress, StreamSender, Tool, ToolResult,
    Toolbox,
};
use serde_json::json;

use crate::agent::Agent;
use crate::conversation::Conversation;
use crate::event::RunEvent;
use crate::step::{RunReport, RunStatus};
use consort_models::ChatMessage;

/// Returns the definition of a tool that calls an agent.
pub(super) fn definition(name: &str, description: &str) -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "query": { "type": "string", "description": "The task or question, in full sentences." },
            "context": { "type": "string", "description": "Additional context for the agent." },
        },
        "required": ["query"],
    });
    Tool::new(name, description, &schema.into())
}

/// Context of a call to an agent.
pub(super) struct AgentCall {
    pub(super) caller: Caller,
    /// Chain of agents that led to this call.
    pub(super) chain: Vec<String>,
    /// The meter of the calling run.
    pub(super) meter: Option<Arc<dyn CostMeter>>,
    /// The `_meta` of the request, whose trace the run continues.
    pub(super) meta: Option<Object>,
}

impl From<&Call> for AgentCall {
    fn from(call: &Call) -> Self {
        let (caller, chain) = (call.caller.clone(), call.chain.clone());
        Self { caller, chain, meter: call.meter.clone(), meta: call.meta() }
    }
}

/// Calls an agent on a caller's account. It runs while the events are read; dropping them cancels the run and its
/// calls.
pub(super) fn call_agent(mut agent: Agent, asking: AgentCall, arguments: &Json) -> CallEvents {
    let AgentCall { caller, chain, meter, meta } = asking;
    let input = match input(arguments) {
        Ok(input) => input,
        Err(wrong) => return CallEvents::answered(ToolResult::error(wrong)),
    };
    let deepest = agent.settings.work.agent_depth;
    if chain.len() >= deepest {
        let agents = chain.join(" → ");
        let text = format!("agents may call agents at most {deepest} levels deep: {agents}");
        return CallEvents::answered(ToolResult::error(text));
    }
    let chain = chain.into_iter().chain([agent.settings.name.clone()]).collect();
    agent.settings.caller = caller;
    (agent.settings.parent, agent.settings.meter) = (meta, meter);
    agent.toolbox = Arc::new(NestedToolbox { inner: agent.toolbox, chain });
    CallEvents::new(|emitter| async move {
        let report = follow_run(agent.run(&Conversation::new(), vec![input]), &emitter).await;
        Happening::End(Ok(CallOutcome::Complete(result(&report))))
    })
}

/// Returns the input for the agent, from the arguments of the tool.
fn input(arguments: &Json) -> Result<ChatMessage, String> {
    let arguments = arguments.to_object();
    let text = |name: &str| arguments.as_ref().and_then(|object| object.text(name));
    let query = text("query").filter(|query| !query.trim().is_empty());
    let query = query.ok_or("`query` is missing: describe the task or question")?;
    Ok(ChatMessage::user(match text("context").filter(|context| !context.trim().is_empty()) {
        Some(context) => format!("{query}\n\nContext:\n{context}"),
        None => query,
    }))
}

/// Follows a run to its end, and reports its progress.
async fn follow_run(
    mut events: DrivenStream<RunEvent>,
    emitter: &StreamSender<Happening>,
) -> RunReport {
    let mut steps = 0.0;
    let mut tools: Vec<(String, String)> = Vec::new();
    loop {
        let tool = |call: &str| {
            let found = tools.iter().find(|(known, _)| known == call);
            found.map_or_else(|| "a tool".to_owned(), |(_, tool)| tool.clone())
        };
        let message = match events.next().await {
            Some(RunEvent::Ended { report }) => return report,
            Some(RunEvent::Requesting { turn }) => format!("turn {turn}"),
            Some(RunEvent::CallStarted { call, tool }) => {
                tools.push((call.id, tool.clone()));
                format!("calling {tool}")
            }
            Some(RunEvent::Progress { call, progress, total, message }) => {
                let total = total.map(|total| format!("/{total}")).unwrap_or_default();
                let message = message.map(|text| format!(" {text}")).unwrap_or_default();
                format!("{}: {progress}{total}{message}", tool(&call))
            }
            Some(RunEvent::Result { result, .. }) => {
                let word = if result.is_error { "failed" } else { "done" };
                format!("{}: {word}", tool(&result.call))
            }
            Some(RunEvent::Retrying { error, wait_ms: after }) => {
                format!("the model request is retried in {after} ms: {error}")
            }
            Some(_) => continue,
            None => unreachable!("an end comes before nothing"),
        };
        steps += 1.0;
        emitter.emit(Happening::Progress(Progress::new(steps, None, Some(&message)))).await;
    }
}

/// Returns the report of a run as the result of a tool.
fn result(report: &RunReport) -> ToolResult {
    let mut data = json!({
        "status": report.status, "turns": report.turns, "calls": report.calls,
        "failed": report.failed_calls, "usage": report.usage,
    });
    if let Some(cost) = report.cost {
        data["cost"] = cost.into();
    }
    let completed = report.status == RunStatus::Completed;
    let mut text = report.text.clone();
    if !completed || text.is_empty() {
        data["reason"] = report.reason.as_str().into();
        let reason = if report.reason.is_empty() { "it said nothing" } else { &report.reason };
        let hint = report.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        let gap = if text.is_empty() { "" } else { "\n\n" };
        text = format!("{text}{gap}[the agent did not complete the task: {reason}{hint}]");
    }
    ToolResult::new(&[ContentBlock::text(text)], Some(&data.into()), !completed)
}

/// A toolbox whose calls carry the chain of agents.
struct NestedToolbox {
    inner: Arc<dyn Toolbox>,
    chain: Vec<String>,
}

impl Toolbox for NestedToolbox {
    fn catalog(&self, caller: &Caller) -> Arc<Catalog> {
        self.inner.catalog(caller)
    }

    fn call(&self, mut call: Call) -> CallEvents {
        call.chain.clone_from(&self.chain);
        self.inner.call(call)
    }

    fn inner(&self) -> Option<&dyn Toolbox> {
        Some(&*self.inner)
    }

    fn changes(&self) -> CatalogChanges {
        self.inner.changes()
    }
}
