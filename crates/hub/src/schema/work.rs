//! Cost of validating a value against a schema, counted in advance.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::measure::IN_PLACE;

/// Maximum depth of a validation, values and references together.
const DEEPEST: u32 = 400;

/// States of a pattern times bytes of a string that are one step.
const STATES_A_STEP: usize = 64;

/// Bytes of a string, or values of an `enum`, that one step covers.
const LOOKED_AT: usize = 256;

/// Error of a validation that would take too long, or nest too deep.
#[derive(Debug)]
pub(super) struct TooMuch;

/// Counts the work of a validator. Each part is counted once for each value that it applies to, regardless of the
/// number of paths there, so that counting is quick where validation is not.
pub(super) struct ValidationWork<'a> {
    root: &'a Value,
    /// States of each pattern.
    patterns: &'a HashMap<String, usize>,
    counted: HashMap<(*const Value, *const ()), ValidationCost>,
    /// Steps that a validation may take.
    most: u64,
}

/// Steps, and the length of the longest path.
#[derive(Clone, Copy)]
struct ValidationCost {
    steps: u64,
    height: u32,
}

impl ValidationCost {
    fn add(&mut self, other: Self) {
        self.steps = self.steps.saturating_add(other.steps);
        self.height = self.height.max(other.height + 1);
    }
}

/// Something that a schema applies to: a value, or the name of a member.
#[derive(Clone, Copy)]
enum SchemaInstance<'a> {
    Value(&'a Value),
    Name(&'a String),
}

impl<'a> SchemaInstance<'a> {
    fn address(self) -> *const () {
        match self {
            Self::Value(value) => std::ptr::from_ref(value).cast(),
            Self::Name(name) => std::ptr::from_ref(name).cast(),
        }
    }

    fn text(self) -> Option<&'a str> {
        match self {
            Self::Value(Value::String(text)) | Self::Name(text) => Some(text),
            Self::Value(_) => None,
        }
    }

    fn object(self) -> Option<&'a Map<String, Value>> {
        match self {
            Self::Value(Value::Object(members)) => Some(members),
            _ => None,
        }
    }

    fn array(self) -> Option<&'a Vec<Value>> {
        match self {
            Self::Value(Value::Array(items)) => Some(items),
            _ => None,
        }
    }
}

/// Returns the steps of matching a pattern with so many states against so many bytes.
pub(super) fn pattern_steps(states: Option<usize>, bytes: usize) -> usize {
    states.unwrap_or(1).saturating_mul(bytes + 1) / STATES_A_STEP + 1
}

impl<'a> ValidationWork<'a> {
    /// Returns an error if validating a value against a schema takes more than `most` steps, or nests too deep.
    pub(super) fn bounded(
        root: &'a Value,
        patterns: &'a HashMap<String, usize>,
        value: &'a Value,
        most: u64,
    ) -> Result<(), TooMuch> {
        let mut work = Self { root, patterns, counted: HashMap::new(), most };
        work.count(root, SchemaInstance::Value(value), 0).map(|_| ())
    }

    fn count(
        &mut self,
        part: &'a Value,
        value: SchemaInstance<'a>,
        depth: u32,
    ) -> Result<ValidationCost, TooMuch> {
        let Value::Object(members) = part else {
            return Ok(ValidationCost { steps: 1, height: 0 });
        };
        let key = (std::ptr::from_ref(part), value.address());
        let known = self.counted.get(&key).copied();
        if depth + known.map_or(0, |cost| cost.height) > DEEPEST {
            return Err(TooMuch);
        }
        if let Some(cost) = known {
            return Ok(cost);
        }
        let bytes = value.text().map_or(0, str::len);
        let mut cost = ValidationCost { steps: 1 + (bytes / LOOKED_AT) as u64, height: 0 };
        for (name, sub) in members {
            self.member(name, sub, value, depth + 1, &mut cost)?;
        }
        // To know what was evaluated, a validator goes over all of it again.
        if members.contains_key("unevaluatedProperties") || members.contains_key("unevaluatedItems")
        {
            cost.steps = cost.steps.saturating_mul(2);
        }
        if cost.steps > self.most || self.counted.len() as u64 > self.most {
            return Err(TooMuch);
        }
        self.counted.insert(key, cost);
        Ok(cost)
    }

    /// Adds the cost of a keyword for a value.
    fn member(
        &mut self,
        name: &str,
        sub: &'a Value,
        value: SchemaInstance<'a>,
        depth: u32,
        cost: &mut ValidationCost,
    ) -> Result<(), TooMuch> {
        match (name, sub) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
                let target = reference.strip_prefix('#').and_then(|path| self.root.pointer(path));
                if let Some(target) = target {
                    cost.add(self.count(target, value, depth)?);
                }
            }
            ("pattern", Value::String(pattern)) => {
                if let Some(text) = value.text() {
                    self.matched(pattern, text, cost);
                }
            }
            ("enum", Value::Array(values)) => {
                cost.steps = cost.steps.saturating_add((values.len() / LOOKED_AT) as u64);
            }
            ("uniqueItems", Value::Bool(true)) => {
                let items = value.array().map_or(0, Vec::len);
                cost.steps = cost.steps.saturating_add(items as u64);
            }
            (name, Value::Array(parts)) if IN_PLACE.contains(&name) => {
                for part in parts {
                    cost.add(self.count(part, value, depth)?);
                }
            }
            ("dependentSchemas" | "dependencies", Value::Object(parts)) => {
                for part in parts.values() {
                    cost.add(self.count(part, value, depth)?);
                }
            }
            (name, part) if IN_PLACE.contains(&name) => {
                cost.add(self.count(part, value, depth)?);
            }
            _ => {
                if let Some(values) = value.object() {
                    self.in_object(name, sub, values, depth, cost)?;
                } else if let Some(values) = value.array() {
                    self.in_array(name, sub, values, depth, cost)?;
                }
            }
        }
        Ok(())
    }

    fn in_object(
        &mut self,
        name: &str,
        sub: &'a Value,
        values: &'a Map<String, Value>,
        depth: u32,
        cost: &mut ValidationCost,
    ) -> Result<(), TooMuch> {
        match (name, sub) {
            ("properties", Value::Object(parts)) => {
                for (name, part) in parts {
                    if let Some(value) = values.get(name) {
                        cost.add(self.count(part, SchemaInstance::Value(value), depth)?);
                    }
                }
            }
            ("patternProperties", Value::Object(parts)) => {
                for (pattern, part) in parts {
                    for name in values.keys() {
                        self.matched(pattern, name, cost);
                    }
                    self.each(part, values.values().map(SchemaInstance::Value), depth, cost)?;
                }
            }
            ("additionalProperties" | "unevaluatedProperties", part) => {
                self.each(part, values.values().map(SchemaInstance::Value), depth, cost)?;
            }
            ("propertyNames", part) => {
                self.each(part, values.keys().map(SchemaInstance::Name), depth, cost)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn in_array(
        &mut self,
        name: &str,
        sub: &'a Value,
        values: &'a [Value],
        depth: u32,
        cost: &mut ValidationCost,
    ) -> Result<(), TooMuch> {
        match (name, sub) {
            ("items" | "prefixItems", Value::Array(parts)) => {
                for (part, value) in parts.iter().zip(values) {
                    cost.add(self.count(part, SchemaInstance::Value(value), depth)?);
                }
            }
            ("items" | "additionalItems" | "contains" | "unevaluatedItems", part) => {
                self.each(part, values.iter().map(SchemaInstance::Value), depth, cost)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds the cost of matching a pattern.
    fn matched(&self, pattern: &str, text: &str, cost: &mut ValidationCost) {
        let steps = pattern_steps(self.patterns.get(pattern).copied(), text.len());
        cost.steps = cost.steps.saturating_add(steps as u64);
    }

    /// Adds the cost of a part that applies to several values.
    fn each(
        &mut self,
        part: &'a Value,
        values: impl IntoIterator<Item = SchemaInstance<'a>>,
        depth: u32,
        cost: &mut ValidationCost,
    ) -> Result<(), TooMuch> {
        for value in values {
            cost.add(self.count(part, value, depth)?);
            if cost.steps > self.most {
                return Err(TooMuch);
            }
        }
        Ok(())
    }
}
