//! An answer assembled from its deltas.

use std::collections::HashSet;
use std::sync::Arc;

use crate::error::Exceeded;
use crate::limits::Limits;
use crate::message::{Arguments, Call, Kind, Message, Opaque, Part, Role};
use crate::names::Names;
use crate::reply::{Delta, Reply, Stop, Usage};

/// An answer as far as it has arrived.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    pub(crate) parts: Vec<Part>,
    pub(crate) opaque: Opaque,
    pub(crate) usage: Usage,
    pub(crate) model: String,
    pub(crate) id: String,
    pub(crate) limits: Limits,
    pub(crate) names: Option<Arc<Names>>,
    /// Distinguishes generated ids from those of other answers in the conversation.
    pub(crate) salt: usize,
    /// Index of each call's part.
    calls: Vec<usize>,
    ids: HashSet<String>,
    deltas: Vec<Delta>,
}

impl Assembly {
    /// Adds a part and reports its text, if it has any.
    pub(crate) fn open(&mut self, part: Part) -> usize {
        match &part.kind {
            Kind::Text { text } if !text.is_empty() => self.tell(Delta::Text(text.clone())),
            Kind::Thinking { text, .. } if !text.is_empty() => {
                self.tell(Delta::Thinking(text.clone()));
            }
            Kind::Refusal { text } if !text.is_empty() => self.tell(Delta::Refusal(text.clone())),
            _ => {}
        }
        self.parts.push(part);
        self.parts.len() - 1
    }

    /// Appends text to a part.
    pub(crate) fn extend(&mut self, at: usize, fragment: &str) {
        if fragment.is_empty() {
            return;
        }
        let delta = match self.parts.get_mut(at).map(|part| &mut part.kind) {
            Some(Kind::Text { text }) => {
                text.push_str(fragment);
                Delta::Text(fragment.to_owned())
            }
            Some(Kind::Thinking { text, .. }) => {
                text.push_str(fragment);
                Delta::Thinking(fragment.to_owned())
            }
            Some(Kind::Refusal { text }) => {
                text.push_str(fragment);
                Delta::Refusal(fragment.to_owned())
            }
            _ => return,
        };
        self.tell(delta);
    }

    /// Appends text to the last part if it is of the same kind, else adds a new part.
    pub(crate) fn say(&mut self, kind: Kind) {
        let (Kind::Text { text } | Kind::Thinking { text, .. } | Kind::Refusal { text }) = &kind
        else {
            return;
        };
        let last = self.parts.last().filter(|last| last.opaque.is_empty());
        let alike = last.is_some_and(|last| {
            std::mem::discriminant(&last.kind) == std::mem::discriminant(&kind)
        });
        if alike {
            let text = text.clone();
            self.extend(self.parts.len() - 1, &text);
        } else if !text.is_empty() {
            self.open(kind.into());
        }
    }

    /// Begins a call under the provider's name for its tool.
    pub(crate) fn call(&mut self, id: &str, name: &str) -> Result<usize, Exceeded> {
        let index = self.calls.len();
        if index >= self.limits.calls {
            return Err(Exceeded::Calls(self.limits.calls));
        }
        let mut id = id.to_owned();
        // Two calls with one id could not be told apart when their results come.
        if id.is_empty() || self.ids.contains(&id) {
            id = format!("call_{}_{index}", self.salt);
        }
        self.ids.insert(id.clone());
        let name = self.names.as_ref().map_or(name, |names| names.here(name)).to_owned();
        self.tell(Delta::ToolCallStarted { index, id: id.clone(), name: name.clone() });
        self.calls.push(self.parts.len());
        let call = Call { id, name, arguments: Arguments::default() };
        self.parts.push(Kind::ToolCall(call).into());
        Ok(index)
    }

    /// Appends to the arguments of a call.
    pub(crate) fn arguments(&mut self, index: usize, fragment: &str) -> Result<(), Exceeded> {
        if fragment.is_empty() {
            return Ok(());
        }
        let most = self.limits.argument_bytes;
        if let Some(Kind::ToolCall(call)) = self.call_part(index).map(|part| &mut part.kind) {
            if call.arguments.as_str().len() + fragment.len() > most {
                return Err(Exceeded::ArgumentBytes(most));
            }
            call.arguments.push(fragment);
            self.tell(Delta::ToolCallArguments { index, fragment: fragment.to_owned() });
        }
        Ok(())
    }

    /// Returns the part of a call.
    pub(crate) fn call_part(&mut self, index: usize) -> Option<&mut Part> {
        self.parts.get_mut(*self.calls.get(index)?)
    }

    /// Returns the number of calls.
    pub(crate) fn calls(&self) -> usize {
        self.calls.len()
    }

    /// Reports the usage so far, if it changed.
    pub(crate) fn spend(&mut self, usage: Usage) {
        if usage != self.usage {
            self.usage = usage;
            self.tell(Delta::Usage(usage));
        }
    }

    pub(crate) fn tell(&mut self, delta: Delta) {
        self.deltas.push(delta);
    }

    pub(crate) fn take_deltas(&mut self) -> Vec<Delta> {
        std::mem::take(&mut self.deltas)
    }

    /// Returns the complete reply.
    pub(crate) fn finish(self, stop: Stop) -> Reply {
        let message = Message { role: Role::Assistant, parts: self.parts, opaque: self.opaque };
        let stop = match stop {
            // Some providers say that a model is done when it waits.
            Stop::End if message.calls().next().is_some() => Stop::ToolCalls,
            Stop::ToolCalls if message.calls().next().is_none() => Stop::End,
            stop => stop,
        };
        Reply { message, stop, usage: self.usage, model: self.model, id: self.id }
    }
}
