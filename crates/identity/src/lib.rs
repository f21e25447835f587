//! Users of a gateway and the credentials by which they are known.
//!
//! Two parts carry everything else: the [`KeyRing`], which seals each value under a key of its own, and the
//! [`IdentityStore`], which holds the records of users, sessions, grants and keys. [`SqliteIdentityStore`] is the store
//! in a file.

mod access;
mod access_cache;
mod authenticator;
mod authorization;
mod clock;
mod cookies;
mod credential;
mod digest;
mod event;
mod explain;
mod explanation;
mod issuer;
mod key_ring;
mod lease_registry;
mod manage;
mod pages;
mod rate_limit;
mod record;
mod resource;
mod routes;
mod service;
mod settings;
mod sign_in;
mod sign_in_proof;
mod state;
mod store;
mod summary;
mod user;

pub use authorization::client_document::{
    ClientDocumentFetcher, FetchedClientDocument, PublicDocumentFetcher,
};
pub use clock::IdentityClock;
pub use event::{IdentityEvent, IdentityEventKind, IdentityEvents};
pub use explanation::{CheckResult, TokenCheck, TokenExplanation, TokenKind, TokenUser};
pub use key_ring::purpose::SealPurpose;
pub use key_ring::secret_key::{KeyError, SecretKey};
pub use key_ring::{KeyId, KeyRing, OpenError};
pub use manage::ManageError;
pub use resource::{PublicLocation, Resource};
pub use routes::IdentityRoutes;
pub use service::{IdentityParts, IdentityService, check_issuer};
pub use settings::{
    ApiKeyAccess, AuthorizationSettings, IdentitySettings, IssuerSettings, OwnerAccess,
    RegisteredClient, ResourceContents, RoleRights, UsernameClaim,
};
pub use store::row::{IdentityTable, RowChange, RowCondition, RowDraft, RowFilter, StoredRow};
pub use store::sqlite::SqliteIdentityStore;
pub use store::{IdentityStore, IdentityStoreError, OpenStoreError};
pub use summary::{
    ClientSummary, CreatedKey, GrantSummary, IssuerReport, KeyRequest, KeySummary, SignInLink,
    UserSummary,
};
pub use user::{InvalidUserId, UserId};
