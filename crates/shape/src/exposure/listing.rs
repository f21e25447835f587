//! Tools as they are told to a model that asks for them.

use consort_core::{Entry, Json, Object, Tool, ToolResult};
use consort_wire::splice::Writer;
use serde_json::{Map, Value, json};

/// A tool: what it is called, what it does, what it takes in short and in full.
pub(super) fn told(entry: &Entry, name: &str) -> Json {
    let tool = entry.tool();
    let mut writer = Writer::new();
    writer.text("name", name);
    writer.text("description", &tool.description().unwrap_or_default());
    writer.raw("inputs", Json::from(inputs(&tool)).as_bytes());
    writer.raw("inputSchema", tool.input_schema().as_bytes());
    writer.finish()
}

/// What a tool takes, in short.
pub(super) fn inputs(tool: &Tool) -> Value {
    let schema: Value = tool.input_schema().read().unwrap_or_default();
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
            inputs(&Tool::new("t", "", &schema.into())),
            json!({
                "a": { "type": "string", "description": "A.", "default": "x" },
                "b": { "type": { "enum": [1, 2] }, "required": true },
                "c": { "type": "any" },
            })
        );
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
