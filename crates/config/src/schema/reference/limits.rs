//! `docs/limits.md`, from the declarations.

use std::fmt::Write as _;
use std::time::Duration;

use consort_models::ProviderTimeouts;

use crate::LIMIT_SECTIONS;
use crate::server::installer::INSTALL;

#[test]
fn the_reference_of_limits_is_of_every_key() {
    let mut text = String::new();
    for section in LIMIT_SECTIONS {
        let heading = section.heading;
        writeln!(
            text,
            "\n## {heading}\n\n| key | default | allowed | description | when exceeded |\n|---|---|---|---|---|"
        )
        .expect("text takes text");
        for limit in section.limits {
            let default = limit.default().map(|value| limit.format_value(value));
            let default = default.unwrap_or_else(|| "none".to_owned());
            let about = limit.about.trim_end_matches('.').replace('|', "\\|");
            let (key, allowed, reached) = (limit.key, limit.format_range(), limit.reached);
            writeln!(text, "| `{key}` | {default} | {allowed} | {about} | {reached} |")
                .expect("text takes text");
        }
    }
    testkit::docs::hold("docs/limits.md", "limits", &text);
}

#[test]
fn the_limits_that_need_a_restart_are_listed() {
    let mut text = "| section | keys |\n|---|---|\n".to_owned();
    for section in LIMIT_SECTIONS {
        let keys = section.limits.iter().filter(|limit| limit.needs_restart());
        let keys: Vec<String> = keys.map(|limit| format!("`{}`", limit.key)).collect();
        if !keys.is_empty() {
            let heading = section.heading;
            writeln!(text, "| {heading} | {} |", keys.join(", ")).expect("text takes text");
        }
    }
    testkit::docs::hold("docs/limits.md", "restart", &text);
}

/// Key or flag, default, description, and effect of reaching the limit.
type LimitRow = (&'static str, String, &'static str, &'static str);

/// Limits of servers and of tools shown to models.
fn of_servers() -> Vec<LimitRow> {
    let times = consort_client::Times::default();
    let seconds = |time: Duration| format!("{} s", time.as_secs());
    let called = "the call fails with a timeout (exit code 4; through a gateway, outcome unknown), and the server gets a cancellation";
    vec![
        (
            "`mcp.NAME.timeout.idle`, `--idle`",
            seconds(times.idle),
            "Idle timeout of a call; progress resets it",
            called,
        ),
        (
            "`mcp.NAME.timeout.total`, `--total`",
            seconds(times.total),
            "Total timeout of a call, with or without progress",
            called,
        ),
        (
            "`mcp.NAME.timeout.connect`",
            seconds(times.handshake),
            "Time to start or connect to a server and complete the handshake",
            "the connection fails and is retried with backoff",
        ),
        (
            "`mcp.NAME.timeout.install`",
            seconds(INSTALL),
            "The same for a program that may download its package first",
            "the start fails and is retried with backoff",
        ),
        (
            "`mcp.NAME.idle_stop`",
            "never".to_owned(),
            "Idle time of a server",
            "the server is stopped; the next call starts it",
        ),
        (
            "`consort.serve.ledger_days`",
            "none".to_owned(),
            "Retention of ledger records in days",
            "older records are dropped; a checkpoint keeps the hash chain verifiable",
        ),
        ("`--threads`", "4".to_owned(), "Worker threads", "requests share the threads"),
        (
            "`exposure.budget`",
            "20,000".to_owned(),
            "Tokens of tool definitions that `auto` exposes",
            "`per-server` or `search` is used instead of every tool",
        ),
        (
            "`exposure.names`",
            "160".to_owned(),
            "Bytes of tool names in the description of a `per-server` tool",
            "the other tools are only counted",
        ),
        (
            "`transforms.result.max_bytes`",
            "none".to_owned(),
            "Bytes of a result",
            "the result is spilled, and its beginning is returned",
        ),
    ]
}

/// Limits of agents and providers.
fn of_models() -> Vec<LimitRow> {
    let patience = ProviderTimeouts::default();
    vec![
        (
            "`agents.NAME.max_turns`, `max_calls`, `max_tokens`, `max_time`, `--max-turns` …",
            "`run_turns` …".to_owned(),
            "Limits of a run of this agent",
            "`limit_reached` (exit code 8)",
        ),
        (
            "`agents.NAME.max_cost`, `--max-cost`",
            "none".to_owned(),
            "Maximum cost of a run in US dollars, including the agents it calls",
            "`limit_reached` (exit code 8)",
        ),
        (
            "`agents.NAME.context_tries`",
            consort_agent::AgentSettings::CONTEXT_TRIES.to_string(),
            "Maximum retries with a shorter conversation after a request exceeded the context window",
            "the run ends with the provider's error",
        ),
        (
            "`agents.NAME.summary_tokens`",
            consort_agent::AgentSettings::SUMMARY_TOKENS.to_string(),
            "Maximum tokens of a summary",
            "the summary ends there",
        ),
        (
            "`providers.NAME.silence`",
            format!("{} s", patience.idle.as_secs()),
            "Idle timeout of a provider, before and within a streamed answer",
            "the request is retried, if no output was delivered yet",
        ),
        (
            "`providers.NAME.tries`",
            patience.max_attempts.to_string(),
            "Maximum attempts of a request to a provider",
            "the error is reported",
        ),
    ]
}

#[test]
fn the_reference_of_limits_names_those_in_other_tables() {
    let mut text =
        "| set by | default | description | when exceeded |\n|---|---|---|---|\n".to_owned();
    for (set, default, about, reached) in of_servers().into_iter().chain(of_models()) {
        writeln!(text, "| {set} | {default} | {about} | {reached} |").expect("text takes text");
    }
    testkit::docs::hold("docs/limits.md", "elsewhere", &text);
}
