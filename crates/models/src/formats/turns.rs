//! A conversation as every provider accepts it: turns of one role each, every call with its result.

use std::borrow::{Borrow, Cow};

use crate::message::{
    ChatMessage, MessagePart, MessageRole, OpaqueData, PartContent, ToolCall, ToolCallResult,
};

/// Result text of a call that was not made, or whose result was lost.
const NO_RESULT: &str = "no result: the call was not made, or its outcome is unknown";

/// Consecutive messages of one role.
#[derive(Debug)]
pub(crate) enum ConversationTurn<'a> {
    System(Vec<&'a MessagePart>),
    User(Vec<Cow<'a, MessagePart>>),
    Assistant {
        parts: Vec<&'a MessagePart>,
        opaque: Vec<&'a OpaqueData>,
    },
    /// Always after the turn with the calls, in their order, one for each.
    Results(Vec<AnsweredCall<'a>>),
}

/// A call's result, with the call.
#[derive(Debug)]
pub(crate) struct AnsweredCall<'a> {
    pub(crate) call: &'a ToolCall,
    pub(crate) opaque: &'a OpaqueData,
    pub(crate) result: Cow<'a, ToolCallResult>,
}

/// Splits a conversation into turns.
pub(crate) fn turns<M: Borrow<ChatMessage>>(messages: &[M]) -> Vec<ConversationTurn<'_>> {
    let mut builder = TurnBuilder::default();
    for message in messages.iter().map(Borrow::borrow) {
        match message.role {
            MessageRole::System => {
                builder.close();
                builder.system(&message.parts);
            }
            MessageRole::Assistant => {
                builder.close();
                builder.assistant(message);
            }
            MessageRole::User | MessageRole::Tool => builder.user_and_tools(&message.parts),
        }
    }
    builder.close();
    builder.turns
}

#[derive(Default)]
struct TurnBuilder<'a> {
    turns: Vec<ConversationTurn<'a>>,
    /// The calls of the model's last turn, with their results as they arrive.
    open: Vec<(&'a ToolCall, &'a OpaqueData, Option<&'a ToolCallResult>)>,
}

impl<'a> TurnBuilder<'a> {
    fn system(&mut self, parts: &'a [MessagePart]) {
        match self.turns.last_mut() {
            Some(ConversationTurn::System(all)) => all.extend(parts),
            _ => self.turns.push(ConversationTurn::System(parts.iter().collect())),
        }
    }

    fn assistant(&mut self, message: &'a ChatMessage) {
        match self.turns.last_mut() {
            Some(ConversationTurn::Assistant { parts, opaque }) => {
                parts.extend(&message.parts);
                opaque.push(&message.opaque);
            }
            _ => self.turns.push(ConversationTurn::Assistant {
                parts: message.parts.iter().collect(),
                opaque: vec![&message.opaque],
            }),
        }
        for part in &message.parts {
            if let PartContent::ToolCall(call) = &part.content {
                self.open.push((call, &part.opaque, None));
            }
        }
    }

    fn user_and_tools(&mut self, parts: &'a [MessagePart]) {
        let mut content = Vec::new();
        for part in parts {
            match &part.content {
                PartContent::ToolResult(result) => {
                    let mut open = self.open.iter_mut();
                    let waiting = open.find(|(call, _, result_slot)| {
                        call.id == result.call && result_slot.is_none()
                    });
                    match waiting {
                        Some((_, _, result_slot)) => *result_slot = Some(result),
                        None => content.extend(stray_result(result)),
                    }
                }
                _ => content.push(Cow::Borrowed(part)),
            }
        }
        if content.is_empty() {
            return;
        }
        self.close();
        match self.turns.last_mut() {
            Some(ConversationTurn::User(all)) => all.extend(content),
            _ => self.turns.push(ConversationTurn::User(content)),
        }
    }

    /// Stops waiting for results.
    fn close(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let answered = self.open.drain(..).map(|(call, opaque, result)| AnsweredCall {
            call,
            opaque,
            result: match result {
                Some(result) => Cow::Borrowed(result),
                None => Cow::Owned(ToolCallResult::error(&call.id, NO_RESULT)),
            },
        });
        let answered = answered.collect();
        self.turns.push(ConversationTurn::Results(answered));
    }
}

/// Returns a result whose call is not in the conversation as text, since no provider accepts it.
fn stray_result(result: &ToolCallResult) -> impl Iterator<Item = Cow<'_, MessagePart>> {
    let label = MessagePart::text(format!("[Result of the call `{}`]", result.call));
    std::iter::once(Cow::Owned(label)).chain(result.parts.iter().map(Cow::Borrowed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str) -> MessagePart {
        PartContent::ToolCall(ToolCall {
            id: id.into(),
            name: "look".into(),
            arguments: "{}".into(),
        })
        .into()
    }

    fn result(id: &str) -> ToolCallResult {
        ToolCallResult { call: id.into(), parts: vec![MessagePart::text(id)], is_error: false }
    }

    fn outline(messages: &[ChatMessage]) -> Vec<String> {
        turns(messages)
            .iter()
            .map(|turn| match turn {
                ConversationTurn::System(parts) => format!("system {}", parts.len()),
                ConversationTurn::User(parts) => format!("user {}", parts.len()),
                ConversationTurn::Assistant { parts, .. } => format!("assistant {}", parts.len()),
                ConversationTurn::Results(results) => {
                    let results = results.iter().map(|answered| {
                        format!(
                            " {}{}",
                            answered.call.id,
                            if answered.result.is_error { "!" } else { "" }
                        )
                    });
                    format!("results{}", results.collect::<String>())
                }
            })
            .collect()
    }

    #[test]
    fn messages_of_one_speaker_become_one_turn() {
        let messages = [
            ChatMessage::system("a"),
            ChatMessage::system("b"),
            ChatMessage::user("c"),
            ChatMessage::user("d"),
            ChatMessage::assistant("e"),
            ChatMessage::assistant("f"),
        ];
        assert_eq!(outline(&messages), ["system 2", "user 2", "assistant 2"]);
    }

    #[test]
    fn results_stand_behind_their_calls_in_the_order_of_the_calls() {
        let messages = [
            ChatMessage::new(MessageRole::Assistant, vec![call("1"), call("2")]),
            ChatMessage::results([result("2")]),
            ChatMessage::results([result("1")]),
            ChatMessage::user("and now?"),
        ];
        assert_eq!(outline(&messages), ["assistant 2", "results 1 2", "user 1"]);
    }

    #[test]
    fn a_call_without_a_result_gets_one_that_says_so() {
        let messages = [
            ChatMessage::new(MessageRole::Assistant, vec![call("1"), call("2")]),
            ChatMessage::results([result("2")]),
        ];
        assert_eq!(outline(&messages), ["assistant 2", "results 1! 2"]);
    }

    #[test]
    fn a_result_without_a_call_is_told_in_words() {
        let messages = [ChatMessage::results([result("9")]), ChatMessage::user("go on")];
        assert_eq!(outline(&messages), ["user 3"]);
    }
}
