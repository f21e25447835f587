//! The server's tools, prompts, resources and templates.

use rmcp::model::{JsonObject, Prompt, PromptArgument, Resource, ResourceTemplate, Tool};
use serde_json::{Value, json};

use super::questions::ASKING_PROMPT;

/// The tool whose argument is also sent in a header.
pub(super) const HEADER_TOOL: &str = "test_custom_header";

/// The resource that the suite subscribes to.
pub(super) const WATCHED: &str = "test://watched-resource";

/// The tools that the suite calls to test tasks.
pub(super) const TASKS: &[&str] = &[
    "greet",
    "slow_compute",
    "failing_job",
    "protocol_error_job",
    "confirm_delete",
    "multi_input",
    "test_tool_with_task",
];

/// Tools without arguments.
const PLAIN: &[(&str, &str)] = &[
    ("test_simple_text", "Answers with a text"),
    ("test_image_content", "Answers with an image"),
    ("test_audio_content", "Answers with a sound"),
    ("test_embedded_resource", "Answers with a resource"),
    ("test_multiple_content_types", "Answers with a text, an image and a resource"),
    ("test_tool_with_logging", "Logs three times"),
    ("test_tool_with_progress", "Tells three times how far it is"),
    ("test_error_handling", "Fails"),
    ("test_elicitation_sep1034_defaults", "Asks the user, with defaults"),
    ("test_elicitation_sep1330_enums", "Has the user choose"),
    ("test_reconnection", "Takes long enough to lose the connection"),
    ("test_missing_capability", "Needs a client with a model"),
    ("test_streaming_elicitation", "Asks the user for a value"),
    ("test_logging_tool", "Logs if the client wants to hear it"),
    ("test_trigger_tool_change", "Tells that the tools changed"),
    ("test_trigger_prompt_change", "Tells that the prompts changed"),
    ("test_input_required_result_elicitation", "Asks the user for a name"),
    ("test_input_required_result_sampling", "Asks the client's model"),
    ("test_input_required_result_list_roots", "Asks for the client's roots"),
    ("test_input_required_result_request_state", "Asks, and has its state brought back"),
    ("test_input_required_result_multiple_inputs", "Asks three things at once"),
    ("test_input_required_result_multi_round", "Asks twice"),
    ("test_input_required_result_tampered_state", "Asks, and trusts no state but its own"),
    ("test_input_required_result_capabilities", "Asks what the client can answer"),
    ("failing_job", "Fails, as a task"),
    ("protocol_error_job", "Breaks, as a task"),
    ("multi_input", "Asks two things at once, as a task"),
    ("test_tool_with_task", "Asks, then works as a task"),
];

/// The tools after this many changes: each adds one.
pub(super) fn changed_tools(changes: usize) -> Vec<Tool> {
    let mut tools = tools();
    let new = |n| Tool::new(format!("change_{n}"), "Is new", object(json!({ "type": "object" })));
    tools.extend((1..=changes).map(new));
    tools
}

/// The prompts after this many changes: each adds one.
pub(super) fn changed_prompts(changes: usize) -> Vec<Prompt> {
    let mut prompts = prompts();
    prompts.extend((1..=changes).map(|n| Prompt::new(format!("change_{n}"), Some("Is new"), None)));
    prompts
}

pub(super) fn tools() -> Vec<Tool> {
    let text = json!({ "type": "string" });
    let number = json!({ "type": "number" });
    let mut tools: Vec<Tool> =
        PLAIN.iter().map(|(name, about)| tool(name, about, &json!({}), &[])).collect();
    tools.extend([
        tool("test_sampling", "Asks the client's model", &json!({ "prompt": text }), &["prompt"]),
        tool("test_elicitation", "Asks the user", &json!({ "message": text }), &["message"]),
        tool(
            HEADER_TOOL,
            "Says its argument, which goes along in a header",
            &json!({ "value": { "type": "string", "x-mcp-header": "Value" } }),
            &["value"],
        ),
        Tool::new("json_schema_2020_12_tool", "Has a demanding schema", object(demanding())),
        tool("greet", "Greets", &json!({ "name": text }), &["name"]),
        tool(
            "slow_compute",
            "Takes its time, as a task where it can",
            &json!({ "seconds": number, "label": text }),
            &[],
        ),
        tool("confirm_delete", "Asks, as a task", &json!({ "filename": text }), &[]),
    ]);
    tools
}

pub(super) fn prompts() -> Vec<Prompt> {
    let argument = |name: &str, required| PromptArgument::new(name).with_required(required);
    vec![
        Prompt::new("test_simple_prompt", Some("Has no arguments"), None),
        Prompt::new(
            "test_prompt_with_arguments",
            Some("Says its arguments"),
            Some(vec![argument("arg1", true), argument("arg2", false)]),
        ),
        Prompt::new(
            "test_prompt_with_embedded_resource",
            Some("Contains a resource"),
            Some(vec![argument("resourceUri", true)]),
        ),
        Prompt::new("test_prompt_with_image", Some("Contains an image"), None),
        Prompt::new(ASKING_PROMPT, Some("Asks the user for its context"), None),
    ]
}

pub(super) fn resources() -> Vec<Resource> {
    vec![
        Resource::new("test://static-text", "static-text").with_mime_type("text/plain"),
        Resource::new("test://static-binary", "static-binary").with_mime_type("image/png"),
        Resource::new(WATCHED, "watched").with_mime_type("text/plain"),
    ]
}

pub(super) fn templates() -> Vec<ResourceTemplate> {
    let template = ResourceTemplate::new("test://template/{id}/data", "data");
    vec![template.with_mime_type("application/json")]
}

fn tool(name: &'static str, about: &'static str, properties: &Value, required: &[&str]) -> Tool {
    let mut schema = object(json!({ "type": "object", "properties": properties }));
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    Tool::new(name, about, schema)
}

/// The suite's own schema, with everything that SEP-1613 and SEP-2106 require to be preserved.
fn demanding() -> Value {
    let text = json!({ "type": "string" });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": text, "city": text },
            },
        },
        "properties": {
            "name": text,
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": text,
            "email": text,
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": {
            "properties": { "contactMethod": { "const": "phone" } },
            "required": ["contactMethod"],
        },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        other => unreachable!("{other} is no object"),
    }
}
