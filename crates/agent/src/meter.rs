//! Cost of a run, with that of the agents it calls.

use std::sync::Arc;

use consort_core::CostMeter;
use parking_lot::Mutex;

use crate::cost::ModelCost;
use crate::limits::RunLimits;

/// The meter of a run: its own cost and that of all agents it calls, also those still running.
#[derive(Debug)]
pub(crate) struct RunMeter {
    tokens: Option<u64>,
    dollars: Option<f64>,
    cost: Mutex<ModelCost>,
    /// The meter of the run that called this agent.
    outer: Option<Arc<dyn CostMeter>>,
}

impl RunMeter {
    /// Creates a meter that begins with the run's cost so far.
    pub(crate) fn new(
        limits: &RunLimits,
        spent: ModelCost,
        outer: Option<Arc<dyn CostMeter>>,
    ) -> Arc<Self> {
        let (tokens, dollars) = (limits.tokens, limits.cost);
        Arc::new(Self { tokens, dollars, cost: Mutex::new(spent), outer })
    }

    /// Returns the limit of an outer run that is reached. The run's own limits are enforced by its steps.
    pub(crate) fn exceeded_outside(&self) -> Option<String> {
        let reached = self.outer.as_ref()?.exceeded()?;
        Some(format!("the calling run reached its limit: {reached}"))
    }
}

impl CostMeter for RunMeter {
    fn charge(&self, tokens: u64, dollars: Option<f64>) {
        self.cost.lock().charge(tokens, dollars);
        if let Some(outer) = &self.outer {
            outer.charge(tokens, dollars);
        }
    }

    fn exceeded(&self) -> Option<String> {
        let spent = *self.cost.lock();
        let limits = RunLimits { tokens: self.tokens, cost: self.dollars, ..RunLimits::default() };
        let own = limits.spent_limit(spent.tokens, Some(spent.dollars));
        own.or_else(|| self.outer.as_ref()?.exceeded())
    }

    fn limits_cost(&self) -> bool {
        self.dollars.is_some() || self.outer.as_ref().is_some_and(|outer| outer.limits_cost())
    }
}

/// The meter of one call: the cost of the agents behind it.
#[derive(Debug)]
pub(crate) struct CallMeter {
    cost: Mutex<ModelCost>,
    run: Arc<RunMeter>,
}

impl CallMeter {
    pub(crate) fn new(run: &Arc<RunMeter>) -> Arc<Self> {
        Arc::new(Self { cost: Mutex::default(), run: Arc::clone(run) })
    }

    pub(crate) fn cost(&self) -> ModelCost {
        *self.cost.lock()
    }
}

impl CostMeter for CallMeter {
    fn charge(&self, tokens: u64, dollars: Option<f64>) {
        self.cost.lock().charge(tokens, dollars);
        self.run.charge(tokens, dollars);
    }

    fn exceeded(&self) -> Option<String> {
        self.run.exceeded()
    }

    fn limits_cost(&self) -> bool {
        self.run.limits_cost()
    }
}
