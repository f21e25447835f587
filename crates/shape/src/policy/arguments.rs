//! Strict parsing of arguments, so that all parsers agree on them.

use std::collections::HashMap;
use std::fmt;

use consort_core::Json;
use consort_protocol::fold;
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Parses arguments; refuses a member that occurs twice at any depth, since parsers differ in which of
/// the two they use. Names that differ only in case are the same name to some parsers.
pub(super) fn read(arguments: &Json) -> Result<Value, String> {
    let strict: Result<StrictValue, _> = arguments.read();
    strict.map(|StrictValue(value)| value).map_err(|error| format!("invalid arguments: {error}"))
}

/// Returns the JSON type of a value for error messages.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

struct StrictValue(Value);

impl<'de> Deserialize<'de> for StrictValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictReader).map(Self)
    }
}

struct StrictReader;

impl<'de> Visitor<'de> for StrictReader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(StrictValue(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        let mut folded: HashMap<String, String> = HashMap::new();
        while let Some(name) = members.next_key::<String>()? {
            let StrictValue(value) = members.next_value()?;
            if let Some(other) = folded.insert(fold(&name).into_owned(), name.clone()) {
                return Err(A::Error::custom(if other == name {
                    format!("duplicate member {name:?}")
                } else {
                    format!("members {other:?} and {name:?}, which some servers treat as the same")
                }));
            }
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_member_named_twice_is_refused_at_any_depth_and_in_any_spelling() {
        let read = |text: &'static str| read(&Json::parse(text).unwrap());
        assert_eq!(read(r#"{"a":[{"b":1.5}],"c":null}"#), Ok(json!({"a":[{"b":1.5}],"c":null})));
        for text in [r#"{"a":1,"a":1}"#, r#"{"x":[{"a":1,"\u0061":2}]}"#] {
            let error = read(text).unwrap_err();
            assert!(error.contains("duplicate member \"a\""), "{error}");
        }
        assert!(read(r#"{"a":"\ud800"}"#).is_err());
        for text in [
            r#"{"path":1,"Path":2}"#,
            r#"{"x":[{"y":{"risk":1,"ri\u017fk":2}}]}"#,
            "{\"risk\":1,\"ris\u{212a}\":2}",
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains("which some servers treat as the same"), "{error}");
        }
        assert!(read(r#"{"path":1,"paths":{"path":2}}"#).is_ok());
    }
}
