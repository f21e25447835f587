//! Real clients that start the gateway as desktop clients do.

use std::sync::Arc;

use testkit::clients::{Client, Fixture, Row, Target, matrix, play};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::Home;

#[tokio::test(flavor = "multi_thread")]
async fn every_client_uses_a_server_on_standard_input_and_output() {
    let places = Arc::new(Semaphore::new(3));
    let mut playing = JoinSet::new();
    for (n, client) in Client::ALL.into_iter().enumerate() {
        let places = Arc::clone(&places);
        playing.spawn(async move {
            let _place = places.acquire_owned().await.unwrap();
            let fixture = Fixture::Reference;
            let home = Home::new();
            let [command, arguments @ ..] = &fixture.command()[..] else { panic!("no command") };
            let config = serde_json::json!({
                "mcpServers": { "reference": { "command": command, "args": arguments } },
            });
            let file = home.path("mcp.json");
            std::fs::write(&file, config.to_string()).unwrap();
            let serve = [
                env!("CARGO_BIN_EXE_consort"),
                "serve",
                "--stdio",
                "--no-ledger",
                "--config",
                file.to_str().unwrap(),
            ];
            let target = Target::Stdio(serve.map(str::to_owned).to_vec());
            (n, play(client, fixture, &fixture.plan(), &target).await)
        });
    }
    let mut rows = playing.join_all().await;
    rows.sort_by_key(|(n, _)| *n);
    let rows: Vec<Row> = rows.into_iter().map(|(_, row)| row).collect();
    let failures: Vec<String> = rows.iter().flat_map(Row::failures).collect();
    assert!(failures.is_empty(), "{}\n\n{}", failures.join("\n"), matrix(&rows));
    testkit::docs::hold("docs/interop.md", "stdio", &matrix(&rows));
}
