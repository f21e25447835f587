//! The JSON Schema that the answer to a task must match.

use std::sync::Arc;
use std::time::Duration;

use consort_core::escape::escape_text;
use consort_core::{DrivenStream, Json, StreamSender};
use consort_hub::{SchemaLimits, check_schema, check_value};
use consort_models::{
    ChatMessage, MessageRole, Model, ModelProvider, ModelReply, ModelRequest, ProviderError,
    ProviderErrorKind, ProviderEvent, ReplyDelta, ResponseSchema, StopReason,
};
use serde_json::Value;

use crate::exit::{CommandError, ExitStatus};

/// Name of the response schema sent to providers.
const NAME: &str = "answer";

/// A JSON Schema for answers.
#[derive(Clone, Debug)]
pub(super) struct AnswerSchema(Json);

impl AnswerSchema {
    pub(super) fn new(schema: &Value) -> Result<Self, CommandError> {
        let schema = Json::from(schema.clone());
        let wrong = |reason: String| {
            CommandError::usage(format!(
                "`output` is not a supported JSON Schema: {}",
                escape_text(&reason)
            ))
        };
        if schema.to_object().is_none() {
            return Err(wrong("it is not an object".to_owned()));
        }
        check_schema(&schema, &SchemaLimits::default()).map_err(wrong)?;
        Ok(Self(schema))
    }

    /// The same model, with the schema requested in its answer to this prompt.
    pub(super) fn wanted_of(&self, model: Model, words: &str) -> Model {
        let form = ResponseSchema { name: NAME.to_owned(), schema: self.0.clone() };
        let provider = SchemaProvider { inner: model.provider, form, words: words.to_owned() };
        Model { provider: Arc::new(provider), ..model }
    }

    /// Fails if an answer does not match the schema.
    pub(super) fn check(&self, answer: &str) -> Result<(), CommandError> {
        check(&self.0, answer).map_err(|reason| CommandError {
            exit: ExitStatus::Tool,
            ..CommandError::usage(format!(
                "the answer does not match `output`: {}",
                escape_text(&reason)
            ))
        })
    }
}

/// Checks an answer against a schema; the error describes the mismatch.
fn check(schema: &Json, answer: &str) -> Result<(), String> {
    let json =
        Json::parse(bare(answer).to_owned()).map_err(|error| format!("it is not JSON: {error}"))?;
    check_value(schema, &json, &SchemaLimits::default()).map_err(|problems| problems.join("; "))
}

/// Strips the code fence that models like to put around JSON.
fn bare(answer: &str) -> &str {
    let answer = answer.trim();
    let fenced = answer.strip_prefix("```").and_then(|text| text.strip_suffix("```"));
    fenced.and_then(|text| text.split_once('\n')).map_or(answer, |(_, text)| text.trim())
}

/// A provider that requests a schema. An answer that does not match is requested once more, with the mismatch.
struct SchemaProvider {
    inner: Arc<dyn ModelProvider>,
    form: ResponseSchema,
    words: String,
}

impl ModelProvider for SchemaProvider {
    fn request(&self, mut ask: ModelRequest) -> DrivenStream<ProviderEvent> {
        // What servers ask of the model has nothing to do with the task.
        let mut said = ask.messages.iter().filter(|message| message.role == MessageRole::User);
        if !said.any(|message| message.text() == self.words) {
            return self.inner.request(ask);
        }
        ask.response_schema = Some(self.form.clone());
        let (inner, schema) = (Arc::clone(&self.inner), self.form.schema.clone());
        DrivenStream::new(|emitter| async move {
            let first = read_answer(inner.request(ask.clone()), &emitter).await;
            let Some((reply, wrong)) = first.mismatch(&schema) else {
                return first.told(&emitter).await;
            };
            let error = ProviderError {
                kind: ProviderErrorKind::SchemaMismatch,
                message: wrong.clone(),
                status: None,
                wait: None,
                mid_answer: false,
            };
            emitter.emit(ProviderEvent::Retry { error, after: Duration::ZERO }).await;
            ask.messages.push(reply.message.clone().into());
            ask.messages.push(ChatMessage::user(AGAIN.replace("{wrong}", &wrong)).into());
            let usage = reply.usage;
            let mut second = read_answer(inner.request(ask), &emitter).await;
            match &mut second.end {
                Ok(reply) => reply.usage += usage,
                // The first is better than none.
                Err(_) => return first.told(&emitter).await,
            }
            second.told(&emitter).await
        })
    }
}

/// Prompt of the second request.
const AGAIN: &str = "The answer does not match the schema: {wrong}. Answer again, with only JSON that \
    matches the schema.";

/// An answer that was read to its end before it is passed on.
struct BufferedAnswer {
    deltas: Vec<ReplyDelta>,
    end: Result<ModelReply, ProviderError>,
}

impl BufferedAnswer {
    /// The reply and its mismatch, if it is an answer that does not match the schema.
    fn mismatch(&self, schema: &Json) -> Option<(&ModelReply, String)> {
        let reply = self.end.as_ref().ok()?;
        let is_answer = reply.stop == StopReason::End && reply.message.calls().next().is_none();
        let wrong = check(schema, &reply.message.text()).err().filter(|_| is_answer)?;
        Some((reply, wrong))
    }

    async fn told(self, emitter: &StreamSender<ProviderEvent>) -> ProviderEvent {
        for delta in self.deltas {
            emitter.emit(ProviderEvent::Delta(delta)).await;
        }
        ProviderEvent::End(self.end)
    }
}

/// Reads an answer to its end. Only notices of retries are passed on at once.
async fn read_answer(
    mut said: DrivenStream<ProviderEvent>,
    emitter: &StreamSender<ProviderEvent>,
) -> BufferedAnswer {
    let mut deltas = Vec::new();
    loop {
        match said.next().await {
            Some(ProviderEvent::Delta(delta)) => deltas.push(delta),
            Some(ProviderEvent::End(end)) => return BufferedAnswer { deltas, end },
            Some(again) => emitter.emit(again).await,
            None => unreachable!("an end comes before nothing"),
        }
    }
}

#[cfg(test)]
mod tests {

    use consort_models::{ModelFacts, ModelScript};
    use parking_lot::Mutex;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_is_checked_with_or_without_a_fence() {
        let schema = json!({ "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" } } });
        let output = AnswerSchema::new(&schema).unwrap();
        for answer in [r#"{"n": 1}"#, " {\"n\":1}\n", "```json\n{\"n\": 1}\n```"] {
            assert_eq!(output.check(answer), Ok(()), "{answer}");
        }
        let failure = output.check(r#"{"n": "one"}"#).unwrap_err();
        assert_eq!(
            failure.message,
            "the answer does not match `output`: at `/n`: \"one\" is not of type \"integer\""
        );
        assert!(output.check("one").unwrap_err().message.contains("it is not JSON"));
        assert!(AnswerSchema::new(&json!("text")).is_err());
        assert!(AnswerSchema::new(&json!({ "type": "nothing known" })).is_err());
    }

    #[tokio::test]
    async fn only_the_task_is_asked_for_the_form() {
        #[derive(Default)]
        struct Seen(Mutex<Vec<bool>>);
        impl ModelProvider for Seen {
            fn request(&self, ask: ModelRequest) -> DrivenStream<ProviderEvent> {
                self.0.lock().push(ask.response_schema.is_some());
                DrivenStream::new(|_| std::future::pending())
            }
        }
        let seen = Arc::new(Seen::default());
        let provider = Arc::<Seen>::clone(&seen);
        let model = Model {
            id: String::new(),
            name: String::new(),
            provider,
            facts: ModelFacts::default(),
        };
        let model = AnswerSchema::new(&json!({})).unwrap().wanted_of(model, "do it");
        for words in ["do it", "what a server asks"] {
            let mut said =
                model.provider.request(ModelRequest::new("", vec![ChatMessage::user(words)]));
            let next = tokio::time::timeout(Duration::from_millis(10), said.next()).await;
            assert!(next.is_err(), "empty message");
        }
        assert_eq!(*seen.0.lock(), [true, false]);
    }

    #[tokio::test]
    async fn an_answer_without_the_form_is_asked_for_once_more() {
        let schema = json!({ "type": "object", "required": ["n"] });
        let said = async |turns: Value| {
            let script = ModelScript::parse(&json!({ "turns": turns }).to_string()).unwrap();
            let model =
                AnswerSchema::new(&schema).unwrap().wanted_of(Model::scripted(script), "do it");
            let mut said =
                model.provider.request(ModelRequest::new("", vec![ChatMessage::user("do it")]));
            let (mut words, mut again) = (String::new(), Vec::new());
            loop {
                match said.next().await.unwrap() {
                    ProviderEvent::Delta(ReplyDelta::Text(text)) => words.push_str(&text),
                    ProviderEvent::Delta(_) => {}
                    ProviderEvent::Retry { error, .. } => again.push(error.to_string()),
                    ProviderEvent::End(end) => return (words, again, end.unwrap()),
                }
            }
        };
        let usage = json!({ "input": 5, "output": 2 });
        let good = json!({ "text": "{\"n\": 1}", "usage": usage });
        let (words, again, _) = said(json!([good])).await;
        assert_eq!((&*words, again.len()), ("{\"n\": 1}", 0));
        let bad = json!({ "text": "one", "usage": usage });
        let (words, again, reply) = said(json!([bad, good])).await;
        assert_eq!((&*words, reply.usage.input), ("{\"n\": 1}", 10), "told once, counted twice");
        assert!(again[0].contains("it is not JSON"), "{again:?}");
        let (words, again, _) = said(json!([bad, bad, good])).await;
        assert_eq!((&*words, again.len()), ("one", 1), "no third time");
    }
}
