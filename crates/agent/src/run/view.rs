//! The messages of a run that the model sees, and the run's cost.

use std::borrow::Cow;
use std::sync::Arc;

use super::RunState;
use crate::context;
use crate::cost::ModelCost;
use crate::truncate::shorten_result;
use consort_models::{ChatMessage, PartContent, TokenPrice};

impl RunState {
    /// Truncates each existing result to this many bytes; the model can read the rest.
    pub(super) fn truncate_results(&mut self, most: usize) {
        for part in self.messages.iter().flat_map(|message| &message.parts) {
            if let PartContent::ToolResult(result) = &part.content
                && !self.full_texts.contains_key(&result.call)
                && let (_, Some(whole)) = shorten_result(result.clone(), most)
            {
                self.full_texts.insert(result.call.clone(), whole.into());
            }
        }
        self.truncation = Some(most);
        self.truncated.clone_from(&self.messages);
        self.truncated.iter_mut().for_each(|message| context::shorten(message, most));
    }

    /// Returns all messages, with their results as the model sees them.
    pub(crate) fn truncated(&self) -> Cow<'_, [Arc<ChatMessage>]> {
        if self.truncated.is_empty() {
            return Cow::Borrowed(&self.messages);
        }
        Cow::Owned([&*self.truncated, &self.messages[self.truncated.len()..]].concat())
    }

    /// Returns the messages that the model sees.
    pub fn shown_messages(&self) -> Vec<Arc<ChatMessage>> {
        let mut shown = context::shown_messages(&self.truncated(), self.first_shown);
        if let Some(summary) = &self.summary {
            context::add_summary(&mut shown, summary);
        }
        shown
    }

    /// Returns the cost of the run so far, with the agents it called.
    pub(crate) fn total_cost(&self, price: Option<TokenPrice>) -> ModelCost {
        let tokens = self.usage.input + self.usage.output + self.agent_cost.tokens;
        ModelCost { tokens, dollars: self.dollars(price).unwrap_or(self.agent_cost.dollars) }
    }

    pub(super) fn dollars(&self, price: Option<TokenPrice>) -> Option<f64> {
        price.map(|price| price.of(&self.usage) + self.agent_cost.dollars)
    }

    /// Returns the maximum bytes of each result, if less than usual.
    pub(crate) fn result_bytes(&self) -> Option<usize> {
        self.truncation
    }
}
