//! The revisions of the protocol and the two eras they fall into.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A revision of the Model Context Protocol, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Revision {
    /// The first, with the HTTP+SSE transport.
    #[serde(rename = "2024-11-05")]
    V2024_11_05,
    /// Streamable HTTP, and the only one with batches.
    #[serde(rename = "2025-03-26")]
    V2025_03_26,
    /// Elicitation and structured content.
    #[serde(rename = "2025-06-18")]
    V2025_06_18,
    /// URL elicitation, experimental tasks, resumable polling.
    #[serde(rename = "2025-11-25")]
    V2025_11_25,
    /// Stateless: no handshake, no sessions, no requests from the server.
    #[serde(rename = "2026-07-28")]
    V2026_07_28,
}

impl Revision {
    /// Every revision we speak, oldest first.
    pub const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];

    /// The newest revision that opens with `initialize`.
    pub const NEWEST_LEGACY: Self = Self::V2025_11_25;

    /// The newest revision without a handshake.
    pub const NEWEST_MODERN: Self = Self::V2026_07_28;

    /// As written on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The era it belongs to.
    pub const fn era(self) -> Era {
        match self {
            Self::V2026_07_28 => Era::Modern,
            _ => Era::Legacy,
        }
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Revision {
    type Err = UnknownRevision;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|revision| revision.as_str() == text)
            .ok_or_else(|| UnknownRevision(text.chars().take(40).collect()))
    }
}

/// A protocol revision we do not speak.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown protocol revision `{0}`")]
pub struct UnknownRevision(String);

/// How a client and a server come to terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// Up to 2025-11-25: an `initialize` handshake opens a session.
    Legacy,
    /// From 2026-07-28: every request stands alone.
    Modern,
}

impl fmt::Display for Era {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_reads_back_as_it_is_written() {
        for revision in Revision::ALL {
            assert_eq!(revision.as_str().parse(), Ok(revision));
            assert_eq!(serde_json::to_string(&revision).unwrap(), format!("\"{revision}\""));
        }
        assert_eq!(
            "2023-01-01".parse::<Revision>().unwrap_err().to_string(),
            "unknown protocol revision `2023-01-01`"
        );
    }
}
