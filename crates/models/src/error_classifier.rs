//! Classification of providers' errors.

use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use crate::error::{ProviderError, ProviderErrorKind};
use crate::response_head::ResponseHead;
use crate::retry_after::requested_wait;

/// Maximum characters of a provider's message.
const LONGEST: usize = 1000;

/// Prefixes of API keys.
const KEYS: [&str; 8] = ["sk-", "sk_", "AIza", "AQ.", "gsk_", "xai-", "pplx-", "hf_"];

/// Context for the classification of an error.
#[derive(Debug, Default)]
pub(crate) struct ErrorClassifier {
    pub(crate) model: String,
    pub(crate) variable: Option<String>,
    pub(crate) secrets: Vec<SecretString>,
}

impl ErrorClassifier {
    /// Classifies a response with an error status.
    pub(crate) fn classify_response(&self, head: &ResponseHead, body: &[u8]) -> ProviderError {
        let body = String::from_utf8_lossy(body);
        let parsed: Option<Value> = serde_json::from_str(&body).ok();
        let readable = match &parsed {
            Some(value) => value.clone(),
            None if looks_like_html(&body) => Value::Null,
            None => Value::String(body.trim().to_owned()),
        };
        let mut error = self.reported(head, &readable, Some(head.status));
        let is_lost = matches!(error.kind, ProviderErrorKind::Invalid) && parsed.is_none();
        if is_lost && (head.status == 404 || head.status < 400) {
            error.kind = ProviderErrorKind::MalformedResponse;
        }
        error
    }

    /// Classifies an error within an answer.
    pub(crate) fn classify_event(&self, head: &ResponseHead, error: &Value) -> ProviderError {
        self.reported(head, error, None)
    }

    /// Returns an error that Consort detected, with the provider's message.
    pub(crate) fn detected(
        &self,
        head: &ResponseHead,
        cause: ProviderErrorKind,
        message: &str,
    ) -> ProviderError {
        let mut error = ProviderError::new(cause, self.clean(message));
        error.status = Some(head.status);
        error
    }

    fn reported(&self, head: &ResponseHead, body: &Value, status: Option<u16>) -> ProviderError {
        let reported = ReportedError::new(body, status);
        let mut error = self.detected(head, self.kind_of(&reported), &reported.message);
        error.wait = requested_wait(head, reported.error);
        error
    }

    fn kind_of(&self, reported: &ReportedError) -> ProviderErrorKind {
        let is = |words: &[&str]| words.iter().any(|word| reported.words.iter().any(|w| w == word));
        let says = |texts: &[&str]| texts.iter().any(|text| reported.lower.contains(text));
        let status = reported.status.unwrap_or_default();
        let names_model = reported.is_about_model()
            && says(&["not found", "not exist", "unknown", "invalid model", "not supported"]);
        if is(&["insufficient_quota", "billing_error", "insufficient_balance"])
            || says(&["credit balance", "insufficient balance"])
            || status == 402
        {
            return ProviderErrorKind::OutOfCredit;
        }
        if is(&["context_length_exceeded"]) || status != 429 && says(&TOO_LONG) {
            let (limit, requested) = sizes(&reported.message);
            return ProviderErrorKind::ContextTooLong { limit, requested };
        }
        if status == 401
            || is(&[
                "authentication_error",
                "invalid_api_key",
                "unauthenticated",
                "api_key_invalid",
            ])
            || says(&["api key not valid", "unregistered callers", "incorrect api key"])
        {
            return ProviderErrorKind::Authentication { variable: self.variable.clone() };
        }
        if is(&["model_not_found"])
            || names_model && matches!(status, 0 | 400 | 404 | 422)
            || status == 404 && is(&["not_found_error"]) && says(&["model"])
        {
            return ProviderErrorKind::UnknownModel { model: self.model.clone() };
        }
        let is_refused = matches!(status, 0 | 400 | 422);
        if is(&["invalid_encrypted_content"])
            || is_refused && says(&["thinking", "thought"]) && says(&["block", "signature"])
        {
            return ProviderErrorKind::RejectedThinking;
        }
        if is(&["content_filter", "content_policy_violation", "cyber_policy"]) {
            return ProviderErrorKind::Refused;
        }
        if status == 403 || is(&["permission_error", "permission_denied"]) {
            return ProviderErrorKind::Permission;
        }
        if status == 429
            || is(&[
                "rate_limit_error",
                "rate_limit_exceeded",
                "resource_exhausted",
                "too_many_requests",
            ])
        {
            return ProviderErrorKind::RateLimited;
        }
        if matches!(status, 503 | 529)
            || is(&["overloaded_error", "unavailable", "server_overloaded", "slow_down"])
        {
            return ProviderErrorKind::Overloaded;
        }
        if status >= 500
            || status == 408
            || is(&["api_error", "server_error", "internal", "timeout_error", "deadline_exceeded"])
        {
            return ProviderErrorKind::Failed;
        }
        if status != 0 || is(&["invalid_request_error", "invalid_argument", "invalid_prompt"]) {
            return ProviderErrorKind::Invalid;
        }
        ProviderErrorKind::MidStream
    }

    /// Returns the text without secrets and control characters, and cut.
    fn clean(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.secrets {
            let secret = secret.expose_secret().trim();
            let bare = secret.strip_prefix("Bearer ").unwrap_or(secret);
            if bare.len() >= 4 {
                text = text.replace(bare, "[secret]");
            }
        }
        let words: Vec<String> = text.split_whitespace().map(redact_key).collect();
        let text = words.join(" ");
        let clean = text.chars().filter(|one| !one.is_control() && !is_invisible(*one));
        let mut cut: String = clean.take(LONGEST + 1).collect();
        if cut.chars().count() > LONGEST {
            cut.pop();
            cut.push('…');
        }
        cut
    }
}

/// Phrases of providers for a conversation that is too long.
const TOO_LONG: [&str; 9] = [
    "maximum context length",
    "context window",
    "prompt is too long",
    "input token count",
    "input is too long",
    "exceeds the available context",
    "context length exceeded",
    "exceeds the model's maximum",
    "maximum number of tokens allowed",
];

/// Words of messages about an option that a model does not support.
const OPTIONS: [&str; 14] = [
    "parameter",
    "argument",
    "temperature",
    "top_p",
    "reasoning",
    "thinking",
    "response_format",
    "json_schema",
    "tool",
    "function call",
    "max_tokens",
    "with this model",
    "by this model",
    "unsupported value",
];

/// A provider's error, whatever form it has.
struct ReportedError<'a> {
    error: &'a Value,
    message: String,
    lower: String,
    words: Vec<String>,
    status: Option<u16>,
}

impl<'a> ReportedError<'a> {
    /// Returns true if the error is about the model, and not about an option that the model does not support.
    fn is_about_model(&self) -> bool {
        let option = self.error.get("param").and_then(Value::as_str);
        let about_option = option.is_some_and(|option| !matches!(option, "model" | ""))
            || self.words.iter().any(|word| word.starts_with("unsupported_"))
            || OPTIONS.iter().any(|option| self.lower.contains(option));
        self.lower.contains("model") && !about_option
    }

    fn new(body: &'a Value, status: Option<u16>) -> Self {
        let body = body.get(0).unwrap_or(body);
        let error = body.get("error").filter(|error| !error.is_null()).unwrap_or(body);
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let message = text(error)
            .or_else(|| error.get("message").and_then(text))
            .or_else(|| body.get("message").and_then(text))
            .or_else(|| {
                error.get("detail").map(|detail| text(detail).unwrap_or(detail.to_string()))
            })
            .unwrap_or_else(|| if error.is_null() { String::new() } else { error.to_string() });
        let mut words: Vec<String> = ["code", "type", "status", "reason"]
            .iter()
            .filter_map(|name| error.get(name)?.as_str().map(str::to_ascii_lowercase))
            .collect();
        for detail in error.get("details").and_then(Value::as_array).into_iter().flatten() {
            words.extend(detail.get("reason").and_then(Value::as_str).map(str::to_ascii_lowercase));
        }
        let code = error.get("code").and_then(Value::as_u64).and_then(|code| code.try_into().ok());
        let status = status.or(code.filter(|code| (400..600).contains(code)));
        Self { error, lower: message.to_lowercase(), message, words, status }
    }
}

/// Returns the two sizes in a message about length: the larger is the request's.
fn sizes(message: &str) -> (Option<u64>, Option<u64>) {
    let plain = message.replace(',', "");
    let numbers = plain.split(|one: char| !one.is_ascii_digit());
    let mut sizes: Vec<u64> = numbers
        .filter_map(|number| number.parse().ok())
        .filter(|size| *size >= 256)
        .take(2)
        .collect();
    sizes.sort_unstable();
    (sizes.first().copied(), sizes.get(1).copied())
}

fn redact_key(word: &str) -> String {
    let found = KEYS.iter().filter_map(|key| word.find(key)).min();
    match found {
        Some(at) if word.len() - at >= 12 => format!("{}[secret]", &word[..at]),
        _ => word.to_owned(),
    }
}

/// Returns true for characters that can disguise a text, such as direction marks.
fn is_invisible(one: char) -> bool {
    matches!(one, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

fn looks_like_html(text: &str) -> bool {
    text.trim_start().starts_with('<')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_provider_says_is_cleaned_and_cut() {
        let classifier = ErrorClassifier {
            secrets: vec!["hunter22\n".to_owned().into()],
            ..ErrorClassifier::default()
        };
        assert_eq!(
            classifier.clean("a\u{1b}[2J \u{202e}b hunter22 key=AIzaSyA-1234567890 sk-x"),
            "a[2J b [secret] key=[secret] sk-x"
        );
        let long = classifier.clean(&"é".repeat(5000));
        assert_eq!((long.chars().count(), long.ends_with('…')), (LONGEST + 1, true));
    }

    #[test]
    fn sizes_are_taken_from_what_is_said() {
        assert_eq!(sizes("210000 tokens > 200000 maximum"), (Some(200_000), Some(210_000)));
        assert_eq!(sizes("at most 8,192 tokens"), (Some(8192), None));
        assert_eq!(sizes("too long (gpt-4)"), (None, None));
    }
}
