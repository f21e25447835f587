//! What is served beside MCP, behind the same door.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use consort_core::{BoxFuture, Caller, Emitting};
use consort_gateway::{Access, Limits, Settings, Site, SiteBody, Token};
use http::{Request, Response, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::{Served, quick};

/// Says who came and with what; at `/site/stream`, two words and then nothing more until it is left.
#[derive(Default)]
struct Parrot {
    left: Arc<AtomicUsize>,
}

struct Leaves(Arc<AtomicUsize>);

impl Drop for Leaves {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Site for Parrot {
    fn has(&self, path: &str) -> bool {
        path.starts_with("/site/")
    }

    fn answer(
        &self,
        caller: Caller,
        request: Request<bytes::Bytes>,
    ) -> BoxFuture<'static, Response<SiteBody>> {
        let left = Leaves(Arc::clone(&self.left));
        Box::pin(async move {
            if request.uri().path() != "/site/stream" {
                let body = String::from_utf8_lossy(request.body()).into_owned();
                let (method, query) = (request.method(), request.uri().query().unwrap_or_default());
                let said = format!("{} {method} {query} {body}", caller.name);
                return Response::new(SiteBody::Whole(said.into()));
            }
            let words = Emitting::new(|emitter| async move {
                let _left = left;
                emitter.emit("data: one\n\n".into()).await;
                emitter.emit("data: two\n\n".into()).await;
                std::future::pending().await
            });
            let response = Response::builder().header("content-type", "text/event-stream");
            response.body(SiteBody::Stream(Box::pin(words))).unwrap()
        })
    }

    fn refuse(&self, status: StatusCode, message: &str) -> Response<SiteBody> {
        let body = format!("{{\"no\":{message:?}}}");
        Response::builder().status(status).body(SiteBody::Whole(body.into())).unwrap()
    }
}

async fn served(parrot: Parrot) -> Served {
    let token = Token { name: "ada".to_owned(), secret: "s3cret".to_owned() };
    let settings = Settings {
        access: Access::Tokens(vec![token]),
        sites: vec![Arc::new(parrot)],
        limits: Limits { body_bytes: 64, ..quick().limits },
        ..quick()
    };
    Served::new(Vec::new(), settings).await
}

async fn asked(served: &Served, head: &str, body: &str) -> String {
    let address = served.url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request =
        format!("{head}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

fn status_and_body(answer: &str) -> (&str, &str) {
    (&answer[9..12], answer.split_once("\r\n\r\n").unwrap().1)
}

#[tokio::test]
async fn a_site_is_behind_the_same_door() {
    let served = served(Parrot::default()).await;
    let host = "Host: localhost\r\nAuthorization: Bearer s3cret";
    let answer = asked(&served, &format!("PUT /site/a?b=c HTTP/1.1\r\n{host}"), "hello").await;
    assert_eq!(status_and_body(&answer), ("200", "ada PUT b=c hello"));

    let answer = asked(&served, "GET /site/a HTTP/1.1\r\nHost: localhost", "").await;
    let (status, body) = status_and_body(&answer);
    assert!(status == "401" && body.starts_with("{\"no\":\"the token is missing"), "{answer}");
    assert!(answer.contains("www-authenticate: Bearer"), "{answer}");

    let answer = asked(&served, "GET /site/a HTTP/1.1\r\nHost: evil.example", "").await;
    assert_eq!(status_and_body(&answer).0, "403");

    let long = "x".repeat(65);
    let answer = asked(&served, &format!("POST /site/a HTTP/1.1\r\n{host}"), &long).await;
    assert_eq!(status_and_body(&answer), ("413", "{\"no\":\"the message is too large\"}"));

    let answer = asked(&served, &format!("GET /elsewhere HTTP/1.1\r\n{host}"), "").await;
    assert_eq!(status_and_body(&answer).0, "404");
    let answer = asked(&served, &format!("GET /metrics HTTP/1.1\r\n{host}"), "").await;
    assert!(answer.contains("consort_site_requests_total{status=\"4xx\"} 3"), "{answer}");
    served.end().await;
}

#[tokio::test]
async fn a_client_that_leaves_ends_what_a_site_does_for_it() {
    let parrot = Parrot::default();
    let left = Arc::clone(&parrot.left);
    let served = served(parrot).await;
    let address = served.url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request =
        "GET /site/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer s3cret\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut seen = Vec::new();
    while !seen.ends_with(b"data: two\n\n\r\n") {
        assert_ne!(stream.read_buf(&mut seen).await.unwrap(), 0);
    }
    assert_eq!((served.gateway.counts().requests, left.load(Ordering::SeqCst)), (1, 0));
    drop(stream);
    while left.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    served.end().await;
}
