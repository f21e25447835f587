//! Servers of the official Rust SDK, in either era or both: the peers that Consort's protocol code is tested against.
//!
//! | tool | what it does |
//! |---|---|
//! | `echo` | says `message` |
//! | `add` | says the sum of `a` and `b` |
//! | `weather` | answers with `structuredContent` |
//! | `fail` | fails, as tools do (`isError`) |
//! | `slow` | reports `steps` steps of `ms` milliseconds each, and stops when it is cancelled |
//! | `log` | logs once, at level `info`, if the client wants to hear it |
//! | `ask` | asks the user for a name (elicitation) |
//! | `sample` | asks the client's model (sampling) |
//! | `task` | does the work of `slow` as a task, where the client knows tasks |
//! | `change` | changes `what` (`tools`, `prompts`, `resources` or `note`) and tells who listens |
//! | `journal` | says what the server saw so far, a line each |

mod handler;
mod http;
mod journal;
mod tools;

use std::borrow::Cow;
use std::sync::Arc;

use consort_client::ServerCommand;
use consort_protocol::{Era, Revision};
use rmcp::ServiceExt;
use rmcp::model::ProtocolVersion;

pub use http::Http;
use journal::Journal;
pub(crate) use tools::is_modern;

/// Protocol revisions of a reference server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaks {
    /// This revision and, if it is legacy, the older ones.
    UpTo(Revision),
    /// Every revision of both eras.
    Everything,
}

impl Speaks {
    /// Only revisions with a handshake.
    pub const LEGACY: Self = Self::UpTo(Revision::NEWEST_LEGACY);
    /// Only revisions without.
    pub const MODERN: Self = Self::UpTo(Revision::NEWEST_MODERN);

    pub(crate) fn versions(self) -> Cow<'static, [ProtocolVersion]> {
        let known = ProtocolVersion::KNOWN_VERSIONS;
        let Self::UpTo(newest) = self else {
            return known.into();
        };
        let wanted = |version: &&ProtocolVersion| match newest.era() {
            Era::Legacy => version.as_str() <= newest.as_str(),
            Era::Modern => version.as_str() == newest.as_str(),
        };
        known.iter().filter(wanted).cloned().collect()
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::UpTo(revision) => revision.as_str(),
            Self::Everything => "everything",
        }
    }

    /// Reads the argument of the `rmcp-server` program.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "everything" => Some(Self::Everything),
            revision => revision.parse().ok().map(Self::UpTo),
        }
    }
}

/// A reference server as a program on its standard input and output.
pub fn stdio(speaks: Speaks) -> ServerCommand {
    ServerCommand::new(crate::bin("rmcp-server")).arguments([speaks.word()])
}

/// Serves on standard input and output of this process until they end.
pub async fn serve_stdio(speaks: Speaks) -> Result<(), Box<dyn std::error::Error>> {
    let running = Reference::new(speaks).serve(rmcp::transport::stdio()).await?;
    running.waiting().await?;
    Ok(())
}

/// Starts a reference server on a free port of this process.
pub async fn http(speaks: Speaks) -> Http {
    let server = Reference::new(speaks);
    Http::start(speaks, move || server.clone()).await
}

/// A server of the official SDK. Clones share one server in other sessions.
#[derive(Clone)]
struct Reference {
    speaks: Speaks,
    journal: Arc<Journal>,
    tasks: rmcp::task_manager::TaskManager,
}

impl Reference {
    fn new(speaks: Speaks) -> Self {
        Self { speaks, journal: Arc::default(), tasks: rmcp::task_manager::TaskManager::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions(speaks: Speaks) -> Vec<String> {
        let versions = speaks.versions();
        versions.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_server_speaks_one_era_or_both() {
        assert_eq!(versions(Speaks::UpTo(Revision::V2025_03_26)), ["2024-11-05", "2025-03-26"]);
        assert_eq!(versions(Speaks::MODERN), ["2026-07-28"]);
        assert_eq!(versions(Speaks::Everything).len(), 5);
    }

    #[test]
    fn what_a_server_speaks_survives_a_command_line() {
        for speaks in [Speaks::LEGACY, Speaks::MODERN, Speaks::Everything] {
            assert_eq!(Speaks::parse(speaks.word()), Some(speaks));
        }
        assert_eq!(Speaks::parse("esperanto"), None);
    }
}
