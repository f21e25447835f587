//! Helpers shared by the tests of every wire format.

use std::sync::Arc;

use consort_core::{Json, Tool};
use serde_json::{Value, json};

use crate::endpoint::Endpoint;
use crate::error::ProviderError;
use crate::message::{Call, CallResult, Kind, Media, Message, Part, Resource, Role};
use crate::reader::Reader;
use crate::reply::{Delta, Reply};
use crate::request::Ask;
use crate::wire_format::Wire;

/// A stream of events with these data.
pub(crate) fn stream(data: &[&str]) -> String {
    data.iter().flat_map(|data| ["data: ", data, "\n\n"]).collect()
}

/// Reads a body with status 200, and checks that the result is the same however the body is split.
pub(crate) fn read(wire: Wire, body: &str) -> (Vec<Delta>, Result<Reply, ProviderError>) {
    read_with(&|| Reader::new(wire), body.as_bytes())
}

/// Reads with another reader.
pub(crate) fn read_with(
    reader: &dyn Fn() -> Reader,
    body: &[u8],
) -> (Vec<Delta>, Result<Reply, ProviderError>) {
    let whole = in_pieces(reader(), [body]);
    let bytes = in_pieces(reader(), body.chunks(1));
    assert_eq!(whole, bytes, "pieces make no difference");
    whole
}

/// Reads a body that arrives in these pieces.
pub(crate) fn in_pieces<'a>(
    mut reader: Reader,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Delta>, Result<Reply, ProviderError>) {
    let deltas = pieces.into_iter().flat_map(|piece| reader.feed(piece)).collect();
    (deltas, reader.end())
}

/// Returns the error of a response with this status.
pub(crate) fn refused(
    wire: Wire,
    status: u16,
    headers: &[(&str, &str)],
    body: &str,
) -> ProviderError {
    let mut reader = Reader::new(wire);
    reader.head(status, headers.iter().copied());
    in_pieces(reader, body.as_bytes().chunks(3)).1.unwrap_err()
}

/// Returns the body of the request, formatted for reading.
pub(crate) fn body(wire: Wire, ask: &Ask) -> String {
    let request = wire.request(ask, &Endpoint::new(wire.base_url()));
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

pub(crate) fn call(id: &str, name: &str, arguments: &str) -> Part {
    Kind::ToolCall(Call { id: id.into(), name: name.into(), arguments: arguments.into() }).into()
}

/// A conversation with everything that may fail at a provider.
pub(crate) fn conversation() -> Ask {
    let image = Kind::Image(Media::Data { mime: "image/png".into(), data: "iVBO".into() });
    let audio = Kind::Audio(Media::Data { mime: "audio/wav".into(), data: "UklG".into() });
    let pdf = Kind::Resource(Resource {
        uri: "file:///a/report.pdf".into(),
        mime: Some("application/pdf".into()),
        data: Some("JVBE".into()),
        ..Resource::default()
    });
    let foreign_thought = Kind::Thinking { text: "of another model".into(), redacted: false };
    let messages = vec![
        Message::system("Be brief."),
        Message::new(Role::User, vec![Part::text("What is this?"), image.clone().into()]),
        Message::new(Role::User, vec![pdf.into(), audio.into()]),
        Message::new(
            Role::Assistant,
            vec![
                foreign_thought.into(),
                Part::text(""),
                call("call_1", "web.get_weather", r#"{"city": "Oslo", "a": 1.0}"#),
                call("call_2", "gone.tool", "{oops"),
                call("call_3", "now", ""),
            ],
        ),
        Message::results([CallResult {
            call: "call_2".into(),
            parts: vec![Part::text("no such tool")],
            is_error: true,
        }]),
        Message::results([CallResult {
            call: "call_1".into(),
            parts: vec![Part::text("Rain."), image.into()],
            is_error: false,
        }]),
        Message::user("Go on."),
    ];
    Ask { tools: tools(), ..Ask::new("some-model", messages) }
}
