//! Thinking that a provider rejects.
//!
//! Thinking is signed, and bound to the model, the account or the conversation; which of these, no name reveals. So it
//! is sent back until it is rejected.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::message::{ChatMessage, MessagePart, MessageRole, OpaqueData, PartContent};
use crate::request::ModelRequest;

/// Messages whose thinking was rejected.
#[derive(Debug, Default)]
pub(crate) struct RejectedThinking(Mutex<Vec<Weak<ChatMessage>>>);

impl RejectedThinking {
    /// Removes thinking that was rejected before.
    pub(crate) fn remove_known(&self, request: &mut ModelRequest) {
        let mut known = self.0.lock();
        known.retain(|known| known.strong_count() > 0);
        for message in &mut request.messages {
            if known.iter().any(|known| known.as_ptr() == Arc::as_ptr(message)) {
                *message = Arc::new(without_thinking(message));
            }
        }
    }

    /// Removes all thinking, now and in later requests. Returns false if there was none.
    pub(crate) fn remove_all(&self, request: &mut ModelRequest) -> bool {
        let mut known = self.0.lock();
        let mut found = false;
        for message in request.messages.iter_mut().filter(|message| has_thinking(message)) {
            known.push(Arc::downgrade(message));
            *message = Arc::new(without_thinking(message));
            found = true;
        }
        found
    }
}

fn has_thinking(message: &ChatMessage) -> bool {
    let parts = &message.parts;
    message.role == MessageRole::Assistant
        && (!message.opaque.is_empty() || parts.iter().any(is_thinking))
}

/// Returns true for thinking, and for parts that carry a thought signature of Gemini.
fn is_thinking(part: &MessagePart) -> bool {
    matches!(part.content, PartContent::Thinking { .. })
        || part.opaque.member("gemini", "thoughtSignature").is_some()
}

fn without_thinking(message: &ChatMessage) -> ChatMessage {
    let parts = message.parts.iter().filter_map(|part| match &part.content {
        PartContent::Thinking { .. } => None,
        kind if is_thinking(part) => Some(kind.clone().into()),
        _ => Some(part.clone()),
    });
    ChatMessage { role: message.role, parts: parts.collect(), opaque: OpaqueData::default() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tests::sample::call;

    #[test]
    fn thoughts_are_left_out_once_they_were_refused() {
        let thought =
            MessagePart::from(PartContent::Thinking { text: "hm".into(), redacted: false });
        let thought = thought.with_opaque("anthropic", json!({ "signature": "s" }));
        let signed =
            call("1", "now", "{}").with_opaque("gemini", json!({ "thoughtSignature": "t" }));
        let before = ChatMessage::new(
            MessageRole::Assistant,
            vec![thought.clone(), MessagePart::text("a"), signed],
        );
        let mut request = ModelRequest::new(
            "m",
            vec![ChatMessage::user("hi"), before, ChatMessage::user("go on")],
        );
        let (refused, kept) = (RejectedThinking::default(), request.clone());
        refused.remove_known(&mut request);
        assert_eq!(request, kept);

        assert!(refused.remove_all(&mut request));
        assert_eq!(request.messages[1].parts, [MessagePart::text("a"), call("1", "now", "{}")]);
        assert!(!refused.remove_all(&mut request), "nothing is left to leave out");

        let new = Arc::new(ChatMessage::new(MessageRole::Assistant, vec![thought]));
        let mut next = kept.clone();
        next.messages.push(Arc::clone(&new));
        refused.remove_known(&mut next);
        assert_eq!(next.messages[1], request.messages[1]);
        assert_eq!(next.messages[3], new, "what was thought since goes back");
    }
}
