//! The conformance server under its suite.

use testkit::reference::Speaks;
use testkit::{conformance, conformant};

#[tokio::test(flavor = "multi_thread")]
async fn a_legacy_server_does_all_that_2025_11_25_asks() {
    check(Speaks::LEGACY, "2025-11-25", 30).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_both_eras_does_all_that_2025_11_25_asks() {
    check(Speaks::Everything, "2025-11-25", 30).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_modern_server_does_all_that_2026_07_28_asks() {
    check(Speaks::MODERN, "2026-07-28", 37).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_both_eras_does_all_that_2026_07_28_asks() {
    check(Speaks::Everything, "2026-07-28", 37).await;
}

async fn check(speaks: Speaks, revision: &str, required: usize) {
    let server = conformant::http(speaks).await;
    let report = conformance::server(&server.url(), revision, None).await;
    report.assert_expected();
    assert_eq!(report.required(), (required, required));
}
