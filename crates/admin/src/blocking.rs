//! Work that blocks, or takes long.

use http::StatusCode;

use crate::admin_error::Refusal;

/// Runs slow or blocking work on a thread where it blocks no other request.
pub(crate) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refusal> {
    let failed = |_| Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "it broke off");
    tokio::task::spawn_blocking(work).await.map_err(failed)
}
