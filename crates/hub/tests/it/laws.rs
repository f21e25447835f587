//! Laws of schemas, with schemas made by chance. A fuzz target checks the same.

mod schema;

use proptest::prelude::*;
use proptest::sample::select;

const KEYWORDS: [&str; 22] = [
    "type",
    "properties",
    "items",
    "anyOf",
    "allOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "enum",
    "const",
    "pattern",
    "required",
    "$ref",
    "$defs",
    "$id",
    "$anchor",
    "dependentSchemas",
    "additionalProperties",
    "minimum",
    "format",
];

const WORDS: [&str; 15] = [
    "\"object\"",
    "\"string\"",
    "\"a\"",
    "\"#\"",
    "\"#/$defs/a\"",
    "\"#/properties/a\"",
    "\"#a\"",
    "\"https://x.example/s\"",
    "\"^(a+)+$\"",
    "\"(?=a)\"",
    "\"(\"",
    "0",
    "-1.5",
    "true",
    "null",
];

fn json() -> impl Strategy<Value = String> {
    let leaf = select(&WORDS[..]).prop_map(str::to_owned);
    leaf.prop_recursive(5, 40, 4, |inner| {
        let key = prop_oneof![4 => select(&KEYWORDS[..]), 1 => Just("a")];
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|list| format!("[{}]", list.join(","))),
            3 => prop::collection::vec((key, inner), 0..4).prop_map(|members| {
                let members: Vec<String> =
                    members.iter().map(|(key, value)| format!("{key:?}:{value}")).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_schema_is_refused_or_checks(schema in json(), arguments in json()) {
        schema::check(format!("{schema}\0{arguments}").as_bytes());
    }
}

#[test]
fn naughty_strings_stand_anywhere_in_a_schema() {
    for text in testkit::fixtures::naughty_strings() {
        let text = serde_json::to_string(&text).unwrap();
        let schema = format!(
            r#"{{"title":{text},"properties":{{{text}:{{"type":"string","pattern":{text}}}}},"required":[{text}]}}"#
        );
        for arguments in [format!("{{{text}:{text}}}"), text.clone()] {
            schema::check(format!("{schema}\0{arguments}").as_bytes());
        }
        schema::check(format!(r#"{{"$ref":{text}}}"#).as_bytes());
    }
}
