//! `OpenAPI` description of the admin API, generated from the routes.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::route::ApiRoute;

/// All routes, as `OpenAPI` 3.1.
pub(crate) fn document(routes: &[ApiRoute]) -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    let mut generator = settings.into_generator();
    let refused = generator.subschema_for::<crate::admin_error::ErrorBody>();
    let mut paths: Map<String, Value> = Map::new();
    for route in routes {
        let (status, says) = (route.description.says)(&mut generator);
        let mut described = json!({
            "summary": route.description.about,
            "responses": {
                (status.to_string()): says,
                "default": {
                    "description": "Error.",
                    "content": { "application/json": { "schema": refused } },
                },
            },
        });
        let mut parameters = in_path(route);
        if let Some(takes) = (route.description.takes)(&mut generator) {
            if route.method == http::Method::GET {
                parameters.extend(in_query(takes.as_value(), generator.definitions()));
            } else {
                described["requestBody"] = json!({
                    "required": true,
                    "content": { "application/json": { "schema": takes } },
                });
            }
        }
        if !parameters.is_empty() {
            described["parameters"] = parameters.into();
        }
        match route.needs {
            Some(rights) => described["x-rights"] = rights.as_str().into(),
            None => described["security"] = json!([]),
        }
        let method = route.method.as_str().to_ascii_lowercase();
        paths.entry(route.path).or_insert_with(|| json!({}))[method] = described;
    }
    let mut schemas = generator.take_definitions(true);
    schemas.values_mut().for_each(absent_not_null);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Consort's admin API",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The API of the web console. Callers need the rights in `x-rights`, or more: `admin`, `operator` \
                or `owner`. They send the owner's token or an administrator's API key, or have a session of the console.",
        },
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "schemas": schemas,
        },
    })
}

/// Removes `null` from the types of optional members: they are left out and never `null`.
fn absent_not_null(schema: &mut Value) {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    if let Some(members) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        let optional = members.iter_mut().filter(|(name, _)| !required.iter().any(|r| r == *name));
        for (_, member) in optional {
            without_null(member);
        }
    }
    match schema {
        Value::Object(members) => members.values_mut().for_each(absent_not_null),
        Value::Array(items) => items.iter_mut().for_each(absent_not_null),
        _ => {}
    }
}

/// Removes `null` from the types of a schema.
fn without_null(schema: &mut Value) {
    if let Some(types) = schema.get_mut("type").and_then(Value::as_array_mut) {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            schema["type"] = only.clone();
        }
    }
    if let Some(kinds) = schema.get_mut("anyOf").and_then(Value::as_array_mut) {
        kinds.retain(|kind| kind["type"] != "null");
        if let [only] = kinds.as_mut_slice() {
            let only = only.take();
            let members = schema.as_object_mut().expect("it has a member");
            members.remove("anyOf");
            members.extend(only.as_object().cloned().unwrap_or_default());
        }
    }
}

/// The path parameters of a route.
fn in_path(route: &ApiRoute) -> Vec<Value> {
    let varying =
        route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let text = |name: &str| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } });
    varying.map(text).collect()
}

/// The query parameters, from the members of a schema.
fn in_query(schema: &Value, definitions: &Map<String, Value>) -> Vec<Value> {
    let name = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next());
    let schema = name.and_then(|name| definitions.get(name)).unwrap_or(schema);
    let required = |name: &str| {
        schema["required"].as_array().is_some_and(|names| names.iter().any(|known| known == name))
    };
    let members = schema["properties"].as_object().into_iter().flatten();
    let parameter = |(name, about): (&String, &Value)| json!({ "name": name, "in": "query", "required": required(name), "schema": about });
    members.map(parameter).collect()
}
