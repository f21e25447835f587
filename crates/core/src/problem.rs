//! What is not as it should be, and is not hidden.

use std::fmt;

use serde::Serialize;

use crate::name::ServerId;

/// Something left out, shortened, changed or down. Nothing vanishes without one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// The server it concerns.
    pub server: Option<ServerId>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// How bad a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something does not work.
    Error,
    /// Something works otherwise than one would think.
    Warning,
}

impl Problem {
    /// Something that does not work.
    pub fn error(message: impl Into<String>) -> Self {
        Self { severity: Severity::Error, server: None, message: message.into(), hint: None }
    }

    /// Something that works otherwise than one would think.
    pub fn warning(message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(message) }
    }

    /// Of this server.
    #[must_use]
    pub fn of(mut self, server: &ServerId) -> Self {
        self.server = Some(server.clone());
        self
    }

    /// With advice.
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
