//! Thinking that a provider rejects.
//!
//! Thinking is signed, and bound to the model, the account or the conversation; which of these, no name reveals. So it
//! is sent back until it is rejected.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::message::{Kind, Message, Opaque, Part, Role};
use crate::request::Ask;

/// Messages whose thinking was rejected.
#[derive(Debug, Default)]
pub(crate) struct Refused(Mutex<Vec<Weak<Message>>>);

impl Refused {
    /// Removes thinking that was rejected before.
    pub(crate) fn leave_out(&self, ask: &mut Ask) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|known| known.strong_count() > 0);
        for message in &mut ask.messages {
            if known.iter().any(|known| known.as_ptr() == Arc::as_ptr(message)) {
                *message = Arc::new(without_thoughts(message));
            }
        }
    }

    /// Removes all thinking, now and in later requests. Returns false if there was none.
    pub(crate) fn leave_out_all(&self, ask: &mut Ask) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = false;
        for message in ask.messages.iter_mut().filter(|message| has_thoughts(message)) {
            known.push(Arc::downgrade(message));
            *message = Arc::new(without_thoughts(message));
            found = true;
        }
        found
    }
}

fn has_thoughts(message: &Message) -> bool {
    let parts = &message.parts;
    message.role == Role::Assistant && (!message.opaque.is_empty() || parts.iter().any(is_thought))
}

/// Returns true for thinking, and for parts that carry a thought signature of Gemini.
fn is_thought(part: &Part) -> bool {
    matches!(part.kind, Kind::Thinking { .. })
        || part.opaque.member("gemini", "thoughtSignature").is_some()
}

fn without_thoughts(message: &Message) -> Message {
    let kept = message.parts.iter().filter_map(|part| match &part.kind {
        Kind::Thinking { .. } => None,
        kind if is_thought(part) => Some(kind.clone().into()),
        _ => Some(part.clone()),
    });
    Message { role: message.role, parts: kept.collect(), opaque: Opaque::default() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tests::sample::call;

    #[test]
    fn thoughts_are_left_out_once_they_were_refused() {
        let thought = Part::from(Kind::Thinking { text: "hm".into(), redacted: false });
        let thought = thought.with_opaque("anthropic", json!({ "signature": "s" }));
        let signed =
            call("1", "now", "{}").with_opaque("gemini", json!({ "thoughtSignature": "t" }));
        let before = Message::new(Role::Assistant, vec![thought.clone(), Part::text("a"), signed]);
        let mut ask = Ask::new("m", vec![Message::user("hi"), before, Message::user("go on")]);
        let (refused, kept) = (Refused::default(), ask.clone());
        refused.leave_out(&mut ask);
        assert_eq!(ask, kept);

        assert!(refused.leave_out_all(&mut ask));
        assert_eq!(ask.messages[1].parts, [Part::text("a"), call("1", "now", "{}")]);
        assert!(!refused.leave_out_all(&mut ask), "nothing is left to leave out");

        let new = Arc::new(Message::new(Role::Assistant, vec![thought]));
        let mut next = kept.clone();
        next.messages.push(Arc::clone(&new));
        refused.leave_out(&mut next);
        assert_eq!(next.messages[1], ask.messages[1]);
        assert_eq!(next.messages[3], new, "what was thought since goes back");
    }
}
