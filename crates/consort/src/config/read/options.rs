//! `[consort]`: what concerns all servers, in every format.

use std::collections::BTreeMap;

use consort_gateway::{BasePath, TrustedProxy};
use consort_shape::CacheSpec;
use consort_shape::exposure::{ExposureSpec, TableSpec};
use consort_shape::policy::{CallerSpec, Policy, PolicyError, PolicySpec};
use consort_shape::transform::TransformSpec;

use super::super::error::Mistake;
use super::super::fields::{Fields, UnknownKeys, closest, shortened};
use super::super::findings::Findings;
use super::super::listen::{ListenAddress, is_origin};
use super::super::options::{LimitsConfig, Options, ProfileConfig, ServeConfig, merged};
use super::super::tree::{Entry, Node, Table, Value};
use super::agents;

/// The key it is under.
pub(in super::super) const KEY: &str = "consort";

/// The keys that it has.
const KEYS: [&str; 12] = [
    "agents",
    "builtin",
    "cache",
    "callers",
    "exposure",
    "models",
    "naming",
    "policy",
    "profiles",
    "providers",
    "tokens",
    "transforms",
];

/// The keys whose lists select something.
const SELECTIONS: [&str; 2] = ["servers", "tools"];

/// The keys under which anything may stand.
const FREE: [&str; 3] = ["body", "arguments", "provider"];

/// Reads what concerns all servers.
pub(in super::super) fn read<'a>(findings: &'a Findings<'a>, root: &'a Table) -> Options {
    findings.blocking(|| {
        misspelt(findings, root);
        section(findings, root)
    })
}

fn section<'a>(findings: &'a Findings<'a>, root: &'a Table) -> Options {
    let mut written = root.0.iter().filter(|entry| entry.key == KEY);
    let Some(Entry { node, at, .. }) = written.next() else { return Options::default() };
    for again in written {
        let first = findings.spot(*at);
        findings.error(again.at, None, Mistake::KeyTwice { key: KEY.to_owned(), first });
    }
    let Value::Table(table) = &node.value else {
        let (key, expected, found) = (KEY.to_owned(), "a table", node.value.kind());
        findings.error(node.at, None, Mistake::WrongType { key, expected, found });
        return Options::default();
    };
    let fields = Fields::new(findings, None, node.at, table).unknown_keys(UnknownKeys::Refuse);
    // Rules may be about roles, so who has them is read first.
    let known = PolicySpec { callers: callers(&fields), ..PolicySpec::default() };
    let policy = with_callers(policy(&fields, Some(&known)), known);
    let profiles = profiles(&fields, policy.as_ref());
    let options = Options {
        builtin: fields.bool("builtin"),
        naming: fields.string("naming").map(str::to_owned),
        transforms: transforms(&fields),
        exposure: exposure(&fields),
        cache: fields.specs("cache", |spec: &CacheSpec| spec.compile().map(drop)),
        agents: agents::agents(&fields, &profiles),
        profiles,
        policy,
        tokens: tokens(&fields),
        serve: serve(&fields),
        providers: agents::providers(&fields),
        limits: limits(&fields),
        models: agents::models(&fields),
    };
    fields.finish();
    overlooked(findings, "", node);
    options
}

/// `[consort.limits]`.
fn limits(fields: &Fields<'_>) -> LimitsConfig {
    let Some(limits) = fields.table("limits") else { return LimitsConfig::default() };
    let read = LimitsConfig {
        held_bytes: limits.count("held_bytes"),
        schema_bytes: limits.count("schema_bytes"),
        schema_patterns: limits.count("schema_patterns"),
        schema_states: limits.count("schema_states"),
        pattern_states: limits.count("pattern_states"),
        schema_wait: limits.period("schema_wait"),
        schema_entries: limits.count("schema_entries"),
        memory_wait: limits.period("memory_wait"),
        shared_memory_wait: limits.period("shared_memory_wait"),
        keeper_reply: limits.period("keeper_reply"),
        orphan_close: limits.period("orphan_close"),
        orphan_terminate: limits.period("orphan_terminate"),
        kill_wait: limits.period("kill_wait"),
        config_poll: limits.period("config_poll"),
        reload_timeout: limits.period("reload_timeout"),
        reload_queue: limits.count("reload_queue"),
        reserved_descriptors: limits.count("reserved_descriptors"),
        reserved_descriptor_hold: limits.period("reserved_descriptor_hold"),
        scan_findings: limits.count("scan_findings"),
        scan_definitions: limits.count("scan_definitions"),
        list_wait: limits.period("list_wait"),
        server_wait: limits.period("server_wait"),
        list_max_age: limits.period("list_max_age"),
        list_min_age: limits.period("list_min_age"),
        list_change_wait: limits.period("list_change_wait"),
        stream_ping: limits.period("stream_ping"),
        metric_tools: limits.count("metric_tools"),
        log_lines: limits.count("log_lines"),
        refused_name_chars: limits.count("refused_name_chars"),
    };
    limits.finish();
    read
}

/// Refuses a section whose name is nearly ours, in a file that has keys of others too.
fn misspelt(findings: &Findings<'_>, root: &Table) {
    for entry in root.0.iter().filter(|entry| entry.key != KEY) {
        let ours = |table: &Table| table.keys().any(|key| KEYS.contains(&key));
        if closest(&entry.key, [KEY]).is_some()
            && entry.node.table().is_some_and(ours)
            && !findings.has_error(entry.at)
        {
            let (key, near) = (shortened(&entry.key), Some(KEY.to_owned()));
            findings.error(entry.at, None, Mistake::UnknownKey { key, near });
        }
    }
}

/// Refuses what would count as nothing where it stands: dates, empty selections, and keys that are
/// written twice.
fn overlooked(findings: &Findings<'_>, within: &str, node: &Node) {
    let error = |at: usize, mistake: Mistake| {
        if !findings.has_error(at) {
            findings.error(at, None, mistake);
        }
    };
    match &node.value {
        Value::Date => {
            let (key, expected) = (within.to_owned(), "a string, a number, a list or a table");
            error(node.at, Mistake::WrongType { key, expected, found: node.value.kind() });
        }
        Value::List(items) => {
            for (n, item) in items.iter().enumerate() {
                overlooked(findings, &format!("{within}[{n}]"), item);
            }
        }
        Value::Table(table) => {
            let mut seen = BTreeMap::new();
            for entry in &table.0 {
                let dot = if within.is_empty() { "" } else { "." };
                let key = format!("{within}{dot}{}", shortened(&entry.key));
                if let Some(first) = seen.insert(&entry.key, entry.at) {
                    let first = findings.spot(first);
                    error(entry.at, Mistake::KeyTwice { key: key.clone(), first });
                }
                if SELECTIONS.contains(&entry.key.as_str())
                    && entry.node.list().is_some_and(<[_]>::is_empty)
                {
                    error(entry.node.at, Mistake::EmptyList(key.clone()));
                }
                if !FREE.contains(&entry.key.as_str()) {
                    overlooked(findings, &key, &entry.node);
                }
            }
        }
        _ => {}
    }
}

/// `[[consort.transforms]]`, each checked where it is written.
fn transforms(fields: &Fields<'_>) -> Vec<TransformSpec> {
    fields.specs("transforms", |spec: &TransformSpec| spec.compile().map(drop))
}

/// `exposure = "WORD"` or `[consort.exposure]`.
fn exposure(fields: &Fields<'_>) -> Option<ExposureSpec> {
    let check = |spec: &ExposureSpec| spec.compile(&BTreeMap::new()).map(drop);
    // As a table it tells which of its keys is unknown.
    match fields.get("exposure")?.table() {
        Some(_) => fields
            .spec("exposure", |spec: &TableSpec| check(&ExposureSpec::Table(spec.clone())))
            .map(ExposureSpec::Table),
        None => fields.spec("exposure", check),
    }
}

/// `[consort.policy]`.
fn policy(fields: &Fields<'_>, everybody: Option<&PolicySpec>) -> Option<PolicySpec> {
    fields.spec("policy", |spec: &PolicySpec| {
        let failed = |error: &PolicyError| match error.hint() {
            Some(hint) => format!("{error} ({hint})"),
            None => error.to_string(),
        };
        let failed = |errors: Vec<PolicyError>| errors.iter().map(failed).collect::<Vec<_>>();
        let whole = merged(everybody, Some(spec));
        Policy::compile(&whole).map(drop).map_err(|errors| failed(errors).join("; "))
    })
}

/// A policy that also knows these callers.
fn with_callers(policy: Option<PolicySpec>, known: PolicySpec) -> Option<PolicySpec> {
    if known.callers.is_empty() {
        return policy;
    }
    let mut policy = policy.unwrap_or_default();
    policy.callers.extend(known.callers);
    Some(policy)
}

/// `[consort.callers.NAME]`: what rules may want to know of callers.
fn callers(fields: &Fields<'_>) -> BTreeMap<String, CallerSpec> {
    fields.spec("callers", |_| Ok(())).unwrap_or_default()
}

/// `[consort.profiles.NAME]`.
fn profiles(
    fields: &Fields<'_>,
    everybody: Option<&PolicySpec>,
) -> BTreeMap<String, ProfileConfig> {
    let Some(node) = fields.get("profiles") else { return BTreeMap::new() };
    let Value::Table(table) = &node.value else {
        return fields.wrong("profiles", node, "a table of profiles").unwrap_or_default();
    };
    let mut profiles = BTreeMap::new();
    for entry in &table.0 {
        let key = format!("profiles.{}", shortened(&entry.key));
        let Value::Table(table) = &entry.node.value else {
            fields.wrong::<()>(&key, &entry.node, "a table");
            continue;
        };
        let profile = fields.inner(&key, &entry.node, table);
        let made = ProfileConfig {
            servers: profile.strings("servers"),
            tools: profile.strings("tools"),
            naming: profile.string("naming").map(str::to_owned),
            transforms: transforms(&profile),
            exposure: exposure(&profile),
            policy: policy(&profile, everybody),
        };
        profile.finish();
        profiles.insert(entry.key.clone(), made);
    }
    profiles
}

/// The least bytes that a ledger takes.
const LEAST_LEDGER: u64 = 1 << 20;

/// `[consort.serve]`.
fn serve(fields: &Fields<'_>) -> ServeConfig {
    let Some(serve) = fields.table("serve") else { return ServeConfig::default() };
    let allowed_origins = serve.strings("allowed_origins");
    if let Some(wrong) = allowed_origins.iter().find(|origin| !is_origin(origin)) {
        let reason = format!(
            "`{}` is no origin: write scheme, host and port, as in `http://localhost:6274`",
            shortened(wrong)
        );
        let at = serve.at_of("allowed_origins");
        serve.error(at, Mistake::Spec { key: serve.path("allowed_origins"), reason });
    }
    let log_server_output = serve.string("log_server_output").map(str::to_owned);
    if let Some(word) = log_server_output.as_deref().filter(|it| !matches!(*it, "end" | "live")) {
        let reason = format!("`{}` is not known: use `end` or `live`", shortened(word));
        let at = serve.at_of("log_server_output");
        serve.error(at, Mistake::Spec { key: serve.path("log_server_output"), reason });
    }
    let ledger_bytes = serve.count("ledger_bytes");
    if let Some(bytes) = ledger_bytes.filter(|bytes| *bytes < LEAST_LEDGER) {
        let reason = format!("{bytes} bytes are too few: use at least {LEAST_LEDGER}");
        let at = serve.at_of("ledger_bytes");
        serve.error(at, Mistake::Spec { key: serve.path("ledger_bytes"), reason });
    }
    let made = ServeConfig {
        log_server_output,
        metrics_by_tool: serve.bool("metrics_by_tool"),
        ledger_strict: serve.bool("ledger_strict"),
        ledger_bytes,
        ledger_days: serve.count("ledger_days"),
        ledger_archive: serve.string("ledger_archive").map(str::to_owned),
        allowed_origins,
        metrics_callers: serve.strings("metrics_callers"),
        base_path: parsed::<BasePath>(&serve, "base_path"),
        trusted_proxies: trusted_proxies(&serve),
        metrics_listen: parsed::<ListenAddress>(&serve, "metrics_listen"),
        metrics_connections: serve.count("metrics_connections"),
        name_grace: serve.period("name_grace"),
        lame_duck: serve.period("lame_duck"),
        max_browser_sessions: serve.count("max_browser_sessions"),
        browser_session_idle: serve.period("browser_session_idle"),
        browser_session_lifetime: serve.period("browser_session_lifetime"),
        linger: serve.period("linger"),
        linger_bytes: serve.count("linger_bytes"),
    };
    serve.finish();
    made
}

/// A text that can be read as something.
fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(
    serve: &Fields<'_>,
    key: &'static str,
) -> Option<String> {
    let text = serve.string(key)?;
    if let Err(error) = text.parse::<T>() {
        let reason = format!("`{}`: {error}", shortened(text));
        serve.error(serve.at_of(key), Mistake::Spec { key: serve.path(key), reason });
    }
    Some(text.to_owned())
}

fn trusted_proxies(serve: &Fields<'_>) -> Vec<String> {
    const KEY: &str = "trusted_proxies";
    let proxies = serve.strings(KEY);
    for proxy in &proxies {
        if let Err(error) = proxy.parse::<TrustedProxy>() {
            let reason = format!("`{}`: {error}", shortened(proxy));
            serve.error(serve.at_of(KEY), Mistake::Spec { key: serve.path(KEY), reason });
        }
    }
    proxies
}

/// `[consort.tokens]`.
fn tokens(fields: &Fields<'_>) -> BTreeMap<String, String> {
    const EXPECTED: &str = "a text that says where the secret is: `env:NAME` or `file:PATH`";
    let Some(node) = fields.get("tokens") else { return BTreeMap::new() };
    let Value::Table(table) = &node.value else {
        return fields.wrong("tokens", node, "a table of names and secrets").unwrap_or_default();
    };
    let mut tokens = BTreeMap::new();
    for entry in &table.0 {
        match &entry.node.value {
            Value::Text(text) if text.starts_with("env:") || text.starts_with("file:") => {
                tokens.insert(entry.key.clone(), text.clone());
            }
            _ => {
                let key = format!("tokens.{}", shortened(&entry.key));
                fields.wrong::<()>(&key, &entry.node, EXPECTED);
            }
        }
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_a_scheme_a_host_and_a_port() {
        for origin in ["http://localhost:6274", "https://tools.example", "vscode-webview://a1b2"] {
            assert!(is_origin(origin), "{origin}");
        }
        for other in
            ["", "*", "null", "localhost", "http://", "https://a.example/", "http://*.example"]
        {
            assert!(!is_origin(other), "{other}");
        }
    }
}
