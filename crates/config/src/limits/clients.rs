//! Limits of a gateway: clients, records, the console, reloading.

use super::declare::{DAY, GIB, HOUR, KIB, LimitField, MIB, MINUTE, SECOND};
use super::{LimitSpec, LimitUnit};

/// Limits of clients.
pub(super) const CLIENTS: &[LimitSpec] = limits! {
    /// Bytes of the body of a request.
    request_bytes = transports.body_bytes, Bytes(KIB..=GIB), "413; on standard input an error";
    /// Time that the body of a request may take.
    request_body_timeout = transports.body, Time(1..=HOUR), "408";
    /// Time that the head of a request may take.
    request_head_timeout = transports.head, Time(1..=HOUR), "408; a connection without a request is closed";
    /// Time for which the rest of a refused request is read, so that its client gets to read the status.
    linger = transports.linger, Time(0..=HOUR), "the connection is closed", serve "linger";
    /// Bytes of the rest of a refused request that are read.
    linger_bytes = transports.linger_bytes, Bytes(0..=16 * GIB), "the connection is closed", serve "linger_bytes";
    /// Headers of a request.
    request_headers = transports.headers, Count(10..=10_000), "431";
    /// Bytes of an oversized line on standard input that are skipped to reach the next one.
    skipped_request_bytes = transports.skipped_bytes, Bytes(0..=16 * GIB), "the connection ends";
    /// Connections of clients that are open at once.
    client_connections = transports.connections, Count(1..=1_000_000),
        "an idle one, or a stream of the identity with the most, gives way; else 503 and `Retry-After`";
    /// Percentage of `client_connections`, `sessions`, `identity_connections` and `held_bytes` that is kept for the owner.
    owner_reserve = transports.owner_reserve, Count(0..=50), "others get 503 and `Retry-After`, or wait";
    /// Connections beyond `client_connections` that are answered 503 at once.
    refused_connections = transports.refused_connections, Count(1..=65_536), "further ones wait to be accepted";
    /// Time that a client beyond `client_connections` has to read its 503.
    refused_connection_hold = transports.refused_connection_hold, Time(1..=MINUTE), "the connection is closed";
    /// File descriptors that are kept for answering 503 when the process has no others left.
    reserved_descriptors = transports.reserved_descriptors, Count(1..=4_096), "further connections wait to be accepted";
    /// Time that a client has to read such a 503.
    reserved_descriptor_hold = transports.reserved_descriptor_hold, Time(1..=MINUTE), "the connection is closed";
    /// Sessions of legacy clients that are open at once.
    sessions = transports.sessions, Count(1..=1_000_000),
        "one unused for a thirtieth of `session_idle` gives way; else 503 for a new one";
    /// Lifetime of the session id of a legacy client after `initialize`, also across restarts.
    session_lifetime = transports.session_lifetime, Time(SECOND..=365 * DAY),
        "a request with the id is a 404; the client initializes again";
    /// Ended sessions of one identity that are remembered until they expire.
    ended_sessions = transports.ended_sessions, Count(1..=1_000_000),
        "its older sessions count as ended after a restart";
    /// Bytes of events that are kept for one session of a legacy client, so that it can resume its streams.
    replay_bytes = transports.replay_bytes, Bytes(0..=GIB), "the oldest events are dropped; a stream behind them cannot be resumed";
    /// Bytes of events that are kept for all sessions of one identity.
    replay_bytes_per_identity = transports.replay_bytes_per_identity, Bytes(0..=GIB), "the oldest events are dropped";
    /// Time for which the events of a stream are kept after its end.
    replay = transports.replay, Time(0..=DAY), "the stream cannot be resumed";
    /// Calls of one session that go on at once after their client's connection broke.
    detached_calls = transports.detached_calls, Count(0..=100_000), "the oldest is cancelled";
    /// Calls of all sessions of one identity that go on at once after their client's connection broke.
    detached_calls_per_identity = transports.detached_calls_per_identity, Count(0..=100_000), "the oldest is cancelled";
    /// Time for which a call goes on after its client's connection broke.
    detached_call = transports.detached_call, Time(0..=DAY), "the call is cancelled";
    /// Time that clients shall wait before they resume a stream, sent as `retry`.
    stream_retry = transports.stream_retry, Time(1..=HOUR), "nothing: it is a hint to the client";
    /// Time after which the answer to a client of 2025-11-25 becomes an event stream, which it can resume.
    stream_after = transports.stream_after, Time(0..=HOUR), "the answer is an event stream";
    /// Idle timeout of a session.
    session_idle = transports.session, Time(SECOND..=30 * DAY), "the session ends; a request with it is a 404";
    /// Notifications that are kept for a legacy client that has no stream open, and tasks that are followed for it.
    session_notifications = transports.session_notifications, Count(1..=1_000_000),
        "the oldest are dropped; of a further task the client is not notified";
    /// Messages that wait to be read by a client on stdio or HTTP+SSE.
    queued_messages = transports.queued_messages, Count(1..=1_000_000), "calls of the client wait";
    /// Notifications of resources that a subscriber may be behind.
    subscription_updates = gateway.subscription_updates, Count(1..=1_000_000), "its server's notifications wait";
    /// Calls that are suspended until their clients answer, at once.
    suspended_calls = gateway.suspended_calls, Count(1..=1_000_000),
        "the oldest of the caller with the most gives way, if that has more than its share; else the call ends with an error";
    /// Calls of one caller that wait for an answer of its client at once.
    suspended_calls_per_caller = gateway.suspended_calls_per_caller, Count(1..=1_000_000), "the oldest is cancelled";
    /// Time that a suspended call waits for its client's answer.
    suspended_call_timeout = gateway.suspended_time, Time(SECOND..=DAY), "the call is cancelled at its server";
    /// Bytes of a result that is kept for a client that repeats its answer to a suspended call.
    repeated_result_bytes = gateway.repeated_result_bytes, Bytes(0..=GIB), "a larger result is not repeated";
    /// Bytes of large requests and results that a gateway holds in memory at once, on every transport.
    held_bytes = transports.held_bytes, Bytes(1..=1_024 * GIB),
        "reading waits, the identity that holds least first; what is below 64 KiB does not count, and one message more is read if nothing else moves";
    /// Time that a client may leave what it is sent unread.
    client_stall_timeout = transports.stalled, Time(SECOND..=DAY), "the connection is closed, and its calls are cancelled";
    /// The same for a client whose identity holds more than its share of `held_bytes` while others wait for memory.
    contended_stall_timeout = transports.stalled_contended, Time(100..=DAY), "the connection is closed, and its calls are cancelled";
    /// Silence on an event stream before a comment is sent.
    stream_heartbeat = transports.silence, Time(SECOND..=DAY), "a comment is sent on the stream";
    /// Items on a page of a list.
    page_items = gateway.page_items, Count(1..=1_000_000), "`nextCursor` says where the list continues";
    /// Pages of `tasks/list` that are read from one server.
    task_pages = gateway.task_pages, Count(1..=100_000), "`tasks/list` is an error";
    /// Bytes of client capabilities that the name of a task carries.
    task_capability_bytes = gateway.task_capability_bytes, Bytes(0..=64 * KIB),
        "requests about the task are sent on the connection of whoever sends them";
    /// Time that a client that reads the state of a task waits for the first request of a task that has one.
    task_input_wait = gateway.task_input_wait, Time(0..=MINUTE), "the task is `working` until its request is there";
    /// Time between two `list_changed` notifications to a client, at least.
    list_changed_interval = gateway.changes, Time(1..=HOUR), "changes in between are announced as one";
    /// Time for which names stay reserved for a server that was removed.
    name_grace = gateway.name_grace, Time(0..=365 * DAY), "the names are free for others", serve "name_grace";
    /// Lame-duck time: after SIGTERM, `/readyz` says 503 for so long and requests are still served. None
    /// unless it is set if only this machine reaches the gateway.
    lame_duck = lame_duck, Time(0..=HOUR), "the gateway drains", serve "lame_duck";
    /// Time that requests have to end once the gateway stops.
    drain_timeout = transports.drain, Time(0..=HOUR), "what is left is cancelled";
    /// Connections that are open at once at the listener for health and metrics.
    metrics_connections = transports.metrics_connections, Count(1..=65_536), "a further one is closed at once",
        serve "metrics_connections";
};

/// Limits of the ledger, metrics and the log.
pub(super) const RECORDS: &[LimitSpec] = limits! {
    /// Bytes that the ledger may take.
    ledger_bytes = ledger.size, Bytes(MIB..=1_024 * GIB), "the oldest records are dropped, behind a checkpoint",
        serve "ledger_bytes";
    /// Calls that wait to be written to the ledger.
    ledger_queue = ledger.queue, Count(1..=10_000_000), "further ones are lost, counted, and the ledger says so";
    /// Time for which records are gathered before they are written to the ledger together, unless it is strict.
    ledger_gather = ledger.gather, Time(0..=MINUTE), "they are written";
    /// Time that a call waits for its intent to be on disk, if the ledger is strict.
    ledger_wait = ledger.intent_wait, Time(1..=MINUTE), "the call is refused";
    /// Bytes of a text in a record of the ledger.
    ledger_text_bytes = ledger.text_bytes, Bytes(64..=MIB), "the text is cut";
    /// Records of the ledger that are dropped at once, and so are in one file of the archive.
    ledger_dropped_records = ledger.dropped_records, Count(16..=1_000_000_000), "the rest is dropped in further steps";
    /// Records at the end of the ledger that are checked when it is opened.
    ledger_checked_records = ledger.checked_records, Count(1..=1_000_000_000),
        "earlier ones are checked by `consort ledger verify`";
    /// Bytes of a ledger whose structure is checked too when it is opened.
    ledger_checked_bytes = ledger.checked_bytes, Bytes(0..=1_024 * GIB), "only the last records are checked";
    /// Time that a write waits for another process that writes to the same ledger.
    ledger_busy = ledger.busy, Time(1..=MINUTE), "the write fails and is repeated";
    /// Servers that metrics tell apart.
    metric_servers = metrics.servers, Count(1..=100_000), "further ones are `other`";
    /// Models that metrics tell apart.
    metric_models = metrics.models, Count(1..=100_000), "further ones are `other`";
    /// Tools that metrics tell apart if `metrics_by_tool` is set.
    metric_tools = records.metric_tools, Count(1..=100_000), "further ones are `other`";
    /// Log lines of calls that failed, and of requests that were refused, that are written in a second each.
    log_lines = records.log_lines, Count(1..=1_000_000), "further ones are left out, counted, and the count is logged";
    /// Characters of a refused call's name that are logged and written to the ledger; the caller chooses it.
    refused_name_chars = records.refused_name_chars, Count(1..=65_536), "the rest of the name is not recorded";
    /// Characters of a refused request's path and headers that are logged; the client chooses them.
    logged_chars = transports.logged_chars, Count(1..=65_536), "the rest of the text is not logged";
    /// Findings that are logged for one scanned tool or prompt definition.
    scan_findings = findings.logged, Count(1..=10_000), "further findings of it are not logged";
    /// Scanned definitions that are remembered, so that each is logged once.
    scan_definitions = findings.remembered, Count(1..=10_000_000), "all are forgotten, and logged again";
};

/// Limits of the console.
pub(super) const CONSOLE: &[LimitSpec] = limits! {
    /// Calls that are kept in memory when they are over.
    kept_calls = feed.calls, Count(1..=1_000_000), "the oldest are found in the ledger only";
    /// News of calls that an open page may be behind.
    call_news = feed.behind, Count(1..=1_000_000), "the oldest are left out, and counted";
    /// Runs of the console's agents that are in progress at once.
    console_runs = console.runs, Count(1..=1_000), "a further one is refused";
    /// Bytes of events of a run in progress that are kept for pages that open later.
    console_run_bytes = console.run_bytes, Bytes(KIB..=GIB),
        "the events before the last answer are dropped; pages read them from the conversation";
    /// Log messages of servers that are kept of a run in progress.
    console_run_logs = console.run_logs, Count(1..=100_000), "the oldest is dropped";
    /// Unfinished conversations that are searched for pending requests at the start, the latest first.
    restored_conversations = console.restored_conversations, Count(0..=100_000),
        "requests of earlier ones appear once the conversation is opened";
    /// Records of the ledger that are read for a page or a chart.
    console_records = console.records, Count(100..=100_000_000), "the page ends there, and says where it continues";
    /// Tools that a search in the console finds.
    console_search_hits = console.hits, Count(1..=100_000), "the best are shown";
    /// Time that the gateway may take to apply a config that the console wrote.
    console_apply_timeout = console.apply, Time(100..=HOUR), "the change stays written, and the request fails";
    /// Browser sessions of the console that may be open.
    max_browser_sessions = transports.browser_sessions, Count(1..=100_000), "the least recently used one ends",
        serve "max_browser_sessions";
    /// Idle timeout of a browser session; an open page counts as use.
    browser_session_idle = transports.browser_session_idle, Time(SECOND..=365 * DAY),
        "the session ends; the console asks for the token again", serve "browser_session_idle";
    /// Absolute lifetime of a browser session.
    browser_session_lifetime = transports.browser_session_lifetime, Time(SECOND..=365 * DAY),
        "the session ends; the console asks for the token again", serve "browser_session_lifetime";
    /// Listings that are kept at each endpoint: one for each identity and the capabilities of its clients.
    listings = gateway.listings, Count(1..=1_000_000), "those that no session follows are made again when they are asked for";
};

/// Limits of re-reading the config.
pub(super) const RELOADING: &[LimitSpec] = limits! {
    /// Time between two looks at the config, its lock, token files and secrets.
    config_poll = reload.poll, Time(10..=HOUR), "a change that two looks in a row see alike takes effect";
    /// Time that a reload request waits for its result.
    reload_timeout = reload.timeout, Time(1..=HOUR), "the request fails";
    /// Reload requests that wait at once.
    reload_queue = reload.queue, Count(1..=65_536), "further requests wait to be queued";
    /// Time that calls to servers that a reload removed may take to end.
    reload_drain = reload.drain, Time(0..=HOUR), "they are cancelled";
    /// Bytes of a `consort.lock`; ten thousand definitions take half of the default.
    lock_bytes = files.lock, Bytes(KIB..=16 * GIB), "the lock is refused";
};
