//! A conversation as every provider accepts it: turns of one role each, every call with its result.

use std::borrow::{Borrow, Cow};

use crate::message::{Call, CallResult, Kind, Message, Opaque, Part, Role};

/// Result text of a call that was not made, or whose result was lost.
const NO_RESULT: &str = "no result: the call was not made, or what it came to is not known";

/// Consecutive messages of one role.
#[derive(Debug)]
pub(crate) enum Turn<'a> {
    System(Vec<&'a Part>),
    User(Vec<Cow<'a, Part>>),
    Assistant {
        parts: Vec<&'a Part>,
        opaque: Vec<&'a Opaque>,
    },
    /// Always after the turn with the calls, in their order, one for each.
    Results(Vec<Answered<'a>>),
}

/// A call's result, with the call.
#[derive(Debug)]
pub(crate) struct Answered<'a> {
    pub(crate) call: &'a Call,
    pub(crate) opaque: &'a Opaque,
    pub(crate) result: Cow<'a, CallResult>,
}

/// Splits a conversation into turns.
pub(crate) fn turns<M: Borrow<Message>>(messages: &[M]) -> Vec<Turn<'_>> {
    let mut teller = Teller::default();
    for message in messages.iter().map(Borrow::borrow) {
        match message.role {
            Role::System => {
                teller.close();
                teller.system(&message.parts);
            }
            Role::Assistant => {
                teller.close();
                teller.assistant(message);
            }
            Role::User | Role::Tool => teller.others(&message.parts),
        }
    }
    teller.close();
    teller.turns
}

#[derive(Default)]
struct Teller<'a> {
    turns: Vec<Turn<'a>>,
    /// The calls of the model's last turn, with their results as they arrive.
    open: Vec<(&'a Call, &'a Opaque, Option<&'a CallResult>)>,
}

impl<'a> Teller<'a> {
    fn system(&mut self, parts: &'a [Part]) {
        match self.turns.last_mut() {
            Some(Turn::System(all)) => all.extend(parts),
            _ => self.turns.push(Turn::System(parts.iter().collect())),
        }
    }

    fn assistant(&mut self, message: &'a Message) {
        match self.turns.last_mut() {
            Some(Turn::Assistant { parts, opaque }) => {
                parts.extend(&message.parts);
                opaque.push(&message.opaque);
            }
            _ => self.turns.push(Turn::Assistant {
                parts: message.parts.iter().collect(),
                opaque: vec![&message.opaque],
            }),
        }
        for part in &message.parts {
            if let Kind::ToolCall(call) = &part.kind {
                self.open.push((call, &part.opaque, None));
            }
        }
    }

    fn others(&mut self, parts: &'a [Part]) {
        let mut said = Vec::new();
        for part in parts {
            match &part.kind {
                Kind::ToolResult(result) => {
                    let mut open = self.open.iter_mut();
                    let waiting =
                        open.find(|(call, _, had)| call.id == result.call && had.is_none());
                    match waiting {
                        Some((_, _, had)) => *had = Some(result),
                        None => said.extend(stray(result)),
                    }
                }
                _ => said.push(Cow::Borrowed(part)),
            }
        }
        if said.is_empty() {
            return;
        }
        self.close();
        match self.turns.last_mut() {
            Some(Turn::User(all)) => all.extend(said),
            _ => self.turns.push(Turn::User(said)),
        }
    }

    /// Stops waiting for results.
    fn close(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let answered = self.open.drain(..).map(|(call, opaque, result)| Answered {
            call,
            opaque,
            result: match result {
                Some(result) => Cow::Borrowed(result),
                None => Cow::Owned(CallResult::error(&call.id, NO_RESULT)),
            },
        });
        let answered = answered.collect();
        self.turns.push(Turn::Results(answered));
    }
}

/// Returns a result whose call is not in the conversation as text, since no provider accepts it.
fn stray(result: &CallResult) -> impl Iterator<Item = Cow<'_, Part>> {
    let told = Part::text(format!("[Result of the call `{}`]", result.call));
    std::iter::once(Cow::Owned(told)).chain(result.parts.iter().map(Cow::Borrowed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str) -> Part {
        Kind::ToolCall(Call { id: id.into(), name: "look".into(), arguments: "{}".into() }).into()
    }

    fn result(id: &str) -> CallResult {
        CallResult { call: id.into(), parts: vec![Part::text(id)], is_error: false }
    }

    fn outline(messages: &[Message]) -> Vec<String> {
        turns(messages)
            .iter()
            .map(|turn| match turn {
                Turn::System(parts) => format!("system {}", parts.len()),
                Turn::User(parts) => format!("user {}", parts.len()),
                Turn::Assistant { parts, .. } => format!("assistant {}", parts.len()),
                Turn::Results(results) => {
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
            Message::system("a"),
            Message::system("b"),
            Message::user("c"),
            Message::user("d"),
            Message::assistant("e"),
            Message::assistant("f"),
        ];
        assert_eq!(outline(&messages), ["system 2", "user 2", "assistant 2"]);
    }

    #[test]
    fn results_stand_behind_their_calls_in_the_order_of_the_calls() {
        let messages = [
            Message::new(Role::Assistant, vec![call("1"), call("2")]),
            Message::results([result("2")]),
            Message::results([result("1")]),
            Message::user("and now?"),
        ];
        assert_eq!(outline(&messages), ["assistant 2", "results 1 2", "user 1"]);
    }

    #[test]
    fn a_call_without_a_result_gets_one_that_says_so() {
        let messages = [
            Message::new(Role::Assistant, vec![call("1"), call("2")]),
            Message::results([result("2")]),
        ];
        assert_eq!(outline(&messages), ["assistant 2", "results 1! 2"]);
    }

    #[test]
    fn a_result_without_a_call_is_told_in_words() {
        let messages = [Message::results([result("9")]), Message::user("go on")];
        assert_eq!(outline(&messages), ["user 3"]);
    }
}
