//! Who may do what: one tool is denied, another is asked about, and a yes holds for the session.

#![expect(clippy::print_stdout, reason = "showing what happens is the point")]

use std::sync::Arc;

use consort::policy::{Policy, PolicySpec};
use consort::{
    ApprovalLimits, Call, CallEvent, Caller, Hub, HubSettings, OtherApprover, PendingServerRequest,
    PolicySettings, PolicyToolbox, SharedApprovals, Target, Toolbox, demo,
};
use serde_json::{Value, json};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    if demo::asked_for() {
        demo::serve().await;
        return Ok(());
    }
    let hub = Hub::start(HubSettings { servers: vec![demo::server()?], ..HubSettings::default() });
    hub.settled().await;
    let rules: PolicySpec = serde_json::from_value(json!({
        "rules": [
            { "tools": ["*computation*"], "then": "deny" },
            { "tools": ["demo.analyze"], "then": "ask", "reason": "it reads your words" },
        ],
    }))?;
    let policy = Policy::compile(&rules).map_err(|errors| format!("{errors:?}"))?;
    let guard = PolicySettings {
        policy,
        profile: None,
        approvals: Arc::<SharedApprovals>::default(),
        limits: ApprovalLimits::default(),
        other_approver: OtherApprover::default(),
    };
    let toolbox = PolicyToolbox::new(Arc::new(hub.clone()), guard);
    let model = Caller::agent("assistant");
    let catalog = toolbox.catalog(&model);
    let names: Vec<&str> =
        catalog.tools.entries().iter().map(|entry| entry.name.as_str()).collect();
    println!("on offer: {}", names.join(", "));

    let mut asked = 0;
    for (tool, arguments) in [
        ("long_computation", json!({ "steps": 1 })),
        ("analyze", json!({ "text": "what a good day" })),
        // Of the same shape: it was agreed to.
        ("analyze", json!({ "text": "what a bad day" })),
    ] {
        // It is hidden from the catalog, if the policy denies it: so it is named, not looked up.
        let target = Target { server: "demo".parse()?, name: tool.to_owned() };
        let call = Call::tool(model.clone(), target, arguments.into());
        let mut events = toolbox.call(call);
        while let Some(event) = events.next().await {
            match event {
                CallEvent::Approval(question) => {
                    asked += 1;
                    agree(question);
                }
                CallEvent::End(Ok(_)) => println!("{tool}: ok"),
                CallEvent::End(Err(error)) => println!("{tool}: {error}"),
                _ => {}
            }
        }
    }
    println!("asked {asked} time{}", if asked == 1 { "" } else { "s" });
    hub.drain().await;
    Ok(())
}

/// What a person would do with the form: read it, and say yes for the session.
fn agree(question: PendingServerRequest) {
    let message: String = question.params.text("message").unwrap_or_default();
    println!("asked: {}", message.lines().next().unwrap_or_default());
    let answer: Value = json!({ "action": "accept", "content": { "decision": "session" } });
    if let Some(reply) = question.reply {
        reply.send(Ok(answer.into()));
    }
}
