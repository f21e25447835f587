//! Users: people and service accounts.

use std::fmt;
use std::str::FromStr;

use consort_core::{Caller, IdentityId};
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The stable id of a user: 128 random bits, independent of every name and of the issuer that signs the user in.
///
/// ```
/// use consort_identity::UserId;
///
/// let id = UserId::random();
/// assert_eq!(id.to_string().parse(), Ok(id));
/// assert_eq!(id.to_identity().as_str(), format!("user:{id}"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UserId([u8; 16]);

/// A text that is no id of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected 32 hexadecimal digits")]
pub struct InvalidUserId;

impl UserId {
    /// The operator of the gateway, who signs in with the owner's token. No other user has this id.
    pub const OWNER: Self = Self([0; 16]);

    /// Makes the id of a new user.
    pub fn random() -> Self {
        let mut bytes = [0; 16];
        SystemRandom::new().fill(&mut bytes).expect("the system has randomness");
        Self(bytes)
    }

    /// Makes an id from its bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns its bytes.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Returns the identity by which everything that belongs to the user is keyed. No configured caller has such an id:
    /// theirs begin with `client:`, `agent:` or `person:`.
    pub fn to_identity(&self) -> IdentityId {
        if *self == Self::OWNER {
            return IdentityId::new(Caller::OWNER);
        }
        IdentityId::new(format!("user:{self}"))
    }
}

impl fmt::Display for UserId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for UserId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UserId({self})")
    }
}

impl FromStr for UserId {
    type Err = InvalidUserId;

    fn from_str(text: &str) -> Result<Self, InvalidUserId> {
        // Only the form that is written: an id in a table has one spelling.
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() != 32 || !text.bytes().all(is_digit) {
            return Err(InvalidUserId);
        }
        u128::from_str_radix(text, 16).map(|id| Self(id.to_be_bytes())).map_err(|_| InvalidUserId)
    }
}

impl Serialize for UserId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for UserId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_one_spelling() {
        let id = UserId::from_bytes([0xab; 16]);
        let text = "ab".repeat(16);
        assert_eq!(id.to_string(), text);
        assert_eq!(serde_json::to_string(&id).unwrap(), format!("\"{text}\""));
        for other in [&text.to_uppercase(), &text[1..], &format!("+{}", &text[1..]), ""] {
            assert_eq!(other.parse::<UserId>(), Err(InvalidUserId), "{other}");
        }
        assert_ne!(UserId::random(), UserId::random());
    }
}
