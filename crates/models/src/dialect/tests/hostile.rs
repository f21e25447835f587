//! Hostile schemas.

use super::super::*;
use super::taken;

#[test]
fn hostile_schemas_end_in_something_that_is_taken() {
    let definitions = |count: usize, body: &dyn Fn(usize) -> Value| -> Value {
        let all: Map<String, Value> = (0..count).map(|n| (format!("d{n}"), body(n))).collect();
        json!({ "type": "object", "$defs": all, "properties": { "a": { "$ref": "#/$defs/d0" } } })
    };
    let twice = |n: usize| {
        let next = json!({ "$ref": format!("#/$defs/d{}", (n + 1) % 1_500) });
        json!({ "type": "object", "description": "x".repeat(50), "properties": { "l": next, "r": next } })
    };
    let deep = (0..55).fold(json!({}), |inner, _| json!({ "anyOf": [inner, { "type": "null" }] }));
    let [many, more]: [Vec<String>; 2] =
        ["a", "b"].map(|letter| (0..20_000).map(|n| format!("{letter} {n}")).collect());
    let alternatives: Vec<Value> =
        (0..8_000).map(|n| json!({ "type": "string", "title": n.to_string() })).collect();
    let mut text = r#"{"allOf":["#.repeat(50);
    text.push_str(r##"{"$ref":"#"}"##);
    text.push_str(&"]}".repeat(50));
    for hostile in [
        json!({ "$ref": "#" }),
        json!({ "allOf": [{ "$ref": "#" }, { "$ref": "#" }] }),
        json!({ "anyOf": [{ "$ref": "#" }, { "$ref": "#" }, { "oneOf": [{ "$ref": "#" }] }] }),
        json!({ "type": "object", "properties": { "a": { "$ref": "#" }, "b": { "$ref": "#/properties/b" } } }),
        json!({ "type": "object", "properties": { "a": deep } }),
        deep.clone(),
        serde_json::from_str(&text).unwrap(),
        definitions(1_500, &twice),
        definitions(10_000, &|n| json!({ "$ref": format!("#/$defs/d{}", (n + 1) % 10_000) })),
        definitions(
            1_500,
            &|n| json!({ "allOf": [{ "$ref": format!("#/$defs/d{}", n * 2 % 1_500) }, { "$ref": "#" }] }),
        ),
        json!({ "type": "object", "properties": { "x": "y".repeat(LARGEST) } }),
        json!({ "type": "object", "properties": { "x".repeat(500_000): { "$ref": "#", "y".repeat(1_000): 1 } } }),
        json!({ "type": "object", "required": many, "allOf": [{ "required": more }, { "$ref": "#" }] }),
        json!({ "type": "object", "properties": { "a": { "anyOf": alternatives } } }),
        json!([]),
        json!(false),
        json!("object"),
    ] {
        for (dialect, form) in [
            (ToolDialect::OpenAiChat, GeminiSchemaForm::OpenApi),
            (ToolDialect::Anthropic, GeminiSchemaForm::OpenApi),
            (ToolDialect::Gemini, GeminiSchemaForm::OpenApi),
        ] {
            if let Err(why) = taken(&hostile, dialect, form) {
                panic!("{}", &why[..why.floor_char_boundary(4_000)]);
            }
        }
    }
}
