//! The client of the official Rust SDK: plays `PLAN http URL [TOKEN]` or `PLAN stdio COMMAND ARGUMENT…`.

#![expect(clippy::print_stdout, reason = "whoever started it reads it")]
#![expect(deprecated, reason = "the legacy era has what the modern one deprecates")]

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use consort_protocol::Era;
use parking_lot::Mutex;
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ContentBlock, ElicitRequestParams,
    ElicitResult, ElicitationAction, GetPromptRequestParams, Implementation,
    ProgressNotificationParam, ProtocolVersion, ReadResourceRequestParams, ResourceContents,
    ResourceUpdatedNotificationParam, ServerNotification, SubscribeRequestParams,
    SubscriptionFilter,
};
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt, NotificationContext, RequestContext, RunningService,
};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde_json::{Map, Value, json};
use testkit::clients::{Action, Outcome, Part, Plan};
use tokio::sync::watch;

/// Time limit of an action.
const PATIENCE: Duration = Duration::from_secs(30);

type Failure = Box<dyn Error + Send + Sync>;

// On one thread: the SDK handles each notification in a task of its own, and only there in order.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [plan, kind, target @ ..] = words.as_slice() else {
        return Err("a plan and a target, please".into());
    };
    let era: Value = serde_json::from_str(plan)?;
    let era: Era = serde_json::from_value(era["era"].clone())?;
    let plan: Plan = serde_json::from_str(plan)?;
    let person = Person::new(&plan);
    let client = connect(person.clone(), era, kind, target).await?;
    let player = Player { client, person, plan };
    let spoken = if player.is_modern() { Era::Modern } else { Era::Legacy };
    let outcomes = player.play().await;
    println!("{}", json!({ "era": spoken, "outcomes": outcomes }));
    let _ = player.client.cancel().await;
    Ok(())
}

async fn connect(
    person: Person,
    era: Era,
    kind: &str,
    target: &[String],
) -> Result<RunningService<RoleClient, Person>, Failure> {
    let lifecycle = match era {
        Era::Legacy => ClientLifecycleMode::Initialize,
        Era::Modern => ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: None,
        },
    };
    Ok(match (kind, target) {
        ("http", [url, token @ ..]) => {
            let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
            if let [token] = token {
                config = config.auth_header(token);
            }
            let transport = StreamableHttpClientTransport::from_config(config);
            person.serve_with_lifecycle(transport, lifecycle).await?
        }
        ("stdio", [program, arguments @ ..]) => {
            let mut command = tokio::process::Command::new(program);
            command.args(arguments);
            person.serve_with_lifecycle(TokioChildProcess::new(command)?, lifecycle).await?
        }
        _ => return Err(format!("unknown component `{kind}`: expected `http` or `stdio`").into()),
    })
}

/// Answers requests of the server and records its notifications.
#[derive(Clone)]
struct Person {
    answer: Value,
    progress: Arc<Mutex<Vec<f64>>>,
    /// Counts of resource updates and of progress notifications.
    events: watch::Sender<Events>,
}

#[derive(Clone, Copy, Default)]
struct Events {
    progress: usize,
    updates: usize,
}

impl Person {
    fn new(plan: &Plan) -> Self {
        let answer = match &plan.elicitation {
            Part::Do(ask) => json!(ask.answer),
            Part::Unsupported { .. } => Value::Null,
        };
        Self { answer, progress: Arc::default(), events: watch::Sender::default() }
    }

    fn take_progress(&self) -> Vec<f64> {
        std::mem::take(&mut self.progress.lock())
    }
}

impl ClientHandler for Person {
    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder().enable_elicitation().build();
        ClientConfig::new(capabilities, Implementation::new("rmcp-client", "1.0.0"))
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(self.answer.clone()))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.progress.lock().push(params.progress);
        self.events.send_modify(|events| events.progress += 1);
    }

    async fn on_resource_updated(
        &self,
        _: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.events.send_modify(|events| events.updates += 1);
    }
}

struct Player {
    client: RunningService<RoleClient, Person>,
    person: Person,
    plan: Plan,
}

impl Player {
    fn is_modern(&self) -> bool {
        let server = self.client.peer().peer_info();
        server.is_some_and(|server| !server.protocol_version.has_initialize())
    }

    async fn play(&self) -> BTreeMap<Action, Outcome> {
        let mut outcomes = BTreeMap::new();
        outcomes.insert(Action::List, attempt(self.list()).await);
        let call = attempt(self.call_reporting()).await;
        let progress = match &call {
            Outcome::Ok(_) => self.progress(),
            other => other.clone(),
        };
        outcomes.insert(Action::Call, call);
        outcomes.insert(Action::Progress, progress);
        let ask = async |ask: &testkit::clients::Ask| {
            expect(&ask.contains, self.call(&ask.tool, &ask.arguments).await?)
        };
        outcomes.insert(Action::Elicitation, attempt_part(&self.plan.elicitation, ask).await);
        outcomes.insert(Action::Resources, attempt(self.read()).await);
        let watch = async |part: &testkit::clients::Watch| self.watch(part).await;
        outcomes.insert(Action::Subscription, attempt_part(&self.plan.subscription, watch).await);
        outcomes.insert(Action::Prompts, attempt(self.prompt()).await);
        let complete = async |part: &testkit::clients::Complete| {
            let (prompt, argument) = (part.prompt.as_str(), part.argument.as_str());
            let values = self.client.complete_prompt_simple(prompt, argument, part.value.as_str());
            expect(&part.contains, values.await?.join(", "))
        };
        outcomes.insert(Action::Completion, attempt_part(&self.plan.completion, complete).await);
        let cancel = async |part: &testkit::clients::Cancel| self.cancel(part).await;
        outcomes.insert(Action::Cancellation, attempt_part(&self.plan.cancellation, cancel).await);
        outcomes
    }

    async fn list(&self) -> Result<String, Failure> {
        let tools = self.client.list_all_tools().await?;
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
        if names.contains(&self.plan.list.tool.as_str()) {
            Ok(format!("{} tools", names.len()))
        } else {
            Err(format!("{} is not in {names:?}", self.plan.list.tool).into())
        }
    }

    async fn call(&self, tool: &str, arguments: &Map<String, Value>) -> Result<String, Failure> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments.clone());
        let result = self.client.call_tool(params).await?;
        Ok(texts(result.content.iter()))
    }

    async fn call_reporting(&self) -> Result<String, Failure> {
        let call = &self.plan.call;
        self.person.take_progress();
        expect(&call.contains, self.call(&call.tool, &call.arguments).await?)
    }

    fn progress(&self) -> Outcome {
        let (heard, wanted) = (self.person.take_progress(), self.plan.call.progress);
        let detail = format!("{} of {wanted}: {heard:?}", heard.len());
        if heard.len() == wanted && heard.is_sorted_by(|one, next| one < next) {
            Outcome::Ok(detail)
        } else {
            Outcome::Failed(detail)
        }
    }

    async fn read(&self) -> Result<String, Failure> {
        let Plan { resources, .. } = &self.plan;
        let params = ReadResourceRequestParams::new(resources.uri.clone());
        let contents = self.client.read_resource(params).await?.contents;
        let text = contents.into_iter().filter_map(|contents| match contents {
            ResourceContents::TextResourceContents { text, .. } => Some(text),
            _ => None,
        });
        expect(&resources.contains, text.collect())
    }

    async fn watch(&self, part: &testkit::clients::Watch) -> Result<String, Failure> {
        let heard = "heard of an update".to_owned();
        if self.is_modern() {
            let filter = SubscriptionFilter::builder().resource_subscription(&part.uri).build();
            let mut subscription = self.client.listen(filter).await?;
            self.call(&part.tool, &part.arguments).await?;
            while let Some(notification) = subscription.next().await? {
                if let ServerNotification::ResourceUpdatedNotification(_) = notification {
                    return Ok(heard);
                }
            }
            return Err("the subscription ended".into());
        }
        let mut events = self.person.events.subscribe();
        let before = events.borrow_and_update().updates;
        self.client.subscribe(SubscribeRequestParams::new(&part.uri)).await?;
        self.call(&part.tool, &part.arguments).await?;
        events.wait_for(|events| events.updates > before).await?;
        Ok(heard)
    }

    async fn prompt(&self) -> Result<String, Failure> {
        let Plan { prompts, .. } = &self.plan;
        let arguments = prompts.arguments.iter().map(|(name, value)| (name.clone(), json!(value)));
        let params = GetPromptRequestParams::new(prompts.prompt.clone());
        let result = self.client.get_prompt(params.with_arguments(arguments.collect())).await?;
        let contents = result.messages.iter().map(|message| &message.content);
        expect(&prompts.contains, texts(contents))
    }

    async fn cancel(&self, part: &testkit::clients::Cancel) -> Result<String, Failure> {
        let mut events = self.person.events.subscribe();
        let before = events.borrow_and_update().progress;
        tokio::select! {
            end = self.call(&part.tool, &part.arguments) => {
                return Err(format!("it was not cancelled: {end:?}").into());
            }
            // What is not awaited any more is cancelled.
            begun = events.wait_for(|events| events.progress > before) => { begun?; }
        }
        while !self.call(&part.sign, &Map::new()).await?.contains(&part.contains) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok("noticed by the server".to_owned())
    }
}

async fn attempt(action: impl Future<Output = Result<String, Failure>>) -> Outcome {
    match tokio::time::timeout(PATIENCE, action).await {
        Ok(Ok(detail)) => Outcome::Ok(detail.chars().take(200).collect()),
        Ok(Err(error)) => Outcome::Failed(error.to_string()),
        Err(_) => Outcome::Failed("it takes too long".to_owned()),
    }
}

async fn attempt_part<T>(
    part: &Part<T>,
    action: impl AsyncFn(&T) -> Result<String, Failure>,
) -> Outcome {
    match part {
        Part::Do(part) => attempt(action(part)).await,
        Part::Unsupported { unsupported } => Outcome::Unsupported(unsupported.clone()),
    }
}

fn expect(wanted: &str, found: String) -> Result<String, Failure> {
    if found.contains(wanted) {
        Ok(found)
    } else {
        Err(format!("{wanted} is not in {found}").into())
    }
}

fn texts<'a>(blocks: impl Iterator<Item = &'a ContentBlock>) -> String {
    let texts = blocks.filter_map(|block| block.as_text()).map(|block| block.text.as_str());
    texts.collect::<Vec<_>>().join("\n")
}
