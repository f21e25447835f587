//! The part of a conversation that a model sees, if the whole exceeds its context window.
//!
//! The rules, made for providers with a prompt cache:
//!
//! 1. Nothing changes until a request exceeds 85 % of the limit: the model's context window less the tokens
//!    reserved for its answer. Until then each prompt begins with the previous one, byte for byte.
//! 2. Then a large piece is left out at once, down to half of the limit. If tools, instructions and the
//!    first message alone come near that, down to half of the remainder.
//! 3. A cut is made before a message of the user or of the model, never between a call and its result.
//! 4. System messages stay, and so do the first user message and the current one. A note after the first
//!    says how many messages are left out.
//! 5. Nothing that was shown is rewritten: a truncated old result would invalidate the cached prompt. A result
//!    that is too large is truncated once, when it arrives:
//!    [`AgentSettings::result_bytes`](crate::AgentSettings::result_bytes). The exception is
//!    [`StepEvent::Truncation`](crate::StepEvent::Truncation): the provider refused a request that no cut makes shorter.
//!
//! A cut is stored as [`StepEvent::Cut`](crate::StepEvent::Cut), so it is the same after a restart.

mod count;

use std::collections::HashMap;
use std::sync::Arc;

use consort_core::Tool;
use consort_models::tokens::{TokenVocabulary, count as counted, definition_text};

use crate::truncate::shorten_result;
use consort_models::{ChatMessage, MessagePart, MessageRole, PartContent};
pub use count::{AUDIO, FILE, IMAGE, tokens};

/// Tokens of the note that messages are left out.
const NOTE: u64 = 24;

/// Plausible range of the ratio between a provider's token count and the estimate.
const RATIO_RANGE: std::ops::RangeInclusive<f64> = 0.5..=3.0;

/// Limit of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextLimit {
    /// Context window in tokens: input and output together.
    pub window: u64,
    /// Tokens of it that are reserved for the answer.
    pub answer: u64,
}

impl ContextLimit {
    /// Returns the maximum tokens of a request.
    pub fn request_tokens(self) -> u64 {
        self.window.saturating_sub(self.answer)
    }

    /// Returns the tokens above which messages are left out.
    pub(crate) fn cut_threshold(self) -> u64 {
        self.request_tokens() * 85 / 100
    }
}

/// Returns the messages that the model sees if those before a place are left out.
pub fn shown_messages(messages: &[Arc<ChatMessage>], before: usize) -> Vec<Arc<ChatMessage>> {
    let before = before.min(messages.len());
    let (early, late) = messages.split_at(before);
    let mut shown = Vec::with_capacity(late.len() + 4);
    let mut left_out = 0;
    let first = early.iter().position(is_user);
    let current = current_question(messages, before);
    let mut note_at = 0;
    for (at, message) in early.iter().enumerate() {
        if message.role == MessageRole::System || Some(at) == first || Some(at) == current {
            shown.push(Arc::clone(message));
            note_at = if Some(at) == first { shown.len() } else { note_at };
        } else {
            left_out += 1;
        }
    }
    if left_out > 0 {
        let note = MessagePart::text(note(left_out));
        match note_at.checked_sub(1).and_then(|at| shown.get_mut(at)) {
            Some(first) => Arc::make_mut(first).parts.push(note),
            None => shown.push(Arc::new(ChatMessage::new(MessageRole::User, vec![note]))),
        }
    }
    shown.extend(late.iter().cloned());
    shown
}

/// Truncates the text of each result in a message; the model can read the rest.
pub(crate) fn shorten(message: &mut Arc<ChatMessage>, most: usize) {
    if message.role != MessageRole::Tool {
        return;
    }
    for part in &mut Arc::make_mut(message).parts {
        if let PartContent::ToolResult(result) = &mut part.content {
            *result = shorten_result(result.clone(), most).0;
        }
    }
}

/// Adds a summary of the messages left out to the note about them.
pub(crate) fn add_summary(shown: &mut [Arc<ChatMessage>], summary: &str) {
    let is_note = |part: &MessagePart| matches!(&part.content, PartContent::Text { text } if text.ends_with(NOTE_END));
    for message in shown {
        if message.parts.last().is_some_and(is_note) {
            let parts = &mut Arc::make_mut(message).parts;
            parts.push(MessagePart::text(format!(
                "\n\n[Summary of the omitted messages:\n{summary}]"
            )));
            return;
        }
    }
}

/// The end of the note that messages are left out.
const NOTE_END: &str = "the conversation exceeds the context window]";

fn note(left_out: usize) -> String {
    let messages = if left_out == 1 { "message is" } else { "messages are" };
    format!("\n\n[{left_out} later {messages} omitted here: {NOTE_END}")
}

/// Returns the user message that the turn at a cut belongs to, if it is before the cut.
fn current_question(messages: &[Arc<ChatMessage>], before: usize) -> Option<usize> {
    if messages.get(before).is_none_or(is_user) {
        return None;
    }
    messages[..before].iter().rposition(is_user)
}

fn is_user(message: &Arc<ChatMessage>) -> bool {
    message.role == MessageRole::User
}

/// Estimate of the tokens of a conversation. One for each conversation: every message is counted once.
#[derive(Clone, Debug)]
pub struct TokenGauge {
    /// Tokens of the instructions.
    instructions: u64,
    /// Tokens of the definitions of tools.
    tools: u64,
    messages: Vec<CountedMessage>,
    /// Tokens that the provider counts for one of the estimate.
    ratio: f64,
    #[cfg(test)]
    work: usize,
}

/// A message with its tokens, and totals of those before it.
#[derive(Clone, Debug)]
struct CountedMessage {
    message: Arc<ChatMessage>,
    tokens: u64,
    /// Tokens of all messages before.
    before: u64,
    /// Of those, tokens of system messages.
    system: u64,
    /// The first user message, up to and including this one.
    first: Option<usize>,
    /// The last user message before this one.
    last: Option<usize>,
}

impl TokenGauge {
    /// Creates a gauge for a model with these instructions and tools.
    pub fn new(instructions: &str, definitions: &[Tool]) -> Self {
        let mut gauge = Self {
            instructions: tokens(&ChatMessage::system(instructions)),
            tools: 0,
            messages: Vec::new(),
            ratio: 1.0,
            #[cfg(test)]
            work: 0,
        };
        gauge.set_tools(definitions);
        gauge
    }

    /// Replaces the tools.
    pub fn set_tools(&mut self, definitions: &[Tool]) {
        let count = |tool| counted(TokenVocabulary::O200k, &definition_text(tool)) as u64;
        self.tools = definitions.iter().map(count).sum();
    }

    /// Returns the tokens of a request that leaves out the messages before a place.
    pub fn estimate(&mut self, messages: &[Arc<ChatMessage>], before: usize) -> u64 {
        self.count(messages);
        self.scaled(self.at(before))
    }

    /// Corrects the estimate by the provider's count of exactly this request.
    pub fn correct(&mut self, messages: &[Arc<ChatMessage>], before: usize, input: u64) {
        self.count(messages);
        let ours = self.at(before);
        #[expect(clippy::cast_precision_loss, reason = "nobody sends 2^52 tokens")]
        let ratio = input as f64 / ours as f64;
        // A provider that does not tell says 0; one that leaves out the cached says too little.
        if ours > 0 && RATIO_RANGE.contains(&ratio) {
            self.ratio = ratio;
        }
    }

    /// Returns the next cut, given the last one; `None` if none is needed or possible.
    pub fn next_cut(
        &mut self,
        messages: &[Arc<ChatMessage>],
        before: usize,
        limit: ContextLimit,
    ) -> Option<usize> {
        self.count(messages);
        let now = self.scaled(self.at(before));
        if now <= limit.cut_threshold() {
            return None;
        }
        let goal = self.goal(limit);
        let mut least = (now, None);
        for place in cut_points(messages, before) {
            #[cfg(test)]
            {
                self.work += 1;
            }
            let tokens = self.scaled(self.at(place));
            if tokens <= goal && tokens < now {
                return Some(place);
            }
            if tokens < least.0 {
                least = (tokens, Some(place));
            }
        }
        least.1
    }

    /// Returns the tokens to remain after a cut.
    fn goal(&self, limit: ContextLimit) -> u64 {
        let first = self.messages.last().and_then(|last| last.first);
        let first = first.map_or(0, |at| self.messages[at].tokens);
        let system = self.messages.last().map_or(0, |last| last.system);
        let base = self.scaled(self.fixed() + first + system + NOTE);
        let half = base + limit.cut_threshold().saturating_sub(base) / 2;
        half.max(limit.request_tokens() / 2)
    }

    /// Counts new messages. One that was replaced is counted again, with those behind it.
    fn count(&mut self, messages: &[Arc<ChatMessage>]) {
        let known = self.messages.iter().zip(messages);
        let same = known.take_while(|(one, message)| Arc::ptr_eq(&one.message, message)).count();
        self.messages.truncate(same);
        for (at, message) in messages.iter().enumerate().skip(self.messages.len()) {
            let last = self.messages.last();
            let first = last.and_then(|last| last.first);
            let is_system = last.is_some_and(|last| last.message.role == MessageRole::System);
            let next = CountedMessage {
                message: Arc::clone(message),
                tokens: tokens(message),
                before: last.map_or(0, |last| last.before + last.tokens),
                system: last.map_or(0, |l| l.system + if is_system { l.tokens } else { 0 }),
                first: first.or_else(|| is_user(message).then_some(at)),
                last: last.and_then(|last| {
                    if is_user(&last.message) { at.checked_sub(1) } else { last.last }
                }),
            };
            self.messages.push(next);
            #[cfg(test)]
            {
                self.work += 1;
            }
        }
    }

    /// Returns the uncorrected estimate of a request, in constant time.
    fn at(&self, before: usize) -> u64 {
        let Some(end) = self.messages.last() else { return self.fixed() };
        let all = end.before + end.tokens;
        let Some(cut) = self.messages.get(before).filter(|_| before > 0) else {
            return self.fixed() + all;
        };
        let of = |at: Option<usize>| at.map_or(0, |at| self.messages[at].tokens);
        let first = cut.first.filter(|first| *first < before);
        let current = cut.last.filter(|last| !is_user(&cut.message) && Some(*last) != first);
        self.fixed() + all - cut.before + cut.system + of(first) + of(current) + NOTE
    }

    /// Returns the tokens before all messages.
    fn fixed(&self) -> u64 {
        self.instructions + self.tools
    }

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "nobody sends 2^52 tokens, or fewer than none"
    )]
    fn scaled(&self, tokens: u64) -> u64 {
        (tokens as f64 * self.ratio).ceil() as u64
    }
}

/// Returns the places at which messages may be cut, after the last cut.
fn cut_points(messages: &[Arc<ChatMessage>], before: usize) -> Vec<usize> {
    let mut calls: HashMap<&str, usize> = HashMap::new();
    // How many calls are open before each message, as changes from one to the next.
    let mut opened = vec![0_isize; messages.len() + 1];
    for (at, message) in messages.iter().enumerate().skip(before) {
        for part in &message.parts {
            match &part.content {
                PartContent::ToolCall(call) => {
                    calls.insert(&call.id, at);
                }
                PartContent::ToolResult(result) => {
                    if let Some(&call) = calls.get(&*result.call) {
                        opened[call + 1] += 1;
                        opened[at + 1] -= 1;
                    }
                }
                _ => {}
            }
        }
    }
    let mut open = 0;
    let mut places = Vec::new();
    for (at, message) in messages.iter().enumerate().skip(before) {
        open += opened[at];
        let speaks = matches!(message.role, MessageRole::User | MessageRole::Assistant);
        if at > before && open == 0 && speaks {
            places.push(at);
        }
    }
    places
}

#[cfg(test)]
mod tests;
