//! A conversation in hand: what was said, where it is kept, and who is at work on it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tokio::sync::watch;

use crate::message::Message;
use crate::run::Run;
use crate::step::{Journal, Question, Report, Status, Step, What};

/// A conversation as it stands. A handle: clones are the same conversation, and one run at a time goes on
/// in it.
#[derive(Clone)]
pub struct Conversation {
    inner: Arc<Mutex<Inner>>,
    stop: Arc<watch::Sender<bool>>,
}

struct Inner {
    run: Run,
    journal: Box<dyn Journal>,
    busy: bool,
}

/// Why something cannot be done with a conversation.
#[derive(Debug, thiserror::Error)]
pub enum ConversationError {
    /// A step could not be kept.
    #[error("the conversation cannot be kept")]
    Journal(#[from] std::io::Error),
    /// Nothing of that id is asked.
    #[error("there is no open question `{0}`")]
    NoQuestion(String),
    /// A run goes on in it.
    #[error("a run goes on in this conversation")]
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
    /// A new one that is kept nowhere.
    pub fn new() -> Self {
        Self::kept(&[], Box::new(Forgotten))
    }

    /// One that these steps have led to, and that is kept there.
    pub fn kept(steps: &[Step], journal: Box<dyn Journal>) -> Self {
        let inner = Inner { run: Run::of(steps), journal, busy: false };
        Self { inner: Arc::new(Mutex::new(inner)), stop: Arc::new(watch::Sender::new(false)) }
    }

    /// Everything that was said.
    pub fn messages(&self) -> Vec<Arc<Message>> {
        self.lock().run.messages().to_vec()
    }

    /// What a person is asked and has not answered.
    pub fn waiting(&self) -> Vec<Question> {
        self.lock().run.waiting()
    }

    /// Whether a run was broken off in it, or can go on because a person answered.
    pub fn is_unfinished(&self) -> bool {
        self.lock().run.is_unfinished()
    }

    /// How its last run ended, if one did.
    pub fn over(&self) -> Option<Status> {
        self.lock().run.over()
    }

    /// What its last run has come to so far.
    pub fn report(&self) -> Report {
        self.lock().run.report(None)
    }

    /// A copy of its state.
    pub fn run(&self) -> Run {
        self.lock().run.clone()
    }

    /// Answers a question, as the result of an `elicitation/create`; the run goes on when it is run again.
    pub fn answer(&self, question: &str, answer: Value) -> Result<(), ConversationError> {
        let mut inner = self.lock();
        if inner.busy {
            return Err(ConversationError::Busy);
        }
        if !inner.run.waiting().iter().any(|open| open.id == question) {
            return Err(ConversationError::NoQuestion(question.to_owned()));
        }
        let question = question.to_owned();
        inner.take(What::Answered { question, answer })?;
        Ok(())
    }

    /// Stops the run that goes on: its calls are cancelled, and it ends as cancelled.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Takes the conversation for a run, if none goes on.
    pub(crate) fn take(&self) -> Option<Taken> {
        let mut inner = self.lock();
        if inner.busy {
            return None;
        }
        inner.busy = true;
        self.stop.send_replace(false);
        Some(Taken(self.clone()))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn take(&mut self, what: What) -> std::io::Result<()> {
        let step = Step { at: now(), what };
        self.journal.keep(&step)?;
        self.run.apply(&step);
        Ok(())
    }
}

/// A conversation in which a run goes on, until this is dropped.
pub(crate) struct Taken(Conversation);

impl Taken {
    /// Keeps a step, and then counts it.
    pub(crate) fn step(&self, what: What) -> std::io::Result<()> {
        self.0.lock().take(what)
    }

    /// Looks at the state.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Run) -> T) -> T {
        look(&self.0.lock().run)
    }

    /// Waits until somebody stops the run.
    pub(crate) async fn stopped(&self) {
        let mut stop = self.0.stop.subscribe();
        // The sender lives as long as the conversation, which is held here.
        let _ = stop.wait_for(|stop| *stop).await;
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.0.lock().busy = false;
    }
}

/// A journal that keeps nothing.
struct Forgotten;

impl Journal for Forgotten {
    fn keep(&mut self, _: &Step) -> std::io::Result<()> {
        Ok(())
    }
}

/// Milliseconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
