//! Pending requests for a person, from every source.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use consort_core::{Caller, IdentityId, Json, Object, RequestRefusal as Refused, RequestResponder};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::watch;

use crate::timestamp::iso_time;

/// A pending request for a person.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct PendingRequest {
    /// Id, assigned by the gateway.
    pub(crate) id: String,
    pub(crate) kind: RequestKind,
    /// Creation time.
    pub(crate) since: String,
    /// Expiry time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) expires: Option<String>,
    /// Caller.
    pub(crate) caller: String,
    /// Id of the caller.
    #[serde(skip)]
    pub(crate) caller_id: IdentityId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool: Option<String>,
    /// Id of the call in the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) call: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) conversation: Option<String>,
    /// Message in plain text. It is untrusted.
    pub(crate) message: String,
    /// JSON Schema of the answer: a flat object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) schema: Option<Value>,
    /// URL that the person should open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
}

/// Kind of a pending request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RequestKind {
    /// Approval of a call.
    Approval,
    /// Elicitation of a server during a call.
    Server,
    /// Question of a model.
    Model,
    /// Sampling request of a server.
    Sampling,
}

impl PendingRequest {
    /// Builds a request from the parameters of an `elicitation/create`.
    pub(crate) fn new(kind: RequestKind, caller: &Caller, params: &Object) -> Self {
        Self {
            id: String::new(),
            kind,
            since: iso_time(SystemTime::now()),
            expires: None,
            caller: caller.label(),
            caller_id: caller.id().clone(),
            server: None,
            tool: None,
            call: None,
            conversation: None,
            message: params.text("message").unwrap_or_default(),
            schema: params.get("requestedSchema").and_then(|schema| schema.read().ok()),
            url: params.text("url"),
        }
    }

    /// Returns true if a caller may see and answer it: administrators approve the calls of everybody, and what a server
    /// or a conversation asks is its caller's own. The owner may everything.
    pub(crate) fn is_for(&self, viewer: &Caller) -> bool {
        if viewer.is_owner() {
            return true;
        }
        let is_approval = self.kind == RequestKind::Approval;
        self.conversation.is_none() && (is_approval || self.caller_id == *viewer.id())
    }

    /// Sets the time after which nobody waits for the answer.
    pub(crate) fn expires_in(mut self, time: Duration) -> Self {
        self.expires = Some(iso_time(SystemTime::now() + time));
        self
    }
}

/// All pending requests for a person.
#[derive(Debug, Default)]
pub struct PendingRequests {
    waiting: Mutex<BTreeMap<String, (PendingRequest, RequestResponder)>>,
    next: AtomicU64,
    changes: watch::Sender<u64>,
    open_consoles: AtomicUsize,
}

/// A pending request. Dropping it withdraws it: nobody waits for the answer any more.
#[derive(Debug)]
pub(crate) struct PendingEntry {
    pending: Arc<PendingRequests>,
    /// The request as it was added.
    pub(crate) request: PendingRequest,
}

impl PendingEntry {
    /// Returns true if it is not answered yet.
    pub(crate) fn waits(&self) -> bool {
        self.pending.lock().contains_key(&self.request.id)
    }
}

impl Drop for PendingEntry {
    fn drop(&mut self) {
        if self.pending.take(&self.request.id).is_some() {
            self.pending.notify();
        }
    }
}

/// An open console, until this is dropped.
#[derive(Debug)]
pub(crate) struct ConsolePresence(Arc<PendingRequests>);

impl Drop for ConsolePresence {
    fn drop(&mut self) {
        self.0.open_consoles.fetch_sub(1, Ordering::Relaxed);
    }
}

impl PendingRequests {
    /// Adds a pending request.
    #[must_use = "dropped, the question is taken away"]
    pub(crate) fn add(
        self: &Arc<Self>,
        mut question: PendingRequest,
        reply: RequestResponder,
    ) -> PendingEntry {
        let number = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        question.id = format!("q{number:06}");
        self.lock().insert(question.id.clone(), (question.clone(), reply));
        self.notify();
        PendingEntry { pending: Arc::clone(self), request: question }
    }

    /// The pending requests that a caller may answer, oldest first.
    pub(crate) fn entries(&self, viewer: &Caller) -> Vec<PendingRequest> {
        let waiting = self.lock();
        let requests = waiting.values().map(|(question, _)| question);
        requests.filter(|request| request.is_for(viewer)).cloned().collect()
    }

    /// A channel that changes whenever a request is added or removed.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Registers an open console until the returned value is dropped.
    pub(crate) fn register_console(self: &Arc<Self>) -> ConsolePresence {
        self.open_consoles.fetch_add(1, Ordering::Relaxed);
        ConsolePresence(Arc::clone(self))
    }

    /// Returns true if a console is open.
    pub fn has_open_console(&self) -> bool {
        self.open_consoles.load(Ordering::Relaxed) > 0
    }

    /// Returns a pending request.
    pub(crate) fn get(&self, id: &str) -> Option<PendingRequest> {
        self.lock().get(id).map(|(question, _)| question.clone())
    }

    /// Returns true if a request is pending.
    pub(crate) fn waits(&self, id: &str) -> bool {
        self.lock().contains_key(id)
    }

    /// Answers a request; false if it is no longer pending.
    pub(crate) fn answer(&self, id: &str, answer: Result<Json, Refused>) -> bool {
        let Some((_, reply)) = self.take(id) else { return false };
        reply.send(answer);
        self.notify();
        true
    }

    fn take(&self, id: &str) -> Option<(PendingRequest, RequestResponder)> {
        self.lock().remove(id)
    }

    fn lock(
        &self,
    ) -> parking_lot::MutexGuard<'_, BTreeMap<String, (PendingRequest, RequestResponder)>> {
        self.waiting.lock()
    }

    fn notify(&self) {
        self.changes.send_modify(|count| *count += 1);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_question_waits_until_nobody_wants_the_answer() {
        let pending = Arc::new(PendingRequests::default());
        let params = json!({ "message": "May I?" });
        let params = Json::from(params).to_object().unwrap();
        let question = PendingRequest::new(RequestKind::Approval, &Caller::client("ada"), &params);
        let entry = pending.add(question, RequestResponder::new(|_| ()));
        let entries = || pending.entries(&Caller::owner());
        assert_eq!(entries().len(), 1);
        assert_eq!(entries()[0].message, "May I?");
        drop(entry);
        assert!(entries().is_empty());
    }

    #[test]
    fn an_administrator_sees_approvals_of_everybody_and_other_requests_of_nobody_else() {
        let params = Json::from(json!({ "message": "?" })).to_object().unwrap();
        let (ada, ben) = (Caller::client("ada"), Caller::client("ben"));
        let request = |kind, conversation: Option<&str>| PendingRequest {
            conversation: conversation.map(str::to_owned),
            ..PendingRequest::new(kind, &ada, &params)
        };
        for (kind, conversation, of_ada, of_ben) in [
            (RequestKind::Approval, None, true, true),
            (RequestKind::Server, None, true, false),
            (RequestKind::Sampling, None, true, false),
            (RequestKind::Approval, Some("c"), false, false),
            (RequestKind::Model, Some("c"), false, false),
        ] {
            let request = request(kind, conversation);
            assert!(request.is_for(&Caller::owner()));
            assert_eq!((request.is_for(&ada), request.is_for(&ben)), (of_ada, of_ben), "{kind:?}");
        }
    }

    #[test]
    fn somebody_looks_as_long_as_they_do() {
        let pending = Arc::new(PendingRequests::default());
        let presence = pending.register_console();
        assert!(pending.has_open_console());
        drop(presence);
        assert!(!pending.has_open_console());
    }
}
