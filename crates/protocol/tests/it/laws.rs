//! Properties of the parsers, with random and with hostile input. Fuzz targets check the same.

mod envelope;
mod headers;
mod lines;
mod sse;

use proptest::prelude::*;
use proptest::sample::select;

/// Fragments of messages, so that many of the random texts are nearly valid.
const PIECES: [&str; 44] = [
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"",
    "\\",
    "\\u00e9",
    "\\ud83d",
    "\\udc00",
    "é",
    "🎻",
    "\u{2028}",
    " ",
    "\n",
    "\r",
    "\t",
    "0",
    "-0",
    "-",
    "1.5",
    "1e400",
    "123456789012345678901234567890",
    "9223372036854775808",
    "true",
    "false",
    "null",
    "\"jsonrpc\":\"2.0\"",
    "\"id\":1",
    "\"id\":\"a\"",
    "\"id\":null",
    "\"method\":\"tools/call\"",
    "\"params\":{}",
    "\"params\":{\"a\":1,\"a\":2}",
    "\"result\":{}",
    "\"error\":{\"code\":-32600,\"message\":\"x\"}",
    "\"Method\":1",
    "\"m\\u0065thod\":1",
    "{\"a\":",
    "[[[[[[[[",
    "]]]]]]]]",
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "\u{0}",
];

/// Envelopes that are valid except for their members.
fn envelope() -> impl Strategy<Value = String> {
    let member = select(&PIECES[28..39]).prop_map(str::to_owned);
    prop::collection::vec(member, 0..5).prop_map(|members| format!("{{{}}}", members.join(",")))
}

fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        9 => select(&PIECES[..]).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => any::<u8>().prop_map(|byte| vec![byte]),
    ];
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

/// Random streams.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = select(
        &[
            "\n",
            "\r",
            "\r\n",
            "\n\n",
            "data: x",
            "data:",
            "data",
            ":",
            "id: 7",
            "id:",
            "event: e",
            "retry: 5",
            "\u{feff}",
            "\u{0}",
            "é",
            "{\"id\":1,",
            "\"result\":{}",
            "{\"jsonrpc\":\"2.0\",\"id\":12,\"result\":{",
            "}}",
            "0123456789",
            "01234567890123456789012345678901234567890123456789",
        ][..],
    );
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat().into_bytes())
}

fn with_cuts(cuts: &[u8], stream: &[u8]) -> Vec<u8> {
    [cuts, stream].concat()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_json_and_what_is_a_message_others_read_alike(text in pieces(), message in envelope()) {
        envelope::check(&text);
        envelope::check(message.as_bytes());
    }

    #[test]
    fn lines_are_the_same_wherever_a_stream_is_cut(cuts: [u8; 6], stream in stream()) {
        lines::check(&with_cuts(&cuts, &stream));
    }

    #[test]
    fn events_are_the_same_wherever_a_stream_is_cut(cuts: [u8; 5], stream in stream()) {
        sse::check(&with_cuts(&cuts, &stream));
    }

    #[test]
    fn a_header_carries_any_text_there_and_back(text in ".{0,40}", bytes: Vec<u8>) {
        headers::check(text.as_bytes());
        headers::check(&bytes);
    }
}

#[test]
fn naughty_strings_are_read_like_any_others() {
    for text in testkit::fixtures::naughty_strings() {
        let quoted = serde_json::to_string(&text).unwrap();
        for text in [&*text, &*quoted] {
            envelope::check(text.as_bytes());
            headers::check(text.as_bytes());
            for cuts in [[255, 255, 1, 2, 3, 4], [20, 20, 0, 7, 0, 3]] {
                lines::check(&with_cuts(&cuts, format!("{text}\n{text}\r\n").as_bytes()));
                sse::check(&with_cuts(
                    &cuts[1..],
                    format!("data: {text}\r\n\n: {text}\n").as_bytes(),
                ));
            }
        }
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":{quoted},"method":{quoted},"params":{{{quoted}:{quoted}}}}}"#
        );
        envelope::check(message.as_bytes());
        let read = consort_protocol::JsonRpcMessage::parse(message).unwrap();
        let consort_protocol::JsonRpcMessage::Request { body, .. } = read else {
            panic!("{read:?}")
        };
        assert_eq!(body.method, text);
    }
}

#[test]
fn every_text_of_the_json_test_suite_is_read_as_others_read_it() {
    for (_, text) in crate::jsontestsuite::texts("") {
        envelope::check(&text);
    }
}

#[test]
fn a_schema_may_name_headers() {
    let schema = |annotation: &str| {
        format!(
            r#"{{"type":"object","properties":{{"a":{{"type":"string","x-mcp-header":"{annotation}"}}}}}}"#
        )
    };
    for annotation in ["A", "", "a b", "é", "a\\u0000"] {
        headers::check(format!("{}\0{{\"a\":\"é\"}}", schema(annotation)).as_bytes());
    }
}
