mod bounds;
mod lengths;
mod people;

use std::sync::atomic::Ordering;

use consort_core::{BoxFuture, Json};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::*;
use crate::fake::Fake;
use crate::hook::RunHook;
use crate::limits::RunLimits;
use crate::run_tools;
use crate::settings::{ErrorHandling, ErrorTreatment};
use crate::step::{ConversationStep, QuestionOrigin, StepJournal};
use crate::task::AgentTask;
use consort_models::{MessageRole, ModelScript, PartContent};

/// A shared journal that fails when it is full.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<ConversationStep>>>, Option<usize>);

impl StepJournal for Kept {
    fn record(&mut self, step: &ConversationStep) -> std::io::Result<()> {
        let mut steps = self.0.lock();
        if self.1.is_some_and(|room| steps.len() >= room) {
            return Err(std::io::Error::other("full"));
        }
        steps.push(step.clone());
        Ok(())
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it reads better")]
fn script(turns: Value) -> Model {
    Model::scripted(ModelScript::parse(&json!({ "turns": turns }).to_string()).unwrap())
}

fn agent(fake: &Fake, turns: Value) -> Agent {
    Agent::new(script(turns), Arc::new(fake.clone()), AgentSettings::new("tester"))
}

#[expect(clippy::needless_pass_by_value, reason = "it reads better")]
fn call(name: &str, arguments: Value) -> Value {
    json!({ "name": name, "arguments": arguments })
}

/// Runs to the end, answering questions with this.
async fn answering(
    agent: &Agent,
    conversation: &Conversation,
    input: &str,
    answer: Option<Value>,
) -> (Vec<RunEvent>, RunReport) {
    let input = if input.is_empty() { vec![] } else { vec![ChatMessage::user(input)] };
    let mut events = agent.run(conversation, input);
    let mut seen = Vec::new();
    loop {
        match events.next().await.expect("an end comes before nothing") {
            RunEvent::Ended { report } => return (seen, report),
            RunEvent::Question { question, answer: reply } => {
                if let Some(answer) = &answer {
                    reply.unwrap().send(Ok(Json::from(answer.clone())));
                }
                seen.push(RunEvent::Question { question, answer: None });
            }
            event => seen.push(event),
        }
    }
}

async fn run(agent: &Agent, conversation: &Conversation) -> RunReport {
    answering(agent, conversation, "go", None).await.1
}

/// The texts of the results in the last message of tools.
fn results(conversation: &Conversation) -> Vec<String> {
    let messages = conversation.messages();
    let tool = messages.iter().rev().find(|message| message.role == MessageRole::Tool).unwrap();
    let text = |part: &consort_models::MessagePart| match &part.content {
        PartContent::ToolResult(result) => result.text(),
        _ => String::new(),
    };
    tool.parts.iter().map(text).collect()
}

#[tokio::test(start_paused = true)]
async fn calls_run_side_by_side_and_their_results_stand_in_order() {
    let fake = Fake::new();
    let slow = |ms: u64, text: &str| call("slow", json!({ "ms": ms, "text": text }));
    let calls: Vec<Value> = (0..6).map(|n| slow(60 - n * 10, &n.to_string())).collect();
    let mut agent = agent(&fake, json!([{ "calls": calls }, { "text": "ok" }]));
    agent.settings.parallel = 3;
    let conversation = Conversation::new();
    let (events, report) = answering(&agent, &conversation, "go", None).await;
    assert_eq!((report.status, &*report.text), (RunStatus::Completed, "ok"));
    assert_eq!((report.turns, report.calls, report.failed_calls), (2, 6, 0));
    assert_eq!(results(&conversation), ["0", "1", "2", "3", "4", "5"]);
    assert_eq!(fake.most.load(Ordering::SeqCst), 3);
    let progress = events.iter().filter(|event| matches!(event, RunEvent::Progress { .. })).count();
    assert_eq!(progress, 6);
    // Servers are told which run it is.
    assert!(fake.meta.lock()[0].contains(&report.run));
}

#[tokio::test(start_paused = true)]
async fn what_goes_wrong_is_told_to_the_model_unless_it_shall_not_be() {
    let fake = Fake::new();
    fake.gone.store(9, Ordering::Relaxed);
    let calls = json!([
        call("ehco", json!({})),
        call("slow", json!("{oops")),
        call("search", json!(r#""{\"list\":\"[1]\"}""#)),
        call("fail", json!({})),
        call("gone", json!({})),
        call("lost", json!({})),
        call("echo", json!({})),
        call("one.echo", json!({ "text": "x" })),
    ]);
    let agent_of = |on_error: &[(&str, ErrorTreatment)]| {
        let mut agent = agent(&fake, json!([{ "calls": calls }, { "text": "ok" }]));
        let on_error = on_error.iter().map(|(kind, treat)| ((*kind).to_owned(), *treat));
        agent.settings.on_error = ErrorHandling(on_error.collect());
        agent
    };
    let conversation = Conversation::new();
    let report = run(&agent_of(&[]), &conversation).await;
    assert_eq!((report.status, report.calls, report.failed_calls), (RunStatus::Completed, 8, 6));
    let told = results(&conversation);
    assert_eq!(told[0], "unknown tool `ehco` (did you mean `one.echo` or `two.echo`?)");
    assert!(told[1].starts_with("invalid arguments: not JSON"), "{}", told[1]);
    assert_eq!(told[2], "done");
    assert_eq!(told[3], "it broke");
    assert_eq!(told[4], "MCP server connection failed: cannot connect to `one`");
    assert_eq!(
        told[5],
        "outcome unknown: it went away; check before retrying (it may have run: check its effects before calling it again)"
    );
    // Two servers have it, so the model has to say which.
    assert!(told[6].starts_with("unknown tool `echo`"), "{}", told[6]);
    assert_eq!(told[7], "x");
    assert!(fake.left().contains(&r#"only.search {"list":[1]}"#.to_owned()), "{:?}", fake.left());

    // Made again only if it never got there.
    fake.gone.store(2, Ordering::Relaxed);
    fake.left.lock().clear();
    let retry = [("connection", ErrorTreatment::Retry), ("outcome_unknown", ErrorTreatment::Retry)];
    let report = run(&agent_of(&retry), &Conversation::new()).await;
    assert_eq!(report.failed_calls, 5);
    let left = |name: &str| fake.left().iter().filter(|call| call.starts_with(name)).count();
    assert_eq!((left("one.gone"), left("one.lost")), (1, 1));

    let report =
        run(&agent_of(&[("outcome_unknown", ErrorTreatment::Fail)]), &Conversation::new()).await;
    assert_eq!(report.status, RunStatus::Error);
    assert_eq!(report.reason, "`one.lost`: outcome unknown: it went away; check before retrying");
}

/// A hook that refuses, edits and stops by the tool's name.
struct Rail;

impl RunHook for Rail {
    fn check<'a>(&'a self, moment: HookMoment<'a>) -> BoxFuture<'a, HookVerdict> {
        let verdict = match moment {
            HookMoment::Input([message, ..]) if message.text().contains("secret") => {
                HookVerdict::Stop("no secrets".to_owned())
            }
            HookMoment::BeforeCall { tool: "one.fail", .. } => {
                HookVerdict::Refuse("not that one".to_owned())
            }
            HookMoment::BeforeCall { tool: "one.slow", .. } => {
                HookVerdict::Edit(Json::from(json!({ "text": "edited" })).to_object().unwrap())
            }
            HookMoment::BeforeCall { tool: "one.lost", .. } => {
                HookVerdict::Stop("never".to_owned())
            }
            HookMoment::AfterReply(reply) if reply.message.text() == "rude" => {
                HookVerdict::Stop("be kind".to_owned())
            }
            _ => HookVerdict::Continue,
        };
        Box::pin(std::future::ready(verdict))
    }
}

#[tokio::test(start_paused = true)]
async fn guardrails_refuse_edit_and_stop() {
    let fake = Fake::new();
    let with = |turns: Value| {
        let mut agent = agent(&fake, turns);
        agent.settings.hooks.push(Arc::new(Rail));
        agent
    };
    let conversation = Conversation::new();
    let calls = json!([call("fail", json!({})), call("slow", json!({}))]);
    let report = run(&with(json!([{ "calls": calls }, { "text": "ok" }])), &conversation).await;
    assert_eq!(report.status, RunStatus::Completed);
    assert_eq!(results(&conversation), ["denied: not that one", "edited"]);
    let stopped =
        run(&with(json!([{ "calls": [call("lost", json!({}))] }])), &Conversation::new()).await;
    assert_eq!((stopped.status, &*stopped.reason), (RunStatus::Denied, "never"));
    let rude = run(&with(json!([{ "text": "rude" }])), &Conversation::new()).await;
    assert_eq!((rude.status, &*rude.reason), (RunStatus::Denied, "be kind"));
    let secret = answering(&with(json!([])), &conversation, "a secret", None).await.1;
    assert_eq!((secret.status, &*secret.reason), (RunStatus::Denied, "no secrets"));
    assert_eq!(fake.left(), [r#"one.slow {"text":"edited"}"#]);
}

#[tokio::test(start_paused = true)]
async fn a_large_result_is_shown_in_part_and_the_rest_can_be_read() {
    let fake = Fake::new();
    let read =
        |from: u64| call(run_tools::READ_RESULT, json!({ "call": "scripted_1_1", "from": from }));
    let turns = json!([{ "calls": [call("big", json!({}))] }, { "calls": [read(48 << 10)] }, { "calls": [read(199_999)] }, { "text": "ok" }]);
    let agent = agent(&fake, turns);
    let conversation = Conversation::new();
    let report = run(&agent, &conversation).await;
    assert_eq!((report.status, report.failed_calls), (RunStatus::Completed, 0));
    let sizes: Vec<usize> = conversation
        .messages()
        .iter()
        .flat_map(|message| message.parts.clone())
        .filter_map(|part| match part.content {
            PartContent::ToolResult(result) => Some(result.text().len()),
            _ => None,
        })
        .collect();
    assert!(sizes[0] < 50_000 && sizes[1] < 50_000 && sizes[2] == 2, "{sizes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_task_has_its_own_tools_and_session() {
    let fake = Fake::new();
    let catalog = Toolbox::catalog(&fake, &consort_core::Caller::agent("a"));
    let task = AgentTask::new("t-1", "find it", ["mcp.search", "one.echo"]);
    let ready = task.resolve(&catalog, None).unwrap();
    assert_eq!(ready.tools.ids(), ["one.echo", "only.search"]);
    let agent = agent(&fake, json!([{ "calls": [call("search", json!({}))] }, { "text": "ok" }]));
    let mut events = agent.perform(&Conversation::new(), ready);
    while events.next().await.is_some() {}
    assert_eq!(*fake.meta.lock(), [r#"{"consort/session":"t-1"}"#]);
    let missing = AgentTask::new("t", "x", ["serach"]).resolve(&catalog, None).unwrap_err();
    assert_eq!(missing.hint().as_deref(), Some("did you mean `search`?"));
    let mut narrow = consort_core::Catalog::clone(&catalog);
    narrow.retain(|server| server.as_str() != "only");
    let ready =
        AgentTask::new("t", "x", ["search", "one.echo"]).resolve(&narrow, Some(&catalog)).unwrap();
    assert_eq!(
        (ready.tools.ids(), ready.tools.denied),
        (vec!["one.echo".to_owned()], vec!["search".to_owned()])
    );
}

#[tokio::test(start_paused = true)]
async fn calls_of_others_are_handed_out() {
    let fake = Fake::new();
    let mut agent =
        agent(&fake, json!([{ "calls": [call("theirs", json!({})), call("search", json!({}))] }]));
    agent.settings.client_tools =
        vec![Tool::new("theirs", "Not ours.", &json!({ "type": "object" }).into())];
    let conversation = Conversation::new();
    let report = run(&agent, &conversation).await;
    assert_eq!((report.status, report.calls), (RunStatus::Waiting, 1));
    let run = conversation.state();
    let ready = run.pending().iter().find(|pending| pending.state == CallState::Ready).unwrap();
    assert_eq!(ready.call.name, "theirs");
}

#[test]
fn an_agent_is_listed_tools_by_the_capabilities_that_its_calls_declare() {
    let mut agent = agent(&Fake::new(), json!([]));
    // Those of the client that called it are not its own.
    let of_client = consort_core::ClientCapabilities {
        roots: true,
        ..consort_core::ClientCapabilities::default()
    };
    let client = consort_core::Caller::client("ada").with_capabilities(Arc::new(of_client));
    agent.settings.caller = client;
    agent.settings.has_user = true;
    let capabilities = agent.caller().capabilities().cloned().unwrap();
    assert_eq!(capabilities, agent.offers());
    assert!(capabilities.form && !capabilities.roots);
    agent.settings.has_user = false;
    assert!(!agent.offers().any());
    assert_eq!(agent.caller().capabilities(), None);
}
