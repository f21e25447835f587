//! Properties of every request.

use proptest::prelude::*;
use serde_json::Value;

use super::sample::tools;
use crate::endpoint::ProviderEndpoint;
use crate::message::{
    ChatMessage, MediaSource, MessagePart, MessageRole, PartContent, ResourceContent, ToolCall,
    ToolCallResult,
};
use crate::request::ModelRequest;
use crate::wire_format::WireFormat;

fn part() -> impl Strategy<Value = MessagePart> {
    let text = prop::sample::select(vec!["", " ", "hi", "日本 🎻", "a\n"]).prop_map(str::to_owned);
    let id = prop::sample::select(vec!["1", "2", "a.b", "", "x"]).prop_map(str::to_owned);
    let arguments = prop::sample::select(vec!["", "{}", "{\"a\":1}", "[", "7"]);
    let opaque = prop::sample::select(vec![
        Value::Null,
        serde_json::json!({ "signature": "s", "thoughtSignature": "t", "encrypted_content": "e", "id": "i" }),
        serde_json::json!([1]),
    ]);
    let result = prop::collection::vec(text.clone().prop_map(MessagePart::text), 0..3);
    let kind = prop_oneof![
        4 => text.clone().prop_map(|text| PartContent::Text { text }),
        1 => text.clone().prop_map(|text| PartContent::Refusal { text }),
        1 => (text.clone(), any::<bool>())
            .prop_map(|(text, redacted)| PartContent::Thinking { text, redacted }),
        1 => text.clone().prop_map(|data| PartContent::Image(MediaSource::Data { mime: "image/png".into(), data })),
        1 => text.clone().prop_map(|url| PartContent::Audio(MediaSource::Url { url, mime: None })),
        1 => text.prop_map(|uri| PartContent::Resource(ResourceContent { uri, ..ResourceContent::default() })),
        1 => Just(PartContent::Foreign),
        5 => (id.clone(), arguments).prop_map(|(id, arguments)| {
            PartContent::ToolCall(ToolCall { id, name: "web.get_weather".into(), arguments: arguments.into() })
        }),
        5 => (id, result, any::<bool>())
            .prop_map(|(call, parts, is_error)| PartContent::ToolResult(ToolCallResult { call, parts, is_error })),
    ];
    (kind, opaque).prop_map(|(kind, opaque)| {
        let part = MessagePart::from(kind);
        if opaque.is_null() {
            return part;
        }
        WireFormat::ALL
            .iter()
            .fold(part, |part, wire| part.with_opaque(wire.as_str(), opaque.clone()))
    })
}

fn messages() -> impl Strategy<Value = Vec<ChatMessage>> {
    let role = prop::sample::select(vec![
        MessageRole::System,
        MessageRole::User,
        MessageRole::Assistant,
        MessageRole::Tool,
    ]);
    let message = (role, prop::collection::vec(part(), 0..5))
        .prop_map(|(role, parts)| ChatMessage::new(role, parts));
    prop::collection::vec(message, 0..8)
}

fn sent(wire: WireFormat, messages: Vec<ChatMessage>) -> Value {
    let request = ModelRequest { tools: tools(), ..ModelRequest::new("gemini-3-pro", messages) };
    let request = wire.request(&request, &ProviderEndpoint::new(wire.base_url()));
    serde_json::from_slice(&request.body).unwrap()
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Values of a member in all items of this type.
fn said<'a>(items: &'a [Value], kind: &str, name: &str) -> Vec<&'a Value> {
    items.iter().filter(|item| item["type"] == kind).map(|item| &item[name]).collect()
}

proptest! {
    #[test]
    fn on_chat_completions_every_call_is_answered_right_behind(messages in messages()) {
        let body = sent(WireFormat::OpenAiChat, messages);
        let mut open: Vec<&Value> = Vec::new();
        for message in list(&body, "messages") {
            if message["role"] == "tool" {
                prop_assert!(!open.is_empty());
                prop_assert_eq!(open.remove(0), &message["tool_call_id"]);
                continue;
            }
            prop_assert!(open.is_empty(), "{:?} before {}", open, message);
            prop_assert!(message["content"] != "" || message["role"] == "tool");
            open = list(message, "tool_calls").iter().map(|call| &call["id"]).collect();
        }
        prop_assert!(open.is_empty());
    }

    #[test]
    fn on_responses_every_call_has_one_output(messages in messages()) {
        let body = sent(WireFormat::OpenAiResponses, messages);
        let input = list(&body, "input");
        prop_assert_eq!(
            said(input, "function_call", "call_id"),
            said(input, "function_call_output", "call_id")
        );
        for item in input.iter().filter(|item| item["type"] == "reasoning" || item["type"] == "message") {
            prop_assert!(item.get("id").is_none());
        }
    }

    #[test]
    fn with_anthropic_speakers_alternate_and_results_come_first(messages in messages()) {
        let body = sent(WireFormat::Anthropic, messages);
        let mut open: Vec<&Value> = Vec::new();
        let mut last = &Value::Null;
        for message in list(&body, "messages") {
            prop_assert_ne!(&message["role"], last);
            last = &message["role"];
            let blocks = list(message, "content");
            prop_assert!(!blocks.is_empty());
            let results = said(blocks, "tool_result", "tool_use_id");
            prop_assert!(blocks[..results.len()].iter().all(|block| block["type"] == "tool_result"));
            prop_assert_eq!(results, open);
            open = said(blocks, "tool_use", "id");
            for text in said(blocks, "text", "text") {
                prop_assert!(!text.as_str().unwrap().trim().is_empty());
            }
        }
        prop_assert!(open.is_empty());
    }

    #[test]
    fn with_gemini_speakers_alternate_and_every_call_is_answered(messages in messages()) {
        let body = sent(WireFormat::Gemini, messages);
        let mut calls = 0;
        let mut last = &Value::Null;
        for content in list(&body, "contents") {
            prop_assert_ne!(&content["role"], last);
            last = &content["role"];
            let parts = list(content, "parts");
            prop_assert!(!parts.is_empty());
            let count = |name: &str| parts.iter().filter(|part| part.get(name).is_some()).count();
            prop_assert_eq!(count("functionResponse"), calls);
            calls = count("functionCall");
        }
        prop_assert_eq!(calls, 0);
    }

    #[test]
    fn what_is_kept_is_read_back(messages in messages()) {
        let kept = serde_json::to_string(&messages).unwrap();
        prop_assert_eq!(serde_json::from_str::<Vec<ChatMessage>>(&kept).unwrap(), messages);
    }
}
