//! Names that a config gives to issuers of users.

/// Words of rules about other callers, and names that are kept for other kinds of credentials.
const RESERVED: [&str; 13] = [
    "agent", "any", "cert", "client", "erased", "group", "key", "local", "owner", "person", "role",
    "service", "user",
];

/// Returns true if a text is a name for an issuer: lower-case letters, digits and hyphens, and none of the words of rules.
///
/// ```
/// use consort_core::is_issuer_name;
///
/// assert!(is_issuer_name("acme-2"));
/// for name in ["", "Acme", "a/b", "a:b", "role", "client", "local"] {
///     assert!(!is_issuer_name(name), "{name}");
/// }
/// ```
pub fn is_issuer_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=64).contains(&text.len()) && text.bytes().all(plain) && !RESERVED.contains(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    // T33.
    #[test]
    fn an_issuer_has_none_of_the_words_of_rules_for_its_name() {
        for name in RESERVED {
            assert!(!is_issuer_name(name), "{name}");
        }
        for name in ["a.b", "a b", "*", "a\n", "\u{430}cme", &"a".repeat(65)] {
            assert!(!is_issuer_name(name), "{name}");
        }
        assert!(is_issuer_name("0"));
    }
}
