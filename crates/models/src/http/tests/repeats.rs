//! Retries, and errors that are not retried.

use super::*;
use crate::message::{MessagePart, MessageRole, PartContent};

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
        let heard = hear(&http(wire, &peer, ProviderTimeouts::default()), model_request()).await;
        assert!(heard.end.is_ok(), "{wire}: {:?}", heard.end);
        let told: Vec<_> = heard.again.iter().map(|(error, _)| error.as_str()).collect();
        assert_eq!(
            told,
            [
                "rate limit exceeded (HTTP 429): slow",
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
    let heard = hear(&http(WireFormat::Anthropic, &peer, impatient()), model_request()).await;
    assert_eq!(
        heard.again,
        [("the provider is overloaded: Overloaded".into(), impatient().max_retry_wait)]
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
            let heard = hear(&http(wire, &peer, impatient()), model_request()).await;
            assert!(!heard.deltas.is_empty(), "{wire}");
            assert!(heard.again.is_empty(), "{wire}");
            let error = heard.error();
            assert!(error.mid_answer, "{wire}: {error}");
            assert!(error.to_string().starts_with("while streaming the answer: "), "{error}");
            assert_eq!(peer.seen().len(), 1, "{wire}: {error}");
        }
    }
}

#[tokio::test]
async fn a_connection_that_breaks_before_the_answer_is_replaced() {
    let whole = wholes()[0].1.clone();
    let body = chat::tests::everything();
    for delivery in [ReplyDelivery::Stream, ReplyDelivery::Complete] {
        let half = answer(200, &[], &whole);
        let mut does = vec![
            Does::Cut(Vec::new()),
            Does::Cut(b"HTTP/1.1 200 OK\r\ncontent-ty".to_vec()),
            Does::Cut(half[..half.len() - 40].to_vec()),
        ];
        does.push(match delivery {
            ReplyDelivery::Stream => Does::Say(events(&body)),
            ReplyDelivery::Complete => Does::Say(half),
        });
        let peer = Peer::start(does, usize::MAX).await;
        let question = ModelRequest { delivery, ..model_request() };
        let heard = hear(&http(WireFormat::OpenAiChat, &peer, impatient()), question).await;
        assert_eq!(heard.again.len(), 3, "{:?}", heard.again);
        for (error, _) in &heard.again {
            assert!(error.starts_with("the answer is truncated"), "{error}");
        }
        assert!(heard.end.is_ok());
    }
}

#[tokio::test]
async fn it_is_given_up_after_so_many_tries() {
    let failed = || Does::Say(answer(500, &[], r#"{"error":{"message":"oops"}}"#));
    let peer = Peer::start((0..9).map(|_| failed()).collect(), usize::MAX).await;
    let heard = hear(&http(WireFormat::OpenAiChat, &peer, impatient()), model_request()).await;
    assert_eq!((heard.again.len(), peer.seen().len()), (3, 4));
    assert_eq!(heard.error().to_string(), "the provider returned a server error (HTTP 500): oops");
}

#[tokio::test]
async fn a_wait_that_is_too_long_is_not_waited() {
    let limited = answer(429, &[("retry-after", "900")], r#"{"error":{"message":"quota"}}"#);
    let peer = Peer::start(vec![Does::Say(limited)], usize::MAX).await;
    let heard =
        hear(&http(WireFormat::OpenAiChat, &peer, ProviderTimeouts::default()), model_request())
            .await;
    assert_eq!(peer.seen().len(), 1);
    assert_eq!(
        heard.error().to_string(),
        "rate limit exceeded (HTTP 429): quota (the provider asks to retry after 15 min)"
    );
}

#[tokio::test]
async fn who_never_answers_is_not_waited_for_any_longer() {
    for delivery in [ReplyDelivery::Stream, ReplyDelivery::Complete] {
        let does = vec![Does::Hang(Vec::new()), Does::Hang(begun(": still here\n\n"))];
        let peer = Peer::start(does, usize::MAX).await;
        let timeouts = ProviderTimeouts { max_attempts: 2, ..impatient() };
        let question = ModelRequest { delivery, ..model_request() };
        let heard = hear(&http(WireFormat::OpenAiChat, &peer, timeouts), question).await;
        assert_eq!((heard.again.len(), peer.seen().len()), (1, 2));
        assert_eq!(heard.error().kind, ProviderErrorKind::IdleTimeout { seconds: 0 });
    }
}

#[tokio::test]
async fn all_of_it_may_be_limited() {
    let peer = Peer::start(vec![Does::Hang(begun(": still here\n\n"))], usize::MAX).await;
    let total = Some(Duration::from_millis(50));
    let timeouts = ProviderTimeouts { total, ..ProviderTimeouts::default() };
    let heard = hear(&http(WireFormat::OpenAiChat, &peer, timeouts), model_request()).await;
    let error = heard.error();
    assert_eq!(error.to_string(), "timeout");
    assert_eq!(error.retry(), RetryDecision::No);
}

#[tokio::test]
async fn thoughts_that_are_refused_are_left_out() {
    let refusals = [
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.",
    ];
    for refusal in refusals {
        let body = json!({ "type": "error", "error": { "type": "invalid_request_error", "message": refusal } });
        let refused = || Does::Say(answer(400, &[], &body.to_string()));
        let said = || Does::Say(events(&anthropic::tests::everything()));
        let peer = Peer::start(vec![refused(), said(), said(), refused()], usize::MAX).await;
        let http = http(WireFormat::Anthropic, &peer, ProviderTimeouts::default());
        let thought =
            MessagePart::from(PartContent::Thinking { text: "hm".into(), redacted: false });
        let thought = thought.with_opaque("anthropic", json!({ "signature": "s1gned" }));
        let before =
            ChatMessage::new(MessageRole::Assistant, vec![thought, MessagePart::text("Well.")]);
        let messages = vec![ChatMessage::user("hi"), before, ChatMessage::user("go on")];
        let question = ModelRequest::new("claude-sonnet-5-5", messages);

        let heard = hear(&http, question.clone()).await;
        assert_eq!(
            heard.again,
            [(
                format!("the provider rejected earlier reasoning (HTTP 400): {refusal}"),
                Duration::ZERO
            )]
        );
        assert!(heard.end.is_ok());
        assert!(hear(&http, question).await.again.is_empty(), "it is known by now");
        let with: Vec<bool> = peer.seen().iter().map(|seen| seen.body.contains("s1gned")).collect();
        assert_eq!(with, [true, false, false]);

        // Where there are none to leave out, it is an error.
        let error = hear(&http, model_request()).await.error();
        assert_eq!((error.kind, peer.seen().len()), (ProviderErrorKind::RejectedThinking, 4));
    }
}
