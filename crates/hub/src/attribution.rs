//! Questions of servers to people, attributed to the server wherever they pass.

use std::sync::Arc;

use consort_core::{Json, ServerId, attributed};
use consort_wire::{BoxFuture, Host, Offers, Question, Refusal};

/// The hub's host as one server reaches it.
pub(crate) struct AttributedHost {
    pub(crate) server: ServerId,
    pub(crate) inner: Arc<dyn Host>,
}

impl Host for AttributedHost {
    fn offers(&self) -> Offers {
        self.inner.offers()
    }

    fn answer(&self, mut question: Question) -> BoxFuture<'_, Result<Json, Refusal>> {
        question.params = attributed(&self.server, &question.method, question.params);
        self.inner.answer(question)
    }
}
