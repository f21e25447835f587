//! One schema without combinations: its type, and the keywords that apply to it.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::super::loss::{LossKind, SchemaPointer};
use super::{ONE_TYPE, OpenApiWalk, SILENT, UNKNOWN, annotate, any_of};

/// The longest text that is added to a description for constraints that the schema cannot express.
const NOTE: usize = 300;

const TOO_LARGE: &str = "the whole would be too large";

/// A schema of one type, as far as it is written.
struct TypedSchema<'a> {
    kind: &'a str,
    from: &'a Map<String, Value>,
    written: Map<String, Value>,
    /// Text to add to the description.
    notes: Vec<String>,
    nullable: bool,
}

impl OpenApiWalk<'_> {
    /// A schema without references and combinations.
    pub(super) fn plain(
        &mut self,
        map: &Map<String, Value>,
        at: &SchemaPointer<'_>,
        depth: usize,
    ) -> Value {
        let mut nullable = map.get("nullable") == Some(&json!(true));
        let mut kinds: Vec<&str> = match map.get("type") {
            Some(Value::String(kind)) => vec![kind],
            Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
            _ => infer_type(map).into_iter().collect(),
        };
        if kinds.contains(&"null") {
            let what = "`null` among types written as `nullable`";
            self.losses.record(LossKind::Rewritten, at, what, ONE_TYPE);
            nullable = true;
            kinds.retain(|kind| *kind != "null");
            if kinds.is_empty() {
                kinds.push("string");
            }
        }
        match kinds[..] {
            [] => return self.untyped(map, nullable, at),
            [_] => {}
            _ => {
                self.losses.record(
                    LossKind::Rewritten,
                    at,
                    "several types written as `anyOf`",
                    ONE_TYPE,
                );
            }
        }
        let mut written = Vec::new();
        for kind in kinds {
            let (notes, none) = (Vec::new(), Map::new());
            let typed = TypedSchema { kind, from: map, written: none, notes, nullable };
            written.push(self.typed(typed, at, depth));
        }
        any_of(written)
    }

    /// Writes a schema that has no type.
    fn untyped(
        &mut self,
        map: &Map<String, Value>,
        nullable: bool,
        at: &SchemaPointer<'_>,
    ) -> Value {
        if map.contains_key("enum") || map.contains_key("const") {
            self.losses.record(
                LossKind::Widened,
                at,
                "`enum` omitted",
                "Gemini accepts only strings",
            );
        }
        let what = "any value written as any of five types";
        self.losses.record(LossKind::Rewritten, at, what, ONE_TYPE);
        let mut whole = self.anything();
        for key in ["title", "description"] {
            if let Some(text) = map.get(key)
                && self.spend(text)
            {
                annotate(&mut whole, key, text);
            }
        }
        if nullable {
            annotate(&mut whole, "nullable", &json!(true));
        }
        whole
    }

    /// Writes the keywords that apply to one type.
    fn typed(&mut self, mut typed: TypedSchema<'_>, at: &SchemaPointer<'_>, depth: usize) -> Value {
        let kind = typed.kind;
        for (key, value) in typed.from {
            match &**key {
                // Of another type, it says nothing of this one.
                key if is_of(key).is_some_and(|kinds| !kinds.contains(&kind)) => {}
                "properties" => self.properties(&mut typed, value, at, depth),
                // Below, when the properties are known.
                "required" | "propertyOrdering" | "items" | "prefixItems" | "nullable" => {}
                "enum" | "const" => self.choice(&mut typed, key, value, at),
                "format" => self.format(&mut typed, value, at),
                "exclusiveMinimum" | "exclusiveMaximum" => self.limit(&mut typed, key, value, at),
                "examples" => self.examples(&mut typed, value, at),
                "title" | "description" | "default" | "example" | "minProperties"
                | "maxProperties" | "minItems" | "maxItems" | "minLength" | "maxLength"
                | "pattern" | "minimum" | "maximum" => {
                    if self.spend(value) {
                        typed.written.insert(key.clone(), value.clone());
                    } else {
                        let what = format!("`{key}` omitted");
                        self.losses.record(LossKind::Widened, at, what, TOO_LARGE);
                    }
                }
                "additionalProperties" if *value == json!(true) => {}
                silent if SILENT.contains(&silent) => {}
                _ => {
                    self.losses.record(LossKind::Widened, at, format!("`{key}` omitted"), UNKNOWN);
                }
            }
        }
        match kind {
            "object" => self.property_lists(&mut typed, at),
            "array" => {
                let items = self.items(typed.from, at, depth);
                typed.written.insert("items".to_owned(), items);
            }
            _ => {}
        }
        self.write_notes(&mut typed);
        typed.written.insert("type".to_owned(), json!(kind));
        if typed.nullable {
            typed.written.insert("nullable".to_owned(), json!(true));
        }
        Value::Object(typed.written)
    }

    fn properties(
        &mut self,
        typed: &mut TypedSchema<'_>,
        value: &Value,
        at: &SchemaPointer<'_>,
        depth: usize,
    ) {
        let list = at.key("properties");
        let mut properties = Map::new();
        for (name, schema) in value.as_object().into_iter().flatten() {
            let here = list.key(name);
            if *schema == json!(false) {
                let why = "no value is valid";
                self.losses.record(LossKind::Rewritten, &here, "property omitted", why);
            } else if self.spend(&json!(name)) {
                properties.insert(name.clone(), self.schema(schema, &here, depth + 1));
            } else {
                self.losses.record(LossKind::Narrowed, &here, "property omitted", TOO_LARGE);
            }
        }
        // An object that says it has no properties is refused.
        if !properties.is_empty() {
            typed.written.insert("properties".to_owned(), Value::Object(properties));
        }
    }

    /// Writes lists of properties, which may only name properties that exist.
    fn property_lists(&mut self, typed: &mut TypedSchema<'_>, at: &SchemaPointer<'_>) {
        for key in ["required", "propertyOrdering"] {
            let Some(names) = typed.from.get(key).and_then(Value::as_array) else { continue };
            let known = typed.written.get("properties").and_then(Value::as_object);
            let known = |name: &str| known.is_some_and(|known| known.contains_key(name));
            let mut seen = HashSet::new();
            let all: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
            let there: Vec<&str> =
                all.iter().copied().filter(|name| known(name) && seen.insert(*name)).collect();
            if all.iter().any(|name| !known(name)) {
                let what = format!("names in `{key}` omitted");
                self.losses.record(LossKind::Widened, at, what, "no such property");
            }
            if !there.is_empty() {
                typed.written.insert(key.to_owned(), json!(there));
            }
        }
    }

    fn items(&mut self, map: &Map<String, Value>, at: &SchemaPointer<'_>, depth: usize) -> Value {
        let is_said = |items: &&Value| items.as_object().is_some_and(|items| !items.is_empty());
        if let Some(first) = map.get("prefixItems").and_then(Value::as_array) {
            let what = "`prefixItems` written as `items` of any of them";
            self.losses.record(LossKind::Widened, at, what, UNKNOWN);
            let any: Vec<&Value> = first.iter().chain(map.get("items").filter(is_said)).collect();
            return self.schema(&json!({ "anyOf": any }), &at.key("prefixItems"), depth + 1);
        }
        match map.get("items").filter(is_said) {
            Some(items) => self.schema(items, &at.key("items"), depth + 1),
            None => {
                let what = "`items` written as any of five types";
                self.losses.record(
                    LossKind::Rewritten,
                    at,
                    what,
                    "Gemini requires it for every array",
                );
                self.anything()
            }
        }
    }

    /// `enum` and `const`.
    fn choice(
        &mut self,
        typed: &mut TypedSchema<'_>,
        key: &str,
        value: &Value,
        at: &SchemaPointer<'_>,
    ) {
        let values = match value {
            Value::Array(values) if key == "enum" => values.as_slice(),
            value => std::slice::from_ref(value),
        };
        typed.nullable |= values.contains(&Value::Null);
        let values: Vec<&Value> = values.iter().filter(|value| !value.is_null()).collect();
        let texts: Vec<&str> = values.iter().filter_map(|value| value.as_str()).collect();
        let full: Vec<&str> = texts.iter().copied().filter(|text| !text.is_empty()).collect();
        if typed.kind != "string" || full.is_empty() || texts.len() < values.len() {
            let what = format!("`{key}` moved to `description`");
            self.losses.record(LossKind::Widened, at, what, "Gemini accepts only strings");
            typed.notes.push(list_values("One of", &values));
            return;
        }
        if full.len() < texts.len() {
            let what = "empty string removed from `enum`";
            self.losses.record(LossKind::Narrowed, at, what, "Gemini rejects it");
        }
        if key == "const" {
            self.losses.record(LossKind::Rewritten, at, "`const` written as `enum`", UNKNOWN);
        }
        if self.spend(value) {
            typed.written.insert("enum".to_owned(), json!(full));
        }
    }

    fn examples(&mut self, typed: &mut TypedSchema<'_>, value: &Value, at: &SchemaPointer<'_>) {
        let what = "`examples` moved to `description`";
        self.losses.record(LossKind::Rewritten, at, what, UNKNOWN);
        let examples: Vec<&Value> = value.as_array().into_iter().flatten().collect();
        typed.notes.push(list_values("Examples", &examples));
    }

    fn format(&mut self, typed: &mut TypedSchema<'_>, value: &Value, at: &SchemaPointer<'_>) {
        let format = value.as_str().unwrap_or_default();
        let known = match (typed.kind, format) {
            ("string", "date-time")
            | ("number", "float" | "double")
            | ("integer", "int32" | "int64") => true,
            ("string", "enum") => typed.written.contains_key("enum"),
            _ => false,
        };
        if known {
            typed.written.insert("format".to_owned(), value.clone());
            return;
        }
        let what = format!("`format` {value} moved to `description`");
        self.losses.record(LossKind::Widened, at, what, UNKNOWN);
        typed.notes.push(format!("Format: {format}."));
    }

    /// Writes an exclusive limit.
    fn limit(
        &mut self,
        typed: &mut TypedSchema<'_>,
        key: &str,
        value: &Value,
        at: &SchemaPointer<'_>,
    ) {
        let (plain, step) =
            if key == "exclusiveMinimum" { ("minimum", 1) } else { ("maximum", -1) };
        if typed.from.contains_key(plain) {
            self.losses.record(LossKind::Widened, at, format!("`{key}` omitted"), UNKNOWN);
            return;
        }
        let next = value.as_i64().filter(|_| typed.kind == "integer");
        let (kind, limit) = match next.and_then(|limit| limit.checked_add(step)) {
            Some(next) => (LossKind::Rewritten, json!(next)),
            None => (LossKind::Widened, value.clone()),
        };
        self.losses.record(kind, at, format!("`{key}` written as `{plain}`"), UNKNOWN);
        typed.written.insert(plain.to_owned(), limit);
    }

    /// Adds to the description what the schema cannot express.
    fn write_notes(&mut self, typed: &mut TypedSchema<'_>) {
        for note in std::mem::take(&mut typed.notes) {
            if note.len() > NOTE || !self.spend(&json!(note)) {
                continue;
            }
            let text = match typed.written.get("description").and_then(Value::as_str) {
                Some(text) => format!("{text}\n{note}"),
                None => note,
            };
            typed.written.insert("description".to_owned(), json!(text));
        }
    }
}

/// Returns the types that a keyword applies to; `None` if all.
fn is_of(key: &str) -> Option<&'static [&'static str]> {
    Some(match key {
        "properties"
        | "required"
        | "minProperties"
        | "maxProperties"
        | "propertyOrdering"
        | "additionalProperties"
        | "patternProperties"
        | "propertyNames" => &["object"],
        "items" | "prefixItems" | "minItems" | "maxItems" | "uniqueItems" | "contains" => {
            &["array"]
        }
        "minLength" | "maxLength" | "pattern" => &["string"],
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
            &["number", "integer"]
        }
        _ => return None,
    })
}

/// Returns values as text for a model, as many as fit.
fn list_values(what: &str, values: &[&Value]) -> String {
    let mut text = format!("{what}: ");
    for (n, value) in values.iter().enumerate() {
        let value = value.to_string();
        if text.len() + value.len() + 6 > NOTE {
            text.push_str(if n == 0 { "…" } else { ", …" });
            return text;
        }
        text.push_str(if n == 0 { "" } else { ", " });
        text.push_str(&value);
    }
    text + "."
}

/// Infers the type of a schema without one from its other keywords.
fn infer_type(map: &Map<String, Value>) -> Option<&'static str> {
    let has = |keys: &[&str]| keys.iter().any(|key| map.contains_key(*key));
    if has(&["properties", "required", "additionalProperties", "patternProperties"]) {
        return Some("object");
    }
    if has(&["items", "prefixItems", "minItems", "maxItems", "uniqueItems"]) {
        return Some("array");
    }
    let values = map.get("enum").and_then(Value::as_array).map(Vec::as_slice);
    if let Some(values) = values.or_else(|| map.get("const").map(std::slice::from_ref)) {
        let all = |is: fn(&Value) -> bool| values.iter().all(|value| value.is_null() || is(value));
        return match () {
            () if all(Value::is_string) => Some("string"),
            () if all(|value| value.is_i64() || value.is_u64()) => Some("integer"),
            () if all(Value::is_number) => Some("number"),
            () if all(Value::is_boolean) => Some("boolean"),
            () => None,
        };
    }
    if has(&["minLength", "maxLength", "pattern", "format"]) {
        return Some("string");
    }
    let number = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];
    has(&number).then_some("number")
}
