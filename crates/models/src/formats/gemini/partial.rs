//! Arguments of a call that arrive in pieces, each at a JSON path.

use serde_json::{Map, Value};

use crate::decode::DecodeError;
use crate::error::ExceededLimit;
use crate::limits::AnswerLimits;

/// Arguments as far as they have arrived.
#[derive(Debug)]
pub(crate) struct PartialArguments {
    value: Value,
    /// Bytes received.
    bytes: usize,
    /// Path of a string that continues.
    open: Option<String>,
}

/// One step of a path.
enum PathStep {
    Member(String),
    Index(usize),
}

impl PartialArguments {
    /// Creates arguments that begin with those that arrived at once.
    pub(crate) fn new(args: &Value) -> Self {
        let value = if args.is_object() { args.clone() } else { Value::Object(Map::new()) };
        Self { value, bytes: 0, open: None }
    }

    /// Takes pieces, in order.
    pub(crate) fn add_piece(
        &mut self,
        pieces: &Value,
        limits: &AnswerLimits,
    ) -> Result<(), DecodeError> {
        let most = limits.argument_bytes;
        for piece in pieces.as_array().into_iter().flatten() {
            let path = piece["jsonPath"].as_str().unwrap_or_default();
            let value = ["stringValue", "numberValue", "boolValue"]
                .iter()
                .find_map(|name| piece.get(name))
                .cloned()
                .unwrap_or_default();
            self.bytes += path.len() + value.as_str().map_or(8, str::len);
            if self.bytes > most {
                return Err(ExceededLimit::ArgumentBytes(most).into());
            }
            let broken = || DecodeError::Malformed(format!("arguments at an invalid path: {path}"));
            let steps = steps(path, limits).ok_or_else(broken)?;
            let place = value_at(&mut self.value, steps).ok_or_else(broken)?;
            let goes_on = self.open.as_deref() == Some(path);
            match (place, &value) {
                (Value::String(text), Value::String(more)) if goes_on => text.push_str(more),
                (place, _) => *place = value,
            }
            let will_continue = piece["willContinue"].as_bool().unwrap_or_default();
            self.open = will_continue.then(|| path.to_owned());
        }
        Ok(())
    }

    /// Returns the arguments as JSON.
    pub(crate) fn finish(self) -> String {
        self.value.to_string()
    }
}

/// The steps of a path such as `$.a.b[0]` or `$['a b']`.
fn steps(path: &str, limits: &AnswerLimits) -> Option<Vec<PathStep>> {
    let mut rest = path.strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if steps.len() >= limits.argument_depth {
            return None;
        }
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            let (name, next) = after.split_at(end);
            steps.push(PathStep::Member((!name.is_empty()).then(|| name.to_owned())?));
            rest = next;
            continue;
        }
        let inside = rest.strip_prefix('[')?;
        let quoted = ['\'', '"'].into_iter().find(|quote| inside.starts_with(*quote));
        let (step, next) = match quoted {
            Some(quote) => {
                let (name, next) = inside[1..].split_once(&format!("{quote}]"))?;
                (PathStep::Member(name.to_owned()), next)
            }
            None => {
                let (index, next) = inside.split_once(']')?;
                let index = index.parse().ok().filter(|index| *index <= limits.argument_index)?;
                (PathStep::Index(index), next)
            }
        };
        steps.push(step);
        rest = next;
    }
    Some(steps)
}

/// Returns the value at the end of these steps, created if missing; `None` if a value of another type is in the way.
fn value_at(root: &mut Value, steps: Vec<PathStep>) -> Option<&mut Value> {
    let mut at = root;
    for step in steps {
        at = match step {
            PathStep::Member(name) => {
                if at.is_null() {
                    *at = Value::Object(Map::new());
                }
                at.as_object_mut()?.entry(name).or_insert(Value::Null)
            }
            PathStep::Index(index) => {
                if at.is_null() {
                    *at = Value::Array(Vec::new());
                }
                let list = at.as_array_mut()?;
                if list.len() <= index {
                    list.resize(index + 1, Value::Null);
                }
                list.get_mut(index)?
            }
        };
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn bytes(argument_bytes: usize) -> AnswerLimits {
        AnswerLimits { argument_bytes, ..AnswerLimits::default() }
    }

    #[test]
    fn pieces_come_together_at_their_paths() {
        let mut arguments = PartialArguments::new(&Value::Null);
        let pieces = json!([
            { "jsonPath": "$.a", "stringValue": "New ", "willContinue": true },
            { "jsonPath": "$.a", "stringValue": "York" },
            { "jsonPath": "$.list[1].n", "numberValue": 2 },
            { "jsonPath": "$['odd name']", "boolValue": true },
            { "jsonPath": "$.none", "nullValue": "NULL_VALUE" },
        ]);
        arguments.add_piece(&pieces, &bytes(1000)).unwrap();
        let made: Value = serde_json::from_str(&arguments.finish()).unwrap();
        let whole = json!({
            "a": "New York", "list": [null, { "n": 2 }], "odd name": true, "none": null,
        });
        assert_eq!(made, whole);
    }

    #[test]
    fn a_path_that_leads_nowhere_or_too_far_is_refused() {
        for path in ["", "a", "$.", "$[x]", "$[99999999]", "$.a[", &format!("${}", ".a".repeat(99))]
        {
            let mut arguments = PartialArguments::new(&Value::Null);
            let pieces = json!([{ "jsonPath": path, "stringValue": "x" }]);
            assert!(arguments.add_piece(&pieces, &bytes(10_000)).is_err(), "{path}");
        }
        let mut arguments = PartialArguments::new(&json!({ "a": 1 }));
        let pieces = json!([{ "jsonPath": "$.a.b", "stringValue": "x" }]);
        assert!(arguments.add_piece(&pieces, &bytes(1000)).is_err(), "something stands there");
        let long = json!([{ "jsonPath": "$.b", "stringValue": "x".repeat(100) }]);
        assert!(matches!(arguments.add_piece(&long, &bytes(50)), Err(DecodeError::Exceeded(_))));
    }
}
