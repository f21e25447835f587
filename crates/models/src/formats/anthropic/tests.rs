//! Anthropic's Messages API, checked against its documentation.

use serde_json::{Value, json};

use crate::message::{ChatMessage, MessagePart, MessageRole, PartContent};
use crate::tests::sample::{body, call, conversation, read, refused, stream, tools, written_out};
use crate::*;

const WIRE: WireFormat = WireFormat::Anthropic;

/// An event stream as documented: each event with its name.
fn events(data: &[&str]) -> String {
    let events = data.iter().map(|data| {
        let kind: Value = serde_json::from_str(data).unwrap();
        format!("event: {}\ndata: {data}\n\n", kind["type"].as_str().unwrap())
    });
    events.collect()
}

const START: &str = r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[],"stop_reason":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":3,"cache_read_input_tokens":100,"output_tokens":1}}}"#;

fn stopped(reason: &str) -> String {
    format!(
        r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}","stop_sequence":null}},"usage":{{"output_tokens":42}}}}"#
    )
}

/// Thinking, visible and redacted, text and two calls.
pub(crate) fn everything() -> String {
    events(&[
        START,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
        r#"{"type":"ping"}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Let me "}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"see."}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQB=="}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"Emw="}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Grüße "}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"🎻"}}"#,
        r#"{"type":"content_block_stop","index":2}"#,
        r#"{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_1","name":"get_weather","input":{}}}"#,
        r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":""}}"#,
        r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"city\": \"Tro"}}"#,
        r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"msø\"}"}}"#,
        r#"{"type":"content_block_stop","index":3}"#,
        r#"{"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"toolu_2","name":"now","input":{}}}"#,
        r#"{"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":"{\"in\":\"UTC\"}"}}"#,
        r#"{"type":"content_block_stop","index":4}"#,
        &stopped("tool_use"),
        r#"{"type":"message_stop"}"#,
    ])
}

const WHOLE: &str = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[{"type":"thinking","thinking":"Let me see.","signature":"EqQB=="},{"type":"redacted_thinking","data":"Emw="},{"type":"text","text":"Grüße 🎻"},{"type":"tool_use","id":"toolu_1","name":"get_weather","input":{"city": "Tromsø"}},{"type":"tool_use","id":"toolu_2","name":"now","input":{"in":"UTC"}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":3,"cache_read_input_tokens":100,"output_tokens":42}}"#;

#[test]
fn a_stream_and_an_answer_at_once_say_the_same() {
    let reply = read(WIRE, &everything()).1.unwrap();
    assert_eq!(read(WIRE, WHOLE).1.unwrap(), reply);
    let calls: Vec<_> = reply
        .message
        .calls()
        .map(|call| (&*call.id, &*call.name, call.arguments.as_str()))
        .collect();
    assert_eq!(
        calls,
        [
            ("toolu_1", "get_weather", "{\"city\": \"Tromsø\"}"),
            ("toolu_2", "now", "{\"in\":\"UTC\"}")
        ]
    );
    let usage =
        TokenUsage { input: 113, output: 42, cached_read: 100, cached_write: 3, reasoning: 0 };
    assert_eq!(
        (reply.stop, reply.usage, &*reply.model, &*reply.id),
        (StopReason::ToolCalls, usage, "claude", "msg_1")
    );
}

#[test]
fn thoughts_go_back_with_their_signatures_exactly_as_they_came() {
    let reply = read(WIRE, &everything()).1.unwrap();
    let sent: Value = serde_json::from_str(&body(
        WIRE,
        &ModelRequest::new("claude", vec![ChatMessage::user("hi"), reply.message]),
    ))
    .unwrap();
    let whole: Value = serde_json::from_str(WHOLE).unwrap();
    assert_eq!(sent["messages"][1]["content"], whole["content"]);
}

#[test]
fn what_its_own_tools_do_goes_back_whole() {
    let body_of = |events_of: &[&str]| {
        let reply = read(WIRE, &events(events_of)).1.unwrap();
        assert_eq!(reply.stop, StopReason::Paused);
        let request = ModelRequest::new("claude", vec![ChatMessage::user("hi"), reply.message]);
        serde_json::from_str::<Value>(&body(WIRE, &request)).unwrap()
    };
    let sent = body_of(&[
        START,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"query\":\"x\"}"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        &stopped("pause_turn"),
        r#"{"type":"message_stop"}"#,
    ]);
    assert_eq!(
        sent["messages"][1]["content"],
        json!([
            { "type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": { "query": "x" } },
            { "type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [] },
        ])
    );
}

#[test]
fn a_call_without_arguments_has_none() {
    let events = events(&[
        START,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"now","input":{}}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":""}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        &stopped("tool_use"),
        r#"{"type":"message_stop"}"#,
    ]);
    let reply = read(WIRE, &events).1.unwrap();
    let call = reply.message.calls().next().unwrap();
    assert_eq!(call.arguments.as_str(), "");
    assert!(call.arguments.object().unwrap().is_empty());
}

#[test]
fn why_it_stopped_is_understood() {
    let stop = |reason: &str| read(WIRE, &events(&[START, &stopped(reason)])).1.unwrap().stop;
    assert_eq!(stop("end_turn"), StopReason::End);
    assert_eq!(stop("stop_sequence"), StopReason::End);
    assert_eq!(stop("max_tokens"), StopReason::Length);
    assert_eq!(stop("model_context_window_exceeded"), StopReason::Length);
    assert_eq!(stop("refusal"), StopReason::Refusal);
    assert_eq!(stop("pause_turn"), StopReason::Paused);
    assert_eq!(stop("compaction"), StopReason::Other("compaction".into()));
}

#[test]
fn a_refusal_says_why() {
    let refused = r#"{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"type":"refusal","category":"cyber","explanation":"Declined."}},"usage":{"output_tokens":4}}"#;
    let (deltas, reply) = read(WIRE, &events(&[START, refused]));
    assert_eq!(deltas.last(), Some(&ReplyDelta::Refusal("Declined.".into())));
    let reply = reply.unwrap();
    assert_eq!(reply.stop, StopReason::Refusal);
    assert_eq!(
        reply.message.parts,
        [MessagePart::from(PartContent::Refusal { text: "Declined.".into() })]
    );
}

#[test]
fn an_overload_is_told_and_may_be_repeated_only_at_the_beginning() {
    let overloaded =
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let error = read(WIRE, &events(&[START, overloaded])).1.unwrap_err();
    assert_eq!(error.kind, ProviderErrorKind::Overloaded);
    assert_eq!(error.retry(), RetryDecision::After(std::time::Duration::from_secs(2)));
    let said =
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"I"}}"#;
    let error = read(WIRE, &events(&[START, said, overloaded])).1.unwrap_err();
    assert_eq!(
        error.to_string(),
        "while streaming the answer: the provider is overloaded: Overloaded"
    );
    assert_eq!(error.retry(), RetryDecision::No);
    assert_eq!(refused(WIRE, 529, &[], overloaded).kind, ProviderErrorKind::Overloaded);
}

#[test]
fn errors_by_status_are_understood() {
    let cause = |status, kind: &str, message: &str| {
        let body = json!({ "type": "error", "error": { "type": kind, "message": message } });
        refused(WIRE, status, &[], &body.to_string()).kind
    };
    assert_eq!(
        cause(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
        ProviderErrorKind::ContextTooLong { limit: Some(200_000), requested: Some(210_000) }
    );
    assert_eq!(
        cause(400, "invalid_request_error", "Your credit balance is too low"),
        ProviderErrorKind::OutOfCredit
    );
    assert_eq!(
        cause(404, "not_found_error", "model: claude-9"),
        ProviderErrorKind::UnknownModel { model: String::new() }
    );
    assert_eq!(
        cause(401, "authentication_error", "invalid x-api-key"),
        ProviderErrorKind::Authentication { variable: None }
    );
    assert_eq!(cause(403, "permission_error", "no"), ProviderErrorKind::Permission);
    assert_eq!(cause(429, "rate_limit_error", "slow"), ProviderErrorKind::RateLimited);
    assert_eq!(cause(413, "request_too_large", "too large"), ProviderErrorKind::Invalid);
    assert_eq!(cause(500, "api_error", "oh"), ProviderErrorKind::Failed);
}

#[test]
fn what_it_refuses_is_not_sent() {
    let request = ModelRequest {
        cache: CacheMarks::Unset,
        ..ModelRequest::new(
            "claude",
            vec![
                ChatMessage::user(""),
                ChatMessage::user(" \n"),
                ChatMessage::user("hi"),
                ChatMessage::assistant("  "),
                ChatMessage::user("there"),
                ChatMessage::assistant("Well, \n"),
            ],
        )
    };
    let sent: Value = serde_json::from_str(&body(WIRE, &request)).unwrap();
    assert_eq!(
        sent["messages"],
        json!([
            { "role": "user", "content": [{ "type": "text", "text": "hi" }, { "type": "text", "text": "there" }] },
            { "role": "assistant", "content": [{ "type": "text", "text": "Well," }] },
        ])
    );
}

#[test]
fn a_forced_call_and_thinking_exclude_one_another() {
    let mut request = ModelRequest {
        tools: tools(),
        tool_choice: ToolChoice::Required,
        reasoning: Some(ReasoningAmount::Budget(10_000)),
        temperature: Some(1.0),
        ..ModelRequest::new("claude", vec![ChatMessage::user("hi")])
    };
    let sent =
        |request: &ModelRequest| serde_json::from_str::<Value>(&body(WIRE, request)).unwrap();
    assert_eq!(sent(&request).get("thinking"), None);
    request.tool_choice = ToolChoice::Auto;
    let with = sent(&request);
    assert_eq!(with["thinking"], json!({ "type": "enabled", "budget_tokens": 10_000 }));
    assert_eq!((with["max_tokens"].as_u64(), with.get("temperature")), (Some(18_192), None));
    // Nor does a model with a budget go on with calls that it did not think before.
    let called = ChatMessage::new(MessageRole::Assistant, vec![call("1", "now", "{}")]);
    let unthinking = ModelRequest {
        messages: vec![ChatMessage::user("hi").into(), called.into()],
        ..request.clone()
    };
    assert_eq!(sent(&unthinking).get("thinking"), None);
    request.reasoning = Some(ReasoningAmount::Effort(ReasoningEffort::Off));
    assert_eq!(sent(&request)["thinking"], json!({ "type": "disabled" }));
}

#[test]
fn an_unknown_kind_of_event_is_passed_over() {
    let odd = stream(&[START, r#"{"type":"surprise","x":1}"#, &stopped("end_turn")]);
    let reply = read(WIRE, &odd).1.unwrap();
    assert_eq!(reply.message.parts, [] as [MessagePart; 0]);
}

#[test]
fn a_request_says_all_that_was_asked() {
    insta::assert_snapshot!(body(WIRE, &conversation()), @r#"
    {
      "max_tokens": 8192,
      "messages": [
        {
          "content": [
            {"text":"What is this?","type":"text"},
            {"source":{"data":"iVBO","media_type":"image/png","type":"base64"},"type":"image"},
            {"source":{"data":"JVBE","media_type":"application/pdf","type":"base64"},"type":"document"},
            {"text":"[Audio: audio/wav]","type":"text"}
          ],
          "role": "user"
        },
        {
          "content": [
            {"id":"call_1","input":{"a":1.0,"city":"Oslo"},"name":"web_get_weather_db48e775","type":"tool_use"},
            {"id":"call_2","input":{"invalid_arguments":"{oops"},"name":"gone_tool_bd65cfe5","type":"tool_use"},
            {"id":"call_3","input":{},"name":"now","type":"tool_use"}
          ],
          "role": "assistant"
        },
        {
          "content": [
            {
              "content": [
                {"text":"Rain.","type":"text"},
                {"source":{"data":"iVBO","media_type":"image/png","type":"base64"},"type":"image"}
              ],
              "tool_use_id": "call_1",
              "type": "tool_result"
            },
            {"content":[{"text":"no such tool","type":"text"}],"is_error":true,"tool_use_id":"call_2","type":"tool_result"},
            {
              "content": [{"text":"no result: the call was not made, or its outcome is unknown","type":"text"}],
              "is_error": true,
              "tool_use_id": "call_3",
              "type": "tool_result"
            },
            {"cache_control":{"type":"ephemeral"},"text":"Go on.","type":"text"}
          ],
          "role": "user"
        }
      ],
      "model": "some-model",
      "stream": true,
      "system": [{"cache_control":{"type":"ephemeral"},"text":"Be brief.","type":"text"}],
      "tools": [
        {
          "description": "The weather in a city.",
          "input_schema": {"properties":{"city":{"type":"string"}},"required":["city"],"type":"object"},
          "name": "web_get_weather_db48e775"
        },
        {"cache_control":{"type":"ephemeral"},"description":"The time.","input_schema":{"type":"object"},"name":"now"}
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
    let late = ChatMessage::new(MessageRole::System, vec![MessagePart::text("Now in French.")]);
    let thought = PartContent::Thinking { text: "unsigned".into(), redacted: false };
    let request = ModelRequest {
        tools: tools(),
        parallel_calls: ParallelCalls::One,
        max_tokens: Some(100),
        stop: vec!["END".into()],
        reasoning: Some(ReasoningAmount::Effort(ReasoningEffort::Minimal)),
        response_schema: Some(response),
        ..ModelRequest::new(
            "m",
            vec![
                ChatMessage::new(
                    MessageRole::Assistant,
                    vec![thought.into(), call("a.b", "now", "{}")],
                ),
                late,
            ],
        )
    };
    let mut body: Value = serde_json::from_str(&body(WIRE, &request)).unwrap();
    body["tools"].take();
    insta::assert_snapshot!(written_out(&body, ""), @r#"
    {
      "max_tokens": 100,
      "messages": [
        {"content":[{"id":"a_b_2e7336dc","input":{},"name":"now","type":"tool_use"}],"role":"assistant"},
        {
          "content": [
            {
              "cache_control": {"type":"ephemeral"},
              "content": [{"text":"no result: the call was not made, or its outcome is unknown","type":"text"}],
              "is_error": true,
              "tool_use_id": "a_b_2e7336dc",
              "type": "tool_result"
            }
          ],
          "role": "user"
        }
      ],
      "model": "m",
      "output_config": {"effort":"low","format":{"schema":{"type":"object"},"type":"json_schema"}},
      "stop_sequences": ["END"],
      "stream": true,
      "system": [{"cache_control":{"type":"ephemeral"},"text":"Now in French.","type":"text"}],
      "thinking": {"type":"adaptive"},
      "tool_choice": {"disable_parallel_tool_use":true,"type":"auto"},
      "tools": null
    }
    "#);
}
