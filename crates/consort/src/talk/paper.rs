//! Where a run is written.

use std::io::Write;

/// Takes what is shown of a run.
pub(crate) trait Paper: Send {
    /// Writes a piece to the standard output, at once.
    fn out(&mut self, text: &str);

    /// Writes a piece to the standard error, at once.
    fn aside(&mut self, text: &str);

    /// Writes a line to the standard error.
    fn note(&mut self, line: &str) {
        self.aside(&format!("{line}\n"));
    }
}

/// The standard output and the standard error. A reader who left is not our problem.
#[derive(Debug)]
pub(crate) struct Standard;

impl Paper for Standard {
    fn out(&mut self, text: &str) {
        let mut out = anstream::stdout();
        let _ = write!(out, "{text}");
        let _ = out.flush();
    }

    fn aside(&mut self, text: &str) {
        let mut err = anstream::stderr();
        let _ = write!(err, "{text}");
        let _ = err.flush();
    }
}
