//! Rows and their changes.

use crate::user::UserId;

/// A table of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IdentityTable {
    /// Users, by id.
    Users,
    /// Users of issuers, by issuer and subject.
    UserIdentities,
    /// Browser sessions, by the digest of their cookie.
    Sessions,
    /// One-time links that sign a user in, by digest.
    SignInLinks,
    /// API keys, by id.
    Keys,
    /// Authorization codes, by digest.
    Codes,
    /// Grants, by id: the access of one client on behalf of one user.
    Grants,
    /// OAuth clients that were seen or blocked, by the digest of their id.
    Clients,
    /// Credentials of users at servers.
    ConnectedAccounts,
    /// Tickets that lead a user to the login at a server.
    ConnectTickets,
    /// Authorization requests that were used, by id.
    UsedFlows,
    /// Times of last use, by the table and key of what was used.
    Usage,
    /// Facts about the gateway itself, by name.
    Facts,
    /// Notices for users, such as a refresh token that somebody else used.
    Notices,
}

impl IdentityTable {
    /// Every table.
    pub const ALL: [Self; 14] = [
        Self::Users,
        Self::UserIdentities,
        Self::Sessions,
        Self::SignInLinks,
        Self::Keys,
        Self::Codes,
        Self::Grants,
        Self::Clients,
        Self::ConnectedAccounts,
        Self::ConnectTickets,
        Self::UsedFlows,
        Self::Usage,
        Self::Facts,
        Self::Notices,
    ];

    /// Returns the name of the table in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Users => "users",
            Self::UserIdentities => "user_identities",
            Self::Sessions => "sessions",
            Self::SignInLinks => "sign_in_links",
            Self::Keys => "keys",
            Self::Codes => "codes",
            Self::Grants => "grants",
            Self::Clients => "clients",
            Self::ConnectedAccounts => "connected_accounts",
            Self::ConnectTickets => "connect_tickets",
            Self::UsedFlows => "used_flows",
            Self::Usage => "usage",
            Self::Facts => "facts",
            Self::Notices => "notices",
        }
    }
}

/// A row as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRow {
    /// Its content.
    pub row: RowDraft,
    /// The number of changes of the row since it was created, for [`RowCondition::Version`].
    pub version: u64,
}

/// The content of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowDraft {
    /// The table.
    pub table: IdentityTable,
    /// The key, unique in its table.
    pub key: String,
    /// The user that it belongs to. The row is removed with the user.
    pub user: Option<UserId>,
    /// The key of the row that it depends on, for [`RowFilter::Parent`].
    pub parent: Option<String>,
    /// The time of its expiry in seconds since 1970. The row is removed some time after it.
    pub expires_at: Option<u64>,
    /// Everything else. Secrets are sealed.
    pub value: Vec<u8>,
}

/// A change of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowChange {
    /// Creates or replaces a row.
    Put {
        /// The row.
        row: RowDraft,
        /// The condition under which it is written.
        condition: RowCondition,
    },
    /// Removes a row.
    Delete {
        /// Its table.
        table: IdentityTable,
        /// Its key.
        key: String,
        /// The condition under which it is removed.
        condition: RowCondition,
    },
    /// Removes every row that depends on another.
    DeleteChildren {
        /// The table of the rows.
        table: IdentityTable,
        /// The key that they depend on.
        parent: String,
    },
    /// Removes every row that belongs to a user, in every table.
    DeleteUser(UserId),
    /// Removes the rows of every table that expired before this time, in seconds since 1970.
    DeleteExpired {
        /// The time.
        before: u64,
    },
    /// Marks a commit that takes something away from somebody: an older copy of the store would give it back. A store that
    /// finds such a copy in its place says so ([`SqliteIdentityStore::was_restored`](crate::SqliteIdentityStore)).
    Revocation,
}

impl RowChange {
    /// Creates or replaces a row, whatever is there.
    pub fn put(row: RowDraft) -> Self {
        Self::Put { row, condition: RowCondition::Any }
    }

    /// Creates a row that must not exist.
    pub fn create(row: RowDraft) -> Self {
        Self::Put { row, condition: RowCondition::Absent }
    }

    /// Removes a row if it is there.
    pub fn delete(table: IdentityTable, key: impl Into<String>) -> Self {
        Self::Delete { table, key: key.into(), condition: RowCondition::Any }
    }
}

/// The condition of a change. If it does not hold, nothing of its commit is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowCondition {
    /// None.
    Any,
    /// There is no row of this key.
    Absent,
    /// The row has this version: it was not changed since it was read.
    Version(u64),
}

/// The rows of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowFilter {
    /// All.
    All,
    /// Those of a user.
    User(UserId),
    /// Those that depend on another row.
    Parent(String),
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn tables_have_names_of_their_own() {
        let names: BTreeSet<&str> = IdentityTable::ALL.map(IdentityTable::as_str).into();
        assert_eq!(names.len(), IdentityTable::ALL.len());
    }
}
