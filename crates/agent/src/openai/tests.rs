mod reading;

use std::sync::Arc;

use consort_core::{
    Call, CallEvent as Happening, CallEvents, CallOutcome, Caller, Catalog, CatalogChanges,
    DrivenStream, PrimitiveKind, Progress, ServerCatalog, ToolResult, Toolbox,
};
use serde_json::{Value, json};

use super::*;
use crate::step::{RunReport, RunStatus};
use crate::{Agent, AgentSettings, Conversation, RunEvent};
use consort_models::{MessageRole, Model, ModelScript};

/// A server `files` with a tool `read` that reports progress and then its result.
struct Files;

impl Toolbox for Files {
    fn catalog(&self, _: &Caller) -> Arc<Catalog> {
        let tool = Tool::new("read", "Reads a file.", &json!({ "type": "object" }).into());
        let shelf = vec![("read".to_owned(), tool.definition().clone())];
        let offer = ServerCatalog {
            lists: [(PrimitiveKind::Tools, shelf)].into(),
            ..ServerCatalog::default()
        };
        Arc::new(Catalog::build(&[("files".parse().unwrap(), offer)].into()))
    }

    fn call(&self, call: Call) -> CallEvents {
        CallEvents::new(|emitter| async move {
            emitter.emit(Happening::Progress(Progress::new(1.0, Some(2.0), Some("half")))).await;
            let text = format!("read {}", call.arguments().as_str());
            Happening::End(Ok(CallOutcome::Complete(ToolResult::text(text))))
        })
    }

    fn changes(&self) -> CatalogChanges {
        DrivenStream::new(|_| std::future::pending())
    }
}

/// Plays a script for a request.
async fn played(
    asked: &ApiRequest,
    script: &str,
) -> (ApiResponse, String, RunReport, Conversation) {
    let mut settings = AgentSettings::new("helper");
    settings.client_tools.clone_from(&asked.tools);
    let model = Model::scripted(ModelScript::parse(script).unwrap());
    let agent = Agent::new(model, Arc::new(Files), settings);
    let conversation = Conversation::new();
    let mut events = agent.run(&conversation, asked.messages.clone());
    let mut answer = ApiResponse::new(asked, "1", 7);
    let mut told = String::new();
    loop {
        match events.next().await.unwrap() {
            RunEvent::Ended { mut report } => {
                report.duration_ms = 0;
                told.push_str(&answer.finish(&report, None));
                return (answer, told, report, conversation);
            }
            RunEvent::Result { result, error, .. } => {
                told.push_str(&answer.push_event(&RunEvent::Result {
                    result,
                    error,
                    duration_ms: 0,
                }));
            }
            event => told.push_str(&answer.push_event(&event)),
        }
    }
}

const SCRIPT: &str = r#"{"turns": [
    {"text": "Let me look.", "calls": [{"name": "read", "arguments": {"path": "a"}}], "usage": {"input": 10, "output": 5}},
    {"text": "It says so.", "usage": {"input": 20, "output": 3, "cached_read": 10}}
]}"#;

const CLIENTS: &str = r#"{"turns": [
    {"calls": [{"name": "read"}]},
    {"text": "Your turn.", "calls": [{"name": "read", "id": "r"}, {"name": "beep", "id": "b", "arguments": {"n": 1}}]},
    {"expect": {"role": "tool", "results": 2, "contains": "beeped"}, "text": "Done."}
]}"#;

fn chat(more: &Value) -> ApiRequest {
    let mut body = json!({ "model": "helper", "messages": [{ "role": "user", "content": "go" }] });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    ApiRequest::parse(ApiFormat::Chat, body.to_string().as_bytes()).unwrap()
}

fn responses(more: &Value) -> ApiRequest {
    let mut body = json!({ "model": "helper", "input": "go" });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    ApiRequest::parse(ApiFormat::Responses, body.to_string().as_bytes()).unwrap()
}

/// The data of a stream's events.
fn data(stream: &str) -> Vec<Value> {
    let lines = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    lines.filter(|line| *line != "[DONE]").map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn a_chat_completion_is_the_sum_of_its_turns() {
    let (answer, _, report, _) = played(&chat(&json!({})), SCRIPT).await;
    insta::assert_snapshot!(serde_json::to_string_pretty(&answer.to_json(&report)).unwrap(), @r##"
{
  "choices": [
    {
      "finish_reason": "stop",
      "index": 0,
      "logprobs": null,
      "message": {
        "annotations": [],
        "content": "Let me look.\n\nIt says so.",
        "refusal": null,
        "role": "assistant"
      }
    }
  ],
  "consort": {
    "calls": 1,
    "event": "over",
    "failed": 0,
    "status": "completed",
    "took": 0,
    "turns": 2
  },
  "created": 7,
  "id": "chatcmpl-1",
  "model": "helper",
  "object": "chat.completion",
  "system_fingerprint": null,
  "usage": {
    "completion_tokens": 8,
    "completion_tokens_details": {
      "reasoning_tokens": 0
    },
    "prompt_tokens": 30,
    "prompt_tokens_details": {
      "cached_tokens": 10
    },
    "total_tokens": 38
  }
}
"##);
}

#[tokio::test]
async fn a_stream_of_chunks_says_the_same_as_the_whole() {
    let asked = chat(&json!({ "stream": true, "stream_options": { "include_usage": true } }));
    let (answer, told, report, _) = played(&asked, SCRIPT).await;
    assert!(told.ends_with("data: [DONE]\n\n"));
    let chunks = data(&told);
    let content: String = chunks
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str())
        .collect();
    let whole = answer.to_json(&report);
    assert_eq!(content, whole["choices"][0]["message"]["content"].as_str().unwrap());
    assert_eq!(content, "Let me look.\n\nIt says so.");
    let last = chunks.last().unwrap();
    assert_eq!((&last["choices"], &last["usage"]), (&json!([]), &whole["usage"]));
    let asides: Vec<String> = chunks
        .iter()
        .filter(|chunk| !chunk["consort"].is_null())
        .map(|chunk| chunk["consort"].to_string())
        .collect();
    insta::assert_snapshot!(asides.join("\n"), @r##"
{"arguments":"{\"path\":\"a\"}","call":"scripted_1_1","event":"called","name":"read","tool":"files.read"}
{"call":"scripted_1_1","event":"progress","message":"half","progress":1.0,"total":2.0}
{"call":"scripted_1_1","event":"result","is_error":false,"took":0}
{"calls":1,"event":"over","failed":0,"status":"completed","took":0,"turns":2}
"##);
}

#[tokio::test]
async fn a_response_tells_its_events_in_order() {
    let (answer, told, report, _) = played(&responses(&json!({ "stream": true })), SCRIPT).await;
    let events = data(&told);
    for (n, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], n);
    }
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    insta::assert_snapshot!(kinds.join("\n"), @r##"
response.created
response.in_progress
response.output_item.added
response.content_part.added
response.output_text.delta
response.output_text.delta
response.output_text.delta
response.output_text.done
response.content_part.done
response.output_item.done
response.output_item.added
response.mcp_call.in_progress
response.mcp_call_arguments.delta
response.mcp_call_arguments.done
response.mcp_call.in_progress
response.mcp_call.completed
response.output_item.done
response.output_item.added
response.content_part.added
response.output_text.delta
response.output_text.delta
response.output_text.delta
response.output_text.done
response.content_part.done
response.output_item.done
response.completed
"##);
    assert_eq!(events.last().unwrap()["response"], answer.to_json(&report));
}

#[tokio::test]
async fn a_response_has_an_item_for_each_thing_that_was_said_or_called() {
    let (answer, _, report, _) = played(&responses(&json!({})), SCRIPT).await;
    insta::assert_snapshot!(serde_json::to_string_pretty(&answer.to_json(&report)).unwrap(), @r##"
{
  "consort": {
    "calls": 1,
    "event": "over",
    "failed": 0,
    "status": "completed",
    "took": 0,
    "turns": 2
  },
  "created_at": 7,
  "error": null,
  "id": "resp_1",
  "incomplete_details": null,
  "instructions": null,
  "max_output_tokens": null,
  "metadata": {},
  "model": "helper",
  "object": "response",
  "output": [
    {
      "content": [
        {
          "annotations": [],
          "logprobs": [],
          "text": "Let me look.",
          "type": "output_text"
        }
      ],
      "id": "msg_1_0",
      "role": "assistant",
      "status": "completed",
      "type": "message"
    },
    {
      "approval_request_id": null,
      "arguments": "{\"path\":\"a\"}",
      "error": null,
      "id": "mcp_scripted_1_1",
      "name": "read",
      "output": "read {\"path\":\"a\"}",
      "server_label": "files",
      "status": "completed",
      "type": "mcp_call"
    },
    {
      "content": [
        {
          "annotations": [],
          "logprobs": [],
          "text": "It says so.",
          "type": "output_text"
        }
      ],
      "id": "msg_1_2",
      "role": "assistant",
      "status": "completed",
      "type": "message"
    }
  ],
  "parallel_tool_calls": true,
  "previous_response_id": null,
  "status": "completed",
  "store": false,
  "temperature": null,
  "tool_choice": "auto",
  "tools": [],
  "top_p": null,
  "truncation": "disabled",
  "usage": {
    "input_tokens": 30,
    "input_tokens_details": {
      "cached_tokens": 10
    },
    "output_tokens": 8,
    "output_tokens_details": {
      "reasoning_tokens": 0
    },
    "total_tokens": 38
  }
}
"##);
}

#[tokio::test]
async fn calls_of_the_clients_tools_are_handed_to_it_and_what_was_done_before_is_not_done_twice() {
    let beep = json!({ "type": "function", "function": { "name": "beep", "parameters": { "type": "object" } } });
    let first = chat(&json!({ "tools": [beep], "stream": true }));
    let (answer, told, report, conversation) = played(&first, CLIENTS).await;
    assert_eq!(report.status, RunStatus::Waiting);
    let whole = answer.to_json(&report);
    let choice = &whole["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls");
    let call = json!({ "id": "b", "type": "function", "function": { "name": "beep", "arguments": "{\"n\":1}" } });
    assert_eq!(choice["message"]["tool_calls"], json!([call]));
    let chunks = data(&told);
    let handed =
        chunks.iter().find_map(|chunk| chunk["choices"][0]["delta"]["tool_calls"].as_array());
    assert_eq!(handed.unwrap()[0]["function"]["name"], "beep");

    let handed_out = PendingToolCalls::default();
    let run = conversation.state();
    let (calls, handed) =
        SuspendedRun::from_run(&run, first.messages.len(), first.messages.clone()).unwrap();
    handed_out.store("ada", &calls, handed);
    let second = chat(&json!({ "tools": [beep], "messages": [
        { "role": "user", "content": "go" },
        { "role": "assistant", "content": "Your turn.", "tool_calls": [call] },
        { "role": "tool", "tool_call_id": "b", "content": "beeped" },
    ]}));
    let restored = handed_out.restore("ada", &second.messages);
    let roles: Vec<MessageRole> = restored.iter().map(|message| message.role).collect();
    assert_eq!(
        roles,
        [
            MessageRole::User,
            MessageRole::Assistant,
            MessageRole::Tool,
            MessageRole::Assistant,
            MessageRole::Tool
        ]
    );
    assert_eq!(handed_out.restore("bob", &second.messages), second.messages);
    let (answer, _, report, _) =
        played(&ApiRequest { messages: restored, ..second }, CLIENTS).await;
    assert_eq!(report.status, RunStatus::Completed, "{}", report.reason);
    assert_eq!(answer.to_json(&report)["choices"][0]["message"]["content"], "Done.");
}

#[tokio::test]
async fn words_that_have_a_form_are_told_without_those_before_them() {
    let format = json!({ "type": "json_schema", "json_schema": { "name": "a", "schema": { "type": "object" } } });
    let asked = chat(&json!({ "response_format": format, "stream": true }));
    let (_, told, ..) = played(&asked, SCRIPT).await;
    let chunks = data(&told);
    let content: String = chunks
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str())
        .collect();
    assert_eq!(content, "It says so.");
}
