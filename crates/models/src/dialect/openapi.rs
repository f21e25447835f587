//! The subset of `OpenAPI` 3.0 that Gemini accepts as `parameters`.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::loss::{LossKind, LossLog, SchemaPointer};
use super::reference;
use super::root::SchemaCombination;

mod value;

/// The most levels that are written; recursive references may never end.
const DEPTH: usize = 32;

/// The most bytes that are written, approximately.
const LARGEST: usize = 512 * 1024;

/// Bytes charged for one schema regardless of its content, and for one of any type.
const ONE: usize = 64;
const ANY: usize = 256;

const NO_REFERENCES: &str = "Gemini does not support references";
const ONE_TYPE: &str = "Gemini accepts one type";
const UNKNOWN: &str = "not supported by Gemini";

/// Keywords omitted without a report: meaningless to a model, or handled elsewhere.
const SILENT: [&str; 8] =
    ["$schema", "$id", "$anchor", "$comment", "$defs", "definitions", "type", "$ref"];

/// Returns a schema in Gemini's subset. Its root is an object, and it has no dangling reference.
pub(super) fn project_schema(schema: &Value, losses: &mut LossLog) -> Value {
    let mut walk = OpenApiWalk { root: schema, open: vec!["#".to_owned()], bytes: LARGEST, losses };
    walk.schema(schema, &SchemaPointer::root(), 0)
}

struct OpenApiWalk<'a> {
    root: &'a Value,
    /// The references that enclose the current schema.
    open: Vec<String>,
    /// Bytes that may still be written.
    bytes: usize,
    losses: &'a mut LossLog,
}

impl OpenApiWalk<'_> {
    fn schema(&mut self, schema: &Value, at: &SchemaPointer<'_>, depth: usize) -> Value {
        let Value::Object(map) = schema else { return self.anything() };
        if depth > DEPTH || self.bytes < ONE {
            let why = "the schema is too deep or too large with its references inlined";
            self.losses.record(LossKind::Replaced, at, "written as any value", why);
            return json!({ "type": "string" });
        }
        self.bytes -= ONE;
        if let Some(leads) = map.get("$ref").and_then(Value::as_str) {
            return self.reference(leads, map, at, depth);
        }
        if map.contains_key("allOf") || may_have_properties(map) && has_alternatives(map) {
            if !self.spend(schema) {
                return self.plain(&Map::new(), at, depth);
            }
            return self.combined(map.clone(), at, depth);
        }
        if has_alternatives(map) {
            return self.alternatives(map, at, depth);
        }
        self.plain(map, at, depth)
    }

    fn reference(
        &mut self,
        leads: &str,
        map: &Map<String, Value>,
        at: &SchemaPointer<'_>,
        depth: usize,
    ) -> Value {
        let target = reference::target(self.root, leads);
        let mut written = match target {
            Some(_) if self.open.iter().any(|open| open == leads) => {
                let what = format!("recursive `{leads}` written as any object");
                self.losses.record(LossKind::Replaced, at, what, NO_REFERENCES);
                json!({ "type": "object" })
            }
            Some(target) => {
                self.losses.record(
                    LossKind::Rewritten,
                    at,
                    format!("`{leads}` inlined"),
                    NO_REFERENCES,
                );
                self.open.push(leads.to_owned());
                let written = self.schema(target, at, depth + 1);
                self.open.pop();
                written
            }
            None => self.anything(),
        };
        for (key, value) in map {
            match &**key {
                "title" | "description" if self.spend(value) => annotate(&mut written, key, value),
                "default" | "title" | "description" => {}
                key if SILENT.contains(&key) => {}
                key => {
                    self.losses.record(
                        LossKind::Widened,
                        at,
                        format!("`{key}` next to `$ref` omitted"),
                        NO_REFERENCES,
                    );
                }
            }
        }
        written
    }

    /// Merges the schemas of `allOf`, `anyOf` and `oneOf` into one.
    fn combined(
        &mut self,
        mut map: Map<String, Value>,
        at: &SchemaPointer<'_>,
        depth: usize,
    ) -> Value {
        let open = self.open.len();
        for key in ["allOf", "anyOf", "oneOf"] {
            let Some(Value::Array(parts)) = map.get_mut(key) else { continue };
            let leads = |part: &Value| part.get("$ref")?.as_str().map(str::to_owned);
            let count = parts.len();
            parts.retain(|part| leads(part).is_none_or(|leads| !self.open.contains(&leads)));
            if parts.len() < count {
                let what = format!("recursive alternative in `{key}` omitted");
                self.losses.record(LossKind::Replaced, at, what, NO_REFERENCES);
            }
            self.open.extend(parts.iter().filter_map(leads));
        }
        let why = "Gemini does not support combined schemas";
        let mut combination = SchemaCombination::new(self.root, self.bytes);
        let map = combination.plain(map, at, why, self.losses);
        self.bytes = combination.bytes;
        let written = self.schema(&Value::Object(map), at, depth + 1);
        self.open.truncate(open);
        written
    }

    /// Writes `anyOf` and `oneOf` whose alternatives do not merge into one object.
    fn alternatives(
        &mut self,
        map: &Map<String, Value>,
        at: &SchemaPointer<'_>,
        depth: usize,
    ) -> Value {
        let key = if map.contains_key("anyOf") { "anyOf" } else { "oneOf" };
        let says_more = |key: &String| {
            !matches!(
                &**key,
                "title" | "description" | "default" | "examples" | "nullable" | "discriminator"
            ) && !SILENT.contains(&&**key)
        };
        let others: Vec<&String> =
            map.keys().filter(|other| *other != key && says_more(other)).collect();
        if !others.is_empty() || map.contains_key("type") {
            let what = format!("`{key}` next to other keywords omitted");
            self.losses.record(LossKind::Widened, at, what, "Gemini accepts `anyOf` only alone");
            let rest = map.iter().filter(|(other, _)| *other != key);
            let rest = rest.map(|(key, value)| (key.clone(), value.clone())).collect();
            return self.schema(&Value::Object(rest), at, depth + 1);
        }
        if key == "oneOf" {
            self.losses.record(LossKind::Widened, at, "`oneOf` written as `anyOf`", UNKNOWN);
        }
        let parts = map.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let mut nullable = map.get("nullable") == Some(&json!(true));
        let (mut written, mut seen) = (Vec::new(), HashSet::new());
        let list = at.key(key);
        for (item, part) in parts.iter().enumerate() {
            if part.get("type") == Some(&json!("null")) || part.get("const") == Some(&Value::Null) {
                self.losses.record(
                    LossKind::Rewritten,
                    at,
                    "`null` among alternatives written as `nullable`",
                    UNKNOWN,
                );
                nullable = true;
                continue;
            }
            // Alternatives within an alternative are alternatives here.
            let part = self.schema(part, &list.item(item), depth + 1);
            let parts = match part {
                Value::Object(mut part) if part.contains_key("anyOf") => match part.remove("anyOf")
                {
                    Some(Value::Array(parts)) => parts,
                    _ => Vec::new(),
                },
                part => vec![part],
            };
            for part in parts {
                if seen.insert(part.to_string()) {
                    written.push(part);
                }
            }
        }
        let mut whole = if written.is_empty() { self.anything() } else { any_of(written) };
        if nullable {
            annotate(&mut whole, "nullable", &json!(true));
        }
        for key in ["title", "description"] {
            if let Some(text) = map.get(key)
                && self.spend(text)
            {
                annotate(&mut whole, key, text);
            }
        }
        whole
    }

    /// A schema for any value. Gemini refuses one without a type, and an array without items.
    fn anything(&mut self) -> Value {
        self.bytes = self.bytes.saturating_sub(ANY);
        json!({ "anyOf": [
            { "type": "string" },
            { "type": "number" },
            { "type": "boolean" },
            { "type": "object" },
            { "type": "array", "items": { "type": "string" } },
        ] })
    }

    /// Takes the cost of a value from the byte budget. Returns true if it sufficed.
    fn spend(&mut self, value: &Value) -> bool {
        reference::spend(&mut self.bytes, value)
    }
}

/// Returns one schema that allows any of these, of which there is at least one.
fn any_of(mut written: Vec<Value>) -> Value {
    if written.len() == 1 { written.remove(0) } else { json!({ "anyOf": written }) }
}

/// Adds a keyword to a written schema, or to each alternative that does not have it, as `anyOf` stands
/// alone.
fn annotate(written: &mut Value, key: &str, value: &Value) {
    let Some(map) = written.as_object_mut() else { return };
    match map.get_mut("anyOf").and_then(Value::as_array_mut) {
        // A text once is enough.
        Some(parts) if key != "nullable" => {
            if !parts.iter().any(|part| part.get(key).is_some())
                && let Some(part) = parts.first_mut()
            {
                annotate(part, key, value);
            }
        }
        Some(parts) => parts.iter_mut().for_each(|part| annotate(part, key, value)),
        None => {
            map.insert(key.to_owned(), value.clone());
        }
    }
}

fn has_alternatives(map: &Map<String, Value>) -> bool {
    map.contains_key("anyOf") || map.contains_key("oneOf")
}

fn may_have_properties(map: &Map<String, Value>) -> bool {
    map.contains_key("properties") || map.get("type") == Some(&json!("object"))
}
