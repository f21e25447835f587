//! Errors in a written policy.

use consort_core::nearest;

/// An error at one place of a policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{location}: {message}")]
pub struct PolicyError {
    location: String,
    message: String,
    hint: Option<String>,
}

impl PolicyError {
    pub(super) fn new(place: &str, message: impl Into<String>) -> Self {
        Self { location: place.to_owned(), message: message.into(), hint: None }
    }

    #[must_use]
    pub(super) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The place: the rule by its number and name, or the key.
    pub fn location(&self) -> &str {
        &self.location
    }

    /// Returns advice on how to fix it.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

/// Error of an unknown word.
pub(super) fn unknown_word<'a>(
    place: &str,
    what: &str,
    word: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> PolicyError {
    let known: Vec<&str> = known.into_iter().collect();
    let listed = known.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    let rest = if known.is_empty() {
        "none is configured".to_owned()
    } else {
        format!("expected one of {listed}")
    };
    let error = PolicyError::new(place, format!("unknown {what} `{word}`: {rest}"));
    let near: Vec<String> = nearest(word, known).iter().map(|near| format!("`{near}`")).collect();
    if near.is_empty() {
        return error;
    }
    error.with_hint(format!("did you mean {}?", near.join(" or ")))
}
