//! The official conformance suite, through the gateway, to servers of either era.

use testkit::conformant;
use testkit::reference::Speaks;

use crate::{Served, at, quick};

async fn suite(revision: &str, speaks: Speaks) {
    let server = conformant::http(speaks).await;
    let served = Served::new(vec![at("conformant", &server.url())], quick()).await;
    let report = testkit::conformance::server(&served.url, revision, None).await;
    let required = report.required();
    report.assert_expected();
    assert_eq!(required.0, required.1, "{}", report.said());
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn legacy_clients_of_a_legacy_server() {
    suite("2025-11-25", Speaks::LEGACY).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn legacy_clients_of_a_modern_server() {
    suite("2025-11-25", Speaks::MODERN).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn legacy_clients_of_a_server_of_both_eras() {
    suite("2025-11-25", Speaks::Everything).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn modern_clients_of_a_legacy_server() {
    suite("2026-07-28", Speaks::LEGACY).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn modern_clients_of_a_modern_server() {
    suite("2026-07-28", Speaks::MODERN).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn modern_clients_of_a_server_of_both_eras() {
    suite("2026-07-28", Speaks::Everything).await;
}
