//! A proxy that forwards HTTP unchanged: a lower bound for the cost of a gateway.

use std::convert::Infallible;
use std::io::Write;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{Either, Empty};
use hyper::body::Incoming;
use hyper::header::HOST;
use hyper::http::uri::{Authority, Scheme};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::Failure;

type Forward = Client<HttpConnector, Incoming>;
type Answer = Response<Either<Incoming, Empty<Bytes>>>;

/// Number of threads.
const THREADS: usize = 2;

/// Idle timeout of a connection to the server.
const KEPT: Duration = Duration::from_mins(1);

/// Prints its address and forwards to `to` until standard input closes.
pub(crate) fn run(to: &str) -> Result<(), Failure> {
    let to: Authority = to.parse()?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(THREADS).enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        writeln!(std::io::stdout(), "http://{}", listener.local_addr()?)?;
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let client: Forward = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(KEPT)
            .pool_timer(TokioTimer::new())
            .build(connector);
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
            let (client, to) = (client.clone(), to.clone());
            connections.spawn(async move {
                let answer =
                    service_fn(move |request| forward(client.clone(), to.clone(), request));
                // A client that hangs up is no business of the proxy's.
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

async fn forward(
    client: Forward,
    to: Authority,
    mut request: Request<Incoming>,
) -> Result<Answer, Infallible> {
    let mut parts = request.uri().clone().into_parts();
    parts.scheme = Some(Scheme::HTTP);
    parts.authority = Some(to);
    *request.uri_mut() = Uri::from_parts(parts).unwrap_or_default();
    request.headers_mut().remove(HOST);
    Ok(match client.request(request).await {
        Ok(response) => response.map(Either::Left),
        Err(_) => {
            let mut response = Response::new(Either::Right(Empty::new()));
            *response.status_mut() = StatusCode::BAD_GATEWAY;
            response
        }
    })
}
