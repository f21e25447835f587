//! How much a run may do.

use std::time::Duration;

use crate::meter::ModelCost;
use crate::provider::{Price, Usage};

/// How much a run may do before it is ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// How often the model is asked.
    pub turns: u32,
    /// How many calls are made.
    pub calls: u32,
    /// How many tokens it costs, read and written, with those of the agents it asks.
    pub tokens: Option<u64>,
    /// How many US dollars it costs, with the agents it asks. A run whose model has no known price is refused.
    pub cost: Option<f64>,
    /// How long it takes.
    pub time: Option<Duration>,
    /// How often the very same calls are made in a row.
    pub repeats: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { turns: 50, calls: 200, tokens: None, cost: None, time: None, repeats: 3 }
    }
}

impl Limits {
    /// Which limit is reached, in words.
    pub(crate) fn exceeded(
        &self,
        usage: &Usage,
        price: Option<Price>,
        agents: ModelCost,
        millis: u64,
    ) -> Option<String> {
        let tokens = usage.input + usage.output + agents.tokens;
        let own = price.map(|price| price.of(usage));
        let cost = own.map(|own| own + agents.dollars);
        if let Some(reached) = self.spent(tokens, cost) {
            return Some(reached);
        }
        let time = self.time?;
        (Duration::from_millis(millis) >= time).then(|| self.time_reached())
    }

    /// Returns the limit that is reached by so many tokens and US dollars, in words.
    pub(crate) fn spent(&self, used: u64, cost: Option<f64>) -> Option<String> {
        if let Some(tokens) = self.tokens.filter(|tokens| used >= *tokens) {
            return Some(format!("it used {used} of {tokens} tokens"));
        }
        let (most, cost) = (self.cost?, cost?);
        (cost >= most).then(|| format!("it cost {cost:.4} of {most} US dollars"))
    }

    pub(crate) fn time_reached(&self) -> String {
        format!("it took longer than {:?}", self.time.unwrap_or_default())
    }

    pub(crate) fn turns_reached(&self) -> String {
        format!("the model was asked {} times", self.turns)
    }

    pub(crate) fn calls_reached(&self) -> String {
        format!("no more than {} calls may be made", self.calls)
    }

    pub(crate) fn repeats_reached(&self, tool: &str) -> String {
        format!("the model called `{tool}` with the same arguments {} times", self.repeats + 1)
    }
}
