//! Cost of models.

use serde::{Deserialize, Serialize};

/// Cost of models: tokens, and US dollars as far as prices are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelCost {
    /// Tokens, input and output.
    pub tokens: u64,
    /// US dollars.
    pub dollars: f64,
}

impl ModelCost {
    pub(crate) fn charge(&mut self, tokens: u64, dollars: Option<f64>) {
        self.tokens = self.tokens.saturating_add(tokens);
        self.dollars += dollars.unwrap_or_default();
    }

    /// Returns true if there is none.
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }
}
