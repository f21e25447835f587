//! The official conformance suite, through the gateway, to servers of either era.

use std::path::Path;

use testkit::conformant;
use testkit::reference::Speaks;

use crate::{Served, at, quick};

/// Runs the suite; returns how many of the required scenarios passed.
async fn suite(revision: &str, speaks: Speaks, expected: Option<&str>) -> (usize, usize) {
    let server = conformant::http(speaks).await;
    let served = Served::new(vec![at("conformant", &server.url())], quick()).await;
    let expected =
        expected.map(|file| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(file));
    let report = testkit::conformance::server(&served.url, revision, expected.as_deref()).await;
    report.assert_expected();
    served.end().await;
    report.required()
}

#[tokio::test(flavor = "multi_thread")]
async fn legacy_clients_of_a_legacy_server() {
    assert_eq!(suite("2025-11-25", Speaks::LEGACY, None).await, (30, 30));
}

#[tokio::test(flavor = "multi_thread")]
async fn legacy_clients_of_a_modern_server() {
    assert_eq!(suite("2025-11-25", Speaks::MODERN, None).await, (30, 30));
}

#[tokio::test(flavor = "multi_thread")]
async fn legacy_clients_of_a_server_of_both_eras() {
    assert_eq!(suite("2025-11-25", Speaks::Everything, None).await, (30, 30));
}

/// The tasks are those of 2025-11-25, of a server of the TypeScript SDK: that of Rust has none.
#[tokio::test(flavor = "multi_thread")]
async fn modern_clients_of_legacy_servers() {
    let server = conformant::http_without_tasks(Speaks::LEGACY).await;
    let tasks = tokio::task::spawn_blocking(testkit::tasks_server).await.unwrap();
    let servers = vec![at("conformant", &server.url()), at("tasks", &tasks.url("/mcp"))];
    let served = Served::new(servers, quick()).await;
    let expected = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/expected-failures.yml");
    let report = testkit::conformance::server(&served.url, "2026-07-28", Some(&expected)).await;
    report.assert_expected();
    served.end().await;
    assert_eq!(report.required(), (36, 37));
}

#[tokio::test(flavor = "multi_thread")]
async fn modern_clients_of_a_modern_server() {
    assert_eq!(suite("2026-07-28", Speaks::MODERN, None).await, (37, 37));
}

#[tokio::test(flavor = "multi_thread")]
async fn modern_clients_of_a_server_of_both_eras() {
    assert_eq!(suite("2026-07-28", Speaks::Everything, None).await, (37, 37));
}
