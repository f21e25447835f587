//! Commands and runs that name servers which are starting, or cannot be reached.

use std::sync::Arc;

use consort_agent::{Agent, AgentSettings, Conversation, RunEvent, RunStatus};
use consort_client::{ServerCommand, ServerLocation};
use consort_hub::{Hub, HubSettings, ServerSettings};
use consort_models::{ChatMessage, Model, ModelScript};
use serde_json::json;
use testkit::rogue::{self, Manner};

use crate::Home;

#[test]
fn a_command_says_that_the_server_it_names_cannot_be_reached() {
    let home = Home::new();
    let rogue = testkit::bin("rogue");
    let search = json!({ "name": "search", "inputSchema": { "type": "object" } });
    let manner = Manner { extra_tool: Some(search.to_string()), ..Manner::modern() };
    home.write("other.json", &serde_json::to_string(&manner).unwrap());
    home.write(
        "consort.toml",
        &format!(
            "[mcp.down]\ncommand = \"there-is-no-such-program\"\n\
             [mcp.hung]\ncommand = \"sleep\"\nargs = [\"1000\"]\ntimeout.connect = \"60s\"\n\
             [mcp.other]\ncommand = \"sh\"\nargs = [\"-c\", 'exec \"{}\" \"$(cat other.json)\"']\n",
            rogue.display()
        ),
    );
    // None of them waits for a server that it does not name.
    for words in [
        &["call", "down.search"][..],
        &["call", "down.search", "--json"],
        &["prompt", "down.greet"],
        &["read", "down:x"],
        &["read", "file:///a", "--server", "down"],
    ] {
        let begun = std::time::Instant::now();
        let ran = home.run(words);
        assert_eq!(ran.code, 3, "{words:?}: {}{}", ran.out, ran.err);
        let told = format!("{}{}", ran.out, ran.err);
        assert!(told.contains("cannot connect to `down`"), "{words:?}: {told}");
        assert!(!told.contains("did you mean") && !told.contains("other"), "{words:?}: {told}");
        assert!(begun.elapsed() < std::time::Duration::from_secs(40), "{words:?}");
    }
    let ran = home.run(&["call", "other.serch"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("did you mean `other.search`?"), "{}", ran.err);
}

/// A hub that was started this moment, with a server that takes its time.
fn fresh() -> Hub {
    let manner = Manner { slow_start: 1500, ..Manner::modern() };
    let slow = ServerLocation::Command(rogue::command(&manner));
    let down = ServerLocation::Command(ServerCommand::new("there-is-no-such-program"));
    let servers = vec![
        ServerSettings::new("slow".parse().unwrap(), slow),
        ServerSettings::new("down".parse().unwrap(), down),
    ];
    Hub::start(HubSettings { servers, ..HubSettings::default() })
}

/// Runs a model over a hub with these tools; returns how many it had, how it ended and why.
async fn run(hub: &Hub, tools: Option<&[&str]>) -> (usize, RunStatus, String) {
    let script = ModelScript::parse(r#"{"turns": [{"text": "Done."}]}"#).unwrap();
    let mut settings = AgentSettings::new("a");
    settings.tools = tools.map(|tools| tools.iter().map(|&tool| tool.to_owned()).collect());
    let agent = Agent::new(Model::scripted(script), Arc::new(hub.clone()), settings);
    let mut events = agent.run(&Conversation::new(), vec![ChatMessage::user("Go.")]);
    let mut had = 0;
    loop {
        match events.next().await.unwrap() {
            RunEvent::Started { tools, .. } => had = tools,
            RunEvent::Ended { report } => return (had, report.status, report.reason),
            _ => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_waits_for_the_servers_of_its_tools() {
    for tools in [None, Some(&["slow.result"][..]), Some(&["slow.*"]), Some(&["result"])] {
        let hub = fresh();
        let (had, status, reason) = run(&hub, tools).await;
        let expected = if tools.is_some_and(|tools| tools != ["slow.*"]) { 1 } else { 5 };
        assert_eq!((had, status), (expected, RunStatus::Completed), "{tools:?}: {reason}");
        hub.drain().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_with_a_tool_of_a_server_that_cannot_be_reached_ends_and_says_so() {
    let hub = fresh();
    let (_, status, reason) = run(&hub, Some(&["down.search"])).await;
    assert_eq!(status, RunStatus::Error);
    assert!(reason.contains("cannot connect to `down`"), "{reason}");
    hub.drain().await;
}
