//! A provider that applies a client's options and remembers its last error.

use std::sync::{Arc, Mutex, PoisonError};

use consort_core::Emitting;

use super::Wishes;
use consort_models::{
    MessageRole, ModelProvider, ModelRequest, ProviderError, ProviderEvent, ToolChoice,
};

/// A provider that applies a client's options. Clones share the last error.
#[derive(Clone)]
pub struct Wishful {
    inner: Arc<dyn ModelProvider>,
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
    pub fn new(inner: Arc<dyn ModelProvider>, wishes: Wishes) -> Self {
        Self { inner, wishes, failed: Arc::default() }
    }

    /// Returns the last error, if there was one.
    pub fn failed(&self) -> Option<ProviderError> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ModelProvider for Wishful {
    fn request(&self, mut ask: ModelRequest) -> Emitting<ProviderEvent> {
        let Wishes { choice, calls, stop, response } = self.wishes.clone();
        // Whoever must call has done so once there are results; else it would never come to an end.
        let called = ask.messages.last().is_some_and(|last| last.role == MessageRole::Tool);
        ask.choice = if called && choice != ToolChoice::None { ToolChoice::Auto } else { choice };
        ask.calls = calls;
        ask.stop = stop;
        ask.response = response;
        let mut said = self.inner.request(ask);
        let failed = Arc::clone(&self.failed);
        Emitting::new(|emitter| async move {
            loop {
                match said.next().await {
                    Some(ProviderEvent::End(end)) => {
                        let error = end.as_ref().err().cloned();
                        *failed.lock().unwrap_or_else(PoisonError::into_inner) = error;
                        return ProviderEvent::End(end);
                    }
                    Some(said) => emitter.emit(said).await,
                    None => unreachable!("an end comes before nothing"),
                }
            }
        })
    }
}
