//! The JSON Schema of a config, from the declarations of its keys.

use std::borrow::Cow;
use std::collections::BTreeMap;

use consort_models::ProviderTimeouts;
use consort_shape::policy::CallerSpec;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::duration::{ConfigDuration, LongDuration};
use crate::limits::{LimitSpec, LimitUnit, LimitsConfig, limits};
use crate::options::ConsortOptions;
use crate::options::ceilings::CeilingsConfig;
use crate::server::keys::{AUTH, OAUTH, SERVER, ServerKey, timeouts};

/// Keys that are comments of people, in formats without comments.
const NOTES: &str = "^([$_#]|//)";

/// The top-level keys of other formats, whose files may contain more than servers.
const OTHERS: [&str; 9] = [
    "mcpServers",
    "servers",
    "context_servers",
    "mcp_servers",
    "tool_service",
    "mcp.servers",
    "projects",
    "extensions",
    "amp.mcpServers",
];

/// Pattern of durations: seconds, or a number with its unit.
const TIME: &str = r"^\s*[0-9]*\.?[0-9]+\s*(ms|s|m|h|d)?\s*$";

/// Returns the JSON Schema (2020-12) of a config in TOML or JSON.
///
/// ```
/// let schema = consort_config::config_schema();
/// assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
/// assert_eq!(schema["$defs"]["Limits"]["properties"]["page_items"]["default"], 1000);
/// ```
pub fn config_schema() -> Value {
    let schema = include_str!("../../../docs/config.schema.json");
    serde_json::from_str(schema).expect("a test writes it")
}

/// Generates the JSON Schema of a config. A test writes it to `docs/config.schema.json`, so that the program holds the
/// text and not the code that makes it.
#[doc(hidden)]
pub fn generate_config_schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let consort = generator.subschema_for::<ConsortOptions>().to_value();
    let callers = generator.subschema_for::<BTreeMap<String, CallerSpec>>().to_value();
    let roles = generator.subschema_for::<BTreeMap<String, Vec<String>>>().to_value();
    let period = generator.subschema_for::<ConfigDuration>().to_value();
    let mut definitions = generator.take_definitions(true);
    // Written beside `policy`, kept within it.
    let mut callers = callers;
    callers["description"] = json!("Properties of callers, by name.");
    property(&mut definitions, "ConsortOptions", "callers", callers);
    let mut roles = roles;
    roles["description"] =
        json!("Roles that rules refer to as `role:NAME`, each with its callers.");
    property(&mut definitions, "ConsortOptions", "roles", roles);
    let include = json!({
        "description": "Files to include: paths, or patterns such as `conf.d/*.toml`.",
        "type": "array",
        "items": { "type": "string" },
    });
    property(&mut definitions, "ConsortOptions", "include", include);
    require(&mut definitions, "AgentConfig", "model");
    require(&mut definitions, "RuleSpec", "then");
    require_all(&mut definitions, "TlsConfig", &["certificate", "key"]);
    require_all(&mut definitions, "IssuerConfig", &["issuer", "client_id"]);
    require(&mut definitions, "RegisteredClientConfig", "redirect_uris");
    for (name, definition) in &mut definitions {
        if name != "Limits" {
            strip_defaults(definition);
        }
        close(definition);
    }
    defaults(&mut definitions);
    for limit in limits() {
        if let Some(key) = limit.serve_key {
            property(&mut definitions, "ServeConfig", key, limit_schema(limit));
        }
    }
    definitions.insert("Server".to_owned(), table(&SERVER));
    definitions.insert("AuthConfig".to_owned(), table(AUTH));
    definitions.insert("OAuthConfig".to_owned(), table(OAUTH));
    definitions.insert("ServerTimeouts".to_owned(), timeout(&period));
    definitions.insert("ClientServer".to_owned(), client_server());
    let servers = |name: &str| json!({ "$ref": format!("#/$defs/{name}") });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Consort config",
        "description": "MCP servers and settings of Consort, in TOML or JSON.",
        "type": "object",
        "properties": {
            "$schema": { "type": "string", "description": "The JSON Schema that editors validate this file \
                with." },
            "mcp": {
                "description": "MCP servers, by name.",
                "type": "object",
            },
            "mcpServers": {
                "description": "MCP servers, by name, in the format of MCP clients.",
                "type": "object",
                "additionalProperties": servers("ClientServer"),
            },
            "inputs": {
                "description": "Prompts for values that `${input:id}` refers to.",
                "type": "array",
                "items": { "type": "object", "required": ["id"] },
            },
            "consort": consort,
        },
        // A file of ours holds keys of ours only.
        "if": { "not": { "anyOf": OTHERS.map(|key| json!({ "required": [key] })) } },
        "then": {
            "properties": { "mcp": { "additionalProperties": servers("Server") } },
            "propertyNames": {
                "anyOf": [{ "enum": ["mcp", "consort", "inputs"] }, { "pattern": "^\\$" }],
            },
        },
        "$defs": definitions,
    })
}

/// Adds a key to a table.
fn property(definitions: &mut Map<String, Value>, table: &str, key: &str, schema: Value) {
    definitions[table]["properties"][key] = schema;
}

fn require(definitions: &mut Map<String, Value>, table: &str, key: &str) {
    definitions[table]["required"] = json!([key]);
}

fn require_all(definitions: &mut Map<String, Value>, table: &str, keys: &[&str]) {
    definitions[table]["required"] = json!(keys);
}

/// Removes the defaults of types, which differ from the effective ones.
fn strip_defaults(schema: &mut Value) {
    let Value::Object(members) = schema else { return };
    if let Some(Value::Object(properties)) = members.get_mut("properties") {
        for property in properties.values_mut() {
            if let Value::Object(property) = property {
                property.remove("default");
            }
        }
    }
}

/// Refuses unknown keys of a table, as the reader does. A table that serde reads accepts no comment keys.
fn close(schema: &mut Value) {
    let Value::Object(members) = schema else { return };
    if members.contains_key("properties") && !members.contains_key("additionalProperties") {
        members.insert("patternProperties".to_owned(), json!({ NOTES: true }));
        members.insert("additionalProperties".to_owned(), json!(false));
    }
}

/// Sets the effective defaults of keys.
fn defaults(definitions: &mut Map<String, Value>) {
    let (run, patience) = (consort_agent::RunLimits::default(), ProviderTimeouts::default());
    let silence = ConfigDuration::new(patience.idle).map(|period| period.to_string());
    let defaults = [
        ("ConsortOptions", "naming", json!("auto")),
        ("ConsortOptions", "exposure", json!("individual")),
        ("ConsortOptions", "validate", json!("warn")),
        ("AgentConfig", "max_turns", json!(run.turns)),
        ("AgentConfig", "max_calls", json!(run.calls)),
        ("AgentConfig", "summary_tokens", json!(consort_agent::AgentSettings::SUMMARY_TOKENS)),
        ("AgentConfig", "context_tries", json!(consort_agent::AgentSettings::CONTEXT_TRIES)),
        ("ProviderConfig", "silence", json!(silence.unwrap_or_default())),
        ("ProviderConfig", "tries", json!(patience.max_attempts)),
        ("ServeConfig", "metrics_by_tool", json!(false)),
        ("ServeConfig", "ledger_strict", json!(false)),
    ];
    for (table, key, default) in defaults {
        definitions[table]["properties"][key]["default"] = default;
    }
}

/// The schema of a table with these keys.
fn table(keys: &[ServerKey]) -> Value {
    let mut properties = Map::new();
    for key in keys {
        for name in std::iter::once(&key.name).chain(key.aliases) {
            let mut schema = key.takes.schema();
            schema["description"] = json!(sentence(key.says));
            if let Some(default) = key.absent.strip_prefix('`').and_then(|it| it.strip_suffix('`'))
            {
                let value = serde_json::from_str(default).unwrap_or_else(|_| json!(default));
                // `enabled` says the contrary of `disabled`.
                schema["default"] = if *name == "enabled" { json!(true) } else { value };
            }
            properties.insert((*name).to_owned(), schema);
        }
    }
    json!({
        "type": "object",
        "properties": properties,
        "patternProperties": { NOTES: true },
        "additionalProperties": false,
    })
}

/// A server as MCP clients describe it: their own keys are allowed.
fn client_server() -> Value {
    let mut server = table(&SERVER);
    server["description"] =
        json!("A server in the format of MCP clients; other keys of clients are allowed.");
    server["additionalProperties"] = json!(true);
    let texts = json!({ "type": "array", "items": { "type": "string" } });
    let properties = &mut server["properties"];
    // Some clients write a list of names, the client of an OAuth login, or milliseconds under these.
    for (key, schema) in [
        ("tools", json!([texts, { "type": "object" }])),
        ("auth", json!([{ "type": "object" }])),
        (
            "timeout",
            json!([{ "$ref": "#/$defs/ServerTimeouts" }, { "type": ["number", "string"] }]),
        ),
    ] {
        let about = properties[key]["description"].take();
        properties[key] = json!({ "description": about, "anyOf": schema });
    }
    server
}

fn timeout(period: &Value) -> Value {
    let mut properties = Map::new();
    for (key, default, says) in timeouts() {
        let mut schema = period.clone();
        schema["description"] = json!(sentence(says));
        schema["default"] = json!(default.to_string());
        properties.insert(key.to_owned(), schema);
    }
    json!({
        "type": "object",
        "properties": properties,
        "patternProperties": { NOTES: true },
        "additionalProperties": false,
    })
}

/// Formats a description as a sentence, without links.
fn sentence(says: &str) -> String {
    let (plain, _) = says.split_once(": [").unwrap_or((says, ""));
    let plain = plain.strip_suffix(": see below").unwrap_or(plain);
    let mut text = format!("{plain}.");
    text[..1].make_ascii_uppercase();
    text
}

impl JsonSchema for ConfigDuration {
    fn schema_name() -> Cow<'static, str> {
        "ConfigDuration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({
            "description": "A duration: seconds, or a number with `ms`, `s`, `m` or `h`; at most 24h.",
            "anyOf": [
                { "type": "number", "minimum": 0.001, "maximum": 86_400 },
                { "type": "string", "pattern": TIME },
            ],
        })
    }
}

impl JsonSchema for LongDuration {
    fn schema_name() -> Cow<'static, str> {
        "LongDuration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({
            "description": "A duration: seconds, or a number with `s`, `m`, `h` or `d`; at most 3650d.",
            "anyOf": [
                { "type": "number", "minimum": 1, "maximum": 315_360_000 },
                { "type": "string", "pattern": TIME },
            ],
        })
    }
}

impl JsonSchema for LimitsConfig {
    fn schema_name() -> Cow<'static, str> {
        "Limits".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let keys = limits().map(|limit| (limit.key.to_owned(), limit_schema(limit)));
        let mut properties: Map<String, Value> = keys.collect();
        let mut table = |key: &str, says: &str, mut schema: Value| {
            schema["description"] = json!(says);
            properties.insert(key.to_owned(), schema);
        };
        let of_one = generator.subschema_for::<CeilingsConfig>().to_value();
        table("per_user", "Ceilings of each user or other caller but the owner.", of_one);
        let named = generator.subschema_for::<BTreeMap<String, CeilingsConfig>>().to_value();
        table("roles", "Ceilings of each caller that has a role, by role.", named.clone());
        table("callers", "Ceilings of callers, by patterns as in rules.", named);
        schemars::json_schema!({
            "type": "object",
            "description": "Limits: sizes, counts and times.",
            "properties": properties,
        })
    }
}

/// The JSON Schema of a limit.
fn limit_schema(limit: &LimitSpec) -> Value {
    let range = |min: Value, max: Value, kind: &str| json!({ "type": kind, "minimum": min, "maximum": max });
    let integer = || range(json!(limit.min), json!(limit.max), "integer");
    #[expect(clippy::cast_precision_loss, reason = "limits are far below 2^52 milliseconds")]
    let seconds = |value: u64| json!(value as f64 / 1_000.0);
    let mut schema = match limit.unit {
        LimitUnit::Count => integer(),
        LimitUnit::Bytes => json!({ "anyOf": [
            integer(),
            { "type": "string", "pattern": "^[0-9]+ ?(KiB|MiB|GiB)?$" },
        ] }),
        LimitUnit::Time => json!({ "anyOf": [
            range(seconds(limit.min), seconds(limit.max), "number"),
            { "type": "string", "pattern": TIME },
        ] }),
    };
    schema["description"] = json!(format!(
        "{} Allowed: {}. When exceeded: {}.",
        limit.about,
        limit.format_range(),
        limit.reached
    ));
    if let Some(value) = limit.default() {
        schema["default"] = default_of(limit, value);
    }
    schema
}

fn default_of(limit: &LimitSpec, value: u64) -> Value {
    match limit.unit {
        LimitUnit::Time => json!(limit.format_value(value)),
        LimitUnit::Bytes | LimitUnit::Count => json!(value),
    }
}

#[cfg(test)]
mod reference;
