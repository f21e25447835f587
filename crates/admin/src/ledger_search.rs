//! Search of the ledger.

use consort_gateway::Records;
use consort_gateway::ledger::{Found, LedgerError, Search, search};
use http::StatusCode;

use crate::admin_error::Refusal;

/// Searches the ledger, if there is one.
pub(crate) async fn look(records: &Records, wanted: Search) -> Result<Found, Refusal> {
    let Some(ledger) = records.ledger.clone() else { return Ok(Found::default()) };
    let looked = tokio::task::spawn_blocking(move || search(ledger.path(), &wanted)).await;
    match looked {
        Ok(Ok(found)) => Ok(found),
        // Somebody took it away: it is made again with the next call.
        Ok(Err(LedgerError::Missing { .. })) => Ok(Found::default()),
        Ok(Err(error)) => {
            let refusal = Refusal::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string());
            Err(refusal.hint(error.hint()))
        }
        Err(_) => Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the ledger was not read")),
    }
}
