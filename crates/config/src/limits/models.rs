//! Limits of models: runs and providers.

use super::declare::{DAY, GIB, HOUR, KIB, LimitField, MIB};
use super::{LimitSpec, LimitUnit};

/// Limits of what a model is shown, beside `exposure.budget` and `exposure.names`.
pub(super) const EXPOSURE: &[LimitSpec] = limits! {
    /// Default `limit` of `find_tools`.
    found_tools = exposure.default_hits, Count(1..=1_000), "only the best matches are returned";
    /// Maximum `limit` of `find_tools`.
    found_tools_max = exposure.max_hits, Count(1..=10_000), "a larger `limit` is reduced to it";
    /// Maximum tool names of one server that `find_tools` lists.
    found_names = exposure.names, Count(1..=100_000), "the others are found by search";
    /// Maximum tools on a page of `list`.
    list_page_tools = exposure.page, Count(1..=10_000), "the rest is on further pages (`next_cursor`)";
    /// Maximum size of a page of `list`, unless one tool alone is larger.
    list_page_bytes = exposure.page_bytes, Bytes(KIB..=64 * MIB), "the rest is on further pages (`next_cursor`)";
    /// Maximum size of a search query.
    query_bytes = exposure.search.query_bytes, Bytes(16..=MIB), "the rest of the query is ignored";
    /// Maximum words of a search query.
    query_words = exposure.search.query_words, Count(1..=100_000), "the rest of the query is ignored";
    /// Maximum results of a search.
    search_hits = exposure.search.hits, Count(1..=100_000), "only the best matches are returned";
    /// Maximum indexed words of each field of a tool: name, description and so on.
    search_words = exposure.search.field_words, Count(1..=1_000_000), "the rest of the field is not searched";
    /// Maximum indexed parameters of a tool.
    search_parameters = exposure.search.parameters, Count(1..=100_000), "further parameters are not searched";
    /// Maximum indexed values of an `enum`.
    search_choices = exposure.search.choices, Count(1..=100_000), "further values are not searched";
    /// Maximum indexed levels of an input schema.
    search_depth = exposure.search.schema_depth, Count(1..=64), "deeper parameters are not searched";
};

/// Limits of asking people, and of results that are kept here.
pub(super) const PEOPLE: &[LimitSpec] = limits! {
    /// Time for a user to approve a call.
    approval_timeout = approvals.answer, Time(1_000..=DAY), "the call is denied";
    /// Bytes of arguments shown in an approval request.
    approval_shown_bytes = approvals.shown_bytes, Bytes(256..=MIB), "the middle is omitted and marked";
    /// Maximum size of arguments that can be edited in an approval request.
    approval_editable_bytes = approvals.editable_bytes, Bytes(0..=MIB), "the arguments can be approved or denied, not edited";
    /// Maximum approvals stored for one session, and maximum sessions with approvals.
    session_approvals = approvals.stored, Count(1..=1_000_000), "approval is requested again";
    /// Maximum cached results.
    cached_results = results.cached, Count(1..=10_000_000), "the oldest result is dropped";
    /// Maximum size of all cached results.
    cached_bytes = results.cached_bytes, Bytes(KIB..=16 * GIB), "the oldest result is dropped";
    /// Maximum size of a cached result.
    cached_result_bytes = results.largest_cached, Bytes(1..=GIB), "a larger result is not cached";
    /// Maximum size of all spilled results.
    aside_bytes = results.spilled_bytes, Bytes(KIB..=16 * GIB), "the oldest result is dropped";
    /// Time for which a spilled result can be read.
    aside_time = results.spill_time, Time(1_000..=30 * DAY), "the result is deleted";
};

/// Limits of a run, beside those of each agent (`[consort.agents.NAME]`).
pub(super) const RUNS: &[LimitSpec] = limits! {
    /// Maximum turns (requests to the model) of a run, unless set by the agent or a flag.
    run_turns = run.turns, Count(1..=1_000_000), "`limit_reached` (exit code 8)";
    /// Maximum tool calls of a run, unless set by the agent or a flag.
    run_calls = run.calls, Count(1..=10_000_000), "`limit_reached` (exit code 8)";
    /// Maximum tokens of a run, input and output, including the agents it calls, unless set by the agent or a flag.
    run_tokens = run.tokens, Count(1..=1_000_000_000_000), "`limit_reached` (exit code 8)";
    /// Timeout of a run, unless set by the agent or a flag.
    run_time = run.time, Time(1..=30 * DAY), "`limit_reached` (exit code 8)";
    /// Maximum consecutive turns in which a model makes identical calls.
    repeated_calls = run.repeats, Count(1..=1_000), "`limit_reached` (exit code 8)";
    /// Maximum turns of a server's agent, with the exposure `agent`.
    server_agent_turns = agents.server_turns, Count(1..=1_000_000), "`limit_reached`, reported to the caller";
    /// Maximum tool calls of a server's agent, with the exposure `agent`.
    server_agent_calls = agents.server_calls, Count(1..=10_000_000), "`limit_reached`, reported to the caller";
    /// Maximum depth of agents that call agents.
    agent_depth = work.agent_depth, Count(1..=100), "the call fails";
    /// Maximum parallel calls of an agent to one server.
    parallel_calls = agents.parallel_calls, Count(1..=1_000), "further calls are queued";
    /// Maximum attempts of an agent's call that certainly never reached its server.
    call_attempts = work.call_attempts, Count(1..=100), "the error is returned to the model";
    /// Maximum size of a result's text shown to the model.
    result_bytes = agents.result_bytes, Bytes(KIB..=GIB), "the text is truncated; the model can read the rest with `read_result`";
    /// Size below which a result is not truncated further when a conversation exceeds the context window.
    least_result_bytes = work.least_result, Bytes(64..=GIB), "a smaller result is shown in full";
    /// Maximum size of each message in the input of a summary.
    summarized_bytes = work.summarized_bytes, Bytes(64..=GIB), "the rest of the message is not summarized";
    /// Maximum size of all messages in the input of a summary.
    summarized_total_bytes = work.summarized_total, Bytes(KIB..=GIB), "earlier messages are not summarized";
    /// Maximum tokens of one answer to a server's sampling request.
    sampling_answer_tokens = work.sampling_answer, Count(1..=1_000_000), "the provider truncates the answer";
    /// Maximum tokens of all sampling requests in a run.
    sampling_tokens = work.sampling_tokens, Count(1..=1_000_000_000_000), "further sampling requests are refused";
    /// Maximum pending tool calls of clients of the OpenAI endpoint.
    handed_calls = agents.handed_calls, Count(1..=1_000_000),
        "the oldest is dropped: earlier steps of its run are not restored";
    /// Time to wait for the first token of a streamed answer of the OpenAI endpoint; an earlier error gets an HTTP
    /// error status.
    openai_first_word = agents.first_word, Time(0..=HOUR), "the response starts with status 200";
    /// Maximum size of an image attached to a message.
    attachment_bytes = files.attachment, Bytes(KIB..=GIB), "the message is refused";
    /// Maximum lines of the chat history.
    chat_history_lines = files.history, Count(0..=1_000_000), "the oldest line is dropped";
    /// Maximum size of a file with an agent's instructions.
    instructions_bytes = files.instructions, Bytes(KIB..=64 * MIB), "the agent is omitted";
};

/// Limits of model providers, beside those of each (`[consort.providers.NAME]`).
pub(super) const PROVIDERS: &[LimitSpec] = limits! {
    /// Time to connect to a model provider, including the TLS handshake.
    provider_connect = patience.connect, Time(1..=HOUR), "the request is retried";
    /// Idle timeout of a provider for an answer that is not streamed; also set by `silence` of the provider.
    provider_response = patience.idle_whole, Time(1..=DAY), "the request is retried";
    /// Maximum wait before a request to a provider is retried, even if the provider asks for a longer one.
    provider_retry_wait = patience.max_retry_wait, Time(1..=DAY), "the error is reported, with the wait the provider asks for";
    /// Idle time after which a connection to a model provider is closed.
    provider_idle_connection = patience.idle_connection, Time(1..=HOUR), "the connection is closed";
    /// Total timeout of a request to a model provider, including retries and waits.
    provider_total = patience.total, Time(1..=30 * DAY), "the error is reported";
    /// Maximum size of a provider's error response.
    error_bytes = answers.error_bytes, Bytes(KIB..=GIB), "the rest is not read";
    /// Maximum depth of streamed arguments (Gemini).
    answer_argument_depth = answers.argument_depth, Count(1..=120), "the answer is rejected as malformed";
    /// Maximum array index in streamed arguments (Gemini).
    answer_argument_index = answers.argument_index, Count(1..=1_000_000), "the answer is rejected as malformed";
    /// Maximum size of a model's answer.
    answer_bytes = answers.answer_bytes, Bytes(KIB..=16 * GIB), "the answer is rejected";
    /// Maximum size of one event of a model's answer.
    answer_event_bytes = answers.event_bytes, Bytes(KIB..=4 * GIB), "the answer is rejected";
    /// Maximum size of the arguments of one tool call in a model's answer.
    answer_argument_bytes = answers.argument_bytes, Bytes(KIB..=GIB), "the answer is rejected";
    /// Maximum tool calls in a model's answer.
    answer_calls = answers.calls, Count(1..=100_000), "the answer is rejected";
    /// Maximum events of a model's answer.
    answer_events = answers.events, Count(1..=1_000_000_000), "the answer is rejected";
};
