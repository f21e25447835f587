//! Kinds of endpoints.

use std::fmt;

use consort_core::{CatalogEntry, Object, PrimitiveKind, ServerId};

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

/// Returns true if a tool is for a server's apps and not for models.
fn app_only(entry: &CatalogEntry) -> bool {
    if memchr::memmem::find(entry.definition.as_bytes(), b"visibility").is_none() {
        return false;
    }
    let inner = |object: Object, name: &str| object.get(name).and_then(|json| json.to_object());
    let ui = inner(entry.definition.clone(), "_meta").and_then(|meta| inner(meta, "ui"));
    let visible = ui.and_then(|ui| ui.get("visibility")).and_then(|visible| visible.to_items());
    visible.is_some_and(|to| !to.iter().any(|who| who.text().as_deref() == Some("model")))
}
