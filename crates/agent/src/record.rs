//! Runs, recorded and played again without a model and without servers.
//!
//! A [`Recorder`] goes around a provider and a toolbox and writes down, one line each, what callers saw,
//! what the model was asked and said, what was called and what came of it. A [`Replayer`] is a provider
//! and a toolbox that say the same again, at once; a run that asks or calls anything else is told where
//! it left the recording. Calls are told apart by what they call and with what, so their order does not
//! matter; questions to the model come in order, or wherever the same was asked.
//!
//! No header is ever written, and no secret that the [`Redactor`] can tell.

mod differ;
mod line;
mod redact;
mod replay;
mod tape;

use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use consort_core::Toolbox;

use crate::provider::Provider;
use line::Line;
pub use redact::Redactor;
use replay::{Played, Player, Speaking};
use tape::{Heard, Tape, Watched};

/// The name of a model whose answers are played from a recording.
pub const MODEL: &str = "replayed";

/// Writes down what goes by. Clones write to the same place.
#[derive(Clone)]
pub struct Recorder {
    tape: Arc<Tape>,
}

impl Recorder {
    /// Records into a file, in place of what was in it.
    pub fn create(path: &Path, redactor: Redactor) -> Result<Self, RecordError> {
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(path);
        let file =
            file.map_err(|source| RecordError::Unusable { path: path.to_owned(), source })?;
        Ok(Self::to(file, redactor))
    }

    /// Records into anything.
    pub fn to(out: impl Write + Send + 'static, redactor: Redactor) -> Self {
        Self { tape: Arc::new(Tape::new(out, redactor)) }
    }

    /// The same provider, recorded.
    pub fn provider(&self, inner: Arc<dyn Provider>) -> Arc<dyn Provider> {
        Arc::new(Heard { tape: Arc::clone(&self.tape), inner })
    }

    /// The same toolbox, recorded.
    pub fn toolbox(&self, inner: Arc<dyn Toolbox>) -> Arc<dyn Toolbox> {
        Arc::new(Watched { tape: Arc::clone(&self.tape), inner })
    }

    /// Whether everything could be written.
    pub fn finish(&self) -> io::Result<()> {
        self.tape.finish()
    }
}

/// Plays a recording again. Clones play the same one.
#[derive(Clone)]
pub struct Replayer {
    player: Arc<Player>,
}

impl Replayer {
    /// Reads a recording. What is compared with it is redacted alike, so the same secrets are to be told.
    pub fn open(path: &Path, redactor: Redactor) -> Result<Self, RecordError> {
        let unusable = |source| RecordError::Unusable { path: path.to_owned(), source };
        let file = std::fs::File::open(path).map_err(unusable)?;
        Self::from(BufReader::new(file), redactor).map_err(|error| match error {
            Bad::Io(source) => RecordError::Unusable { path: path.to_owned(), source },
            Bad::Line(line, reason) => RecordError::Foreign { path: path.to_owned(), line, reason },
            Bad::Later(version) => RecordError::Later { path: path.to_owned(), version },
        })
    }

    fn from(text: impl BufRead, redactor: Redactor) -> Result<Self, Bad> {
        let mut lines = Vec::new();
        for (number, text) in text.lines().enumerate() {
            let read = serde_json::from_str(&text.map_err(Bad::Io)?);
            let line: Line = read.map_err(|error| Bad::Line(number + 1, error.to_string()))?;
            match &line {
                Line::Head { format, version: line::VERSION } if format == line::FORMAT => {}
                Line::Head { format, version } if format == line::FORMAT => {
                    return Err(Bad::Later(*version));
                }
                _ if number == 0 => return Err(Bad::Line(1, "there is no head".to_owned())),
                _ => {}
            }
            lines.push(line);
        }
        if lines.is_empty() {
            return Err(Bad::Line(1, "there is no head".to_owned()));
        }
        Ok(Self { player: Arc::new(Player::new(lines, redactor)) })
    }

    /// Whether the model was offered a tool of this name.
    pub fn offers(&self, tool: &str) -> bool {
        self.player.offers(tool)
    }

    /// A provider that says what was said.
    pub fn provider(&self) -> Arc<dyn Provider> {
        Arc::new(Speaking(Arc::clone(&self.player)))
    }

    /// A toolbox in which what happened happens again.
    pub fn toolbox(&self) -> Arc<dyn Toolbox> {
        Arc::new(Played(Arc::clone(&self.player)))
    }

    /// Whether the run was the recorded one, all of it and nothing else.
    pub fn finish(&self) -> Result<(), Divergence> {
        self.player.divergence().map_or(Ok(()), |told| Err(Divergence(told)))
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Recorder")
    }
}

impl std::fmt::Debug for Replayer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Replayer")
    }
}

/// Why lines are no recording.
#[derive(Debug)]
enum Bad {
    Io(io::Error),
    Line(usize, String),
    Later(u32),
}

/// A run that was played again is another one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Divergence(String);

/// Why there is no recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The file cannot be read or written.
    #[error("cannot use the recording `{}`", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file is something else.
    #[error("`{}` is no recording: line {line}: {reason}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Where, counted from 1.
        line: usize,
        /// Why.
        reason: String,
    },
    /// The file was written by a later version.
    #[error("the recording `{}` is of a later version ({version})", path.display())]
    Later {
        /// The file.
        path: PathBuf,
        /// The version of its form.
        version: u32,
    },
}

#[cfg(test)]
mod tests;
