//! Levels of a server's log messages, as they are typed.

use consort_core::{LogDelivery, LogLevel};

/// Reads a level, or `none`.
pub(super) fn read(text: &str) -> Result<LogDelivery, String> {
    if text == "none" {
        return Ok(LogDelivery::None);
    }
    LogLevel::parse(text).map(LogDelivery::From).ok_or_else(|| {
        "expected debug, info, notice, warning, error, critical, alert, emergency or none"
            .to_owned()
    })
}
