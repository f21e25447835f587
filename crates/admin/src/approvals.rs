//! Pending requests for a person, and their answers.

use consort_core::{Json, Rights};
use consort_hub::{SchemaLimits, check_value};
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::pending_requests::PendingRequest;
use crate::route::{
    AdminError, ApiRoute, EmptyResponse, JsonResponse, NoInput, RequestContext, get, post,
};
use crate::state::AdminState;

pub(crate) fn routes() -> Vec<ApiRoute> {
    vec![
        get(
            "/api/pending-requests",
            "Lists pending requests for a user: approvals, elicitations, sampling.",
            list,
        )
        .for_rights(Rights::Admin),
        post("/api/pending-requests/{id}", "Answers a pending request.", answer)
            .for_rights(Rights::Admin),
    ]
}

async fn list(
    state: AdminState,
    context: RequestContext,
    _: NoInput,
) -> Result<JsonResponse<Vec<PendingRequest>>, AdminError> {
    Ok(JsonResponse(state.0.pending.entries(&context.caller()?)))
}

/// Answer of a person.
#[derive(Deserialize, JsonSchema)]
struct ElicitationAnswer {
    action: ElicitationAction,
    /// Form values, if accepted.
    #[serde(default)]
    content: Option<Map<String, Value>>,
}

/// Action, as in MCP elicitation.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ElicitationAction {
    Accept,
    Decline,
    Cancel,
}

async fn answer(
    state: AdminState,
    context: RequestContext,
    input: ElicitationAnswer,
) -> Result<EmptyResponse, AdminError> {
    let pending = &state.0.pending;
    let gone = || {
        let refusal = AdminError::not_found("unknown request");
        refusal.hint("it was answered elsewhere, or its call ended")
    };
    let id = context.at.first().map(String::as_str).unwrap_or_default();
    let caller = context.caller()?;
    let request = pending.get(id).filter(|request| request.is_for(&caller)).ok_or_else(gone)?;
    let mut answer = json!({ "action": input.action });
    if input.action == ElicitationAction::Accept {
        let content = Value::Object(input.content.unwrap_or_default());
        if let Some(schema) = &request.schema {
            let wrong = |errors: Vec<String>| {
                let error =
                    format!("the response does not match the request: {}", errors.join("; "));
                AdminError::new(StatusCode::UNPROCESSABLE_ENTITY, error)
            };
            let (schema, filled) = (to_json(schema), to_json(&content));
            // The schema is a server's: it is compiled beside what serves others.
            let checked = tokio::task::spawn_blocking(move || {
                check_value(&schema, &filled, &SchemaLimits::default())
            });
            let failed = |_| vec!["it cannot be validated".to_owned()];
            checked.await.map_err(failed).flatten().map_err(wrong)?;
            answer["content"] = content;
        }
    }
    pending.answer(id, Ok(to_json(&answer))).then(EmptyResponse::default).ok_or_else(gone)
}

fn to_json(value: &Value) -> Json {
    Json::parse(value.to_string()).expect("it was JSON before")
}
