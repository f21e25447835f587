//! The table of limits: values and meanings from the code, and what happens at each.

use std::fmt::Write as _;

use testkit::docs::hold;

use crate::source::constant;

/// A limit: its file, its name there, where it is set, and what happens when it is reached.
type Row = (&'static str, &'static str, &'static str, &'static str);

/// Nobody sets it.
const FIXED: &str = "fixed";
/// In Rust only.
const RUST: &str = "`wire::Limits`";
const TIMES: &str = "`wire::Times`";
const GATEWAY: &str = "`gateway::Limits`";

const WIRE: &str = "wire/src/limits.rs";
const KEEPER: &str = "wire/src/keeper_times.rs";
const OPTIONS: &str = "consort/src/config/options.rs";
const SERVE: &str = "gateway/src/settings.rs";
const SCHEMAS: &str = "hub/src/schema/limits.rs";
const LISTS: &str = "hub/src/limits.rs";
const RUN: &str = "agent/src/limits.rs";
const PATIENCE: &str = "agent/src/provider/patience.rs";
const READER: &str = "agent/src/provider/reader.rs";
const SEARCH: &str = "shape/src/search.rs";
const LEDGER: &str = "gateway/src/ledger.rs";

const SECTIONS: &[(&str, &[Row])] = &[
    ("A call", CALL),
    ("What a server may send", SENT),
    ("Keeping servers", KEEPING),
    ("Logging in at servers", LOGINS),
    ("Checking arguments", CHECKING),
    ("What clients may do", CLIENTS),
    ("The ledger, metrics and traces", RECORDS),
    ("What a model sees", SEEN),
    ("People", PEOPLE),
    ("Results kept here", RESULTS),
    ("A run of a model", RUNS),
    ("Providers of models", PROVIDERS),
    ("Files", FILES),
    ("The console", CONSOLE),
];

const CALL: &[Row] = &[
    (
        WIRE,
        "idle",
        "`timeout.idle`, `--idle`",
        "the call ends (exit code 4; through a gateway, outcome unknown), and its server is told",
    ),
    (WIRE, "total", "`timeout.total`, `--total`", "the same"),
    (WIRE, "pipe_calls", RUST, "further calls wait"),
    (WIRE, "http_calls", RUST, "further calls wait"),
    (WIRE, "queued_calls", RUST, "`overloaded`; nothing was sent"),
    (WIRE, "queue", TIMES, "`overloaded`; nothing was sent"),
    (WIRE, "room", "`limits.memory_wait`", "the call ends: `outcome_unknown`"),
    (
        WIRE,
        "shared_room",
        "`limits.shared_memory_wait`",
        "the same; the answer is skipped, and other calls go on",
    ),
    (WIRE, "questions", RUST, "the server's question is refused"),
    (WIRE, "rounds", RUST, "the call ends with an error"),
    (WIRE, "call_events", RUST, "the oldest progress is dropped, and how many is told (`skipped`)"),
    (WIRE, "call_event_bytes", RUST, "the same"),
    ("hub/src/lines.rs", "LINES", FIXED, "one that nobody uses gives way, else `overloaded`"),
    ("hub/src/lines.rs", "UNUSED", FIXED, "it is closed, and its program ends"),
    ("wire/src/client/task.rs", "ATTEMPTS", FIXED, "the outcome is unknown"),
    ("gateway/src/tasks.rs", "PAGES", FIXED, "`tasks/list` is an error"),
    (
        "gateway/src/tasks.rs",
        "CAPABILITIES",
        FIXED,
        "the task is asked for on the connection of whoever asks",
    ),
    (
        "gateway/src/tasks/inputs.rs",
        "FIRST_QUESTION",
        FIXED,
        "the task is `working` until its question is there",
    ),
];

const SENT: &[Row] = &[
    (
        WIRE,
        "message_bytes",
        RUST,
        "the message is skipped, and the call it answers ends with an error",
    ),
    (WIRE, "skipped_bytes", RUST, "the connection is reset; calls on it are `outcome_unknown`"),
    (
        "wire/src/json/scan.rs",
        "DEPTH",
        FIXED,
        "the call that the message answers ends with an error",
    ),
    (WIRE, "malformed_messages", RUST, "the connection is given up, and made again after a pause"),
    (WIRE, "pages", RUST, "the list is refused as a whole; the last good one stays"),
    (WIRE, "items", RUST, "the same"),
    (WIRE, "list_bytes", RUST, "the same"),
    (WIRE, "list", TIMES, "the same"),
    (WIRE, "definition_bytes", RUST, "the tool is left out, and a problem says so"),
    (WIRE, "notices", RUST, "the oldest are dropped; lists are read again"),
    (WIRE, "stderr_bytes", RUST, "the oldest bytes are dropped"),
    (WIRE, "head_bytes", RUST, "the response is an error"),
    (
        "wire/src/transport/http.rs",
        "REDIRECTS",
        FIXED,
        "an error; elsewhere than on its own origin none is followed",
    ),
];

const KEEPING: &[Row] = &[
    (
        "consort/src/config/installer.rs",
        "INSTALL",
        "`timeout.install`",
        "the start has failed; it is tried again",
    ),
    ("hub/src/connection/keep.rs", "NOTICE", FIXED, "it is said that a package may be fetched"),
    (WIRE, "connect", TIMES, "the server cannot be reached, and is tried again"),
    (WIRE, "handshake", "`timeout.connect`", "the same"),
    (WIRE, "probe", TIMES, "it is taken for a legacy server if it then answers `initialize`"),
    (WIRE, "listen", TIMES, "we go on without its stream"),
    ("wire/src/late.rs", "LATE", FIXED, "a limit that fires so late counts after the time below"),
    ("wire/src/late.rs", "GRACE", FIXED, "the limit counts, if nothing had arrived"),
    (
        "wire/src/transport/resume.rs",
        "STOPPED",
        FIXED,
        "connections are checked as after a sleep of the computer",
    ),
    (
        "wire/src/transport/resume.rs",
        "CHECK",
        FIXED,
        "after a resume: the peer is asked whether it lives, twice, then the connection is broken",
    ),
    ("wire/src/transport/resume.rs", "CHECKING", FIXED, "connections are checked as usual again"),
    (WIRE, "resume", TIMES, "the stream is asked for again"),
    (WIRE, "resume_most", TIMES, "the pause grows no longer"),
    (WIRE, "resumes", RUST, "the outcome is unknown"),
    (WIRE, "keep_alive", TIMES, "the connection is closed"),
    (WIRE, "idle_connections", RUST, "one more is closed"),
    (WIRE, "idle_connection", TIMES, "it is closed"),
    (WIRE, "close", TIMES, "SIGTERM to it and all that it started"),
    (WIRE, "terminate", TIMES, "SIGKILL to it and all that it started"),
    (KEEPER, "close", "`limits.orphan_close`", "SIGTERM to it and all that it started"),
    (KEEPER, "terminate", "`limits.orphan_terminate`", "SIGKILL to it and all that it started"),
    (
        KEEPER,
        "reply",
        "`limits.keeper_reply`",
        "the server is unreachable; the connection is retried",
    ),
    (KEEPER, "kill", "`limits.kill_wait`", "they are left to the kernel"),
    ("hub/src/connection/backoff.rs", "FIRST", FIXED, "the server is tried again"),
    ("hub/src/connection/backoff.rs", "LONGEST", FIXED, "the pause grows no longer"),
    ("hub/src/connection/backoff.rs", "FAILURES", FIXED, "it is left alone for the time below"),
    (
        "hub/src/connection/backoff.rs",
        "OPEN",
        FIXED,
        "it is tried once; if that fails, twice as long, up to 10 min",
    ),
    ("hub/src/connection/backoff.rs", "STEADY", FIXED, "the pause is the first again"),
    ("hub/src/connection/backoff.rs", "RECOVERED", FIXED, "earlier failures are forgotten"),
    ("hub/src/connection.rs", "PATIENCE", FIXED, "the call ends: not sent"),
    (
        LISTS,
        "wait",
        "`limits.list_wait`",
        "the list has what is known; clients are told when there is more, and none waits for this server again",
    ),
    (
        LISTS,
        "server_wait",
        "`limits.server_wait`",
        "the run begins without its tools; the call is not sent: the server cannot be reached",
    ),
    (
        LISTS,
        "max_age",
        "`limits.list_max_age`",
        "it is read again, also where its server tells of changes",
    ),
    (
        LISTS,
        "min_age",
        "`limits.list_min_age`",
        "it is not read again before; an unknown name stays unknown",
    ),
    (LISTS, "change_wait", "`limits.list_change_wait`", "the call is not sent"),
    ("hub/src/settings.rs", "STREAM_PING", "`limits.stream_ping`", "the server is pinged"),
    ("hub/src/connection/refresh.rs", "GAP", FIXED, "changes in between are one"),
    (
        "hub/src/connection/refresh.rs",
        "FAILED",
        FIXED,
        "it is read again; the server is `degraded` until then",
    ),
];

const LOGINS: &[Row] = &[
    ("login/src/fetch.rs", "TIME", FIXED, "the login fails"),
    ("login/src/fetch.rs", "BYTES", FIXED, "the login fails"),
    ("login/src/fetch.rs", "REDIRECTS", FIXED, "the login fails"),
    ("consort/src/logins.rs", "PATIENCE", FIXED, "`consort login` ends; nothing is kept"),
    ("login/src/kept.rs", "PATIENCE", FIXED, "the server cannot be reached, and is tried again"),
    ("login/src/login.rs", "ASKED", FIXED, "the server `needs auth`"),
];

const CHECKING: &[Row] = &[
    ("hub/src/schema.rs", "MOST_BYTES", FIXED, "arguments are not checked here; the server checks"),
    ("hub/src/schema/measure.rs", "MOST_DEPTH", FIXED, "the same"),
    ("hub/src/schema/measure.rs", "MOST_CHAIN", FIXED, "the same"),
    ("hub/src/schema/measure.rs", "MOST_SUBSCHEMAS", FIXED, "the same"),
    (SCHEMAS, "patterns", "`limits.schema_patterns`", "the same"),
    (SCHEMAS, "pattern_states", "`limits.pattern_states`", "the same"),
    (SCHEMAS, "schema_states", "`limits.schema_states`", "the same"),
    (SCHEMAS, "wait", "`limits.schema_wait`", "the same, for this call"),
    (SCHEMAS, "compiled_bytes", "`limits.schema_bytes`", "it is compiled again when it is needed"),
    (SCHEMAS, "entries", "`limits.schema_entries`", "the same"),
    (
        "hub/src/schema/work.rs",
        "MOST",
        FIXED,
        "these arguments are not checked here; the server checks",
    ),
    ("hub/src/schema.rs", "MOST_PROBLEMS", FIXED, "further problems are not told"),
];

const CLIENTS: &[Row] = &[
    (SERVE, "body_bytes", GATEWAY, "413; on standard input an error"),
    (SERVE, "body", GATEWAY, "408"),
    (SERVE, "head", GATEWAY, "408; a connection without a request is closed"),
    (SERVE, "linger", "`[consort.serve] linger`", "the connection is closed"),
    (SERVE, "linger_bytes", "`[consort.serve] linger_bytes`", "the connection is closed"),
    ("gateway/src/http.rs", "HEADERS", FIXED, "431"),
    (SERVE, "connections", GATEWAY, "further ones get 503 and `Retry-After` at once"),
    (
        SERVE,
        "reserved_descriptors",
        "`limits.reserved_descriptors`",
        "further connections wait to be accepted",
    ),
    (
        SERVE,
        "reserved_descriptor_hold",
        "`limits.reserved_descriptor_hold`",
        "the connection is closed",
    ),
    (
        SERVE,
        "sessions",
        GATEWAY,
        "one unused for a thirtieth of the time below gives way; else 503 for a new one",
    ),
    (SERVE, "session", GATEWAY, "the session ends; a request with it is a 404"),
    (SERVE, "parked", GATEWAY, "the question is refused, and the call ends with an error"),
    (SERVE, "park", GATEWAY, "the call is cancelled at its server"),
    (
        SERVE,
        "held_bytes",
        "`limits.held_bytes`",
        "reading waits; what is below 64 KiB does not count, and one message more is read if nothing else moves",
    ),
    (SERVE, "stalled", GATEWAY, "the connection is closed, and its calls are cancelled"),
    (SERVE, "silence", GATEWAY, "a comment is sent on the stream"),
    (SERVE, "changes", GATEWAY, "changes in between are told as one"),
    (
        SERVE,
        "list_wait",
        "`limits.list_wait`",
        "lists have what is known by then, and clients are told when there is more",
    ),
    (SERVE, "name_grace", "`[consort.serve] name_grace`", "the names are free for others"),
    (
        "consort/src/command/serve/settings.rs",
        "LAME_DUCK",
        "`--lame-duck`, `[consort.serve] lame_duck`",
        "the gateway drains",
    ),
    (
        SERVE,
        "metrics_connections",
        "`[consort.serve] metrics_connections`",
        "a further one is closed at once",
    ),
    ("consort/src/command/serve/sockets.rs", "MOST", FIXED, "the gateway does not start"),
    (SERVE, "drain", GATEWAY, "what is left is cancelled"),
    ("gateway/src/menu.rs", "PAGE", FIXED, "`nextCursor` says where it goes on"),
    ("gateway/src/session.rs", "NOTICES", FIXED, "the oldest are dropped"),
    ("gateway/src/naming.rs", "LONGEST", FIXED, "the name is cut and gets a hash"),
    ("consort/src/token.rs", "SHORTEST", FIXED, "a shorter token is refused when it starts"),
    ("consort/src/command/serve/http.rs", "THREADS", "`--threads`", "requests share them"),
];

const RECORDS: &[Row] = &[
    (LEDGER, "size", "`serve.ledger_bytes`", "the oldest records go, behind a checkpoint"),
    (LEDGER, "queue", "`LedgerSettings`", "further ones are lost, counted, and told in the ledger"),
    (LEDGER, "gather", "`LedgerSettings`", "they are written"),
    ("gateway/src/ledger/record.rs", "LONGEST", FIXED, "the text is cut"),
    (
        "gateway/src/lines.rs",
        "REFUSED_NAME_CHARS",
        "`limits.refused_name_chars`",
        "the rest of the name is not recorded",
    ),
    ("gateway/src/metrics.rs", "MOST_SERVERS", FIXED, "further ones are `other`"),
    ("gateway/src/metrics/models.rs", "MOST_MODELS", FIXED, "further ones are `other`"),
    (
        "gateway/src/metrics/tools.rs",
        "MOST_TOOLS",
        "`limits.metric_tools`",
        "further ones are `other`",
    ),
    (
        "gateway/src/lines.rs",
        "LINES_PER_SECOND",
        "`limits.log_lines`",
        "further ones are left out, counted, and the count is logged",
    ),
    ("gateway/src/guard.rs", "LOGGED", FIXED, "the rest of the text is not logged"),
    ("gateway/src/ledger/chain.rs", "MOST_DROPPED", FIXED, "the rest goes in further steps"),
    (
        "gateway/src/ledger/damage.rs",
        "CHECKED",
        FIXED,
        "earlier ones are checked by `ledger verify`",
    ),
    ("gateway/src/ledger/damage.rs", "LARGEST", FIXED, "only the last records are checked"),
    (
        "wire/src/transport/live.rs",
        "LINES_PER_SECOND",
        FIXED,
        "further ones are left out, and counted",
    ),
    ("wire/src/transport/live.rs", "LONGEST", FIXED, "it is logged as several"),
    ("gateway/src/trace.rs", "LONGEST_STATE", FIXED, "it is not passed on"),
    ("gateway/src/trace.rs", "LONGEST_BAGGAGE", FIXED, "it is not passed on"),
];

const SEEN: &[Row] = &[
    (
        "shape/src/exposure/spec.rs",
        "BUDGET",
        "`exposure.budget`",
        "`per-server` or `search` instead of every tool",
    ),
    ("shape/src/exposure/spec.rs", "NAMES", "`exposure.names`", "the others are counted"),
    ("shape/src/exposure/find.rs", "NAMES", FIXED, "words find the others"),
    ("shape/src/exposure/per_server.rs", "PAGE", FIXED, "`next_cursor` says where it goes on"),
    ("shape/src/exposure/per_server.rs", "PAGE_BYTES", FIXED, "the same"),
    ("shape/src/exposure/find.rs", "USUAL", "`limit` of `find_tools`", "the best are told"),
    ("shape/src/exposure/find.rs", "MOST", FIXED, "a larger `limit` is this"),
    (SEARCH, "query_bytes", FIXED, "the rest of the query is not read"),
    (SEARCH, "query_words", FIXED, "the same"),
    (SEARCH, "hits", FIXED, "the best are told"),
    (SEARCH, "field_words", FIXED, "the rest of the text is not searched"),
    (
        "shape/src/dialect.rs",
        "LARGEST",
        FIXED,
        "the provider is told of any object; the server's schema still holds",
    ),
];

const PEOPLE: &[Row] = &[
    ("shape/src/guarded.rs", "ANSWER", FIXED, "denied"),
    ("shape/src/policy/form.rs", "SHOWN", FIXED, "the middle is left out, and that is said"),
    ("shape/src/policy/form.rs", "EDITABLE", FIXED, "they can be approved or denied, not changed"),
    ("shape/src/policy/approval.rs", "MOST", FIXED, "people are asked again"),
];

const RESULTS: &[Row] = &[
    ("shape/src/cached.rs", "RESULTS", FIXED, "the oldest gives way"),
    ("shape/src/cached.rs", "BYTES", FIXED, "the same"),
    ("shape/src/cached.rs", "LARGEST", FIXED, "a larger one is not remembered"),
    ("shape/src/aside.rs", "BYTES", FIXED, "the oldest gives way"),
    ("shape/src/aside.rs", "TIME", FIXED, "it is gone"),
];

const RUNS: &[Row] = &[
    (RUN, "turns", "`--max-turns`, `max_turns`", "`limit_reached` (exit code 8)"),
    (RUN, "calls", "`--max-calls`, `max_calls`", "the same"),
    (RUN, "tokens", "`--max-tokens`, `max_tokens`", "the same"),
    (RUN, "cost", "`--max-cost`, `max_cost`", "the same"),
    (RUN, "time", "`--max-time`, `max_time`", "the same"),
    (RUN, "repeats", "`agent::Limits`", "the same"),
    ("agent/src/sub/ask.rs", "DEEPEST", FIXED, "the call is answered with an error"),
    ("agent/src/agent/call.rs", "TRIES", FIXED, "the model is told that it failed"),
    (
        "agent/src/settings.rs",
        "CONTEXT_TRIES",
        "`agents.NAME.context_tries`",
        "the run ends with the error of the provider",
    ),
    (
        "agent/src/settings.rs",
        "SUMMARY_TOKENS",
        "`agents.NAME.summary_tokens`",
        "the summary ends there",
    ),
    ("agent/src/agent/shorter.rs", "SUMMARIZED_BYTES", FIXED, "the rest of it is not summarized"),
    ("agent/src/agent/shorter.rs", "SUMMARIZED_TOGETHER", FIXED, "earlier ones are not summarized"),
    ("agent/src/agent/shorter.rs", "LEAST_RESULT", FIXED, "a shorter result is shown whole"),
    ("agent/src/provider/gemini/partial.rs", "DEEPEST", FIXED, "the answer is refused as broken"),
    ("agent/src/provider/gemini/partial.rs", "LARGEST_INDEX", FIXED, "the same"),
    (
        "agent/src/agent/sampling.rs",
        "ANSWER",
        FIXED,
        "the answer is cut there by the model's provider",
    ),
    ("consort/src/talk/setup.rs", "SAMPLING", FIXED, "further questions of servers are refused"),
    (
        "agent/src/openai/handed.rs",
        "MOST",
        FIXED,
        "the oldest is forgotten: what was done before it is not put back",
    ),
];

const PROVIDERS: &[Row] = &[
    (PATIENCE, "connect", "`Patience`", "asked again"),
    (PATIENCE, "silence", "`silence`", "asked again, if nothing was handed out yet"),
    (PATIENCE, "silence_whole", "`Patience`", "asked again"),
    (PATIENCE, "tries", "`tries`", "the error is told"),
    (PATIENCE, "longest_wait", "`Patience`", "the error is told, with how long the provider wants"),
    (READER, "answer_bytes", "`provider::Limits`", "the answer is refused"),
    (READER, "event_bytes", "`provider::Limits`", "the same"),
    (READER, "argument_bytes", "`provider::Limits`", "the same"),
    (READER, "calls", "`provider::Limits`", "the same"),
    (READER, "events", "`provider::Limits`", "the same"),
];

const FILES: &[Row] = &[
    ("consort/src/config/resolve.rs", "LARGEST", FIXED, "the server does not start"),
    ("consort/src/lock.rs", "LARGEST", FIXED, "it is refused"),
    ("consort/src/agents.rs", "LARGEST", FIXED, "the agent is left out"),
    ("core/src/name.rs", "LONGEST", FIXED, "another name is derived, and said"),
    ("consort/src/config/read/agents.rs", "LONGEST", FIXED, "the agent is left out"),
    ("agent/src/store/line.rs", "LARGE_DATA", FIXED, "it is kept once, beside the conversation"),
    ("agent/src/store/line.rs", "LARGE_TEXT", FIXED, "the same"),
    (
        OPTIONS,
        "poll",
        "`limits.config_poll`",
        "a change that two looks in a row see alike is taken over",
    ),
    (OPTIONS, "timeout", "`limits.reload_timeout`", "the request fails"),
    (OPTIONS, "queue", "`limits.reload_queue`", "further requests wait to be queued"),
    (OPTIONS, "logged", "`limits.scan_findings`", "further findings of it are not logged"),
    (OPTIONS, "remembered", "`limits.scan_definitions`", "all are forgotten, and logged again"),
    ("consort/src/command/chat/editor.rs", "HISTORY", FIXED, "the oldest is forgotten"),
];

const CONSOLE: &[Row] = &[
    (
        SERVE,
        "browser_sessions",
        "`[consort.serve] max_browser_sessions`",
        "the session unused for longest ends",
    ),
    (
        SERVE,
        "browser_session_idle",
        "`[consort.serve] browser_session_idle`",
        "the session ends; the token is asked for again",
    ),
    (SERVE, "browser_session_lifetime", "`[consort.serve] browser_session_lifetime`", "the same"),
    ("consort/src/console/conversations/runs.rs", "MOST", FIXED, "a further one is refused"),
    ("gateway/src/feed.rs", "RING", FIXED, "the oldest is found in the ledger only"),
    ("gateway/src/feed.rs", "BEHIND", FIXED, "the oldest are left out, and counted"),
    (
        "consort/src/console/calls.rs",
        "LOOK",
        FIXED,
        "the page ends there, and says where it goes on",
    ),
];

#[test]
fn the_table_of_limits_is_what_the_code_says() {
    let mut table = String::new();
    for (heading, rows) in SECTIONS {
        writeln!(
            table,
            "\n## {heading}\n\n| limit | default | set by | when it is reached |\n|---|---|---|---|"
        )
        .unwrap();
        for (file, name, set, reached) in *rows {
            let limit = constant(file, name);
            let about = limit.about.trim_end_matches('.').replace('|', "\\|");
            writeln!(table, "| {about} | {} | {set} | {reached} |", limit.value).unwrap();
        }
    }
    hold("docs/limits.md", "limits", &table);
}

#[test]
fn what_is_read_from_the_sources_is_what_is_in_force() {
    let (limits, times) = (consort_wire::Limits::table(), consort_wire::Times::table());
    for (name, value, about) in limits.iter().chain(&times) {
        let read = constant(WIRE, name);
        assert_eq!(read.about, *about);
        let listed = SECTIONS.iter().flat_map(|(_, rows)| *rows);
        let listed = listed.filter(|(file, known, ..)| *file == WIRE && known == name).count();
        assert_eq!(listed, 1, "`{name}` is in the table {listed} times");
        assert!(!value.is_empty());
    }
    assert_eq!(constant(WIRE, "message_bytes").value, "16 MiB");
    assert_eq!(consort_wire::Limits::default().message_bytes, 16 << 20);
    assert_eq!(constant(WIRE, "idle").value, "1 min");
    assert_eq!(consort_wire::Times::default().idle, std::time::Duration::from_mins(1));
}
