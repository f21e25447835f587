//! A scripted provider: it plays turns from a file, for demonstrations and tests.

use std::borrow::Borrow;
use std::sync::Arc;
use std::time::Duration;

use consort_core::DrivenStream;
use serde::Deserialize;

use crate::error::{ProviderError, ProviderErrorKind};
use crate::message::{ChatMessage, MessageRole};
use crate::model::{Model, ModelFacts, ModelProvider, ProviderEvent, SCRIPTED};
use crate::reply::{ModelReply, ReplyDelta};
use crate::request::{ModelRequest, ReplyDelivery};

mod turn;

pub use turn::{
    ScriptedCall, ScriptedCause, ScriptedError, ScriptedExpectation, ScriptedStop, ScriptedTurn,
    ScriptedUsage,
};

/// Turns to be played, one for each model request.
///
/// ```
/// use consort_models::{ChatMessage, ModelScript, StopReason};
///
/// let script = ModelScript::parse(r#"{"turns": [
///     {"expect": {"contains": "weather"}, "calls": [{"name": "get_weather", "arguments": {"city": "Oslo"}}]},
///     {"expect": {"role": "tool"}, "text": "It rains in Oslo."}
/// ]}"#)?;
/// let played = script.turn(0, &[ChatMessage::user("How is the weather?")]);
/// let reply = played.end?;
/// assert_eq!(reply.stop, StopReason::ToolCalls);
/// assert_eq!(reply.message.calls().next().unwrap().arguments.as_str(), r#"{"city":"Oslo"}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelScript {
    /// The turns, in order.
    pub turns: Vec<ScriptedTurn>,
}

/// A turn as it is played.
#[derive(Clone, Debug, PartialEq)]
pub struct PlayedTurn {
    /// Its deltas, in order.
    pub deltas: Vec<ReplyDelta>,
    /// Pause before each of them.
    pub pause: Duration,
    /// Its end.
    pub end: Result<ModelReply, ProviderError>,
}

/// Parse error of a script.
#[derive(Debug, thiserror::Error)]
#[error("not a script of turns")]
pub struct ScriptError(#[from] serde_json::Error);

impl ModelScript {
    /// Parses a script.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        Ok(serde_json::from_str(text)?)
    }

    /// Plays a turn, counted from 0, after these messages. A missing turn, or a last message that is not the expected
    /// one, is an error that says so.
    pub fn turn<M: Borrow<ChatMessage>>(&self, number: usize, messages: &[M]) -> PlayedTurn {
        let last = messages.last().map(Borrow::borrow);
        let found = self.turns.get(number).ok_or_else(|| {
            format!(
                "the script has {} turns, but turn {} was requested",
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
            Err(why) => PlayedTurn {
                deltas: Vec::new(),
                pause: Duration::ZERO,
                end: Err(ProviderError::new(ProviderErrorKind::Invalid, why)),
            },
        }
    }
}

/// Counts turns by the model's messages in the conversation, so that a script continues after a restart.
impl ModelProvider for ModelScript {
    fn request(&self, request: ModelRequest) -> DrivenStream<ProviderEvent> {
        let is_said = |message: &&Arc<ChatMessage>| message.role == MessageRole::Assistant;
        let number = request.messages.iter().filter(is_said).count();
        let mut played = self.turn(number, &request.messages);
        if request.delivery == ReplyDelivery::Complete {
            played.deltas.clear();
            if let Err(error) = &mut played.end {
                error.mid_answer = false;
            }
        }
        DrivenStream::new(|emitter| async move {
            for delta in played.deltas {
                pause(played.pause).await;
                emitter.emit(ProviderEvent::Delta(delta)).await;
            }
            pause(played.pause).await;
            ProviderEvent::End(played.end)
        })
    }
}

impl Model {
    /// Creates a model that plays a script.
    pub fn scripted(script: ModelScript) -> Self {
        let facts = ModelFacts { images: true, audio: true, ..ModelFacts::default() };
        let name = SCRIPTED.to_owned();
        Self { id: name.clone(), name, provider: Arc::new(script), facts }
    }
}

async fn pause(duration: Duration) {
    // Without pauses a script needs no clock.
    if !duration.is_zero() {
        tokio::time::sleep(duration).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::RetryDecision;
    use crate::message::{MessagePart, ToolCallResult};
    use crate::reply::{StopReason, TokenUsage};

    fn played(script: &str, number: usize, messages: &[ChatMessage]) -> PlayedTurn {
        ModelScript::parse(script).unwrap().turn(number, messages)
    }

    fn refused(script: &str, number: usize, messages: &[ChatMessage]) -> String {
        played(script, number, messages).end.unwrap_err().to_string()
    }

    #[test]
    fn a_turn_is_played_piece_by_piece_and_ends_in_the_same_words() {
        let script = r#"{"turns":[{"thinking":"let me look","text":"One moment.","pause_ms":5,
            "calls":[{"name":"a","arguments":{"n":1}},{"name":"b","arguments":"not json","id":"x"}],
            "usage":{"input":7,"output":3}}]}"#;
        let played = played(script, 0, &[ChatMessage::user("go")]);
        let usage = TokenUsage { input: 7, output: 3, ..TokenUsage::default() };
        let started = |index, id: &str, name: &str| ReplyDelta::ToolCallStarted {
            index,
            id: id.into(),
            name: name.into(),
        };
        let given = |index, fragment: &str| ReplyDelta::ToolCallArguments {
            index,
            fragment: fragment.into(),
        };
        assert_eq!(
            played.deltas,
            [
                ReplyDelta::Thinking("let ".into()),
                ReplyDelta::Thinking("me ".into()),
                ReplyDelta::Thinking("look".into()),
                ReplyDelta::Text("One ".into()),
                ReplyDelta::Text("moment.".into()),
                started(0, "scripted_1_1", "a"),
                given(0, r#"{"n":1}"#),
                started(1, "x", "b"),
                given(1, "not json"),
                ReplyDelta::Usage(usage),
            ]
        );
        assert_eq!(played.pause, Duration::from_millis(5));
        let reply = played.end.unwrap();
        assert_eq!(reply.message.text(), "One moment.");
        assert_eq!(
            (reply.stop, reply.usage, &*reply.model),
            (StopReason::ToolCalls, usage, "scripted")
        );
    }

    #[test]
    fn what_is_not_expected_is_told() {
        let script = r#"{"turns":[{"expect":{"role":"tool","contains":"sun","results":1,"is_error":false}}]}"#;
        assert!(
            played(
                script,
                0,
                &[ChatMessage::results([ToolCallResult {
                    call: "1".into(),
                    parts: vec![MessagePart::text("sunny")],
                    is_error: false,
                }])]
            )
            .end
            .is_ok()
        );
        assert_eq!(
            refused(script, 0, &[ChatMessage::user("sun")]),
            "the provider rejected the request as invalid: turn 1 of the script: the last message must have the role `tool`, not `user`"
        );
        let failed = [ChatMessage::results([ToolCallResult::error("1", "sun")])];
        assert!(refused(script, 0, &failed).ends_with("must have no failure, but has a failure"));
        let rain = [ChatMessage::results([ToolCallResult {
            is_error: false,
            ..ToolCallResult::error("1", "rain")
        }])];
        assert!(refused(script, 0, &rain).ends_with("must contain `sun`, but is `rain`"));
        assert!(refused(script, 0, &[]).ends_with("expected a message, but there is none"));
        assert!(
            refused(script, 1, &rain).ends_with("the script has 1 turns, but turn 2 was requested")
        );
    }

    #[test]
    fn an_error_is_played_and_may_be_repeated_if_nothing_was_said() {
        let script = r#"{"turns":[
            {"error":{"kind":"overloaded","message":"busy","after_seconds":3}},
            {"text":"I ","error":{"kind":"cut"}}]}"#;
        let error = played(script, 0, &[]).end.unwrap_err();
        assert_eq!(error.to_string(), "the provider is overloaded: busy");
        assert_eq!(error.retry(), RetryDecision::After(Duration::from_secs(3)));
        let error = played(script, 1, &[]).end.unwrap_err();
        assert_eq!(error.to_string(), "while streaming the answer: the answer is truncated");
        assert_eq!(error.retry(), RetryDecision::No);
    }

    async fn heard(
        script: &ModelScript,
        request: ModelRequest,
    ) -> (usize, Result<ModelReply, ProviderError>) {
        let mut said = script.request(request);
        let mut deltas = 0;
        loop {
            match said.next().await.unwrap() {
                ProviderEvent::Delta(_) => deltas += 1,
                ProviderEvent::Retry { .. } => panic!("a script is asked once"),
                ProviderEvent::End(end) => return (deltas, end),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_turn_to_be_played_is_told_by_what_was_said() {
        let script = ModelScript::parse(
            r#"{"turns":[{"calls":[{"name":"a"}]},{"text":"all done","pause_ms":50},
                {"text":"I ","error":{"kind":"overloaded"}}]}"#,
        );
        let script = script.unwrap();
        let mut messages = vec![ChatMessage::user("go")];
        let (deltas, end) = heard(&script, ModelRequest::new(SCRIPTED, messages.clone())).await;
        let reply = end.unwrap();
        assert_eq!((deltas, &reply.stop), (2, &StopReason::ToolCalls));
        messages.push(reply.message);
        messages.push(ChatMessage::results([ToolCallResult::error("scripted_1_1", "no")]));

        let began = tokio::time::Instant::now();
        let (deltas, end) = heard(&script, ModelRequest::new(SCRIPTED, messages.clone())).await;
        assert_eq!((deltas, end.as_ref().unwrap().message.text()), (2, "all done".to_owned()));
        assert_eq!(began.elapsed().as_millis(), 150);
        messages.push(end.unwrap().message);

        let request = ModelRequest::new(SCRIPTED, messages);
        assert_eq!(heard(&script, request.clone()).await.1.unwrap_err().retry(), RetryDecision::No);
        let (deltas, end) =
            heard(&script, ModelRequest { delivery: ReplyDelivery::Complete, ..request }).await;
        assert_eq!((deltas, end.unwrap_err().mid_answer), (0, false));
    }

    #[test]
    fn a_word_that_no_script_knows_is_refused() {
        let wrong = ModelScript::parse(r#"{"turns":[{"txet":"a"}]}"#).unwrap_err();
        assert_eq!(wrong.to_string(), "not a script of turns");
        let source = std::error::Error::source(&wrong).unwrap().to_string();
        assert!(source.starts_with("unknown field `txet`"), "{source}");
    }
}
