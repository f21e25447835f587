//! A run of an agent for one request, answered as a whole or as a stream.

use std::sync::Arc;

use bytes::Bytes;
use consort_agent::openai::{ApiError, ApiRequest, ApiResponse, OptionsProvider, SuspendedRun};
use consort_agent::{Agent, Conversation, RunEvent, RunReport, RunStatus};
use consort_core::{Caller, Emitting, IdentityId};
use consort_gateway::SiteBody;
use consort_models::ReplyDelivery;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};

use super::{OpenAi, id, json, now};

/// A running agent of one client. Dropping it cancels its calls.
pub(super) struct Running {
    site: OpenAi,
    client: IdentityId,
    asked: ApiRequest,
    /// Number of input messages given to the agent.
    given: usize,
    conversation: Conversation,
    provider: OptionsProvider,
    events: Emitting<RunEvent>,
    answer: ApiResponse,
}

impl Running {
    /// Starts an agent for the caller, with the client's parameters and tools.
    pub(super) fn start(site: OpenAi, mut agent: Agent, caller: Caller, asked: ApiRequest) -> Self {
        let provider =
            OptionsProvider::new(Arc::clone(&agent.model.provider), asked.options.clone());
        agent.model.provider = Arc::new(provider.clone());
        let settings = &mut agent.settings;
        settings.max_tokens = asked.max_tokens.or(settings.max_tokens);
        settings.temperature = asked.temperature.or(settings.temperature);
        settings.reasoning = asked.reasoning.or(settings.reasoning);
        settings.client_tools.clone_from(&asked.tools);
        settings.tools = without(&asked, &agent.toolbox.catalog(&caller));
        let client = caller.id().clone();
        settings.caller = caller;
        let said = site.0.handed_out.restore(client.as_str(), &asked.messages);
        let (given, conversation) = (said.len(), Conversation::new());
        let events = agent.run(&conversation, said);
        let answer = ApiResponse::new(&asked, id(), now());
        Self { site, client, asked, given, conversation, provider, events, answer }
    }

    /// The response, sent when the run ends or, for a stream, when output begins.
    pub(super) async fn respond(mut self) -> Result<Response<SiteBody>, ApiError> {
        if self.asked.delivery == ReplyDelivery::Complete {
            let report = loop {
                match self.events.next().await {
                    Some(RunEvent::Ended { report }) => break report,
                    Some(event) => drop(self.answer.push_event(&event)),
                    None => unreachable!("an end comes before nothing"),
                }
            };
            return match self.over(&report) {
                None => Ok(json(StatusCode::OK, &self.answer.to_json(&report))),
                Some(error) => Err(error),
            };
        }
        let mut first = String::new();
        let begun = tokio::time::timeout(self.site.0.first_word, self.begun(&mut first)).await;
        let ended = match begun {
            Ok(Some(report)) => match self.over(&report) {
                Some(error) => return Err(error),
                None => Some(self.answer.finish(&report, None)),
            },
            Ok(None) | Err(_) => None,
        };
        let stream = Emitting::new(|emitter| async move {
            if let Some(ended) = ended {
                return Bytes::from(first + &ended);
            }
            emitter.emit(Bytes::from(first)).await;
            loop {
                match self.events.next().await {
                    Some(RunEvent::Ended { report }) => {
                        let error = self.over(&report);
                        return self.answer.finish(&report, error.as_ref()).into();
                    }
                    Some(event) => {
                        let told = self.answer.push_event(&event);
                        if !told.is_empty() {
                            emitter.emit(told.into()).await;
                        }
                    }
                    None => unreachable!("an end comes before nothing"),
                }
            }
        });
        let mut response = Response::new(SiteBody::Stream(Box::pin(stream)));
        let kind = HeaderValue::from_static("text/event-stream; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        Ok(response)
    }

    /// Waits for the first output or tool call; returns the report if the run ends before.
    async fn begun(&mut self, first: &mut String) -> Option<RunReport> {
        loop {
            match self.events.next().await {
                Some(RunEvent::Ended { report }) => return Some(report),
                Some(event) => {
                    first.push_str(&self.answer.push_event(&event));
                    let said = matches!(
                        event,
                        RunEvent::Delta { .. }
                            | RunEvent::Reply { .. }
                            | RunEvent::CallStarted { .. }
                    );
                    if said {
                        return None;
                    }
                }
                None => unreachable!("an end comes before nothing"),
            }
        }
    }

    /// Finishes a run: stores the tool calls handed to the client, and returns the error if the run failed.
    fn over(&self, report: &RunReport) -> Option<ApiError> {
        if report.status == RunStatus::Waiting {
            let said = self.asked.messages.clone();
            if let Some((calls, handed)) =
                SuspendedRun::from_run(&self.conversation.state(), self.given, said)
            {
                self.site.0.handed_out.store(self.client.as_str(), &calls, handed);
            }
        }
        let failed = matches!(report.status, RunStatus::Error | RunStatus::Cancelled);
        failed.then(|| ApiError::from_run(report, self.provider.last_error().as_ref()))
    }
}

/// Names of all tools except those that share a name with one of the client's tools, which take precedence; `None` if
/// no name is shared.
fn without(asked: &ApiRequest, catalog: &consort_core::Catalog) -> Option<Vec<String>> {
    let theirs: Vec<String> = asked.tools.iter().map(consort_core::Tool::name).collect();
    let entries = catalog.tools.entries();
    if !entries.iter().any(|entry| theirs.contains(&entry.name)) {
        return None;
    }
    let ours = entries.iter().filter(|entry| !theirs.contains(&entry.name));
    Some(ours.map(consort_core::Entry::id).collect())
}
