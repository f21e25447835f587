//! How much work a schema makes of a value, counted before it is done.

use std::collections::HashMap;

use serde_json::Value;

use super::IN_PLACE;

/// Steps that a check may take: a tenth of a second, about.
const MOST: u64 = 200_000;

/// How deep a check may go, values and references together: what the stack of a thread bears.
const DEEPEST: u32 = 400;

/// A check that would take too long, or go too deep.
#[derive(Debug)]
pub(super) struct TooMuch;

/// Counts what a validator would do. Each part is looked at once for each value it applies to, however many
/// ways lead there, so that counting is quick where checking would not be.
pub(super) struct Work<'a> {
    root: &'a Value,
    counted: HashMap<(*const Value, *const Value), Cost>,
}

/// Steps, and how deep the longest way goes.
#[derive(Clone, Copy)]
struct Cost {
    steps: u64,
    height: u32,
}

impl Cost {
    fn add(&mut self, other: Self) {
        self.steps = self.steps.saturating_add(other.steps);
        self.height = self.height.max(other.height + 1);
    }
}

/// Applied to the name of a member.
const NAME: &Value = &Value::String(String::new());

impl<'a> Work<'a> {
    /// Whether a value can be checked against a schema with little work.
    pub(super) fn bounded(root: &'a Value, value: &'a Value) -> Result<(), TooMuch> {
        let mut work = Self { root, counted: HashMap::new() };
        work.count(root, value, 0).map(|_| ())
    }

    fn count(&mut self, part: &'a Value, value: &'a Value, depth: u32) -> Result<Cost, TooMuch> {
        let Value::Object(members) = part else { return Ok(Cost { steps: 1, height: 0 }) };
        let key: (*const Value, *const Value) = (part, value);
        let known = self.counted.get(&key).copied();
        if depth + known.map_or(0, |cost| cost.height) > DEEPEST {
            return Err(TooMuch);
        }
        if let Some(cost) = known {
            return Ok(cost);
        }
        let mut cost = Cost { steps: 1, height: 0 };
        for (name, sub) in members {
            self.member(name, sub, value, depth + 1, &mut cost)?;
        }
        // To know what was evaluated, a validator goes over all of it again.
        if members.contains_key("unevaluatedProperties") || members.contains_key("unevaluatedItems")
        {
            cost.steps = cost.steps.saturating_mul(2);
        }
        if cost.steps > MOST || self.counted.len() as u64 > MOST {
            return Err(TooMuch);
        }
        self.counted.insert(key, cost);
        Ok(cost)
    }

    /// Adds what a keyword costs for a value.
    fn member(
        &mut self,
        name: &str,
        sub: &'a Value,
        value: &'a Value,
        depth: u32,
        cost: &mut Cost,
    ) -> Result<(), TooMuch> {
        match (name, sub, value) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference), _) => {
                let target = reference.strip_prefix('#').and_then(|path| self.root.pointer(path));
                if let Some(target) = target {
                    cost.add(self.count(target, value, depth)?);
                }
            }
            ("properties", Value::Object(parts), Value::Object(values)) => {
                for (name, part) in parts {
                    if let Some(value) = values.get(name) {
                        cost.add(self.count(part, value, depth)?);
                    }
                }
            }
            ("patternProperties", Value::Object(parts), Value::Object(values)) => {
                for part in parts.values() {
                    self.each(part, values.values(), depth, cost)?;
                }
            }
            ("additionalProperties" | "unevaluatedProperties", part, Value::Object(values)) => {
                self.each(part, values.values(), depth, cost)?;
            }
            ("propertyNames", part, Value::Object(values)) => {
                self.each(part, values.values().map(|_| NAME), depth, cost)?;
            }
            ("items" | "prefixItems", Value::Array(parts), Value::Array(values)) => {
                for (part, value) in parts.iter().zip(values) {
                    cost.add(self.count(part, value, depth)?);
                }
            }
            (
                "items" | "additionalItems" | "contains" | "unevaluatedItems",
                part,
                Value::Array(values),
            ) => self.each(part, values, depth, cost)?,
            (name, Value::Array(parts), _) if IN_PLACE.contains(&name) => {
                for part in parts {
                    cost.add(self.count(part, value, depth)?);
                }
            }
            ("dependentSchemas" | "dependencies", Value::Object(parts), _) => {
                for part in parts.values() {
                    cost.add(self.count(part, value, depth)?);
                }
            }
            (name, part, _) if IN_PLACE.contains(&name) => {
                cost.add(self.count(part, value, depth)?);
            }
            _ => {}
        }
        Ok(())
    }

    /// A part that applies to several values.
    fn each(
        &mut self,
        part: &'a Value,
        values: impl IntoIterator<Item = &'a Value>,
        depth: u32,
        cost: &mut Cost,
    ) -> Result<(), TooMuch> {
        for value in values {
            cost.add(self.count(part, value, depth)?);
            if cost.steps > MOST {
                return Err(TooMuch);
            }
        }
        Ok(())
    }
}
