//! Levels of a server's log messages, as they are typed.

use consort_core::{LogLevel, Logs};

/// Reads a level, or `none`.
pub(super) fn read(text: &str) -> Result<Logs, String> {
    if text == "none" {
        return Ok(Logs::None);
    }
    LogLevel::parse(text).map(Logs::From).ok_or_else(|| {
        "expected debug, info, notice, warning, error, critical, alert, emergency or none"
            .to_owned()
    })
}
