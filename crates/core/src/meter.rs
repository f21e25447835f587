//! Cost of calls that are answered by models.

use std::fmt;

/// A cost meter of a run, charged by its calls that models answer: those of other agents.
pub trait CostMeter: fmt::Debug + Send + Sync {
    /// Adds the cost of one answer of a model: its tokens, and US dollars where the price is known.
    fn charge(&self, tokens: u64, dollars: Option<f64>);

    /// Returns the exceeded limit, in words.
    fn exceeded(&self) -> Option<String>;

    /// Returns true if there is a limit in US dollars, so that the price of every model must be known.
    fn limits_cost(&self) -> bool;
}
