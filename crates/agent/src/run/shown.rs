//! What a model is shown of a run, and what the run has cost.

use std::sync::Arc;

use super::Run;
use crate::context;
use crate::message::{Kind, Message};
use crate::meter::ModelCost;
use crate::provider::Price;
use crate::shorten::shortened;

impl Run {
    /// Shows only so many bytes of each result that is there; the rest of it can be read on.
    pub(super) fn shorten(&mut self, most: usize) {
        for part in self.messages.iter().flat_map(|message| &message.parts) {
            if let Kind::ToolResult(result) = &part.kind
                && !self.wholes.contains_key(&result.call)
                && let (_, Some(whole)) = shortened(result.clone(), most)
            {
                self.wholes.insert(result.call.clone(), whole.into());
            }
        }
        self.shortened = Some((self.messages.len(), most));
    }

    /// What the model is shown of everything that was said.
    pub fn shown(&self) -> Vec<Arc<Message>> {
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

    /// What the run has cost so far, with the agents it asked.
    pub(crate) fn spent(&self, price: Option<Price>) -> ModelCost {
        let tokens = self.usage.input + self.usage.output + self.agents.tokens;
        ModelCost { tokens, dollars: self.cost(price).unwrap_or(self.agents.dollars) }
    }

    pub(super) fn cost(&self, price: Option<Price>) -> Option<f64> {
        price.map(|price| price.of(&self.usage) + self.agents.dollars)
    }

    /// Bytes of each result that are shown, if that is less than usual.
    pub(crate) fn result_bytes(&self) -> Option<usize> {
        self.shortened.map(|(_, most)| most)
    }
}
