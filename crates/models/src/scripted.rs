//! A scripted provider: it plays turns from a file, for demonstrations and tests.

use std::borrow::Borrow;
use std::sync::Arc;
use std::time::Duration;

use consort_core::Emitting;
use serde::Deserialize;
use serde_json::Value;

use crate::error::{Cause, ProviderError};
use crate::message::{Arguments, Call, Kind, Message, Part, Role};
use crate::model::{Facts, Model, Provider, SCRIPTED, Said};
use crate::reply::{Delta, Reply, Stop, Usage};
use crate::request::{Ask, Delivery};

/// Turns to be played, one for each model request.
///
/// ```
/// use consort_models::{Message, Script, Stop};
///
/// let script = Script::parse(r#"{"turns": [
///     {"expect": {"contains": "weather"}, "calls": [{"name": "get_weather", "arguments": {"city": "Oslo"}}]},
///     {"expect": {"role": "tool"}, "text": "It rains in Oslo."}
/// ]}"#)?;
/// let played = script.turn(0, &[Message::user("How is the weather?")]);
/// let reply = played.end?;
/// assert_eq!(reply.stop, Stop::ToolCalls);
/// assert_eq!(reply.message.calls().next().unwrap().arguments.as_str(), r#"{"city":"Oslo"}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The turns, in order.
    pub turns: Vec<Turn>,
}

/// Scripted answer to one model request.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Turn {
    /// Expected last message.
    pub expect: Option<Expect>,
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
pub struct Expect {
    /// Role of the sender.
    pub role: Option<Role>,
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

/// A turn as it is played.
#[derive(Clone, Debug, PartialEq)]
pub struct Played {
    /// Its deltas, in order.
    pub deltas: Vec<Delta>,
    /// Pause before each of them.
    pub pause: Duration,
    /// Its end.
    pub end: Result<Reply, ProviderError>,
}

/// Parse error of a script.
#[derive(Debug, thiserror::Error)]
#[error("not a script of turns")]
pub struct ScriptError(#[from] serde_json::Error);

impl Script {
    /// Parses a script.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        Ok(serde_json::from_str(text)?)
    }

    /// Plays a turn, counted from 0, after these messages. A missing turn, or a last message that is not the expected
    /// one, is an error that says so.
    pub fn turn<M: Borrow<Message>>(&self, number: usize, messages: &[M]) -> Played {
        let last = messages.last().map(Borrow::borrow);
        let found = self.turns.get(number).ok_or_else(|| {
            format!(
                "the script has {} turns, and turn {} was asked for",
                self.turns.len(),
                number + 1
            )
        });
        let checked = found.and_then(|turn| match turn.expect.as_ref().map(|e| e.check(last)) {
            Some(Err(why)) => Err(format!("turn {} of the script: {why}", number + 1)),
            _ => Ok(turn),
        });
        match checked {
            Ok(turn) => turn.play(number),
            Err(why) => Played {
                deltas: Vec::new(),
                pause: Duration::ZERO,
                end: Err(ProviderError::new(Cause::Invalid, why)),
            },
        }
    }
}

/// Counts turns by the model's messages in the conversation, so that a script continues after a restart.
impl Provider for Script {
    fn ask(&self, ask: Ask) -> Emitting<Said> {
        let is_said = |message: &&Arc<Message>| message.role == Role::Assistant;
        let number = ask.messages.iter().filter(is_said).count();
        let mut played = self.turn(number, &ask.messages);
        if ask.delivery == Delivery::Whole {
            played.deltas.clear();
            if let Err(error) = &mut played.end {
                error.handed_out = false;
            }
        }
        Emitting::new(|emitter| async move {
            for delta in played.deltas {
                pause(played.pause).await;
                emitter.emit(Said::Delta(delta)).await;
            }
            pause(played.pause).await;
            Said::End(played.end)
        })
    }
}

impl Model {
    /// Creates a model that plays a script.
    pub fn scripted(script: Script) -> Self {
        let facts = Facts { images: true, audio: true, ..Facts::default() };
        let name = SCRIPTED.to_owned();
        Self { id: name.clone(), name, provider: Arc::new(script), facts }
    }
}

impl Turn {
    fn play(&self, number: usize) -> Played {
        let mut deltas: Vec<Delta> = pieces(&self.thinking).map(Delta::Thinking).collect();
        let mut parts = Vec::new();
        if !self.thinking.is_empty() {
            parts.push(Kind::Thinking { text: self.thinking.clone(), redacted: false }.into());
        }
        if !self.text.is_empty() {
            let is_refusal = self.stop == Some(ScriptedStop::Refusal);
            let text = self.text.clone();
            deltas.extend(pieces(&text).map(if is_refusal { Delta::Refusal } else { Delta::Text }));
            parts.push(if is_refusal { Kind::Refusal { text }.into() } else { Part::text(text) });
        }
        for (index, call) in self.calls.iter().enumerate() {
            let call = call.call(number, index);
            let (id, name) = (call.id.clone(), call.name.clone());
            deltas.push(Delta::ToolCallStarted { index, id, name });
            let fragment = call.arguments.as_str().to_owned();
            deltas.push(Delta::ToolCallArguments { index, fragment });
            parts.push(Kind::ToolCall(call).into());
        }
        let usage = self.usage.into();
        if usage != Usage::default() {
            deltas.push(Delta::Usage(usage));
        }
        let reply = Reply {
            message: Message::new(Role::Assistant, parts),
            stop: self.stop(),
            usage,
            model: SCRIPTED.to_owned(),
            id: format!("scripted-{}", number + 1),
        };
        let end = match &self.error {
            None => Ok(reply),
            Some(error) => {
                let mut error = error.error();
                error.handed_out = deltas.iter().any(|delta| !matches!(delta, Delta::Usage(_)));
                Err(error)
            }
        };
        Played { deltas, pause: Duration::from_millis(self.pause_ms), end }
    }

    fn stop(&self) -> Stop {
        match self.stop {
            Some(ScriptedStop::Length) => Stop::Length,
            Some(ScriptedStop::Refusal) => Stop::Refusal,
            Some(ScriptedStop::ContentFilter) => Stop::ContentFilter,
            Some(ScriptedStop::Paused) => Stop::Paused,
            None if self.calls.is_empty() => Stop::End,
            None => Stop::ToolCalls,
        }
    }
}

impl Expect {
    fn check(&self, last: Option<&Message>) -> Result<(), String> {
        let last = last.ok_or("a message is expected, and there is none")?;
        if let Some(role) = self.role.filter(|role| *role != last.role) {
            let (role, other) = (word(role), word(last.role));
            return Err(format!("the last message must be of `{role}`, and is of `{other}`"));
        }
        let mut results = 0;
        let mut failed = false;
        let mut text = String::new();
        for part in &last.parts {
            match &part.kind {
                Kind::Text { text: said } => text.push_str(said),
                Kind::ToolResult(result) => {
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
                "the last message must have {expected} results, and has {results}"
            ));
        }
        if let Some(expected) = self.is_error.filter(|expected| *expected != failed) {
            let [must, is] =
                [expected, failed].map(|is| if is { "a failure" } else { "no failure" });
            return Err(format!("the last message must have {must}, and has {is}"));
        }
        if let Some(expected) =
            self.contains.as_ref().filter(|expected| !text.contains(&***expected))
        {
            let text: String = text.trim().chars().take(200).collect();
            return Err(format!("the last message must contain `{expected}`, and is `{text}`"));
        }
        Ok(())
    }
}

impl ScriptedCall {
    fn call(&self, turn: usize, index: usize) -> Call {
        let arguments = match &self.arguments {
            Value::Null => Arguments::from("{}"),
            Value::String(text) => text.clone().into(),
            other => other.to_string().into(),
        };
        let id = self.id.clone().unwrap_or_else(|| format!("scripted_{}_{}", turn + 1, index + 1));
        Call { id, name: self.name.clone(), arguments }
    }
}

impl ScriptedError {
    fn error(&self) -> ProviderError {
        let cause = match self.kind {
            ScriptedCause::Authentication => Cause::Authentication { variable: None },
            ScriptedCause::Permission => Cause::Permission,
            ScriptedCause::UnknownModel => Cause::UnknownModel { model: SCRIPTED.to_owned() },
            ScriptedCause::ContextTooLong => Cause::ContextTooLong { most: None, given: None },
            ScriptedCause::RateLimited => Cause::RateLimited,
            ScriptedCause::OutOfCredit => Cause::OutOfCredit,
            ScriptedCause::Overloaded => Cause::Overloaded,
            ScriptedCause::Failed => Cause::Failed,
            ScriptedCause::Invalid => Cause::Invalid,
            ScriptedCause::Refused => Cause::Refused,
            ScriptedCause::Cut => Cause::Cut,
        };
        let mut error = ProviderError::new(cause, &*self.message);
        error.wait = self.after_seconds.map(Duration::from_secs);
        error
    }
}

impl From<ScriptedUsage> for Usage {
    fn from(usage: ScriptedUsage) -> Self {
        let ScriptedUsage { input, output, cached_read, cached_write, reasoning } = usage;
        Self { input, output, cached_read, cached_write, reasoning }
    }
}

async fn pause(duration: Duration) {
    // Without pauses a script needs no clock.
    if !duration.is_zero() {
        tokio::time::sleep(duration).await;
    }
}

/// Splits a text into words, each with the white space after it.
fn pieces(text: &str) -> impl Iterator<Item = String> {
    text.split_inclusive(char::is_whitespace).map(str::to_owned)
}

fn word(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Retry;
    use crate::message::CallResult;

    fn played(script: &str, number: usize, messages: &[Message]) -> Played {
        Script::parse(script).unwrap().turn(number, messages)
    }

    fn refused(script: &str, number: usize, messages: &[Message]) -> String {
        played(script, number, messages).end.unwrap_err().to_string()
    }

    #[test]
    fn a_turn_is_played_piece_by_piece_and_ends_in_the_same_words() {
        let script = r#"{"turns":[{"thinking":"let me look","text":"One moment.","pause_ms":5,
            "calls":[{"name":"a","arguments":{"n":1}},{"name":"b","arguments":"not json","id":"x"}],
            "usage":{"input":7,"output":3}}]}"#;
        let played = played(script, 0, &[Message::user("go")]);
        let usage = Usage { input: 7, output: 3, ..Usage::default() };
        let started = |index, id: &str, name: &str| Delta::ToolCallStarted {
            index,
            id: id.into(),
            name: name.into(),
        };
        let given =
            |index, fragment: &str| Delta::ToolCallArguments { index, fragment: fragment.into() };
        assert_eq!(
            played.deltas,
            [
                Delta::Thinking("let ".into()),
                Delta::Thinking("me ".into()),
                Delta::Thinking("look".into()),
                Delta::Text("One ".into()),
                Delta::Text("moment.".into()),
                started(0, "scripted_1_1", "a"),
                given(0, r#"{"n":1}"#),
                started(1, "x", "b"),
                given(1, "not json"),
                Delta::Usage(usage),
            ]
        );
        assert_eq!(played.pause, Duration::from_millis(5));
        let reply = played.end.unwrap();
        assert_eq!(reply.message.text(), "One moment.");
        assert_eq!((reply.stop, reply.usage, &*reply.model), (Stop::ToolCalls, usage, "scripted"));
    }

    #[test]
    fn what_is_not_expected_is_told() {
        let script = r#"{"turns":[{"expect":{"role":"tool","contains":"sun","results":1,"is_error":false}}]}"#;
        assert!(
            played(
                script,
                0,
                &[Message::results([CallResult {
                    call: "1".into(),
                    parts: vec![Part::text("sunny")],
                    is_error: false,
                }])]
            )
            .end
            .is_ok()
        );
        assert_eq!(
            refused(script, 0, &[Message::user("sun")]),
            "the provider refuses the request: turn 1 of the script: the last message must be of `tool`, and is of `user`"
        );
        let failed = [Message::results([CallResult::error("1", "sun")])];
        assert!(refused(script, 0, &failed).ends_with("must have no failure, and has a failure"));
        let rain =
            [Message::results([CallResult { is_error: false, ..CallResult::error("1", "rain") }])];
        assert!(refused(script, 0, &rain).ends_with("must contain `sun`, and is `rain`"));
        assert!(refused(script, 0, &[]).ends_with("a message is expected, and there is none"));
        assert!(
            refused(script, 1, &rain).ends_with("the script has 1 turns, and turn 2 was asked for")
        );
    }

    #[test]
    fn an_error_is_played_and_may_be_repeated_if_nothing_was_said() {
        let script = r#"{"turns":[
            {"error":{"kind":"overloaded","message":"busy","after_seconds":3}},
            {"text":"I ","error":{"kind":"cut"}}]}"#;
        let error = played(script, 0, &[]).end.unwrap_err();
        assert_eq!(error.to_string(), "the provider is overloaded: busy");
        assert_eq!(error.retry(), Retry::After(Duration::from_secs(3)));
        let error = played(script, 1, &[]).end.unwrap_err();
        assert_eq!(
            error.to_string(),
            "in the middle of the answer: the answer ended before its end"
        );
        assert_eq!(error.retry(), Retry::No);
    }

    async fn heard(script: &Script, ask: Ask) -> (usize, Result<Reply, ProviderError>) {
        let mut said = script.ask(ask);
        let mut deltas = 0;
        loop {
            match said.next().await.unwrap() {
                Said::Delta(_) => deltas += 1,
                Said::Again { .. } => panic!("a script is asked once"),
                Said::End(end) => return (deltas, end),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_turn_to_be_played_is_told_by_what_was_said() {
        let script = Script::parse(
            r#"{"turns":[{"calls":[{"name":"a"}]},{"text":"all done","pause_ms":50},
                {"text":"I ","error":{"kind":"overloaded"}}]}"#,
        );
        let script = script.unwrap();
        let mut messages = vec![Message::user("go")];
        let (deltas, end) = heard(&script, Ask::new(SCRIPTED, messages.clone())).await;
        let reply = end.unwrap();
        assert_eq!((deltas, &reply.stop), (2, &Stop::ToolCalls));
        messages.push(reply.message);
        messages.push(Message::results([CallResult::error("scripted_1_1", "no")]));

        let began = tokio::time::Instant::now();
        let (deltas, end) = heard(&script, Ask::new(SCRIPTED, messages.clone())).await;
        assert_eq!((deltas, end.as_ref().unwrap().message.text()), (2, "all done".to_owned()));
        assert_eq!(began.elapsed().as_millis(), 150);
        messages.push(end.unwrap().message);

        let ask = Ask::new(SCRIPTED, messages);
        assert_eq!(heard(&script, ask.clone()).await.1.unwrap_err().retry(), Retry::No);
        let (deltas, end) = heard(&script, Ask { delivery: Delivery::Whole, ..ask }).await;
        assert_eq!((deltas, end.unwrap_err().handed_out), (0, false));
    }

    #[test]
    fn a_word_that_no_script_knows_is_refused() {
        let wrong = Script::parse(r#"{"turns":[{"txet":"a"}]}"#).unwrap_err();
        assert_eq!(wrong.to_string(), "not a script of turns");
        let source = std::error::Error::source(&wrong).unwrap().to_string();
        assert!(source.starts_with("unknown field `txet`"), "{source}");
    }
}
