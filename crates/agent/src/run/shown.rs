//! The messages of a run that the model sees, and the run's cost.

use std::sync::Arc;

use super::Run;
use crate::context;
use crate::cost::ModelCost;
use crate::shorten::shortened;
use consort_models::{ChatMessage, PartContent, TokenPrice};

impl Run {
    /// Truncates each existing result to this many bytes; the model can read the rest.
    pub(super) fn shorten(&mut self, most: usize) {
        for part in self.messages.iter().flat_map(|message| &message.parts) {
            if let PartContent::ToolResult(result) = &part.content
                && !self.wholes.contains_key(&result.call)
                && let (_, Some(whole)) = shortened(result.clone(), most)
            {
                self.wholes.insert(result.call.clone(), whole.into());
            }
        }
        self.shortened = Some((self.messages.len(), most));
    }

    /// Returns the messages that the model sees.
    pub fn shown(&self) -> Vec<Arc<ChatMessage>> {
        let mut shown = context::shown(&self.messages, self.cut);
        if let Some((before, most)) = self.shortened {
            let late = self.messages.len().saturating_sub(before);
            let early = shown.len().saturating_sub(late);
            for message in &mut shown[..early] {
                context::shorten(message, most);
            }
        }
        if let Some(summary) = &self.summary {
            context::tell(&mut shown, summary);
        }
        shown
    }

    /// Returns the cost of the run so far, with the agents it called.
    pub(crate) fn spent(&self, price: Option<TokenPrice>) -> ModelCost {
        let tokens = self.usage.input + self.usage.output + self.agents.tokens;
        ModelCost { tokens, dollars: self.cost(price).unwrap_or(self.agents.dollars) }
    }

    pub(super) fn cost(&self, price: Option<TokenPrice>) -> Option<f64> {
        price.map(|price| price.of(&self.usage) + self.agents.dollars)
    }

    /// Returns the maximum bytes of each result, if less than usual.
    pub(crate) fn result_bytes(&self) -> Option<usize> {
        self.shortened.map(|(_, most)| most)
    }
}
