//! What of a conversation a model is shown, when all of it is more than the model reads.
//!
//! The rule, made for providers that remember how a prompt begins and bill less for it:
//!
//! 1. Nothing changes until what is sent comes to more than 85 % of the limit: the model's window less
//!    the room for its answer. Until then each prompt begins with the one before, byte for byte.
//! 2. Then a large piece goes at once, down to half of the limit. Where tools, instructions and the
//!    first message alone come near that, half of what they leave.
//! 3. A cut is made before a message of the person or of the model, never between a call and its result.
//! 4. What whoever runs the agent says stays, and so do the first message of the person and the one that
//!    is being worked on. A note behind the first says how many messages are not there.
//! 5. Nothing that was shown is rewritten: no old result is shortened, which would change a remembered
//!    prompt each time and show the model what it never saw. A single result that is too large is
//!    shortened once, when it arrives: [`Settings::result_bytes`](crate::Settings::result_bytes).
//!
//! A cut is kept as [`What::Cut`](crate::What::Cut), so it is the same after a restart.

mod count;

use std::collections::HashMap;
use std::sync::Arc;

use consort_core::Tool;
use consort_shape::tokens::{Vocabulary, count as counted, text};

use crate::message::{Kind, Message, Part, Role};
use crate::shorten::shortened;
pub use count::{AUDIO, FILE, IMAGE, tokens};

/// Tokens of the note that messages are left out.
const NOTE: u64 = 24;

/// How far a provider's count may be from ours, and is believed.
const BELIEVED: std::ops::RangeInclusive<f64> = 0.5..=3.0;

/// How much may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// What the model reads and writes at once, in tokens.
    pub window: u64,
    /// What of that its answer may take.
    pub answer: u64,
}

impl Limit {
    /// What may be sent.
    pub fn sent(self) -> u64 {
        self.window.saturating_sub(self.answer)
    }

    /// From where on something must go.
    pub(crate) fn full(self) -> u64 {
        self.sent() * 85 / 100
    }
}

/// What is shown of messages when those before a place are left out.
pub fn shown(messages: &[Arc<Message>], before: usize) -> Vec<Arc<Message>> {
    let before = before.min(messages.len());
    let (early, late) = messages.split_at(before);
    let mut shown = Vec::with_capacity(late.len() + 4);
    let mut left_out = 0;
    let first = early.iter().position(is_user);
    let current = current(messages, before);
    let mut note_at = 0;
    for (at, message) in early.iter().enumerate() {
        if message.role == Role::System || Some(at) == first || Some(at) == current {
            shown.push(Arc::clone(message));
            note_at = if Some(at) == first { shown.len() } else { note_at };
        } else {
            left_out += 1;
        }
    }
    if left_out > 0 {
        let note = Part::text(note(left_out));
        match note_at.checked_sub(1).and_then(|at| shown.get_mut(at)) {
            Some(first) => Arc::make_mut(first).parts.push(note),
            None => shown.push(Arc::new(Message::new(Role::User, vec![note]))),
        }
    }
    shown.extend(late.iter().cloned());
    shown
}

/// Shows only so much text of each result in a message; the model can read on.
pub(crate) fn shorten(message: &mut Arc<Message>, most: usize) {
    if message.role != Role::Tool {
        return;
    }
    for part in &mut Arc::make_mut(message).parts {
        if let Kind::ToolResult(result) = &mut part.kind {
            *result = shortened(result.clone(), most).0;
        }
    }
}

/// Adds a summary of what is left out to the note that says so.
pub(crate) fn tell(shown: &mut [Arc<Message>], summary: &str) {
    let is_note =
        |part: &Part| matches!(&part.kind, Kind::Text { text } if text.ends_with(NOTE_END));
    for message in shown {
        if message.parts.last().is_some_and(is_note) {
            let parts = &mut Arc::make_mut(message).parts;
            parts.push(Part::text(format!("\n\n[What they said, in short:\n{summary}]")));
            return;
        }
    }
}

/// The end of the note that messages are left out.
const NOTE_END: &str = "the conversation is longer than can be read at once]";

fn note(left_out: usize) -> String {
    let messages = if left_out == 1 { "message is" } else { "messages are" };
    format!("\n\n[{left_out} later {messages} left out here: {NOTE_END}")
}

/// The message of the person that is being worked on where messages are cut, if it is before that.
fn current(messages: &[Arc<Message>], before: usize) -> Option<usize> {
    if messages.get(before).is_none_or(is_user) {
        return None;
    }
    messages[..before].iter().rposition(is_user)
}

fn is_user(message: &Arc<Message>) -> bool {
    message.role == Role::User
}

/// How much of what a model reads a conversation takes. One for each conversation: every message is
/// counted once.
#[derive(Clone, Debug)]
pub struct Gauge {
    /// Tokens of the instructions.
    instructions: u64,
    /// Tokens of the definitions of tools.
    tools: u64,
    counted: Vec<Counted>,
    /// How many tokens the provider counts for one of ours.
    ratio: f64,
    #[cfg(test)]
    work: usize,
}

/// A message, counted, and what is before it.
#[derive(Clone, Debug)]
struct Counted {
    message: Arc<Message>,
    tokens: u64,
    /// Tokens of all messages before.
    before: u64,
    /// Of those, what whoever runs the agent says.
    system: u64,
    /// The first message of the person, up to and with this one.
    first: Option<usize>,
    /// The last message of the person before this one.
    last: Option<usize>,
}

impl Gauge {
    /// A gauge for a model that is told this before all messages, and of these tools.
    pub fn new(instructions: &str, definitions: &[Tool]) -> Self {
        let mut gauge = Self {
            instructions: tokens(&Message::system(instructions)),
            tools: 0,
            counted: Vec::new(),
            ratio: 1.0,
            #[cfg(test)]
            work: 0,
        };
        gauge.set_tools(definitions);
        gauge
    }

    /// From now on the model is told of these tools.
    pub fn set_tools(&mut self, definitions: &[Tool]) {
        let count = |tool| counted(Vocabulary::O200k, &text(tool)) as u64;
        self.tools = definitions.iter().map(count).sum();
    }

    /// Tokens of what is sent when messages before a place are left out.
    pub fn estimate(&mut self, messages: &[Arc<Message>], before: usize) -> u64 {
        self.count(messages);
        self.scaled(self.at(before))
    }

    /// Takes to heart what the provider counted when exactly this was sent.
    pub fn correct(&mut self, messages: &[Arc<Message>], before: usize, input: u64) {
        self.count(messages);
        let ours = self.at(before);
        #[expect(clippy::cast_precision_loss, reason = "nobody sends 2^52 tokens")]
        let ratio = input as f64 / ours as f64;
        // A provider that does not tell says 0; one that leaves out the cached says too little.
        if ours > 0 && BELIEVED.contains(&ratio) {
            self.ratio = ratio;
        }
    }

    /// Where to cut now, given where it was cut last; `None` if all is well or nothing can be done.
    pub fn cut(&mut self, messages: &[Arc<Message>], before: usize, limit: Limit) -> Option<usize> {
        self.count(messages);
        let now = self.scaled(self.at(before));
        if now <= limit.full() {
            return None;
        }
        let goal = self.goal(limit);
        let mut least = (now, None);
        for place in places(messages, before) {
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

    /// What is to be left after a cut.
    fn goal(&self, limit: Limit) -> u64 {
        let first = self.counted.last().and_then(|last| last.first);
        let first = first.map_or(0, |at| self.counted[at].tokens);
        let system = self.counted.last().map_or(0, |last| last.system);
        let base = self.scaled(self.fixed() + first + system + NOTE);
        let half = base + limit.full().saturating_sub(base) / 2;
        half.max(limit.sent() / 2)
    }

    /// Counts what was not counted. Messages only come at the end; one that was replaced is counted
    /// again.
    fn count(&mut self, messages: &[Arc<Message>]) {
        let same = |(at, one): (usize, &Counted)| {
            messages.get(at).is_some_and(|message| Arc::ptr_eq(message, &one.message))
        };
        while self.counted.iter().enumerate().next_back().is_some_and(|last| !same(last)) {
            self.counted.pop();
        }
        for (at, message) in messages.iter().enumerate().skip(self.counted.len()) {
            let last = self.counted.last();
            let first = last.and_then(|last| last.first);
            let is_system = last.is_some_and(|last| last.message.role == Role::System);
            let next = Counted {
                message: Arc::clone(message),
                tokens: tokens(message),
                before: last.map_or(0, |last| last.before + last.tokens),
                system: last.map_or(0, |l| l.system + if is_system { l.tokens } else { 0 }),
                first: first.or_else(|| is_user(message).then_some(at)),
                last: last.and_then(|last| {
                    if is_user(&last.message) { at.checked_sub(1) } else { last.last }
                }),
            };
            self.counted.push(next);
            #[cfg(test)]
            {
                self.work += 1;
            }
        }
    }

    /// Our own count of what is sent, in no more time for more messages.
    fn at(&self, before: usize) -> u64 {
        let Some(end) = self.counted.last() else { return self.fixed() };
        let all = end.before + end.tokens;
        let Some(cut) = self.counted.get(before).filter(|_| before > 0) else {
            return self.fixed() + all;
        };
        let of = |at: Option<usize>| at.map_or(0, |at| self.counted[at].tokens);
        let first = cut.first.filter(|first| *first < before);
        let current = cut.last.filter(|last| !is_user(&cut.message) && Some(*last) != first);
        self.fixed() + all - cut.before + cut.system + of(first) + of(current) + NOTE
    }

    /// Tokens of what is sent before all messages.
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

/// Where messages may be cut, behind where they were cut last.
fn places(messages: &[Arc<Message>], before: usize) -> Vec<usize> {
    let mut calls: HashMap<&str, usize> = HashMap::new();
    // How many calls are open before each message, as changes from one to the next.
    let mut opened = vec![0_isize; messages.len() + 1];
    for (at, message) in messages.iter().enumerate().skip(before) {
        for part in &message.parts {
            match &part.kind {
                Kind::ToolCall(call) => {
                    calls.insert(&call.id, at);
                }
                Kind::ToolResult(result) => {
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
        let speaks = matches!(message.role, Role::User | Role::Assistant);
        if at > before && open == 0 && speaks {
            places.push(at);
        }
    }
    places
}

#[cfg(test)]
mod tests;
