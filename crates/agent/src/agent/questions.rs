//! Questions to users during a run: approvals of calls, questions of the model, and elicitations of servers.

use consort_core::{Object, PendingServerRequest, RequestRefusal, RequestResponder};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::call::{CallAttempt, CallCompletion, to_json};
use super::{RunEnd, storage_failure};
use crate::event::RunEvent;
use crate::run_tools::RunTool;
use crate::step::{QuestionOrigin, StepEvent, UserQuestion};
use consort_models::{MessagePart, ToolCallResult};

impl CallAttempt<'_> {
    /// Asks a user, and stores question and answer; returns `None` if nobody answers.
    async fn ask_and_store(
        &self,
        kind: QuestionOrigin,
        params: Value,
    ) -> Result<Option<Value>, RunEnd> {
        let id = format!("{}-{}", self.call.id, question_suffix(kind));
        let question = UserQuestion { id, call: self.call.id.clone(), kind, params };
        let keeps = matches!(kind, QuestionOrigin::Approval | QuestionOrigin::Model);
        if keeps {
            let step = StepEvent::Question { question: question.clone() };
            self.conversation.record(step).map_err(|error| storage_failure(&error))?;
        }
        let Some(answer) = self.ask(question.clone()).await else { return Ok(None) };
        if keeps {
            let step = StepEvent::Answer { question: question.id, answer: answer.clone() };
            self.conversation.record(step).map_err(|error| storage_failure(&error))?;
        }
        Ok(Some(answer))
    }

    /// Emits a question and waits for its answer.
    pub(super) async fn ask(&self, question: UserQuestion) -> Option<Value> {
        let (sender, answer) = oneshot::channel();
        let reply = RequestResponder::new(move |answer| {
            let _ = sender.send(answer);
        });
        self.emitter.emit(RunEvent::Question { question, answer: Some(reply) }).await;
        answer.await.ok()?.ok()?.read().ok()
    }

    /// Returns true if the call continues: a user answered, even with a refusal. Otherwise the call waits, and was not
    /// sent.
    pub(super) async fn approve(
        &self,
        run_tool: &RunTool,
        arguments: &Object,
        request: PendingServerRequest,
    ) -> Result<bool, RunEnd> {
        let Some(reply) = request.reply else { return Ok(true) };
        if !self.worker.agent.settings.has_user {
            reply.send(Err(RequestRefusal {
                code: -32603,
                message: "no user is available to respond".to_owned(),
            }));
            return Ok(true);
        }
        let params: Value = request.params.json().read().unwrap_or_default();
        // An answer given before counts if it was to the same question.
        let before = self.earlier_answer.filter(|(question, _)| question.params == params);
        let answer = match before {
            Some((_, answer)) => answer.clone(),
            None => match self.ask_and_store(QuestionOrigin::Approval, params).await? {
                Some(answer) => answer,
                None => return Ok(false),
            },
        };
        // From here on it may leave.
        self.record_sent(run_tool, arguments)?;
        reply.send(Ok(to_json(&answer)));
        Ok(true)
    }

    /// Answers a server's request, or lets a user do so.
    pub(super) async fn answer_server(&self, request: PendingServerRequest) {
        let Some(reply) = request.reply else { return };
        let params: Value = request.params.json().read().unwrap_or_default();
        let answer = match &*request.method {
            "elicitation/create" if self.worker.agent.settings.has_user => self
                .ask_and_store(QuestionOrigin::Server, params)
                .await
                .ok()
                .flatten()
                .map(|answer| to_json(&answer)),
            "sampling/createMessage" => self.sample(&params).await,
            _ => None,
        };
        reply.send(answer.ok_or_else(|| RequestRefusal::not_offered(&request.method)));
    }

    /// Asks a user on behalf of the model; returns `None` if that waits.
    pub(super) async fn ask_user(&self) -> Result<Option<CallCompletion>, RunEnd> {
        let wanted = self.call.arguments.object();
        let Some(question) = wanted.as_ref().and_then(|object| object.text("question")) else {
            return Ok(Some(self.error_result("`question` is missing".to_owned(), "arguments")));
        };
        let choices: Option<Vec<String>> =
            wanted.and_then(|object| object.get("choices")).and_then(|choices| choices.read().ok());
        let answer = match self.earlier_answer {
            Some((_, answer)) => answer.clone(),
            None => match self
                .ask_and_store(QuestionOrigin::Model, question_form(&question, choices.as_deref()))
                .await?
            {
                Some(answer) => answer,
                None => return Ok(None),
            },
        };
        let text = match (answer["action"].as_str(), &answer["content"]["answer"]) {
            (Some("accept"), Value::String(text)) => text.clone(),
            (Some("accept"), other) => other.to_string(),
            _ => "the user declined to answer".to_owned(),
        };
        let parts = vec![MessagePart::text(text)];
        let result = ToolCallResult { call: self.call.id.clone(), parts, is_error: false };
        Ok(Some(CallCompletion { result, error: None }))
    }
}

/// Returns the suffix that distinguishes the questions of one call.
fn question_suffix(kind: QuestionOrigin) -> &'static str {
    match kind {
        QuestionOrigin::Approval => "approval",
        QuestionOrigin::Model => "question",
        QuestionOrigin::Server => "elicitation",
        QuestionOrigin::Sampling => "sampling",
    }
}

/// Returns a question of the model as a form.
fn question_form(question: &str, choices: Option<&[String]>) -> Value {
    let mut field = json!({ "type": "string", "title": "Answer" });
    if let Some(choices) = choices.filter(|choices| !choices.is_empty()) {
        field["enum"] = json!(choices);
    }
    json!({
        "message": question,
        "requestedSchema": { "type": "object", "properties": { "answer": field }, "required": ["answer"] },
    })
}
