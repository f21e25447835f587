//! An HTTP server on a free port of the loopback interface, within this process.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

/// A running server. Dropping it ends it immediately.
#[derive(Debug)]
pub(crate) struct Local {
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

impl Local {
    /// Starts it; `answer` answers every request.
    pub(crate) async fn serve<F, R, B>(answer: F) -> Self
    where
        F: Fn(Request<Incoming>) -> R + Clone + Send + 'static,
        R: Future<Output = Response<B>> + Send + 'static,
        B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
    {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("the loopback interface has a free port");
        Self {
            address: listener.local_addr().expect("it is bound"),
            accepting: tokio::spawn(accept(listener, answer)),
        }
    }

    /// A URL on this server.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept<F, R, B>(listener: TcpListener, answer: F)
where
    F: Fn(Request<Incoming>) -> R + Clone + Send + 'static,
    R: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
{
    // Owned here, so that connections end with the task that accepts them.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let answer = answer.clone();
        connections.spawn(async move {
            let answer = service_fn(move |request| {
                let answering = answer(request);
                async move { Ok::<_, Infallible>(answering.await) }
            });
            // A peer that leaves in the middle is what some tests are about.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
        });
        while connections.try_join_next().is_some() {}
    }
}
