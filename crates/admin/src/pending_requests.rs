//! Pending requests for a person, from every source.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use consort_core::{Json, Object, Refusal as Refused, Reply};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::watch;

use crate::timestamp::iso;

/// A pending request for a person.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Question {
    /// Id, assigned by the gateway.
    pub(crate) id: String,
    pub(crate) kind: Kind,
    /// Creation time.
    pub(crate) since: String,
    /// Expiry time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) expires: Option<String>,
    /// Caller.
    pub(crate) caller: String,
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
pub(crate) enum Kind {
    /// Approval of a call.
    Approval,
    /// Elicitation of a server during a call.
    Server,
    /// Question of a model.
    Model,
    /// Sampling request of a server.
    Sampling,
}

impl Question {
    /// Builds a request from the parameters of an `elicitation/create`.
    pub(crate) fn new(kind: Kind, caller: String, params: &Object) -> Self {
        Self {
            id: String::new(),
            kind,
            since: iso(SystemTime::now()),
            expires: None,
            caller,
            server: None,
            tool: None,
            call: None,
            conversation: None,
            message: params.text("message").unwrap_or_default(),
            schema: params.get("requestedSchema").and_then(|schema| schema.read().ok()),
            url: params.text("url"),
        }
    }

    /// Sets the time after which nobody waits for the answer.
    pub(crate) fn within(mut self, time: Duration) -> Self {
        self.expires = Some(iso(SystemTime::now() + time));
        self
    }
}

/// All pending requests for a person.
#[derive(Debug, Default)]
pub struct Desk {
    waiting: Mutex<BTreeMap<String, (Question, Reply)>>,
    next: AtomicU64,
    stirred: watch::Sender<u64>,
    looking: AtomicUsize,
}

/// A pending request. Dropping it withdraws it: nobody waits for the answer any more.
#[derive(Debug)]
pub(crate) struct Slip {
    desk: Arc<Desk>,
    /// The request as it was added.
    pub(crate) question: Question,
}

impl Slip {
    /// Returns true if it is not answered yet.
    pub(crate) fn waits(&self) -> bool {
        self.desk.lock().contains_key(&self.question.id)
    }
}

impl Drop for Slip {
    fn drop(&mut self) {
        if self.desk.take(&self.question.id).is_some() {
            self.desk.stir();
        }
    }
}

/// An open console, until this is dropped.
#[derive(Debug)]
pub(crate) struct Looking(Arc<Desk>);

impl Drop for Looking {
    fn drop(&mut self) {
        self.0.looking.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Desk {
    /// Adds a pending request.
    #[must_use = "dropped, the question is taken away"]
    pub(crate) fn put(self: &Arc<Self>, mut question: Question, reply: Reply) -> Slip {
        let number = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        question.id = format!("q{number:06}");
        self.lock().insert(question.id.clone(), (question.clone(), reply));
        self.stir();
        Slip { desk: Arc::clone(self), question }
    }

    /// All pending requests, oldest first.
    pub(crate) fn waiting(&self) -> Vec<Question> {
        self.lock().values().map(|(question, _)| question.clone()).collect()
    }

    /// A channel that changes whenever a request is added or removed.
    pub(crate) fn stirred(&self) -> watch::Receiver<u64> {
        self.stirred.subscribe()
    }

    /// Registers an open console until the returned value is dropped.
    pub(crate) fn look(self: &Arc<Self>) -> Looking {
        self.looking.fetch_add(1, Ordering::Relaxed);
        Looking(Arc::clone(self))
    }

    /// Returns true if a console is open.
    pub fn is_attended(&self) -> bool {
        self.looking.load(Ordering::Relaxed) > 0
    }

    /// Returns a pending request.
    pub(crate) fn get(&self, id: &str) -> Option<Question> {
        self.lock().get(id).map(|(question, _)| question.clone())
    }

    /// Returns true if a request is pending.
    pub(crate) fn waits(&self, id: &str) -> bool {
        self.lock().contains_key(id)
    }

    /// Answers a request; false if it is no longer pending.
    pub(crate) fn settle(&self, id: &str, answer: Result<Json, Refused>) -> bool {
        let Some((_, reply)) = self.take(id) else { return false };
        reply.send(answer);
        self.stir();
        true
    }

    fn take(&self, id: &str) -> Option<(Question, Reply)> {
        self.lock().remove(id)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, (Question, Reply)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stir(&self) {
        self.stirred.send_modify(|count| *count += 1);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_question_waits_until_nobody_wants_the_answer() {
        let desk = Arc::new(Desk::default());
        let params = json!({ "message": "May I?" });
        let params = Json::from(params).to_object().unwrap();
        let question = Question::new(Kind::Approval, "client:ada".to_owned(), &params);
        let slip = desk.put(question, Reply::new(|_| ()));
        assert_eq!(desk.waiting().len(), 1);
        assert_eq!(desk.waiting()[0].message, "May I?");
        drop(slip);
        assert!(desk.waiting().is_empty());
    }

    #[test]
    fn somebody_looks_as_long_as_they_do() {
        let desk = Arc::new(Desk::default());
        let looking = desk.look();
        assert!(desk.is_attended());
        drop(looking);
        assert!(!desk.is_attended());
    }
}
