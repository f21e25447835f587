//! The proof that a sign-in led a browser to the console.
//!
//! The cookie of a session reaches every port of its host. The proof stands in the fragment of the address that a sign-in
//! leads to, which browsers send to no server, so only the page there has it.

use consort_server::CredentialDigest;

use crate::digest::hex;
use crate::key_ring::KeyRing;
use crate::key_ring::purpose::SealPurpose;

/// Seconds for which a proof is valid.
const LASTS: u64 = 120;

/// Returns the proof for a session that begins now.
pub(crate) fn sign_in_proof(keys: &KeyRing, session: &CredentialDigest, now: u64) -> String {
    format!("{now}.{}", tag(keys, session, now))
}

/// Returns true if a proof is of this session, and recent.
pub(crate) fn is_sign_in_proof(
    keys: &KeyRing,
    session: &CredentialDigest,
    proof: &str,
    now: u64,
) -> bool {
    let Some((begun, shown)) = proof.split_once('.') else { return false };
    let Ok(begun) = begun.parse::<u64>() else { return false };
    let is_recent = begun <= now && now - begun < LASTS;
    // Digests take the same time to compare however much of them agrees.
    let digest_of = crate::digest::digest_of;
    is_recent && digest_of(shown) == digest_of(&tag(keys, session, begun))
}

fn tag(keys: &KeyRing, session: &CredentialDigest, begun: u64) -> String {
    let begun = begun.to_be_bytes();
    let parts: [&[u8]; 2] = [session.as_bytes(), &begun];
    let tag = keys.mac(keys.current_key(), SealPurpose::SignInProof, &parts);
    // Without the current key nothing is proven: a random tag matches none.
    tag.map_or_else(crate::digest::random_secret, |tag| hex(&tag))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key_ring::secret_key::SecretKey;

    #[test]
    fn a_proof_is_of_one_session_and_two_minutes() {
        let random = || KeyRing::new(SecretKey::random(), Vec::new());
        let keys = random();
        let session = |byte| CredentialDigest::from_bytes([byte; 32]);
        let proof = sign_in_proof(&keys, &session(1), 1000);
        let proves = |session: &CredentialDigest, proof: &str, now| {
            is_sign_in_proof(&keys, session, proof, now)
        };
        assert!(proves(&session(1), &proof, 1000) && proves(&session(1), &proof, 1119));
        assert!(!proves(&session(1), &proof, 1120), "it is too old");
        assert!(!proves(&session(1), &proof, 999), "it is of the future");
        assert!(!proves(&session(2), &proof, 1000), "it is of another session");
        let later = proof.replace("1000.", "1100.");
        for proof in ["", ".", "1000.", "1000", later.as_str(), &proof[1..]] {
            assert!(!proves(&session(1), proof, 1100), "{proof}");
        }
        assert!(!is_sign_in_proof(&random(), &session(1), &proof, 1000), "another key");
    }
}
