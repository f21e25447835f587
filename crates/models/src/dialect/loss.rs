//! Changes made by a projection.

use std::fmt::{self, Write as _};

/// Changes of one tool that are reported; the rest is counted.
const MAX_LOSSES: usize = 200;

/// The longest pointer and the longest text of one change.
const LONGEST: usize = 500;

/// One change that a projection made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectionLoss {
    /// Location in the input schema: a JSON pointer, empty for the root or the tool itself.
    pub pointer: String,
    /// Kind of change.
    pub kind: LossKind,
    /// Description of the change.
    pub description: String,
    /// Reason of the change.
    pub reason: &'static str,
}

impl fmt::Display for ProjectionLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.pointer.is_empty() {
            write!(f, "{}: ", self.pointer.escape_debug())?;
        }
        write!(f, "{}: {}", self.description, self.reason)
    }
}

/// Kind of change, from harmless to harmful.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LossKind {
    /// The tool has another name.
    Renamed,
    /// The same constraint in another form.
    Rewritten,
    /// A constraint is lost: a model may write arguments that the tool refuses.
    Widened,
    /// A value that was allowed no longer is.
    Narrowed,
    /// A part is replaced by a schema that allows anything.
    Replaced,
    /// An option that the definition requests is not set.
    OptionDropped,
}

impl LossKind {
    /// The kind's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Renamed => "renamed",
            Self::Rewritten => "rewritten",
            Self::Widened => "widened",
            Self::Narrowed => "narrowed",
            Self::Replaced => "cut",
            Self::OptionDropped => "refused",
        }
    }
}

impl fmt::Display for LossKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The changes so far.
#[derive(Debug, Default)]
pub(super) struct LossLog {
    reported: Vec<ProjectionLoss>,
    unreported: usize,
}

impl LossLog {
    pub(super) fn record(
        &mut self,
        kind: LossKind,
        at: &SchemaPointer<'_>,
        what: impl Into<String>,
        why: &'static str,
    ) {
        if self.reported.len() < MAX_LOSSES {
            let (mut pointer, mut short) = (TruncatedString::default(), TruncatedString::default());
            // An error is the end of the room.
            let _ = write!(pointer, "{at}");
            let _ = short.write_str(&what.into());
            self.reported.push(ProjectionLoss {
                pointer: pointer.0,
                kind,
                description: short.0,
                reason: why,
            });
        } else {
            self.unreported += 1;
        }
    }

    pub(super) fn into_vec(mut self) -> Vec<ProjectionLoss> {
        if self.unreported > 0 {
            self.reported.push(ProjectionLoss {
                pointer: String::new(),
                kind: LossKind::Widened,
                description: format!("{} more changes", self.unreported),
                reason: "only the first changes are reported individually",
            });
        }
        self.reported
    }
}

/// A string that is truncated when too long: names in a schema may be of any length.
#[derive(Default)]
struct TruncatedString(String);

impl fmt::Write for TruncatedString {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = LONGEST.saturating_sub(self.0.len());
        if text.len() <= room {
            self.0.push_str(text);
            return Ok(());
        }
        self.0.push_str(&text[..text.floor_char_boundary(room)]);
        self.0.push('…');
        Err(fmt::Error)
    }
}

/// A location in a schema, as the path from the root.
#[derive(Clone, Copy, Debug)]
pub(super) struct SchemaPointer<'a> {
    step: Option<(&'a SchemaPointer<'a>, PointerStep<'a>)>,
}

#[derive(Clone, Copy, Debug)]
enum PointerStep<'a> {
    Key(&'a str),
    Item(usize),
}

impl<'a> SchemaPointer<'a> {
    pub(super) fn root() -> Self {
        Self { step: None }
    }

    pub(super) fn key(&'a self, key: &'a str) -> Self {
        Self { step: Some((self, PointerStep::Key(key))) }
    }

    pub(super) fn item(&'a self, item: usize) -> Self {
        Self { step: Some((self, PointerStep::Item(item))) }
    }
}

impl fmt::Display for SchemaPointer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.step {
            None => Ok(()),
            Some((before, PointerStep::Key(key))) => {
                write!(f, "{before}/{}", key.replace('~', "~0").replace('/', "~1"))
            }
            Some((before, PointerStep::Item(item))) => write!(f, "{before}/{item}"),
        }
    }
}
