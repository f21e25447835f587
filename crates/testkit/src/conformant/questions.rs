//! The server's input requests, by tool or prompt.

#![expect(
    deprecated,
    reason = "both eras have sampling and roots, though the modern one deprecates them"
)]

use rmcp::model::{
    ClientCapabilities, CreateMessageRequest, CreateMessageRequestParams, ElicitRequest,
    ElicitRequestParams, InputRequest, InputRequests, JsonObject, ListRootsRequest,
    SamplingMessage,
};
use serde_json::{Value, json};

use super::dialogue::Dialogue;

/// The prompt that requests input before its result.
pub(super) const ASKING_PROMPT: &str = "test_input_required_result_prompt";

/// The dialogue of a tool that needs one.
pub(super) fn of_tool(
    name: &str,
    arguments: &JsonObject,
    capabilities: &ClientCapabilities,
) -> Option<Dialogue> {
    let text = |key: &str| arguments.get(key).and_then(Value::as_str).unwrap_or_default();
    let dialogue = match name {
        "test_sampling" => Dialogue::once([("answer", sampling(text("prompt")))]),
        "test_elicitation" => {
            let fields = json!({
                "username": { "type": "string", "description": "User's response" },
                "email": { "type": "string", "description": "User's email address" },
            });
            let schema = required(&fields, &["username", "email"]);
            Dialogue::once([("answer", form(text("message"), schema))])
        }
        "test_elicitation_sep1034_defaults" => {
            Dialogue::once([("answer", form("Please review the defaults", defaults()))])
        }
        "test_elicitation_sep1330_enums" => {
            Dialogue::once([("answer", form("Please choose", choices()))])
        }
        "test_streaming_elicitation" => {
            let schema = required(&json!({ "value": { "type": "string" } }), &["value"]);
            Dialogue::once([("streaming_elicitation", form("Provide a value", schema))])
        }
        "test_input_required_result_elicitation" | "test_tool_with_task" => {
            Dialogue::once([("user_name", name_form("What is your name?"))])
        }
        "test_input_required_result_sampling" => {
            Dialogue::once([("capital_question", sampling("What is the capital of France?"))])
        }
        "test_input_required_result_list_roots" => Dialogue::once([("client_roots", roots())]),
        "test_input_required_result_request_state"
        | "test_input_required_result_tampered_state" => {
            let schema = required(&json!({ "ok": { "type": "boolean" } }), &["ok"]);
            Dialogue::with_state(vec![[("confirm", form("Please confirm", schema))]])
        }
        "test_input_required_result_multiple_inputs" => Dialogue::with_state(vec![[
            ("user_name", name_form("What is your name?")),
            ("greeting", sampling("Generate a greeting")),
            ("client_roots", roots()),
        ]]),
        "test_input_required_result_multi_round" => {
            let color = required(&json!({ "color": { "type": "string" } }), &["color"]);
            Dialogue::with_state(vec![
                [("step1", name_form("Step 1: What is your name?"))],
                [("step2", form("Step 2: What is your favorite color?", color))],
            ])
        }
        "test_input_required_result_capabilities" => Dialogue::of(suitable(capabilities)),
        _ => return None,
    };
    Some(dialogue)
}

/// The dialogue of [`ASKING_PROMPT`].
pub(super) fn of_prompt() -> Dialogue {
    let schema = required(&json!({ "context": { "type": "string" } }), &["context"]);
    Dialogue::once([("user_context", form("What context should the prompt use?", schema))])
}

/// An elicitation with fields for the user.
pub(super) fn form(message: &str, schema: Value) -> InputRequest {
    InputRequest::Elicitation(ElicitRequest::new(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message.to_owned(),
        requested_schema: serde_json::from_value(schema).expect("it is a schema for forms"),
    }))
}

/// A schema with these fields, of which some are required.
pub(super) fn required(fields: &Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": fields, "required": required })
}

fn name_form(message: &str) -> InputRequest {
    form(message, required(&json!({ "name": { "type": "string" } }), &["name"]))
}

fn sampling(prompt: &str) -> InputRequest {
    let messages = vec![SamplingMessage::user_text(prompt)];
    InputRequest::CreateMessage(CreateMessageRequest::new(CreateMessageRequestParams::new(
        messages, 100,
    )))
}

fn roots() -> InputRequest {
    InputRequest::ListRoots(ListRootsRequest::default())
}

/// One question of each kind that the client supports.
fn suitable(capabilities: &ClientCapabilities) -> InputRequests {
    let mut questions = InputRequests::new();
    if capabilities.elicitation.is_some() {
        questions.insert("user_name".to_owned(), name_form("What is your name?"));
    }
    if capabilities.sampling.is_some() {
        questions.insert("greeting".to_owned(), sampling("Generate a greeting"));
    }
    if capabilities.roots.is_some() {
        questions.insert("client_roots".to_owned(), roots());
    }
    questions
}

/// One field of each type, each with a default (SEP-1034).
fn defaults() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "default": "John Doe" },
            "age": { "type": "integer", "default": 30 },
            "score": { "type": "number", "default": 95.5 },
            "status": {
                "type": "string",
                "enum": ["active", "inactive", "pending"],
                "default": "active",
            },
            "verified": { "type": "boolean", "default": true },
        },
    })
}

/// Each way to define an enum (SEP-1330).
fn choices() -> Value {
    let names = json!(["option1", "option2", "option3"]);
    let titled = |word: &str| {
        json!([
            { "const": "value1", "title": format!("First {word}") },
            { "const": "value2", "title": format!("Second {word}") },
            { "const": "value3", "title": format!("Third {word}") },
        ])
    };
    json!({
        "type": "object",
        "properties": {
            "untitledSingle": { "type": "string", "enum": names },
            "titledSingle": { "type": "string", "oneOf": titled("Option") },
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": { "type": "array", "items": { "type": "string", "enum": names } },
            "titledMulti": { "type": "array", "items": { "anyOf": titled("Choice") } },
        },
    })
}
