//! Results of which a model sees only a part at once.

use crate::bound::READ_RESULT;
use crate::message::{CallResult, Kind, Part};

/// The last place at or before this one where a character begins.
pub(crate) fn boundary(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at.min(text.len()))
}

/// The words behind a part of a result that say how to read on.
pub(crate) fn rest(call: &str, from: usize, whole: usize) -> String {
    format!(
        "\n\n[{from} of {whole} bytes shown; call `{READ_RESULT}` with {{\"call\": \"{call}\", \
         \"from\": {from}}} for more]"
    )
}

/// A result of which the model sees so much text, and all of the text if that is more.
pub(crate) fn shortened(mut result: CallResult, most: usize) -> (CallResult, Option<String>) {
    let text = |part: &Part| match &part.kind {
        Kind::Text { text } => text.len(),
        Kind::Resource(resource) => resource.text.as_ref().map_or(0, String::len),
        _ => 0,
    };
    // What was read of such a result before fits, with the words behind it.
    if result.parts.iter().map(text).sum::<usize>() <= most + 512 {
        return (result, None);
    }
    let mut whole = String::new();
    let mut parts = Vec::new();
    for part in result.parts {
        let words = match &part.kind {
            Kind::Text { text } => Some(text.as_str()),
            Kind::Resource(resource) => resource.text.as_deref(),
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
    let shown = format!("{}{}", &whole[..end], rest(&result.call, end, whole.len()));
    parts.insert(0, Part::text(shown));
    result.parts = parts;
    (result, Some(whole))
}
