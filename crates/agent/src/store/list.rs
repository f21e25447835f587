//! Summaries of conversations: only the first and the last line of each file are read.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use serde::{Serialize, Serializer};

use super::line::{FileTail, LineError, StepTotals};
use super::{ConversationHead, ConversationId, ConversationStore, StoreError};
use crate::step::{ConversationStep, RunStatus};

/// Maximum bytes of the head.
const HEAD: u64 = 1 << 20;

/// Bytes that are read from the end at first.
const CHUNK: u64 = 8 << 10;

/// Summary of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConversationSummary {
    /// Its id.
    pub id: ConversationId,
    /// Its title.
    pub title: String,
    /// Creation time in milliseconds since 1970.
    pub created: u64,
    /// Time of its last step.
    pub last: u64,
    /// Number of messages.
    pub messages: usize,
    /// Input tokens of its models.
    pub input: u64,
    /// Output tokens of its models.
    pub output: u64,
    /// Its state.
    pub state: ConversationState,
    /// Bytes of its file, without texts stored separately.
    pub bytes: u64,
}

/// State of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConversationState {
    /// No run began.
    New,
    /// A run is active, or was interrupted.
    Unfinished,
    /// Status of the last run.
    Over(RunStatus),
    /// It cannot be read.
    Damaged(String),
}

impl ConversationState {
    /// Returns the name of the state.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Unfinished => "unfinished",
            Self::Over(RunStatus::Completed) => "completed",
            Self::Over(RunStatus::LimitReached) => "limit_reached",
            Self::Over(RunStatus::Error) => "error",
            Self::Over(RunStatus::Cancelled) => "cancelled",
            Self::Over(RunStatus::Denied) => "denied",
            Self::Over(RunStatus::Waiting) => "waiting",
            Self::Damaged(_) => "damaged",
        }
    }
}

impl Serialize for ConversationState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl From<&StepTotals> for ConversationState {
    fn from(sum: &StepTotals) -> Self {
        match sum.status {
            _ if sum.unfinished => Self::Unfinished,
            Some(status) => Self::Over(status),
            None => Self::New,
        }
    }
}

impl ConversationStore {
    /// Returns a summary of every conversation, the oldest first, including those that cannot be read.
    pub fn list(&self) -> Result<Vec<ConversationSummary>, StoreError> {
        let mut summaries = Vec::new();
        for id in self.ids()? {
            let path = self.path(&id);
            let mut summary = ConversationSummary {
                id,
                title: String::new(),
                created: 0,
                last: 0,
                messages: 0,
                input: 0,
                output: 0,
                state: ConversationState::New,
                bytes: 0,
            };
            match File::open(&path).and_then(|file| read_summary(file, &mut summary)) {
                Ok(()) => {}
                // It was removed in the meantime.
                Err(error) if super::is_missing(&error) => continue,
                Err(error) => summary.state = ConversationState::Damaged(error.to_string()),
            }
            summaries.push(summary);
        }
        Ok(summaries)
    }
}

/// Returns the number of the message that each step is part of, counted from 1, as in
/// [`Conversation::messages`](crate::Conversation::messages). Other steps have none.
pub fn message_numbers(steps: &[ConversationStep]) -> Vec<Option<usize>> {
    let mut sum = StepTotals::default();
    steps.iter().map(|step| sum.add(&step.event)).collect()
}

fn read_summary(file: File, summary: &mut ConversationSummary) -> io::Result<()> {
    summary.bytes = file.metadata()?.len();
    let mut file = BufReader::new(file);
    let mut line = Vec::new();
    let read = Read::by_ref(&mut file).take(HEAD).read_until(b'\n', &mut line)?;
    let head = ConversationHead::read(&line).map_err(line_error)?;
    (summary.title, summary.created, summary.last) = (head.title, head.created, head.created);
    let start = read as u64;
    if let Some(line) = last_line(file.get_mut(), start, summary.bytes)? {
        let FileTail { sum, at } =
            serde_json::from_slice(&line).map_err(LineError::from).map_err(line_error)?;
        (summary.last, summary.messages) = (at, sum.messages);
        (summary.input, summary.output) = (sum.input, sum.output);
        summary.state = ConversationState::from(&sum);
    }
    Ok(())
}

/// Returns the last complete line, from `start` on.
fn last_line(file: &mut File, start: u64, length: u64) -> io::Result<Option<Vec<u8>>> {
    let mut chunk = CHUNK;
    loop {
        let from = length.saturating_sub(chunk).max(start);
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        Read::by_ref(file).take(length - from).read_to_end(&mut bytes)?;
        let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') else {
            if from == start {
                return Ok(None);
            }
            chunk *= 4;
            continue;
        };
        match bytes[..end].iter().rposition(|byte| *byte == b'\n') {
            Some(before) => return Ok(Some(bytes[before + 1..end].to_vec())),
            None if from == start => return Ok(Some(bytes[..end].to_vec())),
            None => chunk *= 4,
        }
    }
}

fn line_error(wrong: LineError) -> io::Error {
    let reason = match wrong {
        LineError::Torn(reason) | LineError::Foreign(reason) => reason,
        LineError::Later(version) => format!("it was written by a newer version ({version})"),
    };
    io::Error::new(io::ErrorKind::InvalidData, reason)
}
