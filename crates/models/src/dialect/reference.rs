//! Resolution of `$ref`. Nothing outside the schema is ever looked up.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::keyword::is_schema;

/// The most references followed in a chain.
const HOPS: usize = 16;

/// Returns the schema within `root` that a reference points to.
pub(super) fn target<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = reference.strip_prefix('#')?;
    root.pointer(&unescape(pointer)?).filter(|schema| is_schema(schema))
}

/// Resolves a schema's own `$ref`: the referenced schema, overlaid with the members beside the `$ref`.
/// `None` if it points nowhere or in a circle, or to more bytes than are left.
pub(super) fn resolve(
    root: &Value,
    schema: &Map<String, Value>,
    left: &mut usize,
) -> Option<Map<String, Value>> {
    let mut beside = schema.clone();
    for _ in 0..HOPS {
        let Some(reference) = beside.remove("$ref") else { return Some(beside) };
        let found = target(root, reference.as_str()?)?;
        spend(left, found).then_some(())?;
        match found {
            Value::Object(found) => {
                for (key, value) in found {
                    beside.entry(key).or_insert_with(|| value.clone());
                }
            }
            _ => return Some(beside),
        }
    }
    None
}

/// Takes the cost of a copy of the value from the budget. Returns true if it sufficed.
pub(super) fn spend(left: &mut usize, value: &Value) -> bool {
    // What is used up stays so, and nothing is measured any more.
    if *left == 0 {
        return false;
    }
    let size = size(value);
    let enough = size <= *left;
    *left = left.saturating_sub(size);
    enough
}

fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(|item| size(item) + 1).sum::<usize>(),
        Value::Object(map) => {
            2 + map.iter().map(|(key, value)| key.len() + 4 + size(value)).sum::<usize>()
        }
        _ => 8,
    }
}

/// Percent-decodes a URI fragment.
fn unescape(fragment: &str) -> Option<Cow<'_, str>> {
    if !fragment.contains('%') {
        return Some(Cow::Borrowed(fragment));
    }
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte == b'%' {
            let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &rest[2..];
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reference_leads_to_a_schema_within_or_nowhere() {
        let root = json!({ "$defs": { "a b": { "type": "null" }, "x/y": true, "n": 1 } });
        assert_eq!(target(&root, "#"), Some(&root));
        assert_eq!(target(&root, "#/$defs/a%20b"), Some(&json!({ "type": "null" })));
        assert_eq!(target(&root, "#/$defs/x~1y"), Some(&json!(true)));
        for nowhere in [
            "#/$defs/n",
            "#/$defs/z",
            "#anchor",
            "#/%",
            "#/%zz",
            "a.json",
            "http://a/#/$defs/n",
            "",
        ] {
            assert_eq!(target(&root, nowhere), None, "{nowhere}");
        }
    }
}
