//! Runs in progress, independent of subscribers, and pending requests of suspended conversations.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use consort_agent::store::{ConversationId, ConversationState};
use consort_agent::{
    Agent, Conversation, ConversationStore, QuestionOrigin, RunEvent, UserQuestion as Asked,
};
use consort_core::{Caller, Reply};
use consort_models::ChatMessage;
use http::StatusCode;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::live::Live;
use crate::command::conversations;
use crate::console::Console;
use crate::console::desk::{Kind, Question, Slip};
use crate::console::route::Refusal;

/// Time limit for runs to end gracefully at shutdown.
const GRACE: Duration = Duration::from_secs(3);

/// Part of that time for runs that wait for a person, before they are stopped.
const PUT_OFF: Duration = Duration::from_secs(1);

/// State of a run in progress.
const RUNNING: &str = "running";

/// State of a run that waits for a person.
const WAITING: &str = "waiting";

/// All runs in progress.
pub(in crate::console) struct Runs {
    /// The runtime for runs, apart from the threads that serve requests.
    pub(super) handle: Handle,
    store: Option<ConversationStore>,
    live: Mutex<HashMap<ConversationId, Arc<Live>>>,
    /// Pending requests of conversations without a run, by their ids there.
    kept: Mutex<BTreeMap<ConversationId, Vec<(String, Slip)>>>,
    places: Arc<Semaphore>,
    /// Limit of concurrent runs.
    most: usize,
    /// Number of runs in progress.
    count: watch::Sender<usize>,
}

impl Runs {
    /// No runs, with a limit of concurrent ones.
    pub(in crate::console) fn new(most: usize) -> Self {
        Self {
            handle: Handle::current(),
            store: conversations::folder().map(ConversationStore::new),
            live: Mutex::default(),
            kept: Mutex::default(),
            places: Arc::new(Semaphore::new(most)),
            most,
            count: watch::Sender::new(0),
        }
    }

    /// Returns the store of conversations.
    pub(super) fn store(&self) -> Result<ConversationStore, Refusal> {
        let nowhere = || {
            let error = "there is no home folder to keep conversations in";
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, error).hint("set `HOME` and start again")
        };
        self.store.clone().ok_or_else(nowhere)
    }

    /// Acquires a permit for a run, if one is left.
    pub(super) fn place(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        let full = |error: tokio::sync::TryAcquireError| {
            let (error, hint) = match error {
                tokio::sync::TryAcquireError::Closed => {
                    ("the gateway is ending".to_owned(), "ask again when it is back")
                }
                tokio::sync::TryAcquireError::NoPermits => (
                    format!("{} runs are on already", self.most),
                    "wait for one to end, or stop one",
                ),
            };
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, error).hint(hint)
        };
        Arc::clone(&self.places).try_acquire_owned().map_err(full)
    }

    /// The run in progress in a conversation.
    pub(super) fn live(&self, id: &ConversationId) -> Option<Arc<Live>> {
        self.lock().get(id).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ConversationId, Arc<Live>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<ConversationId, Vec<(String, Slip)>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Withdraws the pending requests of a conversation.
    pub(super) fn forget(&self, id: &ConversationId) {
        let slips = self.kept().remove(id);
        drop(slips);
    }
}

/// Guard of a run: it counts as in progress until this is dropped, also by a panic.
struct OnStage {
    console: Console,
    id: ConversationId,
    live: Arc<Live>,
    last: Option<RunEvent>,
    _place: OwnedSemaphorePermit,
}

impl Drop for OnStage {
    fn drop(&mut self) {
        let runs = &self.console.0.runs;
        // Whoever hears of the end can go on with the conversation.
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
        self.console.news(&self.id, state.as_str());
    }
}

impl Console {
    /// Runs an agent on a conversation in the background.
    pub(super) fn run(
        &self,
        id: ConversationId,
        conversation: Conversation,
        agent: Agent,
        input: Vec<ChatMessage>,
        place: OwnedSemaphorePermit,
    ) {
        let runs = &self.0.runs;
        let live = Arc::new(Live::new(conversation.clone(), Arc::clone(&self.0.desk)));
        runs.lock().insert(id.clone(), Arc::clone(&live));
        runs.forget(&id);
        runs.count.send_modify(|count| *count += 1);
        self.news(&id, RUNNING);
        let console = self.clone();
        let stage = OnStage { console, id, live, last: None, _place: place };
        runs.handle.spawn(stage.play(conversation, agent, input));
    }

    /// Publishes the state of a conversation.
    fn news(&self, id: &ConversationId, state: &str) {
        // Nobody may be listening.
        let _ = self.0.news.send((id.to_string(), state.to_owned()));
    }

    /// Adds the pending requests of a conversation, if no run is in progress in it.
    pub(super) fn wait_for(
        &self,
        id: &ConversationId,
        caller: &Caller,
        waiting: Vec<(Asked, Option<String>)>,
    ) {
        let runs = &self.0.runs;
        let mut gone = Vec::new();
        let mut kept = runs.kept();
        // What is on goes on by itself.
        if runs.live(id).is_some() {
            return;
        }
        let slips = kept.entry(id.clone()).or_default();
        let is_open = |question: &str| waiting.iter().any(|(asked, _)| asked.id == question);
        for at in (0..slips.len()).rev() {
            let (question, slip) = &slips[at];
            if !is_open(question) || !self.0.desk.waits(&slip.question.id) {
                gone.push(slips.remove(at));
            }
        }
        for (asked, tool) in waiting {
            if slips.iter().any(|(known, _)| *known == asked.id) {
                continue;
            }
            let question = put(id, caller, &asked, tool.as_deref());
            let (console, there, asked) = (self.clone(), id.clone(), asked.id);
            let (caller, question_id) = (caller.clone(), asked.clone());
            let reply = Reply::new(move |answer| {
                let Ok(answer) = answer else { return };
                let handle = console.0.runs.handle.clone();
                handle.spawn(console.answered(there, caller, question_id, answer));
            });
            slips.push((asked, self.0.desk.put(question, reply)));
        }
        if slips.is_empty() {
            kept.remove(id);
        }
        drop(kept);
        drop(gone);
    }

    /// Ends all runs gracefully and soon: a stopped run can be resumed.
    pub(crate) async fn end(&self) {
        let runs = &self.0.runs;
        runs.places.close();
        let all = || -> Vec<Arc<Live>> { runs.lock().values().cloned().collect() };
        let mut count = runs.count.subscribe();
        let ended = async {
            let mut waits = false;
            for live in all() {
                if live.put_off() {
                    waits = true;
                } else {
                    live.stop();
                }
            }
            if waits {
                let none = count.wait_for(|count| *count == 0);
                let _ = tokio::time::timeout(PUT_OFF, none).await;
                for live in all() {
                    live.stop();
                }
            }
            let _ = count.wait_for(|count| *count == 0).await;
        };
        if tokio::time::timeout(GRACE, ended).await.is_err() {
            tracing::warn!("runs of agents were broken off");
        }
        let kept = std::mem::take(&mut *runs.kept());
        drop(kept);
    }
}

impl OnStage {
    /// Drives the run to its end.
    async fn play(mut self, conversation: Conversation, agent: Agent, input: Vec<ChatMessage>) {
        let caller = agent.settings.caller.clone();
        let mut events = agent.run(&conversation, input);
        let mut stop = self.live.stopped();
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
                    Some(event) => self.live.tell(event),
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
    fn ask(&self, caller: &Caller, question: &Asked, answer: Reply) {
        let (console, id) = (self.console.clone(), self.id.clone());
        let reply = Reply::new(move |answered| {
            if answered.is_ok() {
                console.news(&id, RUNNING);
            }
            answer.send(answered);
        });
        self.live.ask(question, reply, |tool| put(&self.id, caller, question, tool));
        self.console.news(&self.id, WAITING);
    }
}

/// Converts a request of a run to a pending request.
fn put(id: &ConversationId, caller: &Caller, asked: &Asked, tool: Option<&str>) -> Question {
    let kind = match asked.kind {
        QuestionOrigin::Approval => Kind::Approval,
        QuestionOrigin::Model => Kind::Model,
        QuestionOrigin::Server => Kind::Server,
        QuestionOrigin::Sampling => Kind::Sampling,
    };
    let params = consort_core::Json::from(asked.params.clone()).to_object();
    let params = params.unwrap_or_else(consort_core::Object::empty);
    // The name of a server has no dot.
    let (server, tool) = match tool.and_then(|tool| tool.split_once('.')) {
        Some((server, tool)) => (Some(server.to_owned()), Some(tool.to_owned())),
        None => (None, None),
    };
    Question {
        server,
        tool,
        call: Some(asked.call.clone()),
        conversation: Some(id.to_string()),
        ..Question::new(kind, caller.label(), &params)
    }
}
