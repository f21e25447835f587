//! Turns of a script, as they are written in its file.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::PlayedTurn;
use crate::error::{ProviderError, ProviderErrorKind};
use crate::message::{ChatMessage, MessagePart, MessageRole, PartContent, RawArguments, ToolCall};
use crate::model::SCRIPTED;
use crate::reply::{ModelReply, ReplyDelta, StopReason, TokenUsage};

/// Scripted answer to one model request.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScriptedTurn {
    /// Expected last message.
    pub expect: Option<ScriptedExpectation>,
    /// Thinking.
    pub thinking: String,
    /// Text.
    pub text: String,
    /// Tool calls.
    pub calls: Vec<ScriptedCall>,
    /// Token usage.
    pub usage: ScriptedUsage,
    /// Stop reason, if it is not its calls or its end: `length`, `refusal`, `content_filter`, `paused`.
    pub stop: Option<ScriptedStop>,
    /// Milliseconds before each of its deltas, and before its end.
    pub pause_ms: u64,
    /// Error after everything else.
    pub error: Option<ScriptedError>,
}

/// Expectation about the last message of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScriptedExpectation {
    /// Role of the sender.
    pub role: Option<MessageRole>,
    /// Text within it, or within the result of a call.
    pub contains: Option<String>,
    /// Number of results of calls.
    pub results: Option<usize>,
    /// True if one of its results must be an error, false if none may be.
    pub is_error: Option<bool>,
}

/// A scripted tool call.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedCall {
    /// The tool's name.
    pub name: String,
    /// Arguments; a string is passed as it is, valid JSON or not.
    #[serde(default)]
    pub arguments: Value,
    /// Its id; made from its index if absent.
    pub id: Option<String>,
}

/// Token usage of a scripted turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScriptedUsage {
    /// Input tokens.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Input tokens that were read from a cache.
    pub cached_read: u64,
    /// Input tokens that were written to a cache.
    pub cached_write: u64,
    /// Output tokens of reasoning.
    pub reasoning: u64,
}

/// Stop reason of a scripted turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptedStop {
    /// The output limit was reached.
    Length,
    /// The model refused.
    Refusal,
    /// The content filter stopped it.
    ContentFilter,
    /// The model paused.
    Paused,
}

/// Error of a scripted turn.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedError {
    /// Kind of the error.
    pub kind: ScriptedCause,
    /// Message of the provider.
    #[serde(default)]
    pub message: String,
    /// Wait in seconds that the provider requests.
    pub after_seconds: Option<u64>,
}

/// Kind of a scripted error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptedCause {
    /// The key is wrong.
    Authentication,
    /// The key lacks the permission.
    Permission,
    /// There is no such model.
    UnknownModel,
    /// The conversation is too long.
    ContextTooLong,
    /// A rate limit was reached.
    RateLimited,
    /// The account has no credit left.
    OutOfCredit,
    /// The provider is overloaded.
    Overloaded,
    /// The provider failed.
    Failed,
    /// The request is invalid.
    Invalid,
    /// The provider refuses to answer this.
    Refused,
    /// The answer is truncated.
    Cut,
}

impl ScriptedTurn {
    pub(super) fn play(&self, number: usize) -> PlayedTurn {
        let mut deltas: Vec<ReplyDelta> =
            pieces(&self.thinking).map(ReplyDelta::Thinking).collect();
        let mut parts = Vec::new();
        if !self.thinking.is_empty() {
            parts.push(
                PartContent::Thinking { text: self.thinking.clone(), redacted: false }.into(),
            );
        }
        if !self.text.is_empty() {
            let is_refusal = self.stop == Some(ScriptedStop::Refusal);
            let text = self.text.clone();
            deltas.extend(pieces(&text).map(if is_refusal {
                ReplyDelta::Refusal
            } else {
                ReplyDelta::Text
            }));
            parts.push(if is_refusal {
                PartContent::Refusal { text }.into()
            } else {
                MessagePart::text(text)
            });
        }
        for (index, call) in self.calls.iter().enumerate() {
            let call = call.call(number, index);
            let (id, name) = (call.id.clone(), call.name.clone());
            deltas.push(ReplyDelta::ToolCallStarted { index, id, name });
            let fragment = call.arguments.as_str().to_owned();
            deltas.push(ReplyDelta::ToolCallArguments { index, fragment });
            parts.push(PartContent::ToolCall(call).into());
        }
        let usage = self.usage.into();
        if usage != TokenUsage::default() {
            deltas.push(ReplyDelta::Usage(usage));
        }
        let reply = ModelReply {
            message: ChatMessage::new(MessageRole::Assistant, parts),
            stop: self.stop(),
            usage,
            model: SCRIPTED.to_owned(),
            id: format!("scripted-{}", number + 1),
        };
        let end = match &self.error {
            None => Ok(reply),
            Some(error) => {
                let mut error = error.error();
                error.mid_answer =
                    deltas.iter().any(|delta| !matches!(delta, ReplyDelta::Usage(_)));
                Err(error)
            }
        };
        PlayedTurn { deltas, pause: Duration::from_millis(self.pause_ms), end }
    }

    fn stop(&self) -> StopReason {
        match self.stop {
            Some(ScriptedStop::Length) => StopReason::Length,
            Some(ScriptedStop::Refusal) => StopReason::Refusal,
            Some(ScriptedStop::ContentFilter) => StopReason::ContentFilter,
            Some(ScriptedStop::Paused) => StopReason::Paused,
            None if self.calls.is_empty() => StopReason::End,
            None => StopReason::ToolCalls,
        }
    }
}

impl ScriptedExpectation {
    pub(super) fn check(&self, last: Option<&ChatMessage>) -> Result<(), String> {
        let last = last.ok_or("expected a message, but there is none")?;
        if let Some(role) = self.role.filter(|role| *role != last.role) {
            let (role, other) = (role_name(role), role_name(last.role));
            return Err(format!("the last message must have the role `{role}`, not `{other}`"));
        }
        let mut results = 0;
        let mut failed = false;
        let mut text = String::new();
        for part in &last.parts {
            match &part.content {
                PartContent::Text { text: said } => text.push_str(said),
                PartContent::ToolResult(result) => {
                    results += 1;
                    failed |= result.is_error;
                    text.push_str(&result.text());
                }
                _ => {}
            }
            text.push('\n');
        }
        if let Some(expected) = self.results.filter(|expected| *expected != results) {
            return Err(format!(
                "the last message must have {expected} results, but has {results}"
            ));
        }
        if let Some(expected) = self.is_error.filter(|expected| *expected != failed) {
            let [must, is] =
                [expected, failed].map(|is| if is { "a failure" } else { "no failure" });
            return Err(format!("the last message must have {must}, but has {is}"));
        }
        if let Some(expected) =
            self.contains.as_ref().filter(|expected| !text.contains(&***expected))
        {
            let text: String = text.trim().chars().take(200).collect();
            return Err(format!("the last message must contain `{expected}`, but is `{text}`"));
        }
        Ok(())
    }
}

impl ScriptedCall {
    fn call(&self, turn: usize, index: usize) -> ToolCall {
        let arguments = match &self.arguments {
            Value::Null => RawArguments::from("{}"),
            Value::String(text) => text.clone().into(),
            other => other.to_string().into(),
        };
        let id = self.id.clone().unwrap_or_else(|| format!("scripted_{}_{}", turn + 1, index + 1));
        ToolCall { id, name: self.name.clone(), arguments }
    }
}

impl ScriptedError {
    fn error(&self) -> ProviderError {
        let cause = match self.kind {
            ScriptedCause::Authentication => ProviderErrorKind::Authentication { variable: None },
            ScriptedCause::Permission => ProviderErrorKind::Permission,
            ScriptedCause::UnknownModel => {
                ProviderErrorKind::UnknownModel { model: SCRIPTED.to_owned() }
            }
            ScriptedCause::ContextTooLong => {
                ProviderErrorKind::ContextTooLong { limit: None, requested: None }
            }
            ScriptedCause::RateLimited => ProviderErrorKind::RateLimited,
            ScriptedCause::OutOfCredit => ProviderErrorKind::OutOfCredit,
            ScriptedCause::Overloaded => ProviderErrorKind::Overloaded,
            ScriptedCause::Failed => ProviderErrorKind::Failed,
            ScriptedCause::Invalid => ProviderErrorKind::Invalid,
            ScriptedCause::Refused => ProviderErrorKind::Refused,
            ScriptedCause::Cut => ProviderErrorKind::Truncated,
        };
        let mut error = ProviderError::new(cause, &*self.message);
        error.wait = self.after_seconds.map(Duration::from_secs);
        error
    }
}

impl From<ScriptedUsage> for TokenUsage {
    fn from(usage: ScriptedUsage) -> Self {
        let ScriptedUsage { input, output, cached_read, cached_write, reasoning } = usage;
        Self { input, output, cached_read, cached_write, reasoning }
    }
}

/// Splits a text into words, each with the white space after it.
fn pieces(text: &str) -> impl Iterator<Item = String> {
    text.split_inclusive(char::is_whitespace).map(str::to_owned)
}

fn role_name(role: MessageRole) -> &'static str {
    match role {
        MessageRole::System => "system",
        MessageRole::User => "user",
        MessageRole::Assistant => "assistant",
        MessageRole::Tool => "tool",
    }
}
