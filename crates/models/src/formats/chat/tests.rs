//! Chat completions, checked against their documentation.

mod requests;

use serde_json::{Value, json};

use crate::message::{ChatMessage, MessagePart, MessageRole, PartContent, RawArguments};
use crate::tests::sample::{body, call, conversation, read, refused, stream, tools, written_out};
use crate::*;

const WIRE: WireFormat = WireFormat::OpenAiChat;

fn chunk(delta: &str) -> String {
    format!(
        r#"{{"id":"chatcmpl-1","object":"chat.completion.chunk","model":"gpt","choices":[{{"index":0,"delta":{delta},"finish_reason":null}}],"usage":null}}"#
    )
}

fn finish(reason: &str) -> String {
    format!(
        r#"{{"id":"chatcmpl-1","model":"gpt","choices":[{{"index":0,"delta":{{}},"finish_reason":"{reason}"}}]}}"#
    )
}

fn chunks(deltas: &[&str], reason: &str) -> String {
    let mut data: Vec<String> = deltas.iter().map(|delta| chunk(delta)).collect();
    data.push(finish(reason));
    stream(&data.iter().map(String::as_str).collect::<Vec<_>>()) + "data: [DONE]\n\n"
}

/// Parallel calls, sequential and interleaved, after reasoning and text.
pub(crate) fn everything() -> String {
    let mut all = vec![
        chunk(r#"{"role":"assistant","content":""}"#),
        chunk(r#"{"content":"Grüße "}"#),
        chunk(r#"{"content":"🎻"}"#),
        chunk(
            r#"{"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"get_weather","arguments":""}}]}"#,
        ),
        chunk(r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\":"}}]}"#),
        chunk(
            r#"{"tool_calls":[{"index":1,"id":"call_b","type":"function","function":{"name":"now","arguments":""}}]}"#,
        ),
        chunk(
            r#"{"tool_calls":[{"index":0,"function":{"arguments":" \"Tromsø\"}"}},{"index":1,"function":{"arguments":"{}"}}]}"#,
        ),
    ];
    all.push(finish("tool_calls"));
    all.push(r#"{"id":"chatcmpl-1","choices":[],"usage":{"prompt_tokens":20,"completion_tokens":9,"prompt_tokens_details":{"cached_tokens":5},"completion_tokens_details":{"reasoning_tokens":2}}}"#.to_owned());
    format!(
        ": keep-alive\n\n{}data:[DONE]\n\n",
        stream(&all.iter().map(String::as_str).collect::<Vec<_>>())
    )
}

fn calls(reply: &ModelReply) -> Vec<(&str, &str, &str)> {
    let calls = reply.message.calls();
    calls.map(|call| (&*call.id, &*call.name, call.arguments.as_str())).collect()
}

#[test]
fn parallel_calls_are_told_apart_by_their_index() {
    let reply = read(WIRE, &everything()).1.unwrap();
    assert_eq!(reply.message.text(), "Grüße 🎻");
    assert_eq!(
        calls(&reply),
        [("call_a", "get_weather", "{\"city\": \"Tromsø\"}"), ("call_b", "now", "{}")]
    );
    let usage = TokenUsage { input: 20, output: 9, cached_read: 5, cached_write: 0, reasoning: 2 };
    assert_eq!(
        (reply.stop, reply.usage, &*reply.model, &*reply.id),
        (StopReason::ToolCalls, usage, "gpt", "chatcmpl-1")
    );
}

#[test]
fn an_answer_at_once_is_read_alike() {
    let whole = r#"{"id":"c","object":"chat.completion","model":"gpt","choices":[{"index":0,"message":{"role":"assistant","content":"Hi","refusal":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"b\":1,\"a\":2}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}"#;
    let (deltas, reply) = read(WIRE, whole);
    let reply = reply.unwrap();
    assert!(deltas.is_empty());
    assert_eq!(reply.message.text(), "Hi");
    assert_eq!(calls(&reply), [("1", "f", r#"{"b":1,"a":2}"#)]);
    assert_eq!(reply.usage, TokenUsage { input: 1, output: 2, ..TokenUsage::default() });
}

#[test]
fn calls_without_index_without_id_and_with_an_object_are_understood() {
    let answer = chunks(
        &[
            r#"{"role":"assistant","content":"","tool_calls":[{"function":{"name":"a","arguments":{"z":1,"a":1.0}}},{"function":{"name":"b","arguments":"{}"}}]}"#,
            r#"{"tool_calls":[{"id":"x","function":{"name":"c"}}]}"#,
            r#"{"tool_calls":[{"function":{"arguments":"{\"n\":"}}]}"#,
            r#"{"tool_calls":[{"id":"x","function":{"arguments":"1}"}}]}"#,
        ],
        "stop",
    );
    let reply = read(WIRE, &answer).1.unwrap();
    assert_eq!(
        calls(&reply),
        [
            ("call_0_0", "a", r#"{"z":1,"a":1.0}"#),
            ("call_0_1", "b", "{}"),
            ("x", "c", r#"{"n":1}"#)
        ]
    );
    assert_eq!(reply.stop, StopReason::ToolCalls, "though it was said to have stopped");
    assert_eq!(reply.usage, TokenUsage::default());
}

#[test]
fn calls_that_are_all_said_to_be_the_first_stay_apart() {
    let answer = chunks(
        &[
            r#"{"tool_calls":[{"index":0,"id":"p","function":{"name":"a","arguments":"{}"},"extra_content":{"google":{"thought_signature":"sig"}}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"q","function":{"name":"b","arguments":"{}"}}]}"#,
        ],
        "tool_calls",
    );
    let reply = read(WIRE, &answer).1.unwrap();
    assert_eq!(calls(&reply), [("p", "a", "{}"), ("q", "b", "{}")]);
    let request = ModelRequest::new("m", vec![reply.message]);
    let sent: Value = serde_json::from_str(&body(WIRE, &request)).unwrap();
    assert_eq!(
        sent["messages"][0]["tool_calls"][0]["extra_content"],
        json!({ "google": { "thought_signature": "sig" } })
    );
}

#[test]
fn names_are_brought_back_and_ids_we_make_are_of_their_answer() {
    let mut request =
        ModelRequest::new("m", vec![ChatMessage::user("a"), ChatMessage::assistant("b")]);
    request.tools = tools();
    let names = ToolNameMap::new(WIRE, &request.tools);
    let there = names.provider_name("web.get_weather");
    assert_ne!(there, "web.get_weather");
    let mut reader = WIRE.reader(&request, &ProviderEndpoint::new("http://localhost"));
    let call = json!({ "tool_calls": [{ "function": { "name": there, "arguments": "{}" } }] });
    reader.feed(chunks(&[&call.to_string()], "stop").as_bytes());
    let reply = reader.end().unwrap();
    assert_eq!(calls(&reply), [("call_2_0", "web.get_weather", "{}")]);
}

#[test]
fn thoughts_come_by_either_name_and_go_back_by_it_while_the_question_is_the_same() {
    for field in ["reasoning_content", "reasoning"] {
        let answer = chunks(
            &[
                &format!(r#"{{"content":"","{field}":"let "}}"#),
                &format!(r#"{{"content":null,"{field}":"me see"}}"#),
                r#"{"tool_calls":[{"index":0,"id":"1","function":{"name":"now","arguments":"{}"}}]}"#,
            ],
            "tool_calls",
        );
        let (deltas, reply) = read(WIRE, &answer);
        let reply = reply.unwrap();
        assert_eq!(
            deltas[..2],
            [ReplyDelta::Thinking("let ".into()), ReplyDelta::Thinking("me see".into())]
        );
        let mut request = ModelRequest::new("m", vec![ChatMessage::user("time?"), reply.message]);
        let sent =
            |request: &ModelRequest| serde_json::from_str::<Value>(&body(WIRE, request)).unwrap();
        assert_eq!(sent(&request)["messages"][1][field], "let me see");
        request.messages.push(ChatMessage::user("and now?").into());
        assert_eq!(sent(&request)["messages"][1].get(field), None);
    }
}

#[test]
fn details_of_reasoning_go_back_as_they_came() {
    let answer = chunks(
        &[
            r#"{"reasoning_details":[{"type":"reasoning.text","text":"a"}],"content":"x"}"#,
            r#"{"reasoning_details":[{"type":"reasoning.encrypted","data":"e"}]}"#,
        ],
        "stop",
    );
    let reply = read(WIRE, &answer).1.unwrap();
    let sent: Value =
        serde_json::from_str(&body(WIRE, &ModelRequest::new("m", vec![reply.message]))).unwrap();
    assert_eq!(
        sent["messages"][0]["reasoning_details"],
        json!([{ "type": "reasoning.text", "text": "a" }, { "type": "reasoning.encrypted", "data": "e" }])
    );
}

#[test]
fn a_refusal_is_told_and_kept() {
    let (deltas, reply) =
        read(WIRE, &chunks(&[r#"{"refusal":"I can"}"#, r#"{"refusal":"not."}"#], "stop"));
    let reply = reply.unwrap();
    assert_eq!(deltas, [ReplyDelta::Refusal("I can".into()), ReplyDelta::Refusal("not.".into())]);
    assert_eq!(
        reply.message.parts,
        [MessagePart::from(PartContent::Refusal { text: "I cannot.".into() })]
    );
    assert_eq!(reply.stop, StopReason::Refusal);
}

#[test]
fn why_it_stopped_is_understood() {
    let stop = |reason: &str| read(WIRE, &chunks(&[r#"{"content":"a"}"#], reason)).1.unwrap().stop;
    assert_eq!(stop("stop"), StopReason::End);
    assert_eq!(stop("length"), StopReason::Length);
    assert_eq!(stop("content_filter"), StopReason::ContentFilter);
    assert_eq!(stop("tool_calls"), StopReason::End, "there are none");
    assert_eq!(
        stop("insufficient_system_resource"),
        StopReason::Other("insufficient_system_resource".into())
    );
}

#[test]
fn an_error_within_a_stream_of_success_is_an_error() {
    let told = |error: &str| read(WIRE, &stream(&[error])).1.unwrap_err();
    let error = told(r#"{"error":{"message":"slow down","type":"server_error","code":429}}"#);
    assert_eq!(error.kind, ProviderErrorKind::RateLimited);
    assert_eq!(told(r#"{"error":"boom"}"#).to_string(), "the answer ended with an error: boom");
    assert_eq!(
        told(r#"{"object":"error","message":"no","code":400}"#).kind,
        ProviderErrorKind::Invalid
    );
    let behind = stream(&[&chunk(r#"{"content":"a"}"#), r#"{"error":{"message":"x","code":502}}"#]);
    let error = read(WIRE, &behind).1.unwrap_err();
    assert_eq!(
        error.to_string(),
        "while streaming the answer: the provider returned a server error: x"
    );
    assert_eq!(error.retry(), RetryDecision::No);
}

#[test]
fn errors_by_status_are_understood() {
    let cause = |status, body: &str| refused(WIRE, status, &[], body).kind;
    assert_eq!(
        cause(
            400,
            r#"{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 130,512 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}"#
        ),
        ProviderErrorKind::ContextTooLong { limit: Some(128_000), requested: Some(130_512) }
    );
    assert_eq!(
        cause(
            404,
            r#"{"error":{"message":"The model `gpt-9` does not exist","code":"model_not_found"}}"#
        ),
        ProviderErrorKind::UnknownModel { model: String::new() }
    );
    assert_eq!(
        cause(
            404,
            r#"{"error":{"message":"model \"x\" not found, try pulling it first","type":"api_error"}}"#
        ),
        ProviderErrorKind::UnknownModel { model: String::new() }
    );
    assert_eq!(
        cause(
            429,
            r#"{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}"#
        ),
        ProviderErrorKind::OutOfCredit
    );
    assert_eq!(cause(403, "{}"), ProviderErrorKind::Permission);
    assert_eq!(cause(503, "upstream down"), ProviderErrorKind::Overloaded);
    assert_eq!(
        cause(422, r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#),
        ProviderErrorKind::Invalid
    );
    let limited = refused(WIRE, 429, &[("Retry-After", "7")], r#"{"error":{"message":"slow"}}"#);
    assert_eq!(limited.retry(), RetryDecision::After(std::time::Duration::from_secs(7)));
}
