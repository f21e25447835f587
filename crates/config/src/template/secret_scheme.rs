//! Schemes of secret references: those that Consort knows, and those of other programs.

use crate::template::{InvalidTemplate, ValueReference};

/// Schemes by which other programs refer to secret stores. A value that begins with one of them would reach the server
/// as it is, instead of the secret. Only lower case counts: `KEYRING:…` and `FILE:…` are values of Kerberos.
const FOREIGN: [&str; 36] = [
    "1password",
    "akeyless",
    "aws-secretsmanager",
    "aws-sm",
    "aws-ssm",
    "awssm",
    "azure-keyvault",
    "azure-kv",
    "azurekv",
    "berglas",
    "bitwarden",
    "bw",
    "bws",
    "conjur",
    "doppler",
    "exec",
    "gcp-secretmanager",
    "gcp-sm",
    "gcpsm",
    "gopass",
    "gsm",
    "infisical",
    "keepass",
    "keepassxc",
    "keychain",
    "keyvault",
    "kwallet",
    "lastpass",
    "libsecret",
    "lpass",
    "op",
    "pass",
    "secret-service",
    "secretsmanager",
    "sops",
    "vault",
];

/// The scheme of a literal text, which is not searched for references.
pub(crate) const LITERAL: &str = "literal:";

/// A value that is a secret reference as a whole.
pub(crate) fn parse(text: &str) -> Option<Result<ValueReference, InvalidTemplate>> {
    match text.split_once(':')? {
        ("keyring", entry) => Some(keyring(entry)),
        ("cmd", line) => Some(program(line)),
        _ => None,
    }
}

/// Reads `SERVICE/NAME`.
pub(crate) fn keyring(entry: &str) -> Result<ValueReference, InvalidTemplate> {
    match entry.split_once('/') {
        Some((service, name)) if !service.is_empty() && !name.is_empty() => {
            Ok(ValueReference::Keyring { service: service.to_owned(), name: name.to_owned() })
        }
        _ => Err(InvalidTemplate::Keyring),
    }
}

/// Reads a command line.
pub(crate) fn program(line: &str) -> Result<ValueReference, InvalidTemplate> {
    let words = split_words(line).ok_or(InvalidTemplate::Quote)?;
    if words.first().is_none_or(String::is_empty) {
        return Err(InvalidTemplate::Empty);
    }
    Ok(ValueReference::Program(words))
}

/// Returns the scheme of another program's secret reference. Blanks after the colon, and paths of Windows, make a
/// value something else.
pub(crate) fn foreign(text: &str) -> Option<&'static str> {
    let (scheme, rest) = text.split_once(':')?;
    if rest.is_empty() || rest.starts_with(|c: char| c.is_whitespace() || c == '\\') {
        return None;
    }
    FOREIGN.into_iter().find(|known| *known == scheme)
}

/// Splits a command line at blanks. `'…'` is literal, in `"…"` a backslash escapes `"` and itself, elsewhere any
/// character. Nothing is expanded. `None` if a quote or an escape has no end.
fn split_words(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            c if c.is_whitespace() => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next()? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next()? {
                        '"' => break,
                        '\\' => match letters.next()? {
                            c @ ('"' | '\\') => word.push(c),
                            c => word.extend(['\\', c]),
                        },
                        c => word.push(c),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(letters.next()?),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}

/// Joins words to a command line that is split into them again.
pub(crate) fn join_words(words: &[String]) -> String {
    let is_plain = |word: &&String| {
        let plain = |c: char| !c.is_whitespace() && !['\'', '"', '\\', '{', '}'].contains(&c);
        !word.is_empty() && word.chars().all(plain)
    };
    let quote = |word: &String| match Some(word).filter(is_plain) {
        Some(word) => word.clone(),
        None => format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\"")),
    };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_split_without_a_shell() {
        for (line, words) in [
            ("op read op://a/b", &["op", "read", "op://a/b"][..]),
            ("  a  'b  c' \"d e\" ", &["a", "b  c", "d e"]),
            (r#"a "x\"y\\z\n" b\ c '\'"#, &["a", r#"x"y\z\n"#, "b c", "\\"]),
            ("a '' x$HOME `b` *", &["a", "", "x$HOME", "`b`", "*"]),
            ("", &[]),
        ] {
            let split = split_words(line).unwrap();
            assert_eq!(split, words, "{line}");
            assert_eq!(split_words(&join_words(&split)).unwrap(), words, "{line}");
        }
        for line in ["a 'b", "a \"b", "a \\", "\"a\\"] {
            assert_eq!(split_words(line), None, "{line}");
        }
    }

    #[test]
    fn only_references_of_known_secret_stores_are_foreign() {
        for text in [
            "op://Private/GitHub/token",
            "vault:secret/data/x#KEY",
            "pass:mail/me",
            "aws-sm:x",
            "exec:x",
        ] {
            assert!(foreign(text).is_some(), "{text}");
        }
        for text in [
            "postgres://me:pw@host/db",
            "https://x.example",
            "C:\\Users\\me",
            "op:\\x",
            "user:pass",
            "pass: a note",
            "vault:",
            "KEYRING:persistent:1000",
            "FILE:/tmp/krb5cc_1000",
            "arn:aws:secretsmanager:eu-west-1:1:secret:x",
            "sha256:00",
            "top:secret",
            "localhost:8080",
            "plain",
        ] {
            assert_eq!(foreign(text), None, "{text}");
        }
        assert!(FOREIGN.is_sorted());
    }
}
