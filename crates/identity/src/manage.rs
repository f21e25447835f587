//! Operations of administrators and of users on their own: users, keys, clients, grants.

use consort_core::Caller;

use crate::credential::api_key::NewApiKey;
use crate::digest::{digest_of, random_secret};
use crate::event::IdentityEventKind;
use crate::lease_registry::LeaseKey;
use crate::record::IdentityRecord;
use crate::record::client::ClientRecord;
use crate::record::grant::{GrantRecord, NoticeRecord};
use crate::record::key::{KeyRecord, UsageRecord};
use crate::record::user::{SignInLinkRecord, UserIdentityRecord, UserRecord};
use crate::resource::Resource;
use crate::state::IdentityState;
use crate::store::IdentityStoreError;
use crate::store::row::{RowChange, RowFilter};
use crate::user::UserId;

/// A key to be made.
#[derive(Clone, Debug)]
pub(crate) struct NewKey {
    pub(crate) user: UserId,
    pub(crate) name: String,
    pub(crate) resources: Vec<Resource>,
    pub(crate) is_admin: bool,
    pub(crate) expires_at: Option<u64>,
}

/// The reason why an operation was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManageError {
    /// There is no user, key, grant or client of this name.
    #[error("{0}")]
    Unknown(String),
    /// It cannot be done.
    #[error("{0}")]
    Refused(String),
    /// The store does not work.
    #[error("{0}")]
    Unavailable(String),
}

impl From<IdentityStoreError> for ManageError {
    fn from(error: IdentityStoreError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

impl IdentityState {
    /// Returns the grants of a user that have not ended.
    pub(crate) async fn grants_of(
        &self,
        user: UserId,
    ) -> Result<Vec<GrantRecord>, IdentityStoreError> {
        let now = self.clock.now();
        let grants = self.records.list::<GrantRecord>(RowFilter::User(user)).await?;
        let grants = grants.into_iter().map(|found| found.record);
        Ok(grants.filter(|grant| grant.ends_at.min(grant.expires_at) > now).collect())
    }

    /// Returns the keys of a user that have not expired.
    pub(crate) async fn keys_of(&self, user: UserId) -> Result<Vec<KeyRecord>, IdentityStoreError> {
        let now = self.clock.now();
        let keys = self.records.list::<KeyRecord>(RowFilter::User(user)).await?;
        let keys = keys.into_iter().map(|found| found.record);
        Ok(keys.filter(|key| key.expires_at.is_none_or(|at| at > now)).collect())
    }

    pub(crate) async fn notices_of(
        &self,
        user: UserId,
    ) -> Result<Vec<NoticeRecord>, IdentityStoreError> {
        let notices = self.records.list::<NoticeRecord>(RowFilter::User(user)).await?;
        let mut notices: Vec<NoticeRecord> =
            notices.into_iter().map(|found| found.record).collect();
        notices.sort_by_key(|notice| std::cmp::Reverse(notice.at));
        Ok(notices)
    }

    /// Makes a key.
    pub(crate) async fn create_key(&self, new: NewKey) -> Result<NewApiKey, IdentityStoreError> {
        let key = NewApiKey::random();
        let record = KeyRecord {
            id: key.id.clone(),
            user: new.user,
            name: new.name,
            digest: key.digest.clone(),
            resources: new.resources,
            is_admin: new.is_admin,
            created_at: self.clock.now(),
            expires_at: new.expires_at,
        };
        self.records.commit(vec![record.create()]).await?;
        let caller = self.event_caller(new.user).await;
        self.record(IdentityEventKind::KeyCreated, caller, format!("{} {}", key.id, record.name));
        Ok(key)
    }

    /// Revokes a key, with the sessions and grants that were begun with it.
    pub(crate) async fn revoke_key(
        &self,
        key: &KeyRecord,
        by: &str,
    ) -> Result<(), IdentityStoreError> {
        use crate::access::API_KEY;
        use crate::record::session::SessionRecord;
        let depends = format!("{API_KEY}{}", key.id);
        let mut changes = vec![
            RowChange::delete(KeyRecord::TABLE, key.key()),
            RowChange::delete(UsageRecord::TABLE, format!("keys/{}", key.id)),
        ];
        let mut leases = vec![LeaseKey::Key(key.id.clone())];
        for session in self.records.list::<SessionRecord>(RowFilter::User(key.user)).await? {
            if session.record.credential.as_deref() == Some(&depends) {
                leases.push(LeaseKey::Session(session.record.digest.clone()));
                changes.push(session.remove());
            }
        }
        for grant in self.records.list::<GrantRecord>(RowFilter::User(key.user)).await? {
            if grant.record.credential.as_deref() == Some(&depends) {
                leases.push(LeaseKey::Grant(grant.record.id.clone()));
                changes.push(RowChange::delete(GrantRecord::TABLE, grant.record.key()));
            }
        }
        let caller = self.event_caller(key.user).await;
        self.record(
            IdentityEventKind::KeyRevoked,
            caller,
            format!("{} {}, {by}", key.id, key.name),
        );
        self.revoke(changes, &leases, Some(key.user)).await
    }

    /// Returns a user by id, or by the name that rules have for it.
    pub(crate) async fn find_user(&self, name: &str) -> Result<UserRecord, ManageError> {
        if name == Caller::OWNER {
            return Ok(UserRecord::owner());
        }
        if let Ok(id) = name.parse::<UserId>() {
            let found = self.records.get::<UserRecord>(id.to_string()).await?;
            return found.map(|found| found.record).ok_or_else(|| unknown_user(name));
        }
        let qualified = if name.contains('/') { name.to_owned() } else { format!("local/{name}") };
        let found = self.records.list::<UserRecord>(RowFilter::Parent(qualified)).await?;
        match found.as_slice() {
            [one] => Ok(one.record.clone()),
            [] => Err(unknown_user(name)),
            _ => Err(ManageError::Refused(format!("several users are named `{name}`: use an id"))),
        }
    }

    /// Adds a user of the gateway's own, or finds the one of this name, and returns the secret of a link that signs the
    /// user in.
    pub(crate) async fn add_user(&self, name: &str) -> Result<(UserRecord, String), ManageError> {
        let user = self.own_user(UserRecord::LOCAL, name).await?;
        let secret = random_secret();
        let expires_at = self.clock.now() + self.active().settings.limits.sign_in_link.as_secs();
        let link = SignInLinkRecord { digest: digest_of(&secret), user: user.id, expires_at };
        self.records.commit(vec![link.create()]).await?;
        let caller = self.event_caller(user.id).await;
        self.record(IdentityEventKind::User, caller, "added, with a sign-in link");
        Ok((user, secret))
    }

    /// Returns a user of the gateway's own, added if there is none.
    pub(crate) async fn own_user(
        &self,
        issuer: &str,
        name: &str,
    ) -> Result<UserRecord, ManageError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@+".contains(&byte);
        if name.is_empty() || name.len() > 64 || !name.bytes().all(plain) || name == Caller::OWNER {
            let reason = format!(
                "invalid name `{}`: use 1 to 64 letters, digits, `-`, `_`, `.`, `@` or `+`",
                name.escape_debug()
            );
            return Err(ManageError::Refused(reason));
        }
        let name = if name.contains('@') { name.to_ascii_lowercase() } else { name.to_owned() };
        let key = UserIdentityRecord::key_of(issuer, &name);
        if let Some(identity) = self.records.get::<UserIdentityRecord>(key).await? {
            let user = self.records.get::<UserRecord>(identity.record.user.to_string()).await?;
            return user.map(|user| user.record).ok_or_else(|| unknown_user(&name));
        }
        let now = self.clock.now();
        let user = UserRecord {
            id: UserId::random(),
            issuer: issuer.to_owned(),
            subject: name.clone(),
            name: name.clone(),
            label: None,
            groups: Some([].into()),
            created_at: now,
            checked_at: now,
            issuer_url: None,
            is_suspended: false,
            issuer_token: None,
        };
        let (issuer, subject) = (issuer.to_owned(), name);
        let identity = UserIdentityRecord { user: user.id, issuer, subject, linked_at: now };
        self.records.commit(vec![user.create(), identity.create()]).await?;
        Ok(user)
    }

    /// Removes a user with everything that belongs to it, in one transaction.
    pub(crate) async fn remove_user(&self, user: &UserRecord) -> Result<(), ManageError> {
        if user.id == UserId::OWNER {
            return Err(ManageError::Refused("the owner cannot be removed".to_owned()));
        }
        let caller = self.event_caller(user.id).await;
        self.end_access_of(user.id, vec![RowChange::DeleteUser(user.id)]).await?;
        self.record(IdentityEventKind::User, caller, "removed");
        Ok(())
    }

    /// Removes a user with everything that belongs to it, apart from the id: a name made of the id takes the place of the
    /// name, also in the record of this event. Returns that name.
    pub(crate) async fn erase_user(&self, user: &UserRecord) -> Result<String, ManageError> {
        if user.id == UserId::OWNER {
            return Err(ManageError::Refused("the owner cannot be removed".to_owned()));
        }
        let erased = user.erased(self.clock.now());
        let changes = vec![RowChange::DeleteUser(user.id), RowChange::put(erased.to_row())];
        self.end_access_of(user.id, changes).await?;
        let caller = self.event_caller(user.id).await;
        self.record(IdentityEventKind::User, caller, "removed, and its name erased");
        Ok(erased.qualified_name())
    }

    /// Makes a user known by another subject of the issuer too: after a move of the issuer, or a merge of tenants.
    pub(crate) async fn link_identity(
        &self,
        user: &UserRecord,
        issuer_url: &str,
        subject: &str,
    ) -> Result<(), ManageError> {
        if subject.is_empty() || subject.len() > 256 || subject.chars().any(char::is_control) {
            let reason = format!("invalid subject `{}`", subject.escape_debug());
            return Err(ManageError::Refused(reason));
        }
        if user.id == UserId::OWNER || user.is_erased() {
            let reason = format!("`{}` cannot be linked to a subject", user.qualified_name());
            return Err(ManageError::Refused(reason));
        }
        let (issuer, subject) = (issuer_url.to_owned(), subject.to_owned());
        let key = UserIdentityRecord::key_of(&issuer, &subject);
        if let Some(known) = self.records.get::<UserIdentityRecord>(key).await?
            && known.record.user != user.id
        {
            let reason = format!("this subject belongs to the user {}", known.record.user);
            return Err(ManageError::Refused(reason));
        }
        let linked_at = self.clock.now();
        let identity = UserIdentityRecord { user: user.id, issuer, subject, linked_at };
        self.records.commit(vec![RowChange::put(identity.to_row())]).await?;
        let caller = self.event_caller(user.id).await;
        self.record(IdentityEventKind::User, caller, format!("linked to {}", identity.subject));
        Ok(())
    }

    /// Blocks a client: its grants end, and it gets no new ones.
    pub(crate) async fn block_client(&self, client: &ClientRecord) -> Result<(), ManageError> {
        let mut record = client.clone();
        record.is_blocked = true;
        let mut changes = vec![RowChange::put(record.to_row())];
        let mut leases = Vec::new();
        let grants =
            self.records.list::<GrantRecord>(RowFilter::Parent(client.digest.clone())).await?;
        for grant in grants {
            leases.push(LeaseKey::Grant(grant.record.id.clone()));
            changes.push(RowChange::delete(GrantRecord::TABLE, grant.record.key()));
        }
        self.record(IdentityEventKind::Client, Caller::owner(), format!("{} blocked", client.name));
        Ok(self.revoke(changes, &leases, None).await?)
    }

    /// Returns a client of the inventory by its id, its digest or the beginning of that.
    pub(crate) async fn find_client(&self, id: &str) -> Result<ClientRecord, ManageError> {
        let digest = digest_of(id);
        let clients = self.records.list::<ClientRecord>(RowFilter::All).await?;
        let mut found = clients.into_iter().map(|found| found.record).filter(|client| {
            client.digest == digest || (id.len() >= 8 && client.digest.starts_with(id))
        });
        let unknown = || ManageError::Unknown(format!("unknown client `{}`", id.escape_debug()));
        let first = found.next().ok_or_else(unknown)?;
        match found.next() {
            None => Ok(first),
            Some(_) => Err(ManageError::Refused(
                "several clients begin like this: use more digits".to_owned(),
            )),
        }
    }
}

fn unknown_user(name: &str) -> ManageError {
    ManageError::Unknown(format!("unknown user `{}`", name.escape_debug()))
}
