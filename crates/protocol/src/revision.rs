//! The revisions of the protocol and the two eras they fall into.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A revision of the Model Context Protocol, oldest first. Its methods return its features: code never compares
/// revisions, and for a new one the compiler requires each feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
    /// Every supported revision, oldest first.
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

    /// The revision as written in the protocol.
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
            Self::V2024_11_05 | Self::V2025_03_26 | Self::V2025_06_18 | Self::V2025_11_25 => {
                Era::Legacy
            }
            Self::V2026_07_28 => Era::Modern,
        }
    }

    /// Returns true if a handshake opens a session, over HTTP named by `Mcp-Session-Id`.
    pub const fn has_sessions(self) -> bool {
        match self {
            Self::V2024_11_05 | Self::V2025_03_26 | Self::V2025_06_18 | Self::V2025_11_25 => true,
            Self::V2026_07_28 => false,
        }
    }

    /// Returns true if several messages may be sent as one JSON array.
    pub const fn has_batches(self) -> bool {
        match self {
            Self::V2025_03_26 => true,
            Self::V2024_11_05 | Self::V2025_06_18 | Self::V2025_11_25 | Self::V2026_07_28 => false,
        }
    }

    /// Returns true if each HTTP request names the revision in `MCP-Protocol-Version`.
    pub const fn has_version_header(self) -> bool {
        match self {
            Self::V2025_06_18 | Self::V2025_11_25 | Self::V2026_07_28 => true,
            Self::V2024_11_05 | Self::V2025_03_26 => false,
        }
    }

    /// Returns true if results of tools have `structuredContent`.
    pub const fn has_structured_content(self) -> bool {
        match self {
            Self::V2025_06_18 | Self::V2025_11_25 | Self::V2026_07_28 => true,
            Self::V2024_11_05 | Self::V2025_03_26 => false,
        }
    }

    /// Returns true if servers may send `elicitation/create`.
    pub const fn has_elicitation(self) -> bool {
        match self {
            Self::V2025_06_18 | Self::V2025_11_25 | Self::V2026_07_28 => true,
            Self::V2024_11_05 | Self::V2025_03_26 => false,
        }
    }

    /// Returns true if elicitation has a mode: a form, or a page at a URL.
    pub const fn has_elicitation_modes(self) -> bool {
        match self {
            Self::V2025_11_25 | Self::V2026_07_28 => true,
            Self::V2024_11_05 | Self::V2025_03_26 | Self::V2025_06_18 => false,
        }
    }

    /// Returns true if the choices in a form have their titles in `oneOf`; before, in `enumNames`.
    pub const fn has_titled_choices(self) -> bool {
        match self {
            Self::V2025_11_25 | Self::V2026_07_28 => true,
            Self::V2024_11_05 | Self::V2025_03_26 | Self::V2025_06_18 => false,
        }
    }

    /// Returns true if a string in a form may have a default.
    pub const fn has_text_defaults(self) -> bool {
        match self {
            Self::V2025_11_25 | Self::V2026_07_28 => true,
            Self::V2024_11_05 | Self::V2025_03_26 | Self::V2025_06_18 => false,
        }
    }

    /// Returns true if an SSE stream of Streamable HTTP begins with an event that has an id and no data.
    pub const fn has_priming_events(self) -> bool {
        match self {
            Self::V2025_11_25 => true,
            Self::V2024_11_05 | Self::V2025_03_26 | Self::V2025_06_18 | Self::V2026_07_28 => false,
        }
    }

    /// Returns true if sampling requests may have tools.
    pub const fn has_sampling_tools(self) -> bool {
        match self {
            Self::V2025_11_25 | Self::V2026_07_28 => true,
            Self::V2024_11_05 | Self::V2025_03_26 | Self::V2025_06_18 => false,
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

/// An unsupported protocol revision.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown protocol revision `{0}`")]
pub struct UnknownRevision(String);

/// Era of the protocol, by its connection setup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// Up to 2025-11-25: an `initialize` handshake opens a session.
    Legacy,
    /// From 2026-07-28: every request is self-contained.
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

    /// What was added in a revision is in the later ones, unless it was taken out again.
    #[test]
    fn a_revision_has_what_its_specification_says() {
        let with = |has: fn(Revision) -> bool| {
            let with = Revision::ALL.into_iter().filter(|revision| has(*revision));
            with.map(Revision::as_str).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(with(Revision::has_sessions), "2024-11-05 2025-03-26 2025-06-18 2025-11-25");
        assert_eq!(with(Revision::has_batches), "2025-03-26");
        let since_june: [fn(Revision) -> bool; 3] = [
            Revision::has_version_header,
            Revision::has_structured_content,
            Revision::has_elicitation,
        ];
        for has in since_june {
            assert_eq!(with(has), "2025-06-18 2025-11-25 2026-07-28");
        }
        let since_november: [fn(Revision) -> bool; 4] = [
            Revision::has_elicitation_modes,
            Revision::has_titled_choices,
            Revision::has_text_defaults,
            Revision::has_sampling_tools,
        ];
        for has in since_november {
            assert_eq!(with(has), "2025-11-25 2026-07-28");
        }
    }

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
