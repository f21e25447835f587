//! Constants that are limits have a key in `[consort.limits]`, or a reason why not. The keys themselves are declared and
//! tested in `config/src/limits`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use testkit::docs::hold;

use crate::source::{constant, limit_constants};

/// Limits without keys, as file and constant, with the effect at the limit and the reason why they are fixed.
const FIXED: &[(&str, &str, &str, &str)] = &[
    (
        "protocol/src/json/scan.rs",
        "DEPTH",
        "the call that the message answers ends with an error",
        "a bit a level in one 128-bit register, and serde_json's own limit",
    ),
    (
        "config/src/private_records.rs",
        "LARGEST_RECORD",
        "the user is asked again",
        "read before any config is trusted",
    ),
    (
        "client/src/transport/http1/response_head.rs",
        "MOST_HEADERS",
        "the call ends: `outcome_unknown`",
        "the parser's table is on the stack",
    ),
    (
        "client/src/transport/http1/body_decoder.rs",
        "EXTRA_BYTES",
        "the call ends: `outcome_unknown`",
        "they carry nothing that MCP uses",
    ),
    (
        "client/src/transport/http1/body_decoder.rs",
        "MOST_TRAILERS",
        "the call ends: `outcome_unknown`",
        "they carry nothing that MCP uses",
    ),
    ("config/src/config/include.rs", "LARGEST_MIB", "the config is refused", "the config itself"),
    (
        "config/src/config/include.rs",
        "MOST_FRAGMENTS",
        "the config is refused",
        "counted before any key is read",
    ),
    (
        "config/src/resolve.rs",
        "LARGEST",
        "the server does not start",
        "a secret that the config refers to is read while the config is",
    ),
    (
        "config/src/template/parser.rs",
        "DEEPEST",
        "the value is refused",
        "part of the config's syntax",
    ),
    (
        "config/src/syntax/tree/yaml.rs",
        "DEEPEST",
        "the config is refused",
        "counted before any key is read",
    ),
    (
        "config/src/syntax/tree/yaml.rs",
        "MOST_VALUES",
        "the config is refused",
        "counted before any key is read; aliases may stand for any number of values",
    ),
    (
        "config/src/duration.rs",
        "LONGEST",
        "the value is refused",
        "part of the config's syntax; limits have ranges of their own",
    ),
    (
        "consort/src/command/serve/sockets.rs",
        "MOST",
        "the gateway does not start",
        "systemd hands over what its unit lists",
    ),
    (
        "consort/src/token.rs",
        "SHORTEST",
        "a shorter token is refused when it starts",
        "a shorter token could be guessed",
    ),
    ("core/src/name.rs", "LONGEST", "another name is derived, and reported", "names are stored"),
    (
        "config/src/read/agents.rs",
        "LONGEST",
        "the agent is omitted",
        "`ask_NAME` is the name of a tool",
    ),
    (
        "gateway/src/naming.rs",
        "LONGEST",
        "the name is cut and gets a hash",
        "model providers refuse longer names",
    ),
    ("protocol/src/trace.rs", "LONGEST_STATE", "it is not passed on", "W3C Trace Context"),
    ("protocol/src/trace.rs", "LONGEST_BAGGAGE", "it is not passed on", "W3C Baggage"),
    (
        "models/src/dialect.rs",
        "LARGEST",
        "the provider gets a schema of any object; the server's schema still holds",
        "model providers refuse schemas that are far smaller",
    ),
    (
        "shape/src/policy/condition.rs",
        "DEEPEST",
        "the policy is refused",
        "part of the config's syntax",
    ),
    (
        "hub/src/schema/work.rs",
        "DEEPEST",
        "the gateway does not validate these arguments; the server does",
        "the stack of a thread",
    ),
    ("agent/src/store/line.rs", "DEPTH", "the step is not stored", "what serde_json reads again"),
    (
        "oauth/src/scope.rs",
        "MAX_SCOPE_BYTES",
        "the server's scopes are not stored; the next login requests the configured ones",
        "far more than an authorization server's scopes have",
    ),
    (
        "consort/src/identity_admin.rs",
        "TIMEOUT",
        "the command ends with exit code 3",
        "the gateway is on this machine, and Ctrl-C ends the command",
    ),
    (
        "consort/src/command/doctor/identity.rs",
        "TIMEOUT",
        "`doctor` reports that the issuer does not respond",
        "the gateway has limits of its own for each request",
    ),
    (
        "consort/src/command/whoami.rs",
        "TOKEN_BYTES",
        "the rest is not read",
        "a token is far shorter",
    ),
    (
        "identity/src/access.rs",
        "UNCHECKED",
        "the user signs in again",
        "the issuer offers no check in between",
    ),
    (
        "identity/src/authorization/client_document.rs",
        "LONGEST",
        "the client is refused",
        "it is stored with each grant and shown",
    ),
    (
        "identity/src/authorization/redirect_uri.rs",
        "LONGEST",
        "the redirect URI is ignored",
        "it is part of the URL of a page",
    ),
    (
        "identity/src/sign_in.rs",
        "RECENT",
        "the user signs in again",
        "the meaning of a recent sign-in, for changes of what programs run",
    ),
    (
        "models/src/retry_after.rs",
        "MAX_WAIT",
        "the provider's wait counts as this",
        "`provider_retry_wait` decides before",
    ),
];

/// Constants that are named like limits but restrict no user, by reason.
const OTHERS: &[(&str, &[&str])] = &[
    (
        "the default of a key",
        &[
            "agent/src/settings.rs CONTEXT_TRIES",
            "consort/src/command/serve/identity/settings.rs MAX_STALE",
            "consort/src/command/serve/identity/settings.rs RECHECK",
            "config/src/server/installer.rs INSTALL",
            "config/src/limits/settings.rs LAME_DUCK",
            "audit/src/metrics/tools.rs MOST_TOOLS",
            "hub/src/settings.rs STREAM_PING",
        ],
    ),
    (
        "the interval at which something is looked at, gathered or reported",
        &[
            "consort/src/command/ledger.rs LOOK",
            "consort/src/command/logs.rs LOOK",
            "consort/src/command_hub/slow_starts.rs TICK",
            "consort/src/command/serve/identity.rs RECHECK",
            "consort/src/command/serve/identity.rs SWEEP",
            "consort/src/command/serve/listeners.rs CERTIFICATE_CHECK",
            "consort/src/command/serve/memory.rs QUIET",
            "admin/src/call_statistics.rs CACHE_TIME",
            "admin/src/events.rs COUNT",
            "admin/src/events.rs GATHER",
            "admin/src/events.rs KEY_STREAM",
            "admin/src/events.rs RECHECK",
            "admin/src/servers/change.rs POLL_INTERVAL",
            "consort/src/agent_run/progress.rs TICK",
            "audit/src/live_calls.rs PACE",
            "gateway/src/gateway.rs SWEEP",
            "audit/src/ledger/writer.rs IDLE",
            "audit/src/ledger/writer.rs PROBE",
            "audit/src/ledger/writer.rs WARN",
            "audit/src/otlp.rs WARN",
            "gateway/src/relay.rs TOGETHER",
            "gateway/src/tasks/inputs.rs TOGETHER",
            "hub/src/managed.rs RETIRING",
            "hub/src/hub.rs SWEEP",
            "hub/src/readiness.rs LOOK",
            "oauth/src/login.rs STORE_POLL",
            "client/src/call/timer.rs LOOK",
            "client/src/execution/task.rs POLL",
            "client/src/execution/task.rs POLL_LEAST",
            "client/src/execution/task.rs POLL_MOST",
            "client/src/platform/keeper/channel.rs LOOK",
            "client/src/transport/resume.rs LOOK",
            "client/src/transport/resume.rs SLEPT",
            "client/src/transport/stdio.rs LOOK",
        ],
    ),
    (
        "a window in which a limit with a key counts",
        &[
            "consort/src/recording.rs DAY",
            "audit/src/lines.rs SECOND",
            "hub/src/lifecycle/backoff.rs ABSENT",
            "hub/src/lifecycle/backoff.rs WINDOW",
            "oauth/src/login.rs ATTEMPT_WINDOW",
            "client/src/connection/faults.rs WINDOW",
            "client/src/transport/live.rs SECOND",
        ],
    ),
    (
        "the pause before an attempt that another limit ends",
        &[
            "consort/src/command_hub.rs NOTICE",
            "audit/src/ledger/store.rs OPENING",
            "hub/src/probation.rs PROBATION_WAIT",
            "client/src/connection/open_questions.rs SETTLE",
            "agent/src/agent/call.rs RETRY_PAUSE",
            "server/src/http/health.rs PAUSE",
            "server/src/listener.rs RELIEF",
            "server/src/usage.rs LATER",
            "server/src/usage.rs SOON",
            "audit/src/ledger/writer.rs LAST_TRIES",
            "hub/src/lifecycle/policy.rs RESUBSCRIBE_DELAY",
            "hub/src/subscribe.rs AGAIN",
            "hub/src/retry.rs FIRST",
            "hub/src/retry.rs REFUSED",
        ],
    ),
    (
        "the time for something at the end of a process, a connection or a file that nobody waits for",
        &[
            "models/src/http.rs TRAILER_WAIT",
            "agent/src/store/remove.rs DRAFT_AGE",
            "admin/src/conversations/driver.rs SHUTDOWN_TIME",
            "admin/src/conversations/driver.rs SUSPEND_TIME",
            "files/src/lib.rs STALE_AGE",
            "server/src/http/connection.rs FAREWELL",
            "server/src/http/connection.rs UNUSED",
            "audit/src/otlp.rs LAST",
            "hub/src/lifecycle/policy.rs START_DELAY",
            "client/src/transport/process.rs OUTLIVED",
            "client/src/transport/stdio.rs LAST_WORDS",
        ],
    ),
    (
        "a request on this machine, or one behind which a longer limit stands",
        &[
            "consort/src/recording.rs PATIENCE",
            "consort/src/command/service/systemctl.rs LIMIT",
            "models/src/selection/ollama.rs BYTES",
            "models/src/selection/ollama.rs LONGEST",
            "consort/src/admin_client.rs REPLY_BYTES",
            "consort/src/browser.rs REQUEST",
            "audit/src/ledger/read.rs BUSY",
            "audit/src/otlp/post.rs LARGEST",
            "hub/src/managed/reading.rs PROBE",
            "hub/src/lifecycle/policy.rs SUBSCRIBE_WAIT",
        ],
    ),
    (
        "the size of a text that is shown, compared or reported",
        &[
            "models/src/error_classifier.rs LONGEST",
            "agent/src/recording/redact.rs SHORTEST",
            "consort/src/command/doctor.rs LONGEST_NAME",
            "config/src/syntax.rs MOST_ERRORS",
            "audit/src/live_calls/call.rs LONGEST",
            "models/src/dialect/loss.rs LONGEST",
            "shape/src/pin/diff.rs MOST_COMPARED",
            "shape/src/policy/approval.rs LONGEST_SHAPE",
            "shape/src/policy/condition/check.rs LONGEST",
            "shape/src/scan.rs MOST_FINDINGS",
            "shape/src/scan.rs MOST_SHOWN",
        ],
    ),
    (
        "a parameter of an algorithm, a format or another's interface",
        &[
            "config/src/duration.rs SHORTEST",
            "config/src/read/aether.rs TIMEOUT",
            "config/src/server/partial.rs MOST_SECONDS",
            "core/src/elicitation/punycode.rs LEAST",
            "core/src/elicitation/punycode.rs MOST",
            "server/src/socket/strict_heads.rs LONGEST",
            "protocol/src/trace.rs MOST_MEMBERS",
            "hub/src/schema/checker.rs AUTOMATON_BYTES",
            "hub/src/schema/checker.rs PART_BYTES",
            "hub/src/schema/checker.rs PROGRAM_BYTES",
            "hub/src/schema/checker.rs STATE_BYTES",
            "models/src/dialect.rs DEPTH",
            "models/src/dialect/openapi.rs DEPTH",
            "models/src/dialect/openapi.rs LARGEST",
            "models/src/dialect/provider.rs MAX_OPTION_BYTES",
            "models/src/dialect/strict.rs DEPTH",
            "search/src/cyrillic.rs SHORTEST",
            "search/src/english.rs LONGEST_STOP",
            "search/src/rank.rs SHORTEST_HALF",
            "search/src/tokenizer.rs LONGEST",
            "models/src/tokens.rs LONGEST",
            "protocol/src/headers.rs SCHEMA_DEPTH",
            "client/src/transport.rs WAITING",
            "client/src/transport/proxy.rs LONGEST",
            "client/src/platform/keeper/channel.rs REPORT_BYTES",
        ],
    ),
];

#[test]
fn the_table_of_fixed_limits_is_what_the_code_says() {
    let mut table =
        "| limit | value | when exceeded | why it is fixed |\n|---|---|---|---|\n".to_owned();
    for (file, name, reached, why) in FIXED {
        let limit = constant(file, name);
        let about = limit.about.trim_end_matches('.').replace('|', "\\|");
        writeln!(table, "| {about} | {} | {reached} | {why} |", limit.value).unwrap();
    }
    hold("docs/limits.md", "fixed", &table);
}

#[test]
fn every_constant_that_is_named_like_a_limit_has_a_key_or_a_reason() {
    let others = OTHERS.iter().flat_map(|(_, names)| *names).map(|name| (*name).to_owned());
    let fixed = FIXED.iter().map(|(file, name, ..)| format!("{file} {name}"));
    let known: Vec<String> = fixed.chain(others).collect();
    let listed: BTreeSet<&String> = known.iter().collect();
    assert_eq!(listed.len(), known.len(), "a constant is listed twice");
    let found = limit_constants();
    let new: Vec<&String> = found.iter().filter(|name| !listed.contains(name)).collect();
    assert!(
        new.is_empty(),
        "make each a field of its crate's settings with a key in config/src/limits, or list it here with a \
         reason: {new:#?}"
    );
    let gone: Vec<&&String> = listed.iter().filter(|name| !found.contains(**name)).collect();
    assert!(gone.is_empty(), "these are no longer there: {gone:#?}");
}
