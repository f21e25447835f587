//! An answer assembled from its deltas.

use std::collections::HashSet;
use std::sync::Arc;

use crate::error::ExceededLimit;
use crate::limits::AnswerLimits;
use crate::message::{
    ChatMessage, MessagePart, MessageRole, OpaqueData, PartContent, RawArguments, ToolCall,
};
use crate::reply::{ModelReply, ReplyDelta, StopReason, TokenUsage};
use crate::tool_names::ToolNameMap;

/// An answer as far as it has arrived.
#[derive(Debug, Default)]
pub(crate) struct ReplyAssembly {
    pub(crate) parts: Vec<MessagePart>,
    pub(crate) opaque: OpaqueData,
    pub(crate) usage: TokenUsage,
    pub(crate) model: String,
    pub(crate) id: String,
    pub(crate) limits: AnswerLimits,
    pub(crate) names: Option<Arc<ToolNameMap>>,
    /// Distinguishes generated ids from those of other answers in the conversation.
    pub(crate) salt: usize,
    /// Index of each call's part.
    calls: Vec<usize>,
    ids: HashSet<String>,
    deltas: Vec<ReplyDelta>,
}

impl ReplyAssembly {
    /// Adds a part and reports its text, if it has any.
    pub(crate) fn add_part(&mut self, part: MessagePart) -> usize {
        match &part.content {
            PartContent::Text { text } if !text.is_empty() => {
                self.emit(ReplyDelta::Text(text.clone()));
            }
            PartContent::Thinking { text, .. } if !text.is_empty() => {
                self.emit(ReplyDelta::Thinking(text.clone()));
            }
            PartContent::Refusal { text } if !text.is_empty() => {
                self.emit(ReplyDelta::Refusal(text.clone()));
            }
            _ => {}
        }
        self.parts.push(part);
        self.parts.len() - 1
    }

    /// Appends text to a part.
    pub(crate) fn append_to_part(&mut self, at: usize, fragment: &str) {
        if fragment.is_empty() {
            return;
        }
        let delta = match self.parts.get_mut(at).map(|part| &mut part.content) {
            Some(PartContent::Text { text }) => {
                text.push_str(fragment);
                ReplyDelta::Text(fragment.to_owned())
            }
            Some(PartContent::Thinking { text, .. }) => {
                text.push_str(fragment);
                ReplyDelta::Thinking(fragment.to_owned())
            }
            Some(PartContent::Refusal { text }) => {
                text.push_str(fragment);
                ReplyDelta::Refusal(fragment.to_owned())
            }
            _ => return,
        };
        self.emit(delta);
    }

    /// Appends text to the last part if it is of the same kind, else adds a new part.
    pub(crate) fn append_text(&mut self, kind: PartContent) {
        let (PartContent::Text { text }
        | PartContent::Thinking { text, .. }
        | PartContent::Refusal { text }) = &kind
        else {
            return;
        };
        let last = self.parts.last().filter(|last| last.opaque.is_empty());
        let alike = last.is_some_and(|last| {
            std::mem::discriminant(&last.content) == std::mem::discriminant(&kind)
        });
        if alike {
            let text = text.clone();
            self.append_to_part(self.parts.len() - 1, &text);
        } else if !text.is_empty() {
            self.add_part(kind.into());
        }
    }

    /// Begins a call under the provider's name for its tool.
    pub(crate) fn start_call(&mut self, id: &str, name: &str) -> Result<usize, ExceededLimit> {
        let index = self.calls.len();
        if index >= self.limits.calls {
            return Err(ExceededLimit::Calls(self.limits.calls));
        }
        let mut id = id.to_owned();
        // Two calls with one id could not be distinguished when their results arrive.
        if id.is_empty() || self.ids.contains(&id) {
            id = format!("call_{}_{index}", self.salt);
        }
        self.ids.insert(id.clone());
        let name = self.names.as_ref().map_or(name, |names| names.own_name(name)).to_owned();
        self.emit(ReplyDelta::ToolCallStarted { index, id: id.clone(), name: name.clone() });
        self.calls.push(self.parts.len());
        let call = ToolCall { id, name, arguments: RawArguments::default() };
        self.parts.push(PartContent::ToolCall(call).into());
        Ok(index)
    }

    /// Appends to the arguments of a call.
    pub(crate) fn append_arguments(
        &mut self,
        index: usize,
        fragment: &str,
    ) -> Result<(), ExceededLimit> {
        if fragment.is_empty() {
            return Ok(());
        }
        let most = self.limits.argument_bytes;
        if let Some(PartContent::ToolCall(call)) =
            self.call_part(index).map(|part| &mut part.content)
        {
            if call.arguments.as_str().len() + fragment.len() > most {
                return Err(ExceededLimit::ArgumentBytes(most));
            }
            call.arguments.push(fragment);
            self.emit(ReplyDelta::ToolCallArguments { index, fragment: fragment.to_owned() });
        }
        Ok(())
    }

    /// Returns the part of a call.
    pub(crate) fn call_part(&mut self, index: usize) -> Option<&mut MessagePart> {
        self.parts.get_mut(*self.calls.get(index)?)
    }

    /// Returns the number of calls.
    pub(crate) fn calls(&self) -> usize {
        self.calls.len()
    }

    /// Reports the usage so far, if it changed.
    pub(crate) fn set_usage(&mut self, usage: TokenUsage) {
        if usage != self.usage {
            self.usage = usage;
            self.emit(ReplyDelta::Usage(usage));
        }
    }

    pub(crate) fn emit(&mut self, delta: ReplyDelta) {
        self.deltas.push(delta);
    }

    pub(crate) fn take_deltas(&mut self) -> Vec<ReplyDelta> {
        std::mem::take(&mut self.deltas)
    }

    /// Returns the complete reply.
    pub(crate) fn finish(self, stop: StopReason) -> ModelReply {
        let message =
            ChatMessage { role: MessageRole::Assistant, parts: self.parts, opaque: self.opaque };
        let stop = match stop {
            // Some providers say that a model is done when it waits.
            StopReason::End if message.calls().next().is_some() => StopReason::ToolCalls,
            StopReason::ToolCalls if message.calls().next().is_none() => StopReason::End,
            stop => stop,
        };
        ModelReply { message, stop, usage: self.usage, model: self.model, id: self.id }
    }
}
