//! Rules by which a schema qualifies for `OpenAI`'s strict mode.

use std::fmt;

use serde_json::{Map, Value, json};

use super::loss::SchemaPointer;
use super::reference;

/// Nesting levels of objects and arrays.
const DEPTH: usize = 10;
/// Properties in all.
const PROPERTIES: usize = 5_000;
/// Values of all `enum`s.
const VALUES: usize = 1_000;
/// Bytes of all names of properties and definitions, and of all values of `enum` and `const`.
const TEXT: usize = 120_000;
/// Number of values above which an `enum` is long, and bytes of its strings then.
const LONG_ENUM: (usize, usize) = (250, 15_000);
/// The most reasons that are reported.
const REASONS: usize = 20;

const KEYWORDS: [&str; 22] = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "anyOf",
    "enum",
    "const",
    "$ref",
    "$defs",
    "definitions",
    "title",
    "description",
    "pattern",
    "format",
    "multipleOf",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minItems",
    "maxItems",
];

const FORMATS: [&str; 9] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

/// Reason for which a schema does not qualify.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrictViolation {
    /// Location in the schema: a JSON pointer, empty for the root.
    pub pointer: String,
    /// Description of the violation.
    pub description: String,
}

impl fmt::Display for StrictViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.pointer.is_empty() {
            write!(f, "{}: ", self.pointer.escape_debug())?;
        }
        f.write_str(&self.description)
    }
}

/// Checks a schema against the documented rules of `OpenAI` for `strict`; returns the violations.
pub fn qualifies_for_strict(schema: &Value) -> Result<(), Vec<StrictViolation>> {
    let at = SchemaPointer::root();
    let mut check =
        StrictCheck { root: schema, reasons: Vec::new(), properties: 0, values: 0, text: 0 };
    match schema.as_object() {
        Some(map) if map.get("type") == Some(&json!("object")) && !map.contains_key("anyOf") => {}
        _ => check.reason(&at, "the root must be an object without `anyOf`"),
    }
    check.schema(schema, &at, 1);
    for (count, limit, what) in [
        (check.properties, PROPERTIES, "properties"),
        (check.values, VALUES, "values in `enum`"),
        (check.text, TEXT, "bytes of names and values"),
    ] {
        if count > limit {
            check.reason(&at, format!("{count} {what}: at most {limit} are accepted"));
        }
    }
    if check.reasons.is_empty() { Ok(()) } else { Err(check.reasons) }
}

struct StrictCheck<'a> {
    root: &'a Value,
    reasons: Vec<StrictViolation>,
    properties: usize,
    values: usize,
    text: usize,
}

impl StrictCheck<'_> {
    fn reason(&mut self, at: &SchemaPointer<'_>, what: impl Into<String>) {
        if self.reasons.len() < REASONS {
            self.reasons
                .push(StrictViolation { pointer: at.to_string(), description: what.into() });
        }
    }

    fn schema(&mut self, schema: &Value, at: &SchemaPointer<'_>, depth: usize) {
        let Some(map) = schema.as_object() else {
            return self.reason(at, "a schema must be an object");
        };
        // Each level is at least two steps, so this ends long before the stack does.
        if depth > DEPTH {
            return self.reason(at, format!("more than {DEPTH} levels"));
        }
        for key in map.keys() {
            let root_only = depth == 1 && key == "$schema";
            if !KEYWORDS.contains(&&**key) && !root_only {
                self.reason(at, format!("`{key}` is not supported"));
            }
        }
        for key in ["$defs", "definitions"] {
            for (name, schema) in map.get(key).and_then(Value::as_object).into_iter().flatten() {
                self.text += name.len();
                self.schema(schema, &at.key(key).key(name), 1);
            }
        }
        if let Some(leads) = map.get("$ref") {
            let found = leads.as_str().and_then(|leads| reference::target(self.root, leads));
            if found.is_none() {
                self.reason(at, "`$ref` must refer to a subschema of this schema");
            }
            if map.len() > 1 {
                self.reason(at, "`$ref` must be the only keyword");
            }
            return;
        }
        self.values(map, at);
        if let Some(format) = map.get("format")
            && !FORMATS.iter().any(|known| format == known)
        {
            self.reason(at, format!("`format` {format} is not supported"));
        }
        match map.get("anyOf").map(Value::as_array) {
            Some(Some(parts)) if !parts.is_empty() => {
                for (item, part) in parts.iter().enumerate() {
                    self.schema(part, &at.key("anyOf").item(item), depth + 1);
                }
            }
            Some(_) => self.reason(at, "`anyOf` must be a list of schemas"),
            None if !map.contains_key("type") => self.reason(at, "`type` is required"),
            None => {}
        }
        if super::cleanup::may_be(map, "object") {
            self.object(map, at, depth);
        }
        if super::cleanup::may_be(map, "array") {
            match map.get("items") {
                Some(items) => self.schema(items, &at.key("items"), depth + 1),
                None => self.reason(at, "`items` is required"),
            }
        }
    }

    fn object(&mut self, map: &Map<String, Value>, at: &SchemaPointer<'_>, depth: usize) {
        if map.get("additionalProperties") != Some(&json!(false)) {
            self.reason(at, "`additionalProperties` must be `false`");
        }
        let none = Map::new();
        let properties = map.get("properties").and_then(Value::as_object).unwrap_or(&none);
        let required =
            map.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let required: std::collections::HashSet<&str> =
            required.iter().filter_map(Value::as_str).collect();
        for (name, schema) in properties {
            self.properties += 1;
            self.text += name.len();
            let here = at.key("properties");
            let here = here.key(name);
            if !required.contains(&**name) {
                self.reason(&here, "every property must be required");
            }
            self.schema(schema, &here, depth + 1);
        }
        if required.iter().any(|name| !properties.contains_key(*name)) {
            self.reason(at, "`required` must name properties");
        }
    }

    fn values(&mut self, map: &Map<String, Value>, at: &SchemaPointer<'_>) {
        let length =
            |value: &Value| value.as_str().map_or_else(|| value.to_string().len(), str::len);
        if let Some(value) = map.get("const") {
            self.text += length(value);
        }
        let Some(values) = map.get("enum") else { return };
        let Some(values) = values.as_array().filter(|values| !values.is_empty()) else {
            return self.reason(at, "`enum` must be a list of values");
        };
        let text: usize = values.iter().map(length).sum();
        self.values += values.len();
        self.text += text;
        if values.len() > LONG_ENUM.0 && text > LONG_ENUM.1 {
            let (count, most) = LONG_ENUM;
            self.reason(
                at,
                format!("an `enum` of more than {count} values may have at most {most} bytes"),
            );
        }
    }
}
