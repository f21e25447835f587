//! Gemini, checked against its documentation.

use serde_json::{Value, json};

use crate::message::{ChatMessage, MessageRole, PartContent};
use crate::tests::sample::{body, call, conversation, read, refused, stream, tools, written_out};
use crate::*;

const WIRE: WireFormat = WireFormat::Gemini;

fn chunk(parts: &str, more: &str) -> String {
    format!(
        r#"{{"candidates":[{{"content":{{"parts":[{parts}],"role":"model"}},"index":0{more}}}],"usageMetadata":{{"promptTokenCount":8,"candidatesTokenCount":5,"thoughtsTokenCount":6,"cachedContentTokenCount":4,"totalTokenCount":19}},"modelVersion":"gemini-3-pro","responseId":"r1"}}"#
    )
}

const CALL: &str = r#"{"functionCall":{"id":"f1","name":"get_weather","args":{"city": "Tromsø", "a": 1.0}},"thoughtSignature":"c2ln"}"#;

/// A thinking summary, text and two calls, the first of them signed.
pub(crate) fn everything() -> String {
    let chunks = [
        chunk(r#"{"text":"Let me ","thought":true}"#, ""),
        chunk(r#"{"text":"see.","thought":true}"#, ""),
        chunk(r#"{"text":"Grüße "}"#, ""),
        chunk(r#"{"text":"🎻"}"#, ""),
        chunk(&format!(r#"{CALL},{{"functionCall":{{"name":"now"}}}}"#), ""),
        chunk(r#"{"text":""}"#, r#","finishReason":"STOP""#),
    ];
    stream(&chunks.iter().map(String::as_str).collect::<Vec<_>>()).replace('\n', "\r\n")
}

#[test]
fn words_thoughts_and_calls_are_read() {
    let (deltas, reply) = read(WIRE, &everything());
    let reply = reply.unwrap();
    assert_eq!(
        deltas[1..3],
        [ReplyDelta::Thinking("Let me ".into()), ReplyDelta::Thinking("see.".into())]
    );
    let calls: Vec<_> = reply
        .message
        .calls()
        .map(|call| (&*call.id, &*call.name, call.arguments.as_str()))
        .collect();
    assert_eq!(
        calls,
        [("f1", "get_weather", "{\"city\": \"Tromsø\", \"a\": 1.0}"), ("call_0_1", "now", "{}")]
    );
    assert_eq!(reply.message.text(), "Grüße 🎻");
    let usage = TokenUsage { input: 8, output: 11, cached_read: 4, cached_write: 0, reasoning: 6 };
    assert_eq!(
        (reply.stop, reply.usage, &*reply.model, &*reply.id),
        (StopReason::ToolCalls, usage, "gemini-3-pro", "r1")
    );
}

#[test]
fn a_list_of_chunks_and_an_answer_at_once_are_read_alike() {
    let one = chunk(r#"{"text":"Hi"}"#, r#","finishReason":"STOP""#);
    let whole = read(WIRE, &one).1.unwrap();
    let list = format!("[{},\n{}]", chunk(r#"{"text":"H"}"#, ""), one.replace("\"Hi\"", "\"i\""));
    assert_eq!(read(WIRE, &list).1.unwrap(), whole);
    assert_eq!(whole.message, ChatMessage::assistant("Hi"));
}

#[test]
fn signatures_go_back_on_the_parts_they_came_with() {
    let parts = [
        r#"{"text":"a"}"#,
        r#"{"text":"b","thoughtSignature":"dGV4dA=="}"#,
        CALL,
        r#"{"executableCode":{"language":"PYTHON","code":"1"}}"#,
        r#"{"text":"","thoughtSignature":"ZW5k"}"#,
    ];
    let reply = read(WIRE, &chunk(&parts.join(","), r#","finishReason":"STOP""#)).1.unwrap();
    let request = ModelRequest::new("gemini-3-pro", vec![ChatMessage::user("hi"), reply.message]);
    let sent: Value = serde_json::from_str(&body(WIRE, &request)).unwrap();
    let came: Value = serde_json::from_str(&format!("[{}]", parts.join(","))).unwrap();
    assert_eq!(sent["contents"][1], json!({ "role": "model", "parts": came }));
    let result = &sent["contents"][2]["parts"][0]["functionResponse"];
    assert_eq!((&result["name"], &result["id"]), (&json!("get_weather"), &json!("f1")));
}

#[test]
fn a_call_of_another_model_is_marked_for_those_who_want_a_signature() {
    let message = ChatMessage::new(
        MessageRole::Assistant,
        vec![call("x", "now", "{}"), call("y", "now", "[")],
    );
    let sent = |model: &str| {
        let request = ModelRequest::new(model, vec![ChatMessage::user("hi"), message.clone()]);
        let body: Value = serde_json::from_str(&body(WIRE, &request)).unwrap();
        body["contents"][1]["parts"].clone()
    };
    assert_eq!(
        sent("models/gemini-3.1-pro"),
        json!([
            { "functionCall": { "name": "now", "args": {} }, "thoughtSignature": "skip_thought_signature_validator" },
            { "functionCall": { "name": "now", "args": { "invalid_arguments": "[" } } },
        ])
    );
    assert_eq!(
        sent("gemini-2.5-flash")[0],
        json!({ "functionCall": { "name": "now", "args": {} } })
    );
}

#[test]
fn why_it_stopped_is_understood() {
    let stop = |reason: &str| {
        let more = format!(r#","finishReason":"{reason}","finishMessage":"bad call""#);
        read(WIRE, &stream(&[&chunk(r#"{"text":"a"}"#, &more)])).1.unwrap().stop
    };
    assert_eq!(stop("STOP"), StopReason::End);
    assert_eq!(stop("MAX_TOKENS"), StopReason::Length);
    assert_eq!(stop("SAFETY"), StopReason::ContentFilter);
    assert_eq!(stop("PROHIBITED_CONTENT"), StopReason::ContentFilter);
    assert_eq!(
        stop("MALFORMED_FUNCTION_CALL"),
        StopReason::Other("MALFORMED_FUNCTION_CALL: bad call".into())
    );
}

#[test]
fn a_blocked_prompt_is_refused() {
    let blocked = r#"{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":9}}"#;
    let error = read(WIRE, &stream(&[blocked])).1.unwrap_err();
    assert_eq!(error.to_string(), "the provider refused to answer: PROHIBITED_CONTENT");
    assert_eq!(error.retry(), RetryDecision::No);
}

#[test]
fn errors_are_understood_alone_and_in_a_list() {
    let error = |code: u16, status: &str, message: &str, details: &str| {
        let one = format!(
            r#"{{"error":{{"code":{code},"message":"{message}","status":"{status}","details":{details}}}}}"#
        );
        let listed = refused(WIRE, code, &[], &format!("[{one}]"));
        let told = refused(WIRE, code, &[], &one);
        assert_eq!(listed, told);
        let within = read(WIRE, &stream(&[&one])).1.unwrap_err();
        assert_eq!(within.kind, told.kind);
        told
    };
    let limited = error(
        429,
        "RESOURCE_EXHAUSTED",
        "quota",
        r#"[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"27s"}]"#,
    );
    assert_eq!(limited.retry(), RetryDecision::After(std::time::Duration::from_secs(27)));
    assert_eq!(
        error(
            400,
            "INVALID_ARGUMENT",
            "API key not valid. Please pass a valid API key.",
            r#"[{"reason":"API_KEY_INVALID"}]"#
        )
        .kind,
        ProviderErrorKind::Authentication { variable: None }
    );
    assert_eq!(
        error(400, "INVALID_ARGUMENT", "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", "[]").kind,
        ProviderErrorKind::ContextTooLong { limit: Some(1_048_576), requested: Some(1_200_000) }
    );
    assert_eq!(
        error(
            404,
            "NOT_FOUND",
            "models/gemini-9 is not found for API version v1beta, or is not supported",
            "[]"
        )
        .kind,
        ProviderErrorKind::UnknownModel { model: String::new() }
    );
    assert_eq!(
        error(503, "UNAVAILABLE", "The model is overloaded.", "[]").kind,
        ProviderErrorKind::Overloaded
    );
    assert_eq!(error(500, "INTERNAL", "oh", "[]").kind, ProviderErrorKind::Failed);
    assert_eq!(error(403, "PERMISSION_DENIED", "no", "[]").kind, ProviderErrorKind::Permission);
    assert_eq!(error(400, "INVALID_ARGUMENT", "bad schema", "[]").kind, ProviderErrorKind::Invalid);
}

#[test]
fn pictures_it_makes_are_kept() {
    let part = r#"{"inlineData":{"mimeType":"image/png","data":"iVBO"}}"#;
    let reply = read(WIRE, &chunk(part, r#","finishReason":"STOP""#)).1.unwrap();
    assert!(matches!(reply.message.parts[0].content, PartContent::Image(_)));
    let sent: Value =
        serde_json::from_str(&body(WIRE, &ModelRequest::new("g", vec![reply.message]))).unwrap();
    assert_eq!(sent["contents"][0]["parts"][0], serde_json::from_str::<Value>(part).unwrap());
}

#[test]
fn the_model_is_in_the_address() {
    let url = |model: &str, delivery| {
        let request = ModelRequest { delivery, ..ModelRequest::new(model, vec![]) };
        WIRE.request(&request, &ProviderEndpoint::new("https://x/v1beta")).url
    };
    assert_eq!(
        url("gemini-3", ReplyDelivery::Stream),
        "https://x/v1beta/models/gemini-3:streamGenerateContent?alt=sse"
    );
    assert_eq!(
        url("tunedModels/a?b#c", ReplyDelivery::Complete),
        "https://x/v1beta/tunedModels/a%3Fb%23c:generateContent"
    );
}

#[test]
fn how_much_it_thinks_is_said_as_its_generation_takes_it() {
    let thinking = |model: &str, reasoning| {
        let request =
            ModelRequest { reasoning: Some(reasoning), ..ModelRequest::new(model, vec![]) };
        let body: Value = serde_json::from_str(&body(WIRE, &request)).unwrap();
        body["generationConfig"]["thinkingConfig"].clone()
    };
    let effort = ReasoningAmount::Effort;
    for (model, least) in [
        ("gemini-3-flash-preview", "minimal"),
        ("gemini-3.6-flash", "minimal"),
        ("gemini-3-pro", "low"),
        ("gemini-3.8-flash", "low"),
        ("gemini-4-flash", "low"),
    ] {
        assert_eq!(
            thinking(model, effort(ReasoningEffort::Off)),
            json!({ "thinkingLevel": least })
        );
    }
    assert_eq!(
        thinking("gemini-3-pro", effort(ReasoningEffort::Max)),
        json!({ "thinkingLevel": "high", "includeThoughts": true })
    );
    assert_eq!(
        thinking("gemini-2.5-flash", effort(ReasoningEffort::Off)),
        json!({ "thinkingBudget": 0 })
    );
    assert_eq!(
        thinking("gemini-2.5-flash", effort(ReasoningEffort::Medium)),
        json!({ "thinkingBudget": 8192, "includeThoughts": true })
    );
    assert_eq!(
        thinking("gemini-3-pro", ReasoningAmount::Budget(99)),
        json!({ "thinkingBudget": 99, "includeThoughts": true })
    );
}

#[test]
fn media_of_a_result_stand_within_it_for_newer_models() {
    let request = ModelRequest { model: "gemini-3-pro".into(), ..conversation() };
    let sent: Value = serde_json::from_str(&body(WIRE, &request)).unwrap();
    let result = &sent["contents"][2]["parts"][0]["functionResponse"];
    assert_eq!(
        result,
        &json!({
            "name": "web.get_weather",
            "response": { "output": "Rain.\n[Image: image/png]" },
            "parts": [{ "inlineData": { "mimeType": "image/png", "data": "iVBO" } }],
        })
    );
}

#[test]
fn a_request_says_all_that_was_asked() {
    insta::assert_snapshot!(body(WIRE, &conversation()), @r#"
    {
      "contents": [
        {
          "parts": [
            {"text":"What is this?"},
            {"inlineData":{"data":"iVBO","mimeType":"image/png"}},
            {"inlineData":{"data":"JVBE","mimeType":"application/pdf"}},
            {"inlineData":{"data":"UklG","mimeType":"audio/wav"}}
          ],
          "role": "user"
        },
        {
          "parts": [
            {"functionCall":{"args":{"a":1.0,"city":"Oslo"},"name":"web.get_weather"}},
            {"functionCall":{"args":{"invalid_arguments":"{oops"},"name":"gone.tool"}},
            {"functionCall":{"args":{},"name":"now"}}
          ],
          "role": "model"
        },
        {
          "parts": [
            {"functionResponse":{"name":"web.get_weather","response":{"output":"Rain.\n[Image: image/png]"}}},
            {"functionResponse":{"name":"gone.tool","response":{"error":"no such tool"}}},
            {
              "functionResponse": {"name":"now","response":{"error":"no result: the call was not made, or its outcome is unknown"}}
            },
            {"inlineData":{"data":"iVBO","mimeType":"image/png"}},
            {"text":"Go on."}
          ],
          "role": "user"
        }
      ],
      "systemInstruction": {"parts":[{"text":"Be brief."}]},
      "tools": [
        {
          "functionDeclarations": [
            {
              "description": "The weather in a city.",
              "name": "web.get_weather",
              "parameters": {"properties":{"city":{"type":"string"}},"required":["city"],"type":"object"}
            },
            {"description":"The time.","name":"now"}
          ]
        }
      ]
    }
    "#);
}

#[test]
fn wishes_are_said_in_the_words_of_the_wire() {
    let response = ResponseSchema {
        name: "answer".into(),
        schema: consort_core::Json::parse(r#"{"type":"object"}"#).unwrap(),
    };
    let request = ModelRequest {
        tools: tools(),
        tool_choice: ToolChoice::Named("now".into()),
        max_tokens: Some(100),
        temperature: Some(0.5),
        stop: vec!["END".into()],
        reasoning: Some(ReasoningAmount::Effort(ReasoningEffort::Low)),
        response_schema: Some(response),
        ..ModelRequest::new("m", vec![])
    };
    let mut body: Value = serde_json::from_str(&body(WIRE, &request)).unwrap();
    body["tools"].take();
    insta::assert_snapshot!(written_out(&body, ""), @r#"
    {
      "contents": [],
      "generationConfig": {
        "maxOutputTokens": 100,
        "responseJsonSchema": {"type":"object"},
        "responseMimeType": "application/json",
        "stopSequences": ["END"],
        "temperature": 0.5,
        "thinkingConfig": {"includeThoughts":true,"thinkingLevel":"low"}
      },
      "toolConfig": {"functionCallingConfig":{"allowedFunctionNames":["now"],"mode":"ANY"}},
      "tools": null
    }
    "#);
}
