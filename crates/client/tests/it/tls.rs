//! Servers behind TLS: connected only if their certificate is trusted.

use testkit::rogue::{Http, Manner};
use tokio::process::Command;

/// Calls a tool in a process of its own, which trusts the certificates in `trusted` and no others.
async fn call(url: &str, trusted: &std::path::Path) -> (bool, String) {
    let output = Command::from(testkit::cargo())
        .args([
            "run",
            "--quiet",
            "--locked",
            "--package",
            "consort-client",
            "--example",
            "call",
            "--",
        ])
        .args(["result", r#"{"raw":"{\"secret\":1}"}"#, url])
        .env("SSL_CERT_FILE", trusted)
        .env_remove("SSL_CERT_DIR")
        .output()
        .await
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

#[tokio::test]
async fn a_server_is_trusted_by_its_certificate_alone() {
    let folder = std::env::temp_dir();
    let (http, certificate) = Http::start_tls(Manner::modern()).await;
    let trusted = folder.join(format!("consort-trusted-{}.pem", std::process::id()));
    std::fs::write(&trusted, certificate).unwrap();
    let (reached, text) = call(&http.url(), &trusted).await;
    assert!(reached && text.contains(r#"{"secret":1}"#), "{text}");

    let (other, _) = Http::start_tls(Manner::modern()).await;
    let (reached, text) = call(&other.url(), &trusted).await;
    assert!(!reached && text.contains("certificate"), "{text}");
    assert!(other.seen().is_empty(), "empty message to a stranger");
    std::fs::remove_file(trusted).unwrap();
}
