//! Driving of runs to their end, and pending requests of suspended conversations.

use std::sync::Arc;
use std::time::Duration;

use consort_agent::store::{ConversationId, ConversationState};
use consort_agent::{Agent, Conversation, QuestionOrigin, RunEvent, UserQuestion as Asked};
use consort_core::{Caller, RequestResponder};
use consort_models::ChatMessage;
use tokio::sync::OwnedSemaphorePermit;

use crate::pending_requests::{PendingRequest, RequestKind};
use crate::runs::LiveRun;
use crate::state::AdminState;

/// Time limit for runs to end gracefully at shutdown.
const SHUTDOWN_TIME: Duration = Duration::from_secs(3);

/// Part of that time for runs that wait for a person, before they are stopped.
const SUSPEND_TIME: Duration = Duration::from_secs(1);

/// State of a run in progress.
const RUNNING: &str = "running";

/// State of a run that waits for a person.
const WAITING: &str = "waiting";

/// Guard of a run: it counts as in progress until this is dropped, also by a panic.
struct RunGuard {
    state: AdminState,
    id: ConversationId,
    live: Arc<LiveRun>,
    last: Option<RunEvent>,
    _place: OwnedSemaphorePermit,
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        let runs = &self.state.0.runs;
        // A subscriber that sees the end can continue the conversation.
        self.live.close();
        let count = {
            let mut live = runs.lock();
            live.remove(&self.id);
            live.len()
        };
        let state = match &self.last {
            Some(RunEvent::Ended { report }) => ConversationState::Over(report.status),
            _ => ConversationState::Unfinished,
        };
        self.live.end(self.last.take());
        runs.count.send_replace(count);
        self.state.publish_state(&self.id, state.as_str());
    }
}

impl AdminState {
    /// Runs an agent on a conversation in the background.
    pub(crate) fn run(
        &self,
        id: ConversationId,
        conversation: Conversation,
        agent: Agent,
        input: Vec<ChatMessage>,
        place: OwnedSemaphorePermit,
    ) {
        let runs = &self.0.runs;
        let live = Arc::new(LiveRun::new(
            conversation.clone(),
            input.clone(),
            Arc::clone(&self.0.pending),
            self.active().limits.console,
        ));
        runs.lock().insert(id.clone(), Arc::clone(&live));
        runs.withdraw_pending(&id);
        runs.count.send_modify(|count| *count += 1);
        self.publish_state(&id, RUNNING);
        let state = self.clone();
        let stage = RunGuard { state, id, live, last: None, _place: place };
        runs.handle.spawn(stage.drive(conversation, agent, input));
    }

    /// Publishes the state of a conversation.
    fn publish_state(&self, id: &ConversationId, state: &str) {
        // There may be no subscribers.
        let _ = self.0.conversation_news.send((id.to_string(), state.to_owned()));
    }

    /// Adds the pending requests of a conversation, if no run is in progress in it.
    pub(crate) fn add_pending(
        &self,
        id: &ConversationId,
        caller: &Caller,
        waiting: Vec<(Asked, Option<String>)>,
    ) {
        let runs = &self.0.runs;
        let mut gone = Vec::new();
        let mut suspended = runs.suspended();
        // A run in progress continues by itself.
        if runs.live(id).is_some() {
            return;
        }
        let entries = suspended.entry(id.clone()).or_default();
        let is_open = |question: &str| waiting.iter().any(|(asked, _)| asked.id == question);
        for at in (0..entries.len()).rev() {
            let (question, entry) = &entries[at];
            if !is_open(question) || !self.0.pending.waits(&entry.request.id) {
                gone.push(entries.remove(at));
            }
        }
        for (asked, tool) in waiting {
            if entries.iter().any(|(known, _)| *known == asked.id) {
                continue;
            }
            let question = pending_request(id, caller, &asked, tool.as_deref());
            let (state, there, asked) = (self.clone(), id.clone(), asked.id);
            let (caller, question_id) = (caller.clone(), asked.clone());
            let reply = RequestResponder::new(move |answer| {
                let Ok(answer) = answer else { return };
                let handle = state.0.runs.handle.clone();
                handle.spawn(state.resume_with_answer(there, caller, question_id, answer));
            });
            entries.push((asked, self.0.pending.add(question, reply)));
        }
        if entries.is_empty() {
            suspended.remove(id);
        }
        drop(suspended);
        drop(gone);
    }

    /// Ends all runs gracefully and soon: a stopped run can be resumed.
    pub async fn end_runs(&self) {
        let runs = &self.0.runs;
        runs.permits.close();
        let all = || -> Vec<Arc<LiveRun>> { runs.lock().values().cloned().collect() };
        let mut count = runs.count.subscribe();
        let ended = async {
            let mut waits = false;
            for live in all() {
                if live.suspend() {
                    waits = true;
                } else {
                    live.stop();
                }
            }
            if waits {
                let none = count.wait_for(|count| *count == 0);
                let _ = tokio::time::timeout(SUSPEND_TIME, none).await;
                for live in all() {
                    live.stop();
                }
            }
            let _ = count.wait_for(|count| *count == 0).await;
        };
        if tokio::time::timeout(SHUTDOWN_TIME, ended).await.is_err() {
            tracing::warn!("agent runs were interrupted");
        }
        let suspended = std::mem::take(&mut *runs.suspended());
        drop(suspended);
    }
}

impl RunGuard {
    /// Drives the run to its end.
    async fn drive(mut self, conversation: Conversation, agent: Agent, input: Vec<ChatMessage>) {
        let caller = agent.settings.caller.clone();
        let mut events = agent.run(&conversation, input);
        let mut stop = self.live.stop_signal();
        let mut stopping = false;
        loop {
            tokio::select! {
                // First, so that there is something to stop.
                biased;
                event = events.next() => match event {
                    Some(over @ RunEvent::Ended { .. }) => {
                        self.last = Some(over);
                        // The conversation is free with the last of these.
                        drop((events, conversation, agent));
                        return;
                    }
                    Some(RunEvent::Question { question, answer: Some(answer) }) => {
                        self.ask(&caller, &question, answer);
                    }
                    Some(event) => self.live.record(event),
                    None => unreachable!("the end comes before nothing"),
                },
                _ = stop.wait_for(|stop| *stop), if !stopping => {
                    stopping = true;
                    conversation.stop();
                }
            }
        }
    }

    /// Adds a pending request, answered now or later.
    fn ask(&self, caller: &Caller, question: &Asked, answer: RequestResponder) {
        let (state, id) = (self.state.clone(), self.id.clone());
        let reply = RequestResponder::new(move |answered| {
            if answered.is_ok() {
                state.publish_state(&id, RUNNING);
            }
            answer.send(answered);
        });
        self.live.ask(question, reply, |tool| pending_request(&self.id, caller, question, tool));
        self.state.publish_state(&self.id, WAITING);
    }
}

/// Converts a request of a run to a pending request.
fn pending_request(
    id: &ConversationId,
    caller: &Caller,
    asked: &Asked,
    tool: Option<&str>,
) -> PendingRequest {
    let kind = match asked.kind {
        QuestionOrigin::Approval => RequestKind::Approval,
        QuestionOrigin::Model => RequestKind::Model,
        QuestionOrigin::Server => RequestKind::Server,
        QuestionOrigin::Sampling => RequestKind::Sampling,
    };
    let params = consort_core::Json::from(asked.params.clone()).to_object();
    let params = params.unwrap_or_else(consort_core::Object::empty);
    // The name of a server has no dot.
    let (server, tool) = match tool.and_then(|tool| tool.split_once('.')) {
        Some((server, tool)) => (Some(server.to_owned()), Some(tool.to_owned())),
        None => (None, None),
    };
    PendingRequest {
        server,
        tool,
        call: Some(asked.call.clone()),
        conversation: Some(id.to_string()),
        ..PendingRequest::new(kind, caller, &params)
    }
}
