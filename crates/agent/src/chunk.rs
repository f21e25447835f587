//! Events of calls as chunks: one public, versioned form for the command line, the library and other programs.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use consort_core::{CallError, CallEvent, CallEvents, CallOutcome, DrivenStream, Json, utc};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::event::RunEvent;

/// One event of a call, as programs receive it: one line of JSON each, the last with `is_final`.
///
/// [`Chunk::schema`] is its JSON Schema. A later version may add members; a changed meaning changes
/// [`version`](Self::version).
///
/// ```
/// use consort_agent::{Chunk, ChunkSequence, ChunkType};
/// use consort_core::{CallEvent, CallOutcome, ToolResult};
///
/// let mut chunks = ChunkSequence::new("demo.search");
/// let end = CallEvent::End(Ok(CallOutcome::Complete(ToolResult::text("found"))));
/// let chunk = chunks.event(&end);
/// assert_eq!((chunk.sequence_id, chunk.chunk_type, chunk.is_final), (1, ChunkType::Complete, true));
///
/// let line = serde_json::to_string(&chunk)?;
/// assert_eq!(serde_json::from_str::<Chunk>(&line)?, chunk);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    /// Version of this form.
    #[serde(rename = "chunk_version")]
    pub version: u32,
    /// Name of the run's event, such as `called` or `result`. Absent for a call outside of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// Id of the call in its run. Absent for a call outside of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The tool, as `server.tool`.
    pub tool_name: String,
    /// Its kind.
    pub chunk_type: ChunkType,
    /// Its content, by kind.
    #[serde(deserialize_with = "read_content")]
    pub content: Json,
    /// True for the last chunk of a call.
    pub is_final: bool,
    /// Its number in the stream, from 1.
    pub sequence_id: u64,
    /// Further facts: `is_error` of a result.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// Time of its receipt, in UTC with milliseconds.
    pub timestamp: String,
}

/// Kind of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChunkType {
    /// A call of a run began: its name and arguments.
    Call,
    /// Progress: `progress`, `total`, `message`.
    Progress,
    /// A log message of the server.
    Log,
    /// A question to the user, or an approval.
    Question,
    /// It became a task, or the task's state changed.
    Task,
    /// Any other notification of the server.
    Data,
    /// A number of events that were dropped because they were not read in time.
    Skipped,
    /// The result. It is final.
    Complete,
    /// The error: `kind`, `message`, `hint`, `repeat`. It is final.
    Error,
}

impl ChunkType {
    /// Every kind.
    pub const ALL: [Self; 9] = [
        Self::Call,
        Self::Progress,
        Self::Log,
        Self::Question,
        Self::Task,
        Self::Data,
        Self::Skipped,
        Self::Complete,
        Self::Error,
    ];
}

impl Chunk {
    /// The present version.
    pub const VERSION: u32 = 1;

    /// Returns the JSON Schema (2020-12) of a line of events: a chunk, or another event of a run.
    pub fn schema() -> Value {
        let number = json!({ "type": "integer", "minimum": 1 });
        let time =
            json!({ "type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$" });
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Event",
            "description": "A line of `--json` of a call or a run",
            "anyOf": [{ "$ref": "#/$defs/chunk" }, { "$ref": "#/$defs/run_event" }],
            "$defs": {
                "chunk": {
                    "type": "object",
                    "description": "An event of a call",
                    "properties": {
                        "chunk_version": { "const": Self::VERSION },
                        "event": { "type": "string" },
                        "call": { "type": "string" },
                        "tool_name": { "type": "string" },
                        "chunk_type": { "enum": ChunkType::ALL },
                        "content": {},
                        "is_final": { "type": "boolean" },
                        "sequence_id": number,
                        "metadata": { "type": "object" },
                        "timestamp": time,
                    },
                    "required": [
                        "chunk_version", "tool_name", "chunk_type", "content", "is_final", "sequence_id",
                        "timestamp",
                    ],
                    "additionalProperties": false,
                },
                "run_event": {
                    "type": "object",
                    "description": "An event of a run that is not about a call",
                    "properties": {
                        "event": { "type": "string" },
                        "sequence_id": number,
                        "timestamp": time,
                    },
                    "required": ["event", "sequence_id", "timestamp"],
                    "not": { "required": ["chunk_type"] },
                },
            },
        })
    }

    fn new(tool_name: String, chunk_type: ChunkType, content: Json, sequence_id: u64) -> Self {
        Self {
            version: Self::VERSION,
            event: None,
            call: None,
            tool_name,
            chunk_type,
            content,
            is_final: matches!(chunk_type, ChunkType::Complete | ChunkType::Error),
            sequence_id,
            metadata: Map::new(),
            timestamp: Self::now(),
        }
    }

    /// Returns the present time as a chunk has it.
    pub fn now() -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let second = utc(now.as_secs());
        format!("{}.{:03}Z", second.trim_end_matches('Z'), now.subsec_millis())
    }
}

fn read_content<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    Json::parse(raw.get().to_owned()).map_err(D::Error::custom)
}

/// Returns a method and its parameters, which stay byte for byte.
fn message(method: &str, params: &Json) -> Json {
    #[derive(Serialize)]
    struct Message<'a> {
        method: &'a str,
        params: &'a Json,
    }
    Json::from_value(&Message { method, params }).unwrap_or(Json::NULL)
}

/// Numbers the chunks of one call.
#[derive(Clone, Debug)]
pub struct ChunkSequence {
    tool_name: String,
    sequence: u64,
}

impl ChunkSequence {
    /// Starts the chunks of a call of this tool.
    pub fn new(tool_name: impl Into<String>) -> Self {
        Self { tool_name: tool_name.into(), sequence: 0 }
    }

    /// Returns an event as the next chunk.
    pub fn event(&mut self, event: &CallEvent) -> Chunk {
        let (kind, content) = match event {
            CallEvent::Progress(progress) => {
                let (done, total) = (progress.progress(), progress.total());
                let shown =
                    json!({ "progress": done, "total": total, "message": progress.message() });
                (ChunkType::Progress, shown.into())
            }
            CallEvent::Log(params) => (ChunkType::Log, params.json().clone()),
            CallEvent::Question(question) | CallEvent::Approval(question) => {
                (ChunkType::Question, message(&question.method, question.params.json()))
            }
            CallEvent::Task(task) => (ChunkType::Task, task.json().clone()),
            CallEvent::Notification { method, params } => {
                (ChunkType::Data, message(method, params.json()))
            }
            CallEvent::Skipped(count) => (ChunkType::Skipped, json!(count).into()),
            CallEvent::End(end) => return self.end(end),
            _ => (ChunkType::Data, Json::NULL),
        };
        self.next(kind, content)
    }

    fn end(&mut self, end: &Result<CallOutcome, CallError>) -> Chunk {
        match end {
            Ok(outcome) => {
                let mut chunk = self.next(ChunkType::Complete, outcome.object().json().clone());
                if let CallOutcome::Complete(result) = outcome {
                    chunk.metadata.insert("is_error".to_owned(), result.is_error().into());
                }
                chunk
            }
            Err(error) => {
                let repeat = format!("{:?}", error.repeat()).to_lowercase();
                self.error(error.kind(), &error.to_string(), error.hint().as_deref(), &repeat)
            }
        }
    }

    /// Returns an error as the last chunk, for a call that failed or was not made.
    pub fn error(&mut self, kind: &str, message: &str, hint: Option<&str>, repeat: &str) -> Chunk {
        let content = json!({ "kind": kind, "message": message, "hint": hint, "repeat": repeat });
        self.next(ChunkType::Error, content.into())
    }

    fn next(&mut self, chunk_type: ChunkType, content: Json) -> Chunk {
        self.sequence += 1;
        Chunk::new(self.tool_name.clone(), chunk_type, content, self.sequence)
    }
}

/// Returns the events of a call as chunks, up to exactly one final one. Dropping them cancels the call.
pub fn chunks(tool_name: impl Into<String>, mut events: CallEvents) -> DrivenStream<Chunk> {
    let mut sequence = ChunkSequence::new(tool_name);
    DrivenStream::new(|sender| async move {
        loop {
            let Some(event) = events.next().await else {
                unreachable!("the events of a call have an end")
            };
            let chunk = sequence.event(&event);
            if chunk.is_final {
                return chunk;
            }
            sender.emit(chunk).await;
        }
    })
}

/// Numbers the events of a run, and gives those of its calls as chunks.
#[derive(Debug, Default)]
pub struct RunChunks {
    sequence: u64,
    /// The tool of each call in progress, by the call's id.
    tools: BTreeMap<String, String>,
}

impl RunChunks {
    /// Returns the number of the next event.
    pub fn number(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// Returns an event as a chunk with its number, if it is about a call. Pass every event of the run: the start of a call
    /// alone names its tool.
    pub fn chunk(&mut self, event: &RunEvent, sequence_id: u64) -> Option<Chunk> {
        if let RunEvent::CallStarted { call, tool } = event {
            self.tools.insert(call.id.clone(), tool.clone());
        }
        let (name, call, chunk_type, content) = parts(event)?;
        let tool_name = match event {
            RunEvent::Result { .. } => self.tools.remove(call),
            _ => self.tools.get(call).cloned(),
        };
        Some(Chunk {
            event: Some(name.to_owned()),
            call: Some(call.to_owned()),
            ..Chunk::new(tool_name.unwrap_or_default(), chunk_type, content, sequence_id)
        })
    }
}

/// Returns the name, call, kind and content of an event, if it is about a call.
fn parts(event: &RunEvent) -> Option<(&'static str, &str, ChunkType, Json)> {
    Some(match event {
        RunEvent::CallStarted { call, .. } => {
            let content = json!({ "name": call.name, "arguments": call.arguments.as_str() });
            ("called", &call.id, ChunkType::Call, content.into())
        }
        RunEvent::Progress { call, progress, total, message } => {
            let content = json!({ "progress": progress, "total": total, "message": message });
            ("progress", call, ChunkType::Progress, content.into())
        }
        RunEvent::Log { call, log } => ("log", call, ChunkType::Log, log.clone()),
        RunEvent::Question { question, .. } => {
            let content = json!({
                "id": question.id, "kind": question.kind, "params": question.params,
            });
            ("question", &question.call, ChunkType::Question, content.into())
        }
        RunEvent::Result { result, error, duration_ms } => {
            let kind = if error.is_some() { ChunkType::Error } else { ChunkType::Complete };
            let content = json!({
                "parts": result.parts, "is_error": result.is_error, "kind": error, "took": duration_ms,
            });
            ("result", &result.call, kind, content.into())
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use consort_core::{Progress, ServerId, ToolResult};

    use super::*;

    fn valid(line: &Value) -> Vec<String> {
        let validator = jsonschema::options().build(&Chunk::schema()).unwrap();
        validator.iter_errors(line).map(|error| error.to_string()).collect()
    }

    fn events() -> Vec<CallEvent> {
        let object =
            || Json::parse(r#"{"level":"info","data":1e400}"#).unwrap().to_object().unwrap();
        let unknown = CallError::Unknown { kind: "tool", name: "x".into(), nearest: Vec::new() };
        vec![
            CallEvent::Progress(Progress::new(1.0, Some(2.0), Some("half"))),
            CallEvent::Log(object()),
            CallEvent::Task(object()),
            CallEvent::Notification { method: "notifications/x".into(), params: object() },
            CallEvent::Skipped(3),
            CallEvent::End(Ok(CallOutcome::Complete(ToolResult::text("done")))),
            CallEvent::End(Ok(CallOutcome::Task(object()))),
            CallEvent::End(Err(unknown)),
        ]
    }

    #[test]
    fn every_event_is_a_chunk_of_the_schema_and_is_read_back() {
        let mut sequence = ChunkSequence::new("demo.search");
        for (place, event) in events().iter().enumerate() {
            let chunk = sequence.event(event);
            assert_eq!(chunk.sequence_id, place as u64 + 1);
            assert_eq!(chunk.is_final, matches!(event, CallEvent::End(_)));
            let line = serde_json::to_string(&chunk).unwrap();
            assert_eq!(serde_json::from_str::<Chunk>(&line).unwrap(), chunk, "byte for byte");
            let small = line.replace("1e400", "1");
            assert_eq!(
                valid(&serde_json::from_str(&small).unwrap()),
                Vec::<String>::new(),
                "{line}"
            );
        }
    }

    #[test]
    fn the_schema_refuses_other_kinds_versions_and_members() {
        let chunk = ChunkSequence::new("demo.search").event(&CallEvent::Skipped(1));
        let good = serde_json::to_value(&chunk).unwrap();
        assert_eq!(valid(&good), Vec::<String>::new());
        for (member, value) in [
            ("chunk_type", json!("other")),
            ("chunk_version", json!(2)),
            ("sequence_id", json!(0)),
            ("timestamp", json!("yesterday")),
            ("more", json!(1)),
        ] {
            let mut bad = good.clone();
            bad[member] = value;
            assert!(!valid(&bad).is_empty(), "{bad}");
        }
    }

    #[tokio::test]
    async fn a_stream_of_chunks_has_one_final_chunk_and_it_is_the_last() {
        let server: ServerId = "demo".parse().unwrap();
        let events = CallEvents::new(|sender| async move {
            sender.emit(CallEvent::Skipped(1)).await;
            CallEvent::End(Ok(CallOutcome::Complete(ToolResult::text("done"))))
        });
        let mut stream = chunks(format!("{server}.search"), events);
        let mut finals = Vec::new();
        while let Some(chunk) = stream.next().await {
            finals.push(chunk.is_final);
        }
        assert_eq!(finals, [false, true]);
    }
}
