//! Token count of a message.

use consort_models::tokens::{Vocabulary, count};
use serde_json::Value;

use consort_models::{Kind, Media, Message, Part, Resource};

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
pub fn tokens(message: &Message) -> u64 {
    MESSAGE + message.parts.iter().map(part).sum::<u64>()
}

fn part(part: &Part) -> u64 {
    match &part.kind {
        Kind::Text { text } | Kind::Thinking { text, .. } | Kind::Refusal { text } => words(text),
        Kind::Image(media) => address(media) + IMAGE,
        Kind::Audio(media) => address(media) + AUDIO,
        Kind::Resource(resource) => self::resource(resource),
        Kind::ToolCall(call) => FRAME + words(&call.name) + words(call.arguments.as_str()),
        Kind::ToolResult(result) => FRAME + result.parts.iter().map(self::part).sum::<u64>(),
        Kind::Foreign => {
            let kept = serde_json::to_value(&part.opaque).unwrap_or(Value::Null);
            words(&kept.to_string())
        }
    }
}

fn resource(resource: &Resource) -> u64 {
    let text = resource.text.as_deref().map_or(0, words);
    words(&resource.uri) + text + if resource.data.is_some() { FILE } else { 0 }
}

fn address(media: &Media) -> u64 {
    match media {
        Media::Data { .. } => 0,
        Media::Url { url, .. } => words(url),
    }
}

fn words(text: &str) -> u64 {
    count(Vocabulary::O200k, text) as u64
}
