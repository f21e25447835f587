//! Projections, checked against the providers' documentation.

use consort_core::{Json, Tool};

use super::*;

mod hostile;
mod laws;
mod rules;

const FORMS: [GeminiSchemaForm; 2] = [GeminiSchemaForm::OpenApi, GeminiSchemaForm::JsonSchema];

fn tool(schema: &Value) -> Tool {
    Tool::new("do_it", "Does it.", &Json::from(schema.clone()))
}

fn with(gemini: GeminiSchemaForm) -> DialectOptions {
    DialectOptions { gemini, ..DialectOptions::default() }
}

/// Returns the schema that the provider receives, and the losses.
fn schema(dialect: ToolDialect, schema: &Value) -> (Value, Vec<String>) {
    let ProjectedTool { tool, losses } = project(&tool(schema), dialect, DialectOptions::default());
    let losses = losses.iter().map(|loss| format!("{} {loss}", loss.kind)).collect();
    let function = if dialect == ToolDialect::OpenAiChat { &tool["function"] } else { &tool };
    let key = if dialect == ToolDialect::Anthropic { "input_schema" } else { "parameters" };
    (function.get(key).cloned().unwrap_or_default(), losses)
}

/// A schema in a provider's form, which it must take.
fn taken(
    schema: &Value,
    dialect: ToolDialect,
    form: GeminiSchemaForm,
) -> Result<ProjectedTool, String> {
    let projection = project(&tool(schema), dialect, with(form));
    match rules::check(dialect, form, &projection.tool) {
        Ok(()) => Ok(projection),
        Err(why) => Err(format!("{dialect} refuses it: {why}\n{schema}\n{}", projection.tool)),
    }
}

/// Holds a schema to the laws in every dialect.
fn hold(schema: &Value) -> Result<(), String> {
    for dialect in ToolDialect::ALL {
        for form in FORMS {
            let ProjectedTool { tool: first, losses } = taken(schema, dialect, form)?;
            // What was cut where room ended may have more or less room the next time.
            if losses
                .iter()
                .any(|loss| loss.reason.contains("too large") || loss.reason.contains("first"))
            {
                continue;
            }
            let keys = ["parameters", "parametersJsonSchema", "input_schema"];
            let function = first.get("function").unwrap_or(&first);
            let again = keys.iter().find_map(|key| function.get(*key)).cloned();
            let again = again.unwrap_or_else(|| json!({ "type": "object" }));
            let ProjectedTool { tool, losses } = taken(&again, dialect, form)?;
            if tool != first || !losses.is_empty() {
                return Err(format!("{dialect} again: {losses:?}\n{schema}\n{first}\n{tool}"));
            }
        }
    }
    Ok(())
}

#[test]
fn a_dialect_is_read_as_it_is_written() {
    for dialect in ToolDialect::ALL {
        assert_eq!(dialect.to_string().parse(), Ok(dialect));
    }
    assert_eq!(
        "cohere".parse::<ToolDialect>().unwrap_err().to_string(),
        "unknown dialect `cohere`: expected `openai`, `openai-responses`, `anthropic` or `gemini`"
    );
}

#[test]
fn what_every_provider_takes_is_not_changed() {
    let plain = json!({
        "type": "object",
        "properties": {
            "city": { "type": "string", "description": "Where.", "minLength": 1 },
            "days": { "type": "integer", "minimum": 1, "maximum": 7, "default": 1 },
            "tags": { "type": "array", "items": { "type": "string", "enum": ["a", "b"] } },
        },
        "required": ["city"],
    });
    for dialect in ToolDialect::ALL {
        assert_eq!(schema(dialect, &plain), (plain.clone(), Vec::new()), "{dialect}");
    }
}

#[test]
fn each_dialect_has_its_form() {
    let plain = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    let form = |dialect| project(&tool(&plain), dialect, DialectOptions::default()).tool;
    let (name, description) = ("do_it", "Does it.");
    assert_eq!(
        form(ToolDialect::OpenAiChat),
        json!({ "type": "function", "function": { "name": name, "description": description, "parameters": plain } })
    );
    assert_eq!(
        form(ToolDialect::OpenAiResponses),
        json!({ "type": "function", "name": name, "description": description, "parameters": plain, "strict": false })
    );
    assert_eq!(
        form(ToolDialect::Anthropic),
        json!({ "name": name, "description": description, "input_schema": plain })
    );
    assert_eq!(
        form(ToolDialect::Gemini),
        json!({ "name": name, "description": description, "parameters": plain })
    );
    assert_eq!(
        project(&tool(&plain), ToolDialect::Gemini, with(GeminiSchemaForm::JsonSchema)).tool,
        json!({ "name": name, "description": description, "parametersJsonSchema": plain })
    );
    let nothing = project(
        &tool(&json!({ "type": "object" })),
        ToolDialect::Gemini,
        DialectOptions::default(),
    );
    assert_eq!(nothing.tool, json!({ "name": name, "description": description }));
}

#[test]
fn alternatives_at_the_root_become_one_object_that_tells_them() {
    let either = json!({
        "type": "object",
        "properties": { "project": { "type": "string" } },
        "required": ["project"],
        "anyOf": [
            { "properties": { "id": { "type": "integer" } }, "required": ["id"] },
            { "properties": { "id": { "type": "string" }, "path": { "type": "string" } }, "required": ["path"] },
        ],
    });
    let merged = json!({
        "type": "object",
        "description": "Required: `id`, or `path`.",
        "properties": {
            "project": { "type": "string" },
            "id": { "anyOf": [{ "type": "integer" }, { "type": "string" }] },
            "path": { "type": "string" },
        },
        "required": ["project"],
    });
    let lost = "widened `anyOf` of 2 merged: the combinations are lost: the provider requires a plain object at the root";
    for dialect in ToolDialect::ALL {
        assert_eq!(schema(dialect, &either), (merged.clone(), vec![lost.to_owned()]), "{dialect}");
    }
}

#[test]
fn all_of_several_at_the_root_is_merged_without_loss() {
    let both = json!({
        "$defs": { "Base": { "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] } },
        "allOf": [
            { "$ref": "#/$defs/Base" },
            { "properties": { "a": { "maxLength": 3 }, "b": { "type": "integer" } }, "required": ["b"] },
        ],
    });
    let (merged, losses) = schema(ToolDialect::Anthropic, &both);
    assert_eq!(
        merged["properties"],
        json!({ "a": { "allOf": [{ "type": "string" }, { "maxLength": 3 }] }, "b": { "type": "integer" } })
    );
    assert_eq!(merged["required"], json!(["a", "b"]));
    assert_eq!(
        losses,
        ["rewritten `allOf` merged: the provider requires a plain object at the root"]
    );
    let (merged, _) = schema(ToolDialect::Gemini, &both);
    assert_eq!(merged["properties"]["a"], json!({ "type": "string", "maxLength": 3 }));
}

#[test]
fn references_are_kept_where_they_are_taken_and_written_out_where_not() {
    let with_references = json!({
        "type": "object",
        "$defs": { "Node": { "type": "object", "properties": { "next": { "$ref": "#/$defs/Node" } } } },
        "properties": {
            "list": { "$ref": "#/$defs/Node", "description": "The list." },
            "out": { "$ref": "https://example.com/schema.json" },
            "gone": { "$ref": "#/$defs/Gone" },
        },
    });
    let (kept, losses) = schema(ToolDialect::OpenAiChat, &with_references);
    assert_eq!(kept["properties"]["list"], with_references["properties"]["list"]);
    assert_eq!(
        losses,
        [
            "cut /properties/gone: `$ref` omitted: unresolved reference",
            "cut /properties/out: `$ref` omitted: external references are not fetched",
        ]
    );
    let (inlined, losses) = schema(ToolDialect::Gemini, &with_references);
    assert_eq!(
        inlined["properties"]["list"],
        json!({ "type": "object", "description": "The list.", "properties": { "next": { "type": "object" } } })
    );
    assert!(losses.contains(
        &"cut /properties/list/properties/next: recursive `#/$defs/Node` written as any object: Gemini does not support references"
            .to_owned()
    ), "{losses:?}");
}

#[test]
fn gemini_gets_what_openapi_can_say() {
    let rich = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "maybe": { "anyOf": [{ "type": "string" }, { "type": "null" }], "description": "Maybe." },
            "either": { "type": ["string", "integer"], "description": "Either." },
            "fixed": { "const": "x" },
            "level": { "type": "integer", "enum": [1, 2], "description": "How much." },
            "above": { "type": "integer", "exclusiveMinimum": 0 },
            "link": { "type": "string", "format": "uri", "examples": ["a:b"] },
            "pair": { "type": "array", "items": [{ "type": "string" }, { "type": "number" }] },
            "any": {},
        },
        "required": ["maybe", "nowhere"],
    });
    let (written, losses) = schema(ToolDialect::Gemini, &rich);
    assert_eq!(
        written,
        json!({
            "type": "object",
            "properties": {
                "maybe": { "type": "string", "nullable": true, "description": "Maybe." },
                "either": { "anyOf": [
                    { "type": "string", "description": "Either." },
                    { "type": "integer", "description": "Either." },
                ] },
                "fixed": { "type": "string", "enum": ["x"] },
                "level": { "type": "integer", "description": "How much.\nOne of: 1, 2." },
                "above": { "type": "integer", "minimum": 1 },
                "link": { "type": "string", "description": "Examples: \"a:b\".\nFormat: uri." },
                "pair": { "type": "array", "items": { "anyOf": [{ "type": "string" }, { "type": "number" }] } },
                "any": { "anyOf": [
                    { "type": "string" },
                    { "type": "number" },
                    { "type": "boolean" },
                    { "type": "object" },
                    { "type": "array", "items": { "type": "string" } },
                ] },
            },
            "required": ["maybe"],
        })
    );
    insta::assert_snapshot!(losses.join("\n"), @r#"
    rewritten /properties/pair: array in `items` written as `prefixItems`: syntax of an older JSON Schema draft
    widened `additionalProperties` omitted: not supported by Gemini
    rewritten /properties/above: `exclusiveMinimum` written as `minimum`: not supported by Gemini
    rewritten /properties/any: any value written as any of five types: Gemini accepts one type
    rewritten /properties/either: several types written as `anyOf`: Gemini accepts one type
    rewritten /properties/fixed: `const` written as `enum`: not supported by Gemini
    widened /properties/level: `enum` moved to `description`: Gemini accepts only strings
    rewritten /properties/link: `examples` moved to `description`: not supported by Gemini
    widened /properties/link: `format` "uri" moved to `description`: not supported by Gemini
    rewritten /properties/maybe: `null` among alternatives written as `nullable`: not supported by Gemini
    widened /properties/pair: `prefixItems` written as `items` of any of them: not supported by Gemini
    widened names in `required` omitted: no such property
    "#);
}

#[test]
fn strict_is_given_only_where_it_was_asked_for_and_can_be() {
    let closed = json!({
        "type": "object", "properties": { "a": { "type": ["string", "null"] } }, "required": ["a"], "additionalProperties": false,
    });
    let wanted = DialectOptions { strict: StrictMode::Qualifying, ..DialectOptions::default() };
    let strict = |schema: &Value, dialect, options| {
        let ProjectedTool { tool, losses } = project(&tool(schema), dialect, options);
        let function = tool.get("function").unwrap_or(&tool);
        (function.get("strict").cloned(), losses.len())
    };
    assert_eq!(strict(&closed, ToolDialect::OpenAiChat, wanted), (Some(json!(true)), 0));
    assert_eq!(strict(&closed, ToolDialect::OpenAiResponses, wanted), (Some(json!(true)), 0));
    assert_eq!(strict(&closed, ToolDialect::OpenAiChat, DialectOptions::default()), (None, 0));
    assert_eq!(strict(&closed, ToolDialect::Anthropic, wanted), (None, 0));
    let open = json!({ "type": "object", "properties": {} });
    assert_eq!(strict(&open, ToolDialect::OpenAiChat, wanted), (None, 1));
    assert_eq!(strict(&open, ToolDialect::OpenAiResponses, wanted), (Some(json!(false)), 1));
}

#[test]
fn what_keeps_a_schema_from_strict_is_told() {
    let reasons = |schema: Value| match qualifies_for_strict(&schema) {
        Ok(()) => String::new(),
        Err(reasons) => {
            reasons.iter().fold(String::new(), |text, reason| format!("{text}{reason}\n"))
        }
    };
    insta::assert_snapshot!(reasons(json!({
        "type": "object",
        "properties": {
            "a": { "type": "string", "minLength": 1, "format": "uri" },
            "b": { "type": "array" },
            "c": { "$ref": "#/$defs/C", "description": "C." },
            "d": {},
        },
        "required": ["a", "b", "c"],
    })), @r#"
    `additionalProperties` must be `false`
    /properties/a: `minLength` is not supported
    /properties/a: `format` "uri" is not supported
    /properties/b: `items` is required
    /properties/c: `$ref` must refer to a subschema of this schema
    /properties/c: `$ref` must be the only keyword
    /properties/d: every property must be required
    /properties/d: `type` is required
    "#);
    let many: Map<String, Value> =
        (0..5_001).map(|n| (n.to_string(), json!({ "type": "null" }))).collect();
    let names: Vec<&String> = many.keys().collect();
    let many = json!({ "type": "object", "properties": many, "required": names, "additionalProperties": false });
    assert_eq!(reasons(many), "5001 properties: at most 5000 are accepted\n");
    let deep = (0..10)
        .fold(json!({ "type": "null" }), |inner, _| json!({ "type": "array", "items": inner }));
    let deep = json!({ "type": "object", "properties": { "a": deep }, "required": ["a"], "additionalProperties": false });
    assert_eq!(
        reasons(deep),
        format!("/properties/a{}: more than 10 levels\n", "/items".repeat(9))
    );
    let long = json!({ "type": "string", "enum": vec!["x".repeat(100); 251] });
    let long = json!({ "type": "object", "properties": { "a": long }, "required": ["a"], "additionalProperties": false });
    assert_eq!(
        reasons(long),
        "/properties/a: an `enum` of more than 250 values may have at most 15000 bytes\n"
    );
}

fn optioned(options: &Value) -> Tool {
    let definition = json!({
        "name": "find", "inputSchema": { "type": "object", "properties": {}, "additionalProperties": false },
        "_meta": { PROVIDER: options },
    });
    Tool::from_object(Json::from(definition).to_object().unwrap())
}

#[test]
fn options_for_a_provider_are_merged_into_its_form_only() {
    let tool = optioned(&json!({
        "openai": { "function": { "strict": true, "x": { "a": 1 }, "name": "other" } },
        "google": { "grounding": { "on": true } },
        "anthropic": { "cache_control": { "type": "ephemeral" }, "strict": true, "input_schema": {} },
    }));
    let form = |dialect| {
        let ProjectedTool { tool, losses } = project(&tool, dialect, DialectOptions::default());
        (tool, losses.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    };
    let parameters = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    assert_eq!(
        form(ToolDialect::OpenAiChat),
        (
            json!({ "type": "function", "function": { "name": "find", "parameters": parameters, "strict": true, "x": { "a": 1 } } }),
            "option `name` omitted: already set in the definition".to_owned()
        )
    );
    assert_eq!(
        form(ToolDialect::OpenAiResponses).0,
        json!({ "type": "function", "name": "find", "parameters": parameters, "strict": true, "x": { "a": 1 } })
    );
    assert_eq!(
        form(ToolDialect::Gemini).0,
        json!({ "name": "find", "description": "find", "grounding": { "on": true } })
    );
    assert_eq!(
        form(ToolDialect::Anthropic).0,
        json!({ "name": "find", "input_schema": parameters, "cache_control": { "type": "ephemeral" }, "strict": true })
    );
    let large = project(
        &optioned(&json!({ "openai": "x".repeat(20_000) })),
        ToolDialect::OpenAiChat,
        DialectOptions::default(),
    );
    assert_eq!(
        large.losses[0].to_string(),
        "options for `openai` omitted: they must be an object of at most 16 KiB"
    );
}
