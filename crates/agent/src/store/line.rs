//! The lines of a conversation's file: a head, then one step each.
//!
//! A step's line is its JSON with two members before it: `sum`, the totals of all steps so far, so that a listing reads
//! two lines of a file; and `blobs`, by JSON pointer the texts that are stored separately.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ConversationId;
use super::blobs::TextDigest;
use crate::step::{ConversationStep, RunStatus, StepEvent};

/// Version of the file format.
pub(super) const VERSION: u32 = 1;

/// Identifier of the file format.
const FORMAT: &str = "consort conversation";

/// Levels of a stored step: beyond, it could not be read back.
const DEPTH: usize = 127;

/// Bytes from which `data` of a step is stored separately.
const LARGE_DATA: usize = 4 << 10;

/// Bytes from which any text of a step is stored separately.
const LARGE_TEXT: usize = 64 << 10;

/// The first line of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationHead {
    format: String,
    version: u32,
    /// Id of the conversation.
    pub id: ConversationId,
    /// Creation time in milliseconds since 1970.
    pub created: u64,
    /// Title.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// Origin, if it is a copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked: Option<ForkOrigin>,
}

/// Origin of a copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkOrigin {
    /// Id of the original conversation.
    pub from: ConversationId,
    /// Last message that was copied, counted from 1; all of them if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<usize>,
}

/// Reason a line cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LineError {
    /// It is not JSON: at the end of a file, a write was interrupted.
    Torn(String),
    /// It is not of this format.
    Foreign(String),
    /// It was written by a later version.
    Later(u32),
}

impl From<serde_json::Error> for LineError {
    fn from(error: serde_json::Error) -> Self {
        if error.is_data() {
            Self::Foreign(error.to_string())
        } else {
            Self::Torn(error.to_string())
        }
    }
}

impl ConversationHead {
    pub(super) fn new(
        id: ConversationId,
        created: u64,
        title: &str,
        forked: Option<ForkOrigin>,
    ) -> Self {
        let (format, version, title) = (FORMAT.to_owned(), VERSION, title.to_owned());
        Self { format, version, id, created, title, forked }
    }

    pub(super) fn to_line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).expect("texts and numbers always serialise");
        line.push(b'\n');
        line
    }

    pub(super) fn read(line: &[u8]) -> Result<Self, LineError> {
        #[derive(Deserialize)]
        struct FormatVersion {
            format: String,
            version: u32,
        }
        let FormatVersion { format, version } = serde_json::from_slice(line)?;
        match version {
            _ if format != FORMAT => Err(LineError::Foreign(format!("unknown format `{format}`"))),
            VERSION => Ok(serde_json::from_slice(line)?),
            later => Err(LineError::Later(later)),
        }
    }
}

/// Totals of the steps of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StepTotals {
    pub(super) messages: usize,
    pub(super) input: u64,
    pub(super) output: u64,
    /// True if a run began and has not ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) unfinished: bool,
    /// Status of the last run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<RunStatus>,
    /// Calls without a result: when all have one, their results are a message.
    #[serde(skip)]
    pending: Vec<String>,
}

impl StepTotals {
    /// Adds a step. Returns the number of the message that it is part of, if any.
    pub(super) fn add(&mut self, what: &StepEvent) -> Option<usize> {
        match what {
            StepEvent::RunStarted(_) => {
                (self.unfinished, self.status) = (true, None);
                // A new run closes what the last one left open.
                let closes = !self.pending.is_empty();
                self.pending.clear();
                self.messages += usize::from(closes);
                closes.then_some(self.messages)
            }
            StepEvent::RunEnded { status, .. } => {
                (self.unfinished, self.status) = (false, Some(*status));
                None
            }
            StepEvent::Message { .. } => Some(self.message()),
            StepEvent::Reply { reply } => {
                self.input += reply.usage.input;
                self.output += reply.usage.output;
                self.pending = reply.message.calls().map(|call| call.id.clone()).collect();
                Some(self.message())
            }
            StepEvent::Result { result, .. } => {
                let at = self.pending.iter().position(|call| *call == result.call)?;
                self.pending.remove(at);
                Some(if self.pending.is_empty() { self.message() } else { self.messages + 1 })
            }
            StepEvent::Answer { .. } => {
                // A waiting run continues.
                if self.status == Some(RunStatus::Waiting) {
                    (self.unfinished, self.status) = (true, None);
                }
                None
            }
            StepEvent::Summary { usage, .. } => {
                self.input += usage.input;
                self.output += usage.output;
                None
            }
            StepEvent::CallSent { .. }
            | StepEvent::Question { .. }
            | StepEvent::Cut { .. }
            | StepEvent::Truncation { .. }
            | StepEvent::AgentCost { .. } => None,
        }
    }

    fn message(&mut self) -> usize {
        self.messages += 1;
        self.messages
    }
}

/// The end of a file, for a listing.
#[derive(Debug, Deserialize)]
pub(super) struct FileTail {
    pub(super) sum: StepTotals,
    pub(super) at: u64,
}

/// Texts that are stored separately, by JSON pointer.
pub(super) type SeparateTexts = BTreeMap<String, String>;

/// Texts that are not in their line.
pub(super) type LargeTexts = Vec<(TextDigest, String)>;

#[derive(Serialize)]
struct StepLine<'a, T> {
    sum: &'a StepTotals,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    blobs: BTreeMap<&'a str, TextDigest>,
    #[serde(flatten)]
    step: &'a T,
}

/// Returns the line of a step, and the large texts that are not in it.
pub(super) fn write(
    step: &ConversationStep,
    sum: &StepTotals,
) -> Result<(Vec<u8>, LargeTexts), String> {
    let mut line = to_line(&StepLine { sum, blobs: BTreeMap::new(), step });
    let mut taken = Vec::new();
    if line.len() > LARGE_DATA {
        let mut value = serde_json::to_value(step).expect("a step always serialises");
        let mut elsewhere = SeparateTexts::new();
        take(&mut value, "", &mut String::new(), &mut elsewhere);
        if !elsewhere.is_empty() {
            let digest = |(at, text): (&'_ String, &'_ String)| (at.clone(), TextDigest::of(text));
            let digests: Vec<(String, TextDigest)> = elsewhere.iter().map(digest).collect();
            let blobs = digests.iter().map(|(at, digest)| (&**at, *digest)).collect();
            line = to_line(&StepLine { sum, blobs, step: &value });
            taken = digests.iter().map(|(_, it)| *it).zip(elsewhere.into_values()).collect();
        }
    }
    if depth(&line) > DEPTH {
        return Err(format!("a step is nested deeper than {DEPTH} levels"));
    }
    Ok((line, taken))
}

fn to_line(line: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(line).expect("a step always serialises");
    line.push(b'\n');
    line
}

/// Removes large texts from a value.
fn take(value: &mut Value, name: &str, at: &mut String, taken: &mut SeparateTexts) {
    let length = at.len();
    match value {
        Value::String(text) if text.len() > largest(name) => {
            taken.insert(at.clone(), std::mem::take(text));
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                at.push('/');
                at.push_str(&index.to_string());
                take(item, "", at, taken);
                at.truncate(length);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                at.push('/');
                at.push_str(&name.replace('~', "~0").replace('/', "~1"));
                take(member, name, at, taken);
                at.truncate(length);
            }
        }
        _ => {}
    }
}

/// Returns the maximum bytes of a member of this name in a line.
fn largest(name: &str) -> usize {
    if name == "data" { LARGE_DATA } else { LARGE_TEXT }
}

/// Returns the nesting depth of a line.
fn depth(line: &[u8]) -> usize {
    let (mut depth, mut most, mut quoted, mut escaped) = (0_usize, 0, false, false);
    for byte in line {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => {
                depth += 1;
                most = most.max(depth);
            }
            b'}' | b']' if !quoted => depth -= 1,
            _ => {}
        }
    }
    most
}

/// Returns the digests of a line's texts that are stored separately; most lines have none.
pub(super) fn digests(line: &[u8]) -> Result<BTreeMap<String, TextDigest>, LineError> {
    #[derive(Deserialize)]
    struct LineBlobs {
        blobs: BTreeMap<String, TextDigest>,
    }
    // The sum comes first, and there are no braces in it.
    let behind = line.iter().position(|byte| *byte == b'}').map_or(&line[..0], |at| &line[at..]);
    if !behind.starts_with(b"},\"blobs\":") {
        return Ok(BTreeMap::new());
    }
    Ok(serde_json::from_slice::<LineBlobs>(line)?.blobs)
}

/// Returns everything that looks like a digest in a line that cannot be parsed.
pub(super) fn anything_like_digests(line: &[u8]) -> impl Iterator<Item = TextDigest> + '_ {
    let words = line.split(|byte| !byte.is_ascii_alphanumeric());
    words.filter_map(|word| std::str::from_utf8(word).ok()?.parse().ok())
}

/// Parses the step of a line, with its large texts restored.
pub(super) fn read(
    line: &[u8],
    mut fetch: impl FnMut(TextDigest) -> Result<String, String>,
) -> Result<ConversationStep, LineError> {
    let digests = digests(line)?;
    if digests.is_empty() {
        return Ok(serde_json::from_slice(line)?);
    }
    let mut value: Value = serde_json::from_slice(line)?;
    for (at, digest) in digests {
        let text = fetch(digest).map_err(LineError::Foreign)?;
        match value.pointer_mut(&at) {
            Some(place) => *place = Value::String(text),
            None => return Err(LineError::Foreign(format!("no `{at}` for its blob"))),
        }
    }
    Ok(ConversationStep::deserialize(value)?)
}
