//! What a tool's definition asks of the one who calls it: headers that mirror arguments, and tasks.

use std::collections::{HashMap, HashSet};

use http::HeaderName;

use crate::json::{Json, Object};

/// The largest integer a header may carry: what every reader of JSON keeps exact.
const SAFE_INTEGER: i64 = (1 << 53) - 1;

/// How deep into a schema annotations are looked for; a definition is small.
const SCHEMA_DEPTH: usize = 64;

/// The tools with something to mind, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts(HashMap<String, Fact>);

#[derive(Clone, Debug, Default)]
struct Fact {
    mirrors: Vec<Mirror>,
    task_only: bool,
}

/// An argument that is repeated in a header.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mirror {
    header: HeaderName,
    path: Vec<String>,
}

impl Facts {
    /// Notes what a tool asks. An error says why the tool cannot be used over HTTP.
    pub(crate) fn note(&mut self, name: &str, tool: &Object) -> Result<(), String> {
        let mut fact = Fact::default();
        if let Some(schema) = tool.get("inputSchema").and_then(|schema| schema.to_object()) {
            fact.mirrors = mirrors(&schema)?;
        }
        let execution = tool.get("execution").and_then(|execution| execution.to_object());
        fact.task_only = execution.and_then(|execution| execution.text("taskSupport")).as_deref()
            == Some("required");
        if fact.task_only || !fact.mirrors.is_empty() {
            self.0.insert(name.to_owned(), fact);
        }
        Ok(())
    }

    /// The headers that mirror these arguments.
    pub(crate) fn mirrored(&self, tool: &str, arguments: &Json) -> Vec<(HeaderName, String)> {
        let Some(fact) = self.0.get(tool) else {
            return Vec::new();
        };
        let value = |mirror: &Mirror| {
            let mut value = arguments.clone();
            for name in &mirror.path {
                value = value.to_object()?.get(name)?;
            }
            let text = match value.as_bytes()[0] {
                b'"' => value.text()?.into_owned(),
                b't' | b'f' => value.as_str().to_owned(),
                _ => value.integer().filter(|number| number.abs() <= SAFE_INTEGER)?.to_string(),
            };
            Some((mirror.header.clone(), text))
        };
        fact.mirrors.iter().filter_map(value).collect()
    }

    /// Whether a legacy server runs this tool only as a task.
    pub(crate) fn task_only(&self, tool: &str) -> bool {
        self.0.get(tool).is_some_and(|fact| fact.task_only)
    }
}

/// The `x-mcp-header` annotations of a schema, if they are all as the protocol demands.
fn mirrors(schema: &Object) -> Result<Vec<Mirror>, String> {
    let mut found = Vec::new();
    // Most schemas have none, and then there is nothing to check.
    if memchr::memmem::find(schema.as_bytes(), b"x-mcp-header").is_none()
        && !schema.as_bytes().contains(&b'\\')
    {
        return Ok(found);
    }
    collect(schema, &mut Vec::new(), &mut found)?;
    let mut seen = HashSet::new();
    for mirror in &found {
        if !seen.insert(mirror.header.clone()) {
            return Err(format!("two arguments claim the header `{}`", mirror.header));
        }
    }
    Ok(found)
}

/// Goes down a chain of `properties`; an annotation anywhere else is an error.
fn collect(schema: &Object, path: &mut Vec<String>, found: &mut Vec<Mirror>) -> Result<(), String> {
    if path.len() > SCHEMA_DEPTH {
        return Err("the schema nests too deep".to_owned());
    }
    if let Some(annotation) = schema.get("x-mcp-header") {
        if path.is_empty() {
            return Err("`x-mcp-header` stands at the root of the schema".to_owned());
        }
        found.push(Mirror { header: header_name(&annotation, schema)?, path: path.clone() });
    }
    for (name, value) in schema.members() {
        if name == "properties" {
            let Some(properties) = value.to_object() else {
                continue;
            };
            for (name, property) in properties.members() {
                if let Some(property) = property.to_object() {
                    let name = Json::parse(format!("\"{name}\""))
                        .ok()
                        .and_then(|name| name.text().map(Into::into));
                    path.push(name.ok_or("a property's name is no text")?);
                    collect(&property, path, found)?;
                    path.pop();
                }
            }
        } else if !matches!(name, "default" | "const" | "enum" | "examples") && annotated(&value, 0)
        {
            return Err(format!(
                "`x-mcp-header` stands within `{name}`, where it cannot be followed"
            ));
        }
    }
    Ok(())
}

/// Whether any schema within carries the annotation.
fn annotated(value: &Json, depth: usize) -> bool {
    if depth > SCHEMA_DEPTH {
        return true;
    }
    if let Some(object) = value.to_object() {
        return object.members().any(|(name, value)| match (name, value.to_object()) {
            ("x-mcp-header", _) => true,
            // Here the names are the server's own.
            ("properties", Some(properties)) => {
                properties.members().any(|(_, value)| annotated(&value, depth + 1))
            }
            _ => annotated(&value, depth + 1),
        });
    }
    value.to_items().is_some_and(|items| items.iter().any(|item| annotated(item, depth + 1)))
}

fn header_name(annotation: &Json, schema: &Object) -> Result<HeaderName, String> {
    let Some(name) = annotation.text() else {
        return Err("`x-mcp-header` is not a string".to_owned());
    };
    let kind = schema.text("type");
    if !matches!(kind.as_deref(), Some("string" | "integer" | "boolean")) {
        return Err(format!(
            "the header `{}` mirrors something other than a string, integer or boolean",
            name.escape_debug()
        ));
    }
    let shown = name.escape_debug();
    HeaderName::try_from(format!("mcp-param-{name}"))
        .ok()
        .filter(|_| !name.is_empty())
        .ok_or_else(|| format!("`{shown}` is not the name of a header"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn note(properties: &serde_json::Value) -> Result<Facts, String> {
        let mut facts = Facts::default();
        let tool = Json::from(
            json!({ "name": "t", "inputSchema": { "type": "object", "properties": properties } }),
        );
        facts.note("t", &tool.to_object().unwrap()).map(|()| facts)
    }

    fn mirrored(facts: &Facts, arguments: serde_json::Value) -> Vec<(String, String)> {
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
        let mut facts = Facts::default();
        let tool = Json::from(json!({ "name": "t", "execution": { "taskSupport": "required" } }));
        facts.note("t", &tool.to_object().unwrap()).unwrap();
        assert!(facts.task_only("t"));
        assert!(!facts.task_only("u"));
    }
}
