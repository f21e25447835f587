//! Access tokens: opaque to everybody else, and valid as long as their grant.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::key_ring::KeyRing;
use crate::key_ring::purpose::SealPurpose;

/// Prefix of access tokens.
pub(crate) const PREFIX: &str = "ca_";

/// The contents of an access token. Everything else is looked up in its grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AccessToken {
    /// The id of the grant: 128 bits.
    pub(crate) grant: [u8; 16],
    /// The refresh token that it was issued with.
    pub(crate) generation: u32,
    /// The time of its expiry in seconds since 1970.
    pub(crate) expires_at: u64,
}

const LENGTH: usize = 16 + 4 + 8;

impl AccessToken {
    /// Returns it sealed.
    pub(crate) fn seal(&self, keys: &KeyRing) -> String {
        let mut value = Vec::with_capacity(LENGTH);
        value.extend_from_slice(&self.grant);
        value.extend_from_slice(&self.generation.to_be_bytes());
        value.extend_from_slice(&self.expires_at.to_be_bytes());
        let sealed = keys.seal(SealPurpose::AccessToken, &[], &value);
        format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(sealed))
    }

    /// Opens a token that this gateway sealed.
    pub(crate) fn open(keys: &KeyRing, token: &str) -> Option<Self> {
        let sealed = URL_SAFE_NO_PAD.decode(token.strip_prefix(PREFIX)?).ok()?;
        let value = keys.open(SealPurpose::AccessToken, &[], &sealed).ok()?;
        let value: &[u8; LENGTH] = value.as_slice().try_into().ok()?;
        let (grant, rest) = value.split_at(16);
        let (generation, expires_at) = rest.split_at(4);
        Some(Self {
            grant: grant.try_into().ok()?,
            generation: u32::from_be_bytes(generation.try_into().ok()?),
            expires_at: u64::from_be_bytes(expires_at.try_into().ok()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key_ring::secret_key::SecretKey;

    #[test]
    fn a_token_is_opened_by_its_own_gateway_only_and_unchanged_only() {
        let [ours, other] = [(); 2].map(|()| KeyRing::new(SecretKey::random(), Vec::new()));
        let token = AccessToken { grant: [7; 16], generation: 3, expires_at: 9_000_000_000 };
        let sealed = token.seal(&ours);
        assert_eq!(sealed.len(), 111);
        assert_eq!(AccessToken::open(&ours, &sealed), Some(token.clone()));
        assert_eq!(AccessToken::open(&other, &sealed), None);
        assert_ne!(token.seal(&ours), sealed);
        for changed in [&sealed[1..], &sealed[..sealed.len() - 1], "ca_", "ca_AAAA", ""] {
            assert_eq!(AccessToken::open(&ours, changed), None, "{changed}");
        }
    }
}
