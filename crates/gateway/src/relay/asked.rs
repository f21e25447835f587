//! Questions to a legacy client during one request.

use std::sync::Arc;

use consort_core::{PendingServerRequest, RequestRefusal};
use consort_protocol::splice::{self, ObjectWriter};
use consort_server::ClientSessionState;
use consort_server::sealing::secret;

/// The open questions to a legacy client during one request. They end with the request.
pub(super) struct OpenElicitations<'a> {
    pub(super) session: &'a Arc<ClientSessionState>,
    pub(super) numbers: Vec<u64>,
    /// True if the client accepts events; without them, it cannot be asked.
    pub(super) accepts_events: bool,
}

impl OpenElicitations<'_> {
    /// Returns the message that asks the client, if it may be asked.
    pub(super) fn put(&mut self, question: PendingServerRequest) -> Option<bytes::Bytes> {
        let PendingServerRequest { method, params, reply } = question;
        let reply = reply?;
        if !self.accepts_events || !self.session.offers.allow(&method, &params) {
            reply.send(Err(RequestRefusal::not_offered(&method)));
            return None;
        }
        let number = self.session.ask(reply);
        self.numbers.push(number);
        let url = params.text("mode").as_deref() == Some("url");
        let lacks_id = url && params.get_bytes("elicitationId").is_none();
        Some(splice::request(number, &method, params.as_bytes().len(), |writer| {
            writer.members(&params, &[]);
            if lacks_id {
                writer.text("elicitationId", &secret());
            }
        }))
    }

    /// Returns the messages that cancel unanswered questions.
    pub(super) fn withdraw(&mut self) -> Vec<bytes::Bytes> {
        let open = self.session.forget(&std::mem::take(&mut self.numbers));
        let cancelled = |number: u64| {
            let mut params = ObjectWriter::new();
            params.raw("requestId", number.to_string().as_bytes());
            params.text("reason", "request cancelled");
            splice::notification("notifications/cancelled", Some(&params.finish()))
        };
        open.into_iter().map(cancelled).collect()
    }
}

impl Drop for OpenElicitations<'_> {
    fn drop(&mut self) {
        self.session.forget(&self.numbers);
    }
}
