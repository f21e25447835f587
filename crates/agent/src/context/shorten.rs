//! A result that is too large, shortened once: its beginning and its end stay.

use super::count::{part, words};
use crate::message::{CallResult, Kind, Part};

/// Tokens of what is said in place of what is left out.
const NOTE: u64 = 24;

/// A result within so many tokens, to be used in its place from when it arrives; `None` if it is
/// within them as it is. Texts are cut in their middle, three quarters of what stays from their
/// beginning. What is behind a text that was cut is named. Pictures and the like stay or go.
pub fn shortened(result: &CallResult, most: u64) -> Option<CallResult> {
    if result.parts.iter().map(part).sum::<u64>() <= most {
        return None;
    }
    let mut room = most;
    let mut parts = Vec::new();
    let mut left_out = 0_usize;
    for piece in &result.parts {
        let tokens = part(piece);
        if left_out == 0 && tokens + NOTE <= room {
            room -= tokens;
            parts.push(piece.clone());
        } else if left_out == 0
            && let Some(cut) = cut(piece, room.saturating_sub(NOTE))
        {
            room = 0;
            left_out = 1;
            parts.push(cut);
        } else {
            room = 0;
            left_out += 1;
        }
    }
    let gone = result.parts.len() - parts.len();
    if gone > 0 {
        parts.push(Part::text(format!(
            "[{gone} more parts of the result are left out: it is too large]"
        )));
    }
    Some(CallResult { parts, ..result.clone() })
}

/// A text without its middle.
fn cut(piece: &Part, room: u64) -> Option<Part> {
    let mut piece = piece.clone();
    let text = match &mut piece.kind {
        Kind::Text { text } => text,
        Kind::Resource(resource) => resource.text.as_mut()?,
        _ => return None,
    };
    let tokens = words(text).max(1);
    let mut bytes = usize::try_from(room.saturating_mul(text.len() as u64) / tokens).unwrap_or(0);
    loop {
        let head = text.floor_char_boundary(bytes / 4 * 3);
        let tail = text.ceil_char_boundary(text.len() - bytes / 4);
        let (start, end) = (&text[..head], &text[tail..]);
        if bytes == 0 || words(start) + words(end) <= room {
            let gone = text[head..tail].chars().count();
            *text = format!(
                "{start}\n[… {gone} characters are left out: the result is too large …]\n{end}"
            );
            return Some(piece);
        }
        bytes = bytes / 10 * 9;
    }
}
