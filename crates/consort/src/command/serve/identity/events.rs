//! The records of identity events: the ledger and the log.

use std::sync::Arc;

use consort_audit::CallSinks;
use consort_audit::ledger::{CallIntent, OutcomeClass, ValueDigest};
use consort_identity::{IdentityEvent, IdentityEvents};

/// The endpoint that identity events are recorded with.
const ENDPOINT: &str = "identity";

/// Records identity events in the ledger and the log.
pub(super) struct RecordedEvents(pub(super) CallSinks);

impl IdentityEvents for RecordedEvents {
    fn record(&self, event: IdentityEvent) {
        let IdentityEvent { kind, caller, subject, is_refusal } = event;
        let (event, name) = (kind.as_str(), caller.name());
        if is_refusal {
            tracing::info!(event, caller = name, subject, "refused");
        } else {
            tracing::info!(event, caller = name, subject, "identity event");
        }
        let Some(ledger) = &self.0.ledger else { return };
        let entry = ledger.begin(Arc::new(CallIntent {
            caller,
            endpoint: ENDPOINT.into(),
            server: None,
            method: event.into(),
            name: subject,
            arguments: ValueDigest::of(&[]),
            trace: None,
            agent: None,
        }));
        // The subject tells the reason.
        let refused = OutcomeClass::Rejected { reason: None };
        let class = if is_refusal { refused } else { OutcomeClass::Ok };
        entry.end(class, 0);
    }
}
