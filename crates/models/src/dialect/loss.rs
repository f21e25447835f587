//! Changes made by a projection.

use std::fmt::{self, Write as _};

/// Changes of one tool that are reported; the rest is counted.
const TOLD: usize = 200;

/// The longest pointer and the longest text of one change.
const LONGEST: usize = 500;

/// One change that a projection made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Location in the input schema: a JSON pointer, empty for the root or the tool itself.
    pub pointer: String,
    /// Kind of change.
    pub kind: Kind,
    /// Description of the change.
    pub what: String,
    /// Reason of the change.
    pub why: &'static str,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.pointer.is_empty() {
            write!(f, "{}: ", self.pointer.escape_debug())?;
        }
        write!(f, "{}: {}", self.what, self.why)
    }
}

/// Kind of change, from harmless to harmful.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The tool has another name.
    Renamed,
    /// The same constraint in another form.
    Rewritten,
    /// A constraint is lost: a model may write arguments that the tool refuses.
    Widened,
    /// A value that was allowed no longer is.
    Narrowed,
    /// A part is replaced by a schema that allows anything.
    Cut,
    /// An option that the definition requests is not set.
    Refused,
}

impl Kind {
    /// The kind's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Renamed => "renamed",
            Self::Rewritten => "rewritten",
            Self::Widened => "widened",
            Self::Narrowed => "narrowed",
            Self::Cut => "cut",
            Self::Refused => "refused",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The changes so far.
#[derive(Debug, Default)]
pub(super) struct Losses {
    told: Vec<Loss>,
    untold: usize,
}

impl Losses {
    pub(super) fn note(
        &mut self,
        kind: Kind,
        at: &Pointer<'_>,
        what: impl Into<String>,
        why: &'static str,
    ) {
        if self.told.len() < TOLD {
            let (mut pointer, mut short) = (Short::default(), Short::default());
            // An error is the end of the room.
            let _ = write!(pointer, "{at}");
            let _ = short.write_str(&what.into());
            self.told.push(Loss { pointer: pointer.0, kind, what: short.0, why });
        } else {
            self.untold += 1;
        }
    }

    pub(super) fn into_vec(mut self) -> Vec<Loss> {
        if self.untold > 0 {
            self.told.push(Loss {
                pointer: String::new(),
                kind: Kind::Widened,
                what: format!("{} more changes", self.untold),
                why: "only the first are told one by one",
            });
        }
        self.told
    }
}

/// A string that is truncated when too long: names in a schema may be of any length.
#[derive(Default)]
struct Short(String);

impl fmt::Write for Short {
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
pub(super) struct Pointer<'a> {
    step: Option<(&'a Pointer<'a>, Step<'a>)>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Key(&'a str),
    Item(usize),
}

impl<'a> Pointer<'a> {
    pub(super) fn root() -> Self {
        Self { step: None }
    }

    pub(super) fn key(&'a self, key: &'a str) -> Self {
        Self { step: Some((self, Step::Key(key))) }
    }

    pub(super) fn item(&'a self, item: usize) -> Self {
        Self { step: Some((self, Step::Item(item))) }
    }
}

impl fmt::Display for Pointer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.step {
            None => Ok(()),
            Some((before, Step::Key(key))) => {
                write!(f, "{before}/{}", key.replace('~', "~0").replace('/', "~1"))
            }
            Some((before, Step::Item(item))) => write!(f, "{before}/{item}"),
        }
    }
}
