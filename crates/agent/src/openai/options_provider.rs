//! A provider that applies a client's options and remembers its last error.

use std::sync::Arc;

use consort_core::DrivenStream;
use parking_lot::Mutex;

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
        f.debug_struct("OptionsProvider").field("options", &self.options).finish_non_exhaustive()
    }
}

impl OptionsProvider {
    /// Wraps a provider with these options.
    pub fn new(inner: Arc<dyn ModelProvider>, options: RequestOptions) -> Self {
        Self { inner, options, last_error: Arc::default() }
    }

    /// Returns the last error, if there was one.
    pub fn last_error(&self) -> Option<ProviderError> {
        self.last_error.lock().clone()
    }
}

impl ModelProvider for OptionsProvider {
    fn request(&self, mut request: ModelRequest) -> DrivenStream<ProviderEvent> {
        let RequestOptions { tool_choice, parallel_calls, stop, response_schema } =
            self.options.clone();
        // With results present, a required call was made: requiring another would never end.
        let called = request.messages.last().is_some_and(|last| last.role == MessageRole::Tool);
        request.tool_choice =
            if called && tool_choice != ToolChoice::None { ToolChoice::Auto } else { tool_choice };
        request.parallel_calls = parallel_calls;
        request.stop = stop;
        request.response_schema = response_schema;
        let mut events = self.inner.request(request);
        let last_error = Arc::clone(&self.last_error);
        DrivenStream::new(|emitter| async move {
            loop {
                match events.next().await {
                    Some(ProviderEvent::End(end)) => {
                        let error = end.as_ref().err().cloned();
                        *last_error.lock() = error;
                        return ProviderEvent::End(end);
                    }
                    Some(event) => emitter.emit(event).await,
                    None => unreachable!("an end comes before nothing"),
                }
            }
        })
    }
}
