//! Search of the ledger.

use consort_audit::CallSinks;
use consort_audit::ledger::{LedgerError, LedgerSearch, SearchResult, search};
use http::StatusCode;

use crate::admin_error::AdminError;

/// Searches the ledger, if there is one.
pub(crate) async fn search_ledger(
    records: &CallSinks,
    query: LedgerSearch,
) -> Result<SearchResult, AdminError> {
    let Some(ledger) = records.ledger.clone() else { return Ok(SearchResult::default()) };
    let searched = tokio::task::spawn_blocking(move || search(ledger.path(), &query)).await;
    match searched {
        Ok(Ok(found)) => Ok(found),
        // The file was removed: the next call creates it again.
        Ok(Err(LedgerError::Missing { .. })) => Ok(SearchResult::default()),
        Ok(Err(error)) => {
            let refusal = AdminError::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string());
            Err(refusal.hint(error.hint()))
        }
        Err(_) => Err(AdminError::new(StatusCode::SERVICE_UNAVAILABLE, "cannot read the ledger")),
    }
}
