//! Successful answers.

use super::*;

#[tokio::test]
async fn a_stream_says_the_same_wherever_it_is_split() {
    for (wire, body) in streams() {
        let reader = wire.reader(&model_request(), &ProviderEndpoint::new(""));
        let (deltas, end) = in_pieces(reader, [body.as_bytes()]);
        for piece in [1, 7, 1460, usize::MAX] {
            let peer = Peer::start(vec![Does::Say(events(&body))], piece).await;
            let heard =
                hear(&http(wire, &peer, ProviderTimeouts::default()), model_request()).await;
            assert_eq!(heard.deltas, deltas, "{wire}, {piece} bytes at a time");
            assert_eq!(heard.end, end, "{wire}, {piece} bytes at a time");
        }
        assert!(end.unwrap().message.calls().count() > 1, "{wire}: parallel calls");
    }
}

#[tokio::test]
async fn an_answer_at_once_is_read_in_either_delivery() {
    for (wire, body) in wholes() {
        for delivery in [ReplyDelivery::Complete, ReplyDelivery::Stream] {
            let said = answer(200, &[("content-type", "application/json")], &body);
            let peer = Peer::start(vec![Does::Say(said)], 11).await;
            let question = ModelRequest { delivery, ..model_request() };
            let heard = hear(&http(wire, &peer, ProviderTimeouts::default()), question).await;
            assert_eq!(heard.deltas, [], "{wire}");
            let reply = heard.end.unwrap();
            assert_eq!(
                (&*reply.message.text(), &reply.stop),
                ("Grüße", &StopReason::ToolCalls),
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
        (WireFormat::OpenAiChat, "POST /v1/chat/completions HTTP/1.1", "authorization: Bearer "),
        (WireFormat::OpenAiResponses, "POST /v1/responses HTTP/1.1", "authorization: Bearer "),
        (WireFormat::Anthropic, "POST /v1/messages HTTP/1.1", "x-api-key: "),
        (
            WireFormat::Gemini,
            "POST /v1/models/some-model:streamGenerateContent?alt=sse HTTP/1.1",
            "x-goog-api-key: ",
        ),
    ];
    for ((wire, line, key), (_, body)) in expected.into_iter().zip(streams()) {
        let peer = Peer::start(vec![Does::Say(events(&body))], usize::MAX).await;
        let http = http(wire, &peer, ProviderTimeouts::default());
        hear(&http, model_request()).await.end.unwrap();
        let seen = peer.seen().remove(0);
        assert_eq!(seen.head.lines().next(), Some(line));
        assert!(seen.head.contains(&format!("{key}{KEY}")), "{}", seen.head);
        assert!(seen.head.contains(&peer.url("")["http://".len()..]), "{}", seen.head);
        let sent = wire.request(&model_request(), http.endpoint()).body;
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
    let heard = once(WireFormat::OpenAiChat, Does::Say(events(&body))).await;
    assert_eq!(heard.deltas, [ReplyDelta::Refusal("I cannot.".into())]);
    assert_eq!(heard.end.unwrap().stop, StopReason::Refusal);
}

#[tokio::test]
async fn one_connection_serves_many_questions() {
    for (wire, body) in streams() {
        let does = (0..3).map(|_| Does::Say(events(&body))).collect();
        let peer = Peer::start(does, usize::MAX).await;
        let http = http(wire, &peer, ProviderTimeouts::default());
        for _ in 0..3 {
            hear(&http.clone(), model_request()).await.end.unwrap();
        }
        let connections: Vec<_> = peer.seen().iter().map(|seen| seen.connection).collect();
        assert_eq!(connections, [0, 0, 0], "{wire}");
    }
}

#[tokio::test]
async fn who_no_longer_listens_closes_the_connection() {
    let body = stream(&[r#"{"choices":[{"delta":{"content":"Well"}}]}"#]);
    let mut peer = Peer::start(vec![Does::Hang(begun(&body))], usize::MAX).await;
    let http = http(WireFormat::OpenAiChat, &peer, ProviderTimeouts::default());
    let mut said = http.request(model_request());
    assert!(
        matches!(said.next().await, Some(ProviderEvent::Delta(ReplyDelta::Text(text))) if text == "Well")
    );
    drop(said);
    peer.somebody_left().await;
}
