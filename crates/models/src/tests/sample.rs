//! Helpers shared by the tests of every wire format.

use std::sync::Arc;

use consort_core::{Json, Tool};
use serde_json::{Value, json};

use crate::endpoint::ProviderEndpoint;
use crate::error::ProviderError;
use crate::message::{
    ChatMessage, MediaSource, MessagePart, MessageRole, PartContent, ResourceContent, ToolCall,
    ToolCallResult,
};
use crate::reader::ResponseReader;
use crate::reply::{ModelReply, ReplyDelta};
use crate::request::ModelRequest;
use crate::wire_format::WireFormat;

/// A stream of events with these data.
pub(crate) fn stream(data: &[&str]) -> String {
    data.iter().flat_map(|data| ["data: ", data, "\n\n"]).collect()
}

/// Reads a body with status 200, and checks that the result is the same however the body is split.
pub(crate) fn read(
    wire: WireFormat,
    body: &str,
) -> (Vec<ReplyDelta>, Result<ModelReply, ProviderError>) {
    read_with(&|| ResponseReader::new(wire), body.as_bytes())
}

/// Reads with another reader.
pub(crate) fn read_with(
    reader: &dyn Fn() -> ResponseReader,
    body: &[u8],
) -> (Vec<ReplyDelta>, Result<ModelReply, ProviderError>) {
    let whole = in_pieces(reader(), [body]);
    let bytes = in_pieces(reader(), body.chunks(1));
    assert_eq!(whole, bytes, "pieces make no difference");
    whole
}

/// Reads a body that arrives in these pieces.
pub(crate) fn in_pieces<'a>(
    mut reader: ResponseReader,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<ReplyDelta>, Result<ModelReply, ProviderError>) {
    let deltas = pieces.into_iter().flat_map(|piece| reader.feed(piece)).collect();
    (deltas, reader.end())
}

/// Returns the error of a response with this status.
pub(crate) fn refused(
    wire: WireFormat,
    status: u16,
    headers: &[(&str, &str)],
    body: &str,
) -> ProviderError {
    let mut reader = ResponseReader::new(wire);
    reader.head(status, headers.iter().copied());
    in_pieces(reader, body.as_bytes().chunks(3)).1.unwrap_err()
}

/// Returns the body of the request, formatted for reading.
pub(crate) fn body(wire: WireFormat, request: &ModelRequest) -> String {
    let request = wire.request(request, &ProviderEndpoint::new(wire.base_url()));
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    written_out(&body, "")
}

/// Formats JSON, with values that fit on a line on one.
pub(crate) fn written_out(value: &Value, indent: &str) -> String {
    let short = value.to_string();
    if short.len() + indent.len() <= 120 {
        return short;
    }
    let inner = format!("{indent}  ");
    let (open, lines, close): (_, Vec<String>, _) = match value {
        Value::Array(items) => {
            let lines = items.iter().map(|item| format!("{inner}{}", written_out(item, &inner)));
            ('[', lines.collect(), ']')
        }
        Value::Object(members) => {
            let lines = members.iter().map(|(name, value)| {
                format!("{inner}{}: {}", json!(name), written_out(value, &inner))
            });
            ('{', lines.collect(), '}')
        }
        _ => return short,
    };
    format!("{open}\n{}\n{indent}{close}", lines.join(",\n"))
}

/// Two tools, one of them with a name that no provider accepts.
pub(crate) fn tools() -> Arc<[Tool]> {
    let schema = Json::parse(
        r#"{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}"#,
    );
    let none = Json::parse(r#"{"type":"object"}"#).unwrap();
    Arc::new([
        Tool::new("web.get_weather", "The weather in a city.", &schema.unwrap()),
        Tool::new("now", "The time.", &none),
    ])
}

pub(crate) fn call(id: &str, name: &str, arguments: &str) -> MessagePart {
    PartContent::ToolCall(ToolCall {
        id: id.into(),
        name: name.into(),
        arguments: arguments.into(),
    })
    .into()
}

/// A conversation with everything that may fail at a provider.
pub(crate) fn conversation() -> ModelRequest {
    let image =
        PartContent::Image(MediaSource::Data { mime: "image/png".into(), data: "iVBO".into() });
    let audio =
        PartContent::Audio(MediaSource::Data { mime: "audio/wav".into(), data: "UklG".into() });
    let pdf = PartContent::Resource(ResourceContent {
        uri: "file:///a/report.pdf".into(),
        mime: Some("application/pdf".into()),
        data: Some("JVBE".into()),
        ..ResourceContent::default()
    });
    let foreign_thought =
        PartContent::Thinking { text: "of another model".into(), redacted: false };
    let messages = vec![
        ChatMessage::system("Be brief."),
        ChatMessage::new(
            MessageRole::User,
            vec![MessagePart::text("What is this?"), image.clone().into()],
        ),
        ChatMessage::new(MessageRole::User, vec![pdf.into(), audio.into()]),
        ChatMessage::new(
            MessageRole::Assistant,
            vec![
                foreign_thought.into(),
                MessagePart::text(""),
                call("call_1", "web.get_weather", r#"{"city": "Oslo", "a": 1.0}"#),
                call("call_2", "gone.tool", "{oops"),
                call("call_3", "now", ""),
            ],
        ),
        ChatMessage::results([ToolCallResult {
            call: "call_2".into(),
            parts: vec![MessagePart::text("no such tool")],
            is_error: true,
        }]),
        ChatMessage::results([ToolCallResult {
            call: "call_1".into(),
            parts: vec![MessagePart::text("Rain."), image.into()],
            is_error: false,
        }]),
        ChatMessage::user("Go on."),
    ];
    ModelRequest { tools: tools(), ..ModelRequest::new("some-model", messages) }
}
