//! The five-minute guide, as somebody follows it whose home holds nothing.

use consort_protocol::Era;
use serde_json::Value;
use testkit::clients::{Client, Fixture, Target, play};

use crate::book::{Stage, guide_blocks};

/// The command that a client's own config has for Consort, with the environment in which the client runs.
fn exported_command(stage: &Stage) -> Vec<String> {
    let text = std::fs::read_to_string(stage.home.path(".cursor/mcp.json")).unwrap();
    let config: Value = serde_json::from_str(&text).unwrap();
    let entry = &config["mcpServers"]["consort"];
    let words = entry["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
    let words = std::iter::once(entry["command"].as_str().unwrap()).chain(words);
    let variables = stage.variables();
    let folder = ["env", "--chdir=/"].map(str::to_owned);
    folder.into_iter().chain(variables).chain(words.map(str::to_owned)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guide_leads_from_an_empty_home_to_a_call_through_a_clients_config() {
    let mut stage = Stage::new();
    assert!(!stage.home.path(".config").exists() && !stage.home.path(".cursor").exists());
    for (block, config) in guide_blocks() {
        if let Some(config) = config {
            std::fs::write(stage.home.path("mcp.json"), config).unwrap();
        }
        stage.follow(&block).unwrap();
    }
    let added = std::fs::read_to_string(stage.home.path(".config/consort/consort.toml")).unwrap();
    assert!(added.contains("[mcp.everything]") && added.contains("[mcp.files]"), "{added}");
    // Real clients start exactly that command, and use the server that the guide added.
    let target = Target::Stdio(exported_command(&stage));
    let fixture = Fixture::Everything;
    for client in [Client::TypeScriptV1, Client::Python(Era::Modern)] {
        let row = play(client, fixture, &fixture.plan(), &target).await;
        assert_eq!(row.failures(), [""; 0], "{}", client.name());
    }
}
