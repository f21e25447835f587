//! Requests that are refused before their body is read.

use consort_core::Caller;
use consort_server::{BearerToken, ClientAccess, ClientPermissions};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::{Served, open_to, quick, until};

async fn served() -> Served {
    let secret = |name: &str| format!("secret of {name}");
    let token = |name: &str| BearerToken::client(name, secret(name));
    let access = ClientAccess::Tokens(vec![
        BearerToken::owner(secret("owner")),
        token("ada"),
        token("prometheus"),
    ]);
    let permissions = ClientPermissions {
        metrics: vec![Caller::client("prometheus").id().clone()],
        ..ClientPermissions::default()
    };
    let mut settings = open_to(quick(), access);
    settings.transports.permissions = permissions;
    Served::new(Vec::new(), settings).await
}

/// Sends these bytes, and returns the status and the whole response.
async fn sent(served: &Served, bytes: &str) -> (u16, String) {
    let address = served.url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes.as_bytes()).await.unwrap();
    let answer = testkit::read_answer_async(stream).await;
    (answer[9..12].parse().unwrap(), answer)
}

const OWNER: &str = "Authorization: Bearer secret of owner";

#[tokio::test]
async fn a_head_whose_lines_end_with_bare_line_feeds_is_refused() {
    let served = served().await;
    for bare in [
        format!("GET /metrics HTTP/1.1\nHost: localhost\n{OWNER}\nConnection: close\n\n"),
        format!("GET /metrics HTTP/1.1\r\nHost: localhost\n{OWNER}\r\nConnection: close\r\n\r\n"),
        format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\n{OWNER}\r\nConnection: close\r\n\n"),
        "GET /healthz HTTP/1.1\nHost: localhost\nConnection: close\n\n".to_owned(),
    ] {
        let (status, answer) = sent(&served, &bare).await;
        assert_eq!(status, 400, "{bare:?}: {answer}");
    }
    let right =
        format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\n{OWNER}\r\nConnection: close\r\n\r\n");
    assert_eq!(sent(&served, &right).await.0, 200);
    // A body may hold them, and the next head may not.
    let two = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\n{OWNER}\r\nContent-Length: 2\r\n\r\n\n\n\
         GET /metrics HTTP/1.1\nHost: localhost\n{OWNER}\nConnection: close\n\n"
    );
    let (_, answer) = sent(&served, &two).await;
    assert!(!answer.contains("consort_requests_total"), "{answer}");
    assert!(answer.contains("HTTP/1.1 400"), "{answer}");
    served.end().await;
}

#[tokio::test]
async fn an_absolute_target_with_another_host_is_refused() {
    let served = served().await;
    let ask = |target: &str, host: &str| {
        format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n{OWNER}\r\nConnection: close\r\n\r\n")
    };
    for (target, host, status) in [
        ("http://localhost/metrics", "localhost", 200),
        ("http://evil.example/metrics", "localhost", 400),
        ("http://evil.example/metrics", "evil.example", 403),
        ("http://localhost:1/metrics", "localhost", 400),
        ("http://localhost/metrics", "evil.example", 403),
    ] {
        let (answered, answer) = sent(&served, &ask(target, host)).await;
        assert_eq!(answered, status, "{target} {host}: {answer}");
    }
    served.end().await;
}

#[tokio::test]
async fn metrics_are_for_the_owner_and_for_those_that_the_config_names() {
    let served = served().await;
    let ask = |who: &str| {
        format!(
            "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret of {who}\r\n\
             Connection: close\r\n\r\n"
        )
    };
    assert_eq!(sent(&served, &ask("owner")).await.0, 200);
    assert_eq!(sent(&served, &ask("prometheus")).await.0, 200);
    let (status, answer) = sent(&served, &ask("ada")).await;
    assert_eq!(status, 403, "{answer}");
    assert!(answer.contains("`metrics_callers` of `[consort.serve]`"), "{answer}");
    assert!(!answer.contains("consort_"), "{answer}");
    served.gateway.set_permissions(ClientPermissions::default());
    assert_eq!(sent(&served, &ask("prometheus")).await.0, 403);
    served.end().await;
}

#[tokio::test]
async fn a_page_of_another_port_is_refused_until_its_origin_is_allowed() {
    let served = served().await;
    let host = served.url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap().to_owned();
    let ask = |origin: &str| {
        format!(
            "GET /metrics HTTP/1.1\r\nHost: {host}\r\n{OWNER}\r\nOrigin: {origin}\r\n\
             Connection: close\r\n\r\n"
        )
    };
    let inspector = "http://localhost:6274";
    assert_eq!(sent(&served, &ask(&format!("http://{host}"))).await.0, 200);
    let (status, answer) = sent(&served, &ask(inspector)).await;
    assert_eq!(status, 403);
    assert!(answer.contains("`allowed_origins` in `[consort.serve]`"), "{answer}");
    let origins = vec![inspector.to_owned()];
    served.gateway.set_permissions(ClientPermissions { origins, ..ClientPermissions::default() });
    assert_eq!(sent(&served, &ask(inspector)).await.0, 200);
    assert_eq!(sent(&served, &ask("http://localhost:6275")).await.0, 403);
    served.end().await;
}

#[tokio::test]
async fn gauges_are_current_without_a_scrape() {
    let served = Served::new(Vec::new(), quick()).await;
    let address = served.url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    let _connection = TcpStream::connect(address).await.unwrap();
    let _session = served.legacy().await;
    let metrics = std::sync::Arc::clone(&served.metrics);
    until("the clients are counted", async || {
        (metrics.connections.get() >= 1 && metrics.sessions.get() == 1).then_some(())
    })
    .await;
    served.end().await;
    assert_eq!([metrics.connections.get(), metrics.sessions.get()], [0; 2]);
}
