//! Properties of every request.

use proptest::prelude::*;
use serde_json::Value;

use super::sample::tools;
use crate::endpoint::Endpoint;
use crate::message::{Call, CallResult, Kind, Media, Message, Part, Resource, Role};
use crate::request::Ask;
use crate::wire_format::Wire;

fn part() -> impl Strategy<Value = Part> {
    let text = prop::sample::select(vec!["", " ", "hi", "日本 🎻", "a\n"]).prop_map(str::to_owned);
    let id = prop::sample::select(vec!["1", "2", "a.b", "", "x"]).prop_map(str::to_owned);
    let arguments = prop::sample::select(vec!["", "{}", "{\"a\":1}", "[", "7"]);
    let opaque = prop::sample::select(vec![
        Value::Null,
        serde_json::json!({ "signature": "s", "thoughtSignature": "t", "encrypted_content": "e", "id": "i" }),
        serde_json::json!([1]),
    ]);
    let result = prop::collection::vec(text.clone().prop_map(Part::text), 0..3);
    let kind = prop_oneof![
        4 => text.clone().prop_map(|text| Kind::Text { text }),
        1 => text.clone().prop_map(|text| Kind::Refusal { text }),
        1 => (text.clone(), any::<bool>())
            .prop_map(|(text, redacted)| Kind::Thinking { text, redacted }),
        1 => text.clone().prop_map(|data| Kind::Image(Media::Data { mime: "image/png".into(), data })),
        1 => text.clone().prop_map(|url| Kind::Audio(Media::Url { url, mime: None })),
        1 => text.prop_map(|uri| Kind::Resource(Resource { uri, ..Resource::default() })),
        1 => Just(Kind::Foreign),
        5 => (id.clone(), arguments).prop_map(|(id, arguments)| {
            Kind::ToolCall(Call { id, name: "web.get_weather".into(), arguments: arguments.into() })
        }),
        5 => (id, result, any::<bool>())
            .prop_map(|(call, parts, is_error)| Kind::ToolResult(CallResult { call, parts, is_error })),
    ];
    (kind, opaque).prop_map(|(kind, opaque)| {
        let part = Part::from(kind);
        if opaque.is_null() {
            return part;
        }
        Wire::ALL.iter().fold(part, |part, wire| part.with_opaque(wire.as_str(), opaque.clone()))
    })
}

fn messages() -> impl Strategy<Value = Vec<Message>> {
    let role = prop::sample::select(vec![Role::System, Role::User, Role::Assistant, Role::Tool]);
    let message = (role, prop::collection::vec(part(), 0..5))
        .prop_map(|(role, parts)| Message::new(role, parts));
    prop::collection::vec(message, 0..8)
}

fn sent(wire: Wire, messages: Vec<Message>) -> Value {
    let ask = Ask { tools: tools(), ..Ask::new("gemini-3-pro", messages) };
    let request = wire.request(&ask, &Endpoint::new(wire.base_url()));
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
        let body = sent(Wire::OpenAiChat, messages);
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
        let body = sent(Wire::OpenAiResponses, messages);
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
        let body = sent(Wire::Anthropic, messages);
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
        let body = sent(Wire::Gemini, messages);
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
        prop_assert_eq!(serde_json::from_str::<Vec<Message>>(&kept).unwrap(), messages);
    }
}
