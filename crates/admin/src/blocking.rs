//! Work that blocks, or takes long.

use http::StatusCode;

use crate::admin_error::AdminError;

/// Runs slow or blocking work on a thread where it blocks no other request.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, AdminError> {
    let failed = |_| AdminError::new(StatusCode::SERVICE_UNAVAILABLE, "the task panicked");
    tokio::task::spawn_blocking(work).await.map_err(failed)
}
