//! Pending requests for a person, and their answers.

use consort_core::Json;
use consort_hub::{SchemaLimits, check_value};
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::pending_requests::Question;
use crate::route::{Asked, Done, Nothing, Refusal, Route, Told, get, post};
use crate::state::Console;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        get("/api/questions", "Every question that waits for a person.", list),
        post("/api/questions/{id}", "Answers one.", answer),
    ]
}

async fn list(console: Console, _: Asked, _: Nothing) -> Result<Told<Vec<Question>>, Refusal> {
    Ok(Told(console.0.desk.waiting()))
}

/// Answer of a person.
#[derive(Deserialize, JsonSchema)]
struct Said {
    action: Action,
    /// Form values, if accepted.
    #[serde(default)]
    content: Option<Map<String, Value>>,
}

/// Action, as in MCP elicitation.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Action {
    Accept,
    Decline,
    Cancel,
}

async fn answer(console: Console, asked: Asked, said: Said) -> Result<Done, Refusal> {
    let desk = &console.0.desk;
    let gone = || {
        let refusal = Refusal::missing("no such question waits");
        refusal.hint("it was answered elsewhere, or nobody waits for the answer any more")
    };
    let id = asked.at.first().map(String::as_str).unwrap_or_default();
    let question = desk.get(id).ok_or_else(gone)?;
    let mut answer = json!({ "action": said.action });
    if said.action == Action::Accept {
        let content = Value::Object(said.content.unwrap_or_default());
        if let Some(schema) = &question.schema {
            let wrong = |errors: Vec<String>| {
                let error = format!("the answer does not fit: {}", errors.join("; "));
                Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, error)
            };
            let (schema, filled) = (written(schema), written(&content));
            // The schema is a server's: it is compiled beside what serves others.
            let checked = tokio::task::spawn_blocking(move || {
                check_value(&schema, &filled, &SchemaLimits::default())
            });
            let failed = |_| vec!["it cannot be checked".to_owned()];
            checked.await.map_err(failed).flatten().map_err(wrong)?;
            answer["content"] = content;
        }
    }
    desk.settle(id, Ok(written(&answer))).then(Done::default).ok_or_else(gone)
}

fn written(value: &Value) -> Json {
    Json::parse(value.to_string()).expect("it was JSON before")
}
