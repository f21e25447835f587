//! The reference of every key in `docs/config.md`, held to what is read.

mod tables;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use consort_wire::Times;

use super::Config;
use tables::{ALIASES, AUTH, FOREIGN, Fields, OAUTH, Row, SAMPLE, SERVER, SPECS, TABLES};

thread_local! {
    /// The keys that were looked for, each with those it is inside of.
    static ASKED: RefCell<BTreeSet<String>> = RefCell::default();
}

/// Notes that a key was looked for.
pub(super) fn note(of_server: bool, path: &str) {
    let table = if of_server { "mcp.NAME" } else { "consort" };
    ASKED.with_borrow_mut(|asked| asked.insert(format!("{table}.{path}")));
}

/// One key: its name, what it takes, what it is if absent, what it says.
struct Key {
    name: String,
    takes: String,
    absent: String,
    says: String,
}

/// The fields of a struct, as they are written.
fn fields(fields: &Fields) -> Vec<Key> {
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
                key.takes.insert_str(0, "text or ");
            }
            keys.push(key);
        }
    }
    keys
}

/// A key, from the name, the type and the words of a field.
fn described(fields: &Fields, name: &str, kind: &str, said: &str) -> Key {
    let inner =
        kind.strip_prefix("Option<").and_then(|kind| kind.strip_suffix('>')).unwrap_or(kind);
    let takes = match inner {
        "bool" => "true or false",
        "String" => "text",
        "Vec<String>" => "list of texts",
        "u32" | "u64" | "usize" => "whole number",
        "f64" | "Number" => "number",
        "Period" => "time",
        "Value" => "any value",
        "Vec<Value>" => "list of values",
        "Words" => "text or list of texts",
        "WordSpec" => "text, or `{ prefix, suffix }`",
        "Thinking" => "`off`, `minimal`, `low`, `medium`, `high`, `max`, or a number of tokens",
        "ExposureSpec" => "a word, or the table below",
        "ModeSpec" => "`individual`, `per-server`, `search`, `auto` or `agent`",
        "Vec<ConditionSpec>" => "list of conditions",
        "Box<ConditionSpec>" | "ConditionSpec" => "condition",
        other if other.starts_with("Vec<") => "list of tables",
        other if other.starts_with("BTreeMap<String, String>") => "table of texts",
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
    Key { name: name.to_owned(), takes: takes.to_owned(), absent, says: says.replace('|', "\\|") }
}

/// What holds where a key is not written: from the values in force, or by its type.
fn absent(fields: &Fields, name: &str, kind: &str) -> String {
    let constant = |name: &str| {
        let (_, rest) =
            fields.source.split_once(&format!("const {name}: usize = ")).expect("it is there");
        rest.split(';').next().unwrap_or_default().replace('_', ",")
    };
    let run = consort_agent::Limits::default();
    let schemas = consort_hub::SchemaLimits::default();
    let lists = consort_hub::ListLimits::default();
    let patience = consort_agent::provider::Patience::default();
    let gateway = consort_gateway::Limits::default();
    let times = Times::default();
    let keeper = consort_wire::KeeperTimes::default();
    let limits = super::options::LimitsConfig::default();
    let (reload, findings) = (limits.reload(), limits.findings());
    let span = |time: std::time::Duration| match time.subsec_millis() {
        0 => format!("{} s", time.as_secs()),
        _ => format!("{} ms", time.as_millis()),
    };
    let ledger = consort_gateway::ledger::LedgerSettings::default();
    let hours = |time: std::time::Duration| format!("{} h", time.as_secs() / 3600);
    match (fields.table, name) {
        ("consort.agents.NAME", "max_turns") => run.turns.to_string(),
        ("consort.agents.NAME", "max_calls") => run.calls.to_string(),
        ("consort.agents.NAME", "max_tokens" | "max_cost" | "max_time")
        | ("consort.serve", "ledger_days") => "no limit".to_owned(),
        ("consort.agents.NAME", "summary_tokens") => {
            consort_agent::Settings::SUMMARY_TOKENS.to_string()
        }
        ("consort.agents.NAME", "context_tries") => {
            consort_agent::Settings::CONTEXT_TRIES.to_string()
        }
        ("consort.transforms.result", "preview_bytes") => constant("PREVIEW"),
        ("consort.exposure", "budget") => constant("BUDGET"),
        ("consort.exposure", "names") => constant("NAMES"),
        ("consort.providers.NAME", "silence") => format!("{} s", patience.silence.as_secs()),
        ("consort.providers.NAME", "tries") => patience.tries.to_string(),
        ("consort.serve", "max_browser_sessions") => gateway.browser_sessions.to_string(),
        ("consort.serve", "browser_session_idle") => hours(gateway.browser_session_idle),
        ("consort.serve", "browser_session_lifetime") => hours(gateway.browser_session_lifetime),
        ("consort.serve", "linger") => format!("{} s", gateway.linger.as_secs()),
        ("consort.serve", "linger_bytes") => gateway.linger_bytes.to_string(),
        ("consort.serve", "metrics_connections") => gateway.metrics_connections.to_string(),
        ("consort.serve", "name_grace") => hours(gateway.name_grace),
        ("consort.serve", "lame_duck") => "5 s; none if only this machine reaches it".to_owned(),
        ("consort.serve", "ledger_bytes") => ledger.size.to_string(),
        ("consort.serve", "ledger_archive") => "they are not kept".to_owned(),
        ("consort.serve", "log_server_output") => "not logged".to_owned(),
        ("consort.agents.NAME", "summarize")
        | ("consort.serve", "metrics_by_tool" | "ledger_strict") => "`false`".to_owned(),
        ("consort.limits", "metric_tools") => consort_gateway::metrics::MOST_TOOLS.to_string(),
        ("consort.limits", "log_lines") => consort_gateway::LINES_PER_SECOND.to_string(),
        ("consort.limits", "refused_name_chars") => consort_gateway::REFUSED_NAME_CHARS.to_string(),
        ("consort.limits", "held_bytes") => gateway.held_bytes.to_string(),
        ("consort.limits", "schema_bytes") => schemas.compiled_bytes.to_string(),
        ("consort.limits", "schema_patterns") => schemas.patterns.to_string(),
        ("consort.limits", "schema_states") => schemas.schema_states.to_string(),
        ("consort.limits", "pattern_states") => schemas.pattern_states.to_string(),
        ("consort.limits", "schema_wait") => span(schemas.wait),
        ("consort.limits", "schema_entries") => schemas.entries.to_string(),
        ("consort.limits", "memory_wait") => span(times.room),
        ("consort.limits", "shared_memory_wait") => span(times.shared_room),
        ("consort.limits", "keeper_reply") => span(keeper.reply),
        ("consort.limits", "orphan_close") => span(keeper.close),
        ("consort.limits", "orphan_terminate") => span(keeper.terminate),
        ("consort.limits", "kill_wait") => span(keeper.kill),
        ("consort.limits", "config_poll") => span(reload.poll),
        ("consort.limits", "reload_timeout") => span(reload.timeout),
        ("consort.limits", "reload_queue") => reload.queue.to_string(),
        ("consort.limits", "reserved_descriptors") => gateway.reserved_descriptors.to_string(),
        ("consort.limits", "reserved_descriptor_hold") => span(gateway.reserved_descriptor_hold),
        ("consort.limits", "scan_findings") => findings.logged.to_string(),
        ("consort.limits", "scan_definitions") => findings.remembered.to_string(),
        ("consort.limits", "list_wait") => span(lists.wait),
        ("consort.limits", "server_wait") => span(lists.server_wait),
        ("consort.limits", "list_max_age") => span(lists.max_age),
        ("consort.limits", "list_min_age") => span(lists.min_age),
        ("consort.limits", "list_change_wait") => span(lists.change_wait),
        ("consort.limits", "stream_ping") => span(consort_hub::Settings::default().stream_ping),
        ("consort", "naming") => "`auto`".to_owned(),
        ("consort", "exposure") | ("consort.exposure", "mode") => "`individual`".to_owned(),
        ("consort", "builtin") => "`true`; for a gateway with a config `false`".to_owned(),
        ("consort.agents.NAME", "model")
        | ("[consort.policy.rules]", "then")
        | ("[consort.cache]", _) => "it must be there".to_owned(),
        _ if kind == "bool" => "`false`".to_owned(),
        _ => String::new(),
    }
}

/// The chapter about a key that concerns all servers.
fn page(table: &str, name: &str) -> Option<&'static str> {
    Some(match (table, name) {
        ("consort", "naming" | "tokens" | "serve") => "serve.md",
        ("consort", "transforms" | "profiles" | "cache") => "shape.md",
        ("consort", "exposure") => "exposures.md",
        ("consort", "policy") => "policy.md",
        ("consort", "agents") => "agents.md",
        ("consort", "providers" | "models") => "providers.md",
        ("consort", "limits") => "limits.md",
        _ => return None,
    })
}

fn rows(rows: &[Row]) -> Vec<Key> {
    let key = |(name, takes, absent, says): &Row| Key {
        name: (*name).to_owned(),
        takes: (*takes).to_owned(),
        absent: (*absent).to_owned(),
        says: (*says).to_owned(),
    };
    rows.iter().map(key).collect()
}

fn timeouts() -> Vec<Key> {
    let times = Times::default();
    let row = |name: &str, time: std::time::Duration, says: &str| Key {
        name: name.to_owned(),
        takes: "time".to_owned(),
        absent: format!("{} s", time.as_secs()),
        says: says.to_owned(),
    };
    vec![
        row("idle", times.idle, "a call without a word from the server"),
        row("total", times.total, "a call altogether; as long as `idle` if that is longer"),
        row("connect", times.handshake, "from starting or reaching it to knowing what it is"),
        row(
            "install",
            super::installer::INSTALL,
            "the same for a program that may have to fetch its package first: `npx`, `uvx`, `docker run`; `connect` if only that is written",
        ),
    ]
}

fn tables() -> Vec<(String, Vec<Key>)> {
    let mut tables = vec![
        ("mcp.NAME".to_owned(), rows(SERVER)),
        ("mcp.NAME.auth".to_owned(), rows(AUTH)),
        ("mcp.NAME.oauth".to_owned(), rows(OAUTH)),
        ("mcp.NAME.timeout".to_owned(), timeouts()),
    ];
    let more = TABLES.iter().chain(SPECS);
    tables.extend(more.map(|table| (table.table.to_owned(), fields(table))));
    // Written beside `policy`, kept within it.
    let (_, policy) =
        tables.iter_mut().find(|(name, _)| name == "consort.policy").expect("it is listed");
    policy.retain(|key| key.name != "callers");
    let (_, options) = tables.iter_mut().find(|(name, _)| name == "consort").expect("it is listed");
    options.push(Key {
        name: "callers".to_owned(),
        takes: "table".to_owned(),
        absent: String::new(),
        says: "what is known of callers, by name: [policy.md](policy.md)".to_owned(),
    });
    tables
}

#[test]
fn the_reference_is_of_every_key() {
    let mut text = String::new();
    for (table, keys) in tables() {
        writeln!(
            text,
            "\n### `[{table}]`\n\n| key | takes | if absent | what it says |\n|---|---|---|---|"
        )
        .expect("text takes text");
        for Key { name, takes, absent, says } in keys {
            writeln!(text, "| `{name}` | {takes} | {absent} | {says} |").expect("text takes text");
        }
    }
    testkit::docs::hold("docs/config.md", "reference", &text);
}

#[test]
fn every_key_that_is_looked_for_is_in_the_reference_and_no_other() {
    ASKED.with_borrow_mut(BTreeSet::clear);
    Config::parse(Path::new("consort.toml"), SAMPLE).expect("the sample is TOML");
    let asked = ASKED.with_borrow(BTreeSet::clone);
    let mut listed = BTreeSet::new();
    for (table, keys) in tables() {
        if SPECS.iter().any(|spec| spec.table == table) {
            continue;
        }
        listed.extend(keys.iter().map(|key| format!("{table}.{}", key.name)));
    }
    let is_alias = |key: &&String| {
        let name = key.strip_prefix("mcp.NAME.").unwrap_or_default();
        ALIASES.contains(&name) || FOREIGN.contains(&name)
    };
    // One tool has the same times as its server.
    let of_tool = |key: &&String| key.starts_with("mcp.NAME.tools.");
    let asked: BTreeSet<&String> =
        asked.iter().filter(|key| !is_alias(key) && !of_tool(key)).collect();
    let listed: BTreeSet<&String> = listed.iter().collect();
    assert_eq!(asked, listed);
}

#[test]
fn every_key_that_serde_takes_is_in_the_reference_and_no_other() {
    use consort_shape::policy::{CallerSpec, ConditionSpec, PolicySpec, RuleSpec};
    use consort_shape::transform::{ArgumentSpec, HintSpec, ResultSpec, TransformSpec};

    /// What serde would have taken instead.
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
        ("TableSpec", taken::<consort_shape::exposure::TableSpec>()),
        ("PolicySpec", taken::<PolicySpec>()),
        ("RuleSpec", taken::<RuleSpec>()),
        ("ConditionSpec", taken::<ConditionSpec>()),
        ("CallerSpec", taken::<CallerSpec>()),
        ("CacheSpec", taken::<consort_shape::CacheSpec>()),
    ]);
    for spec in SPECS {
        let listed: BTreeSet<String> = fields(spec).into_iter().map(|key| key.name).collect();
        assert_eq!(known[spec.structure], listed, "{}", spec.table);
    }
}
