//! A conversation kept within what its model reads.

use std::sync::Arc;

use consort_core::Tool;

use crate::context::{Gauge, Limit};
use crate::conversation::Taken;
use crate::message::{Kind, Message};
use crate::provider::Facts;
use crate::run::Run;
use crate::settings::Settings;
use crate::step::What;

/// What is left for an answer, unless the settings say more.
const ANSWER: u64 = 8192;

/// What a part that is no text is taken for until tokens are counted.
const MEDIA: u64 = 4096;

/// How much of what a model reads is taken. As long as there are fewer bytes than tokens allowed, nothing
/// is counted: no token is less than a byte.
#[derive(Default)]
pub(super) struct Fit {
    gauge: Option<Gauge>,
    /// How many messages were weighed, and what they weigh in bytes.
    weighed: (usize, u64),
    /// The same for tools: where they are, and their bytes.
    tools: Option<(Arc<[Tool]>, u64)>,
}

impl Fit {
    /// Leaves out what no longer fits, and keeps that as a step.
    pub(super) fn make(
        &mut self,
        taken: &Taken,
        facts: &Facts,
        settings: &Settings,
        tools: &Arc<[Tool]>,
    ) -> std::io::Result<()> {
        let Some(window) = facts.window else { return Ok(()) };
        let answer = settings.max_tokens.map_or(ANSWER, u64::from).min(window / 2);
        let limit = Limit { window, answer };
        match taken.look(|run| self.cut(run, settings, tools, limit)) {
            Some(before) => taken.step(What::Cut { before }),
            None => Ok(()),
        }
    }

    /// Where to cut now, if anywhere.
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

    /// Takes to heart what the provider counted, before its answer is added.
    pub(super) fn sent(&mut self, taken: &Taken, input: u64) {
        if let Some(gauge) = &mut self.gauge {
            taken.look(|run| gauge.correct(run.messages(), run.cut(), input));
        }
    }

    fn bytes(
        &mut self,
        messages: &[Arc<Message>],
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

/// The bytes of a message's words, and a good measure for everything else.
fn weight(message: &Message) -> u64 {
    let words = |kind: &Kind| match kind {
        Kind::Text { text } | Kind::Thinking { text, .. } | Kind::Refusal { text } => {
            text.len() as u64
        }
        Kind::ToolCall(call) => (call.name.len() + call.arguments.as_str().len()) as u64,
        Kind::Resource(resource) => MEDIA + resource.text.as_ref().map_or(0, String::len) as u64,
        Kind::ToolResult(_) | Kind::Image(_) | Kind::Audio(_) | Kind::Foreign => MEDIA,
    };
    let part = |kind: &Kind| match kind {
        Kind::ToolResult(result) => result.parts.iter().map(|part| words(&part.kind)).sum::<u64>(),
        kind => words(kind),
    };
    message.parts.iter().map(|one| part(&one.kind) + 16).sum::<u64>() + 16
}
