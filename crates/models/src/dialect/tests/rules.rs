//! The documented rules of each provider, as a check of projected tools.

use serde_json::{Map, Value, json};

use super::super::{GeminiSchemaForm, ToolDialect};

/// Checks that the provider would accept the tool; else returns the reason.
pub(super) fn check(
    dialect: ToolDialect,
    form: GeminiSchemaForm,
    tool: &Value,
) -> Result<(), String> {
    let (function, key) = match (dialect, form) {
        (ToolDialect::OpenAiChat, _) => (&tool["function"], "parameters"),
        (ToolDialect::Anthropic, _) => (tool, "input_schema"),
        (ToolDialect::OpenAiResponses, _) | (ToolDialect::Gemini, GeminiSchemaForm::OpenApi) => {
            (tool, "parameters")
        }
        (ToolDialect::Gemini, GeminiSchemaForm::JsonSchema) => (tool, "parametersJsonSchema"),
    };
    name(dialect, function["name"].as_str().ok_or("no name")?)?;
    let Some(schema) = function.get(key) else {
        return if dialect == ToolDialect::Gemini { Ok(()) } else { Err(format!("no {key}")) };
    };
    let root = schema.as_object().ok_or("the schema is no object")?;
    if root.get("type") != Some(&json!("object")) {
        return Err("the root has not the type object".to_owned());
    }
    let none = |keys: &[&str]| match keys.iter().find(|key| root.contains_key(**key)) {
        Some(key) => Err(format!("`{key}` at the root")),
        None => Ok(()),
    };
    match (dialect, form) {
        (ToolDialect::Gemini, GeminiSchemaForm::OpenApi) => return openapi(schema, "", 0),
        (ToolDialect::Gemini, GeminiSchemaForm::JsonSchema) => {}
        (ToolDialect::Anthropic, _) => {
            none(&["anyOf", "oneOf", "allOf"])?;
            let keys = root.get("properties").and_then(Value::as_object);
            for key in keys.into_iter().flat_map(Map::keys) {
                let fits = |one: char| one.is_ascii_alphanumeric() || "_.-".contains(one);
                if key.is_empty() || key.len() > 64 || !key.chars().all(fits) {
                    return Err(format!("property `{key}`"));
                }
            }
        }
        (ToolDialect::OpenAiChat | ToolDialect::OpenAiResponses, _) => {
            none(&["anyOf", "oneOf", "allOf", "enum", "not", "const"])?;
            if !root.get("properties").is_some_and(Value::is_object) {
                return Err("no properties at the root".to_owned());
            }
            arrays(schema)?;
        }
    }
    references(schema, schema)?;
    // The address of a draft would have it checked against that one.
    let mut schema = schema.clone();
    schema.as_object_mut().map(|root| root.remove("$schema"));
    jsonschema::draft202012::meta::validate(&schema).map_err(|error| error.to_string())
}

fn name(dialect: ToolDialect, name: &str) -> Result<(), String> {
    let longest = if dialect == ToolDialect::Anthropic { 128 } else { 64 };
    let more = if dialect == ToolDialect::Gemini { "_-.:" } else { "_-" };
    let fits = |one: char| one.is_ascii_alphanumeric() || more.contains(one);
    let starts = |one: char| one.is_ascii_alphabetic() || one == '_';
    let legal = (1..=longest).contains(&name.len())
        && name.chars().all(fits)
        && (dialect != ToolDialect::Gemini || name.starts_with(starts));
    if legal { Ok(()) } else { Err(format!("the name `{name}`")) }
}

/// Returns the direct subschemas of a schema, but not look-alikes in `default` or `enum`.
fn within(schema: &Value) -> Vec<&Value> {
    let Some(map) = schema.as_object() else { return Vec::new() };
    let mut found = Vec::new();
    for (key, value) in map {
        match &**key {
            "items"
            | "additionalItems"
            | "additionalProperties"
            | "contains"
            | "propertyNames"
            | "not"
            | "if"
            | "then"
            | "else"
            | "unevaluatedItems"
            | "unevaluatedProperties"
            | "contentSchema" => found.push(value),
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
                found.extend(value.as_array().into_iter().flatten());
            }
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
                found.extend(value.as_object().into_iter().flat_map(Map::values));
            }
            _ => {}
        }
    }
    found
}

fn references(root: &Value, schema: &Value) -> Result<(), String> {
    if let Some(leads) = schema.get("$ref").and_then(Value::as_str) {
        let found = leads.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        if found.is_none() {
            return Err(format!("`{leads}` leads nowhere"));
        }
    }
    within(schema).into_iter().try_for_each(|schema| references(root, schema))
}

fn arrays(schema: &Value) -> Result<(), String> {
    let is_array = match &schema["type"] {
        Value::Array(kinds) => kinds.contains(&json!("array")),
        kind => kind == "array",
    };
    if is_array && !schema["items"].is_object() {
        return Err(format!("an array without items: {schema}"));
    }
    within(schema).into_iter().try_for_each(arrays)
}

/// Google's `Schema`, field by field.
fn openapi(schema: &Value, at: &str, depth: usize) -> Result<(), String> {
    let map = schema.as_object().ok_or_else(|| format!("{at} is no object"))?;
    if depth > 80 {
        return Err(format!("{at} is too deep"));
    }
    if let Some(parts) = map.get("anyOf") {
        let parts = parts.as_array().filter(|parts| parts.len() > 1 && map.len() == 1);
        let parts = parts.ok_or_else(|| format!("{at}: `anyOf` is not alone"))?;
        return parts.iter().try_for_each(|part| openapi(part, &format!("{at}/anyOf"), depth + 1));
    }
    let kind = map.get("type").and_then(Value::as_str).unwrap_or_default();
    for (key, value) in map {
        let right = match &**key {
            "type" => ["string", "number", "integer", "boolean", "array", "object"].contains(&kind),
            "title" | "description" => value.is_string(),
            "pattern" => value.is_string() && kind == "string",
            "nullable" => value.is_boolean(),
            "default" | "example" => true,
            "enum" => kind == "string" && texts(value),
            "format" => match kind {
                "string" => value == "date-time" || value == "enum" && map.contains_key("enum"),
                "integer" => value == "int32" || value == "int64",
                "number" => value == "float" || value == "double",
                _ => false,
            },
            "minItems" | "maxItems" => value.is_u64() && kind == "array",
            "minLength" | "maxLength" => value.is_u64() && kind == "string",
            "minProperties" | "maxProperties" => value.is_u64() && kind == "object",
            "minimum" | "maximum" => value.is_number() && matches!(kind, "number" | "integer"),
            "items" => kind == "array",
            "properties" => {
                kind == "object" && value.as_object().is_some_and(|all| !all.is_empty())
            }
            "required" | "propertyOrdering" => {
                let known = |name: &Value| {
                    name.as_str().is_some_and(|name| map["properties"].get(name).is_some())
                };
                kind == "object"
                    && texts(value)
                    && value.as_array().is_some_and(|all| all.iter().all(known))
            }
            _ => false,
        };
        if !right {
            return Err(format!("{at}: `{key}` {value}"));
        }
    }
    if !map.contains_key("type") || kind == "array" && !map.contains_key("items") {
        return Err(format!("{at} has no type or no items: {schema}"));
    }
    within(schema).into_iter().try_for_each(|inner| openapi(inner, &format!("{at}/…"), depth + 1))
}

fn texts(value: &Value) -> bool {
    let is_text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    value.as_array().is_some_and(|values| !values.is_empty() && values.iter().all(is_text))
}
