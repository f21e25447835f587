//! JSON kept as the bytes it arrived in: checked once, sliced, never rewritten.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use smallvec::SmallVec;

pub(crate) mod scan;

pub use scan::DEPTH;

/// One JSON value as checked, unchanged bytes.
///
/// Cloning and slicing share the buffer. Equality is equality of bytes: `1.0` is not `1`.
///
/// ```
/// use consort_wire::Json;
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

    /// A JSON string with this text.
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

    /// The text of a JSON string, `None` for another kind of value or for half a surrogate pair.
    pub fn text(&self) -> Option<Cow<'_, str>> {
        let inner = self.0.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        unescaped(inner)
    }

    /// An integer that fits, `None` for anything else (`1.0` and `1e3` are not integers here).
    pub fn integer(&self) -> Option<i64> {
        self.as_str().parse().ok()
    }

    /// Any JSON number as a float.
    pub fn number(&self) -> Option<f64> {
        matches!(self.0[0], b'-' | b'0'..=b'9')
            .then(|| self.as_str().parse().ok())
            .flatten()
    }

    /// `true` or `false`.
    pub fn boolean(&self) -> Option<bool> {
        self.as_str().parse().ok()
    }

    /// The members of a JSON object, `None` for another kind of value.
    pub fn to_object(&self) -> Option<Object> {
        (self.0[0] == b'{')
            .then(|| Object::parse(self.clone(), Duplicates::Keep).expect("the scan checked it"))
    }

    /// The items of a JSON array, `None` for another kind of value.
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

    /// Reads the value into a Rust type.
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

/// A JSON object with the places of its members.
#[derive(Clone)]
pub struct Object {
    json: Json,
    members: SmallVec<[Member; 8]>,
}

/// Where a member's key (without quotes) and value stand. A message is far below 4 GiB.
#[derive(Clone, Copy)]
struct Member {
    key: (u32, u32),
    value: (u32, u32),
}

/// What to do when an object names a member twice.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Duplicates {
    Keep,
    Refuse,
}

impl Object {
    /// The object without members.
    pub fn empty() -> Self {
        Self {
            json: Json(Bytes::from_static(b"{}")),
            members: SmallVec::new(),
        }
    }

    /// The members of `json`, which starts with a brace.
    fn parse(json: Json, duplicates: Duplicates) -> Result<Self, JsonError> {
        let mut object = Self {
            json,
            members: SmallVec::new(),
        };
        let bytes = object.json.0.clone();
        object.scan(&bytes, 0, 0, duplicates)?;
        Ok(object)
    }

    /// Checks the object that starts at `at` of a message and notes its members. Returns it and the
    /// place behind it.
    pub(crate) fn read(
        bytes: &Bytes,
        at: usize,
        depth: u32,
        duplicates: Duplicates,
    ) -> Result<(Self, usize), JsonError> {
        if bytes.get(at) != Some(&b'{') {
            return Err(JsonError::new(Problem::NotAnObject, at));
        }
        let mut object = Self {
            json: Json::NULL,
            members: SmallVec::new(),
        };
        let end = object.scan(bytes, at, depth, duplicates)?;
        object.json = Json(bytes.slice(at..end));
        Ok((object, end))
    }

    fn scan(
        &mut self,
        bytes: &[u8],
        base: usize,
        depth: u32,
        duplicates: Duplicates,
    ) -> Result<usize, JsonError> {
        let place = |at: usize| u32::try_from(at - base).expect("a message is below 4 GiB");
        let mut at = scan::space(bytes, base + 1);
        if bytes.get(at) == Some(&b'}') {
            return Ok(at + 1);
        }
        loop {
            let (key_end, behind) = scan::key(bytes, at)?;
            let (start, end) = scan::value(bytes, behind, depth + 1)?;
            self.members.push(Member {
                key: (place(at + 1), place(key_end - 1)),
                value: (place(start), place(end)),
            });
            at = scan::space(bytes, end);
            match bytes.get(at) {
                Some(b',') => at = scan::space(bytes, at + 1),
                Some(b'}') => break,
                _ => return Err(JsonError::new(Problem::Syntax, at)),
            }
        }
        if duplicates == Duplicates::Refuse {
            self.refuse_duplicates(&bytes[base..], base)?;
        }
        Ok(at + 1)
    }

    fn refuse_duplicates(&self, bytes: &[u8], base: usize) -> Result<(), JsonError> {
        let keys = || {
            self.members
                .iter()
                .map(|member| &bytes[member.key.0 as usize..member.key.1 as usize])
        };
        let twice = if self.members.len() <= 8 && !keys().any(|key| key.contains(&b'\\')) {
            (1..self.members.len()).find(|&n| keys().take(n).any(|key| Some(key) == keys().nth(n)))
        } else {
            let mut seen = std::collections::HashSet::new();
            let mut twice = None;
            for (n, key) in keys().enumerate() {
                // Half a surrogate pair has no text, so it could hide a second spelling.
                let text = unescaped(key);
                if text.is_none_or(|text| !seen.insert(text)) {
                    twice = Some(n);
                    break;
                }
            }
            twice
        };
        match twice {
            None => Ok(()),
            Some(n) => Err(JsonError::new(
                Problem::Duplicate,
                base + self.members[n].key.0 as usize,
            )),
        }
    }

    /// The value of a member, by its exact name.
    pub fn get(&self, name: &str) -> Option<Json> {
        self.members
            .iter()
            .find(|member| self.named(member, name))
            .map(|member| self.slice(member.value))
    }

    /// The bytes of a member's value, without touching the buffer's count.
    pub fn get_bytes(&self, name: &str) -> Option<&[u8]> {
        let member = self
            .members
            .iter()
            .find(|member| self.named(member, name))?;
        Some(&self.json.0[member.value.0 as usize..member.value.1 as usize])
    }

    /// The text of a member that is a string.
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name)?.text().map(Cow::into_owned)
    }

    /// The members in the order they were written: the key as JSON text without quotes, and the value.
    pub fn members(&self) -> impl Iterator<Item = (&str, Json)> {
        self.members
            .iter()
            .map(|member| (self.key(member), self.slice(member.value)))
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The object as JSON.
    pub fn json(&self) -> &Json {
        &self.json
    }

    /// The bytes as they arrived.
    pub fn as_bytes(&self) -> &[u8] {
        self.json.as_bytes()
    }

    fn key(&self, member: &Member) -> &str {
        std::str::from_utf8(&self.json.0[member.key.0 as usize..member.key.1 as usize])
            .expect("the scan checked it")
    }

    fn named(&self, member: &Member, name: &str) -> bool {
        let key = self.key(member);
        key == name
            || key.contains('\\') && unescaped(key.as_bytes()).is_some_and(|key| key == name)
    }

    fn slice(&self, (start, end): (u32, u32)) -> Json {
        Json(self.json.0.slice(start as usize..end as usize))
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.json, f)
    }
}

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        self.json == other.json
    }
}

impl Eq for Object {}

/// Why bytes are not the JSON we accept, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem} at byte {at}")]
pub struct JsonError {
    problem: Problem,
    at: usize,
}

impl JsonError {
    pub(crate) fn new(problem: Problem, at: usize) -> Self {
        Self { problem, at }
    }

    /// What is wrong.
    pub fn problem(&self) -> Problem {
        self.problem
    }

    /// The offset of the byte that shows it.
    pub fn at(&self) -> usize {
        self.at
    }
}

/// What can be wrong with JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// A character that cannot stand there.
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
    /// A backslash with no meaning.
    #[error("invalid escape")]
    Escape,
    /// A number that JSON does not allow.
    #[error("invalid number")]
    Number,
    /// More levels than [`DEPTH`].
    #[error("nested deeper than 128 levels")]
    Depth,
    /// A member named twice where that would be ambiguous.
    #[error("duplicate member")]
    Duplicate,
    /// Another kind of value where an object must stand.
    #[error("not an object")]
    NotAnObject,
}

/// `text` as a JSON string with its quotes.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a string always serialises")
}

/// The text of a checked JSON string's inside.
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

    fn problem(text: &[u8]) -> Option<Problem> {
        Json::parse(Bytes::copy_from_slice(text))
            .err()
            .map(|error| error.problem())
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
        let cases: &[(&[u8], Problem)] = &[
            (b"", Problem::End),
            (b"[1,]", Problem::Syntax),
            (b"{\"a\":1,}", Problem::Syntax),
            (b"{,}", Problem::Syntax),
            (b"[1 2]", Problem::Syntax),
            (b"{\"a\" 1}", Problem::Syntax),
            (b"[1}", Problem::Syntax),
            (b"[1", Problem::End),
            (b"\"a", Problem::End),
            (b"\"a\nb\"", Problem::Control),
            (b"\"\\x41\"", Problem::Escape),
            (b"\"\\u12g4\"", Problem::Escape),
            (b"01", Problem::Number),
            (b"-", Problem::Number),
            (b"1.", Problem::Number),
            (b"1e", Problem::Number),
            (b"+1", Problem::Syntax),
            (b"tru", Problem::Syntax),
            (b"1 2", Problem::Syntax),
            (b"\xef\xbb\xbf1", Problem::Syntax),
            (b"\"\xff\"", Problem::Utf8),
            (b"\"\xc0\x80\"", Problem::Utf8),
            (b"\"\xed\xa0\x80\"", Problem::Utf8),
            (b"\"\xf4\x90\x80\x80\"", Problem::Utf8),
            (b"\"\xe2\x82\"", Problem::Utf8),
        ];
        for (text, expected) in cases {
            assert_eq!(
                problem(text),
                Some(*expected),
                "{}",
                String::from_utf8_lossy(text)
            );
        }
    }

    #[test]
    fn a_value_may_nest_128_levels_and_no_more() {
        let nested = |depth: usize| ["[".repeat(depth), "]".repeat(depth)].concat();
        assert_eq!(problem(nested(128).as_bytes()), None);
        assert_eq!(problem(nested(129).as_bytes()), Some(Problem::Depth));
    }

    #[test]
    fn a_special_byte_is_found_at_every_place_of_a_string() {
        for length in 0..100 {
            for place in 0..length {
                for (special, expected) in [
                    (b'\n', Problem::Control),
                    (0x80, Problem::Utf8),
                    (b'"', Problem::Syntax),
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
            for several in [
                "\\n",
                "\\\"",
                "\\\\",
                "\\u00e9",
                "é",
                "日本",
                "🎻",
                "\\\\\\\"é",
            ] {
                for behind in [0, 1, 40] {
                    let text = format!("\"{}{several}{}\"", "a".repeat(place), "a".repeat(behind));
                    let json = Json::parse(text.clone()).map(|json| json.as_str().to_owned());
                    assert_eq!(json.as_deref(), Ok(text.as_str()));
                    assert_eq!(
                        problem(&text.as_bytes()[..text.len() - 1]),
                        Some(Problem::End)
                    );
                }
            }
        }
    }

    #[test]
    fn a_member_is_found_under_any_spelling_of_its_name() {
        let json = Json::parse(r#"{"a": 1, "n\u0061me" : "x\ny", "z":[ 1 , 2 ]}"#).unwrap();
        let object = json.to_object().unwrap();
        assert_eq!(object.text("name").as_deref(), Some("x\ny"));
        assert_eq!(object.get("z").unwrap().as_str(), "[ 1 , 2 ]");
        assert_eq!(object.get("z").unwrap().to_items().unwrap().len(), 2);
        assert_eq!(object.get("b"), None);
        assert_eq!(
            object.members().map(|(key, _)| key).collect::<Vec<_>>(),
            ["a", "n\\u0061me", "z"]
        );
    }

    #[test]
    fn a_duplicate_is_seen_through_escapes_and_among_many() {
        let read = |text: String| {
            Object::read(&text.into(), 0, 0, Duplicates::Refuse)
                .map(|_| ())
                .map_err(|e| e.problem())
        };
        assert_eq!(read(r#"{"a":1,"b":2}"#.into()), Ok(()));
        assert_eq!(read(r#"{"a":1,"a":2}"#.into()), Err(Problem::Duplicate));
        assert_eq!(
            read(r#"{"a":1,"\u0061":2}"#.into()),
            Err(Problem::Duplicate)
        );
        let many = |last: usize| {
            let members: Vec<_> = (0..1000)
                .chain([last])
                .map(|n| format!("\"k{n}\":{n}"))
                .collect();
            format!("{{{}}}", members.join(","))
        };
        assert_eq!(read(many(1000)), Ok(()));
        assert_eq!(read(many(500)), Err(Problem::Duplicate));
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
