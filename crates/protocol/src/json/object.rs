//! A JSON object with the positions of its members.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use smallvec::SmallVec;

use super::{Json, JsonError, JsonErrorKind, folds_to, scan, unescaped};

/// A JSON object with the positions of its members.
pub struct Object {
    json: Json,
    members: Members,
    /// True if a key has escapes, as few have.
    has_escaped_keys: bool,
    /// Its `_meta`, once read. Clones share it.
    meta: OnceLock<Option<Arc<Object>>>,
}

/// Few objects on the path of a call have more members.
type Members = SmallVec<[MemberSpan; 5]>;

/// The members of an object, and true if a key has escapes.
type ScannedMembers = (Members, bool);

/// Positions of a member's key (without quotes) and value. A message is far below 4 GiB.
#[derive(Clone, Copy)]
struct MemberSpan {
    key: (u32, u32),
    value: (u32, u32),
}

/// Handling of duplicate members.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum DuplicateMembers {
    Keep,
    Refuse,
}

impl Object {
    fn new(json: Json, (members, has_escaped_keys): ScannedMembers) -> Self {
        Self { json, members, has_escaped_keys, meta: OnceLock::new() }
    }

    /// An object without members.
    pub fn empty() -> Self {
        Self::new(Json(Bytes::from_static(b"{}")), (Members::new(), false))
    }

    /// A copy that does not keep the buffer of the message alive.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self::new(self.json.detached(), (Members::from_slice(&self.members), self.has_escaped_keys))
    }

    /// The members of `json`, which starts with a brace.
    pub(super) fn of(json: &Json) -> Self {
        let (members, _) = members(&json.0, 0).expect("the scan checked it");
        Self::new(json.clone(), members)
    }

    /// Checks the object that starts at `at` of a message and records its members. Returns it and the position
    /// after it.
    pub(crate) fn read(
        bytes: &Bytes,
        at: usize,
        depth: u32,
        duplicates: DuplicateMembers,
    ) -> Result<(Self, usize), JsonError> {
        let at_place = |error: JsonError| JsonError::new(error.problem(), at + error.at());
        let (members, end) = members(&bytes[at..], depth).map_err(at_place)?;
        let object = Self::new(Json(bytes.slice(at..at + end)), members);
        if duplicates == DuplicateMembers::Refuse {
            object.refuse_duplicates().map_err(at_place)?;
        }
        Ok((object, at + end))
    }

    fn refuse_duplicates(&self) -> Result<(), JsonError> {
        let keys = || self.members.iter().map(|member| self.key(member));
        let twice = if self.members.len() <= 8 && !self.has_escaped_keys {
            let known = |n: usize| keys().take(n).any(|key| Some(key) == keys().nth(n));
            (1..self.members.len()).find(|&n| known(n))
        } else {
            let mut seen = HashSet::new();
            // Half a surrogate pair has no text, so it could hide a second spelling.
            keys().position(|key| unescaped(key).is_none_or(|text| !seen.insert(text)))
        };
        match twice {
            None => Ok(()),
            Some(n) => {
                Err(JsonError::new(JsonErrorKind::Duplicate, self.members[n].key.0 as usize))
            }
        }
    }

    /// Returns the value of a member, by its exact name. Of duplicates it is the last, as in most parsers.
    pub fn get(&self, name: &str) -> Option<Json> {
        self.find(name).map(|member| self.slice(member.value))
    }

    /// The bytes of a member's value.
    pub fn get_bytes(&self, name: &str) -> Option<&[u8]> {
        self.find(name).map(|member| &self.as_bytes()[range(member.value)])
    }

    /// The text of a member that is a string.
    pub fn text(&self, name: &str) -> Option<String> {
        self.borrowed_text(name).map(Cow::into_owned)
    }

    /// The same without a copy, unless it has escapes.
    pub fn borrowed_text(&self, name: &str) -> Option<Cow<'_, str>> {
        unescaped(self.get_bytes(name)?.strip_prefix(b"\"")?.strip_suffix(b"\"")?)
    }

    /// The member `_meta`, if it is an object. It is read once, however often it is asked for.
    pub fn meta(&self) -> Option<&Arc<Self>> {
        let read = || self.get("_meta")?.to_object().map(Arc::new);
        self.meta.get_or_init(read).as_ref()
    }

    /// Finds a member that another parser may take for one of the known names, which are ASCII, because of its
    /// case or escapes. Returns its name as written, and the known one.
    pub fn misspelt<'a>(&'a self, known: &[&'static str]) -> Option<(&'a str, &'static str)> {
        self.members.iter().find_map(|member| {
            let key = self.key(member);
            if known.iter().any(|known| known.as_bytes() == key) {
                return None;
            }
            let text = unescaped(key)?;
            let known = known.iter().find(|known| folds_to(&text, known))?;
            Some((std::str::from_utf8(key).expect("the scan checked it"), *known))
        })
    }

    /// The members in the order they were written: the key as JSON text without quotes, and the value.
    pub fn members(&self) -> impl Iterator<Item = (&str, Json)> {
        self.members.iter().map(|member| {
            let key = std::str::from_utf8(self.key(member)).expect("the scan checked it");
            (key, self.slice(member.value))
        })
    }

    /// The same as bytes.
    pub(crate) fn raw_members(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let value = |member: &MemberSpan| &self.as_bytes()[range(member.value)];
        self.members.iter().map(move |member| (self.key(member), value(member)))
    }

    /// The members with their decoded names; `None` for a name with half a surrogate pair.
    pub fn decoded_members(&self) -> impl Iterator<Item = (Option<Cow<'_, str>>, Json)> {
        self.members.iter().map(|member| {
            let key = self.key(member);
            let name = if self.has_escaped_keys {
                unescaped(key)
            } else {
                std::str::from_utf8(key).ok().map(Cow::Borrowed)
            };
            (name, self.slice(member.value))
        })
    }

    /// Number of members.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Returns true if there are no members.
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

    fn find(&self, name: &str) -> Option<&MemberSpan> {
        self.members.iter().rev().find(|member| {
            let key = self.key(member);
            key == name.as_bytes()
                || self.has_escaped_keys && unescaped(key).is_some_and(|key| key == name)
        })
    }

    fn key(&self, member: &MemberSpan) -> &[u8] {
        &self.as_bytes()[range(member.key)]
    }

    fn slice(&self, place: (u32, u32)) -> Json {
        Json(self.json.0.slice(range(place)))
    }
}

impl Clone for Object {
    fn clone(&self) -> Self {
        let meta = self.meta.get().and_then(Option::as_ref);
        Self {
            json: self.json.clone(),
            members: Members::from_slice(&self.members),
            has_escaped_keys: self.has_escaped_keys,
            meta: meta.map_or_else(OnceLock::new, |meta| Some(Arc::clone(meta)).into()),
        }
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

fn range((start, end): (u32, u32)) -> std::ops::Range<usize> {
    start as usize..end as usize
}

/// Checks the object at the start of `bytes` and returns the positions of its members and of its end.
fn members(bytes: &[u8], depth: u32) -> Result<(ScannedMembers, usize), JsonError> {
    if bytes.first() != Some(&b'{') {
        return Err(JsonError::new(JsonErrorKind::NotAnObject, 0));
    }
    let place = |at: usize| u32::try_from(at).expect("a message is below 4 GiB");
    let (mut members, mut has_escapes) = (Members::new(), false);
    let mut at = scan::space(bytes, 1);
    if bytes.get(at) == Some(&b'}') {
        return Ok(((members, false), at + 1));
    }
    loop {
        let (key_end, behind) = scan::key(bytes, at)?;
        has_escapes =
            has_escapes || scan::short(bytes, at).is_none() && bytes[at..key_end].contains(&b'\\');
        let (start, end) = scan::value(bytes, behind, depth + 1)?;
        members.push(MemberSpan {
            key: (place(at + 1), place(key_end - 1)),
            value: (place(start), place(end)),
        });
        at = scan::space(bytes, end);
        match bytes.get(at) {
            Some(b',') => at = scan::space(bytes, at + 1),
            Some(b'}') => return Ok(((members, has_escapes), at + 1)),
            Some(_) => return Err(JsonError::new(JsonErrorKind::Syntax, at)),
            None => return Err(JsonError::new(JsonErrorKind::End, at)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_found_under_any_spelling_of_its_name() {
        let json = Json::parse(r#"{"a": 1, "n\u0061me" : "x\ny", "z":[ 1 , 2 ]}"#).unwrap();
        let object = json.to_object().unwrap();
        assert_eq!(object.text("name").as_deref(), Some("x\ny"));
        assert_eq!(object.get("z").unwrap().as_str(), "[ 1 , 2 ]");
        assert_eq!(object.get("z").unwrap().to_items().unwrap().len(), 2);
        assert_eq!(object.get("b"), None);
        let keys: Vec<_> = object.members().map(|(key, _)| key).collect();
        assert_eq!(keys, ["a", "n\\u0061me", "z"]);
    }

    #[test]
    fn the_meta_of_an_object_is_read_once_also_by_its_clones() {
        let json = Json::parse(r#"{"_meta":{"a":1},"b":2}"#).unwrap();
        let object = json.to_object().unwrap();
        let meta = object.meta().unwrap();
        assert_eq!(meta.get("a").unwrap().as_str(), "1");
        assert!(Arc::ptr_eq(object.clone().meta().unwrap(), meta));
        assert!(Arc::ptr_eq(object.meta().unwrap(), meta));
        for none in [r#"{"b":2}"#, r#"{"_meta":[]}"#] {
            let object = Json::parse(none).unwrap().to_object().unwrap();
            assert_eq!((object.meta(), object.clone().meta()), (None, None));
        }
    }

    #[test]
    fn a_long_name_is_found_under_any_spelling_too() {
        let long = "n".repeat(40);
        for written in [long.clone(), format!("\\u006e{}", &long[1..])] {
            let text = format!(r#"{{"{written}":1,"b":2}}"#);
            let object = Json::parse(text).unwrap().to_object().unwrap();
            assert_eq!(object.get(&long).unwrap().as_str(), "1", "{written}");
            assert_eq!(object.get("b").unwrap().as_str(), "2");
        }
    }

    #[test]
    fn a_known_member_in_another_spelling_is_told() {
        let misspelt = |text: &'static str| {
            let object = Json::parse(text).unwrap().to_object().unwrap();
            object.misspelt(&["name", "arguments"]).map(|(given, known)| (given.to_owned(), known))
        };
        assert_eq!(misspelt(r#"{"name":1,"arguments":2,"names":3,"":4}"#), None);
        for (text, given, known) in [
            (r#"{"name":1,"Name":2}"#, "Name", "name"),
            (r#"{"NAME":2}"#, "NAME", "name"),
            (r#"{"argumentſ":2}"#, "argumentſ", "arguments"),
            (r#"{"argument\u017f":2}"#, "argument\\u017f", "arguments"),
            (r#"{"n\u0061me":2}"#, "n\\u0061me", "name"),
        ] {
            assert_eq!(misspelt(text), Some((given.to_owned(), known)), "{text}");
        }
    }

    #[test]
    fn of_two_members_with_one_name_the_last_counts_as_with_other_readers() {
        let json = Json::parse(r#"{"isError":false,"isErr\u006fr":true}"#).unwrap();
        assert_eq!(json.to_object().unwrap().get("isError").unwrap().boolean(), Some(true));
        assert_eq!(json.read::<serde_json::Value>().unwrap()["isError"], true);
    }

    #[test]
    fn a_duplicate_is_seen_through_escapes_and_among_many() {
        let read = |text: String| {
            let bytes = Bytes::from(format!("  {text}"));
            let read = Object::read(&bytes, 2, 0, DuplicateMembers::Refuse);
            read.map(|_| ()).map_err(|error| (error.problem(), error.at()))
        };
        assert_eq!(read(r#"{"a":1,"b":2}"#.into()), Ok(()));
        assert_eq!(read(r#"{"a":1,"a":2}"#.into()), Err((JsonErrorKind::Duplicate, 10)));
        assert_eq!(read(r#"{"a":1,"\u0061":2}"#.into()), Err((JsonErrorKind::Duplicate, 10)));
        let many = |last: usize| {
            let members = (0..1000).chain([last]).map(|n| format!("\"k{n}\":{n}"));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        };
        assert_eq!(read(many(1000)), Ok(()));
        assert_eq!(read(many(500)).unwrap_err().0, JsonErrorKind::Duplicate);
    }
}
