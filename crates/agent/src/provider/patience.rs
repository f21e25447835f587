//! How long a provider is waited for, and when the same is asked again.

use std::time::Duration;

use super::error::{ProviderError, Retry};

/// How long a provider is waited for, and how often it is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patience {
    /// A connection and its TLS handshake.
    pub connect: Duration,
    /// Silence before and within an answer that comes piece by piece.
    pub silence: Duration,
    /// Silence before an answer that comes at once, for all of which the model then works.
    pub silence_whole: Duration,
    /// All of it, with repeats and the waits between them; `None` by default, as answers may be long.
    pub total: Option<Duration>,
    /// How often the same is asked, the first time included.
    pub tries: u32,
    /// The longest wait before the same is asked again. A provider that wants a longer one gets none.
    pub longest_wait: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            silence: Duration::from_mins(2),
            silence_whole: Duration::from_mins(10),
            total: None,
            tries: 4,
            longest_wait: Duration::from_mins(1),
        }
    }
}

impl Patience {
    /// How long to wait before the same is asked again; the error back if it is not. `chance`, between
    /// 0 and 1, sets those apart who failed at the same time.
    pub(super) fn wait(
        &self,
        mut error: ProviderError,
        asked: u32,
        chance: f64,
    ) -> Result<(ProviderError, Duration), ProviderError> {
        let Retry::After(least) = error.retry() else { return Err(error) };
        if asked >= self.tries {
            return Err(error);
        }
        if error.wait.is_none() {
            let doubled = least.saturating_mul(2u32.saturating_pow(asked.saturating_sub(1)));
            let wait = doubled.mul_f64(1.0 + chance / 2.0).min(self.longest_wait);
            return Ok((error, wait));
        }
        if least > self.longest_wait {
            let asks = format!("it wants us to wait {}", in_words(least));
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

/// A number between 0 and 1 that nobody can foresee.
pub(super) fn chance() -> f64 {
    use std::hash::{BuildHasher, Hasher};
    let bits = std::hash::RandomState::new().build_hasher().finish();
    f64::from(u32::try_from(bits >> 32).unwrap_or(0)) / f64::from(u32::MAX)
}

/// A duration for people: `90 s`, `15 min`, `3 h`.
pub(super) fn in_words(duration: Duration) -> String {
    let seconds = duration.as_millis().div_ceil(1000);
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h", seconds.div_ceil(3600)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Cause;
    use super::*;

    fn error(cause: Cause, wait: Option<u64>) -> ProviderError {
        let mut error = ProviderError::new(cause, "busy");
        error.wait = wait.map(Duration::from_secs);
        error
    }

    /// The waits behind each try, in milliseconds, until it is given up.
    fn waits(error: &ProviderError, chance: f64) -> Vec<u128> {
        let patience = Patience::default();
        let wait = |asked| patience.wait(error.clone(), asked, chance).ok();
        (1..).map_while(wait).map(|(_, wait)| wait.as_millis()).collect()
    }

    #[test]
    fn waits_double_and_are_never_shorter_than_the_provider_says() {
        assert_eq!(waits(&error(Cause::Failed, None), 0.0), [1000, 2000, 4000]);
        assert_eq!(waits(&error(Cause::Overloaded, None), 1.0), [3000, 6000, 12_000]);
        assert_eq!(waits(&error(Cause::RateLimited, None), 0.5), [6250, 12_500, 25_000]);
        assert_eq!(waits(&error(Cause::RateLimited, Some(20)), 0.0), [20_000; 3]);
        assert_eq!(waits(&error(Cause::RateLimited, Some(20)), 1.0), [22_000; 3]);
        assert_eq!(waits(&error(Cause::RateLimited, Some(0)), 1.0), [0; 3]);
    }

    #[test]
    fn what_cannot_be_repeated_is_not() {
        assert!(waits(&error(Cause::Invalid, None), 0.0).is_empty());
        let mut begun = error(Cause::Overloaded, Some(1));
        begun.handed_out = true;
        assert!(waits(&begun, 0.0).is_empty());
    }

    #[test]
    fn a_wait_that_is_too_long_is_told_instead() {
        let told = |wait| {
            let error = error(Cause::RateLimited, Some(wait));
            Patience::default().wait(error, 1, 0.0).unwrap_err().to_string()
        };
        assert_eq!(
            told(61),
            "too much was asked in too short a time: busy (it wants us to wait 61 s)"
        );
        assert!(told(900).ends_with("(it wants us to wait 15 min)"));
        assert!(told(86_400).ends_with("(it wants us to wait 24 h)"));
    }
}
