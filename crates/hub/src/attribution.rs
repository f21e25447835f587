//! Attribution of server requests: each names its server to the person who answers.

use std::sync::Arc;

use consort_client::{BoxFuture, ClientHandler, ServerRequest};
use consort_core::{Json, ServerId, attributed};
use consort_protocol::{ClientCapabilities, RequestRefusal};

/// The hub's client handler for one server.
pub(crate) struct AttributedHost {
    pub(crate) server: ServerId,
    pub(crate) inner: Arc<dyn ClientHandler>,
}

impl ClientHandler for AttributedHost {
    fn offers(&self) -> ClientCapabilities {
        self.inner.offers()
    }

    fn answer(&self, mut question: ServerRequest) -> BoxFuture<'_, Result<Json, RequestRefusal>> {
        question.params = attributed(&self.server, &question.method, question.params);
        self.inner.answer(question)
    }
}
