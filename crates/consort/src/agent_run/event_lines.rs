//! A run for programs: one line of JSON per event.

use consort_agent::{RunChunks, RunEvent};
use serde::Serialize;
use serde_json::json;

use crate::output::{note, now};

/// Writes events as lines.
#[derive(Debug)]
pub(crate) struct EventLineWriter {
    form: LineFormat,
    chunks: RunChunks,
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

impl EventLineWriter {
    pub(crate) fn new(form: LineFormat) -> Self {
        Self { form, chunks: RunChunks::default() }
    }

    /// The id of the conversation, as a line.
    pub(crate) fn conversation(&mut self, id: &str) -> String {
        let (sequence, timestamp) = (self.chunks.number(), now());
        json!({ "event": "conversation", "id": id, "sequence_id": sequence, "timestamp": timestamp })
            .to_string()
    }

    /// An event as a line, without its line end.
    pub(crate) fn line(&mut self, event: &RunEvent) -> Option<String> {
        let sequence_id = self.chunks.number();
        let chunk = match self.form {
            LineFormat::Chunks => self.chunks.chunk(event, sequence_id),
            LineFormat::Events => None,
        };
        let written = match chunk {
            Some(chunk) => serde_json::to_string(&chunk),
            None => serde_json::to_string(&EventLine { event, sequence_id, timestamp: now() }),
        };
        written.inspect_err(|error| note(format!("cannot write JSON: {error}"))).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_core::Json;
    use consort_models::{MessagePart, ToolCall, ToolCallResult};
    use serde_json::Value;

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
                "chunk_version": 1, "event": event, "call": "1", "tool_name": "web.search", "chunk_type": kind,
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
