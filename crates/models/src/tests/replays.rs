//! Responses of providers, stored in `recordings/`, read to their end.

use serde_json::{Value, json};

use super::sample::{read, refused};
use crate::*;

/// Reads a recording; returns its reply, and the text of its deltas.
fn replayed(wire: WireFormat, recording: &str) -> (ModelReply, String) {
    let (deltas, reply) = read(wire, recording);
    let words = deltas.iter().filter_map(|delta| match delta {
        ReplyDelta::Text(text) => Some(text.as_str()),
        _ => None,
    });
    (reply.unwrap(), words.collect())
}

#[test]
fn a_whole_answer_of_perplexity_has_its_words_in_the_message() {
    let recording = include_str!("recordings/perplexity-whole.json");
    let (reply, _) = replayed(WireFormat::OpenAiChat, recording);
    assert_eq!(reply.message.text(), "Norway has many fjords.[1]");
    assert_eq!((reply.stop, reply.usage.output), (StopReason::End, 9));
}

#[test]
fn what_a_stream_says_is_said_once_whatever_its_last_event_repeats() {
    for (wire, recording, text) in [
        (
            WireFormat::OpenAiChat,
            include_str!("recordings/perplexity-stream.sse"),
            "Norway has fjords.",
        ),
        (WireFormat::OpenAiChat, include_str!("recordings/final-message.sse"), "It is raining."),
        (
            WireFormat::OpenAiResponses,
            include_str!("recordings/responses-renumbered.sse"),
            "It is raining.",
        ),
    ] {
        let (reply, words) = replayed(wire, recording);
        assert_eq!((reply.message.text().as_str(), words.as_str()), (text, text));
        assert_eq!(reply.stop, StopReason::End);
    }
}

#[test]
fn a_message_behind_its_pieces_adds_what_they_did_not_say() {
    let piece = r#"{"choices":[{"index":0,"delta":{"content":"It is "}}]}"#;
    let last = json!({ "choices": [{ "index": 0, "finish_reason": "stop", "message": {
        "content": "It is raining.",
        "tool_calls": [{ "id": "c1", "function": { "name": "now", "arguments": "{}" } }],
    } }] });
    let body = super::sample::stream(&[piece, &last.to_string()]);
    let (reply, words) = replayed(WireFormat::OpenAiChat, &body);
    assert_eq!(
        (reply.message.text().as_str(), words.as_str()),
        ("It is raining.", "It is raining.")
    );
    let calls: Vec<_> = reply.message.calls().map(|call| call.arguments.as_str()).collect();
    assert_eq!(calls, ["{}"]);
}

#[test]
fn calls_that_say_nothing_are_none() {
    let recording = include_str!("recordings/snowflake-stream.sse");
    let (reply, _) = replayed(WireFormat::OpenAiChat, recording);
    assert_eq!(reply.message.text(), "Sunny today.");
    assert_eq!((reply.message.calls().count(), reply.stop), (0, StopReason::End));
}

#[test]
fn arguments_that_come_piece_by_piece_are_put_together() {
    let recording = include_str!("recordings/gemini-partial-arguments.sse");
    let (reply, _) = replayed(WireFormat::Gemini, recording);
    let calls: Vec<(&str, Value)> = reply
        .message
        .calls()
        .map(|call| (&*call.name, serde_json::from_str(call.arguments.as_str()).unwrap()))
        .collect();
    let whole = json!({ "location": "New Delhi", "days": [3], "metric": true });
    assert_eq!(calls, [("get_weather", whole), ("now", json!({}))]);
    assert_eq!(reply.stop, StopReason::ToolCalls);
}

#[test]
fn an_option_that_a_model_does_not_have_is_not_a_model_that_is_not_there() {
    let told = |error: Value| {
        let body = json!({ "error": error }).to_string();
        refused(WireFormat::OpenAiChat, 400, &[], &body).kind
    };
    for error in [
        json!({ "message": "Unsupported parameter: 'temperature' is not supported with this model.",
                "type": "invalid_request_error", "param": "temperature", "code": "unsupported_parameter" }),
        json!({ "message": "Unsupported value: 'reasoning_effort' does not support 'minimal' with this model; it is not supported.",
                "type": "invalid_request_error", "param": "reasoning_effort", "code": "unsupported_value" }),
        json!({ "message": "tool calling is not supported by this model", "type": "invalid_request_error" }),
        json!({ "message": "Thinking is not supported for the model claude-3-haiku" }),
        json!({ "message": "Unknown parameter: 'store' for model x", "param": "store" }),
    ] {
        assert_eq!(told(error.clone()), ProviderErrorKind::Invalid, "{error}");
    }
    for error in [
        json!({ "message": "The model `gpt-9` does not exist or you do not have access to it.",
                "type": "invalid_request_error", "param": null, "code": "model_not_found" }),
        json!({ "message": "The requested model is not supported.", "param": "model" }),
        json!({ "message": "Invalid model: sonar-x" , "code": 400 }),
    ] {
        assert!(matches!(told(error.clone()), ProviderErrorKind::UnknownModel { .. }), "{error}");
    }
}
