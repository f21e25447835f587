//! JSON without duplicate members, at any depth. Parsers that differ on which of two members counts would read different
//! documents.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// A JSON value none of whose objects has two members of one name.
pub(crate) struct UniqueJson(pub(crate) Value);

/// Parses a JSON object without duplicate members.
pub(crate) fn parse_object(bytes: &[u8]) -> Result<Map<String, Value>, serde_json::Error> {
    match serde_json::from_slice::<UniqueJson>(bytes)?.0 {
        Value::Object(object) => Ok(object),
        _ => Err(de::Error::custom("expected an object")),
    }
}

impl<'de> Deserialize<'de> for UniqueJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueVisitor).map(Self)
    }
}

struct UniqueVisitor;

impl<'de> Visitor<'de> for UniqueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON without duplicate members")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(UniqueJson(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let UniqueJson(value) = members.next_value()?;
            if object.contains_key(&name) {
                return Err(de::Error::custom(format!("the member `{name}` occurs twice")));
            }
            object.insert(name, value);
        }
        Ok(object.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_occurs_once_at_any_depth_and_in_any_spelling() {
        let text = r#"{"a":[1,-2,3.5,null,true,"x"],"b":{"a":{}}}"#;
        let object = parse_object(text.as_bytes()).unwrap();
        assert_eq!(Value::Object(object).to_string(), text);
        for text in [
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"{"x":[{"a":1,"a":2}]}"#,
            r#"{"x":{"y":{"a":1,"a":2}}}"#,
            "[]",
            "1",
            "{} x",
            "{",
        ] {
            assert!(parse_object(text.as_bytes()).is_err(), "{text}");
        }
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        assert!(parse_object(format!("{{\"a\":{deep}}}").as_bytes()).is_err());
    }
}
