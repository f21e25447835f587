//! Responses, checked against their documentation.

use serde_json::{Value, json};

use crate::message::{ChatMessage, MessagePart, MessageRole, PartContent};
use crate::tests::sample::{body, call, conversation, read, refused, stream, tools, written_out};
use crate::*;

const WIRE: WireFormat = WireFormat::OpenAiResponses;

const REASONING: &str = r#"{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"First."},{"type":"summary_text","text":"Then."}],"encrypted_content":"gAAAA=="}"#;
const SAID: &str = r#"{"id":"msg_1","type":"message","role":"assistant","status":"completed","phase":"commentary","content":[{"type":"output_text","text":"Grüße 🎻","annotations":[]}]}"#;
const CALL_A: &str = r#"{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_a","name":"get_weather","arguments":"{\"city\": \"Oslo\"}"}"#;
const CALL_B: &str = r#"{"id":"fc_2","type":"function_call","status":"completed","call_id":"call_b","name":"now","arguments":"{}"}"#;

fn response(status: &str, output: &[&str], more: &str) -> String {
    let output = output.join(",");
    format!(
        r#"{{"id":"resp_1","object":"response","model":"gpt-5","status":"{status}","error":null,"output":[{output}],"usage":{{"input_tokens":30,"input_tokens_details":{{"cached_tokens":10}},"output_tokens":12,"output_tokens_details":{{"reasoning_tokens":7}}}}{more}}}"#
    )
}

fn completed() -> String {
    response("completed", &[REASONING, SAID, CALL_A, CALL_B], "")
}

/// Reasoning, text and two calls whose arguments arrive interleaved.
pub(crate) fn everything() -> String {
    let end =
        format!(r#"{{"type":"response.completed","response":{}}}"#, response("completed", &[], ""));
    let done = |index: usize, item: &str| {
        format!(r#"{{"type":"response.output_item.done","output_index":{index},"item":{item}}}"#)
    };
    let events = [
        r#"{"type":"response.created","response":{"id":"resp_1","object":"response","model":"gpt-5","status":"in_progress","error":null,"output":[]}}"#.to_owned(),
        r#"{"type":"response.in_progress","response":{"id":"resp_1"}}"#.to_owned(),
        r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}"#.to_owned(),
        r#"{"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}"#.to_owned(),
        r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"First."}"#.to_owned(),
        r#"{"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":1,"part":{"type":"summary_text","text":""}}"#.to_owned(),
        r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":1,"delta":"Then."}"#.to_owned(),
        done(0, REASONING),
        r#"{"type":"response.output_item.added","output_index":1,"item":{"id":"msg_1","type":"message","role":"assistant","content":[]}}"#.to_owned(),
        r#"{"type":"response.content_part.added","output_index":1,"content_index":0,"part":{"type":"output_text","text":""}}"#.to_owned(),
        r#"{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"Grüße "}"#.to_owned(),
        r#"{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"🎻"}"#.to_owned(),
        r#"{"type":"response.output_text.done","output_index":1,"content_index":0,"text":"Grüße 🎻"}"#.to_owned(),
        done(1, SAID),
        r#"{"type":"response.output_item.added","output_index":2,"item":{"id":"fc_1","type":"function_call","call_id":"call_a","name":"get_weather","arguments":""}}"#.to_owned(),
        r#"{"type":"response.output_item.added","output_index":3,"item":{"id":"fc_2","type":"function_call","call_id":"call_b","name":"now","arguments":""}}"#.to_owned(),
        r#"{"type":"response.function_call_arguments.delta","output_index":2,"delta":"{\"city\": "}"#.to_owned(),
        r#"{"type":"response.function_call_arguments.delta","output_index":3,"delta":"{}"}"#.to_owned(),
        r#"{"type":"response.function_call_arguments.delta","output_index":2,"delta":"\"Oslo\"}"}"#.to_owned(),
        r#"{"type":"response.function_call_arguments.done","output_index":2,"arguments":"{\"city\": \"Oslo\"}"}"#.to_owned(),
        done(2, CALL_A),
        done(3, CALL_B),
        end,
    ];
    let events = events.iter().map(|data| {
        let kind: Value = serde_json::from_str(data).unwrap();
        format!("event: {}\ndata: {data}\n\n", kind["type"].as_str().unwrap())
    });
    events.collect()
}

#[test]
fn a_stream_and_an_answer_at_once_say_the_same() {
    let streamed = read(WIRE, &everything());
    let whole = read(WIRE, &completed());
    assert!(whole.0.is_empty());
    let reply = whole.1.unwrap();
    assert_eq!(streamed.1.unwrap(), reply);
    let calls: Vec<_> = reply
        .message
        .calls()
        .map(|call| (&*call.id, &*call.name, call.arguments.as_str()))
        .collect();
    assert_eq!(calls, [("call_a", "get_weather", "{\"city\": \"Oslo\"}"), ("call_b", "now", "{}")]);
    assert_eq!(
        reply.message.parts[0].content,
        PartContent::Thinking { text: "First.\n\nThen.".into(), redacted: false }
    );
    let usage =
        TokenUsage { input: 30, output: 12, cached_read: 10, cached_write: 0, reasoning: 7 };
    assert_eq!(
        (reply.stop, reply.usage, &*reply.model, &*reply.id),
        (StopReason::ToolCalls, usage, "gpt-5", "resp_1")
    );
    let thoughts: String = streamed
        .0
        .iter()
        .filter_map(|delta| match delta {
            ReplyDelta::Thinking(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(thoughts, "First.\n\nThen.");
}

#[test]
fn what_the_model_said_goes_back_in_the_items_it_came_in() {
    let reply = read(WIRE, &everything()).1.unwrap();
    let request = ModelRequest::new("gpt-5", vec![ChatMessage::user("hi"), reply.message]);
    let sent: Value = serde_json::from_str(&body(WIRE, &request)).unwrap();
    let mut said: Value = serde_json::from_str(SAID).unwrap();
    let mut call_a: Value = serde_json::from_str(CALL_A).unwrap();
    let mut reasoning: Value = serde_json::from_str(REASONING).unwrap();
    for item in [&mut said, &mut call_a, &mut reasoning] {
        // Nothing is kept there under an id.
        item.as_object_mut().unwrap().retain(|name, _| name != "status" && name != "id");
    }
    said["content"] = json!([{ "type": "output_text", "text": "Grüße 🎻" }]);
    assert_eq!(sent["input"][1], reasoning);
    assert_eq!(sent["input"][2], said);
    assert_eq!(sent["input"][3], call_a);
    assert_eq!(sent["input"][5]["type"], "function_call_output", "though nobody answered it");
    assert_eq!(sent["store"], json!(false));
    assert_eq!(sent["include"], json!(["reasoning.encrypted_content"]));
}

#[test]
fn reasoning_that_is_not_encrypted_does_not_go_back() {
    let plain = r#"{"id":"rs_1","type":"reasoning","summary":[]}"#;
    let web = r#"{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"q"}}"#;
    let reply = read(WIRE, &response("completed", &[plain, web, SAID], "")).1.unwrap();
    assert_eq!(reply.message.parts[1].content, PartContent::Foreign);
    let sent: Value =
        serde_json::from_str(&body(WIRE, &ModelRequest::new("m", vec![reply.message]))).unwrap();
    assert_eq!(sent["input"][0], serde_json::from_str::<Value>(web).unwrap());
    assert_eq!(sent["input"].as_array().unwrap().len(), 2);
}

#[test]
fn why_it_stopped_is_understood() {
    let stop = |status: &str, why: &str| {
        let more = format!(r#","incomplete_details":{{"reason":"{why}"}}"#);
        let end = response(status, &[SAID], &more);
        read(WIRE, &stream(&[&format!(r#"{{"type":"response.{status}","response":{end}}}"#)]))
            .1
            .unwrap()
            .stop
    };
    assert_eq!(stop("incomplete", "max_output_tokens"), StopReason::Length);
    assert_eq!(stop("incomplete", "content_filter"), StopReason::ContentFilter);
    assert_eq!(stop("incomplete", "else"), StopReason::Other("incomplete: else".into()));
    assert_eq!(stop("completed", ""), StopReason::End);
}

#[test]
fn a_refusal_is_told_and_kept() {
    let refusal = r#"{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"refusal","refusal":"No."}]}"#;
    let events = [
        r#"{"type":"response.refusal.delta","output_index":0,"content_index":0,"delta":"No."}"#,
        &format!(r#"{{"type":"response.output_item.done","output_index":0,"item":{refusal}}}"#),
        &format!(
            r#"{{"type":"response.completed","response":{}}}"#,
            response("completed", &[refusal], "")
        ),
    ];
    let (deltas, reply) = read(WIRE, &stream(&events));
    assert_eq!(deltas[0], ReplyDelta::Refusal("No.".into()));
    assert_eq!(deltas.len(), 2);
    assert_eq!(reply.unwrap().stop, StopReason::Refusal);
}

#[test]
fn a_failure_in_the_stream_is_an_error() {
    let failed = r#"{"type":"response.failed","response":{"id":"r","object":"response","status":"failed","error":{"code":"server_error","message":"The model failed"},"output":[]}}"#;
    let error = read(WIRE, &stream(&[failed])).1.unwrap_err();
    assert_eq!(error.to_string(), "the provider returned a server error: The model failed");
    assert_eq!(error.retry(), RetryDecision::After(std::time::Duration::from_secs(1)));
    let event = r#"{"type":"error","code":"rate_limit_exceeded","message":"slow down","param":null,"sequence_number":3}"#;
    assert_eq!(read(WIRE, &stream(&[event])).1.unwrap_err().kind, ProviderErrorKind::RateLimited);
    let refused = refused(
        WIRE,
        401,
        &[],
        r#"{"error":{"message":"Incorrect API key provided: sk-abcdef********wxyz","type":"invalid_request_error","code":"invalid_api_key"}}"#,
    );
    assert_eq!(
        refused.to_string(),
        "the provider rejected the API key (HTTP 401): Incorrect API key provided: [secret]"
    );
}

#[test]
fn a_call_that_comes_only_when_it_is_done_is_told_then() {
    let done =
        format!(r#"{{"type":"response.output_item.done","output_index":0,"item":{CALL_A}}}"#);
    let end = format!(
        r#"{{"type":"response.completed","response":{}}}"#,
        response("completed", &[CALL_A], "")
    );
    let (deltas, reply) = read(WIRE, &stream(&[&done, &end]));
    assert_eq!(
        deltas[..2],
        [
            ReplyDelta::ToolCallStarted {
                index: 0,
                id: "call_a".into(),
                name: "get_weather".into()
            },
            ReplyDelta::ToolCallArguments { index: 0, fragment: "{\"city\": \"Oslo\"}".into() },
        ]
    );
    assert_eq!(reply.unwrap().message.calls().count(), 1);
}

#[test]
fn a_request_says_all_that_was_asked() {
    insta::assert_snapshot!(body(WIRE, &conversation()), @r#"
    {
      "input": [
        {
          "content": [
            {"text":"What is this?","type":"input_text"},
            {"detail":"auto","image_url":"data:image/png;base64,iVBO","type":"input_image"},
            {"file_data":"data:application/pdf;base64,JVBE","filename":"report.pdf","type":"input_file"},
            {"text":"[Audio: audio/wav]","type":"input_text"}
          ],
          "role": "user"
        },
        {
          "arguments": "{\"city\": \"Oslo\", \"a\": 1.0}",
          "call_id": "call_1",
          "name": "web_get_weather_db48e775",
          "type": "function_call"
        },
        {
          "arguments": "{\"invalid_arguments\":\"{oops\"}",
          "call_id": "call_2",
          "name": "gone_tool_bd65cfe5",
          "type": "function_call"
        },
        {"arguments":"{}","call_id":"call_3","name":"now","type":"function_call"},
        {
          "call_id": "call_1",
          "output": [
            {"text":"Rain.","type":"input_text"},
            {"detail":"auto","image_url":"data:image/png;base64,iVBO","type":"input_image"}
          ],
          "type": "function_call_output"
        },
        {"call_id":"call_2","output":"Error: no such tool","type":"function_call_output"},
        {
          "call_id": "call_3",
          "output": "Error: no result: the call was not made, or its outcome is unknown",
          "type": "function_call_output"
        },
        {"content":[{"text":"Go on.","type":"input_text"}],"role":"user"}
      ],
      "instructions": "Be brief.",
      "model": "some-model",
      "store": false,
      "stream": true,
      "tools": [
        {
          "description": "The weather in a city.",
          "name": "web_get_weather_db48e775",
          "parameters": {"properties":{"city":{"type":"string"}},"required":["city"],"type":"object"},
          "strict": false,
          "type": "function"
        },
        {
          "description": "The time.",
          "name": "now",
          "parameters": {"properties":{},"type":"object"},
          "strict": false,
          "type": "function"
        }
      ]
    }
    "#);
}

#[test]
fn wishes_are_said_in_the_words_of_the_wire() {
    let schema = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}"#;
    let response = ResponseSchema {
        name: "answer".into(),
        schema: consort_core::Json::parse(schema).unwrap(),
    };
    let late = ChatMessage::new(MessageRole::System, vec![MessagePart::text("Now in French.")]);
    let request = ModelRequest {
        tools: tools(),
        tool_choice: ToolChoice::Required,
        parallel_calls: ParallelCalls::One,
        max_tokens: Some(100),
        reasoning: Some(ReasoningAmount::Budget(20_000)),
        response_schema: Some(response),
        delivery: ReplyDelivery::Complete,
        ..ModelRequest::new(
            "m",
            vec![ChatMessage::new(MessageRole::Assistant, vec![call("1", "now", "{}")]), late],
        )
    };
    let mut body: Value = serde_json::from_str(&body(WIRE, &request)).unwrap();
    body["tools"].take();
    insta::assert_snapshot!(written_out(&body, ""), @r#"
    {
      "include": ["reasoning.encrypted_content"],
      "input": [
        {"arguments":"{}","call_id":"1","name":"now","type":"function_call"},
        {
          "call_id": "1",
          "output": "Error: no result: the call was not made, or its outcome is unknown",
          "type": "function_call_output"
        },
        {"content":"Now in French.","role":"developer"}
      ],
      "max_output_tokens": 100,
      "model": "m",
      "parallel_tool_calls": false,
      "reasoning": {"effort":"high","summary":"auto"},
      "store": false,
      "text": {
        "format": {
          "name": "answer",
          "schema": {"additionalProperties":false,"properties":{"n":{"type":"integer"}},"required":["n"],"type":"object"},
          "strict": true,
          "type": "json_schema"
        }
      },
      "tool_choice": "required",
      "tools": null
    }
    "#);
}

#[test]
fn thoughts_are_asked_for_only_where_there_are_some() {
    let asked = |model: &str, reasoning| {
        let request = ModelRequest { reasoning, ..ModelRequest::new(model, vec![]) };
        body(WIRE, &request).contains("encrypted_content")
    };
    for model in ["gpt-5", "gpt-5.2-codex", "gpt-10", "o3", "o4-mini", "openai/gpt-oss-120b"] {
        assert!(asked(model, None), "{model}");
    }
    for model in ["gpt-4o", "gpt-4.1", "gpt-5-chat-latest", "omni", "llama"] {
        assert!(!asked(model, None), "{model}");
        assert!(asked(model, Some(ReasoningAmount::Effort(ReasoningEffort::Low))), "{model}");
    }
}

#[test]
fn parts_of_one_message_are_one_item_again() {
    let two = r#"{"id":"msg_2","type":"message","role":"assistant","content":[{"type":"output_text","text":"a"},{"type":"output_text","text":"b"}]}"#;
    let reply = read(WIRE, &response("completed", &[two, SAID], "")).1.unwrap();
    let sent: Value =
        serde_json::from_str(&body(WIRE, &ModelRequest::new("m", vec![reply.message]))).unwrap();
    assert_eq!(sent["input"][0]["content"].as_array().unwrap().len(), 2);
    assert_eq!(sent["input"][1]["phase"], "commentary");
}
