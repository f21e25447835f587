//! A toolbox that enforces a policy for each caller.

mod approvers;
mod missing;

pub use approvers::{OtherApprover, SharedApprovals};

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use consort_core::{
    BoxFuture, Call, CallError, CallEvent, CallEvents, Caller, CallerMap, Catalog, CatalogChanges,
    CatalogEntry, DrivenStream, Json, MissingName, PendingServerRequest, PrimitiveKind,
    RefusedTarget, RejectReason, RequestRefusal, RequestResponder, Revision, ServerId,
    StreamSender, Subscription, SubscriptionEvent, SubscriptionEvents, ToolAnnotations, Toolbox,
};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::limits::ApprovalLimits;
use crate::memo::CatalogMemo;
use crate::pin::Pin;
use crate::policy::{
    ApprovalForm, ApprovalKey, ApprovalVerdict, ArgumentBinding, Policy, PolicyDecision,
    PolicyEffect, PolicyQuestion,
};

/// A toolbox that shows each caller, and lets it call, what a policy allows. Every path to a server goes
/// through [`Policy::decide`]; a caller cannot tell a hidden item from an unknown one.
pub struct PolicyToolbox {
    inner: Arc<dyn Toolbox>,
    settings: Arc<PolicySettings>,
    visible: Mutex<CallerMap<Arc<CatalogMemo<VisibleCatalog>>>>,
}

/// What a caller sees of a catalog; nothing if that is all of it.
type VisibleCatalog = Option<Arc<Catalog>>;

/// Inputs of policy decisions.
pub struct PolicySettings {
    /// The rules.
    pub policy: Policy,
    /// The profile that is called through, if any.
    pub profile: Option<String>,
    /// Stored approvals.
    pub approvals: Arc<SharedApprovals>,
    /// Limits of approval requests.
    pub limits: ApprovalLimits,
    /// Availability of approvers other than the caller.
    pub other_approver: OtherApprover,
}

impl fmt::Debug for PolicyToolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicyToolbox")
            .field("profile", &self.settings.profile)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for PolicySettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicySettings").field("profile", &self.profile).finish_non_exhaustive()
    }
}

impl PolicyToolbox {
    /// Creates a toolbox with this guard.
    pub fn new(inner: Arc<dyn Toolbox>, settings: PolicySettings) -> Self {
        Self { inner, settings: Arc::new(settings), visible: Mutex::default() }
    }

    fn call_tool(&self, call: Call) -> CallEvents {
        let catalog = self.inner.catalog(&call.caller);
        let found = call.find(&catalog).map(|at| &catalog.tools.entries()[at]);
        let Some(entry) = found.filter(|entry| self.settings.shows(&call.caller, entry)) else {
            // "Unknown", not "denied": a caller must not learn of what it cannot see.
            return CallEvents::ended(Err(call.unknown(&self.catalog(&call.caller))));
        };
        let server = entry.route.server.clone();
        let decision = self.settings.decide(&call.caller, entry, &call.arguments());
        match &decision.effect {
            PolicyEffect::Allow => self.inner.call(call),
            PolicyEffect::Deny { reason } => deny(server, reason),
            PolicyEffect::Ask { binding, .. } => {
                let key = match self.settings.key(&call.caller, entry, &call.arguments(), *binding)
                {
                    Ok(key) => key,
                    Err(reason) => return deny(server, &reason),
                };
                if self.settings.approved(&key) {
                    return self.inner.call(call);
                }
                if !(self.settings.other_approver.0)()
                    && let Err(reason) = check_answerable(&call)
                {
                    return deny(server, reason);
                }
                let (settings, inner) = (Arc::clone(&self.settings), Arc::clone(&self.inner));
                let entry = entry.clone();
                CallEvents::new(|emitter| async move {
                    match settings.ask(&entry, &decision, call, &emitter).await {
                        Ok(call) => inner.call(call).forward(&emitter).await,
                        Err(reason) => {
                            CallEvent::End(Err(CallError::Denied { server: Some(server), reason }))
                        }
                    }
                })
            }
        }
    }
}

fn deny(server: ServerId, reason: &str) -> CallEvents {
    CallEvents::ended(Err(CallError::Denied { server: Some(server), reason: reason.to_owned() }))
}

/// Checks that the caller can be asked.
fn check_answerable(call: &Call) -> Result<(), &'static str> {
    match &call.client {
        Some(client) if !client.offers.form && !client.is_local => {
            Err("approval is required, and this client cannot ask its user")
        }
        _ => Ok(()),
    }
}

impl PolicySettings {
    fn question<'a>(
        &'a self,
        caller: &'a Caller,
        entry: &'a CatalogEntry,
        arguments: Option<&'a Json>,
    ) -> PolicyQuestion<'a> {
        PolicyQuestion {
            caller,
            profile: self.profile.as_deref(),
            server: entry.route.server.as_str(),
            tool: &entry.route.name,
            annotations: entry.tool().annotations(),
            arguments,
        }
    }

    /// The one decision that every call goes through.
    fn decide(&self, caller: &Caller, entry: &CatalogEntry, arguments: &Json) -> PolicyDecision {
        self.policy.decide(&self.question(caller, entry, Some(arguments)))
    }

    fn shows(&self, caller: &Caller, entry: &CatalogEntry) -> bool {
        self.policy.decide(&self.question(caller, entry, None)).shows()
    }

    /// Returns true if a caller may use anything of a server besides tools. Such use counts as read-only.
    fn opens(&self, caller: &Caller, server: &ServerId) -> bool {
        let annotations = ToolAnnotations { read_only: Some(true), ..ToolAnnotations::default() };
        let question = PolicyQuestion {
            caller,
            profile: self.profile.as_deref(),
            server: server.as_str(),
            tool: "",
            annotations,
            arguments: None,
        };
        self.policy.decide(&question).shows()
    }

    /// Returns an error, as for an unknown server, if a caller may use nothing of a server.
    fn open(&self, caller: &Caller, server: &ServerId) -> Result<(), CallError> {
        if self.opens(caller, server) {
            return Ok(());
        }
        let name = server.to_string();
        Err(CallError::Unknown { kind: "server", name, nearest: Vec::new() })
    }

    fn key(
        &self,
        caller: &Caller,
        entry: &CatalogEntry,
        arguments: &Json,
        binding: ArgumentBinding,
    ) -> Result<ApprovalKey, String> {
        let pin = Pin::of(entry.definition.json()).to_string();
        ApprovalKey::new(&self.question(caller, entry, Some(arguments)), &pin, binding)
    }

    fn approved(&self, key: &ApprovalKey) -> bool {
        let approvals = self.approvals.approvals.lock();
        // A session lasts as long as we run: modern clients have no other.
        approvals.find(key, key.caller()).is_some()
    }

    fn grant(&self, key: ApprovalKey, approval: crate::policy::ApprovalLifetime) {
        let mut approvals = self.approvals.approvals.lock();
        let session = key.caller().to_owned();
        if approvals.grant(key, approval, &session, self.limits.stored)
            && approval == crate::policy::ApprovalLifetime::Always
        {
            (self.approvals.persist)(&approvals);
        }
    }

    /// Asks the caller; returns the call as the person approved it, or the reason of the refusal.
    async fn ask(
        &self,
        entry: &CatalogEntry,
        decision: &PolicyDecision,
        mut call: Call,
        emitter: &StreamSender<CallEvent>,
    ) -> Result<Call, String> {
        let caller = call.caller.clone();
        let arguments = call.arguments();
        // In the words of the first revision that had forms: every later client knows them.
        let question = self.question(&caller, entry, Some(&arguments));
        let form = ApprovalForm::new(&question, decision, Revision::V2025_06_18, self.limits)?;
        let (sender, answer) = oneshot::channel();
        let reply = RequestResponder::new(move |answer| {
            let _ = sender.send(answer);
        });
        let params = form.params().to_object().expect("they are an object");
        let method = "elicitation/create".to_owned();
        let question =
            CallEvent::Approval(PendingServerRequest { method, params, reply: Some(reply) });
        let answered = async {
            emitter.emit(question).await;
            answer.await
        };
        let answer = match tokio::time::timeout(self.limits.answer, answered).await {
            Ok(Ok(Ok(answer))) => answer,
            Ok(Ok(Err(RequestRefusal { message, .. }))) => {
                return Err(format!("not approved: {message}"));
            }
            Ok(Err(_)) => return Err("not approved".to_owned()),
            Err(_) => return Err(format!("no response within {:?}", self.limits.answer)),
        };
        let (approval, edited) = match form.read_answer(&answer) {
            ApprovalVerdict::Approve { approval, edited } => (approval, edited),
            ApprovalVerdict::Deny { reason } => return Err(reason),
        };
        if let Some(edited) = edited {
            // What a person made of it is held to the rules like anything else.
            if let PolicyEffect::Deny { reason } = self.decide(&caller, entry, &edited).effect {
                return Err(reason.to_string());
            }
            call.set("arguments", edited);
        }
        let binding = match decision.effect {
            PolicyEffect::Ask { binding, .. } => binding,
            _ => ArgumentBinding::default(),
        };
        self.grant(self.key(&caller, entry, &call.arguments(), binding)?, approval);
        Ok(call)
    }

    /// Returns the part of a catalog that a caller sees; the same catalog if that is all of it.
    fn visible(&self, caller: &Caller, from: &Arc<Catalog>) -> Arc<Catalog> {
        let mut servers: HashMap<ServerId, bool> = HashMap::new();
        let mut catalog = Catalog::clone(from);
        let mut hidden = false;
        for kind in PrimitiveKind::ALL {
            let entries = from.section(kind).entries();
            let shown = |entry: &&CatalogEntry| match kind {
                PrimitiveKind::Tools => self.shows(caller, entry),
                _ => {
                    let server = entry.route.server.clone();
                    let opens = || self.opens(caller, &entry.route.server);
                    *servers.entry(server).or_insert_with(opens)
                }
            };
            let shown: Vec<CatalogEntry> = entries.iter().filter(shown).cloned().collect();
            if shown.len() < entries.len() {
                hidden = true;
                catalog.set(kind, shown);
            }
        }
        // A server without visible items is hidden altogether, with its instructions.
        let closed = |server: &ServerId| {
            let any = |kind| catalog.section(kind).of(server).next().is_some();
            !PrimitiveKind::ALL.into_iter().any(any) && !self.opens(caller, server)
        };
        let closed: BTreeSet<ServerId> = from
            .abouts()
            .keys()
            .chain(from.pending())
            .filter(|server| closed(server))
            .cloned()
            .collect();
        if !closed.is_empty() {
            hidden = true;
            catalog.retain(|server| !closed.contains(server));
        }
        if hidden { Arc::new(catalog) } else { Arc::clone(from) }
    }
}

impl Toolbox for PolicyToolbox {
    fn catalog(&self, caller: &Caller) -> Arc<Catalog> {
        let whole = self.inner.catalog(caller);
        let mut visible = self.visible.lock();
        let visible = visible.get_or_default(caller);
        let shown = visible.get(Arc::clone(&whole), |_| {
            let shown = self.settings.visible(caller, &whole);
            (!Arc::ptr_eq(&shown, &whole)).then_some(shown)
        });
        shown.as_ref().clone().unwrap_or(whole)
    }

    fn call(&self, call: Call) -> CallEvents {
        if call.tool_target().is_some() {
            return self.call_tool(call);
        }
        match self.settings.open(&call.caller, call.server()) {
            Ok(()) => self.inner.call(call),
            Err(error) => CallEvents::ended(Err(error)),
        }
    }

    fn subscribe(&self, subscription: Subscription) -> SubscriptionEvents {
        match self.settings.open(&subscription.caller, &subscription.server) {
            Ok(()) => self.inner.subscribe(subscription),
            Err(error) => DrivenStream::new(|_| std::future::ready(SubscriptionEvent::End(error))),
        }
    }

    fn inner(&self) -> Option<&dyn Toolbox> {
        Some(&*self.inner)
    }

    fn find_missing(&self, missing: MissingName) -> BoxFuture<'static, Result<bool, CallError>> {
        self.find_visible(missing)
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
        let (whole, visible) = (self.inner.catalog(caller), self.catalog(caller));
        let shown =
            |entry: &CatalogEntry| visible.section(kind).position(&entry.route.server, &entry.name);
        let mut meant = whole.section(kind).entries().iter().filter(|entry| target.may_mean(entry));
        match meant.find(|entry| shown(entry).is_none()) {
            Some(hidden) => Some((hidden.route.server.clone(), RejectReason::PolicyHidden)),
            None => self.inner.withheld(caller, kind, target),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Fake, both, ended as end, tool};
    use crate::policy::PolicySpec;
    use consort_core::{CallOutcome, ClientContext, Object, Operation};
    use serde_json::{Value, json};

    fn settings(policy: Value) -> PolicySettings {
        let spec: PolicySpec = serde_json::from_value(policy).unwrap();
        let (policy, approved) = (Policy::compile(&spec).unwrap(), Arc::default());
        PolicySettings {
            policy,
            profile: None,
            approvals: approved,
            limits: ApprovalLimits::default(),
            other_approver: OtherApprover::default(),
        }
    }

    fn files() -> Arc<Fake> {
        Fake::new(&[("files", &[tool("read", &["path"]), tool("delete", &["path"])])])
    }

    fn ids(toolbox: &dyn Toolbox, caller: &Caller) -> Vec<String> {
        toolbox.catalog(caller).tools.entries().iter().map(CatalogEntry::id).collect()
    }

    /// Runs a call, and answers its approval request.
    async fn answering(
        toolbox: &dyn Toolbox,
        mut call: Call,
        answer: Value,
    ) -> (Vec<Json>, Result<CallOutcome, CallError>) {
        let offers =
            Arc::new(consort_core::ClientCapabilities { form: true, ..Default::default() });
        call.client = Some(ClientContext::new(offers));
        let (mut events, mut asked) = (toolbox.call(call), Vec::new());
        loop {
            match events.next().await.unwrap() {
                CallEvent::Approval(question) => {
                    asked.push(question.params.json().clone());
                    question.reply.unwrap().send(Ok(answer.clone().into()));
                }
                CallEvent::End(end) => return (asked, end),
                _ => {}
            }
        }
    }

    #[test]
    fn neither_hints_nor_candidates_name_what_is_hidden() {
        let tools = [tool("read", &[]), tool("delete_all", &[])];
        let fake = Fake::new(&[("files", &tools), ("vault", &[tool("read", &[])])]);
        let rules = json!({ "rules": [
            { "tools": ["files.delete_all", "vault.*"], "then": "deny" },
        ]});
        let toolbox = PolicyToolbox::new(Arc::clone(&fake) as Arc<dyn Toolbox>, settings(rules));
        let alice = Caller::client("alice");
        let silent = |name: &str, error: &CallError| {
            assert!(matches!(error, CallError::Unknown { .. }), "{name}: {error}");
            let told = format!("{error} {:?}", error.hint()).replace(&format!("`{name}`"), "");
            assert!(!told.contains("delete_all") && !told.contains("vault"), "{name}: {told}");
        };
        let visible = toolbox.catalog(&alice);
        for name in ["delete_al", "files.delete_al", "vault.rea", "delete_all"] {
            silent(name, &visible.resolve(name).unwrap_err().into());
        }
        // Of two tools with this name, one is all that there is for this caller.
        assert_eq!(visible.resolve("read").unwrap().id(), "files.read");
        for name in ["files.delete_al", "files.delete_all", "vault.read"] {
            let target: consort_core::Target = name.parse().unwrap();
            let arguments = Object::empty().json().clone();
            let made = end(toolbox.call(Call::tool(alice.clone(), target, arguments)));
            silent(name, &made.unwrap_err());
        }
        assert!(fake.taken().is_empty());
    }

    #[test]
    fn why_something_is_missing_is_known_to_whoever_records_it() {
        let fake = files();
        let rules = json!({ "rules": [{ "tools": ["files.delete"], "then": "deny" }] });
        let toolbox = PolicyToolbox::new(Arc::clone(&fake) as Arc<dyn Toolbox>, settings(rules));
        let why = |server: Option<&str>, name: &str| {
            let server = server.map(|server| server.parse().unwrap());
            let target = RefusedTarget { server, name: name.to_owned() };
            toolbox.withheld(&Caller::client("alice"), PrimitiveKind::Tools, &target)
        };
        let hidden = Some(("files".parse().unwrap(), RejectReason::PolicyHidden));
        for name in ["delete", "files.delete", "files_delete"] {
            assert_eq!(why(None, name), hidden, "{name}");
        }
        assert_eq!(why(Some("files"), "delete"), hidden);
        assert_eq!(
            (why(Some("other"), "delete"), why(None, "read"), why(None, "x")),
            (None, None, None)
        );
    }

    #[test]
    fn what_is_denied_is_unknown_in_every_form() {
        let fake = files();
        let rules = json!({ "rules": [{ "tools": ["files.delete"], "then": "deny" }] });
        let toolbox = PolicyToolbox::new(Arc::clone(&fake) as Arc<dyn Toolbox>, settings(rules));
        let alice = Caller::client("alice");
        assert_eq!(ids(&toolbox, &alice), ["files.read"]);
        let (call, pass) = both("files", "delete", &json!({ "path": "/" }));
        for end in [end(toolbox.call(call)), end(toolbox.call(pass))] {
            assert!(matches!(end, Err(CallError::Unknown { .. })), "{end:?}");
        }
        assert!(fake.taken().is_empty());
        let (call, pass) = both("files", "read", &json!({ "path": "/" }));
        end(toolbox.call(call)).unwrap();
        end(toolbox.call(pass)).unwrap();
        assert_eq!(fake.taken().len(), 2);
    }

    #[test]
    fn a_call_of_a_hidden_server_reaches_no_other_and_says_nothing_of_it() {
        let fake = Fake::new(&[
            ("bank", &[tool("transfer", &[])]),
            ("evil", &[tool("bank.transfer", &[]), tool("transfers", &[])]),
        ]);
        let rules = json!({ "rules": [{ "servers": ["bank"], "then": "deny" }] });
        let toolbox = PolicyToolbox::new(Arc::clone(&fake) as Arc<dyn Toolbox>, settings(rules));
        let visible = toolbox.catalog(&Caller::client("alice"));
        for server in ["bank", "none"] {
            let text = format!("{server}.transfer");
            assert_eq!(visible.resolve(&text).unwrap_err().hint(), None);
            let (call, pass) = both(server, "transfer", &json!({}));
            for end in [end(toolbox.call(call)), end(toolbox.call(pass))] {
                let Err(CallError::Unknown { nearest, .. }) = end else { panic!("{end:?}") };
                assert!(nearest.is_empty(), "{nearest:?}");
            }
        }
        assert!(fake.taken().is_empty());
    }

    #[test]
    fn a_server_that_is_denied_is_closed_for_whatever_else_it_has() {
        let fake = files();
        let rules = json!({ "rules": [
            { "callers": ["client:bob"], "servers": ["files"], "then": "deny" },
        ] });
        let toolbox = PolicyToolbox::new(Arc::clone(&fake) as Arc<dyn Toolbox>, settings(rules));
        let server: ServerId = "files".parse().unwrap();
        let other = |method: &'static str| Operation::Other {
            server: server.clone(),
            method: method.into(),
        };
        for operation in [
            Operation::ReadResource { server: server.clone(), uri: "file:///a".to_owned() },
            Operation::GetPrompt("files.p".parse().unwrap()),
            other("completion/complete"),
            other("x/unknown"),
        ] {
            let by = |who: &str| {
                let params = Object::empty();
                end(toolbox.call(Call::new(Caller::client(who), operation.clone(), params)))
            };
            assert!(matches!(by("bob"), Err(CallError::Unknown { .. })));
            by("alice").unwrap();
        }
        assert_eq!(fake.taken().len(), 4);
        assert!(ids(&toolbox, &Caller::client("bob")).is_empty());
    }

    #[test]
    fn who_may_see_all_shares_one_catalog() {
        let fake = files();
        let toolbox = PolicyToolbox::new(
            Arc::clone(&fake) as Arc<dyn Toolbox>,
            settings(json!({ "rules": [{ "callers": ["client:bob"], "then": "deny" }] })),
        );
        let alice = toolbox.catalog(&Caller::client("alice"));
        assert!(Arc::ptr_eq(&alice, &fake.catalog(&Caller::client("x"))));
    }

    #[tokio::test]
    async fn an_approval_for_the_session_is_asked_once() {
        let fake = files();
        let toolbox = PolicyToolbox::new(
            Arc::clone(&fake) as Arc<dyn Toolbox>,
            settings(json!({ "rules": [{ "tools": ["files.delete"], "then": "ask" }] })),
        );
        let yes = json!({ "action": "accept", "content": { "decision": "session" } });
        for path in ["/a", "/b"] {
            let (_, pass) = both("files", "delete", &json!({ "path": path }));
            let (asked, end) = answering(&toolbox, pass, yes.clone()).await;
            assert_eq!(asked.len(), usize::from(path == "/a"));
            end.unwrap();
        }
        // An approved call goes ahead without a user.
        let (_, pass) = both("files", "delete", &json!({ "path": "/c" }));
        consort_core::end(toolbox.call(pass)).await.unwrap();
        // With other arguments, it is another question.
        let (_, pass) = both("files", "delete", &json!({ "path": "/", "all": true }));
        assert_eq!(answering(&toolbox, pass, yes).await.0.len(), 1);
        assert_eq!(fake.taken().len(), 4);
    }

    #[tokio::test]
    async fn a_person_may_deny_or_change_the_arguments_within_the_rules() {
        let fake = files();
        let toolbox = PolicyToolbox::new(
            Arc::clone(&fake) as Arc<dyn Toolbox>,
            settings(json!({ "rules": [
                { "when": { "path": "path", "equals": "/etc" }, "then": "deny", "reason": "no" },
                { "then": "ask" },
            ] })),
        );
        let answer = |decision: &str, path: &str| {
            let arguments = json!({ "path": path }).to_string();
            let content = json!({ "decision": decision, "arguments": arguments });
            json!({ "action": "accept", "content": content })
        };
        let call = || both("files", "delete", &json!({ "path": "/tmp" })).1;
        let (_, end) = answering(&toolbox, call(), answer("once", "/tmp/a")).await;
        end.unwrap();
        assert_eq!(fake.taken(), [r#"files.delete {"path":"/tmp/a"}"#]);
        let (_, end) = answering(&toolbox, call(), answer("once", "/etc")).await;
        assert_eq!(end.unwrap_err().to_string(), "denied: no");
        let (_, end) = answering(&toolbox, call(), answer("deny", "/tmp")).await;
        assert!(matches!(end, Err(CallError::Denied { .. })));
        let (_, end) = answering(&toolbox, call(), json!({ "action": "decline" })).await;
        assert!(matches!(end, Err(CallError::Denied { .. })));
        assert!(fake.taken().is_empty());
    }

    #[tokio::test]
    async fn somebody_elsewhere_is_asked_for_who_cannot_be() {
        let fake = files();
        let other_approver = OtherApprover::new(|| true);
        let settings = PolicySettings { other_approver, ..settings(json!({ "default": "ask" })) };
        let toolbox = PolicyToolbox::new(Arc::clone(&fake) as Arc<dyn Toolbox>, settings);
        let (_, pass) = both("files", "read", &json!({ "path": "/" }));
        assert!(pass.client.as_ref().is_some_and(|client| !client.offers.form));
        let mut events = toolbox.call(pass);
        let Some(CallEvent::Approval(asked)) = events.next().await else {
            panic!("nobody is asked")
        };
        let yes = json!({ "action": "accept", "content": { "decision": "once" } });
        asked.reply.unwrap().send(Ok(yes.into()));
        consort_core::end(events).await.unwrap();
        assert_eq!(fake.taken().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_there_means_no() {
        let fake = files();
        let rules = json!({ "default": "ask" });
        let toolbox = PolicyToolbox::new(Arc::clone(&fake) as Arc<dyn Toolbox>, settings(rules));
        let (call, pass) = both("files", "read", &json!({}));
        let error = consort_core::end(toolbox.call(pass)).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "denied: approval is required, and this client cannot ask its user"
        );
        // A client that does not answer drops the question.
        let error = consort_core::end(toolbox.call(call)).await.unwrap_err();
        assert_eq!(error.to_string(), "denied: not approved: no user is available to respond");
        // A question without an answer in time is not approved either.
        let (call, _) = both("files", "read", &json!({}));
        let mut events = toolbox.call(call);
        let kept = events.next().await;
        assert!(matches!(kept, Some(CallEvent::Approval(_))));
        let Some(CallEvent::End(Err(error))) = events.next().await else { panic!("no end") };
        assert_eq!(error.to_string(), "denied: no response within 300s");
        assert!(fake.taken().is_empty());
    }

    /// A toolbox whose server, which may have the tool, is always down.
    struct Down;

    impl Toolbox for Down {
        fn catalog(&self, _: &Caller) -> Arc<Catalog> {
            let mut catalog = Catalog::default();
            let servers: Vec<ServerId> = ["bank", "shop"].map(|name| name.parse().unwrap()).into();
            catalog.reserve(&servers);
            catalog.expect(&servers);
            Arc::new(catalog)
        }

        fn call(&self, _: Call) -> CallEvents {
            unreachable!("nothing is on offer")
        }

        fn changes(&self) -> CatalogChanges {
            DrivenStream::new(|_| std::future::pending())
        }

        fn find_missing(
            &self,
            missing: MissingName,
        ) -> BoxFuture<'static, Result<bool, CallError>> {
            let down = missing.servers.first().map(|server| CallError::Withheld {
                server: server.clone(),
                reason: "it is down".to_owned(),
            });
            Box::pin(std::future::ready(down.map_or(Ok(false), Err)))
        }
    }

    #[tokio::test]
    async fn a_hidden_server_that_is_down_cannot_be_told_from_one_that_does_not_exist() {
        let policy = json!({ "rules": [
            { "servers": ["bank"], "tools": ["balance"], "then": "allow" },
            { "servers": ["bank"], "then": "deny" },
        ] });
        let toolbox = PolicyToolbox::new(Arc::new(Down), settings(policy));
        let caller = Caller::client("alice");
        let catalog = toolbox.catalog(&caller);
        let found = async |name: &str| {
            let missing = MissingName::new(&catalog, caller.clone(), PrimitiveKind::Tools, name);
            toolbox.find_missing(missing).await.map_err(|error| error.server().cloned())
        };
        let down = |server: &str| Err(Some(server.parse().unwrap()));
        assert_eq!(found("bank.transfer").await, Ok(false));
        assert_eq!(found("nobody.transfer").await, down("shop"));
        assert_eq!(found("bank.balance").await, down("bank"));
        assert_eq!(found("shop.transfer").await, down("shop"));
        assert_eq!(found("transfer").await, down("shop"));
    }
}
