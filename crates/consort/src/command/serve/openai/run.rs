//! One answer: an agent at work for a client, told at once or piece by piece.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use consort_agent::openai::{Answer, ApiError, Asked, Handed, Wishful};
use consort_agent::provider::Delivery;
use consort_agent::{Agent, Conversation, Event, Report, Status};
use consort_core::{Caller, Emitting};
use consort_gateway::SiteBody;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};

use super::{OpenAi, id, json, now};

/// How long the first word may take before the answer begins without it. An error that comes sooner has
/// a status that says so.
const PATIENCE: Duration = Duration::from_secs(10);

/// An agent at work for a client. Dropped, its calls are cancelled.
pub(super) struct Running {
    site: OpenAi,
    client: String,
    asked: Asked,
    /// How many messages the agent was given for what was asked.
    given: usize,
    conversation: Conversation,
    provider: Wishful,
    events: Emitting<Event>,
    answer: Answer,
}

impl Running {
    /// Puts an agent to work, on the account of whoever asks, with the client's wishes and tools.
    pub(super) fn start(site: OpenAi, mut agent: Agent, caller: Caller, asked: Asked) -> Self {
        let provider = Wishful::new(Arc::clone(&agent.model.provider), asked.wishes.clone());
        agent.model.provider = Arc::new(provider.clone());
        let settings = &mut agent.settings;
        settings.max_tokens = asked.max_tokens.or(settings.max_tokens);
        settings.temperature = asked.temperature.or(settings.temperature);
        settings.reasoning = asked.reasoning.or(settings.reasoning);
        settings.foreign.clone_from(&asked.tools);
        settings.tools = without(&asked, &agent.toolbox.catalog(&caller));
        let client = caller.name.clone();
        settings.caller = caller;
        let said = site.0.handed_out.restored(&client, &asked.messages);
        let (given, conversation) = (said.len(), Conversation::new());
        let events = agent.run(&conversation, said);
        let answer = Answer::new(&asked, id(), now());
        Self { site, client, asked, given, conversation, provider, events, answer }
    }

    /// The answer, when it is there or when it begins.
    pub(super) async fn respond(mut self) -> Result<Response<SiteBody>, ApiError> {
        if self.asked.delivery == Delivery::Whole {
            let report = loop {
                match self.events.next().await {
                    Some(Event::Over { report }) => break report,
                    Some(event) => drop(self.answer.tell(&event)),
                    None => unreachable!("an end comes before nothing"),
                }
            };
            return match self.over(&report) {
                None => Ok(json(StatusCode::OK, &self.answer.whole(&report))),
                Some(error) => Err(error),
            };
        }
        let mut first = String::new();
        let begun = tokio::time::timeout(PATIENCE, self.begun(&mut first)).await;
        let ended = match begun {
            Ok(Some(report)) => match self.over(&report) {
                Some(error) => return Err(error),
                None => Some(self.answer.end(&report, None)),
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
                    Some(Event::Over { report }) => {
                        let error = self.over(&report);
                        return self.answer.end(&report, error.as_ref()).into();
                    }
                    Some(event) => {
                        let told = self.answer.tell(&event);
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

    /// Waits until something is said or called; the report if it is over before.
    async fn begun(&mut self, first: &mut String) -> Option<Report> {
        loop {
            match self.events.next().await {
                Some(Event::Over { report }) => return Some(report),
                Some(event) => {
                    first.push_str(&self.answer.tell(&event));
                    let said = matches!(
                        event,
                        Event::Delta { .. } | Event::Said { .. } | Event::Called { .. }
                    );
                    if said {
                        return None;
                    }
                }
                None => unreachable!("an end comes before nothing"),
            }
        }
    }

    /// What is to be done when a run is over: what it handed out is remembered, and what went wrong is
    /// told.
    fn over(&self, report: &Report) -> Option<ApiError> {
        if report.status == Status::Waiting {
            let said = self.asked.messages.clone();
            if let Some((calls, handed)) = Handed::of(&self.conversation.run(), self.given, said) {
                self.site.0.handed_out.keep(&self.client, &calls, handed);
            }
        }
        let failed = matches!(report.status, Status::Error | Status::Cancelled);
        failed.then(|| ApiError::of_run(report, self.provider.failed().as_ref()))
    }
}

/// Everything but what has the name of one of the client's tools, which come first; nothing if there is
/// no such thing.
fn without(asked: &Asked, catalog: &consort_core::Catalog) -> Option<Vec<String>> {
    let theirs: Vec<String> = asked.tools.iter().map(consort_core::Tool::name).collect();
    let entries = catalog.tools.entries();
    if !entries.iter().any(|entry| theirs.contains(&entry.name)) {
        return None;
    }
    let ours = entries.iter().filter(|entry| !theirs.contains(&entry.name));
    Some(ours.map(consort_core::Entry::id).collect())
}
