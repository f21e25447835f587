//! A conversation kept within its model's context window.

use std::sync::Arc;

use consort_core::Tool;

use crate::context::{ContextLimit, TokenGauge};
use crate::conversation::LockedConversation;
use crate::run::RunState;
use crate::settings::AgentSettings;
use consort_models::{ChatMessage, ModelFacts, PartContent};

/// Tokens reserved for an answer, unless the settings say more.
const DEFAULT_ANSWER: u64 = 8192;

/// Assumed bytes of a part that is no text, until tokens are counted.
const MEDIA: u64 = 4096;

/// Use of a model's context window. As long as there are fewer bytes than tokens allowed, nothing is counted: no token
/// is shorter than a byte.
#[derive(Default)]
pub(super) struct ContextWindow {
    gauge: Option<TokenGauge>,
    /// Context window in tokens, learned from the provider's errors.
    window: Option<u64>,
    /// Number of messages measured, and their bytes.
    measured: (usize, u64),
    /// The same for tools: the list, and its bytes.
    tools: Option<(Arc<[Tool]>, u64)>,
}

impl ContextWindow {
    /// Returns the cut after which the request fits, if one is needed.
    pub(super) fn plan_cut(
        &mut self,
        conversation: &LockedConversation,
        facts: &ModelFacts,
        settings: &AgentSettings,
        tools: &Arc<[Tool]>,
    ) -> Option<usize> {
        let learned = self.window.unwrap_or(u64::MAX).min(facts.window.unwrap_or(u64::MAX));
        let window = Some(learned).filter(|window| *window < u64::MAX)?;
        let limit = ContextLimit { window, answer: answer_tokens(settings, window) };
        conversation.read(|run| self.cut(run, settings, tools, limit))
    }

    /// Returns the cut after the provider refused the request as too long, given the window and the size it reported.
    pub(super) fn cut_after_refusal(
        &mut self,
        conversation: &LockedConversation,
        settings: &AgentSettings,
        tools: &Arc<[Tool]>,
        (reported, requested): (Option<u64>, Option<u64>),
    ) -> Option<usize> {
        conversation.read(|run| {
            let gauge =
                self.gauge.get_or_insert_with(|| TokenGauge::new(&settings.instructions, tools));
            let messages = run.truncated();
            if let Some(requested) = requested {
                gauge.correct(&messages, run.first_shown(), requested);
            }
            let sent = gauge.estimate(&messages, run.first_shown());
            // Where the provider does not tell, or its count is not ours: less than what was too long.
            let less = sent * 3 / 4 + answer_tokens(settings, sent);
            let window = reported.unwrap_or(less).min(less).min(self.window.unwrap_or(u64::MAX));
            self.window = Some(window);
            let limit = ContextLimit { window, answer: answer_tokens(settings, window) };
            gauge.next_cut(&messages, run.first_shown(), limit)
        })
    }

    /// Returns the next cut, if one is needed.
    fn cut(
        &mut self,
        run: &RunState,
        settings: &AgentSettings,
        tools: &Arc<[Tool]>,
        limit: ContextLimit,
    ) -> Option<usize> {
        let bytes = self.request_bytes(run.messages(), tools, settings);
        if self.gauge.is_none() && bytes <= limit.cut_threshold() {
            return None;
        }
        let gauge =
            self.gauge.get_or_insert_with(|| TokenGauge::new(&settings.instructions, tools));
        gauge.next_cut(&run.truncated(), run.first_shown(), limit)
    }

    /// Corrects the estimate by the provider's count, before its answer is added.
    pub(super) fn correct(&mut self, conversation: &LockedConversation, input: u64) {
        if let Some(gauge) = &mut self.gauge {
            conversation.read(|run| gauge.correct(&run.truncated(), run.first_shown(), input));
        }
    }

    fn request_bytes(
        &mut self,
        messages: &[Arc<ChatMessage>],
        tools: &Arc<[Tool]>,
        settings: &AgentSettings,
    ) -> u64 {
        let (seen, bytes) = self.measured;
        let new = messages.iter().skip(seen).map(|message| message_bytes(message)).sum::<u64>();
        self.measured = (messages.len(), bytes + new);
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
        self.measured.1 + tool_bytes + settings.instructions.len() as u64
    }
}

/// Tokens of a window that are reserved for the answer.
fn answer_tokens(settings: &AgentSettings, window: u64) -> u64 {
    settings.max_tokens.map_or(DEFAULT_ANSWER, u64::from).min(window / 2)
}

/// Returns the bytes of a message's text, and an estimate for everything else.
fn message_bytes(message: &ChatMessage) -> u64 {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::{ConversationStep, StepEvent};
    use consort_models::{MessageRole, ToolCall, ToolCallResult};

    /// A conversation with a result of this many bytes, and an answer and a question behind it.
    fn run(bytes: usize) -> RunState {
        let call = ToolCall { id: "1".into(), name: "read".into(), arguments: "{}".into() };
        let result = ToolCallResult::error("1", "word ".repeat(bytes / 5));
        let messages = [
            ChatMessage::user("Read it."),
            ChatMessage::new(MessageRole::Assistant, vec![PartContent::ToolCall(call).into()]),
            ChatMessage::new(MessageRole::Tool, vec![PartContent::ToolResult(result).into()]),
            ChatMessage::assistant("I did."),
            ChatMessage::user("What does it say?"),
        ];
        let steps = messages
            .map(|message| ConversationStep { at: 0, event: StepEvent::Message { message } });
        RunState::from_steps(&steps)
    }

    #[test]
    fn after_results_were_shortened_no_more_is_left_out_than_needed() {
        let (settings, tools) = (AgentSettings::new("a"), Arc::default());
        let limit = ContextLimit { window: 20_000, answer: 8_000 };
        let mut fit = ContextWindow::default();
        let mut run = run(200_000);
        assert!(fit.cut(&run, &settings, &tools, limit).is_some(), "40,000 tokens do not fit");
        run.apply(&ConversationStep {
            at: 1,
            event: StepEvent::Truncation { result_bytes: 1_000 },
        });
        assert_eq!(fit.cut(&run, &settings, &tools, limit), None, "a few hundred do");
        // The provider counts what it was sent.
        let gauge = fit.gauge.as_mut().unwrap();
        let estimate = gauge.estimate(&run.truncated(), 0);
        let counted: u64 =
            run.shown_messages().iter().map(|message| crate::context::tokens(message)).sum();
        assert!((counted..counted + 50).contains(&estimate), "{estimate} for {counted}");
        // What comes later is counted as it is.
        let late = ConversationStep {
            at: 2,
            event: StepEvent::Message { message: ChatMessage::user("word ".repeat(20_000)) },
        };
        run.apply(&late);
        assert!(fit.cut(&run, &settings, &tools, limit).is_some());
    }
}
