//! Models installed in Ollama.

use std::time::Duration;

use bytes::Bytes;
use consort_client::{HttpOrigin, Limits, Times};
use serde::Deserialize;

/// Timeout for Ollama, if it was not requested explicitly.
const LONGEST: Duration = Duration::from_millis(500);

/// Maximum bytes of its list.
const BYTES: usize = 4 << 20;

#[derive(Deserialize)]
struct OllamaTags {
    models: Vec<OllamaTag>,
}

#[derive(Deserialize)]
struct OllamaTag {
    name: String,
}

/// Returns the first model that Ollama lists: `None` if it does not respond, `Some(None)` if it has no model.
pub(crate) async fn first(base_url: &str) -> Option<Option<String>> {
    let tags = tokio::time::timeout(LONGEST, list(base_url)).await.ok()??;
    Some(tags.models.into_iter().map(|tag| tag.name).next())
}

async fn list(base_url: &str) -> Option<OllamaTags> {
    let origin = HttpOrigin::new(base_url, &Limits::default(), &Times::default()).ok()?;
    let root = base_url.split_once("://")?.1.trim_end_matches("/v1");
    let path = root.find('/').map_or("", |at| &root[at..]);
    let request = http::Request::get(format!("{path}/api/tags")).body(Bytes::new()).ok()?;
    let mut response = origin.send(request).await.ok()?;
    if response.status() != 200 {
        return None;
    }
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await {
        body.extend_from_slice(&piece.ok()?);
        if body.len() > BYTES {
            return None;
        }
    }
    serde_json::from_slice(&body).ok()
}
