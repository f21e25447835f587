//! Answers to the input requests of a server, which a call returns instead of its result.

use consort_protocol::splice::ObjectWriter;
use consort_protocol::{
    Json, Object, PendingServerRequest, RequestRefusal, RequestResponder, ServerRequestHandling,
};

use crate::call::PendingCallEvent;
use crate::error::ClientCallError;
use crate::exchange::context::CallExecution;
use crate::handler::ServerRequest;
use crate::request::FollowUpRound;

/// The most characters of a server's text that an error quotes.
pub(crate) const QUOTED: usize = 64;

impl CallExecution<'_> {
    /// Lets the handler answer the server's input requests.
    pub(crate) async fn answers(
        &self,
        call: u64,
        result: &Object,
    ) -> Result<FollowUpRound, ClientCallError> {
        let _waiting = self.pulse.wait_for_us();
        let state = result.get("requestState");
        let requests = result.get("inputRequests").and_then(|requests| requests.to_object());
        if state.is_none() && requests.is_none() {
            return Err(ClientCallError::Malformed(
                "it requests input without `inputRequests`".to_owned(),
            ));
        }
        let responses = match requests {
            Some(requests) => Some(self.put(call, &requests, |_| true).await?),
            None => None,
        };
        Ok(FollowUpRound { responses, state })
    }

    /// Passes requests to the handler, one after the other, as a person would want them.
    pub(crate) async fn put(
        &self,
        call: u64,
        requests: &Object,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Json, ClientCallError> {
        if self.request.questions == ServerRequestHandling::Hand {
            return self.hand(requests, wanted).await;
        }
        let host = &self.link.settings.host;
        let offers = host.offers();
        let mut responses = ObjectWriter::new();
        for (key, request) in requests.members().filter(|(key, _)| wanted(key)) {
            let request = request.to_object().unwrap_or_else(Object::empty);
            let method = request.text("method").unwrap_or_default();
            let params = request
                .get("params")
                .and_then(|params| params.to_object())
                .unwrap_or_else(Object::empty);
            if !offers.allow(&method, &params) {
                self.link.counts.refused();
                let method: String = method.chars().take(QUOTED).collect();
                let method = method.escape_debug();
                return Err(ClientCallError::Malformed(format!(
                    "it requests `{method}`, which the client did not declare"
                )));
            }
            let asked = PendingServerRequest {
                method: method.clone(),
                params: params.clone(),
                reply: None,
            };
            self.emit(PendingCallEvent::Question(asked)).await;
            match host.answer(ServerRequest { call: Some(call.into()), method, params }).await {
                Ok(answer) => responses.written(key, answer.as_bytes()),
                Err(RequestRefusal { message, .. }) => {
                    return Err(ClientCallError::Malformed(format!(
                        "its request was not answered: {message}"
                    )));
                }
            }
        }
        Ok(responses.finish())
    }

    /// Passes requests to the caller, all at once, and waits until each was answered.
    async fn hand(
        &self,
        requests: &Object,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Json, ClientCallError> {
        let mut answers = Vec::new();
        for (key, request) in requests.members().filter(|(key, _)| wanted(key)) {
            let request = request.to_object().unwrap_or_else(Object::empty);
            let (sender, answer) = tokio::sync::oneshot::channel();
            let reply = RequestResponder::new(move |answer| {
                let _ = sender.send(answer);
            });
            let params = request.get("params").and_then(|params| params.to_object());
            let asked = PendingServerRequest {
                method: request.text("method").unwrap_or_default(),
                params: params.unwrap_or_else(Object::empty),
                reply: Some(reply),
            };
            self.emit(PendingCallEvent::Question(asked)).await;
            answers.push((key.to_owned(), answer));
        }
        let mut responses = ObjectWriter::new();
        for (key, answer) in answers {
            match answer.await {
                Ok(Ok(answer)) => responses.written(&key, answer.as_bytes()),
                Ok(Err(RequestRefusal { message, .. })) => {
                    return Err(ClientCallError::Malformed(format!(
                        "its request was not answered: {message}"
                    )));
                }
                Err(_) => unreachable!("a reply that is dropped refuses"),
            }
        }
        Ok(responses.finish())
    }
}
