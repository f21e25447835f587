//! A conversation in memory: its state, its journal, and the lock of its run.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::sync::watch;

use crate::run::RunState;
use crate::step::{ConversationStep, RunReport, RunStatus, StepEvent, StepJournal, UserQuestion};
use consort_models::ChatMessage;

/// A conversation. A handle: clones are the same conversation, and one run at a time is active in it.
#[derive(Clone)]
pub struct Conversation {
    inner: Arc<Mutex<Inner>>,
    stop: Arc<watch::Sender<bool>>,
}

struct Inner {
    run: RunState,
    journal: Box<dyn StepJournal>,
    busy: bool,
}

/// Reason an operation on a conversation failed.
#[derive(Debug, thiserror::Error)]
pub enum ConversationError {
    /// A step could not be stored.
    #[error("the conversation cannot be stored")]
    Journal(#[from] std::io::Error),
    /// No pending question has this id.
    #[error("no pending question `{0}`")]
    NoQuestion(String),
    /// A run is active in it.
    #[error("a run is in progress in this conversation")]
    Busy,
}

impl Default for Conversation {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Conversation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Conversation").finish_non_exhaustive()
    }
}

impl Conversation {
    /// Creates a conversation that is not stored.
    pub fn new() -> Self {
        Self::with_journal(&[], Box::new(NullJournal))
    }

    /// Creates a conversation from its steps, with the journal that stores further ones.
    pub fn with_journal(steps: &[ConversationStep], journal: Box<dyn StepJournal>) -> Self {
        let inner = Inner { run: RunState::from_steps(steps), journal, busy: false };
        Self { inner: Arc::new(Mutex::new(inner)), stop: Arc::new(watch::Sender::new(false)) }
    }

    /// Returns all messages.
    pub fn messages(&self) -> Vec<Arc<ChatMessage>> {
        self.lock().run.messages().to_vec()
    }

    /// Returns the questions to users that are not answered.
    pub fn open_questions(&self) -> Vec<UserQuestion> {
        self.lock().run.open_questions()
    }

    /// Returns true if a run was interrupted in it, or can continue because a user answered.
    pub fn is_unfinished(&self) -> bool {
        self.lock().run.is_unfinished()
    }

    /// Returns the status of its last run, if it ended.
    pub fn outcome(&self) -> Option<RunStatus> {
        self.lock().run.outcome()
    }

    /// Returns the report of its last run so far.
    pub fn report(&self) -> RunReport {
        self.lock().run.report(None)
    }

    /// Returns a copy of its state.
    pub fn state(&self) -> RunState {
        self.lock().run.clone()
    }

    /// Answers a question with the result of an `elicitation/create`; the run continues when it is started again.
    pub fn answer(&self, question: &str, answer: Value) -> Result<(), ConversationError> {
        let mut inner = self.lock();
        if inner.busy {
            return Err(ConversationError::Busy);
        }
        if !inner.run.open_questions().iter().any(|open| open.id == question) {
            return Err(ConversationError::NoQuestion(question.to_owned()));
        }
        let question = question.to_owned();
        inner.record(StepEvent::Answer { question, answer })?;
        Ok(())
    }

    /// Stops the active run: its calls are cancelled, and it ends as cancelled.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Locks the conversation for a run, if none is active.
    pub(crate) fn lock_for_run(&self) -> Option<LockedConversation> {
        let mut inner = self.lock();
        if inner.busy {
            return None;
        }
        inner.busy = true;
        self.stop.send_replace(false);
        Some(LockedConversation(self.clone()))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }
}

impl Inner {
    fn record(&mut self, event: StepEvent) -> std::io::Result<()> {
        let step = ConversationStep { at: now(), event };
        self.journal.record(&step)?;
        self.run.apply(&step);
        Ok(())
    }
}

/// A conversation locked by a run, until this is dropped.
pub(crate) struct LockedConversation(Conversation);

impl LockedConversation {
    /// Stores a step, and then applies it.
    pub(crate) fn record(&self, event: StepEvent) -> std::io::Result<()> {
        self.0.lock().record(event)
    }

    /// Reads the state.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&RunState) -> T) -> T {
        look(&self.0.lock().run)
    }

    /// Waits until the run is stopped.
    pub(crate) async fn wait_for_stop(&self) {
        let mut stop = self.0.stop.subscribe();
        // The sender lives as long as the conversation, which is held here.
        let _ = stop.wait_for(|stop| *stop).await;
    }
}

impl Drop for LockedConversation {
    fn drop(&mut self) {
        self.0.lock().busy = false;
    }
}

/// A journal that stores nothing.
struct NullJournal;

impl StepJournal for NullJournal {
    fn record(&mut self, _: &ConversationStep) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns the milliseconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
