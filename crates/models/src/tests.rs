//! Properties of every wire format.

use std::time::Duration;

use proptest::prelude::*;
use secrecy::SecretString;
use serde_json::Value;

mod laws;
mod replays;
pub(crate) mod sample;

use sample::{in_pieces, refused};

use crate::formats::{anthropic, chat, gemini, responses};
use crate::*;

/// Event streams with every kind of event, one for each wire format.
fn streams() -> [(WireFormat, String); 4] {
    [
        (WireFormat::OpenAiChat, chat::tests::everything()),
        (WireFormat::OpenAiResponses, responses::tests::everything()),
        (WireFormat::Anthropic, anthropic::tests::everything()),
        (WireFormat::Gemini, gemini::tests::everything()),
    ]
}

/// JSON with keys that have a meaning in some wire format, and random values.
fn hostile() -> impl Strategy<Value = Value> {
    const KEYS: &str = "type index delta message choices content text tool_calls function arguments name \
         id error usage content_block output_index item response output candidates parts \
         functionCall args thought thoughtSignature finishReason finish_reason \
         stop_reason status object input partial_json signature summary details \
         promptFeedback code reasoning refusal encrypted_content";
    const TEXTS: &str = "message response error message_start content_block_start content_block_delta \
         content_block_stop message_delta input_json_delta text_delta signature_delta \
         thinking tool_use text server_tool_use function_call reasoning \
         response.output_item.added response.output_item.done response.completed \
         response.function_call_arguments.delta stop 日本";
    let word = |words: &'static str| prop::sample::select(words.split(' ').collect::<Vec<_>>());
    let leaf = prop_oneof![
        Just("".into()),
        Just(Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<u64>().prop_map(Into::into),
        (0u64..3).prop_map(Into::into),
        word(TEXTS).prop_map(Into::into),
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        let key = word(KEYS).prop_map(str::to_owned);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::btree_map(key, inner, 0..8)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn how_the_bytes_are_split_makes_no_difference(
        mut cuts in prop::collection::vec(0usize..8000, 0..40),
    ) {
        for (wire, body) in streams() {
            let body = body.as_bytes();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in cuts.iter().copied().filter(|cut| *cut < body.len()) {
                pieces.push(&body[from..cut]);
                from = cut;
            }
            pieces.push(&body[from..]);
            let split = in_pieces(ResponseReader::new(wire), pieces);
            prop_assert_eq!(split, in_pieces(ResponseReader::new(wire), [body]));
        }
    }

    #[test]
    fn nothing_that_comes_makes_a_reader_panic(
        events in prop::collection::vec(hostile(), 0..12),
        noise in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        for wire in WireFormat::ALL {
            let mut reader = ResponseReader::new(wire);
            for event in &events {
                reader.feed(format!("data: {event}\n\n").as_bytes());
            }
            let _ = reader.end();
            let whole = Value::from(events.clone()).to_string();
            let _ = in_pieces(ResponseReader::new(wire), [whole.as_bytes()]);
            let _ = in_pieces(ResponseReader::new(wire), [&noise[..]]);
            let _ = refused(wire, 500, &[], &whole);
        }
    }

    #[test]
    fn a_stream_that_is_cut_is_never_taken_for_whole(cut in 0usize..8000) {
        for (wire, body) in streams() {
            // Everybody says why it stops in the last fifth.
            let cut = cut % (body.len() * 4 / 5);
            let (_, end) = in_pieces(ResponseReader::new(wire), [&body.as_bytes()[..cut]]);
            prop_assert!(end.is_err(), "{wire}: {cut} bytes of {}", body.len());
        }
    }
}

#[test]
fn what_a_whole_stream_says_is_understood() {
    for (wire, body) in streams() {
        let (deltas, end) = in_pieces(ResponseReader::new(wire), [body.as_bytes()]);
        let reply = end.unwrap();
        let texts = deltas.iter().filter_map(|delta| match delta {
            ReplyDelta::Text(text) => Some(text.as_str()),
            _ => None,
        });
        assert_eq!(texts.collect::<String>(), reply.message.text(), "{wire}");
        for (place, call) in reply.message.calls().enumerate() {
            let arguments = deltas.iter().filter_map(|delta| match delta {
                ReplyDelta::ToolCallArguments { index, fragment } if *index == place => {
                    Some(fragment.as_str())
                }
                _ => None,
            });
            assert_eq!(arguments.collect::<String>(), call.arguments.as_str(), "{wire}");
        }
        assert_eq!(reply.stop, StopReason::ToolCalls, "{wire}");
        assert_ne!(reply.usage, TokenUsage::default(), "{wire}");
        let kept = serde_json::to_string(&reply.message).unwrap();
        assert_eq!(serde_json::from_str::<ChatMessage>(&kept).unwrap(), reply.message, "{wire}");
    }
}

#[test]
fn a_cut_stream_may_be_repeated_only_if_nothing_was_handed_out() {
    for (wire, body) in streams() {
        let (_, end) = in_pieces(ResponseReader::new(wire), [&b""[..]]);
        assert_eq!(
            end.unwrap_err().retry(),
            RetryDecision::After(Duration::from_secs(1)),
            "{wire}"
        );
        let half = &body.as_bytes()[..body.len() * 4 / 5];
        let error = in_pieces(ResponseReader::new(wire), [half]).1.unwrap_err();
        assert_eq!(
            (&error.kind, error.retry()),
            (&ProviderErrorKind::Truncated, RetryDecision::No),
            "{wire}"
        );
    }
}

#[test]
fn what_is_too_large_is_refused() {
    let limits = AnswerLimits { answer_bytes: 600, ..AnswerLimits::default() };
    let exceeded = |wire: WireFormat, body: &str, limits: &AnswerLimits| {
        let reader = ResponseReader::new(wire).with_limits(limits.clone());
        in_pieces(reader, body.as_bytes().chunks(100)).1.unwrap_err().kind
    };
    for (wire, body) in streams() {
        let cause = |limits: AnswerLimits| exceeded(wire, &body, &limits);
        let some = AnswerLimits::default;
        assert_eq!(
            cause(limits.clone()),
            ProviderErrorKind::TooLarge(ExceededLimit::AnswerBytes(600))
        );
        assert_eq!(
            cause(AnswerLimits { argument_bytes: 3, ..some() }),
            ProviderErrorKind::TooLarge(ExceededLimit::ArgumentBytes(3))
        );
        assert_eq!(
            cause(AnswerLimits { calls: 1, ..some() }),
            ProviderErrorKind::TooLarge(ExceededLimit::Calls(1))
        );
        assert_eq!(
            cause(AnswerLimits { events: 2, ..some() }),
            ProviderErrorKind::TooLarge(ExceededLimit::Events(2))
        );
        assert_eq!(
            cause(AnswerLimits { event_bytes: 20, ..some() }),
            ProviderErrorKind::TooLarge(ExceededLimit::EventBytes(20))
        );
    }
    let deep = format!("data: {}\n\n", "[".repeat(100_000));
    for wire in WireFormat::ALL {
        assert_eq!(
            exceeded(wire, &deep, &AnswerLimits::default()),
            ProviderErrorKind::MalformedResponse
        );
    }
}

#[test]
fn a_page_for_people_is_no_answer() {
    let page = "<!DOCTYPE html><html><body>Sign in</body></html>";
    for wire in WireFormat::ALL {
        let error = in_pieces(ResponseReader::new(wire), [page.as_bytes()]).1.unwrap_err();
        assert_eq!(error.to_string(), "malformed response: an HTML page");
        assert_eq!(error.hint().as_deref(), Some("check the base URL"));
        assert_eq!(refused(wire, 404, &[], page).kind, ProviderErrorKind::MalformedResponse);
        assert_eq!(
            refused(wire, 502, &[], page).to_string(),
            "the provider returned a server error (HTTP 502)"
        );
    }
}

#[test]
fn a_secret_is_in_no_error_and_in_no_debug_text() {
    let key = "sk-live-0123456789abcdef";
    let endpoint = ProviderEndpoint::new("https://models.example")
        .with_key(SecretString::from(format!("{key}\n")), "OPENAI_API_KEY");
    let model_request = ModelRequest::new("m", vec![ChatMessage::user("hi")]);
    for wire in WireFormat::ALL {
        let request = wire.request(&model_request, &endpoint);
        let shown = format!("{request:?} {endpoint:?}");
        assert!(!shown.contains("0123456789"), "{shown}");
        let sent = request.headers.iter().find(|header| header.value.expose().ends_with(key));
        assert!(matches!(sent.unwrap().value, RequestHeaderValue::Secret(_)));
        assert!(!request.url.contains(key));

        let mut reader = wire.reader(&model_request, &endpoint);
        reader.head(401, []);
        reader.feed(
            format!(r#"{{"error":{{"message":"bad key {key}: sk-proj-9999999999\u001b[2J"}}}}"#)
                .as_bytes(),
        );
        let error = reader.end().unwrap_err();
        assert_eq!(
            error.to_string(),
            "the provider rejected the API key (HTTP 401): bad key [secret]: [secret]"
        );
        assert_eq!(error.hint().as_deref(), Some("set `OPENAI_API_KEY` to a valid API key"));
        assert_eq!(error.retry(), RetryDecision::No);
    }
}

#[test]
fn headers_and_members_of_an_endpoint_win() {
    let mut endpoint = ProviderEndpoint::new("https://proxy.example/v1/");
    endpoint.headers.push(RequestHeader::plain("Anthropic-Version", "next"));
    endpoint.body.insert("metadata".into(), serde_json::json!({ "user_id": "u" }));
    endpoint.body.insert("max_tokens".into(), Value::Null);
    let request = WireFormat::Anthropic
        .request(&ModelRequest::new("m", vec![ChatMessage::user("hi")]), &endpoint);
    assert_eq!(request.url, "https://proxy.example/v1/messages");
    let versions: Vec<_> = request
        .headers
        .iter()
        .filter(|header| header.name == "anthropic-version")
        .map(|header| header.value.expose())
        .collect();
    assert_eq!(versions, ["next"]);
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    assert_eq!(body["metadata"]["user_id"], "u");
    assert_eq!(body.get("max_tokens"), None);
}

#[test]
fn every_wire_is_told_by_its_word() {
    for wire in WireFormat::ALL {
        assert_eq!(wire.as_str().parse::<WireFormat>().unwrap(), wire);
    }
}
