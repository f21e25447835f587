//! The form that the answer to a task must have.

use std::sync::Arc;

use consort_agent::provider::ResponseSchema;
use consort_agent::{Ask, Model, Provider, Role, Said};
use consort_core::{Emitting, Json};
use consort_hub::{SchemaLimits, check_schema, check_value};
use serde_json::Value;

use crate::exit::{Exit, Failure};
use crate::output::escaped;

/// What providers are told the form is called.
const NAME: &str = "answer";

/// A form: a JSON Schema.
#[derive(Clone, Debug)]
pub(super) struct Output(Json);

impl Output {
    pub(super) fn new(schema: &Value) -> Result<Self, Failure> {
        let schema = Json::from(schema.clone());
        let wrong = |reason: String| {
            Failure::usage(format!(
                "`output` is not a schema that can be used: {}",
                escaped(&reason)
            ))
        };
        if schema.to_object().is_none() {
            return Err(wrong("it is not an object".to_owned()));
        }
        check_schema(&schema, &SchemaLimits::default()).map_err(wrong)?;
        Ok(Self(schema))
    }

    /// The same model, told of the form where it answers these words.
    pub(super) fn wanted_of(&self, model: Model, words: &str) -> Model {
        let form = ResponseSchema { name: NAME.to_owned(), schema: self.0.clone() };
        let provider = Formed { inner: model.provider, form, words: words.to_owned() };
        Model { provider: Arc::new(provider), ..model }
    }

    /// Whether an answer has the form.
    pub(super) fn check(&self, answer: &str) -> Result<(), Failure> {
        let wrong = |reason: &str| Failure {
            exit: Exit::Tool,
            ..Failure::usage(format!("the answer is not what the task wants: {}", escaped(reason)))
        };
        let json = Json::parse(bare(answer).to_owned())
            .map_err(|error| wrong(&format!("it is not JSON: {error}")))?;
        check_value(&self.0, &json, &SchemaLimits::default())
            .map_err(|problems| wrong(&problems.join("; ")))
    }
}

/// An answer without the fence that models like to put around JSON.
fn bare(answer: &str) -> &str {
    let answer = answer.trim();
    let fenced = answer.strip_prefix("```").and_then(|text| text.strip_suffix("```"));
    fenced.and_then(|text| text.split_once('\n')).map_or(answer, |(_, text)| text.trim())
}

/// A provider that is asked for a form.
struct Formed {
    inner: Arc<dyn Provider>,
    form: ResponseSchema,
    words: String,
}

impl Provider for Formed {
    fn ask(&self, mut ask: Ask) -> Emitting<Said> {
        // What servers ask of the model has nothing to do with the task.
        let mut said = ask.messages.iter().filter(|message| message.role == Role::User);
        if said.any(|message| message.text() == self.words) {
            ask.response = Some(self.form.clone());
        }
        self.inner.ask(ask)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use consort_agent::{Facts, Message};
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_is_checked_with_or_without_a_fence() {
        let schema = json!({ "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" } } });
        let output = Output::new(&schema).unwrap();
        for answer in [r#"{"n": 1}"#, " {\"n\":1}\n", "```json\n{\"n\": 1}\n```"] {
            assert_eq!(output.check(answer), Ok(()), "{answer}");
        }
        let failure = output.check(r#"{"n": "one"}"#).unwrap_err();
        assert_eq!(
            failure.message,
            "the answer is not what the task wants: at `/n`: \"one\" is not of type \"integer\""
        );
        assert!(output.check("one").unwrap_err().message.contains("it is not JSON"));
        assert!(Output::new(&json!("text")).is_err());
        assert!(Output::new(&json!({ "type": "nothing known" })).is_err());
    }

    #[test]
    fn only_the_task_is_asked_for_the_form() {
        #[derive(Default)]
        struct Seen(Mutex<Vec<bool>>);
        impl Provider for Seen {
            fn ask(&self, ask: Ask) -> Emitting<Said> {
                self.0.lock().unwrap().push(ask.response.is_some());
                Emitting::new(|_| std::future::pending())
            }
        }
        let seen = Arc::new(Seen::default());
        let provider = Arc::<Seen>::clone(&seen);
        let model =
            Model { id: String::new(), name: String::new(), provider, facts: Facts::default() };
        let model = Output::new(&json!({})).unwrap().wanted_of(model, "do it");
        for words in ["do it", "what a server asks"] {
            drop(model.provider.ask(Ask::new("", vec![Message::user(words)])));
        }
        assert_eq!(*seen.0.lock().unwrap(), [true, false]);
    }
}
