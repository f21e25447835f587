//! Transports: their names in configs, their aliases, and the formats that know them.

use consort_client::{ServerLocation, ServerUrl};
use serde::{Serialize, Serializer};

use crate::server::{HttpConfig, StdioConfig, TransportConfig};
use crate::template::TemplateString;

/// A transport to a server at a URL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RemoteTransport {
    /// Streamable HTTP, with HTTP+SSE as a fallback.
    #[default]
    Http,
    /// HTTP+SSE.
    Sse,
}

/// A transport that a config names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransportKind {
    /// A program's standard input and output.
    Program,
    /// A server at a URL.
    Remote(RemoteTransport),
    /// Not a transport of MCP; read as Streamable HTTP, with a warning.
    WebSocket,
}

/// Names of the transports in a config, with the kinds.
pub(crate) const TRANSPORTS: [(&str, TransportKind); 3] = [
    (PROGRAM, TransportKind::Program),
    ("http", TransportKind::Remote(RemoteTransport::Http)),
    ("sse", TransportKind::Remote(RemoteTransport::Sse)),
];

/// Names that some clients use for them.
pub(crate) const TRANSPORT_ALIASES: [(&str, TransportKind); 5] = [
    ("streamable-http", TransportKind::Remote(RemoteTransport::Http)),
    ("streamable_http", TransportKind::Remote(RemoteTransport::Http)),
    ("streamableHttp", TransportKind::Remote(RemoteTransport::Http)),
    ("local", TransportKind::Program),
    ("remote", TransportKind::Remote(RemoteTransport::Http)),
];

/// Names of a transport that MCP does not have.
pub(crate) const WEB_SOCKET: [(&str, TransportKind); 2] =
    [("websocket", TransportKind::WebSocket), ("ws", TransportKind::WebSocket)];

/// The name of the transport to a program.
pub(crate) const PROGRAM: &str = "stdio";

/// The names alone.
pub(crate) const TRANSPORT_NAMES: [&str; TRANSPORTS.len()] = names(&TRANSPORTS);

/// The aliases alone.
pub(crate) const TRANSPORT_ALIAS_NAMES: [&str; TRANSPORT_ALIASES.len()] = names(&TRANSPORT_ALIASES);

const fn names<const N: usize>(table: &[(&'static str, TransportKind); N]) -> [&'static str; N] {
    let (mut names, mut at) = ([""; N], 0);
    while at < N {
        names[at] = table[at].0;
        at += 1;
    }
    names
}

impl TransportKind {
    /// Returns the transport of a server at a URL; `None` for a program.
    pub(crate) fn remote(self) -> Option<RemoteTransport> {
        match self {
            Self::Program => None,
            Self::Remote(transport) => Some(transport),
            Self::WebSocket => Some(RemoteTransport::default()),
        }
    }
}

impl RemoteTransport {
    /// Returns the transport of this name or alias.
    pub fn named(name: &str) -> Option<Self> {
        let mut known = TRANSPORTS.iter().chain(&TRANSPORT_ALIASES);
        known.find(|(known, _)| *known == name)?.1.remote()
    }

    /// Returns its name in a config.
    pub fn name(self) -> &'static str {
        let entry = TRANSPORTS.iter().find(|(_, kind)| *kind == TransportKind::Remote(self));
        entry.expect("every transport is in the table").0
    }

    /// Returns its name for people, as in the specification of MCP.
    pub fn title(self) -> &'static str {
        match self {
            Self::Http => "Streamable HTTP",
            Self::Sse => "HTTP+SSE",
        }
    }

    /// Returns true if other clients know it by its name, where their format has a key for the transport.
    pub(crate) fn is_common(self) -> bool {
        match self {
            Self::Http | Self::Sse => true,
        }
    }

    /// Returns the location of a server at this URL.
    pub(crate) fn location(self, url: ServerUrl) -> ServerLocation {
        match self {
            Self::Http => ServerLocation::Http(url),
            Self::Sse => ServerLocation::Sse(url),
        }
    }
}

impl TransportConfig {
    /// Returns every name that [`TransportConfig::name`] returns.
    pub fn names() -> &'static [&'static str] {
        &TRANSPORT_NAMES
    }

    /// Name of the transport in a config.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Stdio(_) => PROGRAM,
            Self::Remote(address) => address.transport.name(),
        }
    }

    /// Returns the program, if the server is one.
    pub fn program(&self) -> Option<&StdioConfig> {
        match self {
            Self::Stdio(program) => Some(program),
            Self::Remote(_) => None,
        }
    }

    /// Returns the URL and its settings, if the server has a URL.
    pub fn remote(&self) -> Option<&HttpConfig> {
        match self {
            Self::Stdio(_) => None,
            Self::Remote(address) => Some(address),
        }
    }

    /// Returns the words of the command line, or the URL, with likely secrets as `***`.
    pub fn command_or_url(&self) -> String {
        match self {
            Self::Stdio(program) => {
                program.words().map(ToString::to_string).collect::<Vec<_>>().join(" ")
            }
            Self::Remote(address) => address.url.to_string(),
        }
    }
}

impl StdioConfig {
    /// Returns the words of the command line.
    pub fn words(&self) -> impl Iterator<Item = &TemplateString> {
        std::iter::once(&self.command).chain(&self.arguments)
    }
}

impl HttpConfig {
    /// Returns the names of the headers, with the one for authentication last.
    pub fn header_names(&self) -> impl Iterator<Item = String> {
        let auth = self.auth.as_ref().map(|auth| auth.header_name().to_owned());
        self.headers.keys().cloned().chain(auth)
    }
}

impl Serialize for RemoteTransport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Serializes a program with the name of its transport.
pub(crate) fn serialize_program<S: Serializer>(
    program: &StdioConfig,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct NamedProgram<'a> {
        transport: &'static str,
        #[serde(flatten)]
        program: &'a StdioConfig,
    }
    NamedProgram { transport: PROGRAM, program }.serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_transport_is_found_by_its_name() {
        for transport in [RemoteTransport::Http, RemoteTransport::Sse] {
            assert_eq!(RemoteTransport::named(transport.name()), Some(transport));
        }
        assert_eq!(RemoteTransport::named(PROGRAM), None);
        assert_eq!(RemoteTransport::named("ws"), None);
        assert!(TRANSPORT_NAMES.contains(&PROGRAM));
    }

    #[test]
    fn no_name_of_a_transport_is_there_twice() {
        let all = [TRANSPORTS.as_slice(), &TRANSPORT_ALIASES, &WEB_SOCKET].concat();
        let names: std::collections::BTreeSet<_> = all.iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), all.len());
    }
}
