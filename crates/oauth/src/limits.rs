//! Limits of logins.

use std::time::Duration;

/// Limits of a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoginLimits {
    /// Time that one request of a login may take.
    pub request: Duration,
    /// Maximum bytes of a response during a login.
    pub response_bytes: usize,
    /// Maximum redirects when a document of a login is fetched.
    pub redirects: u32,
    /// Time to wait for another process to refresh a login.
    pub refresh_wait: Duration,
    /// Attempts of a login within ten minutes.
    pub attempts: u32,
}

impl Default for LoginLimits {
    fn default() -> Self {
        Self {
            request: Duration::from_secs(15),
            response_bytes: 1 << 20,
            redirects: 3,
            refresh_wait: Duration::from_secs(20),
            attempts: 3,
        }
    }
}
