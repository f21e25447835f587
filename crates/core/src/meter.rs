//! Cost that a call has because answering it asks models.

use std::fmt;

/// A meter of what a run costs, charged by the calls it makes whose answers ask models: those of other agents.
pub trait CostMeter: fmt::Debug + Send + Sync {
    /// Adds the cost of one answer of a model: its tokens, and US dollars where the price is known.
    fn charge(&self, tokens: u64, dollars: Option<f64>);

    /// Returns the limit that is reached, in words.
    fn exceeded(&self) -> Option<String>;

    /// Returns whether a limit in US dollars is to be held, so that the price of every model must be known.
    fn limits_cost(&self) -> bool;
}
