//! The strict scan: one pass over a value that checks UTF-8, grammar and depth, and builds nothing.

use wide::{i8x32, u8x32};

use super::{JsonError, Problem};

/// How deep a value may nest. The scan keeps one bit a level, so this is also its hard limit.
pub const DEPTH: u32 = 128;

/// Checks the value that starts at `at` (white space before it is skipped) and returns its range.
///
/// `depth` is how many levels already enclose it.
pub(crate) fn value(bytes: &[u8], at: usize, depth: u32) -> Result<(usize, usize), JsonError> {
    let start = space(bytes, at);
    let mut at = start;
    let mut level = depth;
    // One bit a level: 1 in an object, 0 in an array.
    let mut stack: u128 = 0;
    'value: loop {
        match bytes.get(at) {
            Some(b'"') => at = string(bytes, at)?,
            Some(b'{') => {
                level = deeper(level, at)?;
                stack = stack << 1 | 1;
                at = space(bytes, at + 1);
                if bytes.get(at) != Some(&b'}') {
                    at = space(bytes, key(bytes, at)?.1);
                    continue 'value;
                }
            }
            Some(b'[') => {
                level = deeper(level, at)?;
                stack <<= 1;
                at = space(bytes, at + 1);
                if bytes.get(at) != Some(&b']') {
                    continue 'value;
                }
            }
            Some(b'-' | b'0'..=b'9') => at = number(bytes, at)?,
            Some(b't') => at = literal(bytes, at, b"true")?,
            Some(b'f') => at = literal(bytes, at, b"false")?,
            Some(b'n') => at = literal(bytes, at, b"null")?,
            _ => return Err(unexpected(bytes, at)),
        }
        loop {
            if level == depth {
                return Ok((start, at));
            }
            at = space(bytes, at);
            let object = stack & 1 == 1;
            match bytes.get(at) {
                Some(b',') => {
                    at = space(bytes, at + 1);
                    if object {
                        at = space(bytes, key(bytes, at)?.1);
                    }
                    continue 'value;
                }
                Some(b'}') if object => {}
                Some(b']') if !object => {}
                _ => return Err(unexpected(bytes, at)),
            }
            at += 1;
            level -= 1;
            stack >>= 1;
        }
    }
}

/// Checks that nothing but white space follows.
pub(crate) fn end(bytes: &[u8], at: usize) -> Result<(), JsonError> {
    let at = space(bytes, at);
    if at == bytes.len() { Ok(()) } else { Err(unexpected(bytes, at)) }
}

/// Checks the key at `at` and its colon. Returns the end of the key (quotes included) and the place
/// behind the colon.
pub(crate) fn key(bytes: &[u8], at: usize) -> Result<(usize, usize), JsonError> {
    if bytes.get(at) != Some(&b'"') {
        return Err(unexpected(bytes, at));
    }
    let end = string(bytes, at)?;
    let colon = space(bytes, end);
    if bytes.get(colon) != Some(&b':') {
        return Err(unexpected(bytes, colon));
    }
    Ok((end, colon + 1))
}

/// The first place at or behind `at` that is not white space.
#[inline]
pub(crate) fn space(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(at) {
        at += 1;
    }
    at
}

/// Checks the string whose opening quote is at `at` and returns the place behind its closing quote.
pub(crate) fn string(bytes: &[u8], at: usize) -> Result<usize, JsonError> {
    let mut at = at + 1;
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        let mut marks = specials(chunk);
        let end = at + chunk.len();
        // One look finds all the special characters of a chunk; each is then dealt with in its turn.
        let behind = loop {
            if marks == 0 {
                break end;
            }
            let place = at + marks.trailing_zeros() as usize;
            if bytes[place] == b'"' {
                return Ok(place + 1);
            }
            let behind = special(bytes, place)?;
            if behind >= end {
                break behind;
            }
            marks &= u32::MAX << (behind - at);
        };
        at = behind;
    }
    loop {
        at = match bytes.get(at) {
            Some(b'"') => return Ok(at + 1),
            Some(b' '..=b'[' | b']'..=0x7f) => at + 1,
            _ => special(bytes, at)?,
        };
    }
}

/// Marks the characters of a string that need a look: one bit each for `"`, `\`, control characters
/// and whatever is not ASCII.
#[inline]
fn specials(chunk: &[u8; 32]) -> u32 {
    // As signed bytes, control characters and all beyond ASCII are those below the space.
    let bytes = u8x32::new(*chunk).cast_signed();
    let is = |byte: u8| bytes.simd_eq(i8x32::splat(byte.cast_signed()));
    (bytes.simd_lt(i8x32::splat(0x20)) | is(b'"') | is(b'\\')).to_bitmask()
}

/// Checks a special character within a string and returns the place behind it.
fn special(bytes: &[u8], at: usize) -> Result<usize, JsonError> {
    match bytes.get(at) {
        Some(b'\\') => escape(bytes, at),
        Some(0x80..) => multibyte(bytes, at),
        Some(_) => Err(JsonError::new(Problem::Control, at)),
        None => Err(JsonError::new(Problem::End, at)),
    }
}

fn escape(bytes: &[u8], at: usize) -> Result<usize, JsonError> {
    match bytes.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 2),
        Some(b'u') => {
            let digits = bytes.get(at + 2..at + 6);
            if digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                Ok(at + 6)
            } else {
                Err(JsonError::new(Problem::Escape, at))
            }
        }
        _ => Err(JsonError::new(Problem::Escape, at)),
    }
}

/// Checks the run of characters beyond ASCII that starts at `at`.
fn multibyte(bytes: &[u8], mut at: usize) -> Result<usize, JsonError> {
    loop {
        let next = |n: usize| bytes.get(at + n).copied().unwrap_or(0);
        let tail = |n: usize| next(n) & 0xc0 == 0x80;
        let length = match (next(0), next(1)) {
            (0xc2..=0xdf, _) => 2,
            (0xe0, 0xa0..=0xbf) | (0xe1..=0xec | 0xee..=0xef, _) | (0xed, 0x80..=0x9f) => 3,
            (0xf0, 0x90..=0xbf) | (0xf1..=0xf3, _) | (0xf4, 0x80..=0x8f) => 4,
            _ => return Err(JsonError::new(Problem::Utf8, at)),
        };
        if !(1..length).all(tail) {
            return Err(JsonError::new(Problem::Utf8, at));
        }
        at += length;
        if bytes.get(at).is_none_or(|&byte| byte < 0x80) {
            return Ok(at);
        }
    }
}

fn number(bytes: &[u8], at: usize) -> Result<usize, JsonError> {
    let digits = |mut at: usize| {
        let start = at;
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        if at == start { Err(JsonError::new(Problem::Number, at)) } else { Ok(at) }
    };
    let whole = at + usize::from(bytes.get(at) == Some(&b'-'));
    let mut at = digits(whole)?;
    if bytes[whole] == b'0' && at > whole + 1 {
        return Err(JsonError::new(Problem::Number, whole));
    }
    if bytes.get(at) == Some(&b'.') {
        at = digits(at + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        at += 1;
        at += usize::from(matches!(bytes.get(at), Some(b'+' | b'-')));
        at = digits(at)?;
    }
    Ok(at)
}

fn literal(bytes: &[u8], at: usize, word: &[u8]) -> Result<usize, JsonError> {
    let end = at + word.len();
    if bytes.get(at..end) == Some(word) {
        Ok(end)
    } else {
        Err(JsonError::new(Problem::Syntax, at))
    }
}

fn deeper(level: u32, at: usize) -> Result<u32, JsonError> {
    if level < DEPTH { Ok(level + 1) } else { Err(JsonError::new(Problem::Depth, at)) }
}

fn unexpected(bytes: &[u8], at: usize) -> JsonError {
    JsonError::new(if at < bytes.len() { Problem::Syntax } else { Problem::End }, at)
}
