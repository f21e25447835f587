//! The tools of a reference server.

#![expect(
    deprecated,
    reason = "both eras have logging and sampling, though the modern one deprecates them"
)]

use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CreateMessageRequest,
    CreateMessageRequestParams, CreateTaskResult, ElicitRequest, ElicitRequestParams, InputRequest,
    InputRequiredResult, JsonObject, LoggingLevel, LoggingMessageNotificationParam,
    ProgressNotificationParam, SamplingMessage, ServerRequest, Tool,
};
use rmcp::service::RequestContext;
use rmcp::task_manager::{TaskExit, TaskOptions};
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};

use super::Reference;
use super::journal::Change;

/// State that a modern client has to send back with its answers.
const STATE: &str = "{\"n\": 1.0, \"text\":\"\\u00e9\"}";

/// The key of the only input request of a call.
const QUESTION: &str = "question";

/// All tools, in order.
pub(super) fn definitions(changed: bool) -> Vec<Tool> {
    let tool = |name: &'static str, description: &'static str, properties: Value| {
        let schema = json!({ "type": "object", "properties": properties });
        Tool::new(name, description, object(schema))
    };
    let number = json!({ "type": "number" });
    let integer = json!({ "type": "integer", "minimum": 0 });
    let text = json!({ "type": "string" });
    let weather = json!({ "type": "object", "properties": { "celsius": number } });
    let mut tools = vec![
        tool("echo", "Says what it is told", json!({ "message": text })),
        tool("add", "Adds two numbers", json!({ "a": number, "b": number })),
        tool("weather", "Measures", json!({ "city": text }))
            .with_raw_output_schema(object(weather).into()),
        tool("fail", "Fails", json!({})),
        tool("slow", "Takes its time", json!({ "steps": integer, "ms": integer })),
        tool("log", "Logs", json!({})),
        tool("ask", "Asks for a name", json!({})),
        tool("sample", "Asks a model", json!({ "prompt": text })),
        tool("task", "Takes its time, as a task", json!({ "steps": integer, "ms": integer })),
        tool("change", "Changes what is on offer", json!({ "what": text })),
        tool("journal", "Tells what happened", json!({})),
    ];
    if changed {
        tools.push(tool("late", "Was not there before", json!({})));
    }
    tools
}

impl Reference {
    pub(super) async fn call(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = params.arguments.clone().unwrap_or_default();
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
        let number = |name: &str| arguments.get(name).and_then(Value::as_f64).unwrap_or_default();
        match params.name.as_ref() {
            "echo" => Ok(said(text("message"))),
            "add" => Ok(said((number("a") + number("b")).to_string())),
            "weather" => Ok(CallToolResult::structured(json!({ "celsius": 21.5 })).into()),
            "fail" => Ok(CallToolResult::error(vec![ContentBlock::text("it broke")]).into()),
            "slow" => self.slow(Work::new(&arguments), &context).await,
            "log" => self.log(&context).await,
            "ask" => self.ask(&params, &context).await,
            "sample" => self.sample(&params, text("prompt"), &context).await,
            "task" => self.task(Work::new(&arguments), &context).await,
            "change" => match Change::parse(text("what")) {
                Some(change) => {
                    self.journal.change(change).await;
                    Ok(said("changed"))
                }
                None => Err(ErrorData::invalid_params("nothing like that changes", None)),
            },
            "journal" => Ok(said(self.journal.lines().join("\n"))),
            "late" if self.journal.has(Change::Tools) => Ok(said("better than never")),
            name => Err(ErrorData::invalid_params(format!("unknown tool {name}"), None)),
        }
    }

    async fn slow(
        &self,
        work: Work,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.journal.write("slow begins");
        for step in 1..=work.steps {
            tokio::select! {
                () = context.ct.cancelled() => {
                    self.journal.write("slow is cancelled");
                    return Err(ErrorData::internal_error("cancelled", None));
                }
                () = tokio::time::sleep(work.pause) => {}
            }
            if let Some(token) = context.meta.get_progress_token() {
                let progress = ProgressNotificationParam::new(token, f64::from(step))
                    .with_total(f64::from(work.steps))
                    .with_message(format!("step {step}"));
                let _ = context.peer.notify_progress(progress).await;
            }
        }
        self.journal.write("slow ends");
        Ok(said(format!("{} steps", work.steps)))
    }

    async fn log(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        // A modern client says in each request whether it wants to hear.
        if !is_modern(context) || context.meta.log_level().is_some() {
            let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!("logged"));
            let _ = context.peer.notify_logging_message(message).await;
        }
        Ok(said("done"))
    }

    async fn ask(
        &self,
        params: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
        let question = ElicitRequest::new(ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: "Who are you?".to_owned(),
            requested_schema: serde_json::from_value(schema).expect("it is a schema"),
        });
        let answer = if is_modern(context) {
            match answered(params)? {
                None => return Ok(required(InputRequest::Elicitation(question))),
                Some(answer) => answer,
            }
        } else {
            put(context, question).await?
        };
        let name = answer["content"]["name"].as_str().unwrap_or("nobody");
        let action = answer["action"].as_str().unwrap_or_default();
        Ok(said(format!("{action} {name}")))
    }

    async fn sample(
        &self,
        params: &CallToolRequestParams,
        prompt: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let messages = vec![SamplingMessage::user_text(prompt)];
        let question = CreateMessageRequest::new(CreateMessageRequestParams::new(messages, 100));
        let answer = if is_modern(context) {
            match answered(params)? {
                None => return Ok(required(InputRequest::CreateMessage(question))),
                Some(answer) => answer,
            }
        } else {
            put(context, question).await?
        };
        let text = answer["content"]["text"].as_str().unwrap_or("nothing");
        Ok(said(format!("the model says {text}")))
    }

    async fn task(
        &self,
        work: Work,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let knows_tasks =
            context.client_capabilities().is_some_and(|capabilities| capabilities.supports_tasks());
        if !knows_tasks {
            return self.slow(work, context).await;
        }
        let journal = std::sync::Arc::clone(&self.journal);
        let options = TaskOptions::new().with_poll_interval_ms(20);
        let task = self.tasks.spawn(options, move |task| {
            Box::pin(async move {
                tokio::select! {
                    () = task.cancelled() => {
                        journal.write("task is cancelled");
                        Err(TaskExit::Cancelled)
                    }
                    () = tokio::time::sleep(work.pause * work.steps) => {
                        Ok(CallToolResult::success(vec![ContentBlock::text("the task is done")]))
                    }
                }
            })
        });
        Ok(CreateTaskResult::new(task).into())
    }
}

/// Amount of work of `slow` and `task`.
#[derive(Clone, Copy)]
struct Work {
    steps: u32,
    pause: Duration,
}

impl Work {
    fn new(arguments: &JsonObject) -> Self {
        let number = |name: &str| arguments.get(name).and_then(Value::as_u64).unwrap_or_default();
        Self {
            steps: u32::try_from(number("steps")).unwrap_or(u32::MAX),
            pause: Duration::from_millis(number("ms")),
        }
    }
}

fn said(text: impl Into<String>) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

/// Requests input in the legacy way: a request of the server during the call.
async fn put(
    context: &RequestContext<RoleServer>,
    question: impl Into<ServerRequest>,
) -> Result<Value, ErrorData> {
    match context.peer.send_request(question.into()).await {
        Ok(answer) => Ok(json!(answer)),
        Err(error) => Err(ErrorData::internal_error(error.to_string(), None)),
    }
}

/// Requests input in the modern way: the call ends and is repeated with the answer.
fn required(request: InputRequest) -> CallToolResponse {
    let requests = [(QUESTION.to_owned(), request)].into();
    InputRequiredResult::new(Some(requests), Some(STATE.to_owned())).into()
}

/// Returns the answer that a modern client sends, if it does.
fn answered(params: &CallToolRequestParams) -> Result<Option<Value>, ErrorData> {
    let answer = params.input_responses.as_ref().and_then(|answers| answers.get(QUESTION));
    match answer {
        Some(_) if params.request_state.as_deref() != Some(STATE) => {
            Err(ErrorData::invalid_params("the state is not what was sent", None))
        }
        answer => Ok(answer.cloned()),
    }
}

pub(crate) fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|version| !version.has_initialize())
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        other => unreachable!("{other} is no object"),
    }
}
