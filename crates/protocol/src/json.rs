//! JSON kept as the bytes it arrived in: checked once, sliced, never rewritten.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};

mod fold;
mod object;
pub(crate) mod scan;

pub use fold::fold;
pub(crate) use fold::folds_to;
pub(crate) use object::DuplicateMembers;
pub use object::Object;
pub use scan::DEPTH;

/// One JSON value as checked, unchanged bytes.
///
/// Cloning and slicing share the buffer. Equality is equality of bytes: `1.0` is not `1`.
///
/// ```
/// use consort_protocol::Json;
///
/// let value = Json::parse(r#"{"big": 123456789012345678901234567890, "a": [1, 2]}"#)?;
/// let object = value.to_object().expect("it starts with a brace");
/// assert_eq!(object.get("big").unwrap().as_str(), "123456789012345678901234567890");
/// assert_eq!(object.get("a").unwrap().read::<Vec<u8>>()?, [1, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Json(Bytes);

impl Json {
    /// The value `null`.
    pub const NULL: Self = Self(Bytes::from_static(b"null"));

    /// Checks that `text` is exactly one JSON value: UTF-8, well formed, at most [`DEPTH`] deep.
    pub fn parse(text: impl Into<Bytes>) -> Result<Self, JsonError> {
        let bytes = text.into();
        let (start, end) = scan::value(&bytes, 0, 0)?;
        scan::end(&bytes, end)?;
        Ok(Self(bytes.slice(start..end)))
    }

    /// Turns any serialisable value into JSON.
    pub fn from_value(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        serde_json::to_vec(value).map(|bytes| Self(bytes.into()))
    }

    /// Creates a JSON string from this text.
    pub fn string(text: &str) -> Self {
        Self(quoted(text).into())
    }

    /// `bytes` must have passed [`scan::value`].
    pub(crate) fn checked(bytes: Bytes) -> Self {
        Self(bytes)
    }

    /// The bytes as they arrived, without white space around them.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes as they arrived, sharing the buffer.
    pub fn to_bytes(&self) -> Bytes {
        self.0.clone()
    }

    /// The JSON text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("the scan checked it")
    }

    /// Decodes a JSON string; `None` for another type or an unpaired surrogate.
    pub fn text(&self) -> Option<Cow<'_, str>> {
        let inner = self.0.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        unescaped(inner)
    }

    /// An integer in range, `None` for anything else (`1.0` and `1e3` are not integers here).
    pub fn integer(&self) -> Option<i64> {
        self.scalar()?.parse().ok()
    }

    /// Any JSON number as a float.
    pub fn number(&self) -> Option<f64> {
        self.scalar()?.parse().ok().filter(|_| matches!(self.0[0], b'-' | b'0'..=b'9'))
    }

    /// The value of `true` or `false`.
    pub fn boolean(&self) -> Option<bool> {
        self.scalar()?.parse().ok()
    }

    /// The text of a possible number or boolean: never a long string, whose UTF-8 check would be
    /// wasted.
    fn scalar(&self) -> Option<&str> {
        (!matches!(self.0[0], b'"' | b'{' | b'[')).then(|| self.as_str())
    }

    /// The members of a JSON object, `None` for another type.
    pub fn to_object(&self) -> Option<Object> {
        (self.0[0] == b'{').then(|| Object::of(self))
    }

    /// The items of a JSON array, `None` for another type.
    pub fn to_items(&self) -> Option<Vec<Self>> {
        if self.0[0] != b'[' {
            return None;
        }
        let mut items = Vec::new();
        let mut at = scan::space(&self.0, 1);
        while self.0[at] != b']' {
            let (start, end) = scan::value(&self.0, at, 0).expect("the scan checked it");
            items.push(Self(self.0.slice(start..end)));
            at = scan::space(&self.0, end);
            if self.0[at] == b',' {
                at += 1;
            }
        }
        Some(items)
    }

    /// Deserializes the value into a Rust type.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.0)
    }

    /// A copy that does not keep the buffer of the message alive.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self(Bytes::copy_from_slice(&self.0))
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<serde_json::Value> for Json {
    fn from(value: serde_json::Value) -> Self {
        Self(value.to_string().into())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &serde_json::value::RawValue =
            serde_json::from_slice(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

/// Error in JSON, with its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem} at byte {at}")]
pub struct JsonError {
    problem: JsonErrorKind,
    at: usize,
}

impl JsonError {
    pub(crate) fn new(problem: JsonErrorKind, at: usize) -> Self {
        Self { problem, at }
    }

    /// Kind of error.
    pub fn problem(&self) -> JsonErrorKind {
        self.problem
    }

    /// The offset of the offending byte.
    pub fn at(&self) -> usize {
        self.at
    }
}

/// Kind of error in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonErrorKind {
    /// A character that is not allowed here.
    #[error("unexpected character")]
    Syntax,
    /// The text ends within a value.
    #[error("unexpected end")]
    End,
    /// Bytes that are not UTF-8.
    #[error("invalid UTF-8")]
    Utf8,
    /// A control character within a string.
    #[error("unescaped control character")]
    Control,
    /// An invalid escape sequence.
    #[error("invalid escape")]
    Escape,
    /// A number that JSON does not allow.
    #[error("invalid number")]
    Number,
    /// More levels than [`DEPTH`].
    #[error("nested deeper than 128 levels")]
    Depth,
    /// A duplicate member where it would be ambiguous.
    #[error("duplicate member")]
    Duplicate,
    /// Another type of value where an object is required.
    #[error("not an object")]
    NotAnObject,
}

/// `text` as a JSON string with its quotes.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a string always serialises")
}

/// Decodes the inside of a checked JSON string.
pub(crate) fn unescaped(inner: &[u8]) -> Option<Cow<'_, str>> {
    if memchr::memchr(b'\\', inner).is_none() {
        return std::str::from_utf8(inner).ok().map(Cow::Borrowed);
    }
    let mut quoted = Vec::with_capacity(inner.len() + 2);
    quoted.push(b'"');
    quoted.extend_from_slice(inner);
    quoted.push(b'"');
    serde_json::from_slice(&quoted).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &[u8]) -> Option<JsonErrorKind> {
        Json::parse(Bytes::copy_from_slice(text)).err().map(|error| error.problem())
    }

    #[test]
    fn what_rfc_8259_allows_is_accepted_and_kept() {
        for text in [
            "0",
            "-0",
            "1.5e-7",
            "1E400",
            "\"\"",
            "\"a\\u00e9\\n\"",
            "true",
            "null",
            "[]",
            "{}",
            "[ ]",
            "{ }",
            "[1,[2,[3]],{\"a\":{}}]",
            "{\"a\":1,\"a\":2}",
            "\"\\ud800\"",
            "\"日本語 text\"",
            "123456789012345678901234567890",
        ] {
            let padded = format!(" \r\n\t{text} \n");
            assert_eq!(
                Json::parse(padded).map(|json| json.as_str().to_owned()),
                Ok(text.to_owned())
            );
        }
    }

    #[test]
    fn what_it_forbids_is_refused_with_the_reason() {
        let cases: &[(&[u8], JsonErrorKind)] = &[
            (b"", JsonErrorKind::End),
            (b"[1,]", JsonErrorKind::Syntax),
            (b"{\"a\":1,}", JsonErrorKind::Syntax),
            (b"{,}", JsonErrorKind::Syntax),
            (b"[1 2]", JsonErrorKind::Syntax),
            (b"{\"a\" 1}", JsonErrorKind::Syntax),
            (b"[1}", JsonErrorKind::Syntax),
            (b"[1", JsonErrorKind::End),
            (b"\"a", JsonErrorKind::End),
            (b"\"a\nb\"", JsonErrorKind::Control),
            (b"\"\\x41\"", JsonErrorKind::Escape),
            (b"\"\\u12g4\"", JsonErrorKind::Escape),
            (b"01", JsonErrorKind::Number),
            (b"-", JsonErrorKind::Number),
            (b"1.", JsonErrorKind::Number),
            (b"1e", JsonErrorKind::Number),
            (b"+1", JsonErrorKind::Syntax),
            (b"tru", JsonErrorKind::Syntax),
            (b"1 2", JsonErrorKind::Syntax),
            (b"\xef\xbb\xbf1", JsonErrorKind::Syntax),
            (b"\"\xff\"", JsonErrorKind::Utf8),
            (b"\"\xc0\x80\"", JsonErrorKind::Utf8),
            (b"\"\xed\xa0\x80\"", JsonErrorKind::Utf8),
            (b"\"\xf4\x90\x80\x80\"", JsonErrorKind::Utf8),
            (b"\"\xe2\x82\"", JsonErrorKind::Utf8),
        ];
        for (text, expected) in cases {
            assert_eq!(problem(text), Some(*expected), "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn a_value_may_nest_128_levels_and_no_more() {
        let nested = |depth: usize| ["[".repeat(depth), "]".repeat(depth)].concat();
        assert_eq!(problem(nested(128).as_bytes()), None);
        assert_eq!(problem(nested(129).as_bytes()), Some(JsonErrorKind::Depth));
    }

    #[test]
    fn a_special_byte_is_found_at_every_place_of_a_string() {
        for length in 0..100 {
            for place in 0..length {
                for (special, expected) in [
                    (b'\n', JsonErrorKind::Control),
                    (0x80, JsonErrorKind::Utf8),
                    (b'"', JsonErrorKind::Syntax),
                ] {
                    let mut text = vec![b'a'; length + 2];
                    (text[0], text[length + 1]) = (b'"', b'"');
                    text[place + 1] = special;
                    assert_eq!(problem(&text), Some(expected), "{length} {place} {special}");
                }
            }
        }
    }

    #[test]
    fn what_takes_several_bytes_is_read_whole_at_every_place_of_a_string() {
        for place in 0..100 {
            for several in ["\\n", "\\\"", "\\\\", "\\u00e9", "é", "日本", "🎻", "\\\\\\\"é"]
            {
                for behind in [0, 1, 40] {
                    let text = format!("\"{}{several}{}\"", "a".repeat(place), "a".repeat(behind));
                    let json = Json::parse(text.clone()).map(|json| json.as_str().to_owned());
                    assert_eq!(json.as_deref(), Ok(text.as_str()));
                    assert_eq!(
                        problem(&text.as_bytes()[..text.len() - 1]),
                        Some(JsonErrorKind::End)
                    );
                }
            }
        }
    }

    #[test]
    fn integers_are_only_what_json_calls_one() {
        let integer = |text: &'static str| Json::parse(text).unwrap().integer();
        assert_eq!(integer("-7"), Some(-7));
        assert_eq!(integer("1.0"), None);
        assert_eq!(integer("\"1\""), None);
        assert_eq!(integer("123456789012345678901234567890"), None);
    }
}
