//! `[consort]`: options for all servers, in every format.

use std::collections::BTreeMap;

use consort_server::{BasePath, ProxyHeaders, TrustedProxy};
use consort_shape::exposure::{ExposureSpec, ExposureTableSpec};
use consort_shape::policy::{Policy, PolicyError, PolicySpec};
use consort_shape::transform::TransformSpec;
use consort_shape::{CacheSpec, SearchSpec};

use super::{agents, identity};
use crate::error::ConfigErrorKind;
use crate::limits::LimitsConfig;
use crate::options::listen::{ListenAddress, is_origin};
use crate::options::{ConsortOptions, ProfileConfig, ServeConfig, merge_policies};
use crate::server::ValidationMode;
use crate::syntax::names::{closest_name, shorten_name};
use crate::syntax::problem_collector::ProblemCollector;
use crate::syntax::table_reader::{TableReader, UnknownKeyPolicy};
use crate::syntax::tree::{SyntaxEntry, SyntaxNode, SyntaxTable, SyntaxValue};
use crate::template::secret_reference::SecretReference;

/// The key of the section.
pub(crate) const KEY: &str = "consort";

/// The key of the included files.
pub(crate) const INCLUDE: &str = "include";

/// The keys of the section.
const KEYS: [&str; 20] = [
    "agents",
    "authorization",
    "builtin",
    "cache",
    "callers",
    "exposure",
    INCLUDE,
    "issuers",
    "models",
    "naming",
    "policy",
    "profiles",
    "providers",
    "roles",
    "search",
    "services",
    "tls",
    "tokens",
    "transforms",
    "validate",
];

/// The keys whose lists are selections.
const SELECTIONS: [&str; 2] = ["servers", "tools"];

/// The keys whose content is not checked.
const FREE: [&str; 3] = ["body", "arguments", "provider"];

/// Reads the options for all servers.
pub(crate) fn read<'a>(
    findings: &'a ProblemCollector<'a>,
    root: &'a SyntaxTable,
) -> ConsortOptions {
    findings.collect_blocking(|| {
        check_section_name(findings, root);
        section(findings, root)
    })
}

fn section<'a>(findings: &'a ProblemCollector<'a>, root: &'a SyntaxTable) -> ConsortOptions {
    let mut written = root.0.iter().filter(|entry| entry.key == KEY);
    let Some(SyntaxEntry { node, at, .. }) = written.next() else {
        return ConsortOptions::default();
    };
    for again in written {
        let first = findings.spot(*at);
        findings.error(again.at, None, ConfigErrorKind::KeyTwice { key: KEY.to_owned(), first });
    }
    let SyntaxValue::Table(table) = &node.value else {
        let (key, expected, found) = (KEY.to_owned(), "a table", node.value.kind());
        findings.error(node.at, None, ConfigErrorKind::WrongType { key, expected, found });
        return ConsortOptions::default();
    };
    let fields =
        TableReader::new(findings, None, node.at, table).unknown_keys(UnknownKeyPolicy::Refuse);
    // Rules may refer to roles, so these are read first.
    let identity = identity::read(&fields);
    let known = PolicySpec {
        callers: identity.callers,
        roles: identity.roles,
        issuers: identity.issuers.keys().cloned().collect(),
        ..PolicySpec::default()
    };
    let mut limits = LimitsConfig::read(&fields, &known);
    let policy = with_callers(policy(&fields, Some(&known)), known);
    let profiles = profiles(&fields, policy.as_ref());
    let options = ConsortOptions {
        builtin: fields.bool("builtin"),
        naming: fields.string("naming").map(str::to_owned),
        transforms: transforms(&fields),
        exposure: exposure(&fields),
        search: fields.spec("search", |spec: &SearchSpec| spec.compile().map(drop)),
        cache: fields.specs("cache", |spec: &CacheSpec| spec.compile().map(drop)),
        agents: agents::agents(&fields, &profiles),
        profiles,
        policy,
        tokens: tokens(&fields),
        serve: serve(&fields, &mut limits),
        providers: agents::providers(&fields),
        limits,
        models: agents::models(&fields),
        public_url: identity.public_url,
        owner_listen: identity.owner_listen,
        owner_access: identity.owner_access,
        tls: identity.tls,
        issuers: identity.issuers,
        authorization: identity.authorization,
        services: identity.services,
        validate: fields.word("validate", &ValidationMode::WORDS, &[]),
        include: fields.strings(INCLUDE),
    };
    fields.finish();
    check_values(findings, "", node);
    options
}

/// Refuses a section whose name is a misspelling of `consort`, in a file that has keys of others too.
fn check_section_name(findings: &ProblemCollector<'_>, root: &SyntaxTable) {
    for entry in root.0.iter().filter(|entry| entry.key != KEY) {
        let ours = |table: &SyntaxTable| table.keys().any(|key| KEYS.contains(&key));
        if closest_name(&entry.key, [KEY]).is_some()
            && entry.node.table().is_some_and(ours)
            && !findings.has_error(entry.at)
        {
            let (key, near) = (shorten_name(&entry.key), Some(KEY.to_owned()));
            findings.error(entry.at, None, ConfigErrorKind::UnknownKey { key, near });
        }
    }
}

/// Refuses values that would silently have no effect: dates, empty selections, and duplicate keys.
fn check_values(findings: &ProblemCollector<'_>, within: &str, node: &SyntaxNode) {
    let error = |at: usize, mistake: ConfigErrorKind| {
        if !findings.has_error(at) {
            findings.error(at, None, mistake);
        }
    };
    match &node.value {
        SyntaxValue::Date => {
            let (key, expected) = (within.to_owned(), "a string, number, list or table");
            error(node.at, ConfigErrorKind::WrongType { key, expected, found: node.value.kind() });
        }
        SyntaxValue::List(items) => {
            for (n, item) in items.iter().enumerate() {
                check_values(findings, &format!("{within}[{n}]"), item);
            }
        }
        SyntaxValue::Table(table) => {
            let mut seen = BTreeMap::new();
            for entry in &table.0 {
                let dot = if within.is_empty() { "" } else { "." };
                let key = format!("{within}{dot}{}", shorten_name(&entry.key));
                if let Some(first) = seen.insert(&entry.key, entry.at) {
                    let first = findings.spot(first);
                    error(entry.at, ConfigErrorKind::KeyTwice { key: key.clone(), first });
                }
                if SELECTIONS.contains(&entry.key.as_str())
                    && entry.node.list().is_some_and(<[_]>::is_empty)
                {
                    error(entry.node.at, ConfigErrorKind::EmptyList(key.clone()));
                }
                if !FREE.contains(&entry.key.as_str()) {
                    check_values(findings, &key, &entry.node);
                }
            }
        }
        _ => {}
    }
}

/// Reads `[[consort.transforms]]`, each checked at its place.
fn transforms(fields: &TableReader<'_>) -> Vec<TransformSpec> {
    fields.specs("transforms", |spec: &TransformSpec| spec.compile().map(drop))
}

/// Reads `exposure = "WORD"` or `[consort.exposure]`.
fn exposure(fields: &TableReader<'_>) -> Option<ExposureSpec> {
    let check = |spec: &ExposureSpec| spec.compile(&BTreeMap::new()).map(drop);
    // As a table it tells which of its keys is unknown.
    match fields.get("exposure")?.table() {
        Some(_) => fields
            .spec("exposure", |spec: &ExposureTableSpec| check(&ExposureSpec::Table(spec.clone())))
            .map(ExposureSpec::Table),
        None => fields.spec("exposure", check),
    }
}

/// Reads `[consort.policy]`.
fn policy(fields: &TableReader<'_>, everybody: Option<&PolicySpec>) -> Option<PolicySpec> {
    fields.spec("policy", |spec: &PolicySpec| {
        let failed = |error: &PolicyError| match error.hint() {
            Some(hint) => format!("{error} ({hint})"),
            None => error.to_string(),
        };
        let failed = |errors: Vec<PolicyError>| errors.iter().map(failed).collect::<Vec<_>>();
        let whole = merge_policies(everybody, Some(spec));
        Policy::compile(&whole).map(drop).map_err(|errors| failed(errors).join("; "))
    })
}

/// Adds callers, roles and the known issuers to a policy.
fn with_callers(policy: Option<PolicySpec>, known: PolicySpec) -> Option<PolicySpec> {
    if known.callers.is_empty() && known.roles.is_empty() {
        return policy.map(|policy| PolicySpec { issuers: known.issuers, ..policy });
    }
    let mut policy = policy.unwrap_or_default();
    policy.callers.extend(known.callers);
    policy.roles.extend(known.roles);
    policy.issuers = known.issuers;
    Some(policy)
}

/// Reads `[consort.profiles.NAME]`.
fn profiles(
    fields: &TableReader<'_>,
    everybody: Option<&PolicySpec>,
) -> BTreeMap<String, ProfileConfig> {
    let Some(node) = fields.get("profiles") else { return BTreeMap::new() };
    let SyntaxValue::Table(table) = &node.value else {
        return fields
            .report_wrong_type("profiles", node, "a table of profiles")
            .unwrap_or_default();
    };
    let mut profiles = BTreeMap::new();
    for entry in &table.0 {
        let key = format!("profiles.{}", shorten_name(&entry.key));
        let SyntaxValue::Table(table) = &entry.node.value else {
            fields.report_wrong_type::<()>(&key, &entry.node, "a table");
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

/// Reads `[consort.serve]`.
fn serve(fields: &TableReader<'_>, limits: &mut LimitsConfig) -> ServeConfig {
    let Some(serve) = fields.table("serve") else { return ServeConfig::default() };
    let allowed_origins = serve.strings("allowed_origins");
    if let Some(wrong) = allowed_origins.iter().find(|origin| !is_origin(origin)) {
        let reason = format!(
            "`{}` is not an origin: expected scheme, host and port, such as `http://localhost:6274`",
            shorten_name(wrong)
        );
        let at = serve.at_of("allowed_origins");
        serve.error(
            at,
            ConfigErrorKind::InvalidValue { key: serve.path("allowed_origins"), reason },
        );
    }
    let log_server_output = serve.string("log_server_output").map(str::to_owned);
    if let Some(word) = log_server_output.as_deref().filter(|it| !matches!(*it, "end" | "live")) {
        let reason = format!("`{}` is not known: use `end` or `live`", shorten_name(word));
        let at = serve.at_of("log_server_output");
        serve.error(
            at,
            ConfigErrorKind::InvalidValue { key: serve.path("log_server_output"), reason },
        );
    }
    limits.read_serve(&serve);
    let made = ServeConfig {
        log_server_output,
        metrics_by_tool: serve.bool("metrics_by_tool"),
        ledger_strict: serve.bool("ledger_strict"),
        ledger_days: serve.count("ledger_days"),
        ledger_archive: serve.string("ledger_archive").map(str::to_owned),
        allowed_origins,
        metrics_callers: serve.strings("metrics_callers"),
        base_path: parsed::<BasePath>(&serve, "base_path"),
        trusted_proxies: trusted_proxies(&serve),
        metrics_listen: parsed::<ListenAddress>(&serve, "metrics_listen"),
        proxy_headers: parsed::<ProxyHeaders>(&serve, "proxy_headers"),
    };
    serve.finish();
    made
}

/// A value parsed from a string.
pub(super) fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(
    serve: &TableReader<'_>,
    key: &'static str,
) -> Option<String> {
    let text = serve.string(key)?;
    if let Err(error) = text.parse::<T>() {
        let reason = format!("`{}`: {error}", shorten_name(text));
        serve.error(
            serve.at_of(key),
            ConfigErrorKind::InvalidValue { key: serve.path(key), reason },
        );
    }
    Some(text.to_owned())
}

fn trusted_proxies(serve: &TableReader<'_>) -> Vec<String> {
    const KEY: &str = "trusted_proxies";
    let proxies = serve.strings(KEY);
    for proxy in &proxies {
        if let Err(error) = proxy.parse::<TrustedProxy>() {
            let reason = format!("`{}`: {error}", shorten_name(proxy));
            serve.error(
                serve.at_of(KEY),
                ConfigErrorKind::InvalidValue { key: serve.path(KEY), reason },
            );
        }
    }
    proxies
}

/// Reads `[consort.tokens]`.
fn tokens(fields: &TableReader<'_>) -> BTreeMap<String, SecretReference> {
    let Some(node) = fields.get("tokens") else { return BTreeMap::new() };
    let SyntaxValue::Table(table) = &node.value else {
        return fields
            .report_wrong_type("tokens", node, "a table of names and secret references")
            .unwrap_or_default();
    };
    let mut tokens = BTreeMap::new();
    for entry in &table.0 {
        let key = format!("tokens.{}", shorten_name(&entry.key));
        let token = fields.secret(&key, &entry.node);
        tokens.extend(token.map(|token| (entry.key.clone(), token)));
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
