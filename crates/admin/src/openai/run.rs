//! A run of an agent for one request, answered as a whole or as a stream.

use std::sync::Arc;

use bytes::Bytes;
use consort_agent::openai::{ApiError, ApiRequest, ApiResponse, OptionsProvider, SuspendedRun};
use consort_agent::{Agent, Conversation, RunEvent, RunReport, RunStatus};
use consort_core::{Caller, DrivenStream, IdentityId};
use consort_models::ReplyDelivery;
use consort_server::RouteBody;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};

use super::{OpenAiEndpoint, json, now, random_id};

/// A running agent of one client. Dropping it cancels its calls.
pub(super) struct CompletionRun {
    endpoint: OpenAiEndpoint,
    client: IdentityId,
    request: ApiRequest,
    /// Number of input messages given to the agent.
    given: usize,
    conversation: Conversation,
    provider: OptionsProvider,
    events: DrivenStream<RunEvent>,
    answer: ApiResponse,
}

impl CompletionRun {
    /// Starts an agent for the caller, with the client's parameters and tools.
    pub(super) fn start(
        endpoint: OpenAiEndpoint,
        mut agent: Agent,
        caller: Caller,
        request: ApiRequest,
    ) -> Self {
        let provider =
            OptionsProvider::new(Arc::clone(&agent.model.provider), request.options.clone());
        agent.model.provider = Arc::new(provider.clone());
        let settings = &mut agent.settings;
        settings.max_tokens = request.max_tokens.or(settings.max_tokens);
        settings.temperature = request.temperature.or(settings.temperature);
        settings.reasoning = request.reasoning.or(settings.reasoning);
        settings.client_tools.clone_from(&request.tools);
        settings.tools = tools_except(&request, &agent.toolbox.catalog(&caller));
        let client = caller.id().clone();
        settings.caller = caller;
        let messages = endpoint.0.pending_tool_calls.restore(client.as_str(), &request.messages);
        let (given, conversation) = (messages.len(), Conversation::new());
        let events = agent.run(&conversation, messages);
        let answer = ApiResponse::new(&request, random_id(), now());
        Self { endpoint, client, request, given, conversation, provider, events, answer }
    }

    /// The response, sent when the run ends or, for a stream, when output begins.
    pub(super) async fn respond(mut self) -> Result<Response<RouteBody>, ApiError> {
        if self.request.delivery == ReplyDelivery::Complete {
            let report = loop {
                match self.events.next().await {
                    Some(RunEvent::Ended { report }) => break report,
                    Some(event) => drop(self.answer.push_event(&event)),
                    None => unreachable!("an end comes before nothing"),
                }
            };
            return match self.finish(&report) {
                None => Ok(json(StatusCode::OK, &self.answer.to_json(&report))),
                Some(error) => Err(error),
            };
        }
        let mut first = String::new();
        let begun =
            tokio::time::timeout(self.endpoint.0.first_word, self.wait_for_output(&mut first))
                .await;
        let ended = match begun {
            Ok(Some(report)) => match self.finish(&report) {
                Some(error) => return Err(error),
                None => Some(self.answer.finish(&report, None)),
            },
            Ok(None) | Err(_) => None,
        };
        let stream = DrivenStream::new(|emitter| async move {
            if let Some(ended) = ended {
                return Bytes::from(first + &ended);
            }
            emitter.emit(Bytes::from(first)).await;
            loop {
                match self.events.next().await {
                    Some(RunEvent::Ended { report }) => {
                        let error = self.finish(&report);
                        return self.answer.finish(&report, error.as_ref()).into();
                    }
                    Some(event) => {
                        let chunk = self.answer.push_event(&event);
                        if !chunk.is_empty() {
                            emitter.emit(chunk.into()).await;
                        }
                    }
                    None => unreachable!("an end comes before nothing"),
                }
            }
        });
        let mut response = Response::new(RouteBody::Stream(Box::pin(stream)));
        let kind = HeaderValue::from_static("text/event-stream; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        Ok(response)
    }

    /// Waits for the first output or tool call; returns the report if the run ends before.
    async fn wait_for_output(&mut self, first: &mut String) -> Option<RunReport> {
        loop {
            match self.events.next().await {
                Some(RunEvent::Ended { report }) => return Some(report),
                Some(event) => {
                    first.push_str(&self.answer.push_event(&event));
                    let is_output = matches!(
                        event,
                        RunEvent::Delta { .. }
                            | RunEvent::Reply { .. }
                            | RunEvent::CallStarted { .. }
                    );
                    if is_output {
                        return None;
                    }
                }
                None => unreachable!("an end comes before nothing"),
            }
        }
    }

    /// Finishes a run: stores the tool calls handed to the client, and returns the error if the run failed.
    fn finish(&self, report: &RunReport) -> Option<ApiError> {
        if report.status == RunStatus::Waiting {
            let messages = self.request.messages.clone();
            if let Some((calls, handed)) =
                SuspendedRun::from_run(&self.conversation.state(), self.given, messages)
            {
                self.endpoint.0.pending_tool_calls.store(self.client.as_str(), &calls, handed);
            }
        }
        let failed = matches!(report.status, RunStatus::Error | RunStatus::Cancelled);
        failed.then(|| ApiError::from_run(report, self.provider.last_error().as_ref()))
    }
}

/// Names of all tools except those that share a name with one of the client's tools, which take precedence; `None` if
/// no name is shared.
fn tools_except(asked: &ApiRequest, catalog: &consort_core::Catalog) -> Option<Vec<String>> {
    let theirs: Vec<String> = asked.tools.iter().map(consort_core::Tool::name).collect();
    let entries = catalog.tools.entries();
    if !entries.iter().any(|entry| theirs.contains(&entry.name)) {
        return None;
    }
    let ours = entries.iter().filter(|entry| !theirs.contains(&entry.name));
    Some(ours.map(consort_core::CatalogEntry::id).collect())
}
