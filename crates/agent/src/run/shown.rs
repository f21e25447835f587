//! The messages of a run that the model sees, and the run's cost.

use std::borrow::Cow;
use std::sync::Arc;

use super::Run;
use crate::context;
use crate::message::{Kind, Message};
use crate::meter::ModelCost;
use crate::provider::Price;
use crate::shorten::shortened;

impl Run {
    /// Truncates each existing result to this many bytes; the model can read the rest.
    pub(super) fn shorten(&mut self, most: usize) {
        for part in self.messages.iter().flat_map(|message| &message.parts) {
            if let Kind::ToolResult(result) = &part.kind
                && !self.wholes.contains_key(&result.call)
                && let (_, Some(whole)) = shortened(result.clone(), most)
            {
                self.wholes.insert(result.call.clone(), whole.into());
            }
        }
        self.shortened = Some(most);
        self.truncated.clone_from(&self.messages);
        self.truncated.iter_mut().for_each(|message| context::shorten(message, most));
    }

    /// Returns all messages, with their results as the model sees them.
    pub(crate) fn truncated(&self) -> Cow<'_, [Arc<Message>]> {
        if self.truncated.is_empty() {
            return Cow::Borrowed(&self.messages);
        }
        Cow::Owned([&*self.truncated, &self.messages[self.truncated.len()..]].concat())
    }

    /// Returns the messages that the model sees.
    pub fn shown(&self) -> Vec<Arc<Message>> {
        let mut shown = context::shown(&self.truncated(), self.cut);
        if let Some(summary) = &self.summary {
            context::tell(&mut shown, summary);
        }
        shown
    }

    /// Returns the cost of the run so far, with the agents it called.
    pub(crate) fn spent(&self, price: Option<Price>) -> ModelCost {
        let tokens = self.usage.input + self.usage.output + self.agents.tokens;
        ModelCost { tokens, dollars: self.cost(price).unwrap_or(self.agents.dollars) }
    }

    pub(super) fn cost(&self, price: Option<Price>) -> Option<f64> {
        price.map(|price| price.of(&self.usage) + self.agents.dollars)
    }

    /// Returns the maximum bytes of each result, if less than usual.
    pub(crate) fn result_bytes(&self) -> Option<usize> {
        self.shortened
    }
}
