//! The model that is meant, and the record of what it says.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use consort::models::{ModelError, Models};
use consort_agent::{Ask, Kind, Message, Model, Provider, Reply, Role, Said, Stop};
use consort_core::Emitting;
use serde_json::{Value, json};

use crate::exit::{Exit, Failure};
use crate::output::{escaped, note};

/// What stands before the file of a script.
const SCRIPTED: &str = "scripted:";

/// The model of a name, or else the one there is.
pub(crate) async fn model(models: &Models, said: Option<&str>) -> Result<Model, Failure> {
    match said.map(str::trim).filter(|said| !said.is_empty() && *said != "ollama") {
        Some(said) => {
            let model = models.model(&typed(said))?;
            // It is called what it was called.
            let id = if said.starts_with(SCRIPTED) { said.to_owned() } else { model.id.clone() };
            Ok(Model { id, ..model })
        }
        None => Ok(models.providers().choose(said).await.map_err(ModelError::from)?),
    }
}

/// A name as it was typed: a script is where the person is, not where the config is.
pub(crate) fn typed(said: &str) -> String {
    match said.strip_prefix(SCRIPTED) {
        Some(path) => {
            let path = std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path));
            format!("{SCRIPTED}{}", path.display())
        }
        None => said.to_owned(),
    }
}

/// The model that plays what was recorded.
pub(crate) fn replayed(file: &Path) -> String {
    format!("{SCRIPTED}{}", file.display())
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        let hint = error.hint();
        Self { message: escaped(&chained(&error)), hint, exit: Exit::Usage }
    }
}

/// What an error says, and what its causes say.
pub(super) fn chained(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        // One that shows its cause as its own says it once.
        if !message.ends_with(&text) {
            message = format!("{message}: {text}");
        }
        cause = error.source();
    }
    message
}

/// The same model, with what it says written to a file that can be played again.
pub(crate) fn recorded(model: Model, file: &Path) -> Model {
    let provider = Recorder { inner: model.provider, file: file.to_owned(), turns: Arc::default() };
    Model { provider: Arc::new(provider), ..model }
}

struct Recorder {
    inner: Arc<dyn Provider>,
    file: PathBuf,
    turns: Arc<Mutex<Vec<Value>>>,
}

impl Provider for Recorder {
    fn ask(&self, ask: Ask) -> Emitting<Said> {
        let before: Vec<Value> = ask
            .messages
            .iter()
            .filter(|message| message.role == Role::Assistant)
            .map(|message| turn(message, None))
            .collect();
        let mut said = self.inner.ask(ask);
        let (turns, file) = (Arc::clone(&self.turns), self.file.clone());
        Emitting::new(|emitter| async move {
            loop {
                match said.next().await {
                    Some(Said::End(end)) => {
                        if let Ok(reply) = &end {
                            keep(&turns, &file, before, reply);
                        }
                        return Said::End(end);
                    }
                    Some(piece) => emitter.emit(piece).await,
                    None => unreachable!("an end comes before nothing"),
                }
            }
        })
    }
}

/// Writes a reply behind those there are. A reply that is not behind them answers somebody else, such
/// as a server, and is not part of the conversation.
fn keep(turns: &Mutex<Vec<Value>>, file: &Path, before: Vec<Value>, reply: &Reply) {
    let mut turns = turns.lock().unwrap_or_else(PoisonError::into_inner);
    if before.len() < turns.len() {
        return;
    }
    let known = turns.len();
    turns.extend(before.into_iter().skip(known));
    turns.push(turn(&reply.message, Some(reply)));
    let text = format!("{:#}\n", json!({ "turns": *turns }));
    if let Err(error) = std::fs::write(file, text) {
        note(format!("warning: `{}` cannot be written: {error}", file.display()));
    }
}

/// What a model said, as a turn of a script.
fn turn(message: &Message, reply: Option<&Reply>) -> Value {
    let mut thinking = String::new();
    let mut text = String::new();
    for part in &message.parts {
        match &part.kind {
            Kind::Thinking { text, .. } => thinking.push_str(text),
            Kind::Text { text: said } | Kind::Refusal { text: said } => text.push_str(said),
            _ => {}
        }
    }
    let calls = message.calls().map(
        |call| json!({ "id": call.id, "name": call.name, "arguments": call.arguments.as_str() }),
    );
    let mut turn = json!({ "text": text, "calls": calls.collect::<Vec<_>>() });
    if !thinking.is_empty() {
        turn["thinking"] = thinking.into();
    }
    if let Some(reply) = reply {
        turn["usage"] = json!(reply.usage);
        let stop = match reply.stop {
            Stop::Length => Some("length"),
            Stop::Refusal => Some("refusal"),
            Stop::ContentFilter => Some("content_filter"),
            Stop::Paused => Some("paused"),
            Stop::End | Stop::ToolCalls | Stop::Other(_) => None,
        };
        if let Some(stop) = stop {
            turn["stop"] = stop.into();
        }
    }
    turn
}

#[cfg(test)]
mod tests {
    use consort_agent::{Call, Part, Script, Usage};

    use super::*;

    #[test]
    fn what_is_recorded_plays_as_it_was_said() {
        let call = Call { id: "c1".into(), name: "a.b".into(), arguments: "{oops".into() };
        let parts = vec![
            Kind::Thinking { text: "hm".into(), redacted: false }.into(),
            Part::text("I see."),
            Kind::ToolCall(call).into(),
        ];
        let reply = Reply {
            message: Message::new(Role::Assistant, parts),
            stop: Stop::ToolCalls,
            usage: Usage { input: 5, output: 6, cached_read: 1, cached_write: 2, reasoning: 3 },
            model: "m".into(),
            id: "x".into(),
        };
        let script = json!({ "turns": [turn(&reply.message, Some(&reply))] }).to_string();
        let played = Script::parse(&script).unwrap().turn::<Message>(0, &[]).end.unwrap();
        assert_eq!(
            (played.message, played.stop, played.usage),
            (reply.message, reply.stop, reply.usage)
        );
    }

    #[test]
    fn what_answers_a_server_is_not_recorded_among_the_turns() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("r.json");
        let turns = Mutex::default();
        let said = |text: &str| Reply {
            message: Message::assistant(text),
            stop: Stop::End,
            usage: Usage::default(),
            model: String::new(),
            id: String::new(),
        };
        let before = |texts: &[&str]| -> Vec<Value> {
            texts.iter().map(|text| turn(&Message::assistant(*text), None)).collect()
        };
        keep(&turns, &file, before(&["of before"]), &said("one"));
        keep(&turns, &file, before(&[]), &said("to a server"));
        keep(&turns, &file, before(&["of before", "one"]), &said("two"));
        let script = Script::parse(&std::fs::read_to_string(file).unwrap()).unwrap();
        let texts: Vec<&str> = script.turns.iter().map(|turn| &*turn.text).collect();
        assert_eq!(texts, ["of before", "one", "two"]);
    }
}
