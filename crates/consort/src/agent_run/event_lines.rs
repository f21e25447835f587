//! A run for programs: one line of JSON per event.

use std::collections::BTreeMap;

use consort_agent::RunEvent;
use serde::Serialize;
use serde_json::{Value, json};

use crate::output::{note, now};

/// Writes events as lines.
#[derive(Debug)]
pub(crate) struct EventLineWriter {
    form: LineFormat,
    sequence: u64,
    /// The tool of each call in progress, by the call's id.
    tools: BTreeMap<String, String>,
}

/// Format of the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineFormat {
    /// Each event unchanged.
    Events,
    /// Events of tools in the format of `consort call`.
    Chunks,
}

#[derive(Serialize)]
struct EventLine<'a> {
    #[serde(flatten)]
    event: &'a RunEvent,
    sequence_id: u64,
    timestamp: String,
}

/// An event of a tool.
#[derive(Serialize)]
struct ToolChunk<'a> {
    event: &'static str,
    call: &'a str,
    tool_name: &'a str,
    chunk_type: &'static str,
    content: ChunkContent<'a>,
    is_final: bool,
    sequence_id: u64,
    timestamp: String,
}

/// Content of a chunk: built here, or passed through.
#[derive(Serialize)]
#[serde(untagged)]
enum ChunkContent<'a> {
    Made(Value),
    Json(&'a consort_core::Json),
}

/// A chunk without its sequence number: event, call, kind, content and true for the last.
type ChunkParts<'a> = (&'static str, &'a str, &'static str, ChunkContent<'a>, bool);

impl EventLineWriter {
    pub(crate) fn new(form: LineFormat) -> Self {
        Self { form, sequence: 0, tools: BTreeMap::new() }
    }

    /// The id of the conversation, as a line.
    pub(crate) fn conversation(&mut self, id: &str) -> String {
        self.sequence += 1;
        let (sequence, timestamp) = (self.sequence, now());
        json!({ "event": "conversation", "id": id, "sequence_id": sequence, "timestamp": timestamp })
            .to_string()
    }

    /// An event as a line, without its line end.
    pub(crate) fn line(&mut self, event: &RunEvent) -> Option<String> {
        self.sequence += 1;
        let (sequence_id, timestamp) = (self.sequence, now());
        if let RunEvent::CallStarted { call, tool } = event {
            self.tools.insert(call.id.clone(), tool.clone());
        }
        let told = if self.form == LineFormat::Chunks { chunk_parts(event) } else { None };
        let written = match told {
            None => serde_json::to_string(&EventLine { event, sequence_id, timestamp }),
            Some((event, call, chunk_type, content, is_final)) => {
                let tool_name = self.tools.get(call).map_or("", String::as_str);
                serde_json::to_string(&ToolChunk {
                    event,
                    call,
                    tool_name,
                    chunk_type,
                    content,
                    is_final,
                    sequence_id,
                    timestamp,
                })
            }
        };
        if let RunEvent::Result { result, .. } = event {
            self.tools.remove(&result.call);
        }
        written.inspect_err(|error| note(format!("cannot write JSON: {error}"))).ok()
    }
}

/// Converts an event to a chunk, if it is about a tool.
fn chunk_parts(event: &RunEvent) -> Option<ChunkParts<'_>> {
    Some(match event {
        RunEvent::CallStarted { call, .. } => {
            let content = json!({ "name": call.name, "arguments": call.arguments.as_str() });
            ("called", &call.id, "call", ChunkContent::Made(content), false)
        }
        RunEvent::Progress { call, progress, total, message } => {
            let content = json!({ "progress": progress, "total": total, "message": message });
            ("progress", call, "progress", ChunkContent::Made(content), false)
        }
        RunEvent::Log { call, log } => ("log", call, "log", ChunkContent::Json(log), false),
        RunEvent::Question { question, .. } => {
            let content = json!({
                "id": question.id, "kind": question.kind, "params": question.params,
            });
            ("question", &question.call, "question", ChunkContent::Made(content), false)
        }
        RunEvent::Result { result, error, duration_ms: took } => {
            let kind = if error.is_some() { "error" } else { "complete" };
            let content = json!({
                "parts": result.parts, "is_error": result.is_error, "kind": error, "took": took,
            });
            ("result", &result.call, kind, ChunkContent::Made(content), true)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_core::Json;
    use consort_models::{MessagePart, ToolCall, ToolCallResult};

    fn lines(form: LineFormat, events: &[RunEvent]) -> Vec<Value> {
        let mut lines = EventLineWriter::new(form);
        let lines = events.iter().map(|event| lines.line(event).unwrap());
        lines
            .map(|line| {
                let mut value: Value = serde_json::from_str(&line).unwrap();
                assert!(value["timestamp"].as_str().unwrap().ends_with('Z'));
                value.as_object_mut().unwrap().remove("timestamp");
                value
            })
            .collect()
    }

    fn events() -> Vec<RunEvent> {
        let call =
            ToolCall { id: "1".into(), name: "search".into(), arguments: r#"{"q":1}"#.into() };
        let log = Json::parse(r#"{"level":"info","data":12345678901234567890}"#).unwrap();
        let result = ToolCallResult {
            call: "1".into(),
            parts: vec![MessagePart::text("x")],
            is_error: false,
        };
        vec![
            RunEvent::Requesting { turn: 1 },
            RunEvent::CallStarted { call, tool: "web.search".into() },
            RunEvent::Progress { call: "1".into(), progress: 1.0, total: Some(2.0), message: None },
            RunEvent::Log { call: "1".into(), log },
            RunEvent::Result { result, error: None, duration_ms: 5 },
        ]
    }

    #[test]
    fn each_event_is_a_line_with_its_place_and_time() {
        let lines = lines(LineFormat::Events, &events());
        assert_eq!(lines[0], json!({ "event": "asking", "turn": 1, "sequence_id": 1 }));
        assert_eq!(
            lines[2],
            json!({ "event": "progress", "call": "1", "progress": 1.0, "total": 2.0, "sequence_id": 3 })
        );
    }

    #[test]
    fn what_is_about_a_tool_can_be_a_chunk_as_of_a_call() {
        let lines = lines(LineFormat::Chunks, &events());
        let about = |event: &str, kind: &str, content: Value, last: bool, sequence: u64| {
            json!({
                "event": event, "call": "1", "tool_name": "web.search", "chunk_type": kind,
                "content": content, "is_final": last, "sequence_id": sequence,
            })
        };
        assert_eq!(lines[0], json!({ "event": "asking", "turn": 1, "sequence_id": 1 }));
        let called = json!({ "name": "search", "arguments": r#"{"q":1}"# });
        assert_eq!(lines[1], about("called", "call", called, false, 2));
        let moved = json!({ "progress": 1.0, "total": 2.0, "message": null });
        assert_eq!(lines[2], about("progress", "progress", moved, false, 3));
        let logged = json!({ "level": "info", "data": 12_345_678_901_234_567_890_u64 });
        assert_eq!(lines[3], about("log", "log", logged, false, 4));
        let done = json!({
            "parts": [{ "type": "text", "text": "x" }], "is_error": false, "kind": null, "took": 5,
        });
        assert_eq!(lines[4], about("result", "complete", done, true, 5));
    }
}
