//! Limits of models: runs and providers.

use super::declare::{DAY, GIB, HOUR, KIB, LimitField, MIB};
use super::{LimitSpec, LimitUnit};

/// Limits of what a model is shown, beside `exposure.budget` and `exposure.names`.
pub(super) const EXPOSURE: &[LimitSpec] = limits! {
    /// Tools that `find_tools` returns unless it is called with another `limit`.
    found_tools = exposure.default_hits, Count(1..=1_000), "the best are returned";
    /// Tools that `find_tools` returns at most.
    found_tools_max = exposure.max_hits, Count(1..=10_000), "a larger `limit` is this";
    /// Names of tools that `find_tools` returns of one server.
    found_names = exposure.names, Count(1..=100_000), "words find the others";
    /// Tools on a page of `list`.
    list_page_tools = exposure.page, Count(1..=10_000), "`next_cursor` says where the list continues";
    /// Bytes of a page of `list`, unless one tool alone has more.
    list_page_bytes = exposure.page_bytes, Bytes(KIB..=64 * MIB), "`next_cursor` says where the list continues";
    /// Bytes of a search query.
    query_bytes = exposure.search.query_bytes, Bytes(16..=MIB), "the rest of the query is not read";
    /// Words of a search query.
    query_words = exposure.search.query_words, Count(1..=100_000), "the rest of the query is not read";
    /// Tools that a search returns at most.
    search_hits = exposure.search.hits, Count(1..=100_000), "the best are returned";
    /// Words of each kind of text of a tool: name, description and so on.
    search_words = exposure.search.field_words, Count(1..=1_000_000), "the rest of the text is not searched";
    /// Parameters of a tool that are searched.
    search_parameters = exposure.search.parameters, Count(1..=100_000), "further parameters are not searched";
    /// Values of an `enum` that are searched.
    search_choices = exposure.search.choices, Count(1..=100_000), "further values are not searched";
    /// Levels of an input schema that are searched.
    search_depth = exposure.search.schema_depth, Count(1..=64), "deeper parameters are not searched";
};

/// Limits of asking people, and of results that are kept here.
pub(super) const PEOPLE: &[LimitSpec] = limits! {
    /// Time that a person has to approve a call.
    approval_timeout = approvals.answer, Time(1_000..=DAY), "denied";
    /// Bytes of the arguments that the question shows.
    approval_shown_bytes = approvals.shown_bytes, Bytes(256..=MIB), "the middle is left out, and the question says so";
    /// Bytes of arguments that can be edited in the question's form.
    approval_editable_bytes = approvals.editable_bytes, Bytes(0..=MIB), "they can be approved or denied, not changed";
    /// Approvals that are kept for one session, and sessions.
    session_approvals = approvals.stored, Count(1..=1_000_000), "people are asked again";
    /// Results that are cached at once.
    cached_results = results.cached, Count(1..=10_000_000), "the oldest is dropped";
    /// Bytes of results that are cached at once.
    cached_bytes = results.cached_bytes, Bytes(KIB..=16 * GIB), "the oldest is dropped";
    /// Bytes of a result that is cached.
    cached_result_bytes = results.largest_cached, Bytes(1..=GIB), "a larger one is not cached";
    /// Bytes of large results that are set aside at once.
    aside_bytes = results.spilled_bytes, Bytes(KIB..=16 * GIB), "the oldest is dropped";
    /// Time for which a result that was set aside can be read.
    aside_time = results.spill_time, Time(1_000..=30 * DAY), "it is gone";
};

/// Limits of a run, beside those of each agent (`[consort.agents.NAME]`).
pub(super) const RUNS: &[LimitSpec] = limits! {
    /// Turns of a run: how often the model is asked, where neither the agent nor a flag says.
    run_turns = run.turns, Count(1..=1_000_000), "`limit_reached` (exit code 8)";
    /// Calls of a run, where neither the agent nor a flag says.
    run_calls = run.calls, Count(1..=10_000_000), "`limit_reached` (exit code 8)";
    /// Tokens of a run, read and written, with those of the agents it asks, where neither the agent nor a flag says.
    run_tokens = run.tokens, Count(1..=1_000_000_000_000), "`limit_reached` (exit code 8)";
    /// Time that a run may take, where neither the agent nor a flag says.
    run_time = run.time, Time(1..=30 * DAY), "`limit_reached` (exit code 8)";
    /// Times in a row that a model may make the very same calls.
    repeated_calls = run.repeats, Count(1..=1_000), "`limit_reached` (exit code 8)";
    /// Turns of the agent of a server, under the exposure `agent`.
    server_agent_turns = agents.server_turns, Count(1..=1_000_000), "`limit_reached`; the caller is told";
    /// Calls of the agent of a server, under the exposure `agent`.
    server_agent_calls = agents.server_calls, Count(1..=10_000_000), "`limit_reached`; the caller is told";
    /// Agents that may ask one another in a chain.
    agent_depth = work.agent_depth, Count(1..=100), "the call is answered with an error";
    /// Calls of one server that an agent makes at once.
    parallel_calls = agents.parallel_calls, Count(1..=1_000), "further calls wait";
    /// Attempts of a call that is certain never to have reached its server, where an agent repeats such calls.
    call_attempts = work.call_attempts, Count(1..=100), "the model is told that it failed";
    /// Bytes of text of a result that the model sees at once.
    result_bytes = agents.result_bytes, Bytes(KIB..=GIB), "the model reads the rest with `read_result`";
    /// Bytes of a result below which it is not shortened in a conversation that is too long for the model.
    least_result_bytes = work.least_result, Bytes(64..=GIB), "a shorter result is shown whole";
    /// Bytes of each message that is summarized.
    summarized_bytes = work.summarized_bytes, Bytes(64..=GIB), "the rest of it is not summarized";
    /// Bytes of all messages that are summarized together; the latest.
    summarized_total_bytes = work.summarized_total, Bytes(KIB..=GIB), "earlier ones are not summarized";
    /// Tokens of one answer to a server's sampling request.
    sampling_answer_tokens = work.sampling_answer, Count(1..=1_000_000), "the answer is cut there by the model's provider";
    /// Tokens that servers may have the model answer in a run.
    sampling_tokens = work.sampling_tokens, Count(1..=1_000_000_000_000), "further sampling requests are refused";
    /// Calls handed to clients of the OpenAI endpoint that are remembered at once.
    handed_calls = agents.handed_calls, Count(1..=1_000_000),
        "the oldest is forgotten: what was done before it is not put back";
    /// Time that the first word of a streamed answer of the OpenAI endpoint may take; an error that comes sooner has a
    /// status that says so.
    openai_first_word = agents.first_word, Time(0..=HOUR), "the answer begins without it";
    /// Bytes of a picture that is attached to a message.
    attachment_bytes = files.attachment, Bytes(KIB..=GIB), "the message is refused";
    /// Lines of chats that are remembered.
    chat_history_lines = files.history, Count(0..=1_000_000), "the oldest is forgotten";
    /// Bytes of a file with an agent's instructions.
    instructions_bytes = files.instructions, Bytes(KIB..=64 * MIB), "the agent is left out";
};

/// Limits of model providers, beside those of each (`[consort.providers.NAME]`).
pub(super) const PROVIDERS: &[LimitSpec] = limits! {
    /// Time for a connection to a model provider and its TLS handshake.
    provider_connect = patience.connect, Time(1..=HOUR), "the request is repeated";
    /// Silence of a provider before an answer that is not streamed; `silence` of the provider sets it too.
    provider_response = patience.idle_whole, Time(1..=DAY), "the request is repeated";
    /// Longest wait before a request to a provider is repeated, even if the provider wants a longer one.
    provider_retry_wait = patience.max_retry_wait, Time(1..=DAY), "the error is reported, with the wait that the provider wants";
    /// Time that an unused connection to a model provider is kept.
    provider_idle_connection = patience.idle_connection, Time(1..=HOUR), "it is closed";
    /// Time that a request to a model provider may take, with repeats and the waits between them.
    provider_total = patience.total, Time(1..=30 * DAY), "the error is reported";
    /// Bytes of a provider's answer that says what went wrong.
    error_bytes = answers.error_bytes, Bytes(KIB..=GIB), "the rest is not read";
    /// Levels of arguments that come piece by piece (Gemini).
    answer_argument_depth = answers.argument_depth, Count(1..=120), "the answer is refused as broken";
    /// Greatest index of a list in arguments that come piece by piece (Gemini).
    answer_argument_index = answers.argument_index, Count(1..=1_000_000), "the answer is refused as broken";
    /// Bytes of a model's answer.
    answer_bytes = answers.answer_bytes, Bytes(KIB..=16 * GIB), "the answer is refused";
    /// Bytes of one event of a model's answer.
    answer_event_bytes = answers.event_bytes, Bytes(KIB..=4 * GIB), "the answer is refused";
    /// Bytes of the arguments of one call in a model's answer.
    answer_argument_bytes = answers.argument_bytes, Bytes(KIB..=GIB), "the answer is refused";
    /// Calls in one answer of a model.
    answer_calls = answers.calls, Count(1..=100_000), "the answer is refused";
    /// Events of a model's answer.
    answer_events = answers.events, Count(1..=1_000_000_000), "the answer is refused";
};
