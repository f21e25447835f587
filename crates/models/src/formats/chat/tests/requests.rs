//! Requests of chat completions.

use super::super::{arguments, effort_name, legal_id};
use super::*;

#[test]
fn arguments_that_are_no_object_are_wrapped_and_ids_fitted() {
    assert_eq!(arguments(&RawArguments::from("")), "{}");
    assert_eq!(arguments(&RawArguments::from("{\"a\": 1.0}")), "{\"a\": 1.0}");
    assert_eq!(arguments(&RawArguments::from("[1")), r#"{"invalid_arguments":"[1"}"#);
    let long = legal_id(&"a".repeat(60), 40).into_owned();
    assert_eq!(long.len(), 40);
    assert_ne!(long, legal_id(&format!("{}b", "a".repeat(59)), 40));
    assert_eq!(legal_id("call_1", 40), "call_1");
}

#[test]
fn a_request_says_all_that_was_asked() {
    let request = conversation();
    insta::assert_snapshot!(body(WIRE, &request), @r#"
    {
      "messages": [
        {"content":"Be brief.","role":"system"},
        {
          "content": [
            {"text":"What is this?","type":"text"},
            {"image_url":{"url":"data:image/png;base64,iVBO"},"type":"image_url"},
            {"file":{"file_data":"data:application/pdf;base64,JVBE","filename":"report.pdf"},"type":"file"},
            {"input_audio":{"data":"UklG","format":"wav"},"type":"input_audio"}
          ],
          "role": "user"
        },
        {
          "content": null,
          "role": "assistant",
          "tool_calls": [
            {
              "function": {"arguments":"{\"city\": \"Oslo\", \"a\": 1.0}","name":"web_get_weather_db48e775"},
              "id": "call_1",
              "type": "function"
            },
            {
              "function": {"arguments":"{\"invalid_arguments\":\"{oops\"}","name":"gone_tool_bd65cfe5"},
              "id": "call_2",
              "type": "function"
            },
            {"function":{"arguments":"{}","name":"now"},"id":"call_3","type":"function"}
          ]
        },
        {"content":"Rain.\n[Image: image/png]","role":"tool","tool_call_id":"call_1"},
        {"content":"Error: no such tool","role":"tool","tool_call_id":"call_2"},
        {
          "content": "Error: no result: the call was not made, or its outcome is unknown",
          "role": "tool",
          "tool_call_id": "call_3"
        },
        {
          "content": [
            {"text":"[From the result of `web.get_weather`]","type":"text"},
            {"image_url":{"url":"data:image/png;base64,iVBO"},"type":"image_url"},
            {"text":"Go on.","type":"text"}
          ],
          "role": "user"
        }
      ],
      "model": "some-model",
      "stream": true,
      "stream_options": {"include_usage":true},
      "tools": [
        {
          "function": {
            "description": "The weather in a city.",
            "name": "web_get_weather_db48e775",
            "parameters": {"properties":{"city":{"type":"string"}},"required":["city"],"type":"object"}
          },
          "type": "function"
        },
        {
          "function": {"description":"The time.","name":"now","parameters":{"properties":{},"type":"object"}},
          "type": "function"
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
        tool_choice: ToolChoice::Named("web.get_weather".into()),
        parallel_calls: ParallelCalls::One,
        max_tokens: Some(100),
        temperature: Some(0.5),
        stop: vec!["END".into()],
        reasoning: Some(ReasoningAmount::Effort(ReasoningEffort::Max)),
        response_schema: Some(response),
        delivery: ReplyDelivery::Complete,
        ..ModelRequest::new(
            "m",
            vec![ChatMessage::new(MessageRole::Assistant, vec![call("1", "now", "{}")])],
        )
    };
    let mut body: Value = serde_json::from_str(&body(WIRE, &request)).unwrap();
    body["tools"].take();
    insta::assert_snapshot!(written_out(&body, ""), @r#"
    {
      "max_completion_tokens": 100,
      "messages": [
        {
          "content": null,
          "role": "assistant",
          "tool_calls": [{"function":{"arguments":"{}","name":"now"},"id":"1","type":"function"}]
        },
        {"content":"Error: no result: the call was not made, or its outcome is unknown","role":"tool","tool_call_id":"1"}
      ],
      "model": "m",
      "parallel_tool_calls": false,
      "reasoning_effort": "xhigh",
      "response_format": {"json_schema":{"name":"answer","schema":{"type":"object"},"strict":false},"type":"json_schema"},
      "stop": ["END"],
      "temperature": 0.5,
      "tool_choice": {"function":{"name":"web_get_weather_db48e775"},"type":"function"},
      "tools": null
    }
    "#);
}

#[test]
fn who_cannot_but_think_is_asked_to_think_little() {
    let word = |model| effort_name(ReasoningEffort::Off, model);
    assert_eq!(["gpt-6.1-sol", "openai/gpt-7.0"].map(word), ["low"; 2]);
    assert_eq!(["gpt-6-sol", "gpt-5.2", "grok-4.6", "gpt-oss"].map(word), ["none"; 4]);
}
