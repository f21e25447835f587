//! Search of the ledger.

use consort_gateway::Records;
use consort_gateway::ledger::{Found, LedgerError, Search, search};
use http::StatusCode;

use crate::admin_error::AdminError;

/// Searches the ledger, if there is one.
pub(crate) async fn search_ledger(records: &Records, query: Search) -> Result<Found, AdminError> {
    let Some(ledger) = records.ledger.clone() else { return Ok(Found::default()) };
    let searched = tokio::task::spawn_blocking(move || search(ledger.path(), &query)).await;
    match searched {
        Ok(Ok(found)) => Ok(found),
        // The file was removed: the next call creates it again.
        Ok(Err(LedgerError::Missing { .. })) => Ok(Found::default()),
        Ok(Err(error)) => {
            let refusal = AdminError::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string());
            Err(refusal.hint(error.hint()))
        }
        Err(_) => Err(AdminError::new(StatusCode::SERVICE_UNAVAILABLE, "the ledger was not read")),
    }
}
