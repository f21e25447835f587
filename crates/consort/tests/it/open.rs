//! `consort::open`: a config as a running toolbox.

use std::fs;

use consort::{CallEvent, Caller, OpenError, OpenOptions, ServerId, tool};
use serde_json::{Value, json};

/// A config with server-everything, a policy and a renamed tool.
fn config() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("consort.toml");
    let words = json!([testkit::fixtures::node(), testkit::fixtures::server_everything(), "stdio"]);
    let text = format!(
        "[mcp.everything]\ncommand = {words}\n[consort.policy]\ndefault = \"allow\"\n\
         [[consort.policy.rules]]\ntools = [\"everything.get-sum\"]\nthen = \"deny\"\n"
    );
    fs::write(&file, text).unwrap();
    (folder, file)
}

#[tokio::test]
async fn a_config_is_opened_and_its_tools_are_run_in_two_lines() {
    let (_folder, file) = config();
    let toolbox = consort::open(&file).unwrap();
    let result = toolbox.run("everything.echo", json!({ "message": "hello" })).await.unwrap();
    assert_eq!(result.flattened(), "Echo: hello");
    assert_eq!(toolbox.problems(), []);
    let denied = toolbox.run("everything.get-sum", json!({ "a": 1, "b": 2 })).await.unwrap_err();
    assert!(denied.to_string().contains("get-sum"), "{denied}");
    toolbox.close().await;
}

#[tokio::test]
async fn a_stream_has_the_progress_of_the_server_and_one_end() {
    let (_folder, file) = config();
    let toolbox = consort::open(&file).unwrap();
    let arguments = json!({ "duration": 0.4, "steps": 4 });
    let mut events =
        toolbox.stream("everything.trigger-long-running-operation", arguments).await.unwrap();
    let (mut progress, mut ends) = (0, 0);
    while let Some(event) = events.next().await {
        match event {
            CallEvent::Progress(_) => progress += 1,
            CallEvent::End(end) => {
                end.unwrap();
                ends += 1;
            }
            _ => {}
        }
    }
    assert_eq!((progress, ends), (4, 1));
    toolbox.close().await;
}

#[tokio::test]
async fn tools_of_the_program_join_those_of_the_config_and_see_their_caller() {
    let (_folder, file) = config();
    let greet = tool("greet", "Greets the caller.", async |_: Value, context| {
        format!("hello {}", context.caller().name())
    });
    let group = ServerId::derive("own");
    let options =
        OpenOptions::default().caller(Caller::person("ada")).tools(group.clone(), vec![greet]);
    let toolbox = options.open(&file).unwrap();
    assert_eq!(toolbox.run("greet", json!({})).await.unwrap().flattened(), "hello ada");
    let bob = toolbox.for_caller(Caller::person("bob"));
    assert_eq!(bob.run("own.greet", json!({})).await.unwrap().flattened(), "hello bob");
    assert!(toolbox.set_tools(&group, Vec::new()));
    assert!(toolbox.run("own.greet", json!({})).await.is_err());
    toolbox.close().await;
}

#[tokio::test]
async fn a_config_that_cannot_be_opened_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("consort.toml");
    assert!(matches!(consort::open(&file), Err(OpenError::File(_))));
    fs::write(&file, "[consort.polcy]\ndefault = \"deny\"\n[mcp.a]\ncommand = [\"a\"]\n").unwrap();
    let error = consort::open(&file).unwrap_err();
    assert!(
        matches!(error, OpenError::Option(_)) && error.to_string().contains("polcy"),
        "{error}"
    );
    fs::write(&file, "[mcp.a]\ncommand = [\"a\"]\n").unwrap();
    let error = OpenOptions::default().profile("work").open(&file).unwrap_err();
    assert_eq!(error.to_string(), "unknown profile `work`");
}
