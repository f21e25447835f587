//! Problems, which are reported instead of hidden.

use std::fmt;

use serde::Serialize;

use crate::name::ServerId;

/// A report of something left out, shortened, changed or down. Nothing is omitted without one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Severity.
    pub severity: Severity,
    /// The server it concerns.
    pub server: Option<ServerId>,
    /// Description of the problem.
    pub message: String,
    /// Advice on how to fix it.
    pub hint: Option<String>,
}

/// Severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something does not work.
    Error,
    /// Something works in an unexpected way.
    Warning,
}

impl Problem {
    /// Creates an error.
    pub fn error(message: impl Into<String>) -> Self {
        Self { severity: Severity::Error, server: None, message: message.into(), hint: None }
    }

    /// Creates a warning.
    pub fn warning(message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(message) }
    }

    /// Sets the server.
    #[must_use]
    pub fn of(mut self, server: &ServerId) -> Self {
        self.server = Some(server.clone());
        self
    }

    /// Adds advice.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(server) = &self.server {
            write!(f, "{server}: ")?;
        }
        f.write_str(&self.message)
    }
}
