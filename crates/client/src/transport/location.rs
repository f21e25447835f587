//! Location of a server.

use std::sync::Arc;

use super::credentials::Credentials;
use super::process::ServerCommand;
use super::url::ServerUrl;

/// Location of a server.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerLocation {
    /// On the standard input and output of a program.
    Command(ServerCommand),
    /// At a URL: Streamable HTTP of any revision or, failing that, HTTP+SSE.
    Http(ServerUrl),
    /// At a URL, by HTTP+SSE.
    Sse(ServerUrl),
}

impl ServerLocation {
    /// Returns the URL of a server that is reached over HTTP.
    pub fn url(&self) -> Option<&ServerUrl> {
        match self {
            Self::Http(url) | Self::Sse(url) => Some(url),
            Self::Command(_) => None,
        }
    }

    /// Returns the credentials for the server, if there are any.
    pub fn credentials(&self) -> Option<&Arc<dyn Credentials>> {
        self.url()?.credentials.as_ref()
    }

    /// Adds credentials; a program on standard input and output needs none.
    #[must_use]
    pub fn with_credentials(self, credentials: Arc<dyn Credentials>) -> Self {
        self.map_url(|url| url.credentials(credentials))
    }

    /// Changes the URL of a server that is reached over HTTP.
    #[must_use]
    pub fn map_url(self, change: impl FnOnce(ServerUrl) -> ServerUrl) -> Self {
        match self {
            Self::Http(url) => Self::Http(change(url)),
            Self::Sse(url) => Self::Sse(change(url)),
            program @ Self::Command(_) => program,
        }
    }

    /// Returns the transport and the command or URL, without secrets. Servers with equal ones are the same server.
    pub fn without_secrets(&self) -> (&'static str, String) {
        // Debug output names variables and headers without their values.
        match self {
            Self::Command(command) => {
                ("command", format!("{command:?} in {:?}", command.working_directory()))
            }
            Self::Http(url) => ("http", format!("{url:?} {}", url.query())),
            Self::Sse(url) => ("sse", format!("{url:?} {}", url.query())),
        }
    }
}
