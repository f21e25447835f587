//! Credentials that are known to be valid. A request with one of them reads nothing from the store.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use consort_core::Caller;
use consort_server::{CredentialDigest, IdentityLimits, InvalidCredential};
use parking_lot::{Mutex, RwLock};

use crate::resource::Resource;
use crate::user::UserId;

/// Number of parts with a lock each.
const SHARDS: usize = 16;

/// Valid credentials by their digests, and refused ones.
///
/// Readers take the lock of one part for the time of a lookup. An entry that was checked before a revocation, and is added
/// after it, is dropped: see [`Self::epoch`].
pub(crate) struct AccessCache {
    shards: [RwLock<HashMap<CredentialDigest, CachedAccess, DigestState>>; SHARDS],
    refused: Mutex<HashMap<CredentialDigest, (u64, InvalidCredential), DigestState>>,
    /// The number of revocations.
    epoch: AtomicU64,
    most_per_shard: usize,
    most_refused: usize,
    refused_for: u64,
}

/// A valid credential.
#[derive(Clone, Debug)]
pub(crate) struct CachedAccess {
    pub(crate) caller: Caller,
    pub(crate) scope: AccessScope,
    /// The user that it belongs to, if it is one's.
    pub(crate) user: Option<UserId>,
    /// The time until which it need not be looked up again, in seconds since 1970.
    pub(crate) until: u64,
}

/// The paths that a credential opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AccessScope {
    /// One resource.
    Resource(Resource),
    /// The resources of an API key, and the admin API if it is one of an administrator.
    Key {
        /// The resources.
        resources: Vec<Resource>,
        /// True if it opens the admin API.
        is_admin: bool,
    },
}

impl AccessScope {
    /// Returns true if it includes a path.
    pub(crate) fn opens(&self, path: &str) -> bool {
        match self {
            Self::Resource(resource) => resource.opens(path),
            Self::Key { resources, is_admin } => {
                resources.iter().any(|resource| resource.opens(path))
                    || *is_admin
                        && (matches!(path, "/api" | "/metrics") || path.starts_with("/api/"))
            }
        }
    }
}

/// The state of a [`DigestHasher`].
type DigestState = BuildHasherDefault<DigestHasher>;

/// A hasher of digests, which are as good as random already.
#[derive(Default)]
pub(crate) struct DigestHasher(u64);

impl Hasher for DigestHasher {
    fn write(&mut self, bytes: &[u8]) {
        // A length comes first, then the digest.
        if let Some(first) = bytes.first_chunk() {
            self.0 ^= u64::from_ne_bytes(*first);
        }
    }

    fn write_usize(&mut self, _length: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

impl std::fmt::Debug for AccessCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AccessCache").field("epoch", &self.epoch()).finish_non_exhaustive()
    }
}

impl AccessCache {
    pub(crate) fn new(limits: &IdentityLimits) -> Self {
        Self {
            shards: std::array::from_fn(|_| RwLock::default()),
            refused: Mutex::default(),
            epoch: AtomicU64::new(0),
            most_per_shard: limits.cached_credentials.div_ceil(SHARDS),
            most_refused: limits.refused_credentials,
            refused_for: limits.refused_credential_time.as_secs(),
        }
    }

    /// Returns the caller of a credential that is known to be valid for a path now.
    pub(crate) fn find(&self, digest: &CredentialDigest, path: &str, now: u64) -> Option<Caller> {
        let shard = self.shard(digest).read();
        let access = shard.get(digest)?;
        let is_valid =
            now < access.until && access.scope.opens(path) && !access.caller.is_revoked();
        is_valid.then(|| access.caller.clone())
    }

    /// Returns the number of revocations so far, to be read before a credential is checked.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Adds a credential that was checked since an epoch, unless something was revoked meanwhile.
    pub(crate) fn insert(
        &self,
        digest: CredentialDigest,
        access: CachedAccess,
        checked_since: u64,
        now: u64,
    ) {
        let mut shard = self.shard(&digest).write();
        // Under the lock: whoever revokes raises the epoch first, and then takes each lock.
        if self.epoch() != checked_since {
            return;
        }
        if shard.len() >= self.most_per_shard && !shard.contains_key(&digest) {
            shard.retain(|_, known| now < known.until);
            if shard.len() >= self.most_per_shard {
                let victim = shard.keys().next().copied();
                victim.map(|victim| shard.remove(&victim));
            }
        }
        shard.insert(digest, access);
    }

    /// Forgets what is known of a user's credentials.
    pub(crate) fn forget_user(&self, user: UserId) {
        self.forget(|access| access.user == Some(user));
    }

    /// Forgets everything.
    pub(crate) fn forget_all(&self) {
        self.forget(|_| true);
    }

    fn forget(&self, is_affected: impl Fn(&CachedAccess) -> bool) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
        for shard in &self.shards {
            shard.write().retain(|_, access| !is_affected(access));
        }
        self.refused.lock().clear();
    }

    /// Returns the reason for which a credential was refused a moment ago.
    pub(crate) fn refusal(&self, digest: &CredentialDigest, now: u64) -> Option<InvalidCredential> {
        let refused = self.refused.lock();
        refused.get(digest).filter(|(until, _)| now < *until).map(|(_, reason)| *reason)
    }

    /// Remembers a refusal that was found since an epoch.
    pub(crate) fn refuse(
        &self,
        digest: CredentialDigest,
        reason: InvalidCredential,
        checked_since: u64,
        now: u64,
    ) {
        let mut refused = self.refused.lock();
        if self.most_refused == 0 || self.epoch() != checked_since {
            return;
        }
        if refused.len() >= self.most_refused {
            refused.retain(|_, (until, _)| now < *until);
        }
        if refused.len() < self.most_refused {
            refused.insert(digest, (now + self.refused_for, reason));
        }
    }

    fn shard(
        &self,
        digest: &CredentialDigest,
    ) -> &RwLock<HashMap<CredentialDigest, CachedAccess, DigestState>> {
        &self.shards[usize::from(digest.as_bytes()[31]) % SHARDS]
    }
}

#[cfg(test)]
mod tests {
    use consort_server::PresentedCredential;

    use super::*;

    fn digest(text: &str) -> CredentialDigest {
        *PresentedCredential::new(text).digest()
    }

    fn access(user: UserId, resource: &str, until: u64) -> CachedAccess {
        let scope = AccessScope::Resource(Resource::at(resource).unwrap());
        CachedAccess { caller: Caller::client("ada"), scope, user: Some(user), until }
    }

    // T31.
    #[test]
    fn a_known_credential_is_valid_for_its_paths_and_until_its_time_only() {
        let cache = AccessCache::new(&IdentityLimits::default());
        let (user, token) = (UserId::random(), digest("a"));
        cache.insert(token, access(user, "/mcp/review", 10), cache.epoch(), 0);
        let found = |path: &str, now| cache.find(&token, path, now).is_some();
        assert!(found("/mcp/review", 9) && found("/mcp/review/", 9));
        for path in ["/mcp", "/mcp/other", "/v1", "/api", "/api/session", "/metrics", "/console/"] {
            assert!(!found(path, 9), "{path}");
        }
        assert!(!found("/mcp/review", 10));
        assert!(cache.find(&digest("b"), "/mcp/review", 0).is_none());
    }

    #[test]
    fn what_was_checked_before_a_revocation_is_not_added_after_it() {
        let cache = AccessCache::new(&IdentityLimits::default());
        let (user, other) = (UserId::random(), UserId::random());
        let before = cache.epoch();
        cache.insert(digest("b"), access(other, "/mcp", 10), before, 0);
        cache.forget_user(user);
        cache.insert(digest("a"), access(user, "/mcp", 10), before, 0);
        cache.refuse(digest("c"), InvalidCredential::Unknown, before, 0);
        assert!(cache.find(&digest("a"), "/mcp", 0).is_none());
        assert!(cache.find(&digest("b"), "/mcp", 0).is_some());
        assert_eq!(cache.refusal(&digest("c"), 0), None);
        cache.forget_all();
        assert!(cache.find(&digest("b"), "/mcp", 0).is_none());
    }

    #[test]
    fn no_more_are_remembered_than_allowed_and_refusals_for_a_moment_only() {
        let limits = IdentityLimits {
            cached_credentials: 32,
            refused_credentials: 2,
            ..IdentityLimits::default()
        };
        let cache = AccessCache::new(&limits);
        let user = UserId::random();
        for n in 0..1000 {
            let text = n.to_string();
            cache.insert(digest(&text), access(user, "/mcp", 10), cache.epoch(), 0);
            cache.refuse(digest(&text), InvalidCredential::Unknown, cache.epoch(), 0);
        }
        let known: usize = cache.shards.iter().map(|shard| shard.read().len()).sum();
        assert!(known <= 32, "{known}");
        assert_eq!(cache.refused.lock().len(), 2);
        let refused = cache.refused.lock().keys().next().copied().unwrap();
        assert_eq!(cache.refusal(&refused, 4), Some(InvalidCredential::Unknown));
        assert_eq!(cache.refusal(&refused, 5), None);
    }

    #[test]
    fn the_access_of_a_lease_that_ended_is_not_found() {
        use std::sync::Arc;
        let lease = Arc::new(consort_core::AccessLease::default());
        let identity = consort_core::Identity {
            lease: Some(Arc::clone(&lease)),
            ..consort_core::Identity::clone(Caller::client("ada").identity())
        };
        let caller = Caller::new(consort_core::CallerKind::Client, identity);
        let cache = AccessCache::new(&IdentityLimits::default());
        let access = CachedAccess { caller, ..access(UserId::random(), "/mcp", 10) };
        cache.insert(digest("a"), access, cache.epoch(), 0);
        assert!(cache.find(&digest("a"), "/mcp", 0).is_some());
        lease.end();
        assert!(cache.find(&digest("a"), "/mcp", 0).is_none());
    }
}
