//! Names as they are stored between runs, with the reason for each.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use consort_core::{PrimitiveKind, ServerId};
use consort_files::FileReaders;
use serde::{Deserialize, Serialize};

/// Names as they are stored in the file.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct StoredNames {
    pub(super) naming: String,
    pub(super) names: Vec<(PrimitiveKind, ServerId, String, String)>,
    /// Servers that are no longer configured, with the time of their removal in seconds since 1970.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) removed: BTreeMap<ServerId, u64>,
}

/// An assigned name, with its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NameRecord {
    /// The name that clients see.
    pub name: String,
    /// The kind of item: `tool`, `prompt`, `resource` or `template`.
    pub kind: &'static str,
    /// Its server.
    pub server: ServerId,
    /// The server's own name of the item.
    pub original: String,
    /// The reason for the name.
    pub reason: String,
}

/// Reads the names in a file; none if there is no file.
pub fn read_names(file: &Path) -> io::Result<Vec<NameRecord>> {
    let written = read(file)?;
    let taken = |kind: PrimitiveKind, name: &str| {
        let mut names = written.names.iter();
        names.find(|(of, _, _, given)| *of == kind && given == name).map(|(_, server, ..)| server)
    };
    let record = |(kind, server, original, name): &(PrimitiveKind, ServerId, String, String)| {
        let reason = if name == original {
            "the server's own name".to_owned()
        } else if written.naming.starts_with("Template") {
            "from the `naming` template".to_owned()
        } else {
            match taken(*kind, original) {
                Some(other) if written.removed.contains_key(other) => {
                    format!("`{original}` is still reserved for `{other}`, which was removed")
                }
                Some(other) => format!("`{original}` was assigned to `{other}` first"),
                None if name.contains(server.as_str()) => {
                    format!("several servers had `{original}` when the name was assigned")
                }
                None => "model providers do not accept the server's own name".to_owned(),
            }
        };
        NameRecord {
            name: name.clone(),
            kind: kind.singular(),
            server: server.clone(),
            original: original.clone(),
            reason,
        }
    };
    Ok(written.names.iter().map(record).collect())
}

/// Removes the names of a server from a file, and those that items of others got because of them: all of these are
/// named anew. Returns the number of names removed.
pub fn forget_names(file: &Path, server: &ServerId) -> io::Result<usize> {
    let mut written = read(file)?;
    let before = written.names.len();
    let freed: Vec<(PrimitiveKind, String)> = written
        .names
        .iter()
        .filter(|(_, of, ..)| of == server)
        .map(|(kind, _, _, name)| (*kind, name.clone()))
        .collect();
    written.names.retain(|(kind, of, original, name)| {
        let second = name != original && freed.contains(&(*kind, original.clone()));
        of != server && !second
    });
    written.removed.remove(server);
    if written.names.len() < before {
        let bytes = serde_json::to_vec(&written).map_err(io::Error::other)?;
        consort_files::replace(file, &bytes, FileReaders::Owner)?;
    }
    Ok(before - written.names.len())
}

fn read(file: &Path) -> io::Result<StoredNames> {
    match fs::read(file) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(io::Error::other),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(StoredNames::default()),
        Err(error) => Err(error),
    }
}
