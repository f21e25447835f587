//! Names that a catalog lacks, and pending lists of servers.

use std::collections::BTreeSet;

use consort_protocol::PrimitiveKind;

use crate::caller::Caller;
use crate::catalog::resolve::UnresolvedName;
use crate::catalog::{Catalog, CatalogEntry};
use crate::error::CallError;
use crate::name::ServerId;
use crate::toolbox::Toolbox;

/// A name that the catalog of a toolbox lacks, and the servers that may have it.
#[derive(Clone, Debug)]
pub struct MissingName {
    /// The caller that uses the name.
    pub caller: Caller,
    /// The kind of the named item.
    pub kind: PrimitiveKind,
    /// The name or URI as the caller wrote it.
    pub name: String,
    /// True if the name includes its server: `servers` is that one.
    pub named: bool,
    /// The servers that may have it.
    pub servers: BTreeSet<ServerId>,
}

impl MissingName {
    /// Creates a missing name from a text: of the server that it begins with, else of any configured one.
    pub fn new(catalog: &Catalog, caller: Caller, kind: PrimitiveKind, name: &str) -> Self {
        if let Some(server) = catalog.named_server(name) {
            return Self::of_server(server.clone(), caller, kind, name);
        }
        // The name of our own tools, or of a server in other case: nobody has it.
        let servers = if catalog.names_server(name) {
            BTreeSet::new()
        } else {
            catalog.reserved().as_ref().clone()
        };
        Self { caller, kind, name: name.to_owned(), named: false, servers }
    }

    /// Creates a missing name of one server.
    pub fn of_server(server: ServerId, caller: Caller, kind: PrimitiveKind, name: &str) -> Self {
        let (name, servers) = (name.to_owned(), BTreeSet::from([server]));
        Self { caller, kind, name, named: true, servers }
    }
}

/// The purpose of waiting for lists, which determines the time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListPurpose {
    /// A client lists items of this kind: waits a moment. Outdated lists are refreshed after the answer.
    Listing(PrimitiveKind),
    /// A run begins: waits as long as servers may take to start.
    Run,
}

/// Resolves a text like [`Catalog::resolve_on`]. If no known item has the name, waits for the servers that may
/// have it and resolves again.
pub async fn resolve(
    toolbox: &dyn Toolbox,
    caller: &Caller,
    kind: PrimitiveKind,
    text: &str,
) -> Result<CatalogEntry, CallError> {
    let catalog = toolbox.catalog(caller);
    let unresolved = match catalog.resolve_on(kind, text) {
        Ok(entry) => return Ok(entry.clone()),
        Err(error @ UnresolvedName::Ambiguous { .. }) => return Err(error.into()),
        Err(error) => error,
    };
    if toolbox.find_missing(MissingName::new(&catalog, caller.clone(), kind, text)).await? {
        return Ok(toolbox.catalog(caller).resolve_on(kind, text)?.clone());
    }
    Err(unresolved.into())
}
