//! Limits of a gateway: clients, records, the console, reloading.

use super::declare::{DAY, GIB, HOUR, KIB, LimitField, MIB, MINUTE, SECOND};
use super::{LimitSpec, LimitUnit};

/// Limits of clients.
pub(super) const CLIENTS: &[LimitSpec] = limits! {
    /// Maximum size of a request body.
    request_bytes = transports.body_bytes, Bytes(KIB..=GIB), "HTTP 413; on stdio, an error response";
    /// Time to receive a request body.
    request_body_timeout = transports.body, Time(1..=HOUR), "HTTP 408";
    /// Time to receive the head of a request.
    request_head_timeout = transports.head, Time(1..=HOUR), "HTTP 408; an idle connection is closed";
    /// Time for the TLS handshake of a client.
    tls_handshake = transports.tls_handshake, Time(1..=MINUTE), "the connection is closed";
    /// Time for which the rest of a refused request is read, so that the client can read the status.
    linger = transports.linger, Time(0..=HOUR), "the connection is closed", serve "linger";
    /// Bytes of the rest of a refused request that are read.
    linger_bytes = transports.linger_bytes, Bytes(0..=16 * GIB), "the connection is closed", serve "linger_bytes";
    /// Maximum number of headers of a request.
    request_headers = transports.headers, Count(10..=10_000), "HTTP 431";
    /// Bytes of an oversized message on standard input that are skipped to reach the next one.
    skipped_request_bytes = transports.skipped_bytes, Bytes(0..=16 * GIB), "the connection is closed";
    /// Maximum open client connections.
    client_connections = transports.connections, Count(1..=1_000_000),
        "an idle connection, or a stream of the identity with the most connections, is closed; else HTTP 503 with `Retry-After`";
    /// Percentage of `client_connections`, `sessions`, `identity_connections` and `held_bytes` reserved for the owner.
    owner_reserve = transports.owner_reserve, Count(0..=50), "other callers get HTTP 503 with `Retry-After`, or wait";
    /// Connections beyond `client_connections` that get an HTTP 503 response at the same time.
    refused_connections = transports.refused_connections, Count(1..=65_536), "further connections wait to be accepted";
    /// Time for a client beyond `client_connections` to read its HTTP 503 response.
    refused_connection_hold = transports.refused_connection_hold, Time(1..=MINUTE), "the connection is closed";
    /// File descriptors reserved for HTTP 503 responses when the process has no others left.
    reserved_descriptors = transports.reserved_descriptors, Count(1..=4_096), "further connections wait to be accepted";
    /// Time for a client to read such a response.
    reserved_descriptor_hold = transports.reserved_descriptor_hold, Time(1..=MINUTE), "the connection is closed";
    /// Maximum open sessions of legacy clients.
    sessions = transports.sessions, Count(1..=1_000_000),
        "a session unused for 1/30 of `session_idle` is ended; else a new one gets HTTP 503";
    /// Lifetime of the session id of a legacy client after `initialize`, also across restarts.
    session_lifetime = transports.session_lifetime, Time(SECOND..=365 * DAY),
        "HTTP 404; the client initializes a new session";
    /// Ended sessions of one identity that are stored until they expire.
    ended_sessions = transports.ended_sessions, Count(1..=1_000_000),
        "its older sessions are treated as ended after a restart";
    /// Bytes of events stored for one session of a legacy client, to resume its streams.
    replay_bytes = transports.replay_bytes, Bytes(0..=GIB), "the oldest events are dropped; streams that need them cannot be resumed";
    /// Bytes of events stored for all sessions of one identity.
    replay_bytes_per_identity = transports.replay_bytes_per_identity, Bytes(0..=GIB), "the oldest events are dropped";
    /// Time for which the events of a stream are stored after its end.
    replay = transports.replay, Time(0..=DAY), "the stream cannot be resumed";
    /// Maximum detached calls of one session: calls that continue after the client disconnected.
    detached_calls = transports.detached_calls, Count(0..=100_000), "the oldest call is cancelled";
    /// Maximum detached calls of all sessions of one identity.
    detached_calls_per_identity = transports.detached_calls_per_identity, Count(0..=100_000), "the oldest call is cancelled";
    /// Time for which a detached call continues.
    detached_call = transports.detached_call, Time(0..=DAY), "the call is cancelled";
    /// Time for clients to wait before they resume a stream, sent as `retry`.
    stream_retry = transports.stream_retry, Time(1..=HOUR), "no effect: it is a hint to the client";
    /// Time after which the response to a client of revision 2025-11-25 becomes a resumable event stream.
    stream_after = transports.stream_after, Time(0..=HOUR), "the response is an event stream";
    /// Idle timeout of a session.
    session_idle = transports.session, Time(SECOND..=30 * DAY), "the session ends; further requests get HTTP 404";
    /// Notifications queued for a legacy client without an open stream, and tasks watched for it.
    session_notifications = transports.session_notifications, Count(1..=1_000_000),
        "the oldest are dropped; no notifications of further tasks";
    /// Messages queued for a client on stdio or HTTP+SSE.
    queued_messages = transports.queued_messages, Count(1..=1_000_000), "calls of the client are blocked until it reads";
    /// Resource notifications queued for one subscriber.
    subscription_updates = gateway.subscription_updates, Count(1..=1_000_000), "notifications of the server are blocked until it reads";
    /// Maximum suspended calls: calls that wait for a response of their client.
    suspended_calls = gateway.suspended_calls, Count(1..=1_000_000),
        "the oldest call of the caller with the most is cancelled, if that caller exceeds its share; else the call fails";
    /// Maximum suspended calls of one caller.
    suspended_calls_per_caller = gateway.suspended_calls_per_caller, Count(1..=1_000_000), "the oldest call is cancelled";
    /// Time that a suspended call waits for a response of its client.
    suspended_call_timeout = gateway.suspended_time, Time(SECOND..=DAY), "the call is cancelled on its server";
    /// Maximum size of a result stored for a client that retries its response to a suspended call.
    repeated_result_bytes = gateway.repeated_result_bytes, Bytes(0..=GIB), "a larger result cannot be retried";
    /// Memory for large requests and results in progress, on all transports.
    held_bytes = transports.held_bytes, Bytes(1..=1_024 * GIB),
        "reading pauses; the identity that holds the least resumes first; messages below 64 KiB do not count, and one more message is read if nothing else makes progress";
    /// Time that a client may stop reading its connection.
    client_stall_timeout = transports.stalled, Time(SECOND..=DAY), "the connection is closed, and its calls are cancelled";
    /// Time that a client may stop reading while its identity exceeds its share of `held_bytes` and others wait for memory.
    contended_stall_timeout = transports.stalled_contended, Time(100..=DAY), "the connection is closed, and its calls are cancelled";
    /// Idle time of an event stream before a comment is sent.
    stream_heartbeat = transports.silence, Time(SECOND..=DAY), "a comment is sent on the stream";
    /// Maximum items on a page of a listing.
    page_items = gateway.page_items, Count(1..=1_000_000), "the rest is on further pages (`nextCursor`)";
    /// Maximum pages of `tasks/list` read from one server.
    task_pages = gateway.task_pages, Count(1..=100_000), "`tasks/list` fails";
    /// Bytes of client capabilities encoded in a task id.
    task_capability_bytes = gateway.task_capability_bytes, Bytes(0..=64 * KIB),
        "requests about the task use the connection of their sender";
    /// Time that `tasks/get` waits for the first input request of a task.
    task_input_wait = gateway.task_input_wait, Time(0..=MINUTE), "the task is reported as `working` until its request arrives";
    /// Minimum interval between two `list_changed` notifications to a client.
    list_changed_interval = gateway.changes, Time(1..=HOUR), "changes in between are merged into one notification";
    /// Time for which names stay reserved for a server that was removed.
    name_grace = gateway.name_grace, Time(0..=365 * DAY), "the names are available to others", serve "name_grace";
    /// Lame-duck time: after SIGTERM, `/readyz` returns HTTP 503 for this time and requests are still served. None
    /// by default if the gateway listens only on this machine.
    lame_duck = lame_duck, Time(0..=HOUR), "the gateway drains", serve "lame_duck";
    /// Time for requests in progress to end at shutdown.
    drain_timeout = transports.drain, Time(0..=HOUR), "the remaining requests are cancelled";
    /// Maximum open connections of the listener for health and metrics.
    metrics_connections = transports.metrics_connections, Count(1..=65_536), "a further connection is closed immediately",
        serve "metrics_connections";
};

/// Limits of the ledger, metrics and the log.
pub(super) const RECORDS: &[LimitSpec] = limits! {
    /// Maximum size of the ledger.
    ledger_bytes = ledger.size, Bytes(MIB..=1_024 * GIB), "the oldest records are dropped; a checkpoint keeps the hash chain verifiable",
        serve "ledger_bytes";
    /// Maximum calls queued for the ledger.
    ledger_queue = ledger.queue, Count(1..=10_000_000), "further calls are not recorded; the ledger records their number";
    /// Time for which records are batched before they are written, unless `ledger_strict` is set.
    ledger_gather = ledger.gather, Time(0..=MINUTE), "the batch is written";
    /// Time that a call waits for its intent to be on disk, with `ledger_strict`.
    ledger_wait = ledger.intent_wait, Time(1..=MINUTE), "the call is refused";
    /// Maximum size of a string in a ledger record.
    ledger_text_bytes = ledger.text_bytes, Bytes(64..=MIB), "the string is truncated";
    /// Ledger records dropped in one step; they are in one archive file.
    ledger_dropped_records = ledger.dropped_records, Count(16..=1_000_000_000), "the rest is dropped in further steps";
    /// Records at the end of the ledger that are verified when it is opened.
    ledger_checked_records = ledger.checked_records, Count(1..=1_000_000_000),
        "earlier records are verified only by `consort ledger verify`";
    /// Maximum size of a ledger whose database structure is verified when it is opened.
    ledger_checked_bytes = ledger.checked_bytes, Bytes(0..=1_024 * GIB), "only the last records are verified";
    /// Time that a write waits for another process writing to the same ledger.
    ledger_busy = ledger.busy, Time(1..=MINUTE), "the write fails and is retried";
    /// Maximum values of the label `server` in metrics.
    metric_servers = metrics.servers, Count(1..=100_000), "further ones are counted as `other`";
    /// Maximum values of the label `model` in metrics.
    metric_models = metrics.models, Count(1..=100_000), "further ones are counted as `other`";
    /// Maximum values of the label `tool` in metrics, if `metrics_by_tool` is set.
    metric_tools = records.metric_tools, Count(1..=100_000), "further ones are counted as `other`";
    /// Maximum log lines per second of failed calls, and of refused requests.
    log_lines = records.log_lines, Count(1..=1_000_000), "further lines are dropped; their number is logged";
    /// Maximum characters of a refused call's name in the log and the ledger.
    refused_name_chars = records.refused_name_chars, Count(1..=65_536), "the name is truncated";
    /// Maximum characters of a refused request's path and headers in the log.
    logged_chars = transports.logged_chars, Count(1..=65_536), "the string is truncated";
    /// Maximum findings logged for one scanned tool or prompt definition.
    scan_findings = findings.logged, Count(1..=10_000), "further findings are not logged";
    /// Maximum scanned definitions remembered, so that each is logged once.
    scan_definitions = findings.remembered, Count(1..=10_000_000), "all are forgotten and logged again";
};

/// Limits of the console.
pub(super) const CONSOLE: &[LimitSpec] = limits! {
    /// Maximum finished calls kept in memory.
    kept_calls = feed.calls, Count(1..=1_000_000), "older calls are read from the ledger";
    /// Call events queued for an open page.
    call_news = feed.behind, Count(1..=1_000_000), "the oldest are dropped and counted";
    /// Maximum agent runs of the console in progress.
    console_runs = console.runs, Count(1..=1_000), "a further run is refused";
    /// Maximum size of the events of a run in progress that are stored for pages opened later.
    console_run_bytes = console.run_bytes, Bytes(KIB..=GIB),
        "events before the last answer are dropped; pages read them from the conversation";
    /// Maximum server log messages stored for a run in progress.
    console_run_logs = console.run_logs, Count(1..=100_000), "the oldest is dropped";
    /// Maximum unfinished conversations searched for pending requests at the start, the latest first.
    restored_conversations = console.restored_conversations, Count(0..=100_000),
        "requests of older conversations appear when the conversation is opened";
    /// Maximum ledger records read for a page or a chart.
    console_records = console.records, Count(100..=100_000_000), "the rest is on further pages";
    /// Maximum results of a tool search in the console.
    console_search_hits = console.hits, Count(1..=100_000), "only the best matches are shown";
    /// Time for the gateway to apply a config change made in the console.
    console_apply_timeout = console.apply, Time(100..=HOUR), "the request fails; the change stays in the file";
    /// Maximum open browser sessions of the console.
    max_browser_sessions = transports.browser_sessions, Count(1..=100_000), "the least recently used session ends",
        serve "max_browser_sessions";
    /// Idle timeout of a browser session; an open page counts as use.
    browser_session_idle = transports.browser_session_idle, Time(SECOND..=365 * DAY),
        "the session ends; the user signs in again", serve "browser_session_idle";
    /// Absolute lifetime of a browser session.
    browser_session_lifetime = transports.browser_session_lifetime, Time(SECOND..=365 * DAY),
        "the session ends; the user signs in again", serve "browser_session_lifetime";
    /// Maximum listings cached for each endpoint: one for each identity and set of client capabilities.
    listings = gateway.listings, Count(1..=1_000_000), "listings without an open session are dropped and rebuilt on request";
};

/// Limits of re-reading the config.
pub(super) const RELOADING: &[LimitSpec] = limits! {
    /// Polling interval of the config, the lock, token files and secrets.
    config_poll = reload.poll, Time(10..=HOUR), "a change that two consecutive polls see alike takes effect";
    /// Time that a reload request waits for its result.
    reload_timeout = reload.timeout, Time(1..=HOUR), "the request fails";
    /// Maximum queued reload requests.
    reload_queue = reload.queue, Count(1..=65_536), "further requests wait to be queued";
    /// Time for calls to end whose servers a reload removed.
    reload_drain = reload.drain, Time(0..=HOUR), "the calls are cancelled";
    /// Maximum size of `consort.lock`; 10,000 definitions take half of the default.
    lock_bytes = files.lock, Bytes(KIB..=16 * GIB), "the lock is refused";
};
