//! Cleanup of schemas: keywords that no draft allows, or only an old one, and dangling references.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Map, Value, json};

use super::keyword::{KeywordValue, TYPES};
use super::loss::{LossKind, LossLog, SchemaPointer};
use super::{ToolDialect, reference};

const MALFORMED: &str = "not valid JSON Schema";
const OLD: &str = "syntax of an older JSON Schema draft";

/// Returns an upper bound of the number of schemas within one: each has braces.
pub(super) fn schemas(schema: &Value) -> usize {
    match schema {
        Value::Object(map) => 1 + map.values().map(schemas).sum::<usize>(),
        Value::Array(list) => list.iter().map(schemas).sum(),
        _ => 0,
    }
}

/// Returns the number of levels of a value.
pub(super) fn depth(value: &Value) -> usize {
    match value {
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or_default(),
        Value::Array(list) => 1 + list.iter().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

/// Returns the schema, cleaned up.
pub(super) fn clean_up(schema: Value, dialect: ToolDialect, losses: &mut LossLog) -> Value {
    let at = SchemaPointer::root();
    let mut tidy = SchemaCleanup { dialect, losses };
    let mut schema = tidy.schema(schema, &at);
    if dialect == ToolDialect::Anthropic {
        tidy.keys(&mut schema, &at);
    }
    // Only now, as a reference may lead to what was left out.
    let whole = schema.clone();
    ReferenceCleanup { root: &whole, losses }.check(&mut schema, &at);
    if dialect.is_openai()
        && let Some(root) = schema.as_object_mut()
        && !root.contains_key("properties")
    {
        let what = "empty `properties` added";
        losses.record(LossKind::Rewritten, &at, what, "OpenAI requires it at the root");
        root.insert("properties".to_owned(), json!({}));
    }
    schema
}

struct SchemaCleanup<'a> {
    dialect: ToolDialect,
    losses: &'a mut LossLog,
}

impl SchemaCleanup<'_> {
    fn schema(&mut self, schema: Value, at: &SchemaPointer<'_>) -> Value {
        match schema {
            Value::Object(map) => Value::Object(self.map(map, at)),
            Value::Bool(anything) if self.dialect.is_openai() => {
                let what = "boolean schema written as an object";
                self.losses.record(LossKind::Rewritten, at, what, "OpenAI accepts only objects");
                if anything { json!({}) } else { json!({ "not": {} }) }
            }
            schema => schema,
        }
    }

    fn map(&mut self, mut map: Map<String, Value>, at: &SchemaPointer<'_>) -> Map<String, Value> {
        self.limits(&mut map, at);
        self.tuple(&mut map, at);
        let mut tidy = Map::new();
        for (key, value) in map {
            let here = at.key(&key);
            let Some(shape) = KeywordValue::of(&key) else {
                tidy.insert(key, value);
                continue;
            };
            // References are by place here, so what gives a schema another address is only in the way.
            if shape == KeywordValue::Plumbing {
                continue;
            }
            if !shape.fits(&value) {
                // An empty list of alternatives or types says nothing that anybody could mean.
                self.losses.record(LossKind::Widened, at, format!("`{key}` omitted"), MALFORMED);
                continue;
            }
            let value = match (shape, value) {
                (KeywordValue::Schema, Value::Bool(flag)) if is_closing(&key) => Value::Bool(flag),
                (KeywordValue::Schema, value) => self.schema(value, &here),
                (KeywordValue::Schemas, Value::Array(list)) => {
                    let items = list.into_iter().enumerate();
                    items.map(|(item, value)| self.schema(value, &here.item(item))).collect()
                }
                (KeywordValue::Named, Value::Object(named)) => self.named(named, &here),
                (KeywordValue::Texts | KeywordValue::Types, Value::Array(list)) => {
                    self.distinct(list, &here)
                }
                (_, value) => value,
            };
            tidy.insert(key, value);
        }
        if self.dialect.is_openai() && may_be(&tidy, "array") && !tidy.contains_key("items") {
            let why = "OpenAI requires it for every array";
            self.losses.record(LossKind::Rewritten, at, "`items` of any type added", why);
            tidy.insert("items".to_owned(), json!({}));
        }
        tidy
    }

    fn distinct(&mut self, list: Vec<Value>, at: &SchemaPointer<'_>) -> Value {
        let mut seen = HashSet::new();
        let count = list.len();
        let distinct: Vec<Value> =
            list.into_iter().filter(|item| seen.insert(item.to_string())).collect();
        if distinct.len() < count {
            self.losses.record(LossKind::Rewritten, at, "duplicates removed", MALFORMED);
        }
        Value::Array(distinct)
    }

    fn named(&mut self, named: Map<String, Value>, at: &SchemaPointer<'_>) -> Value {
        let mut tidy = Map::new();
        for (name, value) in named {
            let here = at.key(&name);
            if super::keyword::is_schema(&value) {
                let value = self.schema(value, &here);
                tidy.insert(name, value);
            } else {
                self.losses.record(LossKind::Replaced, &here, "written as any value", MALFORMED);
                tidy.insert(name, json!({}));
            }
        }
        Value::Object(tidy)
    }

    /// Rewrites `exclusiveMinimum: true`, the form of draft 4.
    fn limits(&mut self, map: &mut Map<String, Value>, at: &SchemaPointer<'_>) {
        for (exclusive, limit) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")]
        {
            let Some(Value::Bool(is_exclusive)) = map.get(exclusive) else { continue };
            let is_exclusive = *is_exclusive;
            map.remove(exclusive);
            self.losses.record(
                LossKind::Rewritten,
                at,
                format!("`{exclusive}` written as a number"),
                OLD,
            );
            if is_exclusive && let Some(value) = map.remove(limit) {
                map.insert(exclusive.to_owned(), value);
            }
        }
    }

    /// Rewrites an array in `items`, the form of all drafts before 2020-12.
    fn tuple(&mut self, map: &mut Map<String, Value>, at: &SchemaPointer<'_>) {
        if !map.get("items").is_some_and(Value::is_array) {
            return;
        }
        let Some(list) = map.remove("items") else { return };
        let rest = map.remove("additionalItems").unwrap_or_else(|| json!({}));
        self.losses.record(
            LossKind::Rewritten,
            at,
            "array in `items` written as `prefixItems`",
            OLD,
        );
        map.insert("items".to_owned(), rest);
        if list != json!([]) {
            map.insert("prefixItems".to_owned(), list);
        }
    }

    /// Removes properties whose names Anthropic refuses.
    fn keys(&mut self, schema: &mut Value, at: &SchemaPointer<'_>) {
        let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else {
            return;
        };
        let illegal: BTreeSet<String> =
            properties.keys().filter(|key| !is_key(key)).cloned().collect();
        for key in &illegal {
            properties.remove(key);
            let why = "Anthropic accepts 1 to 64 letters, digits, `_`, `.` and `-`";
            let what = "property omitted";
            self.losses.record(LossKind::Narrowed, &at.key("properties").key(key), what, why);
        }
        if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
            required.retain(|name| name.as_str().is_none_or(|name| !illegal.contains(name)));
        }
    }
}

/// Returns true if Anthropic accepts the name for a property.
pub(super) fn is_key(key: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    (1..=64).contains(&key.len()) && key.bytes().all(fits)
}

/// Returns true if a schema's type allows this type.
pub(super) fn may_be(schema: &Map<String, Value>, kind: &str) -> bool {
    debug_assert!(TYPES.contains(&kind));
    match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|one| one == kind),
        Some(one) => one == kind,
        None => false,
    }
}

/// Returns true for keywords whose boolean values are common and accepted by all providers.
fn is_closing(key: &str) -> bool {
    matches!(key, "additionalProperties" | "unevaluatedProperties" | "unevaluatedItems")
}

/// Removes dangling references.
struct ReferenceCleanup<'a> {
    root: &'a Value,
    losses: &'a mut LossLog,
}

impl ReferenceCleanup<'_> {
    fn check(&mut self, schema: &mut Value, at: &SchemaPointer<'_>) {
        let Some(map) = schema.as_object_mut() else { return };
        if let Some(leads) = map.get("$ref").and_then(Value::as_str)
            && reference::target(self.root, leads).is_none()
        {
            let why = if leads.starts_with('#') {
                "unresolved reference"
            } else {
                "external references are not fetched"
            };
            self.losses.record(LossKind::Replaced, at, "`$ref` omitted", why);
            map.remove("$ref");
        }
        for (key, value) in map.iter_mut() {
            let here = at.key(key);
            match (KeywordValue::of(key), value) {
                (Some(KeywordValue::Schema), value) => self.check(value, &here),
                (Some(KeywordValue::Schemas), Value::Array(list)) => {
                    for (item, value) in list.iter_mut().enumerate() {
                        self.check(value, &here.item(item));
                    }
                }
                (Some(KeywordValue::Named), Value::Object(named)) => {
                    for (name, value) in named.iter_mut() {
                        self.check(value, &here.key(name));
                    }
                }
                _ => {}
            }
        }
    }
}
