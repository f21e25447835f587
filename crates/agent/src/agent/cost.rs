//! Cost of a run, and its limit.

use std::sync::Arc;

use consort_core::CostMeter as _;

use super::{Agent, RunEnd, RunWorker};
use crate::conversation::LockedConversation;
use crate::meter::RunMeter;
use crate::step::RunStatus;
use consort_models::TokenUsage;

impl Agent {
    /// Returns the meter of a run, including its cost so far.
    pub(super) fn meter(&self, conversation: &LockedConversation) -> Arc<RunMeter> {
        let spent = conversation.read(|run| run.total_cost(self.model.facts.price));
        RunMeter::new(&self.settings.limits, spent, self.settings.meter.clone())
    }

    /// Refuses a run whose limit in US dollars could not be enforced.
    pub(super) fn check_price(&self) -> Result<(), RunEnd> {
        let id = &self.model.id;
        let outside = self.settings.meter.as_ref().is_some_and(|meter| meter.limits_cost());
        let limited = self.settings.limits.cost.is_some() || outside;
        if !limited || self.model.facts.price.is_some() || self.model.is_free() {
            return Ok(());
        }
        let whose = if self.settings.limits.cost.is_some() { "" } else { " of the calling run" };
        let reason = format!(
            "`max_cost`{whose} cannot be enforced: the price of `{id}` is unknown; set `price = {{ input = \
             …, output = … }}` under `[consort.models.\"{id}\"]`"
        );
        Err((RunStatus::Error, reason))
    }
}

impl RunWorker {
    /// Charges the cost of an answer to this run and to those that called it.
    pub(super) fn charge(&self, usage: &TokenUsage) {
        let dollars = self.agent.model.facts.price.map(|price| price.of(usage));
        self.meter.charge(usage.input + usage.output, dollars);
    }
}
