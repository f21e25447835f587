//! Ids of conversations.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Id of a conversation: the time it began, and four random hex digits, as in `20261115-164500-3f9a`. In lexical order,
/// the oldest comes first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct ConversationId(String);

/// Positions of the digits; the rest are dashes.
const FORM: &[u8] = b"00000000-000000-xxxx";

impl ConversationId {
    /// Creates an id for this time, in milliseconds since 1970.
    pub(super) fn new(now: u64) -> Self {
        let time: String =
            consort_core::utc(now / 1000).chars().filter(char::is_ascii_digit).collect();
        let (date, time) = time.split_at(time.len() - 6);
        let chance = RandomState::new().hash_one(now) & 0xffff;
        Self(format!("{date}-{time}-{chance:04x}"))
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the four random hex digits.
    pub(super) fn chance(&self) -> &str {
        &self.0[self.0.len() - 4..]
    }
}

impl fmt::Display for ConversationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that is no id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a conversation id: expected an id such as `20261115-164500-3f9a`")]
pub struct InvalidConversationId;

impl FromStr for ConversationId {
    type Err = InvalidConversationId;

    fn from_str(text: &str) -> Result<Self, InvalidConversationId> {
        let fits = |(byte, form): (u8, &u8)| match form {
            b'0' => byte.is_ascii_digit(),
            b'x' => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
            dash => byte == *dash,
        };
        let is_id = text.len() == FORM.len() && text.bytes().zip(FORM).all(fits);
        is_id.then(|| Self(text.to_owned())).ok_or(InvalidConversationId)
    }
}

impl TryFrom<String> for ConversationId {
    type Error = InvalidConversationId;

    fn try_from(text: String) -> Result<Self, InvalidConversationId> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_is_written_and_later_ones_come_later() {
        let ids = [0, 1_763_222_400_000, 1_763_222_401_000].map(ConversationId::new);
        assert!(ids[1].as_str().starts_with("20251115-160000-"), "{}", ids[1]);
        assert!(ids.is_sorted());
        for id in ids {
            assert_eq!(id.as_str().parse(), Ok(id));
        }
    }

    #[test]
    fn what_could_lead_out_of_the_folder_is_no_id() {
        for text in [
            "",
            "last",
            "../x",
            "20261115-164500-3F9A",
            "20261115-164500-3f9a/",
            "20261115_164500-3f9a",
        ] {
            assert_eq!(text.parse::<ConversationId>(), Err(InvalidConversationId), "{text}");
        }
    }
}
