//! Timeouts and retries of model requests.

use std::time::Duration;

use crate::error::{ProviderError, RetryDecision};

/// Timeouts and retries of model requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderTimeouts {
    /// Timeout of a connection and its TLS handshake.
    pub connect: Duration,
    /// Idle timeout before and within a streamed answer.
    pub idle: Duration,
    /// Idle timeout before an answer that is not streamed, during which the model works.
    pub idle_whole: Duration,
    /// Timeout of the whole request, with retries and the waits between them; `None` by default, as answers may be
    /// long.
    pub total: Option<Duration>,
    /// Maximum attempts, the first included.
    pub max_attempts: u32,
    /// Longest wait before a retry. If the provider requests a longer one, there is no retry.
    pub max_retry_wait: Duration,
    /// Idle timeout of a pooled connection. Load balancers of large providers keep theirs for minutes; one that turns
    /// out to be closed costs a retry, which is safe here.
    pub idle_connection: Duration,
}

impl Default for ProviderTimeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            idle: Duration::from_mins(2),
            idle_whole: Duration::from_mins(10),
            total: None,
            max_attempts: 4,
            max_retry_wait: Duration::from_mins(1),
            idle_connection: Duration::from_secs(30),
        }
    }
}

impl ProviderTimeouts {
    /// Returns the wait before the next attempt, or the error if there is none. `chance`, between 0 and 1, is the
    /// jitter that spreads clients that failed at the same time.
    pub(crate) fn next_retry(
        &self,
        mut error: ProviderError,
        attempts: u32,
        chance: f64,
    ) -> Result<(ProviderError, Duration), ProviderError> {
        let RetryDecision::After(least) = error.retry() else { return Err(error) };
        if attempts >= self.max_attempts {
            return Err(error);
        }
        if error.wait.is_none() {
            let doubled = least.saturating_mul(2u32.saturating_pow(attempts.saturating_sub(1)));
            let wait = doubled.mul_f64(1.0 + chance / 2.0).min(self.max_retry_wait);
            return Ok((error, wait));
        }
        if least > self.max_retry_wait {
            let asks = format!("the provider asks to retry after {}", format_duration(least));
            error.message = match &*error.message {
                "" => asks,
                said => format!("{said} ({asks})"),
            };
            return Err(error);
        }
        // Never less than it says.
        Ok((error, least + least.mul_f64(chance / 10.0)))
    }
}

/// Returns an unpredictable number between 0 and 1.
pub(crate) fn jitter() -> f64 {
    use std::hash::{BuildHasher, Hasher};
    let bits = std::hash::RandomState::new().build_hasher().finish();
    f64::from(u32::try_from(bits >> 32).unwrap_or(0)) / f64::from(u32::MAX)
}

/// Formats a duration for users: `90 s`, `15 min`, `3 h`.
pub(crate) fn format_duration(duration: Duration) -> String {
    let seconds = duration.as_millis().div_ceil(1000);
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h", seconds.div_ceil(3600)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ProviderErrorKind;

    fn error(cause: ProviderErrorKind, wait: Option<u64>) -> ProviderError {
        let mut error = ProviderError::new(cause, "busy");
        error.wait = wait.map(Duration::from_secs);
        error
    }

    /// Returns the waits after each attempt, in milliseconds, until the last.
    fn waits(error: &ProviderError, chance: f64) -> Vec<u128> {
        let timeouts = ProviderTimeouts::default();
        let wait = |attempts| timeouts.next_retry(error.clone(), attempts, chance).ok();
        (1..).map_while(wait).map(|(_, wait)| wait.as_millis()).collect()
    }

    #[test]
    fn waits_double_and_are_never_shorter_than_the_provider_says() {
        assert_eq!(waits(&error(ProviderErrorKind::Failed, None), 0.0), [1000, 2000, 4000]);
        assert_eq!(waits(&error(ProviderErrorKind::Overloaded, None), 1.0), [3000, 6000, 12_000]);
        assert_eq!(
            waits(&error(ProviderErrorKind::RateLimited, None), 0.5),
            [6250, 12_500, 25_000]
        );
        assert_eq!(waits(&error(ProviderErrorKind::RateLimited, Some(20)), 0.0), [20_000; 3]);
        assert_eq!(waits(&error(ProviderErrorKind::RateLimited, Some(20)), 1.0), [22_000; 3]);
        assert_eq!(waits(&error(ProviderErrorKind::RateLimited, Some(0)), 1.0), [0; 3]);
    }

    #[test]
    fn what_cannot_be_repeated_is_not() {
        assert!(waits(&error(ProviderErrorKind::Invalid, None), 0.0).is_empty());
        let mut begun = error(ProviderErrorKind::Overloaded, Some(1));
        begun.mid_answer = true;
        assert!(waits(&begun, 0.0).is_empty());
    }

    #[test]
    fn a_wait_that_is_too_long_is_told_instead() {
        let told = |wait| {
            let error = error(ProviderErrorKind::RateLimited, Some(wait));
            ProviderTimeouts::default().next_retry(error, 1, 0.0).unwrap_err().to_string()
        };
        assert_eq!(told(61), "rate limit exceeded: busy (the provider asks to retry after 61 s)");
        assert!(told(900).ends_with("(the provider asks to retry after 15 min)"));
        assert!(told(86_400).ends_with("(the provider asks to retry after 24 h)"));
    }
}
