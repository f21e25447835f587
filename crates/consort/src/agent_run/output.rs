//! Output of a run.

use crate::output::{self, TerminalText};

/// Sink for the output of a run.
pub(crate) trait RunOutput: Send {
    /// Writes a text to the standard output, and flushes it.
    fn out(&mut self, text: &TerminalText);

    /// Writes a text to the standard error, and flushes it.
    fn aside(&mut self, text: &TerminalText);

    /// Writes a line to the standard error.
    fn note(&mut self, line: TerminalText) {
        self.aside(&(line + "\n"));
    }
}

/// The standard output and the standard error. A closed pipe is ignored.
#[derive(Debug)]
pub(crate) struct StandardStreams;

impl RunOutput for StandardStreams {
    fn out(&mut self, text: &TerminalText) {
        output::out(text);
    }

    fn aside(&mut self, text: &TerminalText) {
        output::aside(text);
    }
}
