//! A document of the issuer, fetched by one request at a time and remembered.

use std::sync::Arc;
use std::time::Duration;

use consort_server::IdentityLimits;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::provider::IssuerError;
use crate::clock::IdentityClock;

/// A document with the time that its sender allows to remember it.
pub(super) struct FreshDocument<T> {
    pub(super) document: Arc<T>,
    pub(super) max_age: Option<Duration>,
}

/// A document of the issuer that is fetched by one request at a time and remembered.
#[derive(Debug)]
pub(super) struct RememberedDocument<T> {
    known: Mutex<Option<KnownDocument<T>>>,
    fetching: Semaphore,
}

#[derive(Debug)]
struct KnownDocument<T> {
    document: Arc<T>,
    fetched_at: u64,
    max_age: Option<Duration>,
}

impl<T> Default for RememberedDocument<T> {
    fn default() -> Self {
        Self { known: Mutex::default(), fetching: Semaphore::new(1) }
    }
}

impl<T> RememberedDocument<T> {
    /// Returns it, fetched if it is old. While the issuer does not respond, an older one is used.
    pub(super) async fn get(
        &self,
        limits: &IdentityLimits,
        clock: &IdentityClock,
        fetch: impl Future<Output = Result<FreshDocument<T>, IssuerError>>,
    ) -> Result<Arc<T>, IssuerError> {
        let least = limits.issuer_refresh_min;
        let most = limits.issuer_refresh_max.max(least);
        let lasts = |known: &KnownDocument<T>| known.max_age.unwrap_or(most).clamp(least, most);
        if let Some(document) = self.younger_than(clock, lasts) {
            return Ok(document);
        }
        let _permit = self.fetching.acquire().await;
        // Another request may have fetched it meanwhile.
        if let Some(document) = self.younger_than(clock, lasts) {
            return Ok(document);
        }
        match fetch.await {
            Ok(fresh) => Ok(self.remember(clock, fresh)),
            Err(error @ IssuerError::Unavailable(_)) => {
                self.younger_than(clock, |_| limits.issuer_stale).ok_or(error)
            }
            Err(error) => Err(error),
        }
    }

    /// Fetches it, however young the known one is.
    pub(super) async fn renew(
        &self,
        clock: &IdentityClock,
        fetch: impl Future<Output = Result<FreshDocument<T>, IssuerError>>,
    ) -> Result<Arc<T>, IssuerError> {
        let _permit = self.fetching.acquire().await;
        Ok(self.remember(clock, fetch.await?))
    }

    fn younger_than(
        &self,
        clock: &IdentityClock,
        lasts: impl Fn(&KnownDocument<T>) -> Duration,
    ) -> Option<Arc<T>> {
        let known = self.known.lock();
        let known = known.as_ref()?;
        let age = clock.now().saturating_sub(known.fetched_at);
        (age < lasts(known).as_secs()).then(|| Arc::clone(&known.document))
    }

    fn remember(&self, clock: &IdentityClock, fresh: FreshDocument<T>) -> Arc<T> {
        let document = Arc::clone(&fresh.document);
        let (fetched_at, max_age) = (clock.now(), fresh.max_age);
        *self.known.lock() = Some(KnownDocument { document: fresh.document, fetched_at, max_age });
        document
    }
}
