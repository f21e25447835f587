//! Recording of runs, and replay without a model and without servers.
//!
//! A [`Recorder`] wraps a provider and a toolbox and writes, one line each, the catalogs of callers, the model requests
//! and answers, and the calls with their events and results. A [`Replayer`] is a provider and a toolbox that repeat
//! them at once; a run that requests or calls anything else receives an error that names the difference. Calls are
//! matched by tool and arguments, so their order does not matter; model requests are matched in order, or wherever the
//! same was requested.
//!
//! No header is ever written, and no secret that the [`Redactor`] recognizes.

mod difference;
mod line;
mod output;
mod redact;
mod replay;

use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use consort_core::Toolbox;

use consort_models::ModelProvider;
use line::RecordLine;
use output::{RecordingOutput, RecordingProvider, RecordingToolbox};
pub use redact::Redactor;
use replay::{RecordingPlayer, ReplayProvider, ReplayToolbox};

/// Records a run. Clones write to the same output.
#[derive(Clone)]
pub struct Recorder {
    output: Arc<RecordingOutput>,
}

impl Recorder {
    /// Records into a file, replacing its content.
    pub fn create(path: &Path, redactor: Redactor) -> Result<Self, RecordingError> {
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(path);
        let file =
            file.map_err(|source| RecordingError::Unusable { path: path.to_owned(), source })?;
        Ok(Self::to_writer(file, redactor))
    }

    /// Records into any writer.
    pub fn to_writer(out: impl Write + Send + 'static, redactor: Redactor) -> Self {
        Self { output: Arc::new(RecordingOutput::new(out, redactor)) }
    }

    /// Wraps a provider to record it.
    pub fn provider(&self, inner: Arc<dyn ModelProvider>) -> Arc<dyn ModelProvider> {
        Arc::new(RecordingProvider { output: Arc::clone(&self.output), inner })
    }

    /// Wraps a toolbox to record it.
    pub fn toolbox(&self, inner: Arc<dyn Toolbox>) -> Arc<dyn Toolbox> {
        Arc::new(RecordingToolbox { output: Arc::clone(&self.output), inner })
    }

    /// Flushes the recording; returns an error if anything could not be written.
    pub fn finish(&self) -> io::Result<()> {
        self.output.finish()
    }
}

/// Replays a recording. Clones replay the same one.
#[derive(Clone)]
pub struct Replayer {
    player: Arc<RecordingPlayer>,
}

impl Replayer {
    /// Reads a recording. The replayed run is redacted alike for the comparison, so the same secrets must be given.
    pub fn open(path: &Path, redactor: Redactor) -> Result<Self, RecordingError> {
        let unusable = |source| RecordingError::Unusable { path: path.to_owned(), source };
        let file = std::fs::File::open(path).map_err(unusable)?;
        Self::from_reader(BufReader::new(file), redactor).map_err(|error| match error {
            RecordingFault::Io(source) => {
                RecordingError::Unusable { path: path.to_owned(), source }
            }
            RecordingFault::Line(line, reason) => {
                RecordingError::Foreign { path: path.to_owned(), line, reason }
            }
            RecordingFault::Later(version) => {
                RecordingError::Later { path: path.to_owned(), version }
            }
        })
    }

    fn from_reader(text: impl BufRead, redactor: Redactor) -> Result<Self, RecordingFault> {
        let mut lines = Vec::new();
        for (number, text) in text.lines().enumerate() {
            let read = serde_json::from_str(&text.map_err(RecordingFault::Io)?);
            let line: RecordLine =
                read.map_err(|error| RecordingFault::Line(number + 1, error.to_string()))?;
            match &line {
                RecordLine::Head { format, version: line::VERSION } if format == line::FORMAT => {}
                RecordLine::Head { format, version } if format == line::FORMAT => {
                    return Err(RecordingFault::Later(*version));
                }
                _ if number == 0 => {
                    return Err(RecordingFault::Line(1, "the header line is missing".to_owned()));
                }
                _ => {}
            }
            lines.push(line);
        }
        if lines.is_empty() {
            return Err(RecordingFault::Line(1, "the header line is missing".to_owned()));
        }
        Ok(Self { player: Arc::new(RecordingPlayer::new(lines, redactor)) })
    }

    /// Returns true if a tool of this name was listed to the model.
    pub fn lists_tool(&self, tool: &str) -> bool {
        self.player.lists_tool(tool)
    }

    /// Returns a provider that repeats the recorded answers.
    pub fn provider(&self) -> Arc<dyn ModelProvider> {
        Arc::new(ReplayProvider(Arc::clone(&self.player)))
    }

    /// Returns a toolbox that repeats the recorded calls.
    pub fn toolbox(&self) -> Arc<dyn Toolbox> {
        Arc::new(ReplayToolbox(Arc::clone(&self.player)))
    }

    /// Returns an error unless the run was exactly the recorded one.
    pub fn finish(&self) -> Result<(), ReplayDivergence> {
        self.player.divergence().map_or(Ok(()), |difference| Err(ReplayDivergence(difference)))
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

/// Reason lines are no recording.
#[derive(Debug)]
enum RecordingFault {
    Io(io::Error),
    Line(usize, String),
    Later(u32),
}

/// A difference between a replayed run and its recording.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ReplayDivergence(String);

/// Error of a recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// The file cannot be read or written.
    #[error("cannot use the recording `{}`", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The file is no recording.
    #[error("`{}` is not a recording: line {line}: {reason}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// Reason it is invalid.
        reason: String,
    },
    /// The file was written by a later version.
    #[error("the recording `{}` was written by a newer version ({version})", path.display())]
    Later {
        /// The file.
        path: PathBuf,
        /// Version of its format.
        version: u32,
    },
}

#[cfg(test)]
mod tests;
