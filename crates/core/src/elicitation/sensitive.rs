//! Detection of form fields that look like secrets, by their names and labels.

use serde_json::Value;

/// Phrases matched anywhere in a text without its spaces and punctuation.
const PHRASES: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "passwort",
    "kennwort",
    "contrasena",
    "motdepasse",
    "пароль",
    "密码",
    "密碼",
    "パスワード",
    "비밀번호",
    "secret",
    "apikey",
    "accesskey",
    "privatekey",
    "signingkey",
    "encryptionkey",
    "sshkey",
    "token",
    "credential",
    "seedphrase",
    "recoveryphrase",
    "recoverycode",
    "backupcode",
    "mnemonic",
    "onetimecode",
    "verificationcode",
    "securitycode",
    "authcode",
    "twofactor",
    "socialsecurity",
    "creditcard",
    "cardnumber",
    "bearer",
    "jsessionid",
    "sessioncookie",
];

/// Words matched as a whole.
const WORDS: &[&str] = &[
    "pass", "pwd", "pw", "pin", "pins", "otp", "totp", "mfa", "2fa", "cvv", "cvv2", "cvc", "ssn",
    "tan", "senha", "psk", "jwt", "pat",
];

/// Returns true if a field looks like a secret: by its name, title, description or format.
pub(super) fn field(name: &str, field: &Value) -> bool {
    let kind = field["type"].as_str().unwrap_or("string");
    if kind == "boolean" {
        return false;
    }
    if field["format"].as_str() == Some("password") || field["writeOnly"].as_bool() == Some(true) {
        return true;
    }
    let label = |key: &str| field[key].as_str().unwrap_or_default().to_owned();
    // A number of tokens is no token.
    if kind == "integer" || kind == "number" {
        return [name, &label("title")].into_iter().any(has_word);
    }
    [name, &label("title"), &label("description")]
        .into_iter()
        .any(|text| mentioned(text) || has_word(text))
}

/// Returns true if a text mentions a secret.
pub(super) fn mentioned(text: &str) -> bool {
    let folded: String = text.chars().filter_map(folded).filter(|c| c.is_alphanumeric()).collect();
    let latin: String = folded.chars().map(latin).collect();
    PHRASES.iter().any(|phrase| folded.contains(phrase) || latin.contains(phrase))
}

fn has_word(text: &str) -> bool {
    words(text).iter().any(|word| WORDS.contains(&word.as_str()))
}

/// Splits a text into words, also one written `likeThis` or `like_this`.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut lower = false;
    for c in text.chars() {
        if c.is_uppercase() && lower || !c.is_alphanumeric() {
            words.push(String::new());
        }
        lower = c.is_lowercase() || c.is_ascii_digit();
        if c.is_alphanumeric() {
            words.last_mut().expect("one is always there").extend(c.to_lowercase());
        }
    }
    words
}

/// Normalizes a letter: lower case, width, accents and letters that look like it. Invisible ones are
/// dropped.
fn folded(c: char) -> Option<char> {
    let c = match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0)?,
        '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{206f}' | '\u{ad}' | '\u{feff}' => return None,
        c => c,
    };
    let c = c.to_lowercase().next()?;
    Some(match c {
        '@' | '4' | 'à' | 'á' | 'â' | 'ä' | 'å' => 'a',
        '3' | 'è' | 'é' | 'ê' | 'ë' => 'e',
        '1' | '!' | 'ì' | 'í' | 'î' | 'ï' => 'i',
        '0' | 'ò' | 'ó' | 'ô' | 'ö' => 'o',
        '$' | '5' => 's',
        'ñ' => 'n',
        'ù' | 'ú' | 'û' | 'ü' => 'u',
        c => c,
    })
}

/// Returns the Latin letter that a Cyrillic or Greek one looks like.
fn latin(c: char) -> char {
    match c {
        'а' | 'α' => 'a',
        'е' | 'ε' => 'e',
        'о' | 'ο' => 'o',
        'р' | 'ρ' => 'p',
        'с' => 'c',
        'к' | 'κ' => 'k',
        'т' | 'τ' => 't',
        'у' => 'y',
        'і' | 'ι' => 'i',
        'ѕ' => 's',
        'п' => 'n',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_seen_in_many_spellings() {
        let text = json!({ "type": "string" });
        for name in [
            "password",
            "Password",
            "user_password",
            "userPassword",
            "PASSWD",
            "pass",
            "pwd",
            "pass-phrase",
            "p@ssw0rd",
            "pаsswоrd",
            "tоken",
            "pass word",
            "pass\u{200b}word",
            "ｐａｓｓｗｏｒｄ",
            "apiKey",
            "API_KEY",
            "api key",
            "x-api-key",
            "access_token",
            "refreshToken",
            "client-secret",
            "private key",
            "ssh_key",
            "pin",
            "PIN",
            "card pin",
            "cvv",
            "CVC",
            "ssn",
            "socialSecurityNumber",
            "otp",
            "2fa",
            "mfa",
            "recovery phrase",
            "creditCard",
            "Passwort",
            "contraseña",
            "mot de passe",
            "пароль",
            "密码",
            "credentials",
        ] {
            assert!(field(name, &text), "{name}");
            assert!(field("answer", &json!({ "type": "string", "title": name })), "{name}");
        }
        assert!(field("x", &json!({ "type": "string", "format": "password" })));
        assert!(field("x", &json!({ "description": "Your passphrase, please" })));
        assert!(field("pin", &json!({ "type": "integer" })));
        for (name, field_) in [
            ("name", &text),
            ("city", &text),
            ("shipping", &text),
            ("opinion", &text),
            ("compass", &text),
            ("passenger", &text),
            ("key", &text),
            ("max_tokens", &json!({ "type": "integer" })),
            ("show_password", &json!({ "type": "boolean" })),
        ] {
            assert!(!field(name, field_), "{name}");
        }
    }
}
