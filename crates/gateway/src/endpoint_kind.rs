//! Kinds of endpoints.

use crate::listing::app_only;
use consort_core::{CatalogEntry, PrimitiveKind, ServerId};
use std::fmt;

/// Kind of endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum EndpointKind {
    /// The endpoint of all servers together.
    Whole,
    /// The endpoint of a profile.
    Profile(String),
    /// One server, under its own names.
    Server(ServerId),
}

impl fmt::Display for EndpointKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => Ok(()),
            Self::Profile(name) => write!(f, "profile:{name}"),
            Self::Server(server) => write!(f, "server:{server}"),
        }
    }
}

impl EndpointKind {
    /// Returns true if this endpoint offers an entry. Only a server's own endpoint offers tools that are for its apps
    /// alone.
    pub(crate) fn has(&self, kind: PrimitiveKind, entry: &CatalogEntry) -> bool {
        match self {
            Self::Server(server) => entry.route.server == *server,
            _ => kind != PrimitiveKind::Tools || !app_only(entry),
        }
    }

    pub(crate) fn has_server(&self, server: &ServerId) -> bool {
        !matches!(self, Self::Server(only) if only != server)
    }
}
