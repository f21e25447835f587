//! Requirements of tool definitions on callers: headers that mirror arguments, and tasks.

use std::collections::HashMap;

use consort_protocol::headers::ParamHeaders;
use consort_protocol::{Json, Object, TaskHandling};
use http::HeaderName;

/// The tools with requirements, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolRequirements(HashMap<String, ToolRequirement>);

#[derive(Clone, Debug, Default)]
struct ToolRequirement {
    mirrors: ParamHeaders,
    tasks: TaskSupport,
}

/// The `execution.taskSupport` of a tool of 2025-11-25.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TaskSupport {
    #[default]
    Forbidden,
    Optional,
    Required,
}

impl ToolRequirements {
    /// Stores the requirements of a tool. An error says why the tool cannot be used over HTTP.
    pub(crate) fn note(&mut self, name: &str, tool: &Object) -> Result<(), String> {
        let mut fact = ToolRequirement::default();
        if let Some(schema) = tool.get("inputSchema").and_then(|schema| schema.to_object()) {
            fact.mirrors = ParamHeaders::of(&schema)?;
        }
        let execution = tool.get("execution").and_then(|execution| execution.to_object());
        let support = execution.and_then(|execution| execution.text("taskSupport"));
        fact.tasks = match support.as_deref() {
            Some("required") => TaskSupport::Required,
            Some("optional") => TaskSupport::Optional,
            _ => TaskSupport::Forbidden,
        };
        if fact.tasks != TaskSupport::Forbidden || !fact.mirrors.is_empty() {
            self.0.insert(name.to_owned(), fact);
        }
        Ok(())
    }

    /// Takes over what another list says of tools that this one lacks.
    pub(crate) fn add(&mut self, other: &Self) {
        for (name, fact) in &other.0 {
            if !self.0.contains_key(name) {
                self.0.insert(name.clone(), fact.clone());
            }
        }
    }

    /// Returns true if no tool has requirements, as with most servers.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of tools with something to mind.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the headers that mirror these arguments.
    pub(crate) fn mirrored(&self, tool: &str, arguments: &Json) -> Vec<(HeaderName, String)> {
        self.0.get(tool).map(|fact| fact.mirrors.values(arguments)).unwrap_or_default()
    }

    /// Returns true if a legacy server is to run this tool as a task: it supports no other way, or it
    /// supports tasks and the caller follows them itself.
    pub(crate) fn as_task(&self, tool: &str, wanted: TaskHandling) -> bool {
        let support = self.0.get(tool).map_or(TaskSupport::Forbidden, |fact| fact.tasks);
        match wanted {
            TaskHandling::Never => false,
            TaskHandling::Follow => support == TaskSupport::Required,
            TaskHandling::Return => support != TaskSupport::Forbidden,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn note(properties: &serde_json::Value) -> Result<ToolRequirements, String> {
        let mut facts = ToolRequirements::default();
        let tool = Json::from(
            json!({ "name": "t", "inputSchema": { "type": "object", "properties": properties } }),
        );
        facts.note("t", &tool.to_object().unwrap()).map(|()| facts)
    }

    fn mirrored(facts: &ToolRequirements, arguments: serde_json::Value) -> Vec<(String, String)> {
        let headers = facts.mirrored("t", &arguments.into());
        headers.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
    }

    #[test]
    fn annotated_arguments_are_mirrored_where_they_stand() {
        let facts = note(&json!({
            "deep": { "type": "object", "properties": { "n": { "type": "integer", "x-mcp-header": "N" } } },
            "flag": { "type": "boolean", "x-mcp-header": "Flag" },
            "plain": { "type": "string" },
            "region": { "type": "string", "x-mcp-header": "Region" },
        }))
        .unwrap();
        assert_eq!(
            mirrored(
                &facts,
                json!({ "region": "eu", "deep": { "n": -7 }, "flag": true, "plain": "x" })
            ),
            [("mcp-param-n", "-7"), ("mcp-param-flag", "true"), ("mcp-param-region", "eu")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
        assert_eq!(mirrored(&facts, json!({ "region": null, "deep": {}, "flag": 1.5 })), []);
        assert_eq!(mirrored(&facts, json!({ "deep": { "n": 9_007_199_254_740_992_i64 } })), []);
    }

    #[test]
    fn a_bad_annotation_makes_the_tool_unusable() {
        for properties in [
            json!({ "a": { "type": "string", "x-mcp-header": "" } }),
            json!({ "a": { "type": "string", "x-mcp-header": "a b" } }),
            json!({ "a": { "type": "string", "x-mcp-header": "a\r\nb" } }),
            json!({ "a": { "type": "string", "x-mcp-header": 1 } }),
            json!({ "a": { "type": "number", "x-mcp-header": "A" } }),
            json!({ "a": { "type": "object", "x-mcp-header": "A" } }),
            json!({ "a": { "x-mcp-header": "A" } }),
            json!({ "a": { "type": "string", "x-mcp-header": "A" }, "b": { "type": "string", "x-mcp-header": "a" } }),
            json!({ "a": { "type": "array", "items": { "type": "string", "x-mcp-header": "A" } } }),
            json!({ "a": { "anyOf": [{ "type": "string", "x-mcp-header": "A" }] } }),
        ] {
            assert!(note(&properties).is_err(), "{properties}");
        }
        // A property or a default that merely bears the name is no annotation.
        assert!(note(&json!({ "x-mcp-header": { "type": "string" } })).is_ok());
        assert!(
            note(&json!({ "a": { "items": { "properties": { "x-mcp-header": {} } } } })).is_ok()
        );
        assert!(
            note(&json!({ "a": { "type": "object", "default": { "x-mcp-header": 1 } } })).is_ok()
        );
    }

    #[test]
    fn a_tool_may_run_only_as_a_task() {
        let mut facts = ToolRequirements::default();
        let tool = Json::from(json!({ "name": "t", "execution": { "taskSupport": "required" } }));
        facts.note("t", &tool.to_object().unwrap()).unwrap();
        assert!(
            facts.as_task("t", TaskHandling::Follow) && facts.as_task("t", TaskHandling::Return)
        );
        assert!(!facts.as_task("t", TaskHandling::Never));
        assert!(!facts.as_task("u", TaskHandling::Follow));
    }
}
