//! Where a run is written.

use crate::output::{self, TerminalText};

/// Takes what is shown of a run.
pub(crate) trait Paper: Send {
    /// Writes a piece to the standard output, at once.
    fn out(&mut self, text: &TerminalText);

    /// Writes a piece to the standard error, at once.
    fn aside(&mut self, text: &TerminalText);

    /// Writes a line to the standard error.
    fn note(&mut self, line: TerminalText) {
        self.aside(&(line + "\n"));
    }
}

/// The standard output and the standard error. A reader who left is not our problem.
#[derive(Debug)]
pub(crate) struct Standard;

impl Paper for Standard {
    fn out(&mut self, text: &TerminalText) {
        output::out(text);
    }

    fn aside(&mut self, text: &TerminalText) {
        output::aside(text);
    }
}
