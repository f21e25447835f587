//! A tool's definition: its name, description and schemas.

use consort_protocol::splice::ObjectWriter;
use serde_json::{Value, json};

use crate::{Json, Object};

/// A tool as it is on offer.
///
/// ```
/// use consort_core::{Json, Tool};
///
/// let schema = Json::parse(r#"{"type":"object","properties":{"city":{"type":"string"}}}"#)?;
/// let tool = Tool::new("get_weather", "The weather in a city.", &schema);
/// assert_eq!(tool.name(), "get_weather");
/// assert_eq!(tool.to_openai()["function"]["name"], "get_weather");
/// # Ok::<(), consort_core::JsonError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool(Object);

impl Tool {
    /// Creates a definition with the three members that every tool has.
    pub fn new(name: &str, description: &str, input_schema: &Json) -> Self {
        let mut writer = ObjectWriter::new();
        writer.text("name", name);
        writer.text("description", description);
        writer.raw("inputSchema", input_schema.as_bytes());
        Self(writer.finish_object())
    }

    /// Sets these annotations. A hint that is `None` is left out.
    #[must_use]
    pub fn with_annotations(self, annotations: ToolAnnotations) -> Self {
        let hints = [
            ("readOnlyHint", annotations.read_only),
            ("destructiveHint", annotations.destructive),
            ("idempotentHint", annotations.idempotent),
            ("openWorldHint", annotations.open_world),
        ];
        let hints: serde_json::Map<String, Value> = hints
            .into_iter()
            .filter_map(|(name, hint)| Some((name.to_owned(), Value::Bool(hint?))))
            .collect();
        if hints.is_empty() {
            return self;
        }
        let mut writer = ObjectWriter::new();
        writer.members(&self.0, &["annotations"]);
        writer.raw("annotations", Json::from(Value::Object(hints)).as_bytes());
        Self(writer.finish_object())
    }

    /// Creates a tool from a server's definition.
    pub fn from_object(definition: Object) -> Self {
        Self(definition)
    }

    /// Parses a definition in `OpenAI`'s form.
    pub fn from_openai(tool: &Value) -> Option<Self> {
        let function = tool.get("function").unwrap_or(tool);
        let schema =
            function.get("parameters").cloned().unwrap_or_else(|| json!({ "type": "object" }));
        let description = function.get("description").and_then(Value::as_str).unwrap_or_default();
        Some(Self::new(function.get("name")?.as_str()?, description, &schema.into()))
    }

    /// Its name here.
    pub fn name(&self) -> String {
        self.0.text("name").unwrap_or_default()
    }

    /// Its human-readable title.
    pub fn title(&self) -> Option<String> {
        self.0.text("title").or_else(|| self.0.get("annotations")?.to_object()?.text("title"))
    }

    /// Its description.
    pub fn description(&self) -> Option<String> {
        self.0.text("description")
    }

    /// Its input schema.
    pub fn input_schema(&self) -> Json {
        self.0.get("inputSchema").unwrap_or_else(|| json!({ "type": "object" }).into())
    }

    /// Its output schema, of the structured content.
    pub fn output_schema(&self) -> Option<Json> {
        self.0.get("outputSchema")
    }

    /// The server's annotations. Never to be trusted.
    pub fn annotations(&self) -> ToolAnnotations {
        let annotations = self.0.get("annotations").and_then(|annotations| annotations.to_object());
        let hint = |name: &str| {
            annotations.as_ref().and_then(|hints| hints.get(name)).and_then(|hint| hint.boolean())
        };
        ToolAnnotations {
            read_only: hint("readOnlyHint"),
            destructive: hint("destructiveHint"),
            idempotent: hint("idempotentHint"),
            open_world: hint("openWorldHint"),
        }
    }

    /// The whole definition.
    pub fn definition(&self) -> &Object {
        &self.0
    }

    /// The three members that MCP requires.
    pub fn to_mcp(&self) -> Value {
        let schema: Value = self.input_schema().read().unwrap_or_default();
        json!({ "name": self.name(), "description": self.description().unwrap_or_default(), "inputSchema": schema })
    }

    /// The form of `OpenAI`'s chat completions.
    pub fn to_openai(&self) -> Value {
        let schema: Value = self.input_schema().read().unwrap_or_default();
        let description = self.description().unwrap_or_default();
        json!({ "type": "function", "function": { "name": self.name(), "description": description, "parameters": schema } })
    }
}

/// A server's annotations of a tool; `None` where it has no hint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToolAnnotations {
    /// It changes nothing.
    pub read_only: Option<bool>,
    /// It may destroy something.
    pub destructive: Option<bool>,
    /// Calling it twice is like calling it once.
    pub idempotent: Option<bool>,
    /// It interacts with systems beyond the server.
    pub open_world: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weather() -> Tool {
        let schema = json!({
            "type": "object",
            "properties": { "location": { "type": "string" }, "units": { "enum": ["c", "f"], "default": "c" } },
            "required": ["location"],
        });
        Tool::new("get_weather", "The weather.", &schema.into())
    }

    #[test]
    fn mcp_gets_exactly_three_members() {
        let mcp = weather().to_mcp();
        let keys: Vec<_> = mcp.as_object().unwrap().keys().cloned().collect();
        assert_eq!(keys, ["description", "inputSchema", "name"]);
    }

    #[test]
    fn openai_and_back_is_the_same_tool() {
        let openai = weather().to_openai();
        assert_eq!(openai["type"], "function");
        assert_eq!(openai["function"]["parameters"]["required"], json!(["location"]));
        assert_eq!(Tool::from_openai(&openai).unwrap().to_mcp(), weather().to_mcp());
        assert_eq!(Tool::from_openai(&openai["function"]).unwrap().name(), "get_weather");
        assert_eq!(Tool::from_openai(&json!({})), None);
    }

    #[test]
    fn hints_are_what_the_server_says_or_nothing() {
        let tool = json!({ "name": "x", "annotations": { "readOnlyHint": true, "title": "X" } });
        let tool = Tool::from_object(Json::from(tool).to_object().unwrap());
        assert_eq!(
            tool.annotations(),
            ToolAnnotations { read_only: Some(true), ..ToolAnnotations::default() }
        );
        assert_eq!(tool.title().as_deref(), Some("X"));
        assert_eq!(tool.input_schema().as_str(), r#"{"type":"object"}"#);
    }
}
