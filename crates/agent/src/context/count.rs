//! Token count of a message.

use consort_models::tokens::{TokenVocabulary, count};
use serde_json::Value;

use consort_models::{ChatMessage, MediaSource, MessagePart, PartContent, ResourceContent};

/// Tokens of an image, whatever its size: the most that Anthropic counts for one, and twice what others count for
/// one of usual size.
pub const IMAGE: u64 = 1600;

/// Tokens of an audio clip: about a minute at 32 a second, as Gemini counts.
pub const AUDIO: u64 = 2000;

/// Tokens of a file that is not text: about a page of a PDF.
pub const FILE: u64 = 2000;

/// Overhead of each message in tokens.
const MESSAGE: u64 = 4;

/// Overhead of a call or a result in tokens.
const FRAME: u64 = 8;

/// Returns the tokens of a message: its text in `o200k`, images, audio and files at a flat rate. Providers other
/// than `OpenAI` count differently, within about a quarter.
pub fn tokens(message: &ChatMessage) -> u64 {
    MESSAGE + message.parts.iter().map(part).sum::<u64>()
}

fn part(part: &MessagePart) -> u64 {
    match &part.content {
        PartContent::Text { text }
        | PartContent::Thinking { text, .. }
        | PartContent::Refusal { text } => words(text),
        PartContent::Image(media) => address(media) + IMAGE,
        PartContent::Audio(media) => address(media) + AUDIO,
        PartContent::Resource(resource) => self::resource(resource),
        PartContent::ToolCall(call) => FRAME + words(&call.name) + words(call.arguments.as_str()),
        PartContent::ToolResult(result) => FRAME + result.parts.iter().map(self::part).sum::<u64>(),
        PartContent::Foreign => {
            let kept = serde_json::to_value(&part.opaque).unwrap_or(Value::Null);
            words(&kept.to_string())
        }
    }
}

fn resource(resource: &ResourceContent) -> u64 {
    let text = resource.text.as_deref().map_or(0, words);
    words(&resource.uri) + text + if resource.data.is_some() { FILE } else { 0 }
}

fn address(media: &MediaSource) -> u64 {
    match media {
        MediaSource::Data { .. } => 0,
        MediaSource::Url { url, .. } => words(url),
    }
}

fn words(text: &str) -> u64 {
    count(TokenVocabulary::O200k, text) as u64
}
