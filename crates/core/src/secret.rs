//! Detection of secrets in text, by name and by form.
//!
//! Showing too little costs a glance at the file; showing too much costs a key. In doubt, hide.

use std::borrow::Cow;

/// Replacement of a secret.
pub const HIDDEN: &str = "***";

/// Words that name the kind of credential that follows; they are no secret and explain the rest.
const SCHEMES: [&str; 7] = ["bearer", "basic", "token", "digest", "apikey", "api-key", "bot"];

/// Prefixes of the keys of well known providers.
const PREFIXES: [&str; 22] = [
    "sk-",
    "sk_",
    "pk_",
    "rk_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "akia",
    "asia",
    "aiza",
    "ya29.",
    "eyj",
    "npm_",
    "hf_",
    "-----begin",
];

/// Names of secrets, as whole words.
const WORDS: [&str; 18] = [
    "key",
    "keys",
    "pass",
    "pwd",
    "auth",
    "authorization",
    "credential",
    "credentials",
    "cookie",
    "private",
    "pat",
    "dsn",
    "jwt",
    "bearer",
    "signature",
    "session",
    "otp",
    "pin",
];

/// Names of secrets, as the end of a word.
const ENDINGS: [&str; 6] = ["token", "secret", "secrets", "password", "passwd", "apikey"];

/// Length from which a run of letters and digits is no word.
const LONG_RUN: usize = 20;

/// Returns true if a name is that of a secret.
pub fn is_secret_name(name: &str) -> bool {
    words(name).any(|word| {
        let word = word.to_ascii_lowercase();
        WORDS.contains(&word.as_str()) || ENDINGS.iter().any(|ending| word.ends_with(ending))
    })
}

/// Splits a name such as `API_KEY`, `api-key` or `apiKey` into words.
fn words(name: &str) -> impl Iterator<Item = &str> {
    name.split(|c: char| !c.is_ascii_alphanumeric()).flat_map(|part| {
        let mut rest = part;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let bytes = rest.as_bytes();
            let end = (1..bytes.len())
                .find(|at| bytes[at - 1].is_ascii_lowercase() && bytes[*at].is_ascii_uppercase())
                .unwrap_or(bytes.len());
            let (word, after) = rest.split_at(end);
            rest = after;
            Some(word)
        })
    })
}

/// Returns true if a word of a longer text is the key of a well known provider.
pub fn is_known_key(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    let begins = |prefix: &&str| lower.starts_with(*prefix) && lower.len() >= prefix.len() + 8;
    // `asia-pacific` is none.
    PREFIXES.iter().any(begins) && lower.bytes().any(|byte| byte.is_ascii_digit())
}

/// Returns true if the value looks like a secret, whatever its name.
pub fn is_secret_value(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    if PREFIXES.iter().any(|prefix| lower.starts_with(prefix) && lower.len() >= prefix.len() + 8) {
        return true;
    }
    if let Some((_, rest)) = split_scheme(value) {
        return !rest.is_empty();
    }
    if let Some((before, _)) = value.split_once("://").and_then(|(_, rest)| rest.split_once('@')) {
        return before.contains(':') && !before.contains('/');
    }
    is_uuid(value)
        || without_digest(value).split(|c: char| !c.is_ascii_alphanumeric()).any(|run| {
            run.len() >= LONG_RUN
                && run.bytes().any(|byte| byte.is_ascii_digit())
                && run.bytes().any(|byte| byte.is_ascii_alphabetic())
        })
}

/// Removes the part after `@` of `image@sha256:…` and `package@COMMIT`: it identifies the version, and
/// should stay visible.
fn without_digest(value: &str) -> &str {
    let hex =
        |text: &str, length| text.len() == length && text.bytes().all(|b| b.is_ascii_hexdigit());
    match value.rsplit_once('@') {
        Some((name, digest))
            if hex(digest, 40)
                || digest.strip_prefix("sha256:").is_some_and(|rest| hex(rest, 64)) =>
        {
            name
        }
        _ => value,
    }
}

fn is_uuid(value: &str) -> bool {
    let lengths: Vec<usize> = value.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && value.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
}

/// Splits `Bearer abc` into `Bearer ` and `abc`.
fn split_scheme(value: &str) -> Option<(&str, &str)> {
    let end = value.find(' ')?;
    SCHEMES
        .iter()
        .any(|scheme| value[..end].eq_ignore_ascii_case(scheme))
        .then(|| value.split_at(end + 1))
}

/// Returns a secret in redacted form.
pub fn hide(literal: &str) -> Cow<'_, str> {
    match split_scheme(literal) {
        _ if literal.trim().is_empty() => Cow::Borrowed(literal),
        Some((scheme, "")) => Cow::Borrowed(scheme),
        Some((scheme, _)) => Cow::Owned(format!("{scheme}{HIDDEN}")),
        None => Cow::Borrowed(HIDDEN),
    }
}

/// Redacts a text if it looks like a secret, also after `--token=` and `X-Key: `.
pub fn hide_if_secret(literal: &str) -> Cow<'_, str> {
    if literal.contains("://") {
        return hide_in_url(literal);
    }
    let named = literal
        .find(['=', ':'])
        .filter(|at| is_secret_name(&literal[..*at]))
        .map(|at| literal.split_at(at + 1));
    if let Some((name, value)) = named {
        let (blank, value) = value.split_at(value.len() - value.trim_start().len());
        return Cow::Owned(format!("{name}{blank}{}", hide(value)));
    }
    if is_secret_value(literal) { hide(literal) } else { Cow::Borrowed(literal) }
}

/// Redacts a URL: credentials, keys in the query, and keys in the path.
pub fn hide_in_url(url: &str) -> Cow<'_, str> {
    let mut shown = String::with_capacity(url.len());
    let start = url.find("://").map_or(0, |at| at + 3);
    shown.push_str(&url[..start]);
    let host_end = url[start..].find(['/', '?', '#']).map_or(url.len(), |at| start + at);
    let (host, rest) = (&url[start..host_end], &url[host_end..]);
    match host.rsplit_once('@') {
        Some((_, host)) => shown.extend([HIDDEN, "@", host]),
        None => shown.push_str(host),
    }
    for piece in rest.split_inclusive(['/', '?', '#', '&']) {
        let end = piece.trim_end_matches(['/', '?', '#', '&']).len();
        let (value, delimiter) = piece.split_at(end);
        match value.split_once('=') {
            Some((name, value)) if is_secret_name(name) || is_secret_value(value) => {
                let value = if value.is_empty() { "" } else { HIDDEN };
                shown.extend([name, "=", value]);
            }
            None if is_secret_value(value) => shown.push_str(HIDDEN),
            _ => shown.push_str(value),
        }
        shown.push_str(delimiter);
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_known_by_its_name() {
        for name in [
            "TOKEN",
            "GITHUB_TOKEN",
            "apiKey",
            "X-API-Key",
            "ACCESSTOKEN",
            "Authorization",
            "db-password",
            "AWS_SECRET_ACCESS_KEY",
            "SENTRY_DSN",
            "Cookie",
            "--api-key",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in
            ["KEYBOARD", "MAX_TOKENS", "AUTHOR", "PATH", "NODE_ENV", "keyed", "", "X-Region"]
        {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn a_key_is_known_in_the_middle_of_a_text() {
        assert!(
            ["ghp_0123456789abcdef", "AKIA0123456789ABCDEF"].iter().all(|key| is_known_key(key))
        );
        assert!(
            !["asia-pacific", "sk-1", "weather", "0123456789abcdef0123456789abcdef"]
                .iter()
                .any(|word| is_known_key(word))
        );
    }

    #[test]
    fn a_secret_is_known_by_its_looks() {
        for value in [
            "sk-proj-abcdefgh12",
            "ghp_0123456789ab",
            "eyJhbGciOiJIUzI1NiJ9.e30",
            "550e8400-e29b-41d4-a716-446655440000",
            "postgres://me:hunter2@db/x",
            "Bearer x",
            "a3f5c8e9d2b14f6a8c7e",
        ] {
            assert!(is_secret_value(value), "{value}");
        }
        for value in [
            "production",
            "3000",
            "/home/me/projects",
            "@modelcontextprotocol/server-filesystem",
            "mcp-server-git==2025.11.25",
            "https://mcp.example.com/mcp",
            "Bearer ",
            "sk-",
            "files@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "server@0123456789abcdef0123456789abcdef01234567",
        ] {
            assert!(!is_secret_value(value), "{value}");
        }
    }

    #[test]
    fn what_explains_a_secret_stays() {
        for (literal, shown) in [
            ("Bearer abc", "Bearer ***"),
            ("--token=abc", "--token=***"),
            ("Authorization: Bearer abc", "Authorization: Bearer ***"),
            ("Authorization: Bearer ", "Authorization: Bearer "),
            ("--port=3000", "--port=3000"),
            ("-y", "-y"),
            ("postgres://me:hunter2@db/x", "postgres://***@db/x"),
            (
                "https://x.example/mcp?api_key=abc&region=eu",
                "https://x.example/mcp?api_key=***&region=eu",
            ),
            ("https://x.example/s/a3f5c8e9d2b14f6a8c7e/mcp", "https://x.example/s/***/mcp"),
            ("https://x.example/mcp", "https://x.example/mcp"),
        ] {
            assert_eq!(hide_if_secret(literal), shown);
        }
        assert_eq!(hide("hunter2"), "***");
        assert_eq!(hide(" "), " ");
    }
}
