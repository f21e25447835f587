//! Parsing of requests, and errors.

use serde_json::{Value, json};

use super::super::*;
use super::responses;
use crate::step::{RunReport, RunStatus};
use consort_models::{
    MediaSource, MessagePart, MessageRole, PartContent, ReasoningEffort, ToolCallResult,
};

#[test]
fn everything_a_client_may_say_is_read() {
    let body = json!({
        "model": "helper", "temperature": 0.5, "max_completion_tokens": 9, "max_tokens": 8, "stop": "end",
        "reasoning_effort": "low", "parallel_tool_calls": false, "seed": 1, "user": "u", "top_p": 1,
        "tool_choice": { "type": "function", "function": { "name": "beep" } },
        "messages": [
            { "role": "developer", "content": "be brief" },
            { "role": "user", "name": "ada", "content": [
                { "type": "text", "text": "look" },
                { "type": "image_url", "image_url": { "url": "data:image/png;base64,aQ==", "detail": "low" } },
                { "type": "image_url", "image_url": { "url": "https://a.example/b.png" } },
                { "type": "input_audio", "input_audio": { "data": "aQ==", "format": "wav" } },
                { "type": "file", "file": { "filename": "a.pdf", "file_data": "data:application/pdf;base64,aQ==" } },
            ]},
            { "role": "assistant", "content": null, "tool_calls": [
                { "id": "1", "type": "function", "function": { "name": "beep", "arguments": "{}" } },
                { "id": "2", "type": "function", "function": { "name": "beep", "arguments": "{}" } },
            ]},
            { "role": "tool", "tool_call_id": "1", "content": "one" },
            { "role": "tool", "tool_call_id": "2", "content": [{ "type": "text", "text": "two" }] },
        ],
    });
    let asked = ApiRequest::parse(ApiFormat::Chat, body.to_string().as_bytes()).unwrap();
    let result = |call: &str, text: &str| ToolCallResult {
        call: call.into(),
        parts: vec![MessagePart::text(text)],
        is_error: false,
    };
    assert_eq!(asked.messages.len(), 4);
    assert_eq!(asked.messages[0], ChatMessage::system("be brief"));
    let image = MediaSource::Data { mime: "image/png".into(), data: "aQ==".into() };
    assert_eq!(asked.messages[1].parts[1].content, PartContent::Image(image));
    assert_eq!(asked.messages[3], ChatMessage::results([result("1", "one"), result("2", "two")]));
    assert_eq!((asked.max_tokens, asked.temperature), (Some(9), Some(0.5)));
    assert_eq!(asked.reasoning, Some(ReasoningAmount::Effort(ReasoningEffort::Low)));
    let wishes = RequestOptions {
        tool_choice: ToolChoice::Named("beep".into()),
        parallel_calls: ParallelCalls::One,
        stop: vec!["end".into()],
        response_schema: None,
    };
    assert_eq!(asked.options, wishes);
}

#[test]
fn what_a_response_showed_of_our_calls_is_read_back() {
    let input = json!([
        { "role": "user", "content": "go" },
        { "type": "reasoning", "id": "r", "summary": [] },
        { "type": "message", "id": "m", "role": "assistant", "status": "completed",
          "content": [{ "type": "output_text", "text": "Let me look.", "annotations": [] }] },
        { "type": "mcp_call", "id": "mcp_1", "server_label": "files", "name": "read", "arguments": "{}", "output": "ok" },
        { "type": "function_call", "id": "fc_2", "call_id": "2", "name": "beep", "arguments": "{}" },
        { "type": "function_call_output", "call_id": "2", "output": "beeped" },
    ]);
    let asked = responses(&json!({ "input": input, "instructions": "be brief" }));
    let kinds: Vec<(MessageRole, usize)> =
        asked.messages.iter().map(|message| (message.role, message.parts.len())).collect();
    let expected = [
        (MessageRole::System, 1),
        (MessageRole::User, 1),
        (MessageRole::Assistant, 2),
        (MessageRole::Tool, 1),
        (MessageRole::Assistant, 1),
        (MessageRole::Tool, 1),
    ];
    assert_eq!(kinds, expected);
    assert_eq!(asked.echoed, json!({ "instructions": "be brief" }));
}

#[test]
fn what_is_wrong_with_a_request_is_told() {
    let wrong = |format, body: Value| {
        let error = ApiRequest::parse(format, body.to_string().as_bytes()).unwrap_err();
        format!("{} {} {}", error.status, error.param.clone().unwrap_or_default(), error)
    };
    let said = json!([{ "role": "user", "content": "go" }]);
    let told = [
        wrong(ApiFormat::Chat, json!([])),
        wrong(ApiFormat::Chat, json!({ "messages": said })),
        wrong(ApiFormat::Chat, json!({ "model": 1, "messages": said })),
        wrong(ApiFormat::Chat, json!({ "model": "a", "messages": [] })),
        wrong(ApiFormat::Chat, json!({ "model": "a", "messages": [{ "role": "robot" }] })),
        wrong(ApiFormat::Chat, json!({ "model": "a", "messages": [{ "role": "user" }] })),
        wrong(
            ApiFormat::Chat,
            json!({ "model": "a", "messages": [{ "role": "user", "content": [{ "type": "image_url", "image_url": { "url": "data:oops" } }] }] }),
        ),
        wrong(ApiFormat::Chat, json!({ "model": "a", "messages": said, "n": 2 })),
        wrong(ApiFormat::Chat, json!({ "model": "a", "messages": said, "stream": "yes" })),
        wrong(
            ApiFormat::Chat,
            json!({ "model": "a", "messages": said, "tools": [{ "type": "custom" }] }),
        ),
        wrong(
            ApiFormat::Responses,
            json!({ "model": "a", "input": "go", "previous_response_id": "resp_1" }),
        ),
        wrong(
            ApiFormat::Responses,
            json!({ "model": "a", "input": [{ "type": "item_reference", "id": "x" }] }),
        ),
        wrong(
            ApiFormat::Responses,
            json!({ "model": "a", "input": "go", "tools": [{ "type": "web_search" }] }),
        ),
    ];
    insta::assert_snapshot!(told.join("\n"), @r##"
400  the body must be an object
400 model `model` is missing
400 model `model` must be a string
400 messages `messages` must not be empty
400 messages[0].role `messages[0].role` must be `system`, `developer`, `user`, `assistant` or `tool`
400 messages[0].content `messages[0].content` is missing
400 messages[0].content[0].image_url.url `messages[0].content[0].image_url.url` is not a data URL: expected `data:image/png;base64,` and base64 data
400 n only `n` = 1 is supported
400 stream `stream` must be a boolean
400 tools[0] `tools[0]` must be of type `function`
400 previous_response_id `previous_response_id` is not supported: responses are not stored; send the whole conversation as `input`
400 input[0] `input[0]` cannot be resolved: responses are not stored; send the whole conversation as `input`
400 tools[0] `tools[0]` must be of type `function`: built-in tools are configured in the gateway
"##);
}

#[test]
fn whose_fault_it_is_decides_the_status() {
    use consort_models::{ProviderError, ProviderErrorKind};
    let report = RunReport {
        run: String::new(),
        status: RunStatus::Error,
        reason: "no".into(),
        hint: None,
        text: String::new(),
        turns: 1,
        calls: 2,
        failed_calls: 0,
        usage: consort_models::TokenUsage::default(),
        cost: None,
        duration_ms: 0,
        open_questions: Vec::new(),
    };
    let status = |cause| {
        let error = ProviderError::new(cause, "");
        ApiError::from_run(&report, Some(&error)).status
    };
    assert_eq!(status(ProviderErrorKind::Authentication { variable: None }), 502);
    assert_eq!(status(ProviderErrorKind::RateLimited), 429);
    assert_eq!(status(ProviderErrorKind::ContextTooLong { limit: None, requested: None }), 400);
    assert_eq!(status(ProviderErrorKind::UnknownModel { model: "m".into() }), 404);
    assert_eq!(status(ProviderErrorKind::Overloaded), 503);
    let error = ApiError::from_run(&report, None);
    assert_eq!((error.status, error.has_side_effects), (500, true));
    let shape = json!({ "error": { "message": "no", "type": "server_error", "param": null, "code": null } });
    assert_eq!(error.json(), shape);
}
