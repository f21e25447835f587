//! ID tokens: read strictly, verified, and checked against the sign-in that they answer.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, Validation, decode};
use serde_json::{Map, Value};

use super::json_web_key::{VerificationKey, algorithm};
use super::signature_check;
use super::strict_json::{UniqueJson, parse_object};

/// Seconds by which the clocks of the issuer and the gateway may differ.
pub(crate) const CLOCK_SKEW: u64 = 60;

/// The expected contents of an ID token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdTokenExpectation<'a> {
    /// The issuer identifier, byte by byte.
    pub(crate) issuer: &'a str,
    /// Our client id at the issuer.
    pub(crate) client_id: &'a str,
    /// The nonce of the sign-in; absent after a refresh, where the token need not have one.
    pub(crate) nonce: Option<&'a str>,
    /// Maximum age of the sign-in in seconds, if one was requested.
    pub(crate) max_age: Option<u64>,
    /// The algorithms that the issuer announces.
    pub(crate) algorithms: &'a [Algorithm],
    /// Maximum bytes of the token.
    pub(crate) most_bytes: usize,
    /// The time, in seconds since 1970.
    pub(crate) now: u64,
}

/// The reason why an ID token is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum IdTokenError {
    /// No key of the issuer fits. A new one may have been added.
    #[error("no key of the issuer verifies the ID token")]
    UnknownKey,
    /// Anything else.
    #[error("invalid ID token: {0}")]
    Invalid(String),
}

impl From<&str> for IdTokenError {
    fn from(reason: &str) -> Self {
        Self::Invalid(reason.to_owned())
    }
}

/// The header of a token, as far as it counts. `jku`, `x5u`, `jwk` and `x5c` are never looked at.
struct TokenHeader {
    algorithm: Algorithm,
    key_id: Option<String>,
}

/// Returns the claims of a valid ID token.
pub(crate) fn verify(
    token: &str,
    keys: &[VerificationKey],
    expected: &IdTokenExpectation<'_>,
) -> Result<Map<String, Value>, IdTokenError> {
    if token.len() > expected.most_bytes {
        return Err(format!("it has more than {} bytes", expected.most_bytes).as_str().into());
    }
    let header = read_header(token)?;
    if !expected.algorithms.contains(&header.algorithm) {
        let reason = format!("the issuer does not announce the algorithm {:?}", header.algorithm);
        return Err(IdTokenError::Invalid(reason));
    }
    let key = VerificationKey::find(keys, header.key_id.as_deref(), header.algorithm)
        .ok_or(IdTokenError::UnknownKey)?;
    signature_check::install();
    let mut validation = Validation::new(header.algorithm);
    // By our own clock and in our own words below.
    validation.validate_exp = false;
    validation.required_spec_claims.clear();
    validation.set_issuer(&[expected.issuer]);
    validation.set_audience(&[expected.client_id]);
    let decoded = decode::<UniqueJson>(token, key, &validation)
        .map_err(|error| IdTokenError::Invalid(error.to_string()))?;
    let Value::Object(claims) = decoded.claims.0 else {
        return Err("its claims are no object".into());
    };
    check_claims(&claims, expected)?;
    Ok(claims)
}

fn read_header(token: &str) -> Result<TokenHeader, IdTokenError> {
    let parts: Vec<&str> = token.split('.').collect();
    let [header, _, signature] = parts.as_slice() else {
        return Err("it does not consist of three parts".into());
    };
    if signature.is_empty() {
        return Err("it is not signed".into());
    }
    let header = URL_SAFE_NO_PAD.decode(header).map_err(|_| "its header is not base64url")?;
    let header = parse_object(&header)
        .map_err(|error| IdTokenError::Invalid(format!("its header is not JSON: {error}")))?;
    // Extensions that change the meaning of the rest, and encryption.
    if let Some(name) = ["crit", "b64", "enc", "zip"].iter().find(|it| header.contains_key(**it)) {
        return Err(format!("its header has `{name}`").as_str().into());
    }
    let text = |name: &str| match header.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(IdTokenError::Invalid(format!("`{name}` of its header is no string"))),
    };
    // An access token in the form of a JWT has a type of its own.
    if !text("typ")?.is_none_or(|kind| kind.eq_ignore_ascii_case("JWT")) {
        return Err("its type is not `JWT`".into());
    }
    let name = text("alg")?.ok_or("it names no algorithm")?;
    let algorithm = algorithm(name).ok_or_else(|| {
        IdTokenError::Invalid(format!("unsupported algorithm `{}`", name.escape_debug()))
    })?;
    Ok(TokenHeader { algorithm, key_id: text("kid")?.map(str::to_owned) })
}

fn check_claims(
    claims: &Map<String, Value>,
    expected: &IdTokenExpectation<'_>,
) -> Result<(), IdTokenError> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    if text("iss") != Some(expected.issuer) {
        return Err("it is of another issuer".into());
    }
    check_audience(claims, expected.client_id)?;
    if !text("sub").is_some_and(is_subject) {
        return Err("its subject is missing, or not 1 to 255 ASCII characters".into());
    }
    let time = |name: &str| match claims.get(name) {
        None => Ok(None),
        Some(value) => seconds(value)
            .map(Some)
            .ok_or_else(|| IdTokenError::Invalid(format!("`{name}` is not a time in seconds"))),
    };
    let now = expected.now;
    let expiry = time("exp")?.ok_or("it has no expiry")?;
    if expiry + CLOCK_SKEW <= now {
        return Err(format!("it expired {} s ago", now - expiry).as_str().into());
    }
    let issued = time("iat")?.ok_or("it has no time of issue")?;
    if issued > now + CLOCK_SKEW || time("nbf")?.is_some_and(|from| from > now + CLOCK_SKEW) {
        return Err("it is not valid yet: compare the clocks of the issuer and this machine".into());
    }
    if let Some(nonce) = expected.nonce
        && text("nonce") != Some(nonce)
    {
        return Err("its nonce is not that of this sign-in".into());
    }
    if let Some(most) = expected.max_age {
        let signed_in = time("auth_time")?.ok_or("it does not say when the user signed in")?;
        if signed_in + most + CLOCK_SKEW < now {
            return Err("the user signed in too long ago".into());
        }
    }
    Ok(())
}

fn check_audience(claims: &Map<String, Value>, client_id: &str) -> Result<(), IdTokenError> {
    let others = match claims.get("aud") {
        Some(Value::String(audience)) if audience == client_id => false,
        Some(Value::Array(audiences)) if audiences.iter().any(|it| it == client_id) => {
            audiences.len() > 1
        }
        _ => return Err("it is for another client".into()),
    };
    match claims.get("azp") {
        None if others => Err("it is for several clients and was issued to none".into()),
        Some(party) if party != client_id => Err("it was issued to another client".into()),
        _ => Ok(()),
    }
}

/// Returns true for a subject as `OpenID` Connect has them.
pub(crate) fn is_subject(text: &str) -> bool {
    !text.is_empty() && text.len() <= 255 && text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

/// Seconds since 1970, whole or not.
fn seconds(value: &Value) -> Option<u64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and 2^53, where each has an exact value"
    )]
    let whole = |number: f64| (0.0..9.0e15).contains(&number).then_some(number as u64);
    value
        .as_u64()
        .filter(|number| *number < 9_000_000_000_000_000)
        .or_else(|| whole(value.as_f64()?))
}

#[cfg(test)]
pub(crate) mod tests {
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
    use serde_json::json;

    use super::super::json_web_key::parse_keys;
    use super::*;

    const NOW: u64 = 1_800_000_000;

    /// An issuer with a key of each curve.
    pub(crate) struct TestIssuer {
        p256: EcdsaKeyPair,
        ed25519: Ed25519KeyPair,
    }

    impl TestIssuer {
        pub(crate) fn new() -> Self {
            let random = SystemRandom::new();
            let kind = &ECDSA_P256_SHA256_FIXED_SIGNING;
            let p256 = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
            let ed25519 = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
            Self {
                p256: EcdsaKeyPair::from_pkcs8(kind, p256.as_ref(), &random).unwrap(),
                ed25519: Ed25519KeyPair::from_pkcs8(ed25519.as_ref()).unwrap(),
            }
        }

        pub(crate) fn jwk_set(&self) -> Value {
            let (x, y) = self.p256.public_key().as_ref()[1..].split_at(32);
            let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
            json!({ "keys": [
                { "kty": "EC", "crv": "P-256", "kid": "ec", "x": encode(x), "y": encode(y) },
                { "kty": "OKP", "crv": "Ed25519", "kid": "ed", "alg": "EdDSA", "use": "sig",
                  "x": encode(self.ed25519.public_key().as_ref()) },
                { "kty": "oct", "kid": "secret", "k": encode(b"secret") },
            ] })
        }

        fn keys(&self) -> Vec<VerificationKey> {
            parse_keys(self.jwk_set().to_string().as_bytes(), 64).unwrap()
        }

        /// A token with this header and these claims, each as text.
        pub(crate) fn sign(&self, header: &str, claims: &str) -> String {
            let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
            let message = format!("{}.{}", encode(header.as_bytes()), encode(claims.as_bytes()));
            let signature = if header.contains("EdDSA") {
                self.ed25519.sign(message.as_bytes()).as_ref().to_vec()
            } else {
                let signed = self.p256.sign(&SystemRandom::new(), message.as_bytes()).unwrap();
                signed.as_ref().to_vec()
            };
            format!("{message}.{}", encode(&signature))
        }
    }

    fn expected() -> IdTokenExpectation<'static> {
        IdTokenExpectation {
            issuer: "https://idp.example",
            client_id: "gateway",
            nonce: Some("n"),
            max_age: None,
            algorithms: &[Algorithm::ES256, Algorithm::EdDSA, Algorithm::RS256],
            most_bytes: 16 << 10,
            now: NOW,
        }
    }

    fn claims() -> Value {
        json!({
            "iss": "https://idp.example", "aud": "gateway", "sub": "u1", "nonce": "n",
            "exp": NOW + 300, "iat": NOW,
        })
    }

    const HEADER: &str = r#"{"alg":"ES256","kid":"ec","typ":"JWT"}"#;

    fn check(issuer: &TestIssuer, header: &str, claims: &str) -> Result<(), String> {
        let token = issuer.sign(header, claims);
        verify(&token, &issuer.keys(), &expected()).map(drop).map_err(|error| error.to_string())
    }

    #[test]
    fn a_valid_token_yields_its_claims() {
        let issuer = TestIssuer::new();
        for header in [HEADER, r#"{"alg":"EdDSA","kid":"ed"}"#, r#"{"alg":"ES256"}"#] {
            let token = issuer.sign(header, &claims().to_string());
            let read = verify(&token, &issuer.keys(), &expected()).unwrap();
            assert_eq!(Value::Object(read), claims(), "{header}");
        }
        let several = json!({ "aud": ["gateway", "other"], "azp": "gateway" });
        for (name, value) in [
            ("aud", json!(["gateway"])),
            ("azp", json!("gateway")),
            ("exp", json!(NOW - 59)),
            ("iat", json!(NOW + 60)),
            ("exp", json!(1_800_000_300.5)),
            ("nbf", json!(NOW + 60)),
        ] {
            let mut claims = claims();
            claims[name] = value;
            assert_eq!(check(&issuer, HEADER, &claims.to_string()), Ok(()), "{claims}");
        }
        let mut claims = claims();
        claims.as_object_mut().unwrap().extend(several.as_object().unwrap().clone());
        assert_eq!(check(&issuer, HEADER, &claims.to_string()), Ok(()));
    }

    // T1.
    #[test]
    fn a_token_is_verified_only_with_a_published_key_and_an_announced_algorithm() {
        let issuer = TestIssuer::new();
        let claims = claims().to_string();
        for header in [
            r#"{"alg":"none"}"#,
            r#"{"alg":"None","kid":"ec"}"#,
            r#"{"alg":"HS256","kid":"ec"}"#,
            r#"{"alg":"HS256","kid":"secret"}"#,
            r#"{"alg":"ES512","kid":"ec"}"#,
            r#"{"alg":"ES256K","kid":"ec"}"#,
            r#"{"alg":"es256","kid":"ec"}"#,
            r#"{"kid":"ec"}"#,
            r#"{"alg":["ES256"],"kid":"ec"}"#,
        ] {
            let refused = check(&issuer, header, &claims).unwrap_err();
            assert!(refused.starts_with("invalid ID token: "), "{header}: {refused}");
        }
        for header in [
            r#"{"alg":"ES256","kid":"ed"}"#,
            r#"{"alg":"EdDSA","kid":"ec"}"#,
            r#"{"alg":"RS256","kid":"ec"}"#,
            r#"{"alg":"ES256","kid":"../../dev/null"}"#,
            r#"{"alg":"ES256","kid":"EC"}"#,
        ] {
            let refused = check(&issuer, header, &claims).unwrap_err();
            assert_eq!(refused, "no key of the issuer verifies the ID token", "{header}");
        }
        // Where keys are looked for is never taken from a token.
        let evil = TestIssuer::new();
        let key = evil.jwk_set()["keys"][0].clone();
        let header = json!({ "alg": "ES256", "kid": "ec", "jku": "https://evil.example/jwks",
            "x5u": "https://evil.example/x", "jwk": key });
        let token = evil.sign(&header.to_string(), &claims);
        assert!(verify(&token, &issuer.keys(), &expected()).is_err());
        assert_eq!(check(&issuer, &header.to_string(), &claims), Ok(()));
        // An algorithm that the issuer does not announce.
        let only_rsa = IdTokenExpectation { algorithms: &[Algorithm::RS256], ..expected() };
        let token = issuer.sign(HEADER, &claims);
        assert!(verify(&token, &issuer.keys(), &only_rsa).is_err());
    }

    #[test]
    fn a_changed_token_and_other_forms_of_tokens_are_refused() {
        let issuer = TestIssuer::new();
        let (token, keys) = (issuer.sign(HEADER, &claims().to_string()), issuer.keys());
        for at in 0..token.len() {
            let mut changed = token.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert!(verify(&changed, &keys, &expected()).is_err(), "{at}");
        }
        for other in [
            String::new(),
            ".".to_owned(),
            "..".to_owned(),
            format!("{token}."),
            format!("{token}.x.y"),
            token.rsplit_once('.').unwrap().0.to_owned(),
            format!("{}.", token.rsplit_once('.').unwrap().0),
            format!("{token}="),
            format!(" {token}"),
        ] {
            assert!(verify(&other, &keys, &expected()).is_err(), "{other}");
        }
        for member in ["crit", "b64", "enc", "zip"] {
            let header = format!(r#"{{"alg":"ES256","kid":"ec","{member}":["x"]}}"#);
            let refused = check(&issuer, &header, &claims().to_string()).unwrap_err();
            assert_eq!(refused, format!("invalid ID token: its header has `{member}`"));
        }
        for header in [
            r#"{"alg":"ES256","kid":"ec","typ":"at+jwt"}"#,
            r#"{"alg":"ES256","kid":"ec","alg":"ES256"}"#,
            r#"{"alg":"ES256","kid":"ec","kid":"ec"}"#,
            r#"["ES256"]"#,
        ] {
            assert!(check(&issuer, header, &claims().to_string()).is_err(), "{header}");
        }
        let mut long = claims();
        long["x"] = "y".repeat(16 << 10).into();
        let refused = check(&issuer, HEADER, &long.to_string()).unwrap_err();
        assert_eq!(refused, "invalid ID token: it has more than 16384 bytes");
    }

    // T2.
    #[test]
    fn claims_of_another_sign_in_client_issuer_or_time_are_refused() {
        let issuer = TestIssuer::new();
        for (name, value, told) in [
            ("iss", json!("https://idp.example/"), "InvalidIssuer"),
            ("iss", json!("https://IDP.example"), "InvalidIssuer"),
            ("iss", json!(["https://idp.example"]), "it is of another issuer"),
            ("iss", Value::Null, "it is of another issuer"),
            ("aud", json!("other"), "InvalidAudience"),
            ("aud", json!([]), "InvalidAudience"),
            ("aud", Value::Null, "it is for another client"),
            (
                "aud",
                json!(["gateway", "other"]),
                "it is for several clients and was issued to none",
            ),
            ("azp", json!("other"), "it was issued to another client"),
            ("azp", json!(7), "it was issued to another client"),
            ("sub", Value::Null, "its subject is missing"),
            ("sub", json!(""), "its subject is missing"),
            ("sub", json!("\u{e4}da"), "its subject is missing"),
            ("sub", json!("a".repeat(256)), "its subject is missing"),
            ("exp", Value::Null, "it has no expiry"),
            ("exp", json!("9999999999"), "`exp` is not a time in seconds"),
            ("exp", json!(-1), "`exp` is not a time in seconds"),
            ("exp", json!(NOW - 60), "it expired 60 s ago"),
            ("iat", Value::Null, "it has no time of issue"),
            ("iat", json!(NOW + 61), "it is not valid yet"),
            ("nbf", json!(NOW + 61), "it is not valid yet"),
            ("nonce", json!("m"), "its nonce is not that of this sign-in"),
            ("nonce", Value::Null, "its nonce is not that of this sign-in"),
        ] {
            let mut claims = claims();
            match value {
                Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
                value => claims[name] = value,
            }
            let refused = check(&issuer, HEADER, &claims.to_string()).unwrap_err();
            assert!(refused.contains(told), "{claims}: {refused}");
        }
        let twice = claims().to_string().replacen('{', r#"{"sub":"u2","#, 1);
        assert!(check(&issuer, HEADER, &twice).unwrap_err().contains("occurs twice"));
    }

    #[test]
    fn a_sign_in_that_must_be_recent_says_when_it_was() {
        let issuer = TestIssuer::new();
        let check = |auth_time: Option<u64>| {
            let mut claims = claims();
            if let Some(time) = auth_time {
                claims["auth_time"] = time.into();
            }
            let token = issuer.sign(HEADER, &claims.to_string());
            let expected = IdTokenExpectation { max_age: Some(600), ..expected() };
            verify(&token, &issuer.keys(), &expected).is_ok()
        };
        assert!(check(Some(NOW - 600)));
        assert!(!check(Some(NOW - 661)));
        assert!(!check(None));
    }
}
