//! Single requests of the client's own: handshakes, and the state of tasks.

use std::sync::Arc;

use consort_protocol::Object;

use crate::call_context::CallExecution;
use crate::connection::SharedConnection;
use crate::dialect::RequestDialect;
use crate::error::ClientCallError;
use crate::request::OutgoingRequest;

/// Makes one request of the client's own, without events or rounds. The caller sets the limits.
pub(crate) async fn ask(
    link: &Arc<SharedConnection>,
    dialect: &RequestDialect,
    request: &OutgoingRequest,
) -> Result<Object, ClientCallError> {
    let pulse = Arc::default();
    let run = CallExecution::new(link, request, None, &pulse);
    run.exchange(link.next_id(), dialect, None).await
}
