//! HTTP routes beside MCP, behind the same authentication.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use consort_core::{BoxFuture, Caller, DrivenStream};
use consort_gateway::GatewaySettings;
use consort_server::{
    BearerToken, ClientAccess, ClientPermissions, HttpRequestContext, HttpRoutes, RouteAccess,
    RouteBody, TransportLimits, TransportSettings,
};
use http::{Request, Response, StatusCode};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::{Served, quick};

/// Returns the caller and the request; at `/route/stream`, two words and then nothing more until the client disconnects.
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

impl HttpRoutes for Parrot {
    fn has(&self, path: &str) -> bool {
        path.starts_with("/route/")
    }

    fn access(&self, path: &str) -> RouteAccess {
        match path {
            "/route/open" => RouteAccess::Open,
            "/route/pass" | "/route/pass/stream" => RouteAccess::Pass,
            _ => RouteAccess::Token,
        }
    }

    fn answer(
        &self,
        visit: HttpRequestContext,
        request: Request<bytes::Bytes>,
    ) -> BoxFuture<'static, Response<RouteBody>> {
        let left = Leaves(Arc::clone(&self.left));
        Box::pin(async move {
            if request.uri().path() == "/route/endless" {
                let words = DrivenStream::new(|emitter| async move {
                    let _left = left;
                    // More than any buffer on the way holds.
                    for _ in 0..4096 {
                        emitter.emit("data: more and more\n\n".repeat(200).into()).await;
                    }
                    std::future::pending().await
                });
                let response = Response::builder().header("content-type", "text/event-stream");
                return response.body(RouteBody::Endless(Box::pin(words))).unwrap();
            }
            if !request.uri().path().ends_with("/stream") {
                let body = String::from_utf8_lossy(request.body()).into_owned();
                let (method, query) = (request.method(), request.uri().query().unwrap_or_default());
                let who =
                    visit.caller.map_or("somebody".to_owned(), |caller| caller.name().to_owned());
                let said = format!("{who} {method} {query} {body}");
                let mut response = Response::builder();
                if let Some(caller) = visit.sign_in.caller_of(&body).await {
                    let made = visit.sign_in.sign_in(caller, &body, request.headers());
                    let secret = made.page_secret;
                    response = response.header("set-cookie", made.cookie).header("secret", secret);
                } else if let Some(session) = &visit.session
                    && *method == "DELETE"
                {
                    response = response.header("set-cookie", visit.sign_in.sign_out(session));
                }
                return response.body(RouteBody::Whole(said.into())).unwrap();
            }
            let words = DrivenStream::new(|emitter| async move {
                let _left = left;
                emitter.emit("data: one\n\n".into()).await;
                emitter.emit("data: two\n\n".into()).await;
                std::future::pending().await
            });
            let response = Response::builder().header("content-type", "text/event-stream");
            response.body(RouteBody::Stream(Box::pin(words))).unwrap()
        })
    }

    fn refuse(&self, status: StatusCode, message: &str) -> Response<RouteBody> {
        let body = format!("{{\"no\":{message:?}}}");
        Response::builder().status(status).body(RouteBody::Whole(body.into())).unwrap()
    }
}

async fn served(parrot: Parrot) -> Served {
    let token = BearerToken::client("ada", "s3cret");
    let settings = GatewaySettings {
        transports: TransportSettings {
            access: ClientAccess::Tokens(vec![token]),
            routes: vec![Arc::new(parrot)],
            permissions: ClientPermissions {
                metrics: vec![Caller::client("ada").id().clone()],
                ..ClientPermissions::default()
            },
            limits: TransportLimits { body_bytes: 64, ..quick().transports.limits },
            ..TransportSettings::default()
        },
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
    testkit::read_answer_async(stream).await
}

fn status_and_body(answer: &str) -> (&str, &str) {
    (&answer[9..12], answer.split_once("\r\n\r\n").unwrap().1)
}

#[tokio::test]
async fn http_routes_require_the_authentication_of_mcp() {
    let served = served(Parrot::default()).await;
    let host = "Host: localhost\r\nAuthorization: Bearer s3cret";
    let answer = asked(&served, &format!("PUT /route/a?b=c HTTP/1.1\r\n{host}"), "hello").await;
    assert_eq!(status_and_body(&answer), ("200", "ada PUT b=c hello"));

    let answer = asked(&served, "GET /route/a HTTP/1.1\r\nHost: localhost", "").await;
    let (status, body) = status_and_body(&answer);
    assert!(status == "401" && body.starts_with("{\"no\":\"missing or invalid token"), "{answer}");
    assert!(answer.contains("www-authenticate: Bearer"), "{answer}");

    let answer = asked(&served, "GET /route/a HTTP/1.1\r\nHost: evil.example", "").await;
    assert_eq!(status_and_body(&answer).0, "403");

    let long = "x".repeat(65);
    let answer = asked(&served, &format!("POST /route/a HTTP/1.1\r\n{host}"), &long).await;
    assert_eq!(status_and_body(&answer), ("413", "{\"no\":\"the request body is too large\"}"));

    let answer = asked(&served, &format!("GET /elsewhere HTTP/1.1\r\n{host}"), "").await;
    assert_eq!(status_and_body(&answer).0, "404");
    let answer = asked(&served, &format!("GET /metrics HTTP/1.1\r\n{host}"), "").await;
    assert!(answer.contains("consort_site_requests_total{status=\"4xx\"} 3"), "{answer}");
    served.end().await;
}

/// The headers of a page that signed in: its cookie, and its secret.
async fn signed_in(served: &Served) -> (String, String) {
    let head = "POST /route/open HTTP/1.1\r\nHost: localhost:1\r\nOrigin: http://localhost:1";
    let answer = asked(served, head, "s3cret").await;
    let header = |name: &str| {
        let (_, value) = answer.split_once(&format!("{name}: ")).expect("it signed in");
        value.split(['\r', ';']).next().unwrap().to_owned()
    };
    let cookie = header("set-cookie");
    (format!("\r\nCookie: a=b; {cookie}"), format!("\r\nX-Consort-Session: {}", header("secret")))
}

const OWN: &str = "\r\nOrigin: http://localhost:1";

#[tokio::test]
async fn a_browser_that_sends_the_token_once_gets_a_session_cookie() {
    let served = served(Parrot::default()).await;
    let head = "POST /route/open HTTP/1.1\r\nHost: localhost:1";
    let answer = asked(&served, head, "wrong").await;
    assert!(answer.contains("somebody POST") && !answer.contains("set-cookie"), "{answer}");
    let answer = asked(&served, head, "s3cret").await;
    let (_, cookie) = answer.split_once("set-cookie: ").expect("a session");
    let (cookie, _) = cookie.split_once("\r\n").unwrap();
    assert!(cookie.starts_with("consort1="), "{cookie}");
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{cookie}");
    assert!(!cookie.contains("s3cret"), "{cookie}");
    let (cookie, secret) = signed_in(&served).await;
    let ask = async |line: &str, more: &str| {
        asked(&served, &format!("{line} HTTP/1.1\r\nHost: localhost:1{more}"), "").await
    };
    let both = format!("{cookie}{secret}");
    assert!(ask("GET /route/pass", &both).await.contains("ada GET"));
    assert!(ask("POST /route/pass", &format!("{both}{OWN}")).await.contains("ada POST"));
    // It is good for nothing else.
    assert!(ask("GET /route/token", &both).await.starts_with("HTTP/1.1 401"));
    assert!(ask("POST /mcp", &both).await.starts_with("HTTP/1.1 401"));
    served.end().await;
}

#[tokio::test]
async fn a_cookie_alone_neither_reads_nor_changes_anything() {
    let served = served(Parrot::default()).await;
    let (cookie, secret) = signed_in(&served).await;
    let (_, other) = signed_in(&served).await;
    let ask = async |method: &str, more: &str| {
        let head = format!("{method} /route/pass HTTP/1.1\r\nHost: localhost:1{cookie}{more}");
        asked(&served, &head, "").await[9..12].to_owned()
    };
    for origin in ["", OWN, "\r\nOrigin: http://localhost:3000", "\r\nOrigin: null"] {
        for method in ["GET", "POST", "PUT", "DELETE"] {
            let status = ask(method, origin).await;
            assert!(status == "401" || status == "403", "{method} {origin}: {status}");
            // The secret of another session is none.
            let status = ask(method, &format!("{origin}{other}")).await;
            assert!(status == "401" || status == "403", "{method} {origin}: {status}");
        }
    }
    // With the page's secret, but not from the page: nothing is changed.
    for origin in ["", "\r\nOrigin: http://localhost:3000", "\r\nOrigin: null"] {
        assert_eq!(ask("POST", &format!("{secret}{origin}")).await, "403", "{origin}");
    }
    let site = format!("{secret}{OWN}\r\nSec-Fetch-Site: same-site");
    assert_eq!(ask("POST", &site).await, "403");
    // Nobody else can make a cookie.
    for forged in ["consort1=", "consort1=1.x", "consort=1.x"] {
        let head =
            format!("GET /route/pass HTTP/1.1\r\nHost: localhost:1\r\nCookie: {forged}{secret}");
        let answer = asked(&served, &head, "").await;
        assert!(answer.starts_with("HTTP/1.1 401"), "{forged}: {answer}");
    }
    assert_eq!(ask("POST", &format!("{secret}{OWN}")).await, "200");
    served.end().await;
}

#[tokio::test]
async fn signing_out_ends_the_session_and_its_streams() {
    let parrot = Parrot::default();
    let left = Arc::clone(&parrot.left);
    let served = served(parrot).await;
    let (cookie, secret) = signed_in(&served).await;
    let (other_cookie, other_secret) = signed_in(&served).await;
    let head = |line: &str| format!("{line} HTTP/1.1\r\nHost: localhost:1{cookie}{secret}");
    let address = served.url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("{}\r\n\r\n", head("GET /route/pass/stream"));
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut seen = Vec::new();
    testkit::read_until_async(&mut stream, &mut seen, "data: two\n\n\r\n").await;
    let answer = asked(&served, &format!("{}{OWN}", head("DELETE /route/pass")), "").await;
    assert!(answer.contains("set-cookie: consort1=; ") && answer.contains("Max-Age=0"), "{answer}");
    testkit::read_until_async(&mut stream, &mut seen, "0\r\n\r\n").await;
    assert!(left.load(Ordering::SeqCst) > 0);
    for line in ["GET /route/pass", "POST /route/pass"] {
        let answer = asked(&served, &format!("{}{OWN}", head(line)), "").await;
        assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    }
    // Another sign-in is another session.
    let head = format!("GET /route/pass HTTP/1.1\r\nHost: localhost:1{other_cookie}{other_secret}");
    assert!(asked(&served, &head, "").await.contains("ada GET"));
    served.end().await;
}

#[tokio::test]
async fn another_token_ends_the_sessions_of_the_old_one() {
    let served = served(Parrot::default()).await;
    let (cookie, secret) = signed_in(&served).await;
    let head = format!("GET /route/pass HTTP/1.1\r\nHost: localhost:1{cookie}{secret}");
    assert!(asked(&served, &head, "").await.contains("ada GET"));
    let access = |secret: &str| {
        let token = BearerToken::client("ada", secret);
        ClientAccess::Tokens(vec![token])
    };
    served.gateway.set_access(&access("other"));
    assert!(asked(&served, &head, "").await.starts_with("HTTP/1.1 401"));
    served.gateway.set_access(&access("s3cret"));
    assert!(asked(&served, &head, "").await.starts_with("HTTP/1.1 401"));
    served.end().await;
}

#[tokio::test]
async fn a_client_that_disconnects_ends_the_stream_of_a_route() {
    let parrot = Parrot::default();
    let left = Arc::clone(&parrot.left);
    let served = served(parrot).await;
    let address = served.url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request =
        "GET /route/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer s3cret\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut seen = Vec::new();
    testkit::read_until_async(&mut stream, &mut seen, "data: two\n\n\r\n").await;
    assert_eq!((served.gateway.counts().requests, left.load(Ordering::SeqCst)), (1, 0));
    drop(stream);
    testkit::wait_until_async("the stream is left", async || left.load(Ordering::SeqCst) > 0).await;
    served.end().await;
}

#[tokio::test]
async fn a_subscriber_that_does_not_read_does_not_delay_the_drain() {
    let parrot = Parrot::default();
    let left = Arc::clone(&parrot.left);
    let served = served(parrot).await;
    let address = served.url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    let host = "Host: localhost\r\nAuthorization: Bearer s3cret";
    let head = format!("GET /route/endless HTTP/1.1\r\n{host}\r\n\r\n");
    // One reads to the end; the other does not.
    let mut reads = TcpStream::connect(address).await.unwrap();
    reads.write_all(head.as_bytes()).await.unwrap();
    let reading = tokio::spawn(testkit::read_answer_async(reads));
    let mut blind = TcpStream::connect(address).await.unwrap();
    blind.write_all(head.as_bytes()).await.unwrap();
    let sent = tokio::time::timeout(testkit::WAIT_LIMIT, blind.readable()).await;
    sent.expect("the answer begins").unwrap();
    let begun = std::time::Instant::now();
    served.gateway.drain().await;
    assert!(begun.elapsed() < std::time::Duration::from_millis(1900), "{:?}", begun.elapsed());
    assert!(reading.await.unwrap().ends_with("0\r\n\r\n"));
    assert_eq!(left.load(Ordering::SeqCst), 2);
    drop(blind);
    served.end().await;
}
