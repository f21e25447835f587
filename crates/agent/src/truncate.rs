//! Truncation of results.

use crate::run_tools::READ_RESULT;
use consort_models::{MessagePart, PartContent, ToolCallResult};

/// Returns the last character boundary at or before this index.
pub(crate) fn boundary(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at.min(text.len()))
}

/// Returns the note after a truncated result that explains how to read the rest.
pub(crate) fn rest_note(call: &str, from: usize, whole: usize) -> String {
    format!(
        "\n\n[{from} of {whole} bytes shown; call `{READ_RESULT}` with {{\"call\": \"{call}\", \
         \"from\": {from}}} for more]"
    )
}

/// Returns a result with at most this much text, and its full text if that is longer.
pub(crate) fn shorten_result(
    mut result: ToolCallResult,
    most: usize,
) -> (ToolCallResult, Option<String>) {
    let text = |part: &MessagePart| match &part.content {
        PartContent::Text { text } => text.len(),
        PartContent::Resource(resource) => resource.text.as_ref().map_or(0, String::len),
        _ => 0,
    };
    // What was read of such a result before fits, with the words behind it.
    if result.parts.iter().map(text).sum::<usize>() <= most + 512 {
        return (result, None);
    }
    let mut whole = String::new();
    let mut parts = Vec::new();
    for part in result.parts {
        let words = match &part.content {
            PartContent::Text { text } => Some(text.as_str()),
            PartContent::Resource(resource) => resource.text.as_deref(),
            _ => None,
        };
        match words {
            Some(words) => {
                if !whole.is_empty() {
                    whole.push('\n');
                }
                whole.push_str(words);
            }
            None => parts.push(part),
        }
    }
    let end = boundary(&whole, most);
    let shown = format!("{}{}", &whole[..end], rest_note(&result.call, end, whole.len()));
    parts.insert(0, MessagePart::text(shown));
    result.parts = parts;
    (result, Some(whole))
}
