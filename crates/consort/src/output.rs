//! How things are shown: tables for people, JSON for programs, nothing that a terminal would obey.

mod style;
mod table;
mod text;

use serde::Serialize;

pub(crate) use style::{Styled, styled};
pub(crate) use table::{Cell, Table, width};
pub(crate) use text::{escaped, escaped_line, shortened};

/// Prints a line to the standard output. A reader who left is not our problem.
pub(crate) fn line(text: impl AsRef<str>) {
    use std::io::Write;
    let _ = writeln!(anstream::stdout(), "{}", text.as_ref());
}

/// Prints a line to the standard error.
pub(crate) fn note(text: impl AsRef<str>) {
    use std::io::Write;
    let _ = writeln!(anstream::stderr(), "{}", text.as_ref());
}

/// Prints a value as JSON, on one line.
pub(crate) fn json(value: &impl Serialize) {
    match serde_json::to_string(value) {
        Ok(text) => line(text),
        Err(error) => note(format!("cannot write JSON: {error}")),
    }
}
