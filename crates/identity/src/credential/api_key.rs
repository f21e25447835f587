//! API keys: a prefix and an id that may be shown, a secret, and a check sum by which scanners of secrets know them.

use crate::digest::{digest_of, random};

/// Prefix of API keys.
pub(crate) const PREFIX: &str = "ck_";

const ID: usize = 8;
const SECRET: usize = 43;
const SUM: usize = 6;

/// Characters of ids, secrets and sums.
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// A new API key. Only its digest is kept.
pub(crate) struct NewApiKey {
    pub(crate) id: String,
    /// The whole key, shown once.
    pub(crate) text: zeroize::Zeroizing<String>,
    pub(crate) digest: String,
}

impl std::fmt::Debug for NewApiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewApiKey").field("id", &self.id).finish_non_exhaustive()
    }
}

impl NewApiKey {
    /// Makes a random key.
    pub(crate) fn random() -> Self {
        let id = random_text::<ID>();
        // 43 characters of 62 have 256 bits.
        let body = zeroize::Zeroizing::new(format!("{PREFIX}{id}_{}", random_text::<SECRET>()));
        let text = zeroize::Zeroizing::new(format!("{}{}", *body, sum(&body)));
        Self { digest: digest_of(&text), id, text }
    }
}

/// Returns the id of a text in the form of a key, with a right sum.
pub(crate) fn id_of(text: &str) -> Option<&str> {
    let rest = text.strip_prefix(PREFIX)?;
    let is_plain = rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if rest.len() != ID + 1 + SECRET + SUM || !is_plain || rest.as_bytes()[ID] != b'_' {
        return None;
    }
    let (body, given) = text.split_at(text.len() - SUM);
    (sum(body) == given).then_some(&rest[..ID])
}

/// Random characters, each as likely as any other.
fn random_text<const N: usize>() -> String {
    let mut text = String::with_capacity(N);
    while text.len() < N {
        let fair = random::<64>().into_iter().filter(|byte| *byte < 248);
        let left = N - text.len();
        text.extend(fair.take(left).map(|byte| char::from(ALPHABET[usize::from(byte % 62)])));
    }
    text
}

/// CRC-32 in six characters.
fn sum(text: &str) -> String {
    let mut crc = u32::MAX;
    for byte in text.bytes() {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        }
    }
    let mut rest = !crc;
    let mut digits = [b'0'; SUM];
    for digit in digits.iter_mut().rev() {
        *digit = ALPHABET[(rest % 62) as usize];
        rest /= 62;
    }
    digits.into_iter().map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_known_by_its_form_and_its_sum() {
        let key = NewApiKey::random();
        assert_eq!(key.text.len(), 61);
        assert_eq!(id_of(&key.text), Some(key.id.as_str()));
        assert_eq!(key.digest, digest_of(&key.text));
        for at in 3..key.text.len() {
            let mut changed = key.text.as_bytes().to_vec();
            changed[at] = if changed[at] == b'0' { b'1' } else { b'0' };
            assert_eq!(id_of(&String::from_utf8(changed).unwrap()), None, "{at}");
        }
        for text in ["", "ck_", &key.text[1..], &key.text[..60], "ck_\u{e4}"] {
            assert_eq!(id_of(text), None, "{text}");
        }
        assert!(!format!("{key:?}").contains(&key.text[12..40]));
    }

    #[test]
    fn the_sum_is_crc_32() {
        // The check value of CRC-32, 0xcbf43926, in base 62.
        assert_eq!(sum("123456789"), "3jZRME");
    }
}
