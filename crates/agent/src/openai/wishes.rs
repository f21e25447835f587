//! A provider that applies a client's options and remembers its last error.

use std::sync::{Arc, Mutex, PoisonError};

use consort_core::Emitting;

use super::Wishes;
use consort_models::{Ask, Choice, Provider, ProviderError, Role, Said};

/// A provider that applies a client's options. Clones share the last error.
#[derive(Clone)]
pub struct Wishful {
    inner: Arc<dyn Provider>,
    wishes: Wishes,
    failed: Arc<Mutex<Option<ProviderError>>>,
}

impl std::fmt::Debug for Wishful {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wishful").field("wishes", &self.wishes).finish_non_exhaustive()
    }
}

impl Wishful {
    /// Wraps a provider with these options.
    pub fn new(inner: Arc<dyn Provider>, wishes: Wishes) -> Self {
        Self { inner, wishes, failed: Arc::default() }
    }

    /// Returns the last error, if there was one.
    pub fn failed(&self) -> Option<ProviderError> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Provider for Wishful {
    fn ask(&self, mut ask: Ask) -> Emitting<Said> {
        let Wishes { choice, calls, stop, response } = self.wishes.clone();
        // Whoever must call has done so once there are results; else it would never come to an end.
        let called = ask.messages.last().is_some_and(|last| last.role == Role::Tool);
        ask.choice = if called && choice != Choice::None { Choice::Auto } else { choice };
        ask.calls = calls;
        ask.stop = stop;
        ask.response = response;
        let mut said = self.inner.ask(ask);
        let failed = Arc::clone(&self.failed);
        Emitting::new(|emitter| async move {
            loop {
                match said.next().await {
                    Some(Said::End(end)) => {
                        let error = end.as_ref().err().cloned();
                        *failed.lock().unwrap_or_else(PoisonError::into_inner) = error;
                        return Said::End(end);
                    }
                    Some(said) => emitter.emit(said).await,
                    None => unreachable!("an end comes before nothing"),
                }
            }
        })
    }
}
