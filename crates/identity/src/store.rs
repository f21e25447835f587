//! The store of identities: rows in tables, written in transactions with conditions.

pub(crate) mod row;
pub(crate) mod sqlite;

use std::fmt;
use std::io;
use std::path::PathBuf;

use consort_core::BoxFuture;
use consort_server::AuthError;

use row::{IdentityTable, RowChange, RowFilter, StoredRow};

/// A store of the rows that identities consist of. The rest of this crate and the vault of user credentials read and
/// write through it; [`SqliteIdentityStore`](crate::SqliteIdentityStore) implements it in a file, and a store shared by
/// several gateways can take its place.
///
/// A change that depends on an earlier read states the version it read ([`RowCondition`](crate::RowCondition)): of two
/// that are made at once, one conflicts. Requests with a known credential read nothing here.
pub trait IdentityStore: fmt::Debug + Send + Sync {
    /// Returns a row, with every change that was committed before.
    fn get(
        &self,
        table: IdentityTable,
        key: String,
    ) -> BoxFuture<'static, Result<Option<StoredRow>, IdentityStoreError>>;

    /// Returns the rows of a table, ordered by key.
    fn list(
        &self,
        table: IdentityTable,
        filter: RowFilter,
    ) -> BoxFuture<'static, Result<Vec<StoredRow>, IdentityStoreError>>;

    /// Makes all of these changes or none. Once it returns, they are on disk. The changes are made even if the future is
    /// dropped.
    fn commit(&self, changes: Vec<RowChange>)
    -> BoxFuture<'static, Result<(), IdentityStoreError>>;

    /// Makes changes some time later, each by itself. For changes whose loss does no harm, such as times of last use.
    fn queue(&self, changes: Vec<RowChange>);
}

/// The reason why rows were not read or changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityStoreError {
    /// A condition does not hold: somebody else made a change first. Nothing was changed.
    #[error("changed meanwhile")]
    Conflict,
    /// The store does not work. A change may have been made or not.
    #[error("the identity store is unavailable: {0}")]
    Unavailable(String),
}

impl From<IdentityStoreError> for AuthError {
    fn from(error: IdentityStoreError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

/// The reason why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenStoreError {
    /// Another process has it open.
    #[error("`{}` is in use by another process", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The file is not an identity store, or was written by a later version.
    #[error("`{}` is not an identity store, or was written by a newer version", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be opened, read or created.
    #[error("cannot use the identity store `{}`", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

impl OpenStoreError {
    /// Returns a suggestion for the user.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::InUse { .. } => {
                "only one gateway can use a state folder for identities; stop the other one, or set \
                 XDG_STATE_HOME to another folder"
            }
            Self::Foreign { .. } => "move the file away, or install the version that wrote it",
            Self::Unusable { .. } => {
                "check that the folder is writable and the disk has free space"
            }
        }
    }
}
