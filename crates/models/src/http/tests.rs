//! Providers over real connections to this machine.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::http_peer::{Does, Peer, answer, begun, events};

use crate::formats::{anthropic, chat, gemini, responses};
use crate::tests::sample::{in_pieces, stream, tools};
use crate::*;

mod answers;
mod repeats;
mod troubles;

const KEY: &str = "sk-live-0123456789abcdef";

/// Timeouts and waits that are short enough for tests.
fn impatient() -> ProviderTimeouts {
    ProviderTimeouts {
        idle: Duration::from_millis(500),
        idle_whole: Duration::from_millis(500),
        max_retry_wait: Duration::from_millis(20),
        ..ProviderTimeouts::default()
    }
}

fn http(wire: WireFormat, peer: &Peer, timeouts: ProviderTimeouts) -> HttpProvider {
    let endpoint =
        ProviderEndpoint::new(peer.url("/v1")).with_key(KEY.to_owned().into(), "SOME_API_KEY");
    HttpProvider::new(wire, endpoint, timeouts).unwrap()
}

fn model_request() -> ModelRequest {
    ModelRequest {
        tools: tools(),
        ..ModelRequest::new("some-model", vec![ChatMessage::user("Wie ist es in Tromsø? 🎻")])
    }
}

/// All deltas, retries and the end of a request.
#[derive(Debug)]
struct Heard {
    deltas: Vec<ReplyDelta>,
    again: Vec<(String, Duration)>,
    end: Result<ModelReply, ProviderError>,
}

impl Heard {
    fn error(self) -> ProviderError {
        self.end.unwrap_err()
    }
}

async fn hear(http: &HttpProvider, model_request: ModelRequest) -> Heard {
    let (mut deltas, mut again) = (Vec::new(), Vec::new());
    let mut said = http.request(model_request);
    loop {
        match said.next().await.unwrap() {
            ProviderEvent::Delta(delta) => deltas.push(delta),
            ProviderEvent::Retry { error, after } => again.push((error.to_string(), after)),
            ProviderEvent::End(end) => {
                assert!(said.next().await.is_none(), "nothing comes behind the end");
                return Heard { deltas, again, end };
            }
        }
    }
}

/// Result of one request without retries.
async fn once(wire: WireFormat, does: Does) -> Heard {
    let peer = Peer::start(vec![does], usize::MAX).await;
    let heard = hear(
        &http(wire, &peer, ProviderTimeouts { max_attempts: 1, ..impatient() }),
        model_request(),
    )
    .await;
    assert_eq!(peer.seen().len(), 1);
    heard
}

fn streams() -> [(WireFormat, String); 4] {
    [
        (WireFormat::OpenAiChat, chat::tests::everything()),
        (WireFormat::OpenAiResponses, responses::tests::everything()),
        (WireFormat::Anthropic, anthropic::tests::everything()),
        (WireFormat::Gemini, gemini::tests::everything()),
    ]
}

/// A non-streamed response with a text and two calls, as each provider documents it.
fn wholes() -> [(WireFormat, String); 4] {
    let chat = json!({ "id": "a", "object": "chat.completion", "model": "m", "choices": [{ "index": 0,
        "message": { "role": "assistant", "content": "Grüße", "tool_calls": [
            { "id": "1", "type": "function", "function": { "name": "now", "arguments": "" } },
            { "id": "2", "type": "function", "function": { "name": "now", "arguments": "{}" } } ] },
        "finish_reason": "tool_calls" }], "usage": { "prompt_tokens": 7, "completion_tokens": 3 } });
    let responses = json!({ "id": "a", "object": "response", "status": "completed", "model": "m", "output": [
        { "type": "message", "id": "m1", "role": "assistant", "content": [{ "type": "output_text", "text": "Grüße" }] },
        { "type": "function_call", "id": "f1", "call_id": "1", "name": "now", "arguments": "" },
        { "type": "function_call", "id": "f2", "call_id": "2", "name": "now", "arguments": "{}" } ],
        "usage": { "input_tokens": 7, "output_tokens": 3 } });
    let anthropic = json!({ "id": "a", "type": "message", "role": "assistant", "model": "m", "content": [
        { "type": "text", "text": "Grüße" },
        { "type": "tool_use", "id": "1", "name": "now", "input": {} },
        { "type": "tool_use", "id": "2", "name": "now", "input": {} } ],
        "stop_reason": "tool_use", "usage": { "input_tokens": 7, "output_tokens": 3 } });
    let gemini = json!({ "responseId": "a", "modelVersion": "m", "candidates": [{ "index": 0,
        "content": { "role": "model", "parts": [{ "text": "Grüße" },
            { "functionCall": { "name": "now", "id": "1" } }, { "functionCall": { "name": "now", "id": "2", "args": {} } }] },
        "finishReason": "STOP" }], "usageMetadata": { "promptTokenCount": 7, "candidatesTokenCount": 3 } });
    [
        (WireFormat::OpenAiChat, chat.to_string()),
        (WireFormat::OpenAiResponses, responses.to_string()),
        (WireFormat::Anthropic, anthropic.to_string()),
        (WireFormat::Gemini, gemini.to_string()),
    ]
}
