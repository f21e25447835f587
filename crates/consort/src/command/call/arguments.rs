//! Arguments typed on the command line, converted according to the tool's schema.

use consort_core::escape::escape_text;
use consort_core::{Json, nearest};
use serde_json::{Map, Value};

use crate::exit::CommandError;

/// Parses `name=value` and `name:=JSON`.
pub(super) fn read(words: &[String], schema: &Json) -> Result<Json, CommandError> {
    let schema: Value = schema.read().unwrap_or_default();
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    let mut arguments = Map::new();
    for word in words {
        let (name, value) = match (word.split_once(":="), word.split_once('=')) {
            (Some((name, text)), _) if !name.contains('=') => (name, given(name, text)?),
            (_, Some((name, text))) => (name, parse_value(text, properties.get(name))),
            _ => {
                let failure =
                    CommandError::usage(format!("invalid argument `{}`", escape_text(word)));
                return Err(failure.hint("expected name=value, or name:=JSON"));
            }
        };
        let open = schema["additionalProperties"] != Value::Bool(false);
        if !properties.contains_key(name) && !properties.is_empty() {
            let near = nearest(name, properties.keys().map(String::as_str));
            // A slip of the finger; what is far from every name may be meant.
            if let Some(near) = near.first() {
                let failure = CommandError::usage(format!(
                    "the tool has no parameter `{}`",
                    escape_text(name)
                ));
                return Err(failure.hint(format!("did you mean `{near}`?")));
            }
            if !open {
                let names: Vec<&str> = properties.keys().map(String::as_str).collect();
                let failure = CommandError::usage(format!(
                    "the tool has no parameter `{}`",
                    escape_text(name)
                ));
                return Err(failure.hint(format!("its parameters are {}", names.join(", "))));
            }
        }
        if arguments.insert(name.to_owned(), value).is_some() {
            return Err(CommandError::usage(format!("duplicate argument `{}`", escape_text(name))));
        }
    }
    Ok(Value::Object(arguments).into())
}

fn given(name: &str, text: &str) -> Result<Value, CommandError> {
    serde_json::from_str(text).map_err(|error| {
        CommandError::usage(format!("the value of `{}` is not JSON: {error}", escape_text(name)))
    })
}

/// Converts a value to a type that the schema allows, else to a string. Without a type in the schema, guesses it.
fn parse_value(text: &str, schema: Option<&Value>) -> Value {
    let word = || Value::String(text.to_owned());
    let Some(schema) = schema else { return guess_value(text) };
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ if schema["enum"]
            .as_array()
            .is_some_and(|choices| choices.iter().all(Value::is_string)) =>
        {
            vec!["string"]
        }
        _ => return guess_value(text),
    };
    let parsed: Option<Value> = serde_json::from_str(text).ok();
    let fits = |value: &Value| {
        kinds.iter().any(|kind| match *kind {
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "boolean" => value.is_boolean(),
            "null" => value.is_null(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            _ => false,
        })
    };
    match parsed {
        Some(value) if fits(&value) => value,
        // A list of words, as people write one.
        _ if kinds == ["array"] => Value::Array(
            text.split(',').map(|item| parse_value(item.trim(), schema.get("items"))).collect(),
        ),
        _ => word(),
    }
}

/// A number, a boolean or JSON if the text parses as one, else a string.
fn guess_value(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(value @ (Value::Number(_) | Value::Bool(_) | Value::Object(_) | Value::Array(_))) => {
            value
        }
        _ => Value::String(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Json {
        json!({ "type": "object", "properties": {
            "text": { "type": "string" },
            "count": { "type": "integer" },
            "ratio": { "type": ["number", "null"] },
            "flag": { "type": "boolean" },
            "list": { "type": "array", "items": { "type": "integer" } },
            "deep": { "type": "object" },
            "units": { "enum": ["1", "2"] },
            "any": {},
        }})
        .into()
    }

    fn arguments(words: &[&str]) -> Result<Value, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        read(&words, &schema()).map(|json| json.read().unwrap()).map_err(|failure| {
            format!("{} ({})", failure.message, failure.hint.unwrap_or_default())
        })
    }

    #[test]
    fn a_value_is_read_as_the_schema_says() {
        assert_eq!(
            arguments(&[
                "text=5",
                "count=5",
                "ratio=null",
                "flag=true",
                "list=1, 2",
                "deep={\"a\":1}",
                "units=1",
                "any=x=y",
                "other=7",
            ]),
            Ok(json!({
                "text": "5", "count": 5, "ratio": null, "flag": true, "list": [1, 2], "deep": { "a": 1 },
                "units": "1", "any": "x=y", "other": 7,
            }))
        );
        assert_eq!(
            arguments(&["text:=[1]", "count=many"]),
            Ok(json!({ "text": [1], "count": "many" }))
        );
        assert_eq!(arguments(&["list=[3]", "any=true"]), Ok(json!({ "list": [3], "any": true })));
    }

    #[test]
    fn a_slip_is_told() {
        assert_eq!(
            arguments(&["cuont=1"]),
            Err("the tool has no parameter `cuont` (did you mean `count`?)".to_owned())
        );
        assert_eq!(
            arguments(&["text"]),
            Err("invalid argument `text` (expected name=value, or name:=JSON)".to_owned())
        );
        assert!(
            arguments(&["text:=x"]).unwrap_err().starts_with("the value of `text` is not JSON")
        );
        assert_eq!(
            arguments(&["text=a", "text=b"]),
            Err("duplicate argument `text` ()".to_owned())
        );
    }
}
