//! Records of the store, with their types.

pub(crate) mod client;
pub(crate) mod grant;
pub(crate) mod key;
pub(crate) mod session;
pub(crate) mod user;

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::store::row::{IdentityTable, RowChange, RowCondition, RowDraft, RowFilter, StoredRow};
use crate::store::{IdentityStore, IdentityStoreError};
use crate::user::UserId;

/// A record: a row of one table whose value is JSON.
pub(crate) trait IdentityRecord: Serialize + DeserializeOwned {
    /// The table.
    const TABLE: IdentityTable;

    /// Returns the key, which is not part of the value.
    fn key(&self) -> String;

    /// Sets the key of a record that was read.
    fn set_key(&mut self, key: &str);

    /// Returns the user with whom it is removed.
    fn user(&self) -> Option<UserId> {
        None
    }

    /// Returns the key that it is listed by, besides its user.
    fn parent(&self) -> Option<String> {
        None
    }

    /// Returns the time after which it is of no use, in seconds since 1970.
    fn expires_at(&self) -> Option<u64> {
        None
    }

    /// Returns its row.
    fn to_row(&self) -> RowDraft {
        RowDraft {
            table: Self::TABLE,
            key: self.key(),
            user: self.user(),
            parent: self.parent(),
            expires_at: self.expires_at(),
            value: serde_json::to_vec(self).expect("a record always serialises"),
        }
    }

    /// Returns the change that creates it; a conflict if there is one of this key.
    fn create(&self) -> RowChange {
        RowChange::create(self.to_row())
    }
}

/// A record as it was read, to be changed only if nobody else changed it meanwhile.
#[derive(Clone, Debug)]
pub(crate) struct Versioned<T> {
    pub(crate) record: T,
    version: u64,
}

impl<T: IdentityRecord> Versioned<T> {
    fn read(stored: &StoredRow) -> Result<Self, IdentityStoreError> {
        let mut record: T = serde_json::from_slice(&stored.row.value).map_err(|error| {
            let (table, key) = (T::TABLE.as_str(), &stored.row.key);
            IdentityStoreError::Unavailable(format!("the row `{key}` of `{table}`: {error}"))
        })?;
        record.set_key(&stored.row.key);
        Ok(Self { record, version: stored.version })
    }

    /// Returns the change that replaces what was read.
    pub(crate) fn replace(&self) -> RowChange {
        let condition = RowCondition::Version(self.version);
        RowChange::Put { row: self.record.to_row(), condition }
    }

    /// Returns the change that removes what was read.
    pub(crate) fn remove(&self) -> RowChange {
        let condition = RowCondition::Version(self.version);
        RowChange::Delete { table: T::TABLE, key: self.record.key(), condition }
    }
}

/// The store, by records.
#[derive(Clone, Debug)]
pub(crate) struct RecordStore(Arc<dyn IdentityStore>);

impl RecordStore {
    pub(crate) fn new(store: Arc<dyn IdentityStore>) -> Self {
        Self(store)
    }

    /// Returns a record.
    pub(crate) async fn get<T: IdentityRecord>(
        &self,
        key: impl Into<String> + Send,
    ) -> Result<Option<Versioned<T>>, IdentityStoreError> {
        let stored = self.0.get(T::TABLE, key.into()).await?;
        stored.as_ref().map(Versioned::read).transpose()
    }

    /// Returns records, ordered by key.
    pub(crate) async fn list<T: IdentityRecord>(
        &self,
        filter: RowFilter,
    ) -> Result<Vec<Versioned<T>>, IdentityStoreError> {
        self.0.list(T::TABLE, filter).await?.iter().map(Versioned::read).collect()
    }

    /// Makes all of these changes or none, on disk.
    pub(crate) async fn commit(&self, changes: Vec<RowChange>) -> Result<(), IdentityStoreError> {
        self.0.commit(changes).await
    }

    /// Makes changes some time later, whose loss does no harm.
    pub(crate) fn queue(&self, changes: Vec<RowChange>) {
        self.0.queue(changes);
    }
}
