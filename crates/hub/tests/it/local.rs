//! Rust functions as tools.

use consort_core::{CallEvent, ServerId, ToolResult};
use consort_hub::{Hub, HubSettings, builtin, tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::{call, events, ready, rogue, tools};
use testkit::rogue::Manner;

#[derive(Deserialize, JsonSchema)]
struct Divide {
    /// What to divide
    a: f64,
    /// By what
    b: f64,
}

fn hub() -> Hub {
    let divide = tool("divide", "Divides.", async |divide: Divide, context| {
        context.progress(1.0, Some(2.0), "looking");
        if divide.b == 0.0 {
            return Err("Division by zero".to_owned());
        }
        context.progress(2.0, Some(2.0), "dividing");
        Ok(json!({ "result": divide.a / divide.b }))
    });
    let broken = tool("broken", "Panics.", async |_: serde_json::Value, _| -> ToolResult {
        panic!("oh no: {}", 7)
    });
    let mut settings =
        HubSettings { servers: vec![rogue("a", &Manner::modern())], ..HubSettings::default() };
    settings.local.insert(ServerId::derive("math"), vec![divide, broken]);
    settings.local.insert(ServerId::derive("builtin"), builtin());
    Hub::start(settings)
}

#[tokio::test]
async fn a_function_is_a_tool_among_those_of_servers() {
    let hub = hub();
    ready(&hub, "a").await;
    let all = tools(&hub);
    assert!(
        all.contains(&"math.divide".to_owned()) && all.contains(&"a.result".to_owned()),
        "{all:?}"
    );
    let (seen, _) = events(&hub, "divide", json!({ "a": 84, "b": 2 })).await;
    assert_eq!(seen.len(), 2);
    assert!(
        matches!(&seen[1], CallEvent::Progress(progress) if progress.message().as_deref() == Some("dividing"))
    );
    let result = call(&hub, "divide", json!({ "a": 84, "b": 2 })).await.unwrap();
    assert_eq!(result.structured_content().unwrap().as_str(), r#"{"result":42.0}"#);
    hub.drain().await;
}

#[tokio::test]
async fn an_error_or_a_panic_in_a_function_is_its_result() {
    let hub = hub();
    let failed = call(&hub, "divide", json!({ "a": 1, "b": 0 })).await.unwrap();
    assert!(failed.is_error());
    assert_eq!(failed.flattened(), "Division by zero");
    let panicked = call(&hub, "broken", json!({})).await.unwrap();
    assert!(panicked.is_error());
    assert_eq!(panicked.flattened(), "the tool panicked: oh no: 7");
    let refused = call(&hub, "divide", json!({ "a": "1" })).await.unwrap_err().to_string();
    assert!(
        refused.contains("\"b\" is a required property") && refused.contains("at `/a`"),
        "{refused}"
    );
    hub.drain().await;
}

#[tokio::test]
async fn the_builtin_tools_work() {
    let hub = hub();
    assert_eq!(
        call(&hub, "builtin.echo", json!({ "text": "hi" })).await.unwrap().flattened(),
        "hi"
    );
    assert!(call(&hub, "timestamp", json!({})).await.unwrap().flattened().contains("\"utc\":\"20"));
    hub.drain().await;
}

#[tokio::test]
async fn progress_that_a_reader_did_not_keep_up_with_is_counted() {
    let busy = tool("busy", "Reports a lot at once.", async |_: serde_json::Value, context| {
        for n in 1..=2000 {
            context.progress(f64::from(n), Some(2000.0), "working");
        }
        "done"
    });
    let mut settings = HubSettings::default();
    settings.local.insert(ServerId::derive("local"), vec![busy]);
    let hub = Hub::start(settings);
    let (seen, _) = events(&hub, "busy", json!({})).await;
    assert!(matches!(seen[0], CallEvent::Skipped(976)), "{:?}", seen[0]);
    let progress = |event: &CallEvent| match event {
        CallEvent::Progress(progress) => progress.progress(),
        other => panic!("{other:?}"),
    };
    let progress: Vec<_> = seen[1..].iter().map(progress).collect();
    assert_eq!((progress.len(), progress[0], progress[1023]), (1024, 977.0, 2000.0));
    hub.drain().await;
}

#[tokio::test]
async fn tools_and_servers_come_and_go_while_the_hub_runs() {
    let hub = hub();
    ready(&hub, "a").await;
    let math = ServerId::derive("math");
    let double =
        tool("double", "Doubles.", async |divide: Divide, _| json!({ "x": 2.0 * divide.a }));
    assert!(hub.set_local_tools(&math, vec![double]));
    let doubled = call(&hub, "math.double", json!({ "a": 2.0, "b": 1.0 })).await.unwrap();
    assert_eq!(doubled.flattened(), "{\"x\":4.0}");
    assert!(call(&hub, "math.divide", json!({ "a": 1.0, "b": 1.0 })).await.is_err());
    assert!(!hub.set_local_tools(&ServerId::derive("a"), Vec::new()), "a server has this name");
    assert!(hub.set_local_tools(&math, Vec::new()));
    assert!(tools(&hub).iter().all(|tool| !tool.starts_with("math.")), "{:?}", tools(&hub));

    let drain = std::time::Duration::from_secs(1);
    hub.add_server(rogue("b", &Manner::modern()), drain);
    ready(&hub, "b").await;
    assert!(hub.remove_server(&ServerId::derive("a"), drain));
    assert!(!hub.remove_server(&ServerId::derive("a"), drain));
    assert!(tools(&hub).iter().any(|tool| tool.starts_with("b.")), "{:?}", tools(&hub));
    assert!(tools(&hub).iter().all(|tool| !tool.starts_with("a.")), "{:?}", tools(&hub));
    hub.drain().await;
}

#[tokio::test]
async fn a_tool_knows_its_caller_and_its_log_messages_arrive() {
    let whoami = tool("whoami", "Tells the caller.", async |_: serde_json::Value, context| {
        context.log("notice", "somebody asks");
        Ok::<_, std::fmt::Error>(context.caller().name().to_owned())
    });
    let mut settings = HubSettings::default();
    settings.local.insert(ServerId::derive("local"), vec![whoami]);
    let hub = Hub::start(settings);
    let (seen, end) = events(&hub, "whoami", json!({})).await;
    assert!(
        matches!(&seen[..], [CallEvent::Log(log)] if log.text("level").as_deref() == Some("notice")),
        "{seen:?}"
    );
    assert!(format!("{end:?}").contains("me"), "{end:?}");
    hub.drain().await;
}
