//! Single requests of the client's own: handshakes, and the state of tasks.

use std::sync::Arc;

use consort_protocol::Object;

use crate::connection::SharedConnection;
use crate::error::ClientCallError;
use crate::exchange::context::CallExecution;
use crate::request::OutgoingRequest;
use crate::request::dialect::RequestDialect;

/// Makes one request of the client's own, without events or rounds. The caller sets the limits.
pub(crate) async fn ask(
    link: &Arc<SharedConnection>,
    dialect: &RequestDialect,
    request: &OutgoingRequest,
) -> Result<Object, ClientCallError> {
    let pulse = Arc::default();
    let run = CallExecution::new(link, request, None, &pulse);
    // Boxed: a request of the client's own is rare, and the callers' futures stay small.
    Box::pin(run.exchange(link.next_id(), dialect, None)).await
}
