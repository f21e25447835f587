//! Output: tables for people, JSON for programs, and no control sequences from outside.
//!
//! No other module writes to the standard output and the standard error: they get [`TerminalText`], which only the
//! sanitizer makes, or the bytes of a file if they are no terminal ([`file`]).

mod bar;
mod pager;
mod style;
mod table;
mod terminal;

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

pub(crate) use bar::{advance, label, moving, set_prefix};
pub(crate) use pager::{disable_pager, page};
pub(crate) use style::TextStyle;
pub(crate) use table::{TableCell, TextTable, width};
pub(crate) use terminal::{TerminalText, styled};

/// Prints a line to the standard output. A closed pipe is ignored.
pub(crate) fn line(text: impl Into<TerminalText>) {
    out(&(text.into() + "\n"));
}

/// True if notes on the standard error are events of a JSON log.
static IS_LOGGED: AtomicBool = AtomicBool::new(false);

/// Turns notes into events of the log from now on, so that everything on the standard error has one format.
pub(crate) fn log_notes() {
    IS_LOGGED.store(true, Ordering::Relaxed);
}

/// Prints a line to the standard error.
pub(crate) fn note(text: impl Into<TerminalText>) {
    let text = text.into();
    if !IS_LOGGED.load(Ordering::Relaxed) {
        return aside(&(text + "\n"));
    }
    let text = strip_styles(text.as_str());
    let text = text.trim();
    match text.split_once(": ") {
        Some(("error", text)) => tracing::error!("{text}"),
        Some(("warning", text)) => tracing::warn!("{text}"),
        _ if text.contains("panicked at") => tracing::error!("{text}"),
        _ => tracing::info!("{text}"),
    }
}

/// Returns a text without colors and other styles.
pub(crate) fn strip_styles(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

/// Prints a text to the standard output, and flushes it.
pub(crate) fn out(text: &TerminalText) {
    let mut out = anstream::stdout();
    let _ = write!(out, "{}", text.as_str());
    let _ = out.flush();
}

/// Prints a text to the standard error, and flushes it.
pub(crate) fn aside(text: &TerminalText) {
    let mut err = anstream::stderr();
    let _ = write!(err, "{}", text.as_str());
    let _ = err.flush();
}

/// Prints the text of a file to the standard output, unchanged unless that is a terminal.
pub(crate) fn file(text: &str) {
    let mut out = io::stdout();
    if out.is_terminal() {
        return line(text.trim_end());
    }
    let _ = writeln!(out, "{}", text.trim_end());
}

/// Prints a value as JSON, on one line.
pub(crate) fn json(value: &impl Serialize) {
    match serde_json::to_string(value) {
        Ok(text) => json_text(&text),
        Err(error) => note(format!("cannot write JSON: {error}")),
    }
}

/// Prints a JSON text.
pub(crate) fn json_text(text: &str) {
    line(TerminalText::json(text));
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogText {
    Plain,
    Json,
}

/// Writer of the log to the standard error, one event at a time.
pub(crate) struct LogWriter(pub(crate) LogText);

impl Write for LogWriter {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let text = match self.0 {
            LogText::Plain => TerminalText::from(text),
            LogText::Json => TerminalText::json(&text),
        };
        io::stderr().write_all(text.as_str().as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// The time, to the millisecond: `2026-11-15T07:32:50.314Z`.
pub(crate) fn now() -> String {
    consort_agent::Chunk::now()
}
