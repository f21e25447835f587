//! A toolbox whose calls can be approved by a person at the console, from every caller.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use consort_core::{
    Asked, Call, Caller, Catalog, Changes, Event, Events, Json, Refusal, RefusedTarget,
    RejectReason, Reply, ServerId, ShelfKind, Toolbox,
};

use super::desk::{Desk, Kind, Question, Slip};

/// A toolbox whose calls can be approved by a person at the console. It wraps the policy layer: an approval is
/// requested from the console as well as from the caller, and the first answer counts. While no console is open, it
/// passes calls through.
pub(crate) struct Attended {
    inner: Arc<dyn Toolbox>,
    desk: Arc<Desk>,
    /// Time limit for the answer of a person.
    answer: Duration,
}

/// A call that may need approval.
struct Subject {
    caller: Caller,
    server: Option<String>,
    tool: String,
    /// True if the caller can be asked too.
    asks: bool,
}

impl Attended {
    pub(crate) fn new(inner: Arc<dyn Toolbox>, desk: Arc<Desk>, answer: Duration) -> Self {
        Self { inner, desk, answer }
    }

    /// Passes the events of a call through and adds its approvals to the pending requests.
    fn attend(&self, mut events: Events, subject: Subject) -> Events {
        let (desk, answer) = (Arc::clone(&self.desk), self.answer);
        Events::new(|emitter| async move {
            // What is asked now; dropped, it is taken from the desk.
            let mut open: Vec<Arc<Open>> = Vec::new();
            loop {
                match events.next().await {
                    Some(Event::Approval(Asked { method, params, reply: Some(reply) }))
                        if desk.is_attended() =>
                    {
                        let question = subject.question(&params, answer);
                        let asked = Open::put(&desk, question, reply);
                        let reply = subject.asks.then(|| asked.reply(&desk));
                        open.push(asked);
                        if reply.is_some() {
                            emitter.emit(Event::Approval(Asked { method, params, reply })).await;
                        }
                    }
                    Some(end @ Event::End(_)) => return end,
                    Some(event) => {
                        // It goes on, so it is settled.
                        open.clear();
                        emitter.emit(event).await;
                    }
                    None => unreachable!("an end comes before nothing"),
                }
            }
        })
    }
}

impl Subject {
    fn question(&self, params: &consort_core::Object, answer: Duration) -> Question {
        let question = Question::new(Kind::Approval, self.caller.label(), params);
        let (server, tool) = (self.server.clone(), Some(self.tool.clone()));
        Question { server, tool, ..question }.within(answer)
    }
}

/// A request with two ways to answer it.
struct Open(Mutex<Asking>);

#[derive(Default)]
struct Asking {
    /// Reply to the party that waits for the answer.
    reply: Option<Reply>,
    slip: Option<Slip>,
}

impl Open {
    /// Adds a pending request.
    fn put(desk: &Arc<Desk>, question: Question, reply: Reply) -> Arc<Self> {
        let open = Arc::new(Self(Mutex::new(Asking { reply: Some(reply), slip: None })));
        let there = Arc::downgrade(&open);
        let slip = desk.put(question, Reply::new(move |answer| settle(&there, answer)));
        open.lock().slip = Some(slip);
        open
    }

    /// Another way to answer it. A refusal leaves it pending while a console is open.
    fn reply(self: &Arc<Self>, desk: &Arc<Desk>) -> Reply {
        let (there, desk) = (Arc::downgrade(self), Arc::clone(desk));
        Reply::new(move |answer| {
            if answer.is_ok() || !desk.is_attended() {
                settle(&there, answer);
            }
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Asking> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers a request unless it is answered, and removes it from the pending requests.
fn settle(open: &Weak<Open>, answer: Result<Json, Refusal>) {
    let Some(open) = open.upgrade() else { return };
    // The slip is dropped outside the lock: that comes back here.
    let Asking { reply, slip } = std::mem::take(&mut *open.lock());
    if let Some(reply) = reply {
        reply.send(answer);
    }
    drop(slip);
}

impl Toolbox for Attended {
    fn catalog(&self, caller: &Caller) -> Arc<Catalog> {
        self.inner.catalog(caller)
    }

    fn call(&self, call: Call) -> Events {
        let asks = call.client.as_ref().is_some_and(|client| client.offers.form);
        // An agent or the console asks at the desk already.
        let asks_itself = asks && call.client.as_ref().is_some_and(|client| client.is_local);
        let target = call.tool_target().filter(|_| !asks_itself && self.desk.is_attended());
        let Some(target) = target else { return self.inner.call(call) };
        let subject = Subject {
            caller: call.caller.clone(),
            server: Some(target.server.to_string()),
            tool: target.name.clone(),
            asks,
        };
        self.attend(self.inner.call(call), subject)
    }

    fn inner(&self) -> Option<&dyn Toolbox> {
        Some(&*self.inner)
    }

    fn changes(&self) -> Changes {
        self.inner.changes()
    }

    fn withheld(
        &self,
        caller: &Caller,
        kind: ShelfKind,
        target: &RefusedTarget,
    ) -> Option<(ServerId, RejectReason)> {
        self.inner.withheld(caller, kind, target)
    }
}

#[cfg(test)]
mod tests {
    use consort_core::{CallError, ClientContext, Emitting, Offers, Outcome, ToolResult};
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

        fn call(&self, call: Call) -> Events {
            Events::answered(ToolResult::structured(&call.arguments()))
        }

        fn changes(&self) -> Changes {
            Emitting::new(|_| std::future::pending())
        }
    }

    fn attended(desk: &Arc<Desk>) -> Attended {
        let schema = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
        let tool = consort_core::Tool::new("delete", "", &schema.into());
        let mut catalog = Catalog::default();
        let route =
            consort_core::Route { server: "files".parse().unwrap(), name: "delete".to_owned() };
        let name = "delete".to_owned();
        let entry = consort_core::Entry { route, name, definition: tool.definition().clone() };
        catalog.set(ShelfKind::Tools, vec![entry]);
        let spec: PolicySpec = serde_json::from_value(json!({ "default": "ask" })).unwrap();
        let looked = Arc::clone(desk);
        let guard = PolicySettings {
            policy: Policy::compile(&spec).unwrap(),
            profile: None,
            approvals: Arc::default(),
            limits: ApprovalLimits::default(),
            other_approver: OtherApprover::new(move || looked.is_attended()),
        };
        let guarded = PolicyToolbox::new(Arc::new(One(Arc::new(catalog))), guard);
        let answer = ApprovalLimits::default().answer;
        Attended::new(Arc::new(guarded), Arc::clone(desk), answer)
    }

    fn call(form: bool) -> Call {
        let target: consort_core::Target = "files.delete".parse().unwrap();
        let arguments = json!({ "path": "/a" }).into();
        let offers = Arc::new(Offers { form, ..Offers::default() });
        Call::tool(Caller::client("ada"), target, arguments).by(ClientContext::new(offers))
    }

    /// Drives a call until it waits for a person; returns the event passed on to the caller.
    async fn waits(events: &mut Events) -> Option<Event> {
        tokio::select! {
            biased;
            event = events.next() => event,
            () = tokio::task::yield_now() => None,
        }
    }

    fn given(end: Option<Event>) -> Value {
        match end {
            Some(Event::End(Ok(Outcome::Complete(result)))) => {
                result.structured_content().unwrap().read().unwrap()
            }
            other => panic!("{other:?}"),
        }
    }

    fn answer(desk: &Desk, content: &Value) {
        let id = desk.waiting()[0].id.clone();
        desk.settle(&id, Ok(json!({ "action": "accept", "content": content }).into()));
    }

    #[tokio::test]
    async fn who_cannot_be_asked_waits_for_whoever_looks() {
        let desk = Arc::new(Desk::default());
        let attended = attended(&desk);
        let error = consort_core::end(attended.call(call(false))).await.unwrap_err();
        assert!(error.to_string().contains("this client cannot ask one"), "{error}");
        let _looking = desk.look();
        let mut events = attended.call(call(false));
        assert!(waits(&mut events).await.is_none());
        let asked = &desk.waiting()[0];
        let about = (&*asked.caller, asked.server.as_deref(), asked.tool.as_deref());
        assert_eq!(about, ("client:ada", Some("files"), Some("delete")));
        assert!(asked.expires.is_some() && asked.schema.is_some());
        answer(&desk, &json!({ "decision": "once", "arguments": r#"{"path":"/b"}"# }));
        assert_eq!(given(events.next().await), json!({ "path": "/b" }));
        assert!(desk.waiting().is_empty());
        let mut events = attended.call(call(false));
        assert!(waits(&mut events).await.is_none());
        answer(&desk, &json!({ "decision": "deny", "reason": "not now" }));
        let Some(Event::End(Err(CallError::Denied { reason, .. }))) = events.next().await else {
            panic!("it was denied")
        };
        assert!(reason.contains("not now"), "{reason}");
    }

    #[tokio::test]
    async fn the_first_answer_counts_wherever_it_comes_from() {
        let desk = Arc::new(Desk::default());
        let attended = attended(&desk);
        let _looking = desk.look();
        let yes = json!({ "action": "accept", "content": { "decision": "once" } });
        let mut events = attended.call(call(true));
        let Some(Event::Approval(asked)) = waits(&mut events).await else { panic!("not asked") };
        assert_eq!(desk.waiting().len(), 1);
        asked.reply.unwrap().send(Ok(yes.clone().into()));
        assert!(desk.waiting().is_empty());
        assert_eq!(given(events.next().await), json!({ "path": "/a" }));
        // And the other way round: what a client says then is not heard.
        let mut events = attended.call(call(true));
        let Some(Event::Approval(asked)) = waits(&mut events).await else { panic!("not asked") };
        answer(&desk, &json!({ "decision": "deny", "reason": "no" }));
        asked.reply.unwrap().send(Ok(yes.into()));
        assert!(matches!(events.next().await, Some(Event::End(Err(CallError::Denied { .. })))));
        // A client that fails to ask has not said no.
        let mut events = attended.call(call(true));
        let Some(Event::Approval(asked)) = waits(&mut events).await else { panic!("not asked") };
        drop(asked);
        assert!(waits(&mut events).await.is_none());
        answer(&desk, &json!({ "decision": "once" }));
        assert_eq!(given(events.next().await), json!({ "path": "/a" }));
    }

    #[tokio::test]
    async fn a_call_that_is_given_up_is_no_question_any_more() {
        let desk = Arc::new(Desk::default());
        let attended = attended(&desk);
        let _looking = desk.look();
        let mut events = attended.call(call(false));
        assert!(waits(&mut events).await.is_none());
        assert_eq!(desk.waiting().len(), 1);
        drop(events);
        assert!(desk.waiting().is_empty());
    }
}
