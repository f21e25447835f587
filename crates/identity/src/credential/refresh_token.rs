//! Refresh tokens: derived from their grant and their number, so that the same one can be issued again without being stored.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::key_ring::purpose::SealPurpose;
use crate::key_ring::{KeyId, KeyRing};

/// Prefix of refresh tokens.
pub(crate) const PREFIX: &str = "cr_";

/// Length of what is not the authenticator: key id, grant, generation.
const HEAD: usize = 4 + 16 + 4;

/// A refresh token, as its bearer shows it. It is valid only if its authenticator is that of its grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RefreshToken {
    key: KeyId,
    /// The id of the grant.
    pub(crate) grant: [u8; 16],
    /// Its number: each refresh issues the next one.
    pub(crate) generation: u32,
    tag: Vec<u8>,
}

impl RefreshToken {
    /// Returns the text of a refresh token of a grant: the same each time. `None` if the key is no longer on the ring.
    pub(crate) fn derive(
        keys: &KeyRing,
        key: KeyId,
        grant: [u8; 16],
        salt: &[u8],
        generation: u32,
    ) -> Option<String> {
        let number = generation.to_be_bytes();
        let tag = keys.mac(key, SealPurpose::RefreshToken, &[&grant, salt, &number])?;
        let bytes = [key.as_bytes(), grant.as_slice(), &number, &tag].concat();
        Some(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// Reads the form of a token.
    pub(crate) fn parse(token: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(token.strip_prefix(PREFIX)?).ok()?;
        let (head, tag) = bytes.split_at_checked(HEAD)?;
        if tag.len() != 32 {
            return None;
        }
        Some(Self {
            key: KeyId::from_bytes(head[..4].try_into().ok()?),
            grant: head[4..20].try_into().ok()?,
            generation: u32::from_be_bytes(head[20..].try_into().ok()?),
            tag: tag.to_vec(),
        })
    }

    /// Returns true if it was issued for its grant, which has this salt.
    pub(crate) fn is_issued(&self, keys: &KeyRing, salt: &[u8]) -> bool {
        let number = self.generation.to_be_bytes();
        let parts: [&[u8]; 3] = [&self.grant, salt, &number];
        keys.is_mac(self.key, SealPurpose::RefreshToken, &parts, &self.tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key_ring::secret_key::SecretKey;

    #[test]
    fn a_token_is_the_same_each_time_and_valid_for_its_grant_and_number_only() {
        let [ours, other] = [(); 2].map(|()| KeyRing::new(SecretKey::random(), Vec::new()));
        let derive = |grant, salt: &[u8], number| {
            RefreshToken::derive(&ours, ours.current_key(), grant, salt, number).unwrap()
        };
        let token = derive([7; 16], b"salt", 3);
        assert_eq!(token, derive([7; 16], b"salt", 3));
        let parsed = RefreshToken::parse(&token).unwrap();
        assert_eq!((parsed.grant, parsed.generation), ([7; 16], 3));
        assert!(parsed.is_issued(&ours, b"salt"));
        assert!(!parsed.is_issued(&ours, b"tlas"));
        assert!(!parsed.is_issued(&other, b"salt"));
        for changed in [
            RefreshToken { grant: [8; 16], ..parsed.clone() },
            RefreshToken { generation: 4, ..parsed.clone() },
            RefreshToken { tag: vec![0; 32], ..parsed.clone() },
        ] {
            assert!(!changed.is_issued(&ours, b"salt"), "{changed:?}");
        }
        for text in ["", "cr_", "cr_AAAA", &token[1..], &token[..token.len() - 2]] {
            assert_eq!(RefreshToken::parse(text), None, "{text}");
        }
        let unknown = KeyId::from_bytes([0; 4]);
        assert_eq!(RefreshToken::derive(&ours, unknown, [7; 16], b"salt", 3), None);
    }
}
