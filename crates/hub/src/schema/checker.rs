//! Validation of a value against one schema, compiled after its cost is counted.

use std::collections::HashMap;

use consort_core::Json;
use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use super::measure::SchemaMeasure;
use super::work::ValidationWork;
use super::{SchemaLimits, UnusableSchema};

/// Bytes of the compiled program of one pattern, regardless of the counted states.
const PROGRAM_BYTES: usize = 4 << 20;

/// Bytes of the lazily built automaton of one pattern; beyond it, matching is slower, not larger.
const AUTOMATON_BYTES: usize = 32 << 10;

/// Bytes of memory that a state of a pattern takes, measured: program, reverse program and caches.
const STATE_BYTES: usize = 400;

/// Bytes of memory that one part of a schema takes in a validator, measured.
const PART_BYTES: usize = 1 << 10;

/// Steps that a validation may take on the thread that serves the call: a few milliseconds at most.
const QUICK: usize = 20_000;

/// A compiled schema.
#[derive(Debug)]
pub(super) struct SchemaChecker {
    validator: Validator,
    schema: Value,
    /// States of each pattern.
    patterns: HashMap<String, usize>,
    /// Maximum steps for each byte of a value; `None` if that depends on the value.
    ways: Option<usize>,
    /// Bytes of memory, estimated.
    weight: usize,
    /// Steps that a check may take.
    steps: u64,
    /// Problems reported at once.
    problems: usize,
}

impl SchemaChecker {
    /// Compiles a schema, after its cost is counted. It may refer to its own parts only.
    pub(super) fn new(schema: &Json, limits: &SchemaLimits) -> Result<Self, UnusableSchema> {
        let bytes = schema.as_bytes().len();
        if bytes > limits.bytes {
            return Err(UnusableSchema(format!(
                "the schema is larger than {} bytes",
                limits.bytes
            )));
        }
        let schema: Value = schema.read().map_err(|error| UnusableSchema(error.to_string()))?;
        let mut measure = SchemaMeasure::new(&schema, limits);
        measure.walk()?;
        let ways = measure.spread();
        let (patterns, parts) = (measure.patterns, measure.parts);
        let validator = jsonschema::options()
            // Linear time, whatever the pattern; look-around is refused.
            .with_pattern_options(
                PatternOptions::regex().size_limit(PROGRAM_BYTES).dfa_size_limit(AUTOMATON_BYTES),
            )
            .should_validate_formats(false)
            .build(&schema)
            .map_err(|error| UnusableSchema(error.to_string()))?;
        let states: usize = patterns.values().sum();
        let weight = bytes * 16
            + parts * PART_BYTES
            + states * STATE_BYTES
            + patterns.len() * 2 * AUTOMATON_BYTES;
        let (steps, problems) = (limits.steps, limits.problems);
        Ok(Self { validator, schema, patterns, ways, weight, steps, problems })
    }

    /// Bytes of memory, estimated.
    pub(super) fn weight(&self) -> usize {
        self.weight
    }

    /// Returns true if any value of so many bytes is validated in few steps.
    pub(super) fn is_quick(&self, bytes: usize) -> bool {
        self.ways.is_some_and(|ways| ways.saturating_mul(bytes) <= QUICK)
    }

    /// Validates arguments. Returns the problems, each with its JSON Pointer, in terms that a model can act on.
    pub(super) fn check(&self, arguments: &Json) -> Result<(), Vec<String>> {
        let value: Value = match arguments.read() {
            Ok(value) => value,
            Err(error) => return Err(vec![error.to_string()]),
        };
        // Nobody is kept from a call by a schema that cannot be followed; the server checks as well.
        if !self.is_quick(arguments.as_bytes().len())
            && ValidationWork::bounded(&self.schema, &self.patterns, &value, self.steps).is_err()
        {
            return Ok(());
        }
        let mut problems: Vec<String> = self
            .validator
            .iter_errors(&value)
            .take(self.problems)
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn checker(schema: Value) -> Result<SchemaChecker, UnusableSchema> {
        SchemaChecker::new(&schema.into(), &SchemaLimits::default())
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
            assert!(error.to_string().contains("does not point into the schema"), "{error}");
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
        assert!(checker(bomb).unwrap_err().to_string().contains("more than 10000 subschemas"));
        assert!(begun.elapsed().as_secs() < 2);

        let mut nested = json!({});
        for _ in 0..100 {
            nested = json!({ "not": nested });
        }
        assert!(checker(nested).unwrap_err().to_string().contains("nested deeper"));
        assert!(checker(json!({ "description": "x".repeat(64 << 10) })).is_err());
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
