//! Input requests of a server to a client, each under a key.

use consort_core::{Json, Object, PendingServerRequest, RequestRefusal, RequestResponder};
use consort_protocol::splice::ObjectWriter;
use consort_server::sealing::random;

/// Input requests of a server, each under a key.
#[derive(Debug, Default)]
pub(crate) struct InputRequests {
    open: Vec<OpenInputs>,
    asked: u32,
    /// The prefix of every key.
    prefix: String,
}

#[derive(Debug)]
struct OpenInputs {
    key: String,
    method: String,
    params: Object,
    reply: Option<RequestResponder>,
}

impl InputRequests {
    /// Creates questions with globally unique keys.
    pub(crate) fn unique() -> Self {
        let prefix = format!("{:08x}-", u32::from_be_bytes(random()));
        Self { prefix, ..Self::default() }
    }

    pub(crate) fn add(&mut self, asked: PendingServerRequest) {
        self.asked += 1;
        let PendingServerRequest { method, params, reply } = asked;
        let key = format!("{}q{}", self.prefix, self.asked);
        self.open.push(OpenInputs { key, method, params, reply });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Passes on the given answers; unanswered questions stay open.
    pub(crate) fn answer(&mut self, responses: &Object) {
        for mut question in std::mem::take(&mut self.open) {
            match responses.get(&question.key).filter(|response| response.to_object().is_some()) {
                Some(response) => {
                    if let Some(reply) = question.reply.take() {
                        reply.send(Ok(response));
                    }
                }
                None => self.open.push(question),
            }
        }
    }

    /// Refuses all of them.
    pub(crate) fn refuse(&mut self, message: &str) {
        for question in self.open.drain(..) {
            if let Some(reply) = question.reply {
                reply.send(Err(RequestRefusal { code: -32603, message: message.to_owned() }));
            }
        }
    }

    /// Returns the questions as `inputRequests` for a modern client.
    pub(crate) fn requests(&self) -> Json {
        let mut writer = ObjectWriter::new();
        for question in &self.open {
            writer.object(&question.key, |request| {
                request.text("method", &question.method);
                // The id is between the server and us.
                if question.params.get_bytes("elicitationId").is_some() {
                    request.object("params", |params| {
                        params.members(&question.params, &["elicitationId"]);
                    });
                } else {
                    request.raw("params", question.params.as_bytes());
                }
            });
        }
        writer.finish()
    }
}
