//! A toolbox whose calls a person at the console may agree to, whoever makes them.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use consort_core::{
    Asked, Caller, Catalog, Changes, Emitting, Event, Events, Invocation, Json, Passage, Refusal,
    RefusedTarget, RejectReason, Reply, ServerId, ShelfKind, Toolbox,
};
use consort_shape::ANSWER;

use super::desk::{Desk, Kind, Question, Slip};
use super::named;

/// A toolbox whose calls a person at the console may agree to. Around what is guarded: where a person has
/// to agree, whoever looks at the desk is asked as well as whoever calls, and the first answer counts.
/// While nobody looks, it is as if it were not there.
pub(crate) struct Attended {
    inner: Arc<dyn Toolbox>,
    desk: Arc<Desk>,
}

/// A call that may have to be agreed to.
struct Subject {
    caller: Caller,
    server: Option<String>,
    tool: String,
    /// Whoever calls can be asked too.
    asks: bool,
}

impl Attended {
    pub(crate) fn new(inner: Arc<dyn Toolbox>, desk: Arc<Desk>) -> Self {
        Self { inner, desk }
    }

    /// What happens in a call, with what is to be agreed to on the desk.
    fn attend(&self, mut events: Events, subject: Subject) -> Events {
        let desk = Arc::clone(&self.desk);
        Emitting::new(|emitter| async move {
            // What is asked now; dropped, it is taken from the desk.
            let mut open: Vec<Arc<Open>> = Vec::new();
            loop {
                match events.next().await {
                    Some(Event::Approval(Asked { method, params, reply: Some(reply) }))
                        if desk.is_attended() =>
                    {
                        let question = subject.question(&params);
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
    fn question(&self, params: &consort_core::Object) -> Question {
        let question = Question::new(Kind::Approval, named(&self.caller), params);
        let (server, tool) = (self.server.clone(), Some(self.tool.clone()));
        Question { server, tool, ..question }.within(ANSWER)
    }
}

/// A question that is asked in two places.
struct Open(Mutex<Asking>);

#[derive(Default)]
struct Asking {
    /// To whoever waits for the answer.
    reply: Option<Reply>,
    slip: Option<Slip>,
}

impl Open {
    /// Puts a question on the desk.
    fn put(desk: &Arc<Desk>, question: Question, reply: Reply) -> Arc<Self> {
        let open = Arc::new(Self(Mutex::new(Asking { reply: Some(reply), slip: None })));
        let there = Arc::downgrade(&open);
        let slip = desk.put(question, Reply::new(move |answer| settle(&there, answer)));
        open.lock().slip = Some(slip);
        open
    }

    /// Another way to answer it. Whoever cannot leaves it on the desk, as long as somebody looks.
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

/// Answers a question, if nobody did, and takes it from the desk.
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

    fn call(&self, invocation: Invocation) -> Events {
        // Whoever answers for itself does so: an agent for the console asks at the desk already.
        let asks = invocation.offers.as_ref().is_some_and(|offers| offers.form);
        if asks || !self.desk.is_attended() {
            return self.inner.call(invocation);
        }
        let caller = invocation.caller.clone();
        let catalog = self.inner.catalog(&caller);
        let (server, tool) = match catalog.tools.find(&invocation.target) {
            Some(entry) => (Some(entry.route.server.to_string()), entry.route.name.clone()),
            None => (None, invocation.target.to_string()),
        };
        let subject = Subject { caller, server, tool, asks };
        self.attend(self.inner.call(invocation), subject)
    }

    fn pass(&self, passage: Passage) -> Events {
        if passage.method != "tools/call" || !self.desk.is_attended() {
            return self.inner.pass(passage);
        }
        let name = passage.get("name");
        let name = name.as_ref().and_then(Json::text);
        let subject = Subject {
            caller: passage.caller.clone(),
            server: Some(passage.server.to_string()),
            tool: name.unwrap_or_default().into_owned(),
            asks: passage.offers.form,
        };
        self.attend(self.inner.pass(passage), subject)
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
    use consort_core::{CallError, Object, Offers, Outcome, ToolResult};
    use consort_shape::policy::{Policy, PolicySpec};
    use consort_shape::{Elsewhere, Guard, Guarded};
    use serde_json::{Value, json};

    use super::*;

    /// Has one tool, and tells what it was given.
    struct One(Arc<Catalog>);

    impl Toolbox for One {
        fn catalog(&self, _: &Caller) -> Arc<Catalog> {
            Arc::clone(&self.0)
        }

        fn call(&self, invocation: Invocation) -> Events {
            let given = ToolResult::structured(&invocation.arguments);
            Emitting::new(|_| async { Event::End(Ok(Outcome::Complete(given))) })
        }

        fn pass(&self, passage: Passage) -> Events {
            let arguments = passage.get("arguments").unwrap();
            let target: consort_core::Target = "files.delete".parse().unwrap();
            self.call(Invocation::new(passage.caller, target, arguments))
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
        let guard = Guard {
            policy: Policy::compile(&spec).unwrap(),
            profile: None,
            approved: Arc::default(),
            answer: ANSWER,
            elsewhere: Elsewhere::new(move || looked.is_attended()),
        };
        let guarded = Guarded::new(Arc::new(One(Arc::new(catalog))), guard);
        Attended::new(Arc::new(guarded), Arc::clone(desk))
    }

    fn passage(form: bool) -> Passage {
        let params = json!({ "name": "delete", "arguments": { "path": "/a" } });
        let params: Object = Json::from(params).to_object().unwrap();
        let server = "files".parse().unwrap();
        let mut passage = Passage::new(Caller::client("ada"), server, "tools/call", params);
        passage.offers = Arc::new(Offers { form, ..Offers::default() });
        passage
    }

    /// Goes on with a call until it waits for somebody; what was passed on to whoever calls.
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
        let error = consort_core::end(attended.pass(passage(false))).await.unwrap_err();
        assert!(error.to_string().contains("this client cannot ask one"), "{error}");
        let _looking = desk.look();
        let mut events = attended.pass(passage(false));
        assert!(waits(&mut events).await.is_none());
        let asked = &desk.waiting()[0];
        let about = (&*asked.caller, asked.server.as_deref(), asked.tool.as_deref());
        assert_eq!(about, ("client:ada", Some("files"), Some("delete")));
        assert!(asked.expires.is_some() && asked.schema.is_some());
        answer(&desk, &json!({ "decision": "once", "arguments": r#"{"path":"/b"}"# }));
        assert_eq!(given(events.next().await), json!({ "path": "/b" }));
        assert!(desk.waiting().is_empty());
        let mut events = attended.pass(passage(false));
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
        let mut events = attended.pass(passage(true));
        let Some(Event::Approval(asked)) = waits(&mut events).await else { panic!("not asked") };
        assert_eq!(desk.waiting().len(), 1);
        asked.reply.unwrap().send(Ok(yes.clone().into()));
        assert!(desk.waiting().is_empty());
        assert_eq!(given(events.next().await), json!({ "path": "/a" }));
        // And the other way round: what a client says then is not heard.
        let mut events = attended.pass(passage(true));
        let Some(Event::Approval(asked)) = waits(&mut events).await else { panic!("not asked") };
        answer(&desk, &json!({ "decision": "deny", "reason": "no" }));
        asked.reply.unwrap().send(Ok(yes.into()));
        assert!(matches!(events.next().await, Some(Event::End(Err(CallError::Denied { .. })))));
        // A client that fails to ask has not said no.
        let mut events = attended.pass(passage(true));
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
        let mut events = attended.pass(passage(false));
        assert!(waits(&mut events).await.is_none());
        assert_eq!(desk.waiting().len(), 1);
        drop(events);
        assert!(desk.waiting().is_empty());
    }
}
