//! `docs/limits.md`, from the declarations.

use std::fmt::Write as _;
use std::time::Duration;

use consort_models::ProviderTimeouts;

use crate::LIMIT_SECTIONS;
use crate::installer::INSTALL;

#[test]
fn the_reference_of_limits_is_of_every_key() {
    let mut text = String::new();
    for section in LIMIT_SECTIONS {
        let heading = section.heading;
        writeln!(
            text,
            "\n## {heading}\n\n| key | default | allowed | limit | when it is reached |\n|---|---|---|---|---|"
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
    let mut text = "| about | keys |\n|---|---|\n".to_owned();
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
    let called = "the call ends (exit code 4; through a gateway, outcome unknown), and its server is notified";
    vec![
        (
            "`mcp.NAME.timeout.idle`, `--idle`",
            seconds(times.idle),
            "Time that a call may be without a sign of the server; progress renews it",
            called,
        ),
        (
            "`mcp.NAME.timeout.total`, `--total`",
            seconds(times.total),
            "Time that a call may take, progress or not",
            called,
        ),
        (
            "`mcp.NAME.timeout.connect`",
            seconds(times.handshake),
            "Time from starting or reaching a server to knowing what it is",
            "the server cannot be reached; the connection is retried",
        ),
        (
            "`mcp.NAME.timeout.install`",
            seconds(INSTALL),
            "The same for a program that may have to fetch its package first",
            "the start has failed; it is repeated",
        ),
        (
            "`mcp.NAME.idle_stop`",
            "never".to_owned(),
            "Time that a server may be unused",
            "it is stopped; the next call starts it",
        ),
        (
            "`consort.serve.ledger_days`",
            "none".to_owned(),
            "Days that records of the ledger are kept",
            "they are dropped, behind a checkpoint",
        ),
        ("`--threads`", "4".to_owned(), "Threads that serve requests", "requests share them"),
        (
            "`exposure.budget`",
            "20,000".to_owned(),
            "Tokens of definitions that `auto` shows",
            "`per-server` or `search` instead of every tool",
        ),
        (
            "`exposure.names`",
            "160".to_owned(),
            "Bytes of tool names in the description of the one tool that stands for a server",
            "the others are counted",
        ),
        (
            "`transforms.result.max_bytes`",
            "none".to_owned(),
            "Bytes of a result",
            "it is set aside, and its beginning is shown",
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
            "US dollars of a run, with the agents it asks",
            "`limit_reached` (exit code 8)",
        ),
        (
            "`agents.NAME.context_tries`",
            consort_agent::AgentSettings::CONTEXT_TRIES.to_string(),
            "Attempts with less of a conversation that is too long for the model",
            "the run ends with the error of the provider",
        ),
        (
            "`agents.NAME.summary_tokens`",
            consort_agent::AgentSettings::SUMMARY_TOKENS.to_string(),
            "Tokens of a summary",
            "the summary ends there",
        ),
        (
            "`providers.NAME.silence`",
            format!("{} s", patience.idle.as_secs()),
            "Silence of a provider before and within a streamed answer",
            "the request is repeated, if nothing was handed out yet",
        ),
        (
            "`providers.NAME.tries`",
            patience.max_attempts.to_string(),
            "Attempts of a request to a provider",
            "the error is reported",
        ),
    ]
}

#[test]
fn the_reference_of_limits_names_those_in_other_tables() {
    let mut text =
        "| set by | default | limit | when it is reached |\n|---|---|---|---|\n".to_owned();
    for (set, default, about, reached) in of_servers().into_iter().chain(of_models()) {
        writeln!(text, "| {set} | {default} | {about} | {reached} |").expect("text takes text");
    }
    testkit::docs::hold("docs/limits.md", "elsewhere", &text);
}
