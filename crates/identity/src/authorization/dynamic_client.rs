//! Dynamically registered clients. Their ids contain, sealed, everything that is known of them: nothing is stored, so
//! nothing fills up and nothing is forgotten.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::key_ring::KeyRing;
use crate::key_ring::purpose::SealPurpose;

/// Prefix of the ids.
pub(crate) const PREFIX: &str = "dcr.";

/// A client that registered itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DynamicClient {
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(rename = "u")]
    pub(crate) redirect_uris: Vec<String>,
    /// True if it has a secret.
    #[serde(rename = "s", default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_confidential: bool,
    #[serde(rename = "t")]
    pub(crate) issued_at: u64,
    /// Registrations of earlier epochs are forgotten.
    #[serde(rename = "e")]
    pub(crate) epoch: u64,
}

impl DynamicClient {
    /// Returns its id.
    pub(crate) fn seal(&self, keys: &KeyRing) -> String {
        let value = serde_json::to_vec(self).expect("it always serialises");
        let sealed = keys.seal(SealPurpose::ClientId, &[], &value);
        format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(sealed))
    }

    /// Opens an id that this gateway issued.
    pub(crate) fn open(keys: &KeyRing, id: &str) -> Option<Self> {
        let sealed = URL_SAFE_NO_PAD.decode(id.strip_prefix(PREFIX)?).ok()?;
        serde_json::from_slice(&keys.open(SealPurpose::ClientId, &[], &sealed).ok()?).ok()
    }

    /// Returns the secret of an id: the same each time.
    pub(crate) fn secret(keys: &KeyRing, id: &str) -> Option<String> {
        let sealed = URL_SAFE_NO_PAD.decode(id.strip_prefix(PREFIX)?).ok()?;
        let key = KeyRing::key_of(&sealed)?;
        let tag = keys.mac(key, SealPurpose::ClientSecret, &[id.as_bytes()])?;
        Some(format!("cs_{}", URL_SAFE_NO_PAD.encode(tag)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key_ring::secret_key::SecretKey;

    fn client() -> DynamicClient {
        DynamicClient {
            name: Some("Claude Code".to_owned()),
            redirect_uris: vec!["http://localhost:3118/callback".to_owned()],
            is_confidential: true,
            issued_at: 1,
            epoch: 0,
        }
    }

    #[test]
    fn an_id_is_opened_by_its_own_gateway_only_and_has_one_secret() {
        let [ours, other] = [(); 2].map(|()| KeyRing::new(SecretKey::random(), Vec::new()));
        let id = client().seal(&ours);
        assert_eq!(DynamicClient::open(&ours, &id), Some(client()));
        assert_eq!(DynamicClient::open(&other, &id), None);
        assert_eq!(DynamicClient::open(&ours, &id[..id.len() - 1]), None);
        assert!(id.len() < 300, "{}", id.len());
        let secret = DynamicClient::secret(&ours, &id).unwrap();
        assert_eq!(DynamicClient::secret(&ours, &id), Some(secret.clone()));
        assert_eq!(DynamicClient::secret(&other, &id), None);
        assert_ne!(DynamicClient::secret(&ours, &client().seal(&ours)), Some(secret));
    }
}
