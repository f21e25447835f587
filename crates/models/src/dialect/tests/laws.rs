//! Properties that hold for every schema, whatever its form.

use proptest::prelude::*;

use super::super::*;
use super::{hold, tool};

/// A value of any kind, mostly small.
fn values() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (-3..9_i64).prop_map(Value::from),
        Just(json!(1.5)),
        "[a-c]{0,2}".prop_map(Value::from),
        prop::collection::vec("[a-c]{0,1}", 0..3).prop_map(Value::from),
        Just(json!({ "type": "string" })),
    ]
}

/// A schema of mostly valid keywords, with an invalid one now and then.
fn schemas() -> impl Strategy<Value = Value> {
    let types = prop::sample::select(vec![
        json!("string"),
        json!("number"),
        json!("integer"),
        json!("boolean"),
        json!("object"),
        json!("array"),
        json!("null"),
        json!(["string", "null"]),
        json!(["object", "array"]),
        json!(["null"]),
        json!("any"),
        json!(["integer", "number", "null", "integer"]),
    ]);
    let references = prop::sample::select(vec![
        "#",
        "#/$defs/a",
        "#/$defs/b",
        "#/properties/a",
        "#x",
        "http://x",
        "#/anyOf/0",
    ]);
    let leaf = prop_oneof![
        4 => types.clone().prop_map(|kind| json!({ "type": kind })),
        1 => references.prop_map(|leads| json!({ "$ref": leads })),
        1 => values(),
    ];
    leaf.prop_recursive(4, 40, 4, move |inner| {
        let named = prop::collection::btree_map("[a-c]|é |a/b", inner.clone(), 0..3);
        let list = prop::collection::vec(inner.clone(), 0..3);
        let schema_keys =
            prop::sample::select(vec!["items", "additionalProperties", "not", "if", "contains"]);
        let list_keys =
            prop::sample::select(vec!["anyOf", "oneOf", "allOf", "prefixItems", "items"]);
        let named_keys = prop::sample::select(vec![
            "properties",
            "properties",
            "properties",
            "$defs",
            "patternProperties",
        ]);
        let value_keys = prop::sample::select(vec![
            "enum",
            "const",
            "required",
            "format",
            "minimum",
            "exclusiveMinimum",
            "minItems",
            "maxLength",
            "title",
            "description",
            "default",
            "nullable",
            "uniqueItems",
            "$id",
            "$anchor",
            "x-thing",
            "multipleOf",
            "examples",
            "propertyOrdering",
            "example",
            "dependentRequired",
            "pattern",
        ]);
        let member = prop_oneof![
            3 => (named_keys, named).prop_map(|(key, value)| (key, json!(value))),
            2 => (list_keys, list).prop_map(|(key, value)| (key, json!(value))),
            1 => (schema_keys, inner).prop_map(|(key, value)| (key, value)),
            3 => (value_keys, values()),
            2 => types.clone().prop_map(|kind| ("type", kind)),
        ];
        prop::collection::vec(member, 0..6)
            .prop_map(|members| {
                members
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect::<Map<_, _>>()
            })
            .prop_map(Value::Object)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn every_projection_is_taken_and_projecting_it_again_changes_nothing(schema in schemas()) {
        prop_assert_eq!(hold(&schema), Ok(()));
    }

    #[test]
    fn every_object_is_taken_too(
        properties in prop::collection::btree_map("[a-c]", schemas(), 0..4),
        definitions in prop::collection::btree_map("[a-c]", schemas(), 0..4),
        alternatives in prop::collection::vec(schemas(), 0..3),
        combination in prop::sample::select(vec!["anyOf", "oneOf", "allOf", "x"]),
    ) {
        let schema = json!({
            "type": "object", "properties": properties, "$defs": definitions, combination: alternatives,
            "required": ["a"], "additionalProperties": false,
        });
        prop_assert_eq!(hold(&schema), Ok(()));
    }

    #[test]
    fn what_qualifies_for_strict_is_sent_as_it_is(schema in schemas()) {
        if qualifies_for_strict(&schema).is_ok() {
            let options = DialectOptions { strict: StrictMode::Qualifying, ..DialectOptions::default() };
            let projection = project(&tool(&schema), ToolDialect::OpenAiChat, options);
            prop_assert_eq!(&projection.tool["function"]["parameters"], &schema);
            prop_assert_eq!(projection.losses, Vec::new());
        }
    }
}
