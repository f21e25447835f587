//! The reference of every key in `docs/config.md`, checked against the keys that are read.

mod limits;
mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use crate::server::keys::{AUTH, OAUTH, SERVER, ServerKey};
use crate::syntax::table_reader::requested;
use crate::{Config, LimitSpec, LimitUnit};
use tables::{FOREIGN, SAMPLE, SPECS, StructFields, TABLES};

/// One key: its name, type, default and description.
struct ReferenceRow {
    name: String,
    takes: String,
    absent: String,
    says: String,
}

/// The fields of a struct, parsed from its source.
fn fields(fields: &StructFields) -> Vec<ReferenceRow> {
    let begin = format!("pub struct {} {{\n", fields.structure);
    let (_, rest) = fields.source.split_once(&begin).expect("the struct is there");
    let (body, _) = rest.split_once("\n}").expect("and ends");
    let (mut keys, mut about, mut bare) = (Vec::new(), Vec::new(), false);
    for line in body.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("///") {
            about.push(text.trim());
        } else if line.starts_with("#[") {
            bare |= line.contains("one_or_more");
        } else if let Some((name, kind)) =
            line.strip_prefix("pub ").and_then(|line| line.split_once(": "))
        {
            let said = about.join(" ");
            about.clear();
            let mut key = described(fields, name, kind.trim_end_matches(','), &said);
            if std::mem::take(&mut bare) {
                key.takes.insert_str(0, "string or ");
            }
            keys.push(key);
        }
    }
    keys
}

/// A key, from the name, the type and the comment of a field.
fn described(fields: &StructFields, name: &str, kind: &str, said: &str) -> ReferenceRow {
    let inner =
        kind.strip_prefix("Option<").and_then(|kind| kind.strip_suffix('>')).unwrap_or(kind);
    let takes = match inner {
        "bool" => "boolean",
        "String" => "string",
        "Vec<String>" => "list of strings",
        "u32" | "u64" | "usize" => "integer",
        "f64" | "Number" => "number",
        "ConfigDuration" | "LongDuration" => "duration",
        "RecheckInterval" => "duration, or `off`",
        "CeilingRate" => "rate",
        "BTreeMap<String, Value>" => "table of values",
        "Value" => "any value",
        "Vec<Value>" => "list of values",
        "StringOrList" => "string or list of strings",
        "TextSpec" => "string, or `{ prefix, suffix }`",
        "ReasoningConfig" => {
            "`off`, `minimal`, `low`, `medium`, `high`, `max`, or a number of tokens"
        }
        "ExposureSpec" => "string, or the table below",
        "ExposureModeSpec" => "`individual`, `per-server`, `search`, `auto` or `agent`",
        "Vec<ConditionSpec>" => "list of conditions",
        "Box<ConditionSpec>" | "ConditionSpec" => "condition",
        other if other.starts_with("Vec<") => "list of tables",
        other if other.starts_with("BTreeMap<String, String>") => "table of strings",
        "ValidationMode" => "`off`, `warn` or `refuse`",
        _ => "table",
    };
    let said = said.trim_end_matches('.');
    let mut says = said.to_owned();
    if let Some(first) = says.get(..1) {
        says = format!("{}{}", first.to_lowercase(), &says[1..]);
    }
    if let Some(page) = page(fields.table, name) {
        write!(says, ": [{page}]({page})").expect("text takes text");
    }
    let absent = absent(fields, name, kind);
    ReferenceRow {
        name: name.to_owned(),
        takes: takes.to_owned(),
        absent,
        says: says.replace('|', "\\|"),
    }
}

/// Default of a key: from the values in force, or by its type.
fn absent(fields: &StructFields, name: &str, kind: &str) -> String {
    let constant = |name: &str| {
        let (_, rest) =
            fields.source.split_once(&format!("const {name}: usize = ")).expect("it is there");
        rest.split(';').next().unwrap_or_default().replace('_', ",")
    };
    let run = consort_agent::RunLimits::default();
    let patience = consort_models::ProviderTimeouts::default();
    match (fields.table, name) {
        ("consort.agents.NAME", "max_turns") => run.turns.to_string(),
        ("consort.agents.NAME", "max_calls") => run.calls.to_string(),
        ("consort.agents.NAME", "max_tokens" | "max_cost" | "max_time")
        | ("consort.serve", "ledger_days") => "no limit".to_owned(),
        ("consort.agents.NAME", "summary_tokens") => {
            consort_agent::AgentSettings::SUMMARY_TOKENS.to_string()
        }
        ("consort.agents.NAME", "context_tries") => {
            consort_agent::AgentSettings::CONTEXT_TRIES.to_string()
        }
        ("consort.transforms.result", "preview_bytes") => constant("PREVIEW"),
        ("consort.exposure", "budget") => constant("BUDGET"),
        ("consort.exposure", "names") => constant("NAMES"),
        ("consort.providers.NAME", "silence") => format!("{} s", patience.idle.as_secs()),
        ("consort.providers.NAME", "tries") => patience.max_attempts.to_string(),
        ("consort", "owner_access") => "`any`; with `issuers` `owner_listen`".to_owned(),
        ("consort", "owner_listen") => {
            "with `issuers` or `tls`, `owner.sock` in the state folder".to_owned()
        }
        ("consort", "authorization") => "off without `issuers`".to_owned(),
        ("consort.issuers.NAME", "username_claim") => "`email`".to_owned(),
        ("consort.issuers.NAME", "subject_claims") => "`[\"sub\"]`".to_owned(),
        ("consort.issuers.NAME", "recheck_interval") => "15m".to_owned(),
        ("consort.issuers.NAME", "max_stale") => "24h".to_owned(),
        ("consort.issuers.NAME", "scopes") => {
            "`profile`, `email`, and `offline_access` if the issuer has it".to_owned()
        }
        ("consort.authorization", "dynamic_registration") => "`true`".to_owned(),
        ("consort.authorization", "allowed_client_hosts") => "`[\"*\"]`".to_owned(),
        ("consort.authorization", "allowed_redirect_schemes") => "that of Cursor".to_owned(),
        ("consort.authorization", "allowed_redirect_uris") => "all sound ones".to_owned(),
        ("consort.authorization", "access_token_ttl") => "1h".to_owned(),
        ("consort.authorization", "refresh_token_ttl") => "30d".to_owned(),
        ("consort.authorization", "grant_ttl") => "90d".to_owned(),
        ("consort.authorization", "refresh_token_grace") => "2m".to_owned(),
        ("consort.authorization", "api_keys") => "`users`".to_owned(),
        ("consort.serve", "ledger_archive") => "not archived".to_owned(),
        ("consort.serve", "log_server_output") => "not logged".to_owned(),
        ("consort.serve", "proxy_headers") => "`x-forwarded`".to_owned(),
        ("consort.agents.NAME", "summarize")
        | ("consort.serve", "metrics_by_tool" | "ledger_strict") => "`false`".to_owned(),
        ("consort", "naming") => "`auto`".to_owned(),
        ("consort", "validate") => "`warn`".to_owned(),
        ("consort", "exposure") | ("consort.exposure", "mode") => "`individual`".to_owned(),
        ("consort", "builtin") => "`true`; for a gateway with a config `false`".to_owned(),
        ("consort.agents.NAME", "model")
        | ("[consort.policy.rules]", "then")
        | ("[consort.cache]" | "consort.tls", _)
        | ("consort.issuers.NAME", "issuer" | "client_id")
        | ("consort.authorization.clients.ID", "redirect_uris") => "required".to_owned(),
        _ if kind == "bool" => "`false`".to_owned(),
        _ => String::new(),
    }
}

/// The chapter about an option for all servers.
fn page(table: &str, name: &str) -> Option<&'static str> {
    Some(match (table, name) {
        ("consort", "naming" | "tokens" | "serve") => "serve.md",
        ("consort", "transforms" | "profiles" | "cache") => "shape.md",
        ("consort", "exposure") => "exposures.md",
        ("consort", "search") => "search.md",
        ("consort", "policy") => "policy.md",
        ("consort", "agents") => "agents.md",
        ("consort", "providers" | "models") => "providers.md",
        ("consort", "limits") => "limits.md",
        _ => return None,
    })
}

fn rows(keys: &[ServerKey]) -> Vec<ReferenceRow> {
    let key = |key: &ServerKey| ReferenceRow {
        name: key.name.to_owned(),
        takes: key.takes.in_words(),
        absent: key.absent.to_owned(),
        says: key.says.to_owned(),
    };
    keys.iter().map(key).collect()
}

fn timeouts() -> Vec<ReferenceRow> {
    let row = |(name, time, says): (&str, crate::ConfigDuration, &str)| ReferenceRow {
        name: name.to_owned(),
        takes: "duration".to_owned(),
        absent: format!("{} s", time.get().as_secs()),
        says: says.to_owned(),
    };
    crate::server::keys::timeouts().map(row).into()
}

/// A key of a limit, from its declaration.
fn limit_key(limit: &LimitSpec, name: &str) -> ReferenceRow {
    let unit = match limit.unit {
        LimitUnit::Time => "duration",
        LimitUnit::Bytes => "bytes",
        LimitUnit::Count => "integer",
    };
    let mut says = limit.about.trim_end_matches('.').to_owned();
    says[..1].make_ascii_lowercase();
    ReferenceRow {
        name: name.to_owned(),
        takes: format!("{unit}, {}", limit.format_range()),
        absent: limit
            .default()
            .map_or_else(|| "none".to_owned(), |value| limit.format_value(value)),
        says: says.replace('|', "\\|"),
    }
}

/// The tables in `[consort.limits]`.
const CEILING_TABLES: [(&str, &str, &str); 3] = [
    ("per_user", "table", "ceilings of each user or other caller but the owner"),
    ("roles", "table of tables", "ceilings of each caller that has a role, by role"),
    ("callers", "table of tables", "ceilings of callers, by patterns as in rules"),
];

fn tables() -> Vec<(String, Vec<ReferenceRow>)> {
    let mut tables = vec![
        ("mcp.NAME".to_owned(), rows(&SERVER)),
        ("mcp.NAME.auth".to_owned(), rows(AUTH)),
        ("mcp.NAME.oauth".to_owned(), rows(OAUTH)),
        ("mcp.NAME.timeout".to_owned(), timeouts()),
    ];
    let more = TABLES.iter().chain(SPECS);
    tables.extend(more.map(|table| (table.table.to_owned(), fields(table))));
    let mut limits: Vec<ReferenceRow> =
        crate::limits().map(|limit| limit_key(limit, limit.key)).collect();
    limits.extend(CEILING_TABLES.map(|(name, takes, says)| ReferenceRow {
        name: name.to_owned(),
        takes: takes.to_owned(),
        absent: "none".to_owned(),
        says: format!("{says}: [identity.md](identity.md#fair-shares)"),
    }));
    tables.push(("consort.limits".to_owned(), limits));
    let (_, serve) =
        tables.iter_mut().find(|(name, _)| name == "consort.serve").expect("it is listed");
    serve.extend(crate::limits().filter_map(|limit| Some(limit_key(limit, limit.serve_key?))));
    // Written beside `policy`, kept within it.
    let (_, policy) =
        tables.iter_mut().find(|(name, _)| name == "consort.policy").expect("it is listed");
    policy.retain(|key| key.name != "callers" && key.name != "roles" && key.name != "issuers");
    let (_, options) = tables.iter_mut().find(|(name, _)| name == "consort").expect("it is listed");
    options.push(ReferenceRow {
        name: "callers".to_owned(),
        takes: "table".to_owned(),
        absent: String::new(),
        says: "properties of callers, by name: [policy.md](policy.md)".to_owned(),
    });
    options.push(ReferenceRow {
        name: "roles".to_owned(),
        takes: "table of lists of strings".to_owned(),
        absent: String::new(),
        says: "callers of each role, `role:NAME` in rules: [policy.md](policy.md)".to_owned(),
    });
    tables
}

#[test]
fn the_reference_is_of_every_key() {
    let mut text = String::new();
    for (table, keys) in tables() {
        writeln!(
            text,
            "\n### `[{table}]`\n\n| key | type | default | description |\n|---|---|---|---|"
        )
        .expect("text takes text");
        for ReferenceRow { name, takes, absent, says } in keys {
            writeln!(text, "| `{name}` | {takes} | {absent} | {says} |").expect("text takes text");
        }
    }
    testkit::docs::hold("docs/config.md", "reference", &text);
}

#[test]
fn every_key_that_is_looked_for_is_in_the_reference_and_no_other() {
    requested::take();
    Config::parse(Path::new("consort.toml"), SAMPLE).expect("the sample is TOML");
    let asked = requested::take();
    let mut listed = BTreeSet::new();
    for (table, keys) in tables() {
        if SPECS.iter().any(|spec| spec.table == table) {
            continue;
        }
        listed.extend(keys.iter().map(|key| format!("{table}.{}", key.name)));
    }
    let aliases = |table: &'static str, keys: &'static [ServerKey]| {
        let names = keys.iter().flat_map(|key| key.aliases);
        names.map(move |name| format!("{table}{name}"))
    };
    let aliases: BTreeSet<String> = aliases("", &SERVER).chain(aliases("oauth.", OAUTH)).collect();
    let is_alias = |key: &&String| {
        let name = key.strip_prefix("mcp.NAME.").unwrap_or_default();
        aliases.contains(name) || FOREIGN.contains(&name)
    };
    // One tool has the same times as its server.
    let of_tool = |key: &&String| key.starts_with("mcp.NAME.tools.");
    let asked: BTreeSet<&String> =
        asked.iter().filter(|key| !is_alias(key) && !of_tool(key)).collect();
    let listed: BTreeSet<&String> = listed.iter().collect();
    assert_eq!(asked, listed);
}

#[test]
fn the_json_schema_has_every_key_of_the_reference_and_no_other() {
    let named = [
        ("mcp.NAME", "Server"),
        ("mcp.NAME.auth", "AuthConfig"),
        ("mcp.NAME.oauth", "OAuthConfig"),
        ("mcp.NAME.timeout", "ServerTimeouts"),
        ("consort.limits", "Limits"),
    ];
    let structures = TABLES.iter().chain(SPECS).map(|spec| (spec.table, spec.structure));
    let names: BTreeMap<&str, &str> = named.into_iter().chain(structures).collect();
    let schema = crate::generate_config_schema();
    for (table, keys) in tables() {
        let properties = schema["$defs"][names[&*table]]["properties"].as_object();
        let properties = properties.unwrap_or_else(|| panic!("no table {table}"));
        let aliases = SERVER.iter().chain(OAUTH).flat_map(|key| key.aliases);
        let aliases: BTreeSet<&str> = aliases.copied().collect();
        let in_schema: BTreeSet<&str> = properties.keys().map(String::as_str).collect();
        let listed: BTreeSet<&str> = keys.iter().map(|key| &*key.name).collect();
        let others: Vec<&&str> = in_schema.symmetric_difference(&listed).collect();
        let unknown = others
            .into_iter()
            .filter(|key| !aliases.contains(**key) && !matches!(**key, "callers" | "roles"));
        assert_eq!(unknown.collect::<Vec<_>>(), Vec::<&&str>::new(), "{table}");
    }
}

#[test]
fn every_key_that_serde_takes_is_in_the_reference_and_no_other() {
    use consort_shape::policy::{CallerSpec, ConditionSpec, PolicySpec, RuleSpec};
    use consort_shape::transform::{ArgumentSpec, HintSpec, ResultSpec, TransformSpec};

    /// Returns the keys that serde accepts.
    fn taken<T: serde::de::DeserializeOwned>() -> BTreeSet<String> {
        let odd = serde_json::json!({ "no such key": 1 });
        let Err(error) = serde_json::from_value::<T>(odd) else { panic!("it takes any key") };
        let told = error.to_string();
        let (_, names) = told.split_once("expected ").expect("it tells what it takes");
        names.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }
    let known = BTreeMap::from([
        ("TransformSpec", taken::<TransformSpec>()),
        ("HintSpec", taken::<HintSpec>()),
        ("ArgumentSpec", taken::<ArgumentSpec>()),
        ("ResultSpec", taken::<ResultSpec>()),
        ("ExposureTableSpec", taken::<consort_shape::exposure::ExposureTableSpec>()),
        ("SearchSpec", taken::<consort_shape::SearchSpec>()),
        ("PolicySpec", taken::<PolicySpec>()),
        ("RuleSpec", taken::<RuleSpec>()),
        ("ConditionSpec", taken::<ConditionSpec>()),
        ("CallerSpec", taken::<CallerSpec>()),
        ("CacheSpec", taken::<consort_shape::CacheSpec>()),
        ("TlsConfig", taken::<crate::TlsConfig>()),
        ("IssuerConfig", taken::<crate::IssuerConfig>()),
        ("AuthorizationConfig", taken::<crate::AuthorizationConfig>()),
        ("RegisteredClientConfig", taken::<crate::RegisteredClientConfig>()),
        ("ServiceConfig", taken::<crate::ServiceConfig>()),
        ("CeilingsConfig", taken::<crate::CeilingsConfig>()),
    ]);
    for spec in SPECS {
        let mut listed: BTreeSet<String> = fields(spec).into_iter().map(|key| key.name).collect();
        // Set by the reader.
        listed.remove("issuers");
        assert_eq!(known[spec.structure], listed, "{}", spec.table);
    }
}
