//! Limits of servers: calls, messages, connections, input schemas.

use super::declare::{DAY, GIB, HOUR, KIB, LimitField, MIB, MINUTE};
use super::{LimitSpec, LimitUnit};

/// Limits of a call.
pub(super) const CALLS: &[LimitSpec] = limits! {
    /// Calls in flight on one stdio or HTTP+SSE connection.
    connection_calls = client.pipe_calls, Count(1..=65_536), "further calls wait";
    /// Calls in flight to one Streamable HTTP server.
    http_calls = client.http_calls, Count(1..=65_536), "further calls wait";
    /// Calls that may wait for a place among those in flight; fewer where places become free too slowly.
    queued_calls = client.queued_calls, Count(1..=1_000_000), "`overloaded`; nothing was sent";
    /// Time that a call waits for a place among those in flight.
    queue_wait = times.queue, Time(1..=30 * DAY), "`overloaded`; nothing was sent";
    /// Time that a large result waits for memory on a connection that serves no other call.
    memory_wait = times.room, Time(1..=HOUR), "the call ends: `outcome_unknown`";
    /// Time that a large result waits for memory on a connection that other calls share.
    shared_memory_wait = times.shared_room, Time(1..=HOUR),
        "the call ends: `outcome_unknown`; its result is skipped, and other calls go on";
    /// Requests of a server (elicitation, sampling, roots) that are open at once.
    server_requests = client.questions, Count(1..=4_096), "the server's request is refused";
    /// Rounds of `input_required` within one call.
    input_rounds = client.rounds, Count(1..=1_000), "the call ends with an error";
    /// Events that a call keeps for a reader that is behind.
    call_events = client.call_events, Count(1..=1_000_000),
        "the oldest progress is dropped, and the number is reported (`skipped`)";
    /// Bytes of the events that a call keeps for a reader that is behind.
    call_event_bytes = client.call_event_bytes, Bytes(KIB..=GIB),
        "the oldest progress is dropped, and the number is reported (`skipped`)";
    /// Failures in a row to read the state of a task.
    task_attempts = client.task_attempts, Count(1..=1_000), "the outcome is unknown";
    /// Connections to one legacy server, each for one identity and what it can answer.
    identity_connections = upkeep.identities, Count(1..=65_536),
        "an unused one of the identity with the most is closed; else the call waits, identities in turn";
    /// Idle timeout of such a connection.
    identity_connection_idle = upkeep.identity_idle, Time(1..=30 * DAY), "it is closed, and its program ends";
    /// Time that a call keeps such a connection while it waits for its client's answer and other calls wait for one.
    answer_hold = upkeep.answer_hold, Time(1..=DAY), "the connection is closed; the call is `outcome_unknown`";
    /// Time that a call waits for a server that is about to be tried again.
    retry_wait = upkeep.retry_wait, Time(0..=HOUR), "the call ends: not sent";
    /// Time after it was due at which a limit fires late, because the process was stopped or the computer slept.
    late_after = times.late.after, Time(1..=HOUR), "the limit counts only after `late_grace`";
    /// Time to read what arrived before a limit that fired late counts.
    late_grace = times.late.grace, Time(0..=HOUR), "the limit counts, if nothing had arrived";
};

/// Limits of messages and lists.
pub(super) const MESSAGES: &[LimitSpec] = limits! {
    /// Bytes of one message of a server, on every transport, counted while reading.
    message_bytes = client.message_bytes, Bytes(64 * KIB..=GIB),
        "the message is skipped, and the call that it answers ends with an error";
    /// Bytes of an oversized message that are skipped to reach the next one.
    skipped_bytes = client.skipped_bytes, Bytes(0..=16 * GIB),
        "the connection is reset; calls on it are `outcome_unknown`";
    /// Malformed messages within ten seconds.
    malformed_messages = client.malformed_messages, Count(1..=1_000_000),
        "the connection is closed, and made again after a pause";
    /// Pages of one list of a server.
    list_pages = client.pages, Count(1..=100_000), "the list is refused as a whole; the last good one stays";
    /// Items of one list of a server.
    list_items = client.items, Count(1..=1_000_000), "the list is refused as a whole; the last good one stays";
    /// Bytes of one list of a server, over all its pages.
    list_bytes = client.list_bytes, Bytes(KIB..=GIB), "the list is refused as a whole; the last good one stays";
    /// Time that a list of a server may take, over all its pages.
    list_timeout = times.list, Time(1..=HOUR), "the list is refused as a whole; the last good one stays";
    /// Bytes of one definition in a list.
    definition_bytes = client.definition_bytes, Bytes(KIB..=64 * MIB), "the tool is left out, and a problem says so";
    /// Notifications of a server that are kept for a reader that is behind.
    server_notifications = client.notices, Count(1..=1_000_000), "the oldest are dropped; lists are read again";
    /// Bytes of a server's standard error that are kept to explain a failure.
    stderr_bytes = client.stderr_bytes, Bytes(256..=64 * MIB), "the oldest bytes are dropped";
    /// Lines of one server's standard error that are logged in a second, if `log_server_output` is `live`.
    stderr_lines = client.stderr_lines, Count(1..=1_000_000), "further ones are left out, and counted";
    /// Bytes of a line of a server's standard error that is logged as one.
    stderr_line_bytes = client.stderr_line_bytes, Bytes(64..=MIB), "it is logged as several";
    /// Redirects of one request on the server's own origin, and requests to authenticate anew.
    redirects = client.redirects, Count(0..=100), "an error; elsewhere than on its own origin none is followed";
    /// Bytes of the head of an HTTP response.
    response_head_bytes = client.head_bytes, Bytes(4 * KIB..=16 * MIB), "the response is an error";
    /// Time that a client's list waits for a server that is starting and of which nothing is known. `initialize`
    /// never waits.
    list_wait = lists.wait, Time(0..=HOUR),
        "the list has what is known; clients are notified when there is more, and none waits for this server again";
    /// Time that an agent's run, or a call that names no server, waits for servers that are starting.
    server_wait = lists.server_wait, Time(0..=HOUR),
        "the run begins without its tools; the call is not sent: the server cannot be reached";
    /// Age at which the lists of a server are read again, unless it gave them a longer time to live.
    list_max_age = lists.max_age, Time(100..=DAY), "they are read again, also where the server announces changes";
    /// Time between two readings of a server's list because of a client's list or an unknown name, at least.
    list_min_age = lists.min_age, Time(1..=DAY), "it is not read again before; an unknown name stays unknown";
    /// Time that a call under a lock waits for definitions that its server said changed.
    list_change_wait = lists.change_wait, Time(0..=HOUR), "the call is not sent";
    /// Time between two readings of a server's list because the server says that it changed, at least; it doubles for a
    /// server that always says so.
    list_gap = upkeep.list_gap, Time(1..=HOUR), "changes in between are one";
    /// Longest time between two readings of a list that its server always says changed.
    list_gap_max = upkeep.list_gap_longest, Time(1..=DAY), "the list is read again";
    /// Least time for which a list is fresh whose server gives it a time to live and does not announce changes.
    list_fresh = upkeep.list_fresh, Time(1..=DAY), "the list is read again";
    /// Time after which a list that could not be read is read again.
    list_retry = upkeep.list_retry, Time(1..=DAY), "it is read again; the server is `degraded` until then";
    /// Variants of the lists of one server that are kept: one for each set of client capabilities, and for each
    /// identity to which the server lists other things than to others.
    list_variants = lists.variants, Count(1..=65_536),
        "the one longest unused is dropped; such clients see the server's main list until theirs is read again";
};

/// Limits of connections to servers.
pub(super) const CONNECTIONS: &[LimitSpec] = limits! {
    /// Time for a TCP connection and its TLS handshake; never longer than `timeout.connect` of the server.
    tcp_connect = times.connect, Time(1..=HOUR), "the server cannot be reached; the connection is retried";
    /// Time that a stdio server has to answer `server/discover` before `initialize` is sent as well.
    discover_wait = times.probe, Time(1..=HOUR), "it is taken for a legacy server if it then answers `initialize`";
    /// Time that a legacy HTTP server has to open its common event stream.
    event_stream_wait = times.listen, Time(1..=HOUR), "the connection goes on without the stream";
    /// Pause before a broken event stream is resumed first, unless the server names one; it doubles.
    resume_pause = times.resume, Time(1..=HOUR), "the stream is requested again";
    /// Longest pause before a broken event stream is resumed, even if the server names a longer one.
    resume_pause_max = times.resume_most, Time(1..=DAY), "the pause grows no longer";
    /// Attempts in a row to resume a broken event stream without receiving anything new.
    resume_attempts = client.resumes, Count(1..=1_000), "the outcome is unknown";
    /// Silence on a TCP connection before its peer is probed; thrice that ends it.
    tcp_keepalive = times.keep_alive, Time(1_000..=DAY), "the connection is closed";
    /// Silence on a TCP connection before its peer is probed, right after the computer resumed.
    resume_check = times.resume_check, Time(1_000..=HOUR), "the peer is probed twice, then the connection is broken";
    /// Time for which connections are checked so closely after the computer resumed.
    resume_checking = resumes.checking, Time(1_000..=HOUR), "connections are checked as usual again";
    /// Delay of the clock that shows that the process was stopped.
    resume_delay = resumes.stopped, Time(100..=HOUR), "connections are checked as after a sleep of the computer";
    /// Interval at which an unused server is probed; never if 0.
    server_probe = server_probe, Time(0..=DAY), "the server is asked whether it lives";
    /// Time after which an idle HTTP+SSE stream of a server is kept open by a ping, so that no proxy cuts it; never
    /// if 0.
    stream_ping = stream_ping, Time(0..=DAY), "the server is pinged";
    /// Unused HTTP connections to one server that are kept for the next call.
    idle_connections = client.idle_connections, Count(1..=65_536), "one more is closed";
    /// Time that an unused HTTP connection is kept. Node and uvicorn close theirs after five seconds; a call that
    /// meets that is lost.
    idle_connection_timeout = times.idle_connection, Time(1..=HOUR), "it is closed";
    /// Time that a stdio server has to exit after its standard input closed, before SIGTERM.
    stdin_close_wait = times.close, Time(0..=HOUR), "SIGTERM to it and all that it started";
    /// Time that a stdio server has to exit after SIGTERM, before SIGKILL.
    sigterm_wait = times.terminate, Time(0..=HOUR), "SIGKILL to it and all that it started";
    /// Time that a stdio server has to exit after Consort was killed, before SIGTERM.
    orphan_close = keeper.close, Time(0..=HOUR), "SIGTERM to it and all that it started";
    /// Time that a stdio server has to exit after that SIGTERM, before SIGKILL.
    orphan_terminate = keeper.terminate, Time(0..=HOUR), "SIGKILL to it and all that it started";
    /// Time that the keeper process may take to start a stdio server.
    keeper_reply = keeper.reply, Time(1..=HOUR), "the server is unreachable; the connection is retried";
    /// Time to wait for the end of a stdio server's processes after SIGKILL.
    kill_wait = keeper.kill, Time(1..=10 * MINUTE), "they are left to the kernel";
    /// Time after which a slow start of a program that fetches packages is explained.
    install_notice = upkeep.install_notice, Time(0..=HOUR), "it is said that a package may be fetched";
    /// Pause after a server's first failure; it doubles.
    backoff = upkeep.first_pause, Time(1..=HOUR), "the server is tried again";
    /// Longest pause between two attempts to connect.
    backoff_max = upkeep.longest_pause, Time(1..=DAY), "the pause grows no longer";
    /// Longest pause between two attempts during the first minute in which a server refuses connections.
    backoff_refused = upkeep.refused_pause, Time(1..=HOUR), "the server is tried again";
    /// Failures of a server within a minute that open its circuit breaker.
    breaker_failures = upkeep.breaker_failures, Count(1..=10_000), "it is left alone for `breaker_open`";
    /// Time that the circuit breaker stays open at first; it doubles.
    breaker_open = upkeep.breaker_open, Time(1..=DAY), "the server is tried once";
    /// Longest time that the circuit breaker stays open.
    breaker_open_max = upkeep.breaker_longest, Time(1..=DAY), "the time grows no longer";
    /// Uptime after which the next failure counts as the first.
    steady_after = upkeep.steady, Time(1..=DAY), "the pause is the first again";
    /// Uptime after which earlier failures are forgotten.
    recovered_after = upkeep.recovered, Time(1..=DAY), "earlier failures are forgotten";
};

/// Limits of checking arguments against input schemas.
pub(super) const SCHEMAS: &[LimitSpec] = limits! {
    /// Bytes of an input schema.
    schema_source_bytes = schemas.bytes, Bytes(1..=64 * MIB), "arguments are not checked here; the server checks";
    /// Levels that an input schema may nest. More take more of a thread's stack.
    schema_depth = schemas.depth, Count(1..=120), "arguments are not checked here; the server checks";
    /// References in an input schema that may lead from one to the next.
    schema_references = schemas.chain, Count(1..=200), "arguments are not checked here; the server checks";
    /// Subschemas of an input schema, counting each as often as it is referred to.
    schema_parts = schemas.subschemas, Count(1..=10_000_000), "arguments are not checked here; the server checks";
    /// Steps that a check may take; 200,000 are a tenth of a second, about.
    schema_steps = schemas.steps, Count(1..=1_000_000_000), "these arguments are not checked here; the server checks";
    /// Problems of arguments that are reported at once.
    schema_problems = schemas.problems, Count(1..=1_000), "further problems are not reported";
    /// Different regular expressions in one input schema.
    schema_patterns = schemas.patterns, Count(0..=100_000), "arguments are not checked here; the server checks";
    /// States of one regular expression in an input schema: `[a-z]{1,100}` has about 1,000.
    pattern_states = schemas.pattern_states, Count(1..=10_000_000), "arguments are not checked here; the server checks";
    /// States of all regular expressions in one input schema.
    schema_states = schemas.schema_states, Count(1..=10_000_000), "arguments are not checked here; the server checks";
    /// Time that a call waits for its input schema to be compiled and its arguments to be checked.
    schema_wait = schemas.wait, Time(1..=MINUTE), "arguments are not checked here; the server checks";
    /// Bytes of memory that compiled input schemas may take.
    schema_bytes = schemas.compiled_bytes, Bytes(1..=16 * GIB),
        "the least recently used is dropped, and compiled again when it is needed";
    /// Compiled input schemas that are kept ready.
    schema_entries = schemas.entries, Count(1..=1_000_000),
        "the least recently used is dropped, and compiled again when it is needed";
};

/// Limits of logins at servers.
pub(super) const LOGINS: &[LimitSpec] = limits! {
    /// Time that one request of a login may take.
    login_request_timeout = login.request, Time(1..=HOUR), "the login fails";
    /// Bytes of an answer during a login.
    login_answer_bytes = login.response_bytes, Bytes(KIB..=64 * MIB), "the login fails";
    /// Redirects of a document of a login.
    login_redirects = login.redirects, Count(0..=100), "the login fails";
    /// Time that a person has to log in at a server, in the browser.
    login_timeout = login_browser, Time(1_000..=DAY), "`consort login` ends; nothing is kept";
    /// Time that another process may take to renew a login.
    login_renewal_wait = login.refresh_wait, Time(1..=HOUR), "the server cannot be reached; the connection is retried";
    /// Attempts of a login within ten minutes.
    login_attempts = login.attempts, Count(1..=1_000), "the server `needs auth`";
};
