//! A fake HTTP server, for behaviour that no real one shows on demand.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Collected, Full};
use hyper::body::Incoming;

use crate::local::Local;

/// A fake server whose responses a function returns. Dropping it ends it.
#[derive(Debug)]
pub struct Fake(Local);

impl Fake {
    /// Starts it; `answer` answers every request, after its body was read.
    pub async fn start<F, R>(answer: F) -> Self
    where
        F: Fn(Request<Bytes>) -> R + Send + Sync + 'static,
        R: Future<Output = Response<String>> + Send + 'static,
    {
        let answer = Arc::new(answer);
        let serve = move |request: Request<Incoming>| {
            let answer = Arc::clone(&answer);
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect().await.map(Collected::to_bytes);
                let request = Request::from_parts(head, body.unwrap_or_default());
                answer(request).await.map(Full::<Bytes>::from)
            }
        };
        Self(Local::serve(serve).await)
    }

    /// A URL on this server.
    pub fn url(&self, path: &str) -> String {
        self.0.url(path)
    }
}
