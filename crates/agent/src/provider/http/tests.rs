//! Providers, asked over real connections to this machine.

use std::time::Duration;

use consort_wire::Barrier;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::super::sample::{in_pieces, stream, tools};
use super::super::*;
use super::EndpointError;
use super::peer::{Does, Peer, answer, begun, events};
use crate::message::Message;

const KEY: &str = "sk-live-0123456789abcdef";

/// Waits that are short enough for tests: of our own, and for what never comes.
fn impatient() -> Patience {
    Patience {
        silence: Duration::from_millis(200),
        silence_whole: Duration::from_millis(200),
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

/// All that was said, and what was asked again.
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

/// What comes of one request that is answered so.
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

/// An answer at once with a word and two calls, as each provider documents it.
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

#[tokio::test]
async fn a_stream_says_the_same_wherever_it_is_split() {
    for (wire, body) in streams() {
        let reader = wire.reader(&ask(), &Endpoint::new(""));
        let (deltas, end) = in_pieces(reader, [body.as_bytes()]);
        for piece in [1, 7, 1460, usize::MAX] {
            let peer = Peer::start(vec![Does::Say(events(&body))], piece).await;
            let heard = hear(&http(wire, &peer, Patience::default()), ask()).await;
            assert_eq!(heard.deltas, deltas, "{wire}, {piece} bytes at a time");
            assert_eq!(heard.end, end, "{wire}, {piece} bytes at a time");
        }
        assert!(end.unwrap().message.calls().count() > 1, "{wire}: parallel calls");
    }
}

#[tokio::test]
async fn an_answer_at_once_is_read_in_either_delivery() {
    for (wire, body) in wholes() {
        for delivery in [Delivery::Whole, Delivery::Stream] {
            let said = answer(200, &[("content-type", "application/json")], &body);
            let peer = Peer::start(vec![Does::Say(said)], 11).await;
            let question = Ask { delivery, ..ask() };
            let heard = hear(&http(wire, &peer, Patience::default()), question).await;
            assert_eq!(heard.deltas, [], "{wire}");
            let reply = heard.end.unwrap();
            assert_eq!(
                (&*reply.message.text(), &reply.stop),
                ("Grüße", &Stop::ToolCalls),
                "{wire}"
            );
            let calls: Vec<_> = reply.message.calls().collect();
            assert_eq!(calls.len(), 2, "{wire}");
            for call in calls {
                assert_eq!(call.name, "now", "{wire}");
                assert!(call.arguments.object().unwrap().is_empty(), "{wire}");
            }
            assert_eq!((reply.usage.input, reply.usage.output), (7, 3), "{wire}");
        }
    }
}

#[tokio::test]
async fn a_request_goes_where_its_wire_says_with_its_key() {
    let expected = [
        (Wire::OpenAiChat, "POST /v1/chat/completions HTTP/1.1", "authorization: Bearer "),
        (Wire::OpenAiResponses, "POST /v1/responses HTTP/1.1", "authorization: Bearer "),
        (Wire::Anthropic, "POST /v1/messages HTTP/1.1", "x-api-key: "),
        (
            Wire::Gemini,
            "POST /v1/models/some-model:streamGenerateContent?alt=sse HTTP/1.1",
            "x-goog-api-key: ",
        ),
    ];
    for ((wire, line, key), (_, body)) in expected.into_iter().zip(streams()) {
        let peer = Peer::start(vec![Does::Say(events(&body))], usize::MAX).await;
        let http = http(wire, &peer, Patience::default());
        hear(&http, ask()).await.end.unwrap();
        let seen = peer.seen().remove(0);
        assert_eq!(seen.head.lines().next(), Some(line));
        assert!(seen.head.contains(&format!("{key}{KEY}")), "{}", seen.head);
        assert!(seen.head.contains(&peer.url("")["http://".len()..]), "{}", seen.head);
        let sent = wire.request(&ask(), http.endpoint()).body;
        assert_eq!(seen.body.as_bytes(), sent, "{wire}");
        let sent: Value = serde_json::from_slice(&sent).unwrap();
        assert!(sent["tools"].is_array(), "{wire}");
        assert!(!format!("{http:?}").contains("0123456789"));
    }
}

#[tokio::test]
async fn a_refusal_is_an_answer() {
    let body = stream(&[
        r#"{"choices":[{"delta":{"refusal":"I cannot."}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
        "[DONE]",
    ]);
    let heard = once(Wire::OpenAiChat, Does::Say(events(&body))).await;
    assert_eq!(heard.deltas, [Delta::Refusal("I cannot.".into())]);
    assert_eq!(heard.end.unwrap().stop, Stop::Refusal);
}

#[tokio::test]
async fn who_has_too_much_to_do_is_asked_again_when_it_says() {
    let busy = [
        (
            429,
            ("retry-after-ms", "1"),
            r#"{"error":{"message":"slow","code":"rate_limit_exceeded"}}"#,
        ),
        (
            529,
            ("retry-after", "0"),
            r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#,
        ),
        (
            503,
            ("retry-after", "0.001"),
            r#"{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}"#,
        ),
    ];
    for (wire, body) in streams() {
        let refusals =
            busy.map(|(status, header, body)| Does::Say(answer(status, &[header], body)));
        let mut does = Vec::from(refusals);
        does.push(Does::Say(events(&body)));
        let peer = Peer::start(does, usize::MAX).await;
        let heard = hear(&http(wire, &peer, Patience::default()), ask()).await;
        assert!(heard.end.is_ok(), "{wire}: {:?}", heard.end);
        let told: Vec<_> = heard.again.iter().map(|(error, _)| error.as_str()).collect();
        assert_eq!(
            told,
            [
                "too much was asked in too short a time (HTTP 429): slow",
                "the provider is overloaded (HTTP 529): busy",
                "the provider is overloaded (HTTP 503): busy",
            ]
        );
        assert!(heard.again.iter().all(|(_, after)| *after < Duration::from_millis(5)));
        let seen = peer.seen();
        assert_eq!(seen.len(), 4);
        assert!(seen.iter().all(|again| again.body == seen[0].body), "the same is asked");
        assert!(seen.iter().all(|again| again.connection == 0), "over the same connection");
    }
}

#[tokio::test]
async fn an_overload_at_the_beginning_of_a_stream_is_repeated() {
    let start = r#"{"type":"message_start","message":{"id":"a","model":"m","usage":{"input_tokens":9,"output_tokens":1}}}"#;
    let overloaded =
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let busy = events(&stream(&[start, overloaded]));
    let does = vec![Does::Say(busy), Does::Say(events(&anthropic::tests::everything()))];
    let peer = Peer::start(does, usize::MAX).await;
    let heard = hear(&http(Wire::Anthropic, &peer, impatient()), ask()).await;
    assert_eq!(
        heard.again,
        [("the provider is overloaded: Overloaded".into(), impatient().longest_wait)]
    );
    assert!(heard.end.is_ok());
}

#[tokio::test]
async fn after_part_of_an_answer_nothing_is_asked_again() {
    for (wire, body) in streams() {
        let half = &body[..body.floor_char_boundary(body.len() * 4 / 5)];
        let told = r#"{"error":{"type":"overloaded_error","message":"busy","code":503}}"#;
        let broken = [
            Does::Cut(begun(half)),
            Does::Hang(begun(half)),
            Does::Say(events(half)),
            Does::Say(events(&format!("{half}\n\ndata: {told}\n\n"))),
        ];
        for does in broken {
            let peer = Peer::start(vec![does], 100).await;
            let heard = hear(&http(wire, &peer, impatient()), ask()).await;
            assert!(!heard.deltas.is_empty(), "{wire}");
            assert!(heard.again.is_empty(), "{wire}");
            let error = heard.error();
            assert!(error.handed_out, "{wire}: {error}");
            assert!(error.to_string().starts_with("in the middle of the answer: "), "{error}");
            assert_eq!(peer.seen().len(), 1, "{wire}: {error}");
        }
    }
}

#[tokio::test]
async fn a_connection_that_breaks_before_the_answer_is_replaced() {
    let whole = wholes()[0].1.clone();
    let body = chat::tests::everything();
    for delivery in [Delivery::Stream, Delivery::Whole] {
        let half = answer(200, &[], &whole);
        let mut does = vec![
            Does::Cut(Vec::new()),
            Does::Cut(b"HTTP/1.1 200 OK\r\ncontent-ty".to_vec()),
            Does::Cut(half[..half.len() - 40].to_vec()),
        ];
        does.push(match delivery {
            Delivery::Stream => Does::Say(events(&body)),
            Delivery::Whole => Does::Say(half),
        });
        let peer = Peer::start(does, usize::MAX).await;
        let question = Ask { delivery, ..ask() };
        let heard = hear(&http(Wire::OpenAiChat, &peer, impatient()), question).await;
        assert_eq!(heard.again.len(), 3, "{:?}", heard.again);
        for (error, _) in &heard.again {
            assert!(error.starts_with("the answer ended before its end"), "{error}");
        }
        assert!(heard.end.is_ok());
    }
}

#[tokio::test]
async fn it_is_given_up_after_so_many_tries() {
    let failed = || Does::Say(answer(500, &[], r#"{"error":{"message":"oops"}}"#));
    let peer = Peer::start((0..9).map(|_| failed()).collect(), usize::MAX).await;
    let heard = hear(&http(Wire::OpenAiChat, &peer, impatient()), ask()).await;
    assert_eq!((heard.again.len(), peer.seen().len()), (3, 4));
    assert_eq!(heard.error().to_string(), "the provider failed (HTTP 500): oops");
}

#[tokio::test]
async fn a_wait_that_is_too_long_is_not_waited() {
    let limited = answer(429, &[("retry-after", "900")], r#"{"error":{"message":"quota"}}"#);
    let peer = Peer::start(vec![Does::Say(limited)], usize::MAX).await;
    let heard = hear(&http(Wire::OpenAiChat, &peer, Patience::default()), ask()).await;
    assert_eq!(peer.seen().len(), 1);
    assert_eq!(
        heard.error().to_string(),
        "too much was asked in too short a time (HTTP 429): quota (it wants us to wait 15 min)"
    );
}

#[tokio::test]
async fn who_never_answers_is_not_waited_for_any_longer() {
    for delivery in [Delivery::Stream, Delivery::Whole] {
        let does = vec![Does::Hang(Vec::new()), Does::Hang(begun(": still here\n\n"))];
        let peer = Peer::start(does, usize::MAX).await;
        let patience = Patience { tries: 2, ..impatient() };
        let question = Ask { delivery, ..ask() };
        let heard = hear(&http(Wire::OpenAiChat, &peer, patience), question).await;
        assert_eq!((heard.again.len(), peer.seen().len()), (1, 2));
        assert_eq!(heard.error().cause, Cause::Silent { seconds: 0 });
    }
}

#[tokio::test]
async fn all_of_it_may_be_limited() {
    let peer = Peer::start(vec![Does::Hang(begun(": still here\n\n"))], usize::MAX).await;
    let total = Some(Duration::from_millis(50));
    let patience = Patience { total, ..Patience::default() };
    let heard = hear(&http(Wire::OpenAiChat, &peer, patience), ask()).await;
    let error = heard.error();
    assert_eq!(error.to_string(), "the answer took longer than it may");
    assert_eq!(error.retry(), Retry::No);
}

#[tokio::test]
async fn errors_say_what_is_wrong_and_what_to_do() {
    let cases = [
        (
            Wire::OpenAiResponses,
            401,
            json!({ "error": { "message": format!("Incorrect API key provided: {KEY}."), "code": "invalid_api_key" } })
                .to_string(),
            "the provider does not accept the key (HTTP 401): Incorrect API key provided: [secret].",
            Some("set `SOME_API_KEY` to a key that the provider takes"),
        ),
        (
            Wire::Gemini,
            400,
            r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}"#.into(),
            "the provider does not accept the key (HTTP 400): API key not valid. Please pass a valid API key.",
            Some("set `SOME_API_KEY` to a key that the provider takes"),
        ),
        (
            Wire::Anthropic,
            404,
            r#"{"type":"error","error":{"type":"not_found_error","message":"model: some-model"}}"#.into(),
            "the provider has no model `some-model` (HTTP 404): model: some-model",
            Some("ask for a model that the provider lists for this key"),
        ),
        (
            Wire::Anthropic,
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#.into(),
            "the conversation is longer than the model reads (210000 of 200000 tokens) (HTTP 400): \
             prompt is too long: 210000 tokens > 200000 maximum",
            Some("offer fewer tools, or shorten the conversation"),
        ),
        (
            Wire::OpenAiChat,
            404,
            "<!DOCTYPE html><title>Not found</title>".into(),
            "the answer is not what a provider writes (HTTP 404)",
            Some("check the base URL"),
        ),
        (
            Wire::OpenAiChat,
            200,
            "<!DOCTYPE html><title>Sign in</title>".into(),
            "the answer is not what a provider writes: a page for people",
            Some("check the base URL"),
        ),
        (
            Wire::OpenAiChat,
            502,
            "<html>Bad gateway</html>".into(),
            "the provider failed (HTTP 502)",
            None,
        ),
    ];
    for (wire, status, body, text, hint) in cases {
        let error = once(wire, Does::Say(answer(status, &[], &body))).await.error();
        assert_eq!((&*error.to_string(), error.hint().as_deref()), (text, hint));
    }
}

#[tokio::test]
async fn a_key_does_not_follow_a_redirect() {
    let elsewhere = Peer::start(Vec::new(), usize::MAX).await;
    let to = elsewhere.url("/v1/chat/completions?session=secret");
    let error =
        once(Wire::OpenAiChat, Does::Say(answer(307, &[("location", &to)], ""))).await.error();
    let shown = elsewhere.url("/v1/chat/completions");
    assert_eq!(
        error.to_string(),
        format!("the provider sends us to `{shown}`, which is not followed (HTTP 307)")
    );
    assert!(error.hint().is_some());
    assert!(elsewhere.seen().is_empty());
}

#[tokio::test]
async fn what_is_compressed_is_not_taken() {
    let zipped = answer(200, &[("content-encoding", "gzip")], "\u{1f}");
    let error = once(Wire::OpenAiChat, Does::Say(zipped)).await.error();
    assert_eq!(error.cause, Cause::NotJson);
}

#[tokio::test]
async fn one_connection_serves_many_questions() {
    for (wire, body) in streams() {
        let does = (0..3).map(|_| Does::Say(events(&body))).collect();
        let peer = Peer::start(does, usize::MAX).await;
        let http = http(wire, &peer, Patience::default());
        for _ in 0..3 {
            hear(&http.clone(), ask()).await.end.unwrap();
        }
        let connections: Vec<_> = peer.seen().iter().map(|seen| seen.connection).collect();
        assert_eq!(connections, [0, 0, 0], "{wire}");
    }
}

#[tokio::test]
async fn who_no_longer_listens_closes_the_connection() {
    let body = stream(&[r#"{"choices":[{"delta":{"content":"Well"}}]}"#]);
    let mut peer = Peer::start(vec![Does::Hang(begun(&body))], usize::MAX).await;
    let http = http(Wire::OpenAiChat, &peer, Patience::default());
    let mut said = http.ask(ask());
    assert!(matches!(said.next().await, Some(Said::Delta(Delta::Text(text))) if text == "Well"));
    drop(said);
    peer.somebody_left().await;
}

#[tokio::test]
async fn where_nobody_listens_is_told_at_once() {
    // Its port is taken, so nobody else can come to listen there.
    let deaf = tokio::net::TcpSocket::new_v4().unwrap();
    deaf.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let host = deaf.local_addr().unwrap().to_string();
    let endpoint = Endpoint::new(format!("http://{host}/v1"));
    let http = Http::new(Wire::OpenAiChat, endpoint, Patience::default()).unwrap();
    let heard = hear(&http, ask()).await;
    assert!(heard.again.is_empty());
    let error = heard.error();
    assert!(error.to_string().starts_with(&format!("cannot reach `{host}`: ")), "{error}");
    assert_eq!(
        error.hint().as_deref(),
        Some("nobody listens there: start it, or check the base URL")
    );
}

#[tokio::test]
async fn to_who_speaks_no_tls_nothing_is_said() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://127.0.0.1:{}/v1", listener.local_addr().unwrap().port());
    let endpoint = Endpoint::new(url).with_key(KEY.to_owned().into(), "SOME_API_KEY");
    let http = Http::new(Wire::OpenAiChat, endpoint, Patience::default()).unwrap();
    let peer = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut heard = Vec::new();
        stream.read_buf(&mut heard).await.unwrap();
        stream.write_all(&answer(400, &[], "speak http")).await.unwrap();
        stream.read_to_end(&mut heard).await.unwrap();
        String::from_utf8_lossy(&heard).into_owned()
    };
    let (heard, seen) = tokio::join!(hear(&http, ask()), peer);
    assert!(!seen.contains(KEY) && !seen.contains("POST"));
    assert!(heard.again.is_empty());
    let error = heard.error();
    assert!(matches!(error.cause, Cause::Unreachable { barrier: Barrier::Tls, .. }), "{error:?}");
    assert!(error.hint().unwrap().contains("SSL_CERT_FILE"));
}

#[test]
fn a_key_goes_nowhere_unprotected() {
    let made = |url: &str, key: Option<&str>| {
        let mut endpoint = Endpoint::new(url);
        endpoint.key = key.map(|key| key.to_owned().into());
        Http::new(Wire::OpenAiChat, endpoint, Patience::default()).map(drop)
    };
    assert!(made("http://models.example/v1", None).is_ok());
    assert!(made("https://models.example/v1", Some(KEY)).is_ok());
    assert!(made("http://localhost:8000/v1", Some(KEY)).is_ok());
    assert!(made("http://[::1]:8000/v1", Some(KEY)).is_ok());
    let error = made("http://models.example/v1", Some(KEY)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the key for `models.example` would go there unprotected: use https"
    );
    assert!(matches!(made("https://x/v1?key=s3", None), Err(EndpointError::Query(_))));
    assert!(matches!(made("models.example", None), Err(EndpointError::Address(_))));
    let error = made("https://x/v1", Some("two\nlines")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the header `authorization` cannot be sent: it has characters that HTTP does not allow"
    );
    let mut secret = Endpoint::new("http://models.example/v1");
    secret.headers.push(Header::secret("x-token", "s3"));
    let made = Http::new(Wire::OpenAiChat, secret, Patience::default());
    assert!(matches!(made, Err(EndpointError::InTheClear { .. })));
}
