//! The keys of an issuer (JWK sets), as far as they verify ID tokens.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey};
use serde_json::{Map, Value};

use super::strict_json::parse_object;

/// A public key of an issuer.
#[derive(Clone, Debug)]
pub(crate) struct VerificationKey {
    id: Option<String>,
    /// The only algorithm that it is for, if the issuer says so.
    algorithm: Option<Algorithm>,
    family: KeyFamily,
    key: DecodingKey,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyFamily {
    Rsa,
    P256,
    P384,
    Ed25519,
}

/// Every algorithm that is accepted, by its name. Neither `none` nor a symmetric one is among them.
pub(crate) const ALGORITHMS: [(&str, Algorithm); 9] = [
    ("RS256", Algorithm::RS256),
    ("RS384", Algorithm::RS384),
    ("RS512", Algorithm::RS512),
    ("PS256", Algorithm::PS256),
    ("PS384", Algorithm::PS384),
    ("PS512", Algorithm::PS512),
    ("ES256", Algorithm::ES256),
    ("ES384", Algorithm::ES384),
    ("EdDSA", Algorithm::EdDSA),
];

/// Bits of an RSA modulus.
const MODULUS_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;

/// Returns an accepted algorithm by its name.
pub(crate) fn algorithm(name: &str) -> Option<Algorithm> {
    ALGORITHMS.iter().find(|(known, _)| *known == name).map(|(_, algorithm)| *algorithm)
}

/// Reads a JWK set of at most so many keys. Keys that verify no ID token are skipped.
pub(crate) fn parse_keys(bytes: &[u8], most: usize) -> Result<Vec<VerificationKey>, String> {
    let set = parse_object(bytes).map_err(|error| error.to_string())?;
    let Some(Value::Array(keys)) = set.get("keys") else {
        return Err("it has no `keys`".to_owned());
    };
    if keys.len() > most {
        return Err(format!("it has more than {most} keys"));
    }
    Ok(keys.iter().filter_map(|key| VerificationKey::read(key.as_object()?)).collect())
}

impl VerificationKey {
    fn read(jwk: &Map<String, Value>) -> Option<Self> {
        let text = |name: &str| jwk.get(name).and_then(Value::as_str);
        if jwk.contains_key("use") && text("use") != Some("sig") {
            return None;
        }
        if let Some(operations) = jwk.get("key_ops") {
            let verifies = |operations: &Vec<Value>| operations.iter().any(|it| it == "verify");
            if !operations.as_array().is_some_and(verifies) {
                return None;
            }
        }
        // A private key that was published is nobody's alone.
        if ["d", "k", "p", "q"].iter().any(|secret| jwk.contains_key(*secret)) {
            return None;
        }
        let (family, key) = match (text("kty")?, text("crv")) {
            ("RSA", _) => (KeyFamily::Rsa, rsa_key(text("n")?, text("e")?)?),
            ("EC", Some("P-256")) => (KeyFamily::P256, ec_key(text("x")?, text("y")?, 32)?),
            ("EC", Some("P-384")) => (KeyFamily::P384, ec_key(text("x")?, text("y")?, 48)?),
            ("OKP", Some("Ed25519")) => {
                let x = text("x")?;
                decode(x).filter(|x| x.len() == 32)?;
                (KeyFamily::Ed25519, DecodingKey::from_ed_components(x).ok()?)
            }
            _ => return None,
        };
        let named = match jwk.get("alg") {
            Some(name) => Some(algorithm(name.as_str()?)?),
            None => None,
        };
        let id = match jwk.get("kid") {
            Some(id) => Some(id.as_str()?.to_owned()),
            None => None,
        };
        Some(Self { id, algorithm: named, family, key })
    }

    /// Returns the one key of a set that a token with this header is verified with. `None` if there is none, or if several
    /// could be meant.
    pub(crate) fn find<'a>(
        keys: &'a [Self],
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> Option<&'a DecodingKey> {
        let mut fitting = keys.iter().filter(|key| {
            key.is_for(algorithm) && id.is_none_or(|id| key.id.as_deref() == Some(id))
        });
        let first = fitting.next()?;
        fitting.next().is_none().then_some(&first.key)
    }

    fn is_for(&self, algorithm: Algorithm) -> bool {
        let family = match algorithm {
            Algorithm::RS256
            | Algorithm::RS384
            | Algorithm::RS512
            | Algorithm::PS256
            | Algorithm::PS384
            | Algorithm::PS512 => KeyFamily::Rsa,
            Algorithm::ES256 => KeyFamily::P256,
            Algorithm::ES384 => KeyFamily::P384,
            Algorithm::EdDSA => KeyFamily::Ed25519,
            _ => return false,
        };
        self.family == family && self.algorithm.is_none_or(|named| named == algorithm)
    }
}

fn rsa_key(modulus: &str, exponent: &str) -> Option<DecodingKey> {
    let (n, e) = (decode(modulus)?, decode(exponent)?);
    let leading = n.first()?.leading_zeros() as usize;
    // A leading zero byte would be another spelling of the same key.
    let is_sized = leading < 8 && MODULUS_BITS.contains(&(n.len() * 8 - leading));
    let is_exponent = !e.is_empty() && e.len() <= 4 && e[0] != 0 && e[e.len() - 1] & 1 == 1;
    (is_sized && is_exponent).then(|| DecodingKey::from_rsa_raw_components(&n, &e))
}

fn ec_key(x: &str, y: &str, bytes: usize) -> Option<DecodingKey> {
    let is_sized = |text: &str| decode(text).is_some_and(|part| part.len() == bytes);
    (is_sized(x) && is_sized(y)).then(|| DecodingKey::from_ec_components(x, y).ok())?
}

fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn jwk(more: &Value) -> Value {
        let modulus = URL_SAFE_NO_PAD.encode([0xc1; 256]);
        let mut jwk = json!({ "kty": "RSA", "kid": "a", "n": modulus, "e": "AQAB" });
        jwk.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        jwk
    }

    fn count(keys: &[Value]) -> usize {
        parse_keys(json!({ "keys": keys }).to_string().as_bytes(), 64).unwrap().len()
    }

    #[test]
    fn only_public_keys_for_signatures_of_a_sound_size_are_taken() {
        let encode = |bytes: usize| URL_SAFE_NO_PAD.encode(vec![0xc1; bytes]);
        for sound in [
            json!({}),
            json!({ "use": "sig", "alg": "RS256" }),
            json!({ "key_ops": ["verify"] }),
            json!({ "n": encode(1024) }),
            json!({ "x5u": "https://evil.example", "x5t": 7 }),
        ] {
            assert_eq!(count(&[jwk(&sound)]), 1, "{sound}");
        }
        for unsound in [
            json!({ "use": "enc" }),
            json!({ "use": ["sig"] }),
            json!({ "key_ops": ["sign"] }),
            json!({ "key_ops": "verify" }),
            json!({ "alg": "HS256" }),
            json!({ "alg": "none" }),
            json!({ "kid": 7 }),
            json!({ "d": "AQAB" }),
            json!({ "n": encode(255) }),
            json!({ "n": encode(1025) }),
            json!({ "n": URL_SAFE_NO_PAD.encode([[0].as_slice(), &[0xc1; 256]].concat()) }),
            json!({ "n": "not base64url" }),
            json!({ "e": "AQ==" }),
            json!({ "e": "Ag" }),
            json!({ "kty": "oct", "k": "AQAB" }),
            json!({ "kty": "EC", "crv": "P-521" }),
            json!({ "kty": "EC", "crv": "P-256", "x": encode(31), "y": encode(32) }),
            json!({ "kty": "OKP", "crv": "X25519", "x": encode(32) }),
            json!({ "kty": "OKP", "crv": "Ed25519", "x": encode(31) }),
        ] {
            assert_eq!(count(&[jwk(&unsound)]), 0, "{unsound}");
        }
    }

    #[test]
    fn a_set_with_too_many_keys_or_a_duplicate_member_is_refused() {
        let keys = vec![jwk(&json!({})); 65];
        assert!(parse_keys(json!({ "keys": keys }).to_string().as_bytes(), 64).is_err());
        assert!(parse_keys(br#"{"keys":[],"keys":[]}"#, 64).is_err());
        assert!(parse_keys(b"{}", 64).is_err());
    }

    #[test]
    fn a_key_is_chosen_only_if_no_other_could_be_meant() {
        let keys = [jwk(&json!({})), jwk(&json!({ "kid": "b", "alg": "RS512" }))];
        let keys = parse_keys(json!({ "keys": keys }).to_string().as_bytes(), 64).unwrap();
        let found = |id, algorithm| VerificationKey::find(&keys, id, algorithm).is_some();
        assert!(found(Some("a"), Algorithm::RS256));
        assert!(found(Some("b"), Algorithm::RS512));
        assert!(!found(Some("b"), Algorithm::RS256));
        assert!(!found(Some("a"), Algorithm::ES256));
        assert!(found(None, Algorithm::RS256), "the other is for another algorithm");
        assert!(!found(None, Algorithm::RS512), "both could be meant");
    }
}
