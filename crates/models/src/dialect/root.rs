//! Schemas with one object at the root, as providers require: combinations are merged into one schema.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Map, Value, json};

use super::loss::{LossKind, LossLog, SchemaPointer};
use super::{LARGEST, ToolDialect, reference};

/// The most parts of a combination that are examined, nested ones included.
const PARTS: usize = 256;

/// The most nested combinations that are merged; a schema may be an alternative to itself.
const WITHIN: usize = 4;

const ROOT_REASON: &str = "the provider requires a plain object at the root";

/// The whole schema with a plain object at its root.
pub(super) fn object(schema: &Value, dialect: ToolDialect, losses: &mut LossLog) -> Value {
    let at = SchemaPointer::root();
    let Value::Object(map) = schema else {
        losses.record(LossKind::Rewritten, &at, "any value written as an object", ROOT_REASON);
        return json!({ "type": "object" });
    };
    let mut bytes = 4 * LARGEST;
    let mut map = match reference::resolve(schema, map, &mut bytes) {
        Some(found) => {
            if map.contains_key("$ref") {
                losses.record(LossKind::Rewritten, &at, "`$ref` inlined", ROOT_REASON);
            }
            found
        }
        None => {
            losses.record(LossKind::Replaced, &at, "`$ref` omitted", "unresolved reference");
            map.iter().filter(|(key, _)| *key != "$ref").map(clone_member).collect()
        }
    };
    if map.contains_key("allOf") || map.contains_key("anyOf") || map.contains_key("oneOf") {
        map = SchemaCombination::new(schema, bytes).plain(map, &at, ROOT_REASON, losses);
    }
    if map.get("type") != Some(&json!("object")) {
        let harmless = map.get("type").is_none_or(has_object);
        let kind = if harmless { LossKind::Rewritten } else { LossKind::Replaced };
        losses.record(kind, &at, "`type` written as `object`", ROOT_REASON);
        map.insert("type".to_owned(), json!("object"));
    }
    if dialect.is_openai() {
        for key in ["not", "enum", "const"] {
            if map.remove(key).is_some() {
                losses.record(LossKind::Widened, &at, format!("`{key}` omitted"), ROOT_REASON);
            }
        }
    }
    Value::Object(map)
}

/// A merge of a combination of schemas into one schema.
pub(super) struct SchemaCombination<'a> {
    root: &'a Value,
    /// Parts that may still be examined.
    left: usize,
    /// Depth of enclosing combinations.
    within: usize,
    /// Bytes that may still be copied.
    pub(super) bytes: usize,
}

impl<'a> SchemaCombination<'a> {
    pub(super) fn new(root: &'a Value, bytes: usize) -> Self {
        Self { root, left: PARTS, within: 0, bytes }
    }

    /// An object without `allOf`, `anyOf` and `oneOf`.
    pub(super) fn plain(
        &mut self,
        mut map: Map<String, Value>,
        at: &SchemaPointer<'_>,
        why: &'static str,
        losses: &mut LossLog,
    ) -> Map<String, Value> {
        // Parts may bring combinations of their own.
        while let Some(key) =
            ["allOf", "anyOf", "oneOf"].into_iter().find(|key| map.contains_key(*key))
        {
            let mut parts = self.parts(map.remove(key).unwrap_or_default(), &at.key(key), losses);
            if key == "allOf" {
                if conjunction(&mut map, parts) {
                    losses.record(LossKind::Widened, at, "`allOf` partially merged", why);
                } else {
                    losses.record(LossKind::Rewritten, at, "`allOf` merged", why);
                }
                continue;
            }
            let count = parts.len();
            parts.retain(|part| part.get("type").is_none_or(has_object));
            for part in &mut parts {
                if self.within == WITHIN {
                    part.retain(|key, _| !is_combination(key));
                } else if part.keys().any(|key| is_combination(key)) {
                    self.within += 1;
                    *part = self.plain(std::mem::take(part), at, why, &mut LossLog::default());
                    self.within -= 1;
                }
            }
            if parts.len() == 1 && !conjunction(&mut map, parts.clone()) && count == 1 {
                losses.record(LossKind::Rewritten, at, format!("`{key}` of one merged"), why);
                continue;
            }
            if parts.len() > 1 {
                union(&mut map, &parts);
            }
            let what = format!("`{key}` of {count} merged: the combinations are lost");
            losses.record(LossKind::Widened, at, what, why);
        }
        map
    }

    /// Returns the parts that are schemas, with references resolved.
    fn parts(
        &mut self,
        list: Value,
        at: &SchemaPointer<'_>,
        losses: &mut LossLog,
    ) -> Vec<Map<String, Value>> {
        let Value::Array(list) = list else { return Vec::new() };
        let mut parts = Vec::new();
        for (item, part) in list.iter().enumerate() {
            let followed = match part {
                Value::Object(part) if self.left > 0 => {
                    reference::resolve(self.root, part, &mut self.bytes)
                }
                Value::Bool(true) => Some(Map::new()),
                _ => None,
            };
            self.left = self.left.saturating_sub(1);
            match followed {
                Some(part) => parts.push(part),
                None => losses.record(
                    LossKind::Replaced,
                    &at.item(item),
                    "omitted",
                    "it is not a schema, an unresolved reference, or beyond the limit",
                ),
            }
        }
        parts
    }
}

/// Adds the keywords of all parts of an `allOf`. Returns true if something is lost.
fn conjunction(map: &mut Map<String, Value>, parts: Vec<Map<String, Value>>) -> bool {
    // What closes one part would close the whole, unless it is the whole.
    let alone = parts.len() == 1 && !map.contains_key("properties");
    let mut lost = false;
    for part in parts {
        for (key, value) in part {
            let Some(known) = map.get_mut(&key) else {
                let closes = matches!(&*key, "additionalProperties" | "unevaluatedProperties");
                if !closes || alone {
                    map.insert(key, value);
                } else {
                    lost |= value != json!(true);
                }
                continue;
            };
            lost |= !merge_keyword(&key, known, value);
        }
    }
    lost
}

/// Merges another schema's value of a keyword into this one. Returns true if nothing is lost.
fn merge_keyword(key: &str, known: &mut Value, value: Value) -> bool {
    if *known == value {
        return true;
    }
    match (key, known, value) {
        (
            "title" | "description" | "default" | "examples" | "$schema" | "$id" | "$comment",
            _,
            _,
        ) => true,
        ("properties" | "$defs" | "definitions", Value::Object(known), Value::Object(more)) => {
            for (name, schema) in more {
                match known.get_mut(&name) {
                    Some(there) => merge_property(there, schema),
                    None => {
                        known.insert(name, schema);
                    }
                }
            }
            true
        }
        ("required" | "allOf", Value::Array(known), Value::Array(more)) => {
            let mut seen: HashSet<String> = known.iter().map(Value::to_string).collect();
            known.extend(more.into_iter().filter(|item| seen.insert(item.to_string())));
            true
        }
        _ => false,
    }
}

/// Merges another schema into a property's schema. The result is flat, as a recursive schema is merged
/// repeatedly.
fn merge_property(there: &mut Value, schema: Value) {
    if *there == schema {
        return;
    }
    let is_ours = there.as_object().is_some_and(|there| there.len() == 1);
    match there.get_mut("allOf").and_then(Value::as_array_mut) {
        Some(parts) if is_ours => {
            if !parts.contains(&schema) {
                parts.push(schema);
            }
        }
        _ => *there = json!({ "allOf": [there.take(), schema] }),
    }
}

/// Merges alternatives: the properties of all, required where all require them.
fn union(map: &mut Map<String, Value>, parts: &[Map<String, Value>]) {
    let required: Vec<BTreeSet<&str>> = parts.iter().map(required).collect();
    let always = required.iter().skip(1).fold(required[0].clone(), |always, one| &always & one);
    let own = map.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut ways: Map<String, Value> = Map::new();
    for (name, schema) in
        parts.iter().filter_map(|part| part.get("properties")?.as_object()).flatten()
    {
        if own.contains_key(name) {
            continue;
        }
        let known = ways.entry(name).or_insert_with(|| json!([]));
        let known = known.as_array_mut().expect("it was inserted as one");
        if !known.contains(schema) {
            known.push(schema.clone());
        }
    }
    let mut properties = own;
    for (name, schemas) in ways {
        let schema = match schemas {
            Value::Array(mut one) if one.len() == 1 => one.remove(0),
            several => json!({ "anyOf": several }),
        };
        properties.insert(name, schema);
    }
    if let Some(note) = note(&required, &always) {
        let text = match map.get("description").and_then(Value::as_str) {
            Some(text) => format!("{text}\n{note}"),
            None => note,
        };
        map.insert("description".to_owned(), json!(text));
    }
    let always = json!(always);
    match map.get_mut("required") {
        Some(own) => {
            merge_keyword("required", own, always);
        }
        None if always != json!([]) => {
            map.insert("required".to_owned(), always);
        }
        None => {}
    }
    let closed = parts.iter().all(|part| part.get("additionalProperties") == Some(&json!(false)));
    if closed && !map.contains_key("additionalProperties") {
        map.insert("additionalProperties".to_owned(), json!(false));
    }
    if !properties.is_empty() {
        map.insert("properties".to_owned(), json!(properties));
    }
}

/// Returns a note for the model on lost alternatives: the properties that are required together.
fn note(required: &[BTreeSet<&str>], always: &BTreeSet<&str>) -> Option<String> {
    let mut ways = BTreeSet::new();
    for one in required {
        let names: Vec<String> = one.difference(always).map(|name| format!("`{name}`")).collect();
        ways.insert(names.join(" and "));
    }
    let ways: Vec<String> = ways.into_iter().collect();
    let note = format!("Required: {}.", ways.join(", or "));
    (ways.len() > 1 && !ways.contains(&String::new()) && note.len() <= 500).then_some(note)
}

fn required(part: &Map<String, Value>) -> BTreeSet<&str> {
    let names = part.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Returns true if a type allows an object.
pub(super) fn has_object(kind: &Value) -> bool {
    let is = |kind: &Value| kind == "object";
    is(kind) || kind.as_array().is_some_and(|kinds| kinds.iter().any(is))
}

pub(super) fn is_combination(key: &str) -> bool {
    matches!(key, "allOf" | "anyOf" | "oneOf")
}

fn clone_member((key, value): (&String, &Value)) -> (String, Value) {
    (key.clone(), value.clone())
}
