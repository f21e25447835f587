//! A conversation kept within its model's context window.

use std::sync::Arc;

use consort_core::Tool;

use crate::context::{Gauge, Limit};
use crate::conversation::Taken;
use crate::run::Run;
use crate::settings::Settings;
use consort_models::{ChatMessage, ModelFacts, PartContent};

/// Tokens reserved for an answer, unless the settings say more.
const ANSWER: u64 = 8192;

/// Assumed bytes of a part that is no text, until tokens are counted.
const MEDIA: u64 = 4096;

/// Use of a model's context window. As long as there are fewer bytes than tokens allowed, nothing is counted: no token
/// is shorter than a byte.
#[derive(Default)]
pub(super) struct Fit {
    gauge: Option<Gauge>,
    /// Context window in tokens, learned from the provider's errors.
    window: Option<u64>,
    /// Number of messages measured, and their bytes.
    weighed: (usize, u64),
    /// The same for tools: the list, and its bytes.
    tools: Option<(Arc<[Tool]>, u64)>,
}

impl Fit {
    /// Returns the cut after which the request fits, if one is needed.
    pub(super) fn make(
        &mut self,
        taken: &Taken,
        facts: &ModelFacts,
        settings: &Settings,
        tools: &Arc<[Tool]>,
    ) -> Option<usize> {
        let learned = self.window.unwrap_or(u64::MAX).min(facts.window.unwrap_or(u64::MAX));
        let window = Some(learned).filter(|window| *window < u64::MAX)?;
        let limit = Limit { window, answer: answer(settings, window) };
        taken.look(|run| self.cut(run, settings, tools, limit))
    }

    /// Returns the cut after the provider refused the request as too long, given the window and the size it reported.
    pub(super) fn too_long(
        &mut self,
        taken: &Taken,
        settings: &Settings,
        tools: &Arc<[Tool]>,
        (most, given): (Option<u64>, Option<u64>),
    ) -> Option<usize> {
        taken.look(|run| {
            let gauge = self.gauge.get_or_insert_with(|| Gauge::new(&settings.instructions, tools));
            if let Some(given) = given {
                gauge.correct(run.messages(), run.cut(), given);
            }
            let sent = gauge.estimate(run.messages(), run.cut());
            // Where the provider does not tell, or its count is not ours: less than what was too long.
            let less = sent * 3 / 4 + answer(settings, sent);
            let window = most.unwrap_or(less).min(less).min(self.window.unwrap_or(u64::MAX));
            self.window = Some(window);
            let limit = Limit { window, answer: answer(settings, window) };
            gauge.cut(run.messages(), run.cut(), limit)
        })
    }

    /// Returns the next cut, if one is needed.
    fn cut(
        &mut self,
        run: &Run,
        settings: &Settings,
        tools: &Arc<[Tool]>,
        limit: Limit,
    ) -> Option<usize> {
        let bytes = self.bytes(run.messages(), tools, settings);
        if self.gauge.is_none() && bytes <= limit.full() {
            return None;
        }
        let gauge = self.gauge.get_or_insert_with(|| Gauge::new(&settings.instructions, tools));
        gauge.cut(run.messages(), run.cut(), limit)
    }

    /// Corrects the estimate by the provider's count, before its answer is added.
    pub(super) fn sent(&mut self, taken: &Taken, input: u64) {
        if let Some(gauge) = &mut self.gauge {
            taken.look(|run| gauge.correct(run.messages(), run.cut(), input));
        }
    }

    fn bytes(
        &mut self,
        messages: &[Arc<ChatMessage>],
        tools: &Arc<[Tool]>,
        settings: &Settings,
    ) -> u64 {
        let (seen, bytes) = self.weighed;
        let new = messages.iter().skip(seen).map(|message| weight(message)).sum::<u64>();
        self.weighed = (messages.len(), bytes + new);
        let known = self.tools.as_ref().filter(|(known, _)| Arc::ptr_eq(known, tools));
        let tool_bytes = match known {
            Some((_, bytes)) => *bytes,
            None => {
                let bytes = |tool: &Tool| tool.definition().json().as_bytes().len() as u64;
                let bytes = tools.iter().map(bytes).sum();
                if let Some(gauge) = &mut self.gauge {
                    gauge.set_tools(tools);
                }
                self.tools = Some((Arc::clone(tools), bytes));
                bytes
            }
        };
        self.weighed.1 + tool_bytes + settings.instructions.len() as u64
    }
}

/// Tokens of a window that are reserved for the answer.
fn answer(settings: &Settings, window: u64) -> u64 {
    settings.max_tokens.map_or(ANSWER, u64::from).min(window / 2)
}

/// Returns the bytes of a message's text, and an estimate for everything else.
fn weight(message: &ChatMessage) -> u64 {
    let words = |kind: &PartContent| match kind {
        PartContent::Text { text }
        | PartContent::Thinking { text, .. }
        | PartContent::Refusal { text } => text.len() as u64,
        PartContent::ToolCall(call) => (call.name.len() + call.arguments.as_str().len()) as u64,
        PartContent::Resource(resource) => {
            MEDIA + resource.text.as_ref().map_or(0, String::len) as u64
        }
        PartContent::ToolResult(_)
        | PartContent::Image(_)
        | PartContent::Audio(_)
        | PartContent::Foreign => MEDIA,
    };
    let part = |kind: &PartContent| match kind {
        PartContent::ToolResult(result) => {
            result.parts.iter().map(|part| words(&part.content)).sum::<u64>()
        }
        kind => words(kind),
    };
    message.parts.iter().map(|one| part(&one.content) + 16).sum::<u64>() + 16
}
