//! Approvals that all layers share, and approvers other than the caller.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::policy::ApprovalStore;

/// Check for an approver other than the caller, whom an outer layer asks. There is none by default.
#[derive(Clone)]
pub struct OtherApprover(pub(super) Arc<dyn Fn() -> bool + Send + Sync>);

impl OtherApprover {
    /// Creates a check from a function.
    pub fn new(there: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(there))
    }
}

impl Default for OtherApprover {
    fn default() -> Self {
        Self::new(|| false)
    }
}

impl fmt::Debug for OtherApprover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OtherApprover")
    }
}

/// Approvals, shared by all layers that ask for them.
pub struct SharedApprovals {
    pub(super) approvals: Mutex<ApprovalStore>,
    pub(super) persist: PersistApprovals,
}

/// Persists approvals.
type PersistApprovals = Box<dyn Fn(&ApprovalStore) + Send + Sync>;

impl SharedApprovals {
    /// Creates the store from earlier approvals and a function that persists changes.
    pub fn new(
        approvals: ApprovalStore,
        keep: impl Fn(&ApprovalStore) + Send + Sync + 'static,
    ) -> Self {
        Self { approvals: Mutex::new(approvals), persist: Box::new(keep) }
    }
}

impl Default for SharedApprovals {
    fn default() -> Self {
        Self::new(ApprovalStore::default(), |_| ())
    }
}

impl fmt::Debug for SharedApprovals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedApprovals")
    }
}
