//! Results of tools, prompts and resources once all input is known.

use rmcp::ErrorData;
use rmcp::model::{
    AudioContent, CallToolResult, ContentBlock, GetPromptResult, ImageContent, JsonObject,
    PromptMessage, ReadResourceResult, ResourceContents, Role,
};
use serde_json::{Value, json};

/// A red pixel, as PNG.
const IMAGE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8/5+hHgAHggJ/PchI7wAAAABJRU5ErkJggg==";

/// No sound, as WAV.
const AUDIO: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";

pub(super) fn said(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

/// The result of a tool that needs no input, if it is one.
pub(super) fn of_tool(name: &str, arguments: &JsonObject) -> Option<CallToolResult> {
    let text = |key: &str| arguments.get(key).and_then(Value::as_str);
    let image = || ContentBlock::image(IMAGE, "image/png");
    let result = match name {
        "test_simple_text" => said("This is a simple text response for testing."),
        "test_image_content" => CallToolResult::success(vec![image()]),
        "test_audio_content" => {
            let audio = ContentBlock::Audio(AudioContent::new(AUDIO, "audio/wav"));
            CallToolResult::success(vec![audio])
        }
        "test_embedded_resource" => CallToolResult::success(vec![resource(
            "test://embedded-resource",
            "text/plain",
            "This is an embedded resource content.",
        )]),
        "test_multiple_content_types" => CallToolResult::success(vec![
            ContentBlock::text("Multiple content types test:"),
            image(),
            resource(
                "test://mixed-content-resource",
                "application/json",
                r#"{"test":"data","value":123}"#,
            ),
        ]),
        "test_error_handling" => CallToolResult::error(vec![ContentBlock::text(
            "This tool intentionally returns an error for testing",
        )]),
        "json_schema_2020_12_tool" => said(Value::Object(arguments.clone()).to_string()),
        super::offers::HEADER_TOOL => said(text("value").unwrap_or_default()),
        "greet" => said(format!("Hello, {}!", text("name").unwrap_or("nobody"))),
        _ => return None,
    };
    Some(result)
}

/// The result of a tool whose input requests are answered.
pub(super) fn of_answers(name: &str, answers: &JsonObject) -> CallToolResult {
    let content = |key: &str, field: &str| {
        let found = answers.get(key).and_then(|answer| answer["content"][field].as_str());
        found.unwrap_or("nobody").to_owned()
    };
    match name {
        "test_sampling" => said(format!("LLM response: {}", content("answer", "text"))),
        "test_elicitation"
        | "test_elicitation_sep1034_defaults"
        | "test_elicitation_sep1330_enums" => {
            let answer = answers.get("answer").unwrap_or(&Value::Null);
            let action = answer["action"].as_str().unwrap_or_default();
            said(format!("User response: action={action}, content={}", answer["content"]))
        }
        "test_input_required_result_elicitation" => {
            said(format!("Hello, {}!", content("user_name", "name")))
        }
        "test_input_required_result_sampling" => {
            said(format!("Sampling response: {}", content("capital_question", "text")))
        }
        "test_input_required_result_request_state"
        | "test_input_required_result_tampered_state" => said("Confirmed: state-ok"),
        _ => said(format!("Answers: {}", Value::Object(answers.clone()))),
    }
}

/// The result of a prompt that needs no input.
pub(super) fn of_prompt(name: &str, arguments: &JsonObject) -> Result<GetPromptResult, ErrorData> {
    let text = |key: &str| arguments.get(key).and_then(Value::as_str).unwrap_or_default();
    let messages = match name {
        "test_simple_prompt" => {
            vec![PromptMessage::new_text(Role::User, "This is a simple prompt for testing.")]
        }
        "test_prompt_with_arguments" => {
            let said =
                format!("Prompt with arguments: arg1='{}', arg2='{}'", text("arg1"), text("arg2"));
            vec![PromptMessage::new_text(Role::User, said)]
        }
        "test_prompt_with_embedded_resource" => {
            let content = "Embedded resource content for testing.";
            let resource = resource(text("resourceUri"), "text/plain", content);
            let request = "Please process the embedded resource above.";
            vec![
                PromptMessage::new(Role::User, resource),
                PromptMessage::new_text(Role::User, request),
            ]
        }
        "test_prompt_with_image" => {
            let image = ContentBlock::Image(ImageContent::new(IMAGE, "image/png"));
            let request = "Please analyze the image above.";
            vec![
                PromptMessage::new(Role::User, image),
                PromptMessage::new_text(Role::User, request),
            ]
        }
        _ => return Err(ErrorData::invalid_params(format!("unknown prompt `{name}`"), None)),
    };
    Ok(GetPromptResult::new(messages))
}

/// The contents of a resource.
pub(super) fn of_resource(uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
    let contents = match (uri, id) {
        (_, Some(id)) => {
            let data =
                json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
            texts(uri, "application/json", &data.to_string())
        }
        ("test://static-text", _) => {
            texts(uri, "text/plain", "This is the content of the static text resource.")
        }
        (super::offers::WATCHED, _) => texts(uri, "text/plain", "Nothing has changed."),
        ("test://static-binary", _) => ResourceContents::BlobResourceContents {
            uri: uri.to_owned(),
            mime_type: Some("image/png".to_owned()),
            blob: IMAGE.to_owned(),
            meta: None,
        },
        _ => {
            let which = json!({ "uri": uri });
            return Err(ErrorData::resource_not_found("no such resource", Some(which)));
        }
    };
    Ok(ReadResourceResult::new(vec![contents]))
}

fn resource(uri: &str, kind: &str, text: &str) -> ContentBlock {
    ContentBlock::resource(texts(uri, kind, text))
}

fn texts(uri: &str, kind: &str, text: &str) -> ResourceContents {
    ResourceContents::TextResourceContents {
        uri: uri.to_owned(),
        mime_type: Some(kind.to_owned()),
        text: text.to_owned(),
        meta: None,
    }
}
