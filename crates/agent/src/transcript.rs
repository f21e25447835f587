//! Conversations as text for people: titles and message parts.

use consort_core::escape::shorten_line;

use crate::message::{Kind, Media, Part};

/// Name of an agent that is not in a config: a model with all tools.
pub const UNNAMED_AGENT: &str = "consort";

/// Limit of characters of a title, taken from the first message.
const TITLE: usize = 80;

/// Limit of characters shown of a model's reasoning.
const REASONING: usize = 240;

/// Returns the title of a conversation, from its first message.
pub fn conversation_title(message: &str) -> String {
    shorten_line(message, TITLE)
}

/// Returns a message part as text; content that is not text is described in brackets.
pub fn part_text(part: &Part) -> String {
    let media = |kind: &str, media: &Media| match media {
        Media::Data { mime, data } => format!("[{kind}, {mime}, {} bytes of base64]", data.len()),
        Media::Url { url, .. } => format!("[{kind}, {url}]"),
    };
    match &part.kind {
        Kind::Text { text } => text.clone(),
        Kind::Refusal { text } => format!("[refusal] {text}"),
        Kind::Image(image) => media("image", image),
        Kind::Audio(audio) => media("audio", audio),
        Kind::Resource(resource) => match &resource.text {
            Some(text) => format!("[{}] {text}", resource.uri),
            None => format!("[{}]", resource.uri),
        },
        Kind::Thinking { redacted: true, .. } => "[thoughts its provider keeps]".to_owned(),
        Kind::Thinking { text, .. } => format!("[thoughts] {}", shorten_line(text, REASONING)),
        Kind::ToolCall(call) => format!("[call of {}]", call.name),
        Kind::ToolResult(_) => "[a result]".to_owned(),
        Kind::Foreign => "[something only its provider understands]".to_owned(),
    }
}
