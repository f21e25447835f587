//! Redaction of secrets before anything is written.

use std::collections::HashMap;

use consort_core::secret::{HIDDEN, is_known_key, is_secret_name};
use parking_lot::Mutex;
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Shortest secret that is searched for: a shorter one occurs in many words.
const SHORTEST: usize = 4;

/// Removes secrets: given ones wherever they occur, keys of well-known providers, and values with the name of a secret,
/// also in JSON within a string.
///
/// Values hidden by their name are numbered, so that two of them stay distinct: `***1`, `***2`.
#[derive(Default)]
pub struct Redactor {
    /// Longest first: one may be part of another.
    secrets: Vec<SecretString>,
    numbers: Mutex<HashMap<String, usize>>,
}

impl Redactor {
    /// Creates a redactor of these secrets.
    pub fn new(secrets: impl IntoIterator<Item = SecretString>) -> Self {
        let bare = |secret: SecretString| {
            let text = secret.expose_secret().trim();
            SecretString::from(text.strip_prefix("Bearer ").unwrap_or(text).to_owned())
        };
        let mut secrets: Vec<SecretString> = secrets.into_iter().map(bare).collect();
        secrets.retain(|secret| secret.expose_secret().len() >= SHORTEST);
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.expose_secret().len()));
        Self { secrets, numbers: Mutex::default() }
    }

    /// Returns a text without the given secrets and without well-known keys.
    pub(super) fn text(&self, text: &str) -> String {
        let mut clean = text.to_owned();
        for secret in &self.secrets {
            if clean.contains(secret.expose_secret()) {
                clean = clean.replace(secret.expose_secret(), HIDDEN);
            }
        }
        let is_word = |one: char| one.is_ascii_alphanumeric() || matches!(one, '-' | '_' | '.');
        let mut shown = String::with_capacity(clean.len());
        let mut rest = &*clean;
        while !rest.is_empty() {
            let end = rest.find(|one| !is_word(one)).unwrap_or(rest.len());
            let (word, behind) = rest.split_at(end);
            shown.push_str(if is_known_key(word) { HIDDEN } else { word });
            let end = behind.find(is_word).unwrap_or(behind.len());
            shown.push_str(&behind[..end]);
            rest = &behind[end..];
        }
        shown
    }

    /// Returns an item without secrets. One without any stays byte for byte; one that cannot be serialized is dropped.
    pub(super) fn clean<T: Serialize + DeserializeOwned>(&self, item: T) -> Option<T> {
        let mut value = serde_json::to_value(&item).ok()?;
        if self.value(&mut value) { serde_json::from_value(value).ok() } else { Some(item) }
    }

    /// Removes secrets from a value. Returns true if there were any.
    pub(super) fn value(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => self.clean_text(text),
            Value::Array(items) => {
                items.iter_mut().fold(false, |changed, item| self.value(item) | changed)
            }
            Value::Object(members) => {
                let mut changed = false;
                for (name, member) in members.iter_mut() {
                    changed |= self.value(member);
                    if is_secret_name(name) {
                        changed |= self.hide(member);
                    }
                }
                let named: Vec<(String, String)> = members
                    .keys()
                    .map(|name| (name.clone(), self.text(name)))
                    .filter(|(name, clean)| name != clean)
                    .collect();
                for (name, clean) in named {
                    changed = true;
                    if let Some(member) = members.remove(&name) {
                        members.insert(clean, member);
                    }
                }
                changed
            }
            _ => false,
        }
    }

    /// Removes secrets from a text, which may be JSON.
    fn clean_text(&self, text: &mut String) -> bool {
        if text.trim_start().starts_with(['{', '['])
            && let Ok(mut inner) = serde_json::from_str::<Value>(text)
        {
            let changed = self.value(&mut inner);
            if changed {
                *text = inner.to_string();
            }
            return changed;
        }
        let clean = self.text(text);
        let changed = clean != *text;
        *text = clean;
        changed
    }

    /// Hides a value with the name of a secret. Objects stay: their members have names of their own.
    fn hide(&self, value: &mut Value) -> bool {
        let secret = match value {
            Value::String(text) if text.is_empty() || without_numbers(text) == HIDDEN => {
                return false;
            }
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Array(items) => {
                return items.iter_mut().fold(false, |changed, item| self.hide(item) | changed);
            }
            Value::Null | Value::Bool(_) | Value::Object(_) => return false,
        };
        let mut seen = self.numbers.lock();
        let next = seen.len() + 1;
        let number = *seen.entry(secret).or_insert(next);
        *value = Value::String(format!("{HIDDEN}{number}"));
        true
    }
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor").field("secrets", &self.secrets.len()).finish_non_exhaustive()
    }
}

/// Returns a text without the numbers of hidden values, which differ from run to run.
pub(super) fn without_numbers(text: &str) -> String {
    let mut pieces = text.split(HIDDEN);
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        plain.push_str(HIDDEN);
        plain.push_str(piece.trim_start_matches(|one: char| one.is_ascii_digit()));
    }
    plain
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn redacted(mut value: Value) -> Value {
        let redactor = Redactor::new([
            "hunter22".to_owned().into(),
            "Bearer s3cr\"t\n".to_owned().into(),
            "a".to_owned().into(),
        ]);
        let changed = redactor.value(&mut value);
        let mut again = value.clone();
        assert!(!redactor.value(&mut again) && again == value, "once is enough: {value}");
        assert_eq!(changed, value.to_string().contains("***"));
        value
    }

    #[test]
    fn what_is_secret_goes_by_what_it_is_by_its_name_and_by_its_looks() {
        assert_eq!(
            redacted(json!({
                "text": "it is hunter22, ghp_0123456789abcdef.", "api_key": "x", "tokens": ["p", "q"], "pin": 1234,
                "again": { "password": "x" }, "properties": { "token": { "type": "string" } },
                "arguments": "{\"url\": \"u\", \"authorization\": \"Bearer s3cr\\\"t\"}", "hunter22": 1,
                "plain": "{\"b\": 1, \"a\": [2]}", "max_tokens": 5, "is_secret": true, "key": "",
            })),
            json!({
                "text": "it is ***, ***", "api_key": "***1", "tokens": ["p", "q"], "pin": "***3",
                "again": { "password": "***1" }, "properties": { "token": { "type": "string" } },
                "arguments": "{\"authorization\":\"***2\",\"url\":\"u\"}", "***": 1,
                "plain": "{\"b\": 1, \"a\": [2]}", "max_tokens": 5, "is_secret": true, "key": "",
            })
        );
    }

    #[test]
    fn numbers_of_what_is_hidden_do_not_count() {
        assert_eq!(without_numbers("a ***12 b ***c"), "a *** b ***c");
        assert_eq!(without_numbers("plain 12"), "plain 12");
    }
}
