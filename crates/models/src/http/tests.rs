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
fn impatient() -> Patience {
    Patience {
        silence: Duration::from_millis(500),
        silence_whole: Duration::from_millis(500),
        longest_wait: Duration::from_millis(20),
        ..Patience::default()
    }
}

fn http(wire: Wire, peer: &Peer, patience: Patience) -> Http {
    let endpoint = Endpoint::new(peer.url("/v1")).with_key(KEY.to_owned().into(), "SOME_API_KEY");
    Http::new(wire, endpoint, patience).unwrap()
}

fn ask() -> Ask {
    Ask {
        tools: tools(),
        ..Ask::new("some-model", vec![Message::user("Wie ist es in Tromsø? 🎻")])
    }
}

/// All deltas, retries and the end of a request.
#[derive(Debug)]
struct Heard {
    deltas: Vec<Delta>,
    again: Vec<(String, Duration)>,
    end: Result<Reply, ProviderError>,
}

impl Heard {
    fn error(self) -> ProviderError {
        self.end.unwrap_err()
    }
}

async fn hear(http: &Http, ask: Ask) -> Heard {
    let (mut deltas, mut again) = (Vec::new(), Vec::new());
    let mut said = http.ask(ask);
    loop {
        match said.next().await.unwrap() {
            Said::Delta(delta) => deltas.push(delta),
            Said::Again { error, after } => again.push((error.to_string(), after)),
            Said::End(end) => {
                assert!(said.next().await.is_none(), "nothing comes behind the end");
                return Heard { deltas, again, end };
            }
        }
    }
}

/// Result of one request without retries.
async fn once(wire: Wire, does: Does) -> Heard {
    let peer = Peer::start(vec![does], usize::MAX).await;
    let heard = hear(&http(wire, &peer, Patience { tries: 1, ..impatient() }), ask()).await;
    assert_eq!(peer.seen().len(), 1);
    heard
}

fn streams() -> [(Wire, String); 4] {
    [
        (Wire::OpenAiChat, chat::tests::everything()),
        (Wire::OpenAiResponses, responses::tests::everything()),
        (Wire::Anthropic, anthropic::tests::everything()),
        (Wire::Gemini, gemini::tests::everything()),
    ]
}

/// A non-streamed response with a text and two calls, as each provider documents it.
fn wholes() -> [(Wire, String); 4] {
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
        (Wire::OpenAiChat, chat.to_string()),
        (Wire::OpenAiResponses, responses.to_string()),
        (Wire::Anthropic, anthropic.to_string()),
        (Wire::Gemini, gemini.to_string()),
    ]
}
