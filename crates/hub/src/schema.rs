//! Arguments checked against a tool's schema before they leave, within bounds.

mod work;

use std::collections::HashMap;
use std::sync::Arc;

use consort_core::Json;
use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use work::Work;

/// Bytes of a schema that is checked at all.
const MOST_BYTES: usize = 64 << 10;

/// How deep a schema may nest.
const MOST_DEPTH: usize = 64;

/// References that may lead from one to the next.
const MOST_CHAIN: usize = 100;

/// Subschemas, counting each as often as it is referred to: what a hostile schema multiplies.
const MOST_SUBSCHEMAS: usize = 10_000;

/// Problems told at once: enough to repair a call, not to flood a model.
const MOST_PROBLEMS: usize = 8;

/// Schemas kept ready.
const MOST_CHECKERS: usize = 4096;

/// A schema ready to check with.
#[derive(Debug)]
pub(crate) struct Checker {
    validator: Validator,
    /// The schema, if what it costs depends on the value.
    varying: Option<Value>,
}

/// Why a schema cannot be used for checking. The tool can still be called.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its arguments cannot be checked here: {0}")]
pub(crate) struct Unusable(String);

impl Checker {
    /// Reads a schema. It may refer to its own parts and to nothing else.
    pub(crate) fn new(schema: &Json) -> Result<Self, Unusable> {
        if schema.as_bytes().len() > MOST_BYTES {
            return Err(Unusable(format!("its schema is larger than {MOST_BYTES} bytes")));
        }
        let schema: Value = schema.read().map_err(|error| Unusable(error.to_string()))?;
        let mut measure = Measure::new(&schema);
        measure.walk(&schema, 0)?;
        let varies = measure.spread(&schema, 0).is_none();
        let validator = jsonschema::options()
            // Linear time, whatever the pattern; look-around is refused.
            .with_pattern_options(PatternOptions::regex())
            .should_validate_formats(false)
            .build(&schema)
            .map_err(|error| Unusable(error.to_string()))?;
        Ok(Self { validator, varying: varies.then_some(schema) })
    }

    /// What is wrong with the arguments, each with its place, in words a model can act on.
    pub(crate) fn check(&self, arguments: &Json) -> Result<(), Vec<String>> {
        let value: Value = match arguments.read() {
            Ok(value) => value,
            Err(error) => return Err(vec![error.to_string()]),
        };
        // Nobody is kept from a call by a schema that cannot be followed; the server checks as well.
        if self.varying.as_ref().is_some_and(|schema| Work::bounded(schema, &value).is_err()) {
            return Ok(());
        }
        let mut problems: Vec<String> = self
            .validator
            .iter_errors(&value)
            .take(MOST_PROBLEMS)
            .map(|error| {
                let place = error.instance_path().to_string();
                let place = if place.is_empty() { "/".to_owned() } else { place };
                format!("at `{place}`: {error}")
            })
            .collect();
        problems.sort();
        problems.dedup();
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }
}

/// Whether arguments can be checked against a schema here, and if not, why.
pub fn check_schema(schema: &Json) -> Result<(), String> {
    Checker::new(schema).map(|_| ()).map_err(|error| error.to_string())
}

/// What is wrong with a value by a schema, each with its place.
pub fn check_value(schema: &Json, value: &Json) -> Result<(), Vec<String>> {
    Checker::new(schema).map_err(|error| vec![error.to_string()])?.check(value)
}

/// The schemas in use, each read once.
#[derive(Debug, Default)]
pub(crate) struct Checkers(HashMap<Json, Result<Arc<Checker>, Unusable>>);

impl Checkers {
    /// The checker for a schema.
    pub(crate) fn get(&mut self, schema: &Json) -> Result<Arc<Checker>, Unusable> {
        if let Some(checker) = self.0.get(schema) {
            return checker.clone();
        }
        // Schemas of servers long gone are forgotten together.
        if self.0.len() == MOST_CHECKERS {
            self.0.clear();
        }
        let checker = Checker::new(schema).map(Arc::new);
        self.0.insert(schema.detached(), checker.clone());
        checker
    }
}

/// Measures a schema as a validator would walk it.
struct Measure<'a> {
    root: &'a Value,
    /// The keyword that gives a part an address.
    address: &'static str,
    /// What each part costs for one value, with everything that applies to the same value; none while it
    /// is being found out.
    costs: HashMap<*const Value, Option<usize>>,
    /// How many ways lead on from each part, none while they are being counted.
    ways: HashMap<*const Value, Option<usize>>,
    total: usize,
}

/// The keywords whose schemas apply to the same value, and so multiply.
const IN_PLACE: [&str; 9] =
    ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"];

/// The keywords whose values are no schemas.
const PLAIN: [&str; 4] = ["const", "enum", "default", "examples"];

/// The keywords that refer to a schema.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

impl<'a> Measure<'a> {
    fn new(root: &'a Value) -> Self {
        let draft = root.get("$schema").and_then(Value::as_str).unwrap_or_default();
        let address = if draft.contains("draft-04") { "id" } else { "$id" };
        Self { root, address, costs: HashMap::new(), ways: HashMap::new(), total: 0 }
    }

    /// Visits every part once and adds up what they cost.
    fn walk(&mut self, part: &'a Value, depth: usize) -> Result<(), Unusable> {
        if depth > MOST_DEPTH {
            return Err(Unusable(format!("its schema nests deeper than {MOST_DEPTH} levels")));
        }
        self.total = self.total.saturating_add(self.cost(part, 0)?);
        if self.total > MOST_SUBSCHEMAS {
            return Err(Unusable(format!(
                "its schema has more than {MOST_SUBSCHEMAS} parts, counting references"
            )));
        }
        // References within it would mean its own parts, not those of the whole.
        if depth > 0 && part.get(self.address).is_some_and(Value::is_string) {
            return Err(Unusable("a part of its schema has an address of its own".to_owned()));
        }
        match part {
            Value::Object(members) => members
                .iter()
                .filter(|(name, _)| !PLAIN.contains(&name.as_str()))
                .try_for_each(|(_, value)| self.walk(value, depth + 1)),
            Value::Array(items) => items.iter().try_for_each(|item| self.walk(item, depth + 1)),
            _ => Ok(()),
        }
    }

    /// What a part costs for one value.
    fn cost(&mut self, part: &'a Value, depth: usize) -> Result<usize, Unusable> {
        let Value::Object(members) = part else { return Ok(0) };
        let place: *const Value = part;
        if let Some(&cost) = self.costs.get(&place) {
            let circle = || Unusable("it refers to itself for the same value".to_owned());
            return cost.ok_or_else(circle);
        }
        if depth > MOST_CHAIN {
            return Err(Unusable("its references go too deep".to_owned()));
        }
        self.costs.insert(place, None);
        let mut cost = 1usize;
        for (name, value) in members {
            let more = match (name.as_str(), value) {
                (name, Value::String(reference)) if REFERENCES.contains(&name) => {
                    let target = self.follow(reference)?;
                    self.cost(target, depth + 1)?
                }
                (name, Value::Array(items)) if IN_PLACE.contains(&name) => {
                    items.iter().try_fold(0usize, |sum, item| {
                        Ok(sum.saturating_add(self.cost(item, depth + 1)?))
                    })?
                }
                ("dependentSchemas" | "dependencies", Value::Object(schemas)) => {
                    schemas.values().try_fold(0usize, |sum, item| {
                        Ok(sum.saturating_add(self.cost(item, depth + 1)?))
                    })?
                }
                (name, value) if IN_PLACE.contains(&name) => self.cost(value, depth + 1)?,
                _ => 0,
            };
            cost = cost.saturating_add(more);
        }
        // To know what was evaluated, a validator goes over all of it again.
        if members.keys().any(|name| name.starts_with("unevaluated")) {
            cost = cost.saturating_mul(2);
        }
        self.costs.insert(place, Some(cost));
        Ok(cost)
    }

    /// In how many ways a value and what is in it may be gone through; none if there is no end to them, or
    /// too many. Then it depends on the value how much there is to do.
    fn spread(&mut self, part: &'a Value, depth: usize) -> Option<usize> {
        if depth > MOST_CHAIN {
            return None;
        }
        let place: *const Value = part;
        if let Some(ways) = self.ways.get(&place) {
            return *ways;
        }
        self.ways.insert(place, None);
        let mut ways = 1usize;
        match part {
            Value::Object(members) => {
                for (name, value) in
                    members.iter().filter(|(name, _)| !PLAIN.contains(&name.as_str()))
                {
                    ways += match value {
                        Value::String(reference) if REFERENCES.contains(&name.as_str()) => {
                            self.spread(self.follow(reference).ok()?, depth + 1)?
                        }
                        // They count where they are referred to.
                        _ if matches!(name.as_str(), "$defs" | "definitions") => 0,
                        value => self.spread(value, depth + 1)?,
                    };
                }
            }
            Value::Array(items) => {
                for item in items {
                    ways += self.spread(item, depth + 1)?;
                }
            }
            _ => return Some(0),
        }
        self.ways.insert(place, Some(ways));
        (ways <= MOST_SUBSCHEMAS).then_some(ways)
    }

    /// The part a reference means, which must be one of this schema.
    fn follow(&self, reference: &str) -> Result<&'a Value, Unusable> {
        // Neither names (`#name`) nor escapes, which could lead where we do not count.
        let path = reference.strip_prefix('#').filter(|path| !path.contains('%'));
        path.and_then(|path| self.root.pointer(path)).ok_or_else(|| {
            let shown: String = reference.chars().take(80).collect();
            Unusable(format!("it refers to `{shown}`, which is no path to a part of it"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn checker(schema: Value) -> Result<Checker, Unusable> {
        Checker::new(&schema.into())
    }

    fn problems(schema: Value, arguments: Value) -> Vec<String> {
        checker(schema).unwrap().check(&arguments.into()).err().unwrap_or_default()
    }

    #[test]
    fn a_problem_names_its_place_and_what_would_be_right() {
        let schema = json!({
            "type": "object",
            "properties": {
                "city": { "type": "string", "minLength": 2 },
                "days": { "type": "integer", "maximum": 7 },
                "units": { "enum": ["c", "f"] },
                "deep": { "type": "object", "properties": { "n": { "type": "number" } } },
            },
            "required": ["city"],
            "additionalProperties": false,
        });
        assert_eq!(
            problems(schema.clone(), json!({ "city": "Paris", "days": 3 })),
            Vec::<String>::new()
        );
        assert_eq!(
            problems(schema, json!({ "days": "3", "units": "k", "deep": { "n": [] }, "x": 1 })),
            [
                "at `/`: \"city\" is a required property",
                "at `/`: Additional properties are not allowed ('x' was unexpected)",
                "at `/days`: \"3\" is not of type \"integer\"",
                "at `/deep/n`: [] is not of type \"number\"",
                "at `/units`: \"k\" is not one of \"c\" or \"f\"",
            ]
        );
    }

    #[test]
    fn a_reference_leads_nowhere_but_into_the_schema() {
        for reference in
            ["http://127.0.0.1:1/x.json", "file:///etc/passwd", "other.json#/a", "//host/x"]
        {
            let error =
                checker(json!({ "properties": { "a": { "$ref": reference } } })).unwrap_err();
            assert!(error.to_string().contains("it refers to"), "{error}");
        }
        let local = json!({ "$defs": { "n": { "type": "integer" } }, "properties": { "a": { "$ref": "#/$defs/n" } } });
        assert_eq!(problems(local, json!({ "a": "x" })).len(), 1);
    }

    #[test]
    fn a_bomb_does_not_go_off() {
        let mut definitions = serde_json::Map::new();
        definitions.insert("d0".to_owned(), json!({ "type": "integer" }));
        for level in 1..=26 {
            let below = json!({ "$ref": format!("#/$defs/d{}", level - 1) });
            definitions.insert(format!("d{level}"), json!({ "anyOf": [below, below] }));
        }
        let bomb = json!({ "$defs": definitions, "$ref": "#/$defs/d26" });
        let begun = std::time::Instant::now();
        assert!(checker(bomb).unwrap_err().to_string().contains("more than 10000 parts"));
        assert!(begun.elapsed().as_secs() < 2);

        let mut nested = json!({});
        for _ in 0..100 {
            nested = json!({ "not": nested });
        }
        assert!(checker(nested).unwrap_err().to_string().contains("nests deeper"));
        assert!(checker(json!({ "description": "x".repeat(MOST_BYTES) })).is_err());
        assert!(checker(json!({ "pattern": "^(?=a)b" })).is_err(), "look-around is not linear");
        assert!(checker(json!({ "pattern": "^(a|a?)+\\1c$" })).is_err(), "nor are back-references");
    }

    #[test]
    fn a_recursive_schema_is_fine() {
        let tree = json!({
            "type": "object",
            "properties": { "left": { "$ref": "#" }, "value": { "type": "integer" } },
        });
        assert!(problems(tree.clone(), json!({ "left": { "left": { "value": 1 } } })).is_empty());
        assert_eq!(problems(tree, json!({ "left": { "left": { "value": "x" } } })).len(), 1);
        let branching = json!({
            "$defs": { "node": { "type": "object", "properties": {
                "left": { "$ref": "#/$defs/node" }, "right": { "$ref": "#/$defs/node" },
                "or": { "type": "array", "items": { "$ref": "#/$defs/node" } },
            }}},
            "$ref": "#/$defs/node",
        });
        assert_eq!(problems(branching, json!({ "or": [{ "left": 1 }] })).len(), 1);
    }
}
