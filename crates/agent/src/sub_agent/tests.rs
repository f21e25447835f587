use std::sync::Arc;

use consort_core::{
    Call, CallEvent as Happening, CallEvents, CallOutcome, Caller, Catalog, CatalogChanges,
    CatalogEntry, DrivenStream, NamePattern, Operation, PrimitiveKind, Progress, ServerCatalog,
    Target, Tool, ToolResult, Toolbox,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::*;
use crate::{Agent, AgentSettings, Conversation, RunEvent, RunLimits, RunReport, RunStatus};
use consort_models::{ChatMessage, Model, ModelScript, TokenPrice};

/// Two servers whose tools return their caller and arguments.
#[derive(Default)]
struct Two {
    taken: Mutex<Vec<String>>,
}

impl Toolbox for Two {
    fn catalog(&self, _: &Caller) -> Arc<Catalog> {
        let offer = |name: &str| {
            let tool = Tool::new(name, "", &json!({ "type": "object" }).into());
            let shelf = vec![(name.to_owned(), tool.definition().clone())];
            ServerCatalog {
                lists: [(PrimitiveKind::Tools, shelf)].into(),
                ..ServerCatalog::default()
            }
        };
        let offers = [("files", "read"), ("my-web", "fetch")];
        let offers = offers.map(|(server, name)| (server.parse().unwrap(), offer(name)));
        Arc::new(Catalog::build(&offers.into()))
    }

    fn call(&self, call: Call) -> CallEvents {
        let meta = call.meta().unwrap_or_else(consort_core::Object::empty);
        let meta: Vec<String> = meta.members().map(|(name, _)| name.to_owned()).collect();
        let target = call.tool_target().unwrap();
        let taken = format!("{} {target} {meta:?}", call.caller.name());
        self.taken.lock().push(taken);
        CallEvents::new(|emitter| async move {
            emitter.emit(Happening::Progress(Progress::new(1.0, Some(2.0), Some("half")))).await;
            Happening::End(Ok(CallOutcome::Complete(ToolResult::text("found"))))
        })
    }

    fn changes(&self) -> CatalogChanges {
        DrivenStream::new(|_| std::future::pending())
    }
}

fn agent(name: &str, toolbox: Arc<dyn Toolbox>, script: &str) -> Agent {
    let model = Model::scripted(ModelScript::parse(script).unwrap());
    Agent::new(model, toolbox, AgentSettings::new(name))
}

/// Returns the progress messages of a call, and its result.
async fn told(mut events: CallEvents) -> (Vec<String>, ToolResult) {
    let mut told = Vec::new();
    loop {
        match events.next().await.unwrap() {
            Happening::Progress(progress) => told.push(progress.message().unwrap()),
            Happening::End(Ok(CallOutcome::Complete(result))) => return (told, result),
            Happening::End(other) => panic!("{other:?}"),
            _ => {}
        }
    }
}

fn target(tool: &str) -> Target {
    tool.parse().unwrap()
}

fn call(tool: &str, arguments: Value) -> Call {
    Call::tool(Caller::client("ada"), target(tool), arguments.into())
}

/// A call as a client of the gateway makes it.
fn passed(tool: &str, arguments: &Value) -> Call {
    let params: consort_core::Json = json!({ "name": "listed", "arguments": arguments }).into();
    let operation = Operation::CallTool(target(tool));
    Call::new(Caller::client("ada"), operation, params.to_object().unwrap())
}

fn ids(toolbox: &dyn Toolbox) -> Vec<String> {
    let catalog = toolbox.catalog(&Caller::client("ada"));
    catalog.tools.entries().iter().map(CatalogEntry::id).collect()
}

const READS: &str = r#"{"turns": [
    {"expect": {"role": "user", "contains": "Context:\nnow"}, "calls": [{"name": "read"}]},
    {"text": "It is there.", "usage": {"input": 3, "output": 2}}
]}"#;

#[tokio::test]
async fn an_agent_is_asked_as_a_tool_is_called() {
    let two = Arc::new(Two::default());
    let registry = Arc::new(AgentRegistry::default());
    let with = AgentToolbox::new(two.clone(), [("my-helper", "Helps.")], Arc::clone(&registry));
    assert_eq!(ids(&with), ["agents.ask_my_helper", "files.read", "my-web.fetch"]);
    let asked = json!({ "query": "where?", "context": "now" });
    let (_, gone) = told(with.call(call("agents.ask_my_helper", asked.clone()))).await;
    assert!(gone.is_error());

    registry.set([agent("my-helper", two.clone(), READS)]);
    let (progress, result) = told(with.call(call("agents.ask_my_helper", asked.clone()))).await;
    assert_eq!(
        progress,
        ["turn 1", "calling files.read", "files.read: 1/2 half", "files.read: done", "turn 2"]
    );
    assert_eq!((result.flattened(), result.is_error()), ("It is there.".to_owned(), false));
    let data: Value = result.structured_content().unwrap().read().unwrap();
    assert_eq!(
        (&data["status"], &data["turns"], &data["calls"]),
        (&json!("completed"), &json!(2), &json!(1))
    );
    assert_eq!(*two.taken.lock(), [r#"ada files.read ["consort/session"]"#]);

    let (progress, same) = told(with.call(passed("agents.ask_my_helper", &asked))).await;
    assert_eq!((progress.len(), same.flattened()), (5, "It is there.".to_owned()));
    let (_, other) = told(with.call(passed("files.read", &json!({})))).await;
    assert_eq!(other.flattened(), "found");
    let (_, wrong) = told(with.call(call("agents.ask_my_helper", json!({})))).await;
    assert_eq!(wrong.flattened(), "`query` is missing: describe the task or question");
}

#[tokio::test]
async fn a_run_that_does_not_complete_is_an_error_that_says_why() {
    let two = Arc::new(Two::default());
    let registry = Arc::new(AgentRegistry::default());
    let with = AgentToolbox::new(two.clone(), [("a", "")], Arc::clone(&registry));
    let script =
        r#"{"turns": [{"text": "Well", "error": {"kind": "failed", "message": "broken"}}]}"#;
    registry.set([agent("a", two, script)]);
    let (_, result) = told(with.call(call("agents.ask_a", json!({ "query": "go" })))).await;
    assert!(result.is_error());
    assert!(result.flattened().starts_with("[the agent did not complete the task: "), "{result:?}");
    let data: Value = result.structured_content().unwrap().read().unwrap();
    assert_eq!(data["status"], "error");
}

#[tokio::test]
async fn agents_ask_agents_only_so_deep_and_servers_hear_nothing_of_it() {
    let two = Arc::new(Two::default());
    let registry = Arc::new(AgentRegistry::default());
    let with: Arc<dyn Toolbox> =
        Arc::new(AgentToolbox::new(two.clone(), [("a", "")], Arc::clone(&registry)));
    let script = r#"{"turns": [
        {"calls": [{"name": "ask_a", "arguments": {"query": "again"}}, {"name": "read"}]},
        {"text": "enough"}
    ]}"#;
    registry.set([agent("a", Arc::clone(&with), script)]);
    let (progress, result) = told(with.call(call("agents.ask_a", json!({ "query": "go" })))).await;
    assert_eq!(result.flattened(), "enough");
    let deepest = progress.iter().filter(|told| told.contains("agents.ask_a: done")).count();
    assert!(deepest > 0, "{progress:?}");
    assert_eq!(*two.taken.lock(), [r#"ada files.read ["consort/session"]"#; 3]);
    registry.set([]);
}

#[tokio::test]
async fn of_each_server_one_tool_is_shown_and_its_agent_has_only_that_servers_tools() {
    let two = Arc::new(Two::default());
    let script = r#"{"turns": [
        {"calls": [{"name": "fetch"}, {"name": "read"}]},
        {"expect": {"results": 2, "is_error": true}, "text": "fetched"}
    ]}"#;
    let model = Model::scripted(ModelScript::parse(script).unwrap());
    let direct = vec![NamePattern::new("read")];
    let about = [("my-web".parse().unwrap(), "The web.".to_owned())].into();
    let shown = ServerAgentToolbox::new(two.clone(), model.clone(), direct, about);
    assert_eq!(ids(&shown), ["files.read", "my-web.ask_my_web"]);
    let catalog = shown.catalog(&Caller::client("ada"));
    let description = catalog.tools.entries()[1].tool().description().unwrap();
    insta::assert_snapshot!(description, @r##"
The web.

Delegates a task to an agent with the tools of `my-web`; it returns text. Its tools: fetch.
"##);
    for events in [
        shown.call(call("my-web.ask_my_web", json!({ "query": "go" }))),
        shown.call(passed("my-web.ask_my_web", &json!({ "query": "go" }))),
    ] {
        assert_eq!(told(events).await.1.flattened(), "fetched");
    }
    let taken = two.taken.lock().clone();
    assert!(
        taken.len() == 2 && taken.iter().all(|call| call.starts_with("ada my-web.fetch")),
        "{taken:?}"
    );
    let hidden = ServerAgentToolbox::new(two, model, Vec::new(), [].into());
    assert_eq!(ids(&hidden), ["files.ask_files", "my-web.ask_my_web"]);
    assert!(matches!(
        hidden.call(call("files.read", json!({}))).next().await,
        Some(Happening::End(Err(_)))
    ));
}

/// Runs an agent to its end.
async fn report(agent: &Agent) -> RunReport {
    let mut events = agent.run(&Conversation::new(), vec![ChatMessage::user("go")]);
    loop {
        if let RunEvent::Ended { report } = events.next().await.unwrap() {
            return report;
        }
    }
}

/// An agent that calls another one, each answer for a dollar.
fn asking(helper: &str) -> (Agent, Arc<AgentRegistry>) {
    let two: Arc<dyn Toolbox> = Arc::new(Two::default());
    let registry = Arc::new(AgentRegistry::default());
    let with = Arc::new(AgentToolbox::new(
        Arc::clone(&two),
        [("helper", "Helps.")],
        Arc::clone(&registry),
    ));
    let price = Some(TokenPrice { input: 1e6, ..TokenPrice::default() });
    let mut helper = agent("helper", two, helper);
    helper.model.facts.price = price;
    registry.set([helper]);
    let asks = r#"{"turns": [
        {"calls": [{"name": "ask_helper", "arguments": {"query": "help"}}], "usage": {"input": 1}},
        {"calls": [{"name": "ask_helper", "arguments": {"query": "more"}}], "usage": {"input": 1}},
        {"text": "Done.", "usage": {"input": 1}}
    ]}"#;
    let mut agent = agent("asker", with, asks);
    agent.model.facts.price = price;
    (agent, registry)
}

const DEAR: &str = r#"{"turns": [
    {"calls": [{"name": "read", "arguments": {"n": 1}}], "usage": {"input": 1}},
    {"calls": [{"name": "read", "arguments": {"n": 2}}], "usage": {"input": 1}},
    {"calls": [{"name": "read", "arguments": {"n": 3}}], "usage": {"input": 1}},
    {"text": "It is there.", "usage": {"input": 1}}
]}"#;

#[tokio::test]
async fn what_asked_agents_cost_counts_for_the_run_that_asks() {
    let (asker, _roster) = asking(DEAR);
    let free = report(&asker).await;
    assert_eq!((free.status, free.cost), (RunStatus::Completed, Some(11.0)), "{free:?}");

    let mut limited = asker.clone();
    limited.settings.limits = RunLimits { cost: Some(5.0), ..RunLimits::default() };
    let ended = report(&limited).await;
    let reason = "the run cost 5.0000 of 5 US dollars";
    assert_eq!((ended.status, &*ended.reason), (RunStatus::LimitReached, reason), "{ended:?}");
    assert_eq!((ended.turns, ended.cost), (1, Some(5.0)));

    // In the middle of what the other agent does, too.
    limited.settings.limits = RunLimits { cost: Some(3.0), ..RunLimits::default() };
    let ended = report(&limited).await;
    assert_eq!((ended.status, ended.cost), (RunStatus::LimitReached, Some(3.0)), "{ended:?}");

    limited.settings.limits = RunLimits { tokens: Some(3), ..RunLimits::default() };
    let ended = report(&limited).await;
    assert_eq!(
        (ended.status, &*ended.reason),
        (RunStatus::LimitReached, "the run used 3 of 3 tokens")
    );
}

#[tokio::test]
async fn a_limit_in_dollars_is_refused_where_no_price_is_known() {
    let (mut asker, registry) = asking(DEAR);
    asker.settings.limits = RunLimits { cost: Some(50.0), ..RunLimits::default() };
    asker.model.id = "some:model".to_owned();
    assert_eq!(report(&asker).await.status, RunStatus::Completed);
    let price = asker.model.facts.price.take();
    let refused = report(&asker).await;
    assert_eq!((refused.status, refused.turns), (RunStatus::Error, 0));
    assert!(refused.reason.starts_with("`max_cost` cannot be enforced: the price of `some:model`"));

    // An agent without one is not asked on the account of a run that has a limit.
    asker.model.facts.price = price;
    let mut helper = agent("helper", Arc::new(Two::default()), DEAR);
    helper.model.id = "other:model".to_owned();
    registry.set([helper]);
    let conversation = Conversation::new();
    let mut events = asker.run(&conversation, vec![ChatMessage::user("go")]);
    while let Some(event) = events.next().await {
        if let RunEvent::Ended { report } = event {
            assert_eq!((report.status, report.cost), (RunStatus::Completed, Some(3.0)));
        }
    }
    let said = format!("{:?}", conversation.messages());
    assert!(said.contains("the price of `other:model` is unknown"), "{said}");
}
