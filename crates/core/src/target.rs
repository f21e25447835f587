//! Target of a call: a server and a name, resolved once.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::catalog::CatalogEntry;
use crate::name::{InvalidName, ServerId};

/// The characters between a server's name and the name of one of its tools. No [`ServerId`] contains
/// one, so the first of them always ends the server's name.
pub(crate) const SEPARATORS: [char; 2] = ['.', ':'];

/// A tool of one server, by its name in the toolbox that is called.
///
/// Text that people and models write becomes a target where it enters, by
/// [`Catalog::resolve`](crate::Catalog::resolve); behind that nothing is resolved again.
///
/// ```
/// use consort_core::Target;
///
/// let target: Target = "files.archive.read".parse()?;
/// assert_eq!((target.server.as_str(), &*target.name), ("files", "archive.read"));
/// assert!("read".parse::<Target>().is_err());
/// # Ok::<(), consort_core::InvalidName>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Target {
    /// The server.
    pub server: ServerId,
    /// The tool's name, without the server's.
    pub name: String,
}

impl From<&CatalogEntry> for Target {
    fn from(entry: &CatalogEntry) -> Self {
        Self { server: entry.route.server.clone(), name: entry.name.clone() }
    }
}

impl FromStr for Target {
    type Err = InvalidName;

    /// Parses `server.name` or `server:name`; the server need not exist.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(SEPARATORS) {
            Some((server, name)) if !name.is_empty() => {
                Ok(Self { server: server.parse()?, name: name.to_owned() })
            }
            _ => Err(InvalidName::new(text, "expected `server.tool`")),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.server, self.name)
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
