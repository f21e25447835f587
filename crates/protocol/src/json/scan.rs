//! The strict scan: one pass over a value that checks UTF-8, grammar and depth, and builds nothing.

use wide::{i8x32, u8x32};

use super::{JsonError, JsonErrorKind};

/// The deepest nesting of a JSON value. The scan keeps one bit a level, so this is also its hard limit.
pub const DEPTH: u32 = 128;

/// Checks the value that starts at `at` (white space before it is skipped) and returns its range.
///
/// `depth` is the number of levels that already enclose it.
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

/// Checks the key at `at` and its colon. Returns the end of the key (quotes included) and the position
/// after the colon.
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

/// Returns the first position from `at` on that is not white space.
#[inline]
pub(crate) fn space(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(at) {
        at += 1;
    }
    at
}

/// Checks the string whose opening quote is at `at` and returns the position after its closing quote.
pub(crate) fn string(bytes: &[u8], at: usize) -> Result<usize, JsonError> {
    match short(bytes, at) {
        Some(end) => Ok(end),
        None => long(bytes, at + 1),
    }
}

/// Returns the position after a string that is short and has no escapes, as most have none: one look finds its end.
#[inline]
pub(crate) fn short(bytes: &[u8], at: usize) -> Option<usize> {
    let start = at + 1;
    let chunk = bytes.get(start..)?.first_chunk()?;
    let marks = special(&u8x32::new(*chunk)).to_bitmask();
    let first = start + marks.trailing_zeros() as usize;
    (marks != 0 && bytes[first] == b'"').then_some(first + 1)
}

/// Checks a string block by block. Errors are left to [`slow`], which locates them.
fn long(bytes: &[u8], start: usize) -> Result<usize, JsonError> {
    let mut at = start;
    // One if the first character of a block has a backslash before it.
    let mut escaping = 0;
    // How far characters of several bytes are checked.
    let mut checked = at;
    while let Some(block) = bytes.get(at..).and_then(|rest| rest.first_chunk::<64>()) {
        let block = ScanBlock::new(block);
        if escaping == 0 && block.is_plain() {
            at += 64;
            continue;
        }
        let (quotes, backslashes) = (block.all(b'"'), block.all(b'\\'));
        let escaped = escaped(backslashes, &mut escaping);
        let ends = quotes & !escaped;
        // All characters before the end; every one if it is not here.
        let within = !ends & ends.wrapping_sub(1);
        // Most of what stands behind a backslash is one of these.
        let rare = escaped & within & !(quotes | backslashes | block.all(b'n'));
        if rare != 0 && !block.may_be_escaped(rare, bytes, at) {
            return slow(bytes, start);
        }
        let mut others = block.special() & within & !quotes & !backslashes;
        others &= behind(checked.saturating_sub(at));
        while others != 0 {
            match several(bytes, at + others.trailing_zeros() as usize) {
                Ok(end) => checked = end,
                Err(_) => return slow(bytes, start),
            }
            others &= behind(checked - at);
        }
        if ends != 0 {
            return Ok(at + ends.trailing_zeros() as usize + 1);
        }
        at += 64;
    }
    slow(bytes, if escaping == 0 { at.max(checked) } else { at - 1 })
}

/// Checks a string character by character: the end of the input, and strings with errors.
fn slow(bytes: &[u8], mut at: usize) -> Result<usize, JsonError> {
    loop {
        at = match bytes.get(at) {
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => escape(bytes, at)?,
            Some(b' '..=0x7f) => at + 1,
            Some(_) => several(bytes, at)?,
            None => return Err(JsonError::new(JsonErrorKind::End, at)),
        };
    }
}

/// A block of characters that are examined together; results have a bit for each.
struct ScanBlock([u8x32; 2]);

impl ScanBlock {
    #[inline]
    fn new(bytes: &[u8; 64]) -> Self {
        let half = |at: usize| bytes[at..].first_chunk::<32>().expect("there are 64");
        Self([u8x32::new(*half(0)), u8x32::new(*half(32))])
    }

    /// Returns true if it contains only plain characters.
    #[inline]
    fn is_plain(&self) -> bool {
        !(special(&self.0[0]) | special(&self.0[1])).any()
    }

    #[inline]
    fn special(&self) -> u64 {
        bits(self.0.each_ref().map(|half| special(half).to_bitmask()))
    }

    #[inline]
    fn all(&self, byte: u8) -> u64 {
        bits(self.0.each_ref().map(|half| half.simd_eq(u8x32::splat(byte)).to_bitmask()))
    }

    /// Returns true if a backslash may precede each of `these`. The block is at `at`.
    fn may_be_escaped(&self, these: u64, bytes: &[u8], at: usize) -> bool {
        let mut codes = these & self.all(b'u');
        let known = b"trbf/".iter().fold(codes, |known, byte| known | self.all(*byte));
        while codes != 0 {
            if !is_code(bytes, at + codes.trailing_zeros() as usize) {
                return false;
            }
            codes &= codes - 1;
        }
        these & !known == 0
    }
}

fn bits([low, high]: [u32; 2]) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// Returns a mask of all positions of a block but the first `count`.
fn behind(count: usize) -> u64 {
    u32::try_from(count).ok().and_then(|count| u64::MAX.checked_shl(count)).unwrap_or(0)
}

/// Returns a mask of the escaped characters of a block: of a run of backslashes, every other one and,
/// if their number is odd, the character after them.
#[inline]
fn escaped(backslashes: u64, escaping: &mut u64) -> u64 {
    const ODD: u64 = 0xaaaa_aaaa_aaaa_aaaa;
    let counting = backslashes & !*escaping;
    // The borrow runs along each row of them and stops behind it.
    let ends = (counting << 1 | ODD).wrapping_sub(counting) ^ ODD;
    let escaped = ends ^ (backslashes | *escaping);
    *escaping = (ends & backslashes) >> 63;
    escaped
}

/// Marks the characters of a string that need a check: `"`, `\`, control characters and anything not
/// ASCII.
#[inline]
fn special(chunk: &u8x32) -> i8x32 {
    // As signed bytes, control characters and all beyond ASCII are those below the space.
    let bytes = chunk.cast_signed();
    let is = |byte: u8| bytes.simd_eq(i8x32::splat(byte.cast_signed()));
    bytes.simd_lt(i8x32::splat(0x20)) | is(b'"') | is(b'\\')
}

/// Checks an escape sequence.
fn escape(bytes: &[u8], at: usize) -> Result<usize, JsonError> {
    match bytes.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 2),
        Some(b'u') if is_code(bytes, at + 1) => Ok(at + 6),
        _ => Err(JsonError::new(JsonErrorKind::Escape, at)),
    }
}

/// Returns true if four hexadecimal digits follow the `u` at `at`.
fn is_code(bytes: &[u8], at: usize) -> bool {
    bytes.get(at + 1..at + 5).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
}

/// Checks the run of multi-byte characters that starts at `at`.
fn several(bytes: &[u8], mut at: usize) -> Result<usize, JsonError> {
    if bytes[at] < 0x20 {
        return Err(JsonError::new(JsonErrorKind::Control, at));
    }
    loop {
        let next = |n: usize| bytes.get(at + n).copied().unwrap_or(0);
        let tail = |n: usize| next(n) & 0xc0 == 0x80;
        let length = match (next(0), next(1)) {
            (0xc2..=0xdf, _) => 2,
            (0xe0, 0xa0..=0xbf) | (0xe1..=0xec | 0xee..=0xef, _) | (0xed, 0x80..=0x9f) => 3,
            (0xf0, 0x90..=0xbf) | (0xf1..=0xf3, _) | (0xf4, 0x80..=0x8f) => 4,
            _ => return Err(JsonError::new(JsonErrorKind::Utf8, at)),
        };
        if !(1..length).all(tail) {
            return Err(JsonError::new(JsonErrorKind::Utf8, at));
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
        if at == start { Err(JsonError::new(JsonErrorKind::Number, at)) } else { Ok(at) }
    };
    let whole = at + usize::from(bytes.get(at) == Some(&b'-'));
    let mut at = digits(whole)?;
    if bytes[whole] == b'0' && at > whole + 1 {
        return Err(JsonError::new(JsonErrorKind::Number, whole));
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
        Err(JsonError::new(JsonErrorKind::Syntax, at))
    }
}

fn deeper(level: u32, at: usize) -> Result<u32, JsonError> {
    if level < DEPTH { Ok(level + 1) } else { Err(JsonError::new(JsonErrorKind::Depth, at)) }
}

fn unexpected(bytes: &[u8], at: usize) -> JsonError {
    JsonError::new(if at < bytes.len() { JsonErrorKind::Syntax } else { JsonErrorKind::End }, at)
}
