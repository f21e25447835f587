//! Attribution of server requests: each names its server to the person who answers.

use std::sync::Arc;

use consort_core::{Json, ServerId, attributed};
use consort_wire::{BoxFuture, Host, Offers, Question, Refusal};

/// The hub's client handler for one server.
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
