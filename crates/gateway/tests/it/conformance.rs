//! The official conformance suite, through the gateway, to servers of either era.

use std::path::Path;
use std::time::Duration;

use consort_server::TransportLimits;
use testkit::conformant;
use testkit::reference::Speaks;

use crate::{Served, at, limited, quick};

/// Runs the suite; returns the number of required scenarios that passed, and of all required ones.
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

/// Each answer that is not there at once is a stream, so that the scenarios about streams find one.
#[tokio::test(flavor = "multi_thread")]
async fn legacy_clients_that_are_answered_with_streams() {
    let server = conformant::http(Speaks::LEGACY).await;
    let limits = TransportLimits { stream_after: Duration::ZERO, ..quick().transports.limits };
    let settings = limited(quick(), limits);
    let served = Served::new(vec![at("conformant", &server.url())], settings).await;
    let report = testkit::conformance::server(&served.url, "2025-11-25", None).await;
    report.assert_expected();
    let passed = |scenario: &str| {
        let found = report.scenarios.iter().find(|known| known.name == scenario);
        found.unwrap_or_else(|| panic!("`{scenario}` was not run")).successes.clone()
    };
    let polling = passed("server-sse-polling");
    for check in ["server-sse-priming-event", "server-sse-retry-field"] {
        assert!(polling.iter().any(|passed| passed == check), "{check}: {polling:?}");
    }
    assert!(!passed("server-sse-multiple-streams").is_empty());
    served.end().await;
    assert_eq!(report.required(), (30, 30));
}

// P1
#[tokio::test(flavor = "multi_thread")]
async fn clients_of_either_era_of_a_server_of_both_that_asks_in_each_as_that_era_does() {
    for (revision, required) in [("2025-11-25", (30, 30)), ("2026-07-28", (37, 37))] {
        let server = conformant::http_asking_by_era().await;
        let served = Served::new(vec![at("conformant", &server.url())], quick()).await;
        let report = testkit::conformance::server(&served.url, revision, None).await;
        report.assert_expected();
        served.end().await;
        assert_eq!(report.required(), required);
    }
}

// P1
#[tokio::test(flavor = "multi_thread")]
async fn clients_of_either_era_of_a_server_that_does_as_the_conformance_server_of_the_rust_sdk() {
    let server = conformant::http_as_the_sdk().await;
    assert_same_as_direct(&server.url()).await;
}

// P1
#[tokio::test(flavor = "multi_thread")]
async fn clients_of_either_era_of_a_fastmcp_server_of_both() {
    let server = tokio::task::spawn_blocking(testkit::fastmcp_conformance).await.unwrap();
    assert_same_as_direct(&server.url("/mcp")).await;
}

// P1
#[tokio::test(flavor = "multi_thread")]
async fn clients_of_either_era_of_a_typescript_server_of_both() {
    let server = tokio::task::spawn_blocking(testkit::conformance_server).await.unwrap();
    assert_same_as_direct(&server.url("/mcp")).await;
}

/// Runs the suite against a server of both eras and through the gateway. All required scenarios pass. Of those that are
/// not scored (`FastMCP` and the TypeScript SDK have no tasks), none fails or warns only through the gateway.
async fn assert_same_as_direct(url: &str) {
    for (revision, required) in [("2025-11-25", (30, 30)), ("2026-07-28", (37, 37))] {
        let direct = testkit::conformance::server(url, revision, None).await;
        assert_eq!(direct.required(), required, "directly: {direct}");
        let served = Served::new(vec![at("conformant", url)], quick()).await;
        let report = testkit::conformance::server(&served.url, revision, None).await;
        served.end().await;
        assert_eq!(report.required(), required, "through the gateway: {report}");
        let worse = report.worse_than(&direct);
        assert!(worse.is_empty(), "only through the gateway: {worse:?}\n{direct}{report}");
    }
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
