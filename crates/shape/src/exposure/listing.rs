//! Tool definitions as listed to a model on request.

use consort_core::{CatalogEntry, Json, Object, Tool, ToolResult};
use consort_protocol::splice::ObjectWriter;

/// A tool under a name: its description and its input schema.
pub(super) fn tool_json(entry: &CatalogEntry, name: &str) -> Json {
    let tool = entry.tool();
    let mut writer = ObjectWriter::new();
    writer.text("name", name);
    writer.text("description", &tool.description().unwrap_or_default());
    writer.raw("inputSchema", tool.input_schema().as_bytes());
    writer.finish()
}

/// JSON as a result that a model reads.
pub(super) fn result(json: &Json) -> ToolResult {
    ToolResult::text(json.as_str())
}

/// The parameters of one of Consort's own tools that name another tool and its inputs.
pub(super) struct ToolParameters<'a> {
    /// The parameter that holds the inputs of that other tool.
    pub(super) inputs: &'a str,
    /// The other parameters.
    pub(super) others: &'a [&'a str],
}

impl ToolParameters<'_> {
    /// Returns the inputs of the named tool: the object in their parameter or, where that is absent or empty,
    /// the members beside the other parameters. Models write both.
    pub(super) fn read(&self, given: Option<&Object>, tool: &Tool) -> Result<Json, String> {
        let inside = object(given.and_then(|given| given.get(self.inputs)));
        let inside = inside.map_err(|reason| format!("invalid `{}`: {reason}", self.inputs))?;
        let takes = |name: &str| {
            let schema = tool.input_schema().to_object();
            let properties = schema.and_then(|schema| schema.get("properties")?.to_object());
            properties.is_some_and(|properties| properties.get(name).is_some())
        };
        let beside: Vec<(String, Json)> = given
            .iter()
            .flat_map(|given| given.members())
            .map(|(key, value)| (decode_key(key), value))
            .filter(|(key, _)| key != self.inputs)
            .collect();
        let is_empty = inside.to_object().is_none_or(|inside| inside.members().next().is_none());
        if is_empty {
            let mut writer = ObjectWriter::new();
            let meant = |key: &str| !self.others.contains(&key) || key == "query" && takes(key);
            for (key, value) in beside.iter().filter(|(key, _)| meant(key)) {
                writer.raw(key, value.as_bytes());
            }
            return Ok(writer.finish());
        }
        match beside.iter().find(|(key, _)| !self.others.contains(&&**key)) {
            None => Ok(inside),
            Some((key, _)) => {
                let (key, inputs) = (key.escape_debug(), self.inputs);
                Err(format!("`{key}` is next to `{inputs}`: move it inside, or omit it"))
            }
        }
    }
}

/// Decodes a key as written in JSON.
fn decode_key(key: &str) -> String {
    let text = Json::parse(format!("\"{key}\"")).ok();
    let text = text.as_ref().and_then(Json::text);
    text.map_or_else(|| key.to_owned(), std::borrow::Cow::into_owned)
}

/// Reads arguments as models write them: an object, or a string that contains one.
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
    object.ok_or_else(|| "it is not a JSON object".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn inputs_are_read_inside_their_parameter_or_beside_the_others() {
        let tool = Tool::new("t", "", &json!({ "properties": { "query": {}, "x": {} } }).into());
        let parameters = ToolParameters { inputs: "inputs", others: &["action", "name", "query"] };
        let read = |given: Value| {
            let given = Json::from(given).to_object();
            parameters.read(given.as_ref(), &tool).map(|json| json.read::<Value>().unwrap())
        };
        let cases = [
            (json!({ "name": "t" }), Ok(json!({}))),
            (json!({ "name": "t", "inputs": { "x": 1 } }), Ok(json!({ "x": 1 }))),
            (json!({ "name": "t", "inputs": "{\"x\":1}", "query": "" }), Ok(json!({ "x": 1 }))),
            (json!({ "name": "t", "x": 1, "query": "q" }), Ok(json!({ "x": 1, "query": "q" }))),
            (json!({ "name": "t", "x": 1, "inputs": {} }), Ok(json!({ "x": 1 }))),
            (
                json!({ "name": "t", "x": 1, "inputs": { "query": "q" } }),
                Err("`x` is next to `inputs`: move it inside, or omit it".to_owned()),
            ),
            (json!({ "inputs": [1] }), Err("invalid `inputs`: it is not a JSON object".to_owned())),
        ];
        for (given, expected) in cases {
            assert_eq!(read(given.clone()), expected, "{given}");
        }
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
