//! How things are shown: tables for people, JSON for programs, nothing that a terminal would obey.

mod bar;
mod style;
mod table;
mod text;

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

pub(crate) use bar::{advance, moving};
pub(crate) use style::{Styled, styled};
pub(crate) use table::{Cell, Table, width};
pub(crate) use text::{escaped, escaped_line, shortened, spoken};

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

/// The time, to the millisecond: `2026-11-15T07:32:50.314Z`.
pub(crate) fn now() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let second = consort_core::utc(now.as_secs());
    format!("{}.{:03}Z", second.trim_end_matches('Z'), now.subsec_millis())
}
