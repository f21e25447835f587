//! API keys of providers, known or read when they are first used.

use std::fmt;
use std::sync::{Arc, OnceLock};

use secrecy::SecretString;
use tokio::sync::Mutex;

use crate::error::{ProviderError, ProviderErrorKind};

/// An API key. A handle: clones share the value.
#[derive(Clone)]
pub struct ApiKey(Arc<ApiKeyInner>);

struct ApiKeyInner {
    value: OnceLock<Result<SecretString, UnreadableKey>>,
    /// Held by the request that waits for the source; the others wait for it.
    turn: Mutex<()>,
    /// Absent if the key was known from the start.
    source: Option<Box<KeySource>>,
}

/// Function that reads a key. It may block.
type KeySource = dyn Fn() -> Result<String, UnreadableKey> + Send + Sync;

/// The reason why an API key cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct UnreadableKey {
    /// Problem, which names the provider and the key.
    pub message: String,
    /// The way out.
    pub hint: Option<String>,
}

impl ApiKey {
    /// Creates a key that is read before the first request, once: a failure stays, too. The function may block; it runs
    /// on a thread of its own.
    pub fn read_by(
        source: impl Fn() -> Result<String, UnreadableKey> + Send + Sync + 'static,
    ) -> Self {
        let (value, turn) = (OnceLock::new(), Mutex::new(()));
        Self(Arc::new(ApiKeyInner { value, turn, source: Some(Box::new(source)) }))
    }

    /// Returns the key if it is known.
    pub fn value(&self) -> Option<&SecretString> {
        self.0.value.get()?.as_ref().ok()
    }

    /// Returns true until the key was read.
    pub(crate) fn is_pending(&self) -> bool {
        self.0.value.get().is_none()
    }

    /// Reads the key if it is not known.
    pub(crate) async fn read(&self) -> Result<(), ProviderError> {
        if self.is_pending() {
            let _turn = self.0.turn.lock().await;
            if self.is_pending() {
                // It continues if the request is cancelled: the next one then waits for the same run.
                let key = Arc::clone(&self.0);
                let read = move || key.read();
                // A source that panicked is asked again; a runtime that ends sends no request.
                let _ = tokio::task::spawn_blocking(read).await;
            }
        }
        match self.0.value.get() {
            Some(Ok(_)) => Ok(()),
            Some(Err(error)) => Err(error.clone().into()),
            None => {
                Err(UnreadableKey { message: "its source failed".to_owned(), hint: None }.into())
            }
        }
    }
}

impl ApiKeyInner {
    fn read(&self) {
        if let Some(source) = &self.source {
            self.value.get_or_init(|| source().map(SecretString::from));
        }
    }
}

impl From<SecretString> for ApiKey {
    fn from(key: SecretString) -> Self {
        let (value, turn) = (OnceLock::from(Ok(key)), Mutex::new(()));
        Self(Arc::new(ApiKeyInner { value, turn, source: None }))
    }
}

impl From<String> for ApiKey {
    fn from(key: String) -> Self {
        SecretString::from(key).into()
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiKey").field("is_pending", &self.is_pending()).finish_non_exhaustive()
    }
}

impl From<UnreadableKey> for ProviderError {
    fn from(error: UnreadableKey) -> Self {
        Self::new(ProviderErrorKind::UnreadableKey { hint: error.hint }, error.message)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use secrecy::ExposeSecret;

    use super::*;

    fn counted(
        runs: &Arc<AtomicUsize>,
        outcome: Result<&'static str, &'static str>,
    ) -> impl Fn() -> Result<String, UnreadableKey> + Send + Sync + 'static {
        let runs = Arc::clone(runs);
        move || {
            runs.fetch_add(1, Ordering::SeqCst);
            let unread = |message: &str| UnreadableKey { message: message.to_owned(), hint: None };
            outcome.map(str::to_owned).map_err(unread)
        }
    }

    #[tokio::test]
    async fn a_key_is_read_once_for_all_requests() {
        let runs = Arc::new(AtomicUsize::new(0));
        let key = ApiKey::read_by(counted(&runs, Ok("k3y")));
        assert!(key.value().is_none() && key.is_pending());
        let (one, two, three) = tokio::join!(key.read(), key.read(), key.read());
        assert_eq!((one, two, three), (Ok(()), Ok(()), Ok(())));
        assert_eq!(key.value().map(ExposeSecret::expose_secret), Some("k3y"));
        assert_eq!(runs.load(Ordering::SeqCst), 1);
        assert!(!format!("{key:?}").contains("k3y"));
    }

    #[tokio::test]
    async fn a_failure_stays() {
        let runs = Arc::new(AtomicUsize::new(0));
        let key = ApiKey::read_by(counted(&runs, Err("cannot read `providers.a.key`")));
        for _ in 0..2 {
            let error = key.read().await.unwrap_err();
            assert_eq!(error.to_string(), "no API key: cannot read `providers.a.key`");
        }
        assert_eq!((runs.load(Ordering::SeqCst), key.value().is_none()), (1, true));
    }

    #[tokio::test]
    async fn a_cancelled_request_leads_to_no_second_run() {
        let runs = Arc::new(AtomicUsize::new(0));
        let gate = Arc::new(Barrier::new(2));
        let (read, held) = (counted(&runs, Ok("k3y")), Arc::clone(&gate));
        let key = ApiKey::read_by(move || {
            held.wait();
            read()
        });
        let cancelled = tokio::time::timeout(Duration::from_millis(20), key.read()).await;
        assert!(cancelled.is_err());
        let next = key.clone();
        let next = tokio::spawn(async move { next.read().await });
        tokio::task::spawn_blocking(move || gate.wait()).await.unwrap();
        assert_eq!(next.await.unwrap(), Ok(()));
        assert_eq!(runs.load(Ordering::SeqCst), 1);
    }
}
