//! Log messages of a `FastMCP` server on one channel: to whom they go, and at which level.

use std::collections::BTreeSet;
use std::time::Duration;

use consort_client::{EraPreference, ServerCommand, ServerLocation};
use consort_core::{Call, CallEvent, Caller, ClientCapabilities, LogDelivery, LogLevel, Toolbox};
use consort_hub::{Hub, ServerSettings};
use serde_json::json;
use testkit::fixtures;

use crate::{id, start, target};

const STEPS: usize = 3;

async fn fastmcp(speak: EraPreference) -> Hub {
    let command =
        ServerCommand::new(fixtures::python("python3")).arguments([fixtures::fastmcp_server()]);
    let server = ServerSettings::new(id("fastmcp"), ServerLocation::Command(command));
    let hub = start(vec![ServerSettings { speak, ..server }]);
    hub.settled().await;
    hub
}

fn computing(hub: &Hub, caller: &str, log: &str) -> Call {
    let arguments = json!({ "steps": STEPS, "milliseconds": 200, "log": log });
    let target = target(hub, "fastmcp.compute");
    Call::tool(Caller::person(caller), target, arguments.into())
}

/// The log messages that a call receives until its end.
async fn logs(hub: &Hub, call: Call) -> Vec<String> {
    let mut events = hub.call(call);
    let mut logs = Vec::new();
    let read = async {
        loop {
            match events.next().await.unwrap() {
                CallEvent::Log(params) => {
                    let data = params.get("data").unwrap().to_string();
                    assert_eq!(params.text("level").as_deref(), Some("info"), "{data}");
                    logs.push(data);
                }
                CallEvent::End(end) => {
                    end.unwrap();
                    return logs;
                }
                _ => {}
            }
        }
    };
    tokio::time::timeout(Duration::from_mins(1), read).await.unwrap()
}

/// The calls whose log messages these are, each counted.
fn authors(logs: &[String]) -> BTreeSet<(&'static str, usize)> {
    let count = |log: &str| logs.iter().filter(|line| line.contains(log)).count();
    let authors = ["one", "two"].into_iter().map(|log| (log, count(log)));
    authors.filter(|(_, count)| *count > 0).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn log_messages_of_calls_side_by_side_reach_each_call_of_their_caller() {
    for speak in [EraPreference::Modern, EraPreference::Legacy] {
        let hub = fastmcp(speak).await;
        let (one, two) = tokio::join!(
            logs(&hub, computing(&hub, "ada", "one")),
            logs(&hub, computing(&hub, "ada", "two")),
        );
        assert!(authors(&one).contains(&("one", STEPS)), "{speak:?}: {one:?}");
        assert!(authors(&two).contains(&("two", STEPS)), "{speak:?}: {two:?}");
        hub.drain().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn log_messages_never_reach_the_calls_of_another_caller() {
    // Who answers for itself has a connection of its own to a legacy server, with its own log messages.
    for (speak, answers) in [
        (EraPreference::Modern, false),
        (EraPreference::Modern, true),
        (EraPreference::Legacy, false),
        (EraPreference::Legacy, true),
    ] {
        let hub = fastmcp(speak).await;
        let offers = answers
            .then(|| ClientCapabilities { form: true, ..ClientCapabilities::default() }.into());
        let calling = |caller: &str, log: &str| {
            let call = computing(&hub, caller, log);
            let client = offers.clone().map(consort_core::ClientContext::new);
            logs(&hub, Call { client, ..call })
        };
        let (one, two) = tokio::join!(calling("ada", "one"), calling("bob", "two"));
        assert!(authors(&one).iter().all(|(log, _)| *log == "one"), "{speak:?}: {one:?}");
        assert!(authors(&two).iter().all(|(log, _)| *log == "two"), "{speak:?}: {two:?}");
        if speak == EraPreference::Legacy && answers {
            assert_eq!((one.len(), two.len()), (STEPS, STEPS));
        }
        hub.drain().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_modern_server_is_asked_for_log_messages_unless_the_call_wants_none() {
    let hub = fastmcp(EraPreference::Modern).await;
    for (wanted, count) in [
        (None, STEPS),
        (Some(LogDelivery::From(LogLevel::Debug)), STEPS),
        (Some(LogDelivery::From(LogLevel::Error)), 0),
        (Some(LogDelivery::None), 0),
    ] {
        let call = computing(&hub, "ada", "one");
        let log = wanted.unwrap_or(call.log);
        let heard = logs(&hub, Call { log, ..call }).await;
        assert_eq!(heard.len(), count, "{wanted:?}: {heard:?}");
    }
    hub.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_legacy_server_is_told_the_level_that_a_call_wants() {
    let hub = fastmcp(EraPreference::Legacy).await;
    for (log, count) in [
        (LogDelivery::Usual, STEPS),
        (LogDelivery::From(LogLevel::Error), 0),
        (LogDelivery::From(LogLevel::Info), STEPS),
        (LogDelivery::None, 0),
    ] {
        let heard = logs(&hub, Call { log, ..computing(&hub, "ada", "one") }).await;
        assert_eq!(heard.len(), count, "{log:?}: {heard:?}");
    }
    hub.drain().await;
}
