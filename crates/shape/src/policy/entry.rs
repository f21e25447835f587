//! Decisions on tools before they are called.

use consort_core::{Caller, CatalogEntry};

use super::{Policy, PolicyDecision, PolicyQuestion};

impl Policy {
    /// Decides on a tool at an endpoint before its arguments are known; `None` if the policy allows everything.
    pub fn decide_on_entry(
        &self,
        caller: &Caller,
        profile: Option<&str>,
        entry: &CatalogEntry,
    ) -> Option<PolicyDecision> {
        if self.is_open() {
            return None;
        }
        let question = PolicyQuestion {
            caller,
            profile,
            server: entry.route.server.as_str(),
            tool: &entry.route.name,
            annotations: entry.tool().annotations(),
            arguments: None,
        };
        Some(self.decide(&question))
    }
}
