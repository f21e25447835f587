//! The server over Streamable HTTP: `/json` answers with one JSON body, `/events` with a stream of events.

use std::collections::HashSet;
use std::convert::Infallible;
use std::io::Write;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use consort_protocol::{Era, JsonRpcMessage, Notification, RequestId, Revision, splice};
use http_body_util::{BodyExt, Either, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use parking_lot::{Mutex, MutexGuard};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::Interval;

use super::{Reply, Slow, Tools};
use crate::Failure;

const SESSION: &str = "mcp-session-id";
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

type Answer = Response<Either<Full<Bytes>, Steps>>;

/// Prints its address and answers until standard input closes.
pub(super) fn serve(tools: Tools) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        writeln!(std::io::stdout(), "http://{}", listener.local_addr()?)?;
        let site = Arc::new(Site::new(tools));
        let mut connections = JoinSet::new();
        let mut input = tokio::io::stdin();
        let mut word = [0];
        let mut end = std::pin::pin!(input.read(&mut word));
        loop {
            let (socket, _) = tokio::select! {
                accepted = listener.accept() => accepted?,
                _ = &mut end => break,
            };
            socket.set_nodelay(true)?;
            let site = Arc::clone(&site);
            connections.spawn(async move {
                let answer = service_fn(move |request| {
                    let site = Arc::clone(&site);
                    async move { Ok::<_, Infallible>(site.answer(request).await) }
                });
                // A client that hangs up is no business of the server's.
                let _ = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(socket), answer)
                    .await;
            });
            while connections.try_join_next().is_some() {}
        }
        connections.shutdown().await;
        Ok(())
    })
}

/// The tools with the sessions of legacy clients.
#[derive(Debug)]
struct Site {
    tools: Tools,
    sessions: Mutex<HashSet<String>>,
    opened: AtomicU64,
}

impl Site {
    fn new(tools: Tools) -> Self {
        Self { tools, sessions: Mutex::default(), opened: AtomicU64::default() }
    }

    async fn answer(&self, request: Request<Incoming>) -> Answer {
        let (head, body) = request.into_parts();
        match head.method {
            Method::POST => {}
            Method::DELETE => {
                if let Some(session) = text(&head.headers, SESSION) {
                    self.sessions().remove(session);
                }
                return plain(StatusCode::OK);
            }
            _ => return plain(StatusCode::METHOD_NOT_ALLOWED),
        }
        let Ok(body) = body.collect().await else {
            return plain(StatusCode::BAD_REQUEST);
        };
        match JsonRpcMessage::parse(body.to_bytes()) {
            Ok(JsonRpcMessage::Request { id, body }) => {
                let (status, reply) = self.reply(&head.headers, &id, &body);
                let mut answer = match reply {
                    Reply::Later(slow) => stream(slow),
                    Reply::Now(bytes) if head.uri.path() == "/events" => {
                        whole(status, EVENTS, event(&bytes))
                    }
                    Reply::Now(bytes) => whole(status, JSON, bytes),
                };
                if body.method == "initialize" {
                    answer.headers_mut().insert(SESSION, self.open());
                }
                answer
            }
            Ok(_) => plain(StatusCode::ACCEPTED),
            Err(_) => plain(StatusCode::BAD_REQUEST),
        }
    }

    fn reply(
        &self,
        headers: &HeaderMap,
        id: &RequestId,
        body: &Notification,
    ) -> (StatusCode, Reply) {
        let version = text(headers, "mcp-protocol-version");
        let era = if version == Some(Revision::NEWEST_MODERN.as_str()) {
            Era::Modern
        } else {
            Era::Legacy
        };
        if !self.tools.speaks(era) {
            return (StatusCode::BAD_REQUEST, Reply::Now(self.tools.refusal(id)));
        }
        let problem = match era {
            Era::Modern if text(headers, "mcp-method") != Some(&body.method) => {
                Some((StatusCode::BAD_REQUEST, -32020, "`Mcp-Method` does not fit"))
            }
            Era::Modern if body.method == "tools/call" && !headers.contains_key("mcp-name") => {
                Some((StatusCode::BAD_REQUEST, -32020, "`Mcp-Name` is missing"))
            }
            Era::Legacy if body.method != "initialize" && !self.knows(headers) => {
                Some((StatusCode::NOT_FOUND, -32001, "unknown session"))
            }
            _ => None,
        };
        match problem {
            None => (StatusCode::OK, self.tools.reply(id, body, era)),
            Some((status, code, message)) => {
                let error = splice::error(Some(id), code, message, None);
                (status, Reply::Now(error))
            }
        }
    }

    fn knows(&self, headers: &HeaderMap) -> bool {
        text(headers, SESSION).is_some_and(|session| self.sessions().contains(session))
    }

    fn open(&self) -> HeaderValue {
        let name = format!("session-{}", self.opened.fetch_add(1, Relaxed));
        let value = HeaderValue::from_str(&name).expect("letters, a dash and digits");
        self.sessions().insert(name);
        value
    }

    fn sessions(&self) -> MutexGuard<'_, HashSet<String>> {
        self.sessions.lock()
    }
}

/// A body with one event per step, then the response.
#[derive(Debug)]
struct Steps {
    slow: Slow,
    clock: Interval,
    next: u64,
}

impl Body for Steps {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let steps = self.get_mut();
        while steps.next <= steps.slow.steps + 1 {
            ready!(steps.clock.poll_tick(cx));
            let n = steps.next;
            steps.next += 1;
            let message = if n > steps.slow.steps {
                Some(steps.slow.end.clone())
            } else {
                steps.slow.progress(n)
            };
            if let Some(message) = message {
                return Poll::Ready(Some(Ok(Frame::data(event(&message)))));
            }
        }
        Poll::Ready(None)
    }
}

fn stream(slow: Slow) -> Answer {
    // A clock cannot tick without a pause.
    let pause = slow.pause.max(std::time::Duration::from_micros(1));
    let steps = Steps { clock: tokio::time::interval(pause), slow, next: 1 };
    let mut response = Response::new(Either::Right(steps));
    response.headers_mut().insert(CONTENT_TYPE, EVENTS);
    response
}

fn whole(status: StatusCode, kind: HeaderValue, body: Bytes) -> Answer {
    let mut response = plain(status);
    *response.body_mut() = Either::Left(Full::new(body));
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

fn plain(status: StatusCode) -> Answer {
    let mut response = Response::new(Either::Left(Full::default()));
    *response.status_mut() = status;
    response
}

fn event(message: &[u8]) -> Bytes {
    [b"event: message\ndata: ", message, b"\n\n"].concat().into()
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}
