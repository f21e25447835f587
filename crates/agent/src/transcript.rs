//! Conversations as text for people: titles and message parts.

use consort_core::escape::shorten_line;

use consort_models::{MediaSource, MessagePart, PartContent};

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
pub fn part_text(part: &MessagePart) -> String {
    let media = |kind: &str, media: &MediaSource| match media {
        MediaSource::Data { mime, data } => {
            format!("[{kind}, {mime}, {} bytes of base64]", data.len())
        }
        MediaSource::Url { url, .. } => format!("[{kind}, {url}]"),
    };
    match &part.content {
        PartContent::Text { text } => text.clone(),
        PartContent::Refusal { text } => format!("[refusal] {text}"),
        PartContent::Image(image) => media("image", image),
        PartContent::Audio(audio) => media("audio", audio),
        PartContent::Resource(resource) => match &resource.text {
            Some(text) => format!("[{}] {text}", resource.uri),
            None => format!("[{}]", resource.uri),
        },
        PartContent::Thinking { redacted: true, .. } => "[encrypted reasoning]".to_owned(),
        PartContent::Thinking { text, .. } => {
            format!("[reasoning] {}", shorten_line(text, REASONING))
        }
        PartContent::ToolCall(call) => format!("[call to {}]", call.name),
        PartContent::ToolResult(_) => "[a result]".to_owned(),
        PartContent::Foreign => "[provider-specific content]".to_owned(),
    }
}
