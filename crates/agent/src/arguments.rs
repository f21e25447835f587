//! Arguments as a model wrote them, repaired where the intent is certain.

use consort_core::{Json, Object};
use serde_json::{Map, Value};

use consort_models::RawArguments;

/// Returns the arguments of a call: an object, with members that were encoded twice decoded once. The error is written
/// for the model.
pub(crate) fn read(arguments: &RawArguments, schema: &Json) -> Result<Object, String> {
    if let Some(object) = arguments.object() {
        return Ok(decode_members(&object, schema).unwrap_or(object));
    }
    // A text that is JSON of an object: encoded once too often.
    let inner = Json::parse(arguments.as_str().to_owned())
        .ok()
        .and_then(|json| json.text().map(std::borrow::Cow::into_owned))
        .and_then(|text| Json::parse(text).ok()?.to_object());
    if let Some(object) = inner {
        return Ok(decode_members(&object, schema).unwrap_or(object));
    }
    let what = match Json::parse(arguments.as_str().to_owned()) {
        Ok(_) => "not a JSON object".to_owned(),
        Err(error) => format!("not JSON: {error}"),
    };
    Err(format!(
        "invalid arguments: {what}; expected one JSON object, such as {{\"name\": \"value\"}}"
    ))
}

/// Returns the object with members decoded that the schema declares as an object or array and that are a string of its
/// JSON; `None` if there are none.
fn decode_members(object: &Object, schema: &Json) -> Option<Object> {
    // Only an object with a text that begins like JSON can have one.
    let suspect =
        |value: &Json| value.text().is_some_and(|text| text.trim_start().starts_with(['{', '[']));
    if !object.members().any(|(_, value)| suspect(&value)) {
        return None;
    }
    let schema: Value = schema.read().ok()?;
    let mut members: Map<String, Value> = object.json().read().ok()?;
    let mut changed = false;
    for (name, value) in &mut members {
        let Value::String(text) = &*value else { continue };
        let wanted = &schema["properties"][name]["type"];
        let Ok(decoded) = serde_json::from_str::<Value>(text) else { continue };
        if (wanted == "object" && decoded.is_object()) || (wanted == "array" && decoded.is_array())
        {
            *value = decoded;
            changed = true;
        }
    }
    changed.then(|| Json::from(Value::Object(members)).to_object())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_was_encoded_twice_is_decoded_once() {
        let schema = json!({ "type": "object", "properties": {
            "list": { "type": "array" }, "deep": { "type": "object" }, "text": { "type": "string" },
        }});
        let read = |text: &str| read(&text.into(), &schema.clone().into());
        let value = |text: &str| read(text).unwrap().json().read::<Value>().unwrap();
        assert_eq!(value(""), json!({}));
        assert_eq!(value(r#"{"text":"[1]"}"#), json!({ "text": "[1]" }));
        assert_eq!(value(r#""{\"text\":\"a\"}""#), json!({ "text": "a" }));
        let twice = r#"{"list":"[1, 2]","deep":"{\"a\":1}","text":"{}"}"#;
        assert_eq!(value(twice), json!({ "list": [1, 2], "deep": { "a": 1 }, "text": "{}" }));
        // What is not what the schema wants stays what it was.
        assert_eq!(value(r#"{"list":"{}","deep":"[","a":"[]"}"#)["list"], json!("{}"));
        // An object is not read again, so numbers stay as they were written.
        assert_eq!(read(r#"{"n":1.0}"#).unwrap().json().as_str(), r#"{"n":1.0}"#);
    }

    #[test]
    fn what_cannot_be_read_is_told_in_words_to_act_on() {
        let read = |text: &str| read(&text.into(), &json!({}).into()).unwrap_err();
        assert!(read("{oops").starts_with("invalid arguments: not JSON: "));
        let list = "invalid arguments: not a JSON object; expected one JSON object, such as {\"name\": \"value\"}";
        assert_eq!(read("[1]"), list);
        assert_eq!(read(r#""{oops""#), list);
    }
}
