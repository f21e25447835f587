//! Tools as they are told to a model that asks for them.

use consort_core::{Entry, Json, Object, ToolResult};
use consort_wire::splice::Writer;
use serde_json::{Map, Value, json};

/// A tool: what it is called, what it does, what it takes. Its schema is told where the inputs are not
/// all there is to it: saying both costs twice.
pub(super) fn told(entry: &Entry, name: &str) -> Json {
    let tool = entry.tool();
    let schema: Value = tool.input_schema().read().unwrap_or_default();
    let all = all_inputs(&schema);
    let mut writer = Writer::new();
    writer.text("name", name);
    writer.text("description", &tool.description().unwrap_or_default());
    let short = all.is_none();
    writer.raw("inputs", Json::from(all.unwrap_or_else(|| inputs(&schema))).as_bytes());
    if short {
        writer.raw("inputSchema", tool.input_schema().as_bytes());
    }
    writer.finish()
}

/// What a tool takes with all that its schema says, if that can be said so.
fn all_inputs(schema: &Value) -> Option<Value> {
    let closed = |value: &Value| *value == false;
    let plain = schema.as_object()?.iter().all(|(name, value)| match name.as_str() {
        "type" => value == "object",
        "properties" | "required" | "$schema" => true,
        "additionalProperties" => closed(value),
        _ => false,
    });
    let none = Map::new();
    let properties = match &schema["properties"] {
        Value::Null => &none,
        properties => properties.as_object()?,
    };
    let mut required: Vec<&str> = match &schema["required"] {
        Value::Null => Vec::new(),
        names => names.as_array()?.iter().map(Value::as_str).collect::<Option<_>>()?,
    };
    let mut inputs = Map::new();
    for (name, about) in properties {
        let mut about = about.as_object().filter(|about| !about.contains_key("required"))?.clone();
        if let Some(at) = required.iter().position(|known| known == name) {
            required.swap_remove(at);
            about.insert("required".to_owned(), true.into());
        }
        inputs.insert(name.clone(), about.into());
    }
    let inputs = Value::from(inputs);
    let alone = plain && required.is_empty() && !inputs.to_string().contains("\"$ref\"");
    alone.then_some(inputs)
}

/// What a tool takes, in short.
fn inputs(schema: &Value) -> Value {
    let required = |name: &str| {
        schema["required"].as_array().is_some_and(|names| names.iter().any(|known| known == name))
    };
    let one = |(name, about): (&String, &Value)| {
        let mut told = Map::new();
        let kind = match &about["type"] {
            Value::Null if about["enum"].is_array() => json!({ "enum": about["enum"] }),
            Value::Null => json!("any"),
            kind => kind.clone(),
        };
        told.insert("type".to_owned(), kind);
        for member in ["description", "default"] {
            if let Some(value) = about.get(member) {
                told.insert(member.to_owned(), value.clone());
            }
        }
        if required(name) {
            told.insert("required".to_owned(), true.into());
        }
        (name.clone(), Value::Object(told))
    };
    schema["properties"].as_object().into_iter().flatten().map(one).collect::<Map<_, _>>().into()
}

/// JSON as a result that a model reads.
pub(super) fn result(json: &Json) -> ToolResult {
    ToolResult::text(json.as_str())
}

/// A list of JSON values.
pub(super) fn list(items: &[Json]) -> Json {
    let texts: Vec<&str> = items.iter().map(Json::as_str).collect();
    Json::parse(format!("[{}]", texts.join(","))).expect("it is made of JSON")
}

/// Arguments as models write them: an object, or the text of one.
pub(super) fn object(given: Option<Json>) -> Result<Json, String> {
    let Some(given) = given.filter(|given| given.as_str() != "null") else {
        return Ok(Object::empty().json().clone());
    };
    let read = match given.text() {
        Some(text) if text.trim().is_empty() => Some(Object::empty().json().clone()),
        Some(text) => Json::parse(text.trim().to_owned()).ok(),
        None => Some(given.clone()),
    };
    let object = read.filter(|json| json.to_object().is_some());
    object.ok_or_else(|| "it is no JSON object".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_told_in_short() {
        let schema = json!({
            "properties": {
                "a": { "type": "string", "description": "A.", "default": "x", "maxLength": 9 },
                "b": { "enum": [1, 2] },
                "c": {},
            },
            "required": ["b"],
        });
        assert_eq!(
            inputs(&schema),
            json!({
                "a": { "type": "string", "description": "A.", "default": "x" },
                "b": { "type": { "enum": [1, 2] }, "required": true },
                "c": { "type": "any" },
            })
        );
    }

    #[test]
    fn a_schema_is_told_once_where_its_inputs_are_all_there_is_to_it() {
        let schema = json!({
            "$schema": "x", "type": "object", "additionalProperties": false, "required": ["a"],
            "properties": { "a": { "type": "string", "maxLength": 9 }, "b": { "enum": [1] } },
        });
        assert_eq!(
            all_inputs(&schema),
            Some(json!({
                "a": { "type": "string", "maxLength": 9, "required": true }, "b": { "enum": [1] },
            }))
        );
        assert_eq!(all_inputs(&json!({ "type": "object" })), Some(json!({})));
        for (member, value) in [
            ("$defs", json!({})),
            ("anyOf", json!([])),
            ("additionalProperties", json!(true)),
            ("required", json!(["c"])),
            ("required", json!("a")),
            ("type", json!(["object", "null"])),
            ("properties", json!({ "a": { "items": { "$ref": "#" } } })),
            ("properties", json!({ "a": { "type": "object", "required": ["x"] } })),
            ("properties", json!({ "a": true })),
        ] {
            let mut schema = schema.clone();
            schema[member] = value;
            assert_eq!(all_inputs(&schema), None, "{schema}");
        }
        assert_eq!(all_inputs(&json!(true)), None);
    }

    #[test]
    fn arguments_may_be_an_object_or_its_text() {
        for (given, read) in [
            (None, Ok("{}")),
            (Some("null"), Ok("{}")),
            (Some(r#"{"a":1.0}"#), Ok(r#"{"a":1.0}"#)),
            (Some(r#""{\"a\":1.0}""#), Ok(r#"{"a":1.0}"#)),
            (Some(r#"" ""#), Ok("{}")),
            (Some("[1]"), Err(())),
            (Some(r#""{""#), Err(())),
        ] {
            let object = object(given.map(|given| Json::parse(given.to_owned()).unwrap()));
            let object = object.map(|json| json.to_string()).map_err(drop);
            assert_eq!(object, read.map(str::to_owned), "{given:?}");
        }
    }
}
