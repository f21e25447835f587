//! Limits of servers: calls, messages, connections, input schemas.

use super::declare::{DAY, GIB, HOUR, KIB, LimitField, MIB, MINUTE};
use super::{LimitSpec, LimitUnit};

/// Limits of a call.
pub(super) const CALLS: &[LimitSpec] = limits! {
    /// Maximum concurrent calls on one stdio or HTTP+SSE connection.
    connection_calls = client.pipe_calls, Count(1..=65_536), "further calls are queued";
    /// Maximum concurrent calls to one Streamable HTTP server.
    http_calls = client.http_calls, Count(1..=65_536), "further calls are queued";
    /// Maximum queued calls of one server; fewer if its calls end too slowly.
    queued_calls = client.queued_calls, Count(1..=1_000_000), "the call fails as `overloaded`; nothing was sent";
    /// Time that a call may be queued.
    queue_wait = times.queue, Time(1..=30 * DAY), "the call fails as `overloaded`; nothing was sent";
    /// Time that a large result waits for memory on a connection without other calls.
    memory_wait = times.room, Time(1..=HOUR), "the call fails: `outcome_unknown`";
    /// Time that a large result waits for memory on a connection shared with other calls.
    shared_memory_wait = times.shared_room, Time(1..=HOUR),
        "the call fails: `outcome_unknown`; its result is skipped, and other calls continue";
    /// Maximum pending requests of a server (elicitation, sampling, roots).
    server_requests = client.questions, Count(1..=4_096), "the server's request is refused";
    /// Maximum rounds of `input_required` within one call.
    input_rounds = client.rounds, Count(1..=1_000), "the call fails";
    /// Events of a call queued for its reader.
    call_events = client.call_events, Count(1..=1_000_000),
        "the oldest progress is dropped and counted (`skipped`)";
    /// Bytes of events of a call queued for its reader.
    call_event_bytes = client.call_event_bytes, Bytes(KIB..=GIB),
        "the oldest progress is dropped and counted (`skipped`)";
    /// Consecutive failures to read the status of a task.
    task_attempts = client.task_attempts, Count(1..=1_000), "the outcome is unknown";
    /// Maximum connections to one legacy server, one for each identity and set of client capabilities.
    identity_connections = upkeep.identities, Count(1..=65_536),
        "an unused connection of the identity with the most is closed; else the call waits, identities in turn";
    /// Idle timeout of such a connection.
    identity_connection_idle = upkeep.identity_idle, Time(1..=30 * DAY), "the connection is closed and its process stopped";
    /// Time that a call keeps such a connection while it waits for its client and other calls wait for a connection.
    answer_hold = upkeep.answer_hold, Time(1..=DAY), "the connection is closed; the call is `outcome_unknown`";
    /// Time that a call waits for a server whose connection is about to be retried.
    retry_wait = upkeep.retry_wait, Time(0..=HOUR), "the call fails; nothing was sent";
    /// Delay after which an expired timeout counts as late, because the process or the computer was suspended.
    late_after = times.late.after, Time(1..=HOUR), "the timeout takes effect only after `late_grace`";
    /// Time to read messages that arrived in the meantime before a late timeout takes effect.
    late_grace = times.late.grace, Time(0..=HOUR), "the timeout takes effect, if nothing arrived";
};

/// Limits of messages and lists.
pub(super) const MESSAGES: &[LimitSpec] = limits! {
    /// Maximum size of one message of a server, on every transport, counted while reading.
    message_bytes = client.message_bytes, Bytes(64 * KIB..=GIB),
        "the message is skipped, and the call it responds to fails";
    /// Bytes of an oversized message that are skipped to reach the next one.
    skipped_bytes = client.skipped_bytes, Bytes(0..=16 * GIB),
        "the connection is reset; calls on it are `outcome_unknown`";
    /// Maximum malformed messages within 10 seconds.
    malformed_messages = client.malformed_messages, Count(1..=1_000_000),
        "the connection is closed and retried with backoff";
    /// Maximum pages of a server's listing.
    list_pages = client.pages, Count(1..=100_000), "the listing is rejected; the last valid one stays in use";
    /// Maximum items of a server's listing.
    list_items = client.items, Count(1..=1_000_000), "the listing is rejected; the last valid one stays in use";
    /// Maximum size of a server's listing, all pages together.
    list_bytes = client.list_bytes, Bytes(KIB..=GIB), "the listing is rejected; the last valid one stays in use";
    /// Time to read a server's listing, all pages together.
    list_timeout = times.list, Time(1..=HOUR), "the listing is rejected; the last valid one stays in use";
    /// Maximum size of one definition in a listing.
    definition_bytes = client.definition_bytes, Bytes(KIB..=64 * MIB), "the tool is omitted and reported as a problem";
    /// Maximum queued notifications of a server.
    server_notifications = client.notices, Count(1..=1_000_000), "the oldest are dropped; listings are read again";
    /// Bytes of a server's standard error kept to explain a failure.
    stderr_bytes = client.stderr_bytes, Bytes(256..=64 * MIB), "the oldest bytes are dropped";
    /// Maximum lines per second of one server's standard error in the log, if `log_server_output` is `live`.
    stderr_lines = client.stderr_lines, Count(1..=1_000_000), "further lines are dropped and counted";
    /// Maximum length of a line of a server's standard error in the log and in its log file.
    stderr_line_bytes = client.stderr_line_bytes, Bytes(64..=MIB), "the line is split";
    /// Size of a server's log file (`consort logs`); 0 writes none.
    server_log_bytes = server_logs.file_bytes, Bytes(0..=GIB), "the file is rotated; the one before it is kept";
    /// Maximum lines per second of a server's standard error in its log file.
    server_log_lines = client.log_lines, Count(1..=1_000_000), "further lines are dropped and counted";
    /// Maximum lines of a server that wait to be written to its log file.
    server_log_queue = server_logs.queued_lines, Count(1..=1_000_000), "further lines are dropped and counted";
    /// Maximum redirects of one request within the server's origin, and maximum authentication retries.
    redirects = client.redirects, Count(0..=100), "the request fails; redirects to other origins are never followed";
    /// Maximum size of the head of an HTTP response.
    response_head_bytes = client.head_bytes, Bytes(4 * KIB..=16 * MIB), "the request fails";
    /// Time that a client's list request waits for a server that is starting and has no cached listing. `initialize`
    /// never waits.
    list_wait = lists.wait, Time(0..=HOUR),
        "the listing omits the server; clients get `list_changed` when it is ready, and later requests do not wait for it";
    /// Time that an agent's run, or a call that names no server, waits for servers that are starting.
    server_wait = lists.server_wait, Time(0..=HOUR),
        "the run starts without its tools; the call fails: the server is unreachable";
    /// Maximum age of a server's listings, unless the server set a longer TTL.
    list_max_age = lists.max_age, Time(100..=DAY), "the listings are read again, even if the server announces changes";
    /// Minimum interval between two reads of a server's listing caused by a list request or an unknown name.
    list_min_age = lists.min_age, Time(1..=DAY), "the cached listing is used; an unknown name stays unknown";
    /// Time that a call under a lock waits for definitions that its server announced as changed.
    list_change_wait = lists.change_wait, Time(0..=HOUR), "the call fails; nothing was sent";
    /// Minimum interval between two reads of a server's listing caused by `list_changed`; it doubles for a
    /// server that announces changes all the time.
    list_gap = upkeep.list_gap, Time(1..=HOUR), "changes in between are merged";
    /// Maximum interval between two such reads.
    list_gap_max = upkeep.list_gap_longest, Time(1..=DAY), "the listing is read again";
    /// Minimum TTL of a listing whose server sets a TTL and does not announce changes.
    list_fresh = upkeep.list_fresh, Time(1..=DAY), "the listing is read again";
    /// Delay before a failed read of a listing is repeated.
    list_retry = upkeep.list_retry, Time(1..=DAY), "the listing is read again; the server is `degraded` until then";
    /// Maximum cached variants of one server's listings: one for each set of client capabilities, and for each
    /// identity that gets a different listing.
    list_variants = lists.variants, Count(1..=65_536),
        "the least recently used variant is dropped; its clients see the main listing until theirs is read again";
};

/// Limits of connections to servers.
pub(super) const CONNECTIONS: &[LimitSpec] = limits! {
    /// Time to connect by TCP, including the TLS handshake; at most `timeout.connect` of the server.
    tcp_connect = times.connect, Time(1..=HOUR), "the connection fails and is retried with backoff";
    /// Time for a stdio server to respond to `server/discover` before `initialize` is sent as well.
    discover_wait = times.probe, Time(1..=HOUR), "a server that then responds to `initialize` is treated as legacy";
    /// Time for a legacy HTTP server to open its event stream (GET).
    event_stream_wait = times.listen, Time(1..=HOUR), "the connection continues without the stream";
    /// Backoff before a broken event stream is resumed, unless the server sets `retry`; it doubles.
    resume_pause = times.resume, Time(1..=HOUR), "the stream is requested again";
    /// Maximum backoff before a broken event stream is resumed, even if the server sets a longer `retry`.
    resume_pause_max = times.resume_most, Time(1..=DAY), "the backoff stops growing";
    /// Maximum consecutive attempts to resume an event stream without receiving new events.
    resume_attempts = client.resumes, Count(1..=1_000), "the outcome is unknown";
    /// Idle time before TCP keepalive probes the peer; the connection fails after three times that.
    tcp_keepalive = times.keep_alive, Time(1_000..=DAY), "the connection is closed";
    /// TCP keepalive time right after the computer resumed from suspend.
    resume_check = times.resume_check, Time(1_000..=HOUR), "the peer is probed twice, then the connection fails";
    /// Time after a resume during which `resume_check` applies.
    resume_checking = resumes.checking, Time(1_000..=HOUR), "`tcp_keepalive` applies again";
    /// Clock delay that is treated as a suspend of the process.
    resume_delay = resumes.stopped, Time(100..=HOUR), "connections are checked as after a resume";
    /// Interval of health checks of an idle server; 0 disables them.
    server_probe = server_probe, Time(0..=DAY), "the server is pinged";
    /// Idle time of a server's HTTP+SSE stream before a ping is sent, so that proxies keep it open; 0 disables
    /// it.
    stream_ping = stream_ping, Time(0..=DAY), "the server is pinged";
    /// Maximum idle HTTP connections to one server in the pool.
    idle_connections = client.idle_connections, Count(1..=65_536), "a further connection is closed";
    /// Idle time after which an HTTP connection is closed. Node and uvicorn close theirs after 5 seconds; a call sent at
    /// that moment would be lost.
    idle_connection_timeout = times.idle_connection, Time(1..=HOUR), "the connection is closed";
    /// Time for a stdio server to exit after its standard input was closed, before SIGTERM.
    stdin_close_wait = times.close, Time(0..=HOUR), "SIGTERM to the server and its child processes";
    /// Time for a stdio server to exit after SIGTERM, before SIGKILL.
    sigterm_wait = times.terminate, Time(0..=HOUR), "SIGKILL to the server and its child processes";
    /// Time for a stdio server to exit after Consort was killed, before SIGTERM.
    orphan_close = keeper.close, Time(0..=HOUR), "SIGTERM to the server and its child processes";
    /// Time for a stdio server to exit after that SIGTERM, before SIGKILL.
    orphan_terminate = keeper.terminate, Time(0..=HOUR), "SIGKILL to the server and its child processes";
    /// Time for a program that prints a value to end: `cmd:`, `keyring:` and `headersHelper`.
    secret_wait = times.secret, Time(1..=HOUR), "the program is killed; the connection fails and is retried with backoff";
    /// Maximum size of the value that such a program prints.
    secret_bytes = client.secret_bytes, Bytes(1..=MIB), "the program is killed; the connection fails and is retried with backoff";
    /// Time for the keeper process to start a stdio server.
    keeper_reply = keeper.reply, Time(1..=HOUR), "the start fails and is retried with backoff";
    /// Time to wait for the end of a stdio server's processes after SIGKILL.
    kill_wait = keeper.kill, Time(1..=10 * MINUTE), "Consort stops waiting for the processes";
    /// Time after which the status of a slow start mentions a possible package download.
    install_notice = upkeep.install_notice, Time(0..=HOUR), "the status mentions the download";
    /// Backoff after a server's first failure; it doubles.
    backoff = upkeep.first_pause, Time(1..=HOUR), "the connection is retried";
    /// Maximum backoff between two connection attempts.
    backoff_max = upkeep.longest_pause, Time(1..=DAY), "the backoff stops growing";
    /// Maximum backoff during the first minute in which a server refuses connections.
    backoff_refused = upkeep.refused_pause, Time(1..=HOUR), "the connection is retried";
    /// Failures of a server within a minute that open its circuit breaker.
    breaker_failures = upkeep.breaker_failures, Count(1..=10_000), "no connection attempts for `breaker_open`";
    /// Time that the circuit breaker first stays open; it doubles.
    breaker_open = upkeep.breaker_open, Time(1..=DAY), "one connection attempt is made";
    /// Maximum time that the circuit breaker stays open.
    breaker_open_max = upkeep.breaker_longest, Time(1..=DAY), "the time stops growing";
    /// Uptime after which the backoff is reset.
    steady_after = upkeep.steady, Time(1..=DAY), "the next failure starts with `backoff`";
    /// Uptime after which the circuit breaker is reset.
    recovered_after = upkeep.recovered, Time(1..=DAY), "earlier failures no longer count";
};

/// Limits of checking arguments against input schemas.
pub(super) const SCHEMAS: &[LimitSpec] = limits! {
    /// Maximum size of an input schema.
    schema_source_bytes = schemas.bytes, Bytes(1..=64 * MIB), "the gateway does not validate arguments; the server does";
    /// Maximum nesting depth of an input schema. Higher values need more stack.
    schema_depth = schemas.depth, Count(1..=120), "the gateway does not validate arguments; the server does";
    /// Maximum length of a chain of references in an input schema.
    schema_references = schemas.chain, Count(1..=200), "the gateway does not validate arguments; the server does";
    /// Maximum subschemas of an input schema, counting each reference.
    schema_parts = schemas.subschemas, Count(1..=10_000_000), "the gateway does not validate arguments; the server does";
    /// Maximum steps of a validation; 200,000 take about 0.1 s.
    schema_steps = schemas.steps, Count(1..=1_000_000_000), "the gateway does not validate these arguments; the server does";
    /// Maximum validation problems reported for one call.
    schema_problems = schemas.problems, Count(1..=1_000), "further problems are not reported";
    /// Maximum distinct regular expressions in one input schema.
    schema_patterns = schemas.patterns, Count(0..=100_000), "the gateway does not validate arguments; the server does";
    /// Maximum states of one regular expression in an input schema: `[a-z]{1,100}` has about 1,000.
    pattern_states = schemas.pattern_states, Count(1..=10_000_000), "the gateway does not validate arguments; the server does";
    /// Maximum states of all regular expressions in one input schema.
    schema_states = schemas.schema_states, Count(1..=10_000_000), "the gateway does not validate arguments; the server does";
    /// Time to compile the input schema and validate the arguments of a call.
    schema_wait = schemas.wait, Time(1..=MINUTE), "the gateway does not validate arguments; the server does";
    /// Maximum memory of compiled input schemas.
    schema_bytes = schemas.compiled_bytes, Bytes(1..=16 * GIB),
        "the least recently used schema is dropped and compiled again when needed";
    /// Maximum compiled input schemas in the cache.
    schema_entries = schemas.entries, Count(1..=1_000_000),
        "the least recently used schema is dropped and compiled again when needed";
};

/// Limits of logins at servers.
pub(super) const LOGINS: &[LimitSpec] = limits! {
    /// Timeout of one HTTP request during a login.
    login_request_timeout = login.request, Time(1..=HOUR), "the login fails";
    /// Maximum size of a response during a login.
    login_answer_bytes = login.response_bytes, Bytes(KIB..=64 * MIB), "the login fails";
    /// Maximum redirects of a metadata document.
    login_redirects = login.redirects, Count(0..=100), "the login fails";
    /// Time for a user to log in with the browser.
    login_timeout = login_browser, Time(1_000..=DAY), "`consort login` fails; nothing is stored";
    /// Time to wait for another process that refreshes the token.
    login_renewal_wait = login.refresh_wait, Time(1..=HOUR), "the connection fails and is retried with backoff";
    /// Maximum authorization attempts within 10 minutes.
    login_attempts = login.attempts, Count(1..=1_000), "the server's state becomes `needs auth`";
};
