//! The tools that work as tasks, if the client supports tasks.

use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock,
    CreateTaskResult, InputRequest, JsonObject,
};
use rmcp::service::RequestContext;
use rmcp::task_manager::{TaskContext, TaskExit, TaskOptions};
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};

use super::dialogue::{Dialogue, Given, Turn};
use super::questions::{form, required};
use super::results::said;
use super::tools::given;
use super::{Asking, Conformant, questions, results};
use crate::reference::is_modern;

/// Poll interval of a task.
const POLL_MS: u64 = 50;

/// Work, as a task or not.
#[derive(Clone)]
pub(super) struct Work {
    kind: Kind,
    time: Duration,
    /// A label, a file's name or the name of the user.
    word: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Compute,
    Fail,
    Break,
    Confirm,
    AskTwice,
    GreetLater,
}

impl Work {
    pub(super) fn of(name: &str, arguments: &JsonObject) -> Option<Self> {
        let text = |key: &str| arguments.get(key).and_then(Value::as_str).unwrap_or_default();
        let seconds = arguments.get("seconds").and_then(Value::as_f64).unwrap_or(1.0);
        let (kind, millis, word) = match name {
            "slow_compute" => (Kind::Compute, 0, text("label")),
            "failing_job" => (Kind::Fail, 1000, ""),
            "protocol_error_job" => (Kind::Break, 200, ""),
            "confirm_delete" => (Kind::Confirm, 0, text("filename")),
            "multi_input" => (Kind::AskTwice, 0, ""),
            "test_tool_with_task" => (Kind::GreetLater, 200, ""),
            _ => return None,
        };
        let time = match kind {
            Kind::Compute => Duration::try_from_secs_f64(seconds).unwrap_or_default(),
            _ => Duration::from_millis(millis),
        };
        Some(Self { kind, time, word: word.to_owned() })
    }

    /// Returns true if a modern client must support tasks.
    fn needs_tasks(&self) -> bool {
        !matches!(self.kind, Kind::Compute | Kind::Break)
    }

    /// Returns the input requests of the work.
    fn questions(&self) -> Vec<(&'static str, InputRequest)> {
        let value = || required(&json!({ "value": { "type": "string" } }), &["value"]);
        match self.kind {
            Kind::Confirm => {
                let schema = required(&json!({ "confirm": { "type": "boolean" } }), &["confirm"]);
                vec![("confirm", form(&format!("Delete {}?", self.word), schema))]
            }
            Kind::AskTwice => vec![
                ("input-a", form("Provide value A", value())),
                ("input-b", form("Provide value B", value())),
            ],
            _ => Vec::new(),
        }
    }

    /// Returns the result, given the answers.
    fn end(&self, answers: &JsonObject) -> Result<CallToolResult, ErrorData> {
        match self.kind {
            Kind::Compute => Ok(said(format!("Computed {} in {:?}", self.word, self.time))),
            Kind::Fail => Ok(CallToolResult::error(vec![ContentBlock::text("It failed")])),
            Kind::Break => Err(ErrorData::internal_error("it broke", None)),
            Kind::GreetLater => Ok(said(format!("Hello, {}!", self.word))),
            Kind::Confirm | Kind::AskTwice => Ok(results::of_answers("", answers)),
        }
    }

    async fn run_as_task(self, task: TaskContext) -> Result<CallToolResult, TaskExit> {
        let mut questions = self.questions().into_iter();
        let mut answers = JsonObject::new();
        match (questions.next(), questions.next()) {
            (Some((key, question)), None) => {
                answers.insert(key.to_owned(), task.request_input(key, question).await?);
            }
            // Both are open at once, so that one can be answered before the other.
            (Some((first, one)), Some((second, other))) => {
                let one = task.request_input(first, one);
                let other = task.request_input(second, other);
                let (one, other) = tokio::join!(one, other);
                answers.insert(first.to_owned(), one?);
                answers.insert(second.to_owned(), other?);
            }
            (None, _) => {}
        }
        tokio::select! {
            () = task.cancelled() => Err(TaskExit::Cancelled),
            () = tokio::time::sleep(self.time) => self.end(&answers).map_err(TaskExit::Error),
        }
    }
}

impl Conformant {
    pub(super) async fn work(
        &self,
        mut work: Work,
        params: &CallToolRequestParams,
        capabilities: &ClientCapabilities,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let modern = is_modern(context);
        let as_task = modern && capabilities.supports_tasks();
        let refuses = modern || self.asking == Asking::AsTheSdk;
        if refuses && !as_task && work.needs_tasks() {
            let needed = ClientCapabilities::builder().enable_tasks().build();
            return Err(ErrorData::missing_required_client_capability(needed));
        }
        let arguments = params.arguments.clone().unwrap_or_default();
        if let Some(dialogue) = questions::of_tool(&params.name, &arguments, capabilities) {
            match dialogue.turn(given(params), &self.shared.seal, context).await? {
                Turn::Required(required) => return Ok(required.into()),
                Turn::Answered(answers) => {
                    let name = answers.get("user_name").map(|answer| &answer["content"]["name"]);
                    let name = name.and_then(Value::as_str).unwrap_or("nobody");
                    name.clone_into(&mut work.word);
                }
            }
        }
        if as_task {
            let options = TaskOptions::new().with_poll_interval_ms(POLL_MS);
            let task =
                self.shared.tasks.spawn(options, move |task| Box::pin(work.run_as_task(task)));
            return Ok(CreateTaskResult::new(task).into());
        }
        let questions = work.questions();
        let questions = questions.into_iter().map(|(key, question)| (key.to_owned(), question));
        let given = Given { subject: &params.name, responses: None, state: None };
        let dialogue = Dialogue::of(questions.collect());
        let answers = match dialogue.turn(given, &self.shared.seal, context).await? {
            Turn::Answered(answers) => answers,
            Turn::Required(required) => return Ok(required.into()),
        };
        tokio::time::sleep(work.time).await;
        work.end(&answers).map(Into::into)
    }
}
