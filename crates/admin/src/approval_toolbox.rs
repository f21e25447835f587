//! A toolbox whose calls can be approved by a person at the console, from every caller.

use std::sync::{Arc, Weak};
use std::time::Duration;

use consort_core::{
    Call, CallEvent, CallEvents, Caller, Catalog, CatalogChanges, Json, PendingServerRequest,
    PrimitiveKind, RefusedTarget, RejectReason, RequestRefusal, RequestResponder, ServerId,
    Toolbox,
};
use parking_lot::Mutex;

use crate::pending_requests::{PendingEntry, PendingRequest, PendingRequests, RequestKind};

/// A toolbox whose calls can be approved by a person at the console. It wraps the policy layer: an approval is
/// requested from the console as well as from the caller, and the first answer counts. While no console is open, it
/// passes calls through.
pub struct ApprovalToolbox {
    inner: Arc<dyn Toolbox>,
    pending: Arc<PendingRequests>,
    /// Time limit for the answer of a person.
    answer: Duration,
}

/// A call that may need approval.
struct ApprovalSubject {
    caller: Caller,
    server: Option<String>,
    tool: String,
    /// True if the caller can be asked too.
    asks: bool,
}

impl ApprovalToolbox {
    /// Wraps the policy layer; `answer` is the time limit for the answer of a person.
    pub fn new(inner: Arc<dyn Toolbox>, pending: Arc<PendingRequests>, answer: Duration) -> Self {
        Self { inner, pending, answer }
    }

    /// Passes the events of a call through and adds its approvals to the pending requests.
    fn watch_approvals(&self, mut events: CallEvents, subject: ApprovalSubject) -> CallEvents {
        let (pending, answer) = (Arc::clone(&self.pending), self.answer);
        CallEvents::new(|emitter| async move {
            // The pending request; dropping it removes it from the list.
            let mut open: Vec<Arc<OpenApproval>> = Vec::new();
            loop {
                match events.next().await {
                    Some(CallEvent::Approval(PendingServerRequest {
                        method,
                        params,
                        reply: Some(reply),
                    })) if pending.has_open_console() => {
                        let question = subject.question(&params, answer);
                        let approval = OpenApproval::put(&pending, question, reply);
                        let reply = subject.asks.then(|| approval.reply(&pending));
                        open.push(approval);
                        if reply.is_some() {
                            emitter
                                .emit(CallEvent::Approval(PendingServerRequest {
                                    method,
                                    params,
                                    reply,
                                }))
                                .await;
                        }
                    }
                    Some(end @ CallEvent::End(_)) => return end,
                    Some(event) => {
                        // The call continues, so the request is answered.
                        open.clear();
                        emitter.emit(event).await;
                    }
                    None => unreachable!("an end comes before nothing"),
                }
            }
        })
    }
}

impl ApprovalSubject {
    fn question(&self, params: &consort_core::Object, answer: Duration) -> PendingRequest {
        let question = PendingRequest::new(RequestKind::Approval, &self.caller, params);
        let (server, tool) = (self.server.clone(), Some(self.tool.clone()));
        PendingRequest { server, tool, ..question }.expires_in(answer)
    }
}

/// A request with two ways to answer it.
struct OpenApproval(Mutex<ApprovalReply>);

#[derive(Default)]
struct ApprovalReply {
    /// Reply to the party that waits for the answer.
    reply: Option<RequestResponder>,
    entry: Option<PendingEntry>,
}

impl OpenApproval {
    /// Adds a pending request.
    fn put(
        pending: &Arc<PendingRequests>,
        question: PendingRequest,
        reply: RequestResponder,
    ) -> Arc<Self> {
        let open = Arc::new(Self(Mutex::new(ApprovalReply { reply: Some(reply), entry: None })));
        let there = Arc::downgrade(&open);
        let entry =
            pending.add(question, RequestResponder::new(move |answer| settle(&there, answer)));
        open.lock().entry = Some(entry);
        open
    }

    /// Another way to answer it. A refusal leaves it pending while a console is open.
    fn reply(self: &Arc<Self>, pending: &Arc<PendingRequests>) -> RequestResponder {
        let (there, pending) = (Arc::downgrade(self), Arc::clone(pending));
        RequestResponder::new(move |answer| {
            if answer.is_ok() || !pending.has_open_console() {
                settle(&there, answer);
            }
        })
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, ApprovalReply> {
        self.0.lock()
    }
}

/// Answers a request unless it is answered, and removes it from the pending requests.
fn settle(open: &Weak<OpenApproval>, answer: Result<Json, RequestRefusal>) {
    let Some(open) = open.upgrade() else { return };
    // The slip is dropped outside the lock: that comes back here.
    let ApprovalReply { reply, entry } = std::mem::take(&mut *open.lock());
    if let Some(reply) = reply {
        reply.send(answer);
    }
    drop(entry);
}

impl Toolbox for ApprovalToolbox {
    fn catalog(&self, caller: &Caller) -> Arc<Catalog> {
        self.inner.catalog(caller)
    }

    fn call(&self, call: Call) -> CallEvents {
        let asks = call.client.as_ref().is_some_and(|client| client.offers.form);
        // Requests of agents and of the console are in the list already.
        let asks_itself = asks && call.client.as_ref().is_some_and(|client| client.is_local);
        let target = call.tool_target().filter(|_| !asks_itself && self.pending.has_open_console());
        let Some(target) = target else { return self.inner.call(call) };
        let subject = ApprovalSubject {
            caller: call.caller.clone(),
            server: Some(target.server.to_string()),
            tool: target.name.clone(),
            asks,
        };
        self.watch_approvals(self.inner.call(call), subject)
    }

    fn inner(&self) -> Option<&dyn Toolbox> {
        Some(&*self.inner)
    }

    fn changes(&self) -> CatalogChanges {
        self.inner.changes()
    }

    fn withheld(
        &self,
        caller: &Caller,
        kind: PrimitiveKind,
        target: &RefusedTarget,
    ) -> Option<(ServerId, RejectReason)> {
        self.inner.withheld(caller, kind, target)
    }
}

impl std::fmt::Debug for ApprovalToolbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApprovalToolbox").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use consort_core::{
        CallError, CallOutcome, ClientCapabilities, ClientContext, DrivenStream, ToolResult,
    };
    use consort_shape::policy::{Policy, PolicySpec};
    use consort_shape::{ApprovalLimits, OtherApprover, PolicySettings, PolicyToolbox};
    use serde_json::{Value, json};

    use super::*;

    /// A toolbox with one tool, which returns its arguments.
    struct One(Arc<Catalog>);

    impl Toolbox for One {
        fn catalog(&self, _: &Caller) -> Arc<Catalog> {
            Arc::clone(&self.0)
        }

        fn call(&self, call: Call) -> CallEvents {
            CallEvents::answered(ToolResult::structured(&call.arguments()))
        }

        fn changes(&self) -> CatalogChanges {
            DrivenStream::new(|_| std::future::pending())
        }
    }

    fn attended(pending: &Arc<PendingRequests>) -> ApprovalToolbox {
        let schema = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
        let tool = consort_core::Tool::new("delete", "", &schema.into());
        let mut catalog = Catalog::default();
        let route = consort_core::CatalogRoute {
            server: "files".parse().unwrap(),
            name: "delete".to_owned(),
        };
        let name = "delete".to_owned();
        let entry =
            consort_core::CatalogEntry { route, name, definition: tool.definition().clone() };
        catalog.set(PrimitiveKind::Tools, vec![entry]);
        let spec: PolicySpec = serde_json::from_value(json!({ "default": "ask" })).unwrap();
        let presence = Arc::clone(pending);
        let guard = PolicySettings {
            policy: Policy::compile(&spec).unwrap(),
            profile: None,
            approvals: Arc::default(),
            limits: ApprovalLimits::default(),
            other_approver: OtherApprover::new(move || presence.has_open_console()),
        };
        let guarded = PolicyToolbox::new(Arc::new(One(Arc::new(catalog))), guard);
        let answer = ApprovalLimits::default().answer;
        ApprovalToolbox::new(Arc::new(guarded), Arc::clone(pending), answer)
    }

    fn call(form: bool) -> Call {
        let target: consort_core::Target = "files.delete".parse().unwrap();
        let arguments = json!({ "path": "/a" }).into();
        let offers = Arc::new(ClientCapabilities { form, ..ClientCapabilities::default() });
        Call::tool(Caller::client("ada"), target, arguments).by(ClientContext::new(offers))
    }

    /// Drives a call until it waits for a person; returns the event passed on to the caller.
    async fn waits(events: &mut CallEvents) -> Option<CallEvent> {
        tokio::select! {
            biased;
            event = events.next() => event,
            () = tokio::task::yield_now() => None,
        }
    }

    fn given(end: Option<CallEvent>) -> Value {
        match end {
            Some(CallEvent::End(Ok(CallOutcome::Complete(result)))) => {
                result.structured_content().unwrap().read().unwrap()
            }
            other => panic!("{other:?}"),
        }
    }

    fn answer(pending: &PendingRequests, content: &Value) {
        let id = pending.entries(&Caller::owner())[0].id.clone();
        pending.answer(&id, Ok(json!({ "action": "accept", "content": content }).into()));
    }

    #[tokio::test]
    async fn who_cannot_be_asked_waits_for_whoever_looks() {
        let pending = Arc::new(PendingRequests::default());
        let attended = attended(&pending);
        let error = consort_core::end(attended.call(call(false))).await.unwrap_err();
        assert!(error.to_string().contains("this client cannot ask its user"), "{error}");
        let _presence = pending.register_console();
        let mut events = attended.call(call(false));
        assert!(waits(&mut events).await.is_none());
        let asked = &pending.entries(&Caller::owner())[0];
        let about = (&*asked.caller, asked.server.as_deref(), asked.tool.as_deref());
        assert_eq!(about, ("client:ada", Some("files"), Some("delete")));
        assert!(asked.expires.is_some() && asked.schema.is_some());
        answer(&pending, &json!({ "decision": "once", "arguments": r#"{"path":"/b"}"# }));
        assert_eq!(given(events.next().await), json!({ "path": "/b" }));
        assert!(pending.entries(&Caller::owner()).is_empty());
        let mut events = attended.call(call(false));
        assert!(waits(&mut events).await.is_none());
        answer(&pending, &json!({ "decision": "deny", "reason": "not now" }));
        let Some(CallEvent::End(Err(CallError::Denied { reason, .. }))) = events.next().await
        else {
            panic!("it was denied")
        };
        assert!(reason.contains("not now"), "{reason}");
    }

    #[tokio::test]
    async fn the_first_answer_counts_wherever_it_comes_from() {
        let pending = Arc::new(PendingRequests::default());
        let attended = attended(&pending);
        let _presence = pending.register_console();
        let yes = json!({ "action": "accept", "content": { "decision": "once" } });
        let mut events = attended.call(call(true));
        let Some(CallEvent::Approval(asked)) = waits(&mut events).await else {
            panic!("not asked")
        };
        assert_eq!(pending.entries(&Caller::owner()).len(), 1);
        asked.reply.unwrap().send(Ok(yes.clone().into()));
        assert!(pending.entries(&Caller::owner()).is_empty());
        assert_eq!(given(events.next().await), json!({ "path": "/a" }));
        // The reverse: a later answer of the client is ignored.
        let mut events = attended.call(call(true));
        let Some(CallEvent::Approval(asked)) = waits(&mut events).await else {
            panic!("not asked")
        };
        answer(&pending, &json!({ "decision": "deny", "reason": "no" }));
        asked.reply.unwrap().send(Ok(yes.into()));
        assert!(matches!(events.next().await, Some(CallEvent::End(Err(CallError::Denied { .. })))));
        // A failed request to the client is not a refusal.
        let mut events = attended.call(call(true));
        let Some(CallEvent::Approval(asked)) = waits(&mut events).await else {
            panic!("not asked")
        };
        drop(asked);
        assert!(waits(&mut events).await.is_none());
        answer(&pending, &json!({ "decision": "once" }));
        assert_eq!(given(events.next().await), json!({ "path": "/a" }));
    }

    #[tokio::test]
    async fn a_call_that_is_given_up_is_no_question_any_more() {
        let pending = Arc::new(PendingRequests::default());
        let attended = attended(&pending);
        let _presence = pending.register_console();
        let mut events = attended.call(call(false));
        assert!(waits(&mut events).await.is_none());
        assert_eq!(pending.entries(&Caller::owner()).len(), 1);
        drop(events);
        assert!(pending.entries(&Caller::owner()).is_empty());
    }
}
