//! A provider that applies a client's options and remembers its last error.

use std::sync::{Arc, Mutex, PoisonError};

use consort_core::Emitting;

use super::RequestOptions;
use consort_models::{
    MessageRole, ModelProvider, ModelRequest, ProviderError, ProviderEvent, ToolChoice,
};

/// A provider that applies a client's options. Clones share the last error.
#[derive(Clone)]
pub struct OptionsProvider {
    inner: Arc<dyn ModelProvider>,
    options: RequestOptions,
    last_error: Arc<Mutex<Option<ProviderError>>>,
}

impl std::fmt::Debug for OptionsProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OptionsProvider").field("wishes", &self.options).finish_non_exhaustive()
    }
}

impl OptionsProvider {
    /// Wraps a provider with these options.
    pub fn new(inner: Arc<dyn ModelProvider>, options: RequestOptions) -> Self {
        Self { inner, options, last_error: Arc::default() }
    }

    /// Returns the last error, if there was one.
    pub fn failed(&self) -> Option<ProviderError> {
        self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ModelProvider for OptionsProvider {
    fn request(&self, mut request: ModelRequest) -> Emitting<ProviderEvent> {
        let RequestOptions { choice, calls, stop, response } = self.options.clone();
        // Whoever must call has done so once there are results; else it would never come to an end.
        let called = request.messages.last().is_some_and(|last| last.role == MessageRole::Tool);
        request.choice =
            if called && choice != ToolChoice::None { ToolChoice::Auto } else { choice };
        request.calls = calls;
        request.stop = stop;
        request.response = response;
        let mut said = self.inner.request(request);
        let failed = Arc::clone(&self.last_error);
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
