//! Conversations that exceed the context window: refused by the provider, and sent again with less.

use std::sync::Arc;

use consort_models::{
    HttpProvider, MessagePart, MessageRole, ModelFacts, PartContent, ProviderEndpoint,
    ProviderTimeouts, ToolCall, ToolCallResult, WireFormat,
};
use testkit::http_peer::{Does, Peer, answer};

use super::*;

/// Each provider's error for a conversation that is too long: the status and the body.
fn too_long() -> [(WireFormat, u16, Value); 4] {
    [
        (
            WireFormat::OpenAiChat,
            400,
            json!({ "error": {
                "message": "This model's maximum context length is 8192 tokens. However, your messages resulted \
                            in 9100 tokens. Please reduce the length of the messages.",
                "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded",
            } }),
        ),
        (
            WireFormat::OpenAiResponses,
            400,
            json!({ "error": {
                "message": "Your input exceeds the context window of this model. Please adjust your input and \
                            try again.",
                "type": "invalid_request_error", "param": "input", "code": "context_length_exceeded",
            } }),
        ),
        (
            WireFormat::Anthropic,
            400,
            json!({ "type": "error", "error": {
                "type": "invalid_request_error", "message": "prompt is too long: 9100 tokens > 8192 maximum",
            } }),
        ),
        (
            WireFormat::Gemini,
            400,
            json!({ "error": {
                "code": 400, "status": "INVALID_ARGUMENT",
                "message": "The input token count (9100) exceeds the maximum number of tokens allowed (8192).",
            } }),
        ),
    ]
}

/// A non-streamed response with this text, in each wire format.
fn words(wire: WireFormat, text: &str) -> Does {
    let body = match wire {
        WireFormat::OpenAiChat => json!({ "id": "1", "model": "m", "choices": [{ "index": 0,
            "message": { "role": "assistant", "content": text }, "finish_reason": "stop" }] }),
        WireFormat::OpenAiResponses => {
            json!({ "id": "1", "object": "response", "model": "m", "status": "completed",
            "output": [{ "type": "message", "id": "m1", "role": "assistant", "status": "completed",
                         "content": [{ "type": "output_text", "text": text }] }] })
        }
        WireFormat::Anthropic => {
            json!({ "id": "1", "type": "message", "role": "assistant", "model": "m",
            "content": [{ "type": "text", "text": text }], "stop_reason": "end_turn",
            "usage": { "input_tokens": 7, "output_tokens": 3 } })
        }
        WireFormat::Gemini => {
            json!({ "candidates": [{ "content": { "role": "model", "parts": [{ "text": text }] },
            "finishReason": "STOP" }] })
        }
    };
    Does::Say(answer(200, &[("content-type", "application/json")], &body.to_string()))
}

fn refusal(status: u16, body: &Value) -> Does {
    Does::Say(answer(status, &[("content-type", "application/json")], &body.to_string()))
}

fn agent(wire: WireFormat, peer: &Peer) -> Agent {
    let endpoint = ProviderEndpoint::new(peer.url("/v1"));
    let provider =
        Arc::new(HttpProvider::new(wire, endpoint, ProviderTimeouts::default()).unwrap());
    let (id, name) = ("some:model".to_owned(), "model".to_owned());
    let model = Model { id, name, provider, facts: ModelFacts::default() };
    Agent::new(model, Arc::new(Fake::new()), AgentSettings::new("tester"))
}

/// A long conversation between a user and a model.
fn long() -> Vec<ChatMessage> {
    let mut messages = vec![ChatMessage::user("the first thing that was said")];
    for n in 0..8 {
        let text = format!("answer {n}: {}", "many words of a long answer ".repeat(120));
        messages.push(ChatMessage::new(MessageRole::Assistant, vec![MessagePart::text(text)]));
        messages.push(ChatMessage::user(format!("question {n}")));
    }
    messages.push(ChatMessage::new(MessageRole::Assistant, vec![MessagePart::text("a short one")]));
    messages.push(ChatMessage::user("the last thing that was said"));
    messages
}

async fn run(agent: &Agent, input: Vec<ChatMessage>) -> (RunReport, usize) {
    let mut events = agent.run(&Conversation::new(), input);
    let mut again = 0;
    loop {
        match events.next().await.unwrap() {
            RunEvent::Ended { report } => return (report, again),
            RunEvent::Retrying { .. } => again += 1,
            _ => {}
        }
    }
}

#[tokio::test]
async fn what_is_too_long_is_sent_again_with_less() {
    for (wire, status, body) in too_long() {
        let does = vec![refusal(status, &body), words(wire, "It fits.")];
        let peer = Peer::start(does, usize::MAX).await;
        let (report, again) = run(&agent(wire, &peer), long()).await;
        assert_eq!(
            (report.status, &*report.text),
            (RunStatus::Completed, "It fits."),
            "{wire}: {report:?}"
        );
        assert_eq!((report.turns, again), (1, 1), "{wire}");
        let seen = peer.seen();
        let [first, second] = &seen[..] else { panic!("{wire}: {}", seen.len()) };
        assert!(second.body.len() * 5 < first.body.len() * 4, "{wire}");
        for kept in
            ["the first thing that was said", "omitted here", "the last thing that was said"]
        {
            assert!(second.body.contains(kept), "{wire}: {kept}");
        }
    }
}

#[tokio::test]
async fn a_result_that_is_too_long_is_shown_in_part() {
    let (wire, status, body) = too_long().into_iter().next().unwrap();
    let call = ToolCall { id: "c1".into(), name: "echo".into(), arguments: "{}".into() };
    let result = ToolCallResult {
        call: "c1".into(),
        parts: vec![MessagePart::text("a line of a log\n".repeat(2000))],
        is_error: false,
    };
    let input = vec![
        ChatMessage::user("read it"),
        ChatMessage::new(MessageRole::Assistant, vec![PartContent::ToolCall(call).into()]),
        ChatMessage::results([result]),
    ];
    let does = vec![refusal(status, &body), words(wire, "It fits.")];
    let peer = Peer::start(does, usize::MAX).await;
    let (report, _) = run(&agent(wire, &peer), input).await;
    assert_eq!(report.status, RunStatus::Completed, "{report:?}");
    let seen = peer.seen();
    assert!(seen[1].body.len() * 2 < seen[0].body.len());
    assert!(seen[1].body.contains("bytes shown; call `read_result`"));
    assert!(seen[1].body.contains("Reads the rest of a"), "it is offered");
}

#[tokio::test]
async fn what_cannot_be_made_shorter_is_told() {
    let (wire, status, body) = too_long().into_iter().next().unwrap();
    let peer = Peer::start(vec![refusal(status, &body)], usize::MAX).await;
    let input = vec![ChatMessage::user("many words ".repeat(9000))];
    let (report, again) = run(&agent(wire, &peer), input).await;
    assert_eq!((report.status, again, peer.seen().len()), (RunStatus::Error, 0, 1), "{report:?}");
    assert!(report.reason.contains("exceeds the model's context window (9100 of 8192 tokens)"));
    assert!(report.hint.is_some());
}

#[tokio::test]
async fn it_is_given_up_when_nothing_is_short_enough() {
    let (wire, status, body) = too_long().into_iter().next().unwrap();
    let does = (0..9).map(|_| refusal(status, &body)).collect();
    let peer = Peer::start(does, usize::MAX).await;
    let (report, _) = run(&agent(wire, &peer), long()).await;
    assert_eq!(report.status, RunStatus::Error);
    assert!((2..=4).contains(&peer.seen().len()), "{}", peer.seen().len());
}

#[tokio::test]
async fn what_is_left_out_is_summarized_where_that_is_wanted() {
    for (wire, status, body) in too_long() {
        let does = vec![
            refusal(status, &body),
            words(wire, "They counted answers up to seven."),
            words(wire, "It fits."),
        ];
        let peer = Peer::start(does, usize::MAX).await;
        let mut agent = agent(wire, &peer);
        agent.settings.summarize = true;
        let conversation = Conversation::new();
        let mut events = agent.run(&conversation, long());
        let report = loop {
            if let RunEvent::Ended { report } = events.next().await.unwrap() {
                break report;
            }
        };
        assert_eq!((report.status, report.turns), (RunStatus::Completed, 1), "{wire}: {report:?}");
        let seen = peer.seen();
        assert_eq!(seen.len(), 3, "{wire}");
        assert!(seen[1].body.contains("Assistant: answer 0"), "{wire}");
        assert!(!seen[1].body.contains("the last thing that was said"), "{wire}");
        assert!(seen[2].body.contains("They counted answers up to seven."), "{wire}");
        assert!(!seen[2].body.contains("answer 0: many"), "{wire}");
    }
}

#[tokio::test]
async fn without_a_summary_the_run_goes_on_all_the_same() {
    let (wire, status, body) = too_long().into_iter().next().unwrap();
    let failed = json!({ "error": { "message": "no", "type": "invalid_request_error" } });
    let does = vec![refusal(status, &body), refusal(400, &failed), words(wire, "It fits.")];
    let peer = Peer::start(does, usize::MAX).await;
    let mut agent = agent(wire, &peer);
    agent.settings.summarize = true;
    let (report, _) = run(&agent, long()).await;
    assert_eq!((report.status, &*report.text), (RunStatus::Completed, "It fits."), "{report:?}");
}
