//! Schemas made to cost more than they look, with the arguments that make them.

use std::time::{Duration, Instant};

use consort_core::Json;
use consort_hub::{SchemaLimits, check_schema, check_value};
use serde_json::{Map, Value, json};

/// Far more than any check takes, and far less than any bomb.
const SOON: Duration = Duration::from_secs(5);

/// So many levels, each of which is two of the one below.
fn doubling(levels: usize, level: impl Fn(usize) -> Value, bottom: Value) -> Value {
    let mut definitions = Map::new();
    definitions.insert("d0".to_owned(), bottom);
    for number in 1..=levels {
        definitions.insert(format!("d{number}"), level(number));
    }
    json!({ "$defs": definitions, "$ref": format!("#/$defs/d{levels}") })
}

fn nested(depth: usize) -> Value {
    (0..depth).fold(json!("x"), |inner, _| json!([inner]))
}

/// Checks on a thread with the stack that threads have, and says whether it was soon over.
fn defused(schema: Value, arguments: Value) {
    let begun = Instant::now();
    let thread = std::thread::spawn(move || {
        let _ = check_value(&Json::from(schema), &Json::from(arguments), &SchemaLimits::default());
    });
    while !thread.is_finished() {
        assert!(begun.elapsed() < SOON, "it goes off");
        std::thread::sleep(Duration::from_millis(1));
    }
    thread.join().unwrap();
}

#[test]
fn references_by_anchor_are_no_way_round_the_count() {
    let below = |number: usize| json!({ "$ref": format!("#a{}", number - 1) });
    let level = |number: usize| json!({ "$anchor": format!("a{number}"), "anyOf": [below(number), below(number)] });
    defused(doubling(30, level, json!({ "$anchor": "a0", "type": "integer" })), json!("x"));
}

#[test]
fn references_with_escapes_are_no_way_round_the_count() {
    let below = |number: usize| json!({ "$ref": format!("#/%24defs/d{}", number - 1) });
    let level = |number: usize| json!({ "anyOf": [below(number), below(number)] });
    defused(doubling(30, level, json!({ "type": "integer" })), json!("x"));
}

#[test]
fn a_part_with_an_address_of_its_own_is_no_way_round_the_count() {
    let below = |number: usize| json!({ "$ref": format!("#/$defs/d{}", number - 1) });
    let level = |number: usize| json!({ "anyOf": [below(number), below(number)] });
    let inner = doubling(30, level, json!({ "type": "integer" }));
    let mut part = inner.as_object().unwrap().clone();
    part.insert("$id".to_owned(), json!("https://x.example/part"));
    defused(json!({ "$defs": { "part": part }, "$ref": "#/$defs/part" }), json!("x"));
}

#[test]
fn old_keywords_are_no_way_round_the_count() {
    let below = |number: usize| json!({ "$ref": format!("#/$defs/d{}", number - 1) });
    let level =
        |number: usize| json!({ "dependencies": { "a": below(number), "b": below(number) } });
    let mut schema = doubling(30, level, json!({ "required": ["c"] }));
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    defused(
        json!({ "$schema": "http://json-schema.org/draft-07/schema#", "definitions": {}, "$defs": schema["$defs"], "allOf": [{ "$ref": "#/$defs/d30" }] }),
        json!({ "a": 1, "b": 2 }),
    );
}

#[test]
fn what_is_not_evaluated_elsewhere_is_no_way_round_the_count() {
    let below = |number: usize| json!({ "$ref": format!("#/$defs/d{}", number - 1) });
    let level = |number: usize| json!({ "allOf": [below(number)], "unevaluatedProperties": false });
    defused(doubling(40, level, json!({ "type": "object" })), json!({ "a": 1 }));
}

#[test]
fn levels_of_the_value_multiply_as_well() {
    let below = |number: usize| json!({ "items": { "$ref": format!("#/$defs/d{}", number - 1) } });
    let level = |number: usize| json!({ "anyOf": [below(number), below(number)] });
    defused(doubling(30, level, json!({ "type": "integer" })), nested(30));
}

#[test]
fn a_circle_through_a_value_multiplies_as_deep_as_the_value_is() {
    let again = json!({ "items": { "$ref": "#" } });
    let circle = json!({ "type": "array", "anyOf": [again, again] });
    defused(circle, nested(100));
}

#[test]
fn a_long_way_to_every_level_of_a_value_does_not_exhaust_the_stack() {
    let mut schema = doubling(
        130,
        |number| json!({ "allOf": [{ "$ref": format!("#/$defs/d{}", number - 1) }] }),
        json!({ "items": { "$ref": "#/$defs/d130" } }),
    );
    schema["title"] = json!("deep");
    defused(schema, nested(120));
}

#[test]
fn recursive_and_large_schemas_that_people_have_are_checked() {
    let tree = json!({
        "$defs": { "node": { "type": "object", "required": ["name"], "properties": {
            "name": { "type": "string" },
            "children": { "type": "array", "items": { "$ref": "#/$defs/node" } },
        }}},
        "properties": { "root": { "$ref": "#/$defs/node" } },
    });
    let mut value = json!({ "name": 5 });
    for _ in 0..20 {
        value = json!({ "name": "n", "children": [{ "name": "leaf" }, value] });
    }
    let problems =
        check_value(&tree.into(), &json!({ "root": value }).into(), &SchemaLimits::default())
            .unwrap_err();
    assert_eq!(problems.len(), 1, "{problems:?}");
}

/// A schema whose members each have a pattern.
fn patterned(patterns: impl IntoIterator<Item = String>) -> Value {
    let member = |(at, pattern)| (format!("m{at}"), json!({ "pattern": pattern }));
    let members: Map<String, Value> = patterns.into_iter().enumerate().map(member).collect();
    json!({ "type": "object", "properties": members })
}

/// Why a schema is not compiled.
fn refused(schema: Value) -> String {
    check_schema(&Json::from(schema), &SchemaLimits::default()).unwrap_err()
}

#[test]
fn patterns_are_refused_by_their_states_before_they_are_compiled() {
    let many = |pattern: &'static str| (0..1_000).map(move |n| format!("{pattern}{n}"));
    let error = refused(patterned(many(r"\p{L}{90}")));
    assert!(error.contains("has more than 25000 states"), "{error}");
    let error = refused(patterned(many(r"\p{L}{20}")));
    assert!(error.contains("the regular expressions have more than 50000 states"), "{error}");
    let error = refused(patterned(many("a")));
    assert!(error.contains("more than 256 regular expressions"), "{error}");
    for pattern in [
        r"(\w{50}){50}".to_owned(),
        "((((a{9999}){9999}){9999}){9999}){9999}".to_owned(),
        (0..2_000).map(|n| format!(r"\p{{L}}{n}|")).collect::<Vec<_>>().concat(),
        r"\S".repeat(10_000),
        r"\cA".repeat(10_000),
        r"(?i)\p{L}".repeat(2_000),
    ] {
        let error = refused(json!({ "pattern": pattern }));
        assert!(error.contains("has more than 25000 states"), "{error}");
    }
}

#[test]
fn patterns_are_counted_wherever_a_validator_finds_them() {
    let bomb = json!({ "pattern": r"\p{L}{90}" });
    for schema in [
        json!({ "patternProperties": { r"\p{L}{90}": true } }),
        json!({ "propertyNames": bomb }),
        json!({ "properties": { "default": bomb } }),
        json!({ "$defs": { "examples": bomb }, "$ref": "#/$defs/examples" }),
        json!({ "examples": [bomb], "properties": { "a": { "$ref": "#/examples/0" } } }),
        json!({ "x": { "const": { "y": bomb } }, "items": { "$ref": "#/x/const/y" } }),
        json!({ "dependentSchemas": { "enum": { "not": bomb } } }),
    ] {
        let error = refused(schema.clone());
        assert!(error.contains("has more than 25000 states"), "{schema}: {error}");
    }
    let data = json!({ "default": bomb, "examples": [bomb], "properties": { "pattern": true } });
    assert_eq!(check_schema(&data.into(), &SchemaLimits::default()), Ok(()));
}

#[test]
fn a_long_string_is_not_matched_against_a_large_pattern() {
    let pattern = r"^(\p{L}{20}x?|y{1,2000})*$";
    let schema = json!({ "properties": {
        "text": { "pattern": pattern, "maxLength": 3 },
        "more": { "propertyNames": { "pattern": pattern } },
        "keys": { "patternProperties": { (pattern): true } },
    }});
    let check = |value| {
        check_value(&Json::from(schema.clone()), &Json::from(value), &SchemaLimits::default())
    };
    assert_eq!(check(json!({ "text": "12" })).unwrap_err().len(), 1);
    let long = "é".repeat(1 << 20);
    for value in [
        json!({ "text": long }),
        json!({ "more": { (&long): 1 } }),
        json!({ "keys": { (&long): 1 } }),
    ] {
        assert_eq!(check(value), Ok(()), "it is left to the server");
    }
}

#[test]
fn a_long_array_is_not_checked_in_ten_thousand_ways() {
    let parts: Vec<Value> = (0..2_000).map(|n| json!({ "items": { "minimum": n } })).collect();
    let schema = json!({ "properties": { "list": { "allOf": parts } } });
    let list: Vec<u32> = (0..200_000).collect();
    defused(schema, json!({ "list": list }));
}
