//! Ceilings of identities: what one may use at most, beside its fair share.

use std::fmt;
use std::time::Duration;

use consort_core::Caller;

/// Rules that say which ceilings an identity has.
pub trait CeilingRules: fmt::Debug + Send + Sync {
    /// Returns the ceilings of a caller. They are remembered for as long as its identity is the same.
    fn ceilings_of(&self, caller: &Caller) -> IdentityCeilings;
}

/// Ceilings of one identity, whichever of its clients, keys and agents it acts through. Where one is absent, its fair share
/// alone counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdentityCeilings {
    /// Requests in progress at once, streams of notifications excepted.
    pub max_concurrent_calls: Option<usize>,
    /// Streams of notifications open at once.
    pub max_streams: Option<usize>,
    /// Sessions of legacy clients open at once.
    pub max_sessions: Option<usize>,
    /// Suspended calls at once, which wait for their client's answer.
    pub max_suspended_calls: Option<usize>,
    /// Requests in a time.
    pub rate: Option<RequestRate>,
    /// Requests that may come at once after a pause; those of [`rate`](Self::rate) if absent.
    pub burst: Option<u32>,
}

/// A number of requests in a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestRate {
    /// The requests, at least one.
    pub requests: u32,
    /// The time.
    pub period: RatePeriod,
}

/// The time that a rate is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RatePeriod {
    /// A second.
    Second,
    /// A minute.
    Minute,
    /// An hour.
    Hour,
}

impl RatePeriod {
    /// Every period, from the shortest.
    pub const ALL: [Self; 3] = [Self::Second, Self::Minute, Self::Hour];

    /// Returns the period as a time.
    pub fn duration(self) -> Duration {
        match self {
            Self::Second => Duration::from_secs(1),
            Self::Minute => Duration::from_mins(1),
            Self::Hour => Duration::from_hours(1),
        }
    }

    /// Returns the period as a word: `second`, `minute` or `hour`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
        }
    }
}

impl fmt::Display for RequestRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.requests == 1 { "" } else { "s" };
        write!(f, "{} request{plural} per {}", self.requests, self.period.as_str())
    }
}

/// A request that was refused for a ceiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CeilingRefusal {
    pub(crate) ceiling: ReachedCeiling,
    /// The time after which a retry may succeed.
    pub(crate) retry_after: Duration,
}

/// The ceiling that a request would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReachedCeiling {
    Rate(RequestRate),
    Calls(usize),
    Streams(usize),
    Sessions(usize),
}

impl ReachedCeiling {
    /// Returns the key that sets it.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Rate(_) => "rate",
            Self::Calls(_) => "max_concurrent_calls",
            Self::Streams(_) => "max_streams",
            Self::Sessions(_) => "max_sessions",
        }
    }
}

impl CeilingRefusal {
    /// Returns the time until a retry in whole seconds, rounded up: the header `Retry-After`.
    pub(crate) fn retry_seconds(&self) -> u64 {
        let seconds = self.retry_after.as_nanos().div_ceil(1_000_000_000);
        u64::try_from(seconds).unwrap_or(u64::MAX).max(1)
    }
}

impl fmt::Display for CeilingRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ceiling {
            ReachedCeiling::Rate(rate) => write!(f, "rate limit exceeded: {rate}")?,
            ReachedCeiling::Calls(most) => {
                write!(f, "too many concurrent calls: the limit of this user is {most}")?;
            }
            ReachedCeiling::Streams(most) => {
                write!(f, "too many open streams: the limit of this user is {most}")?;
            }
            ReachedCeiling::Sessions(most) => {
                write!(f, "too many open sessions: the limit of this user is {most}")?;
            }
        }
        write!(f, "; retry in {} s", self.retry_seconds())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::answer::RequestFailure;

    #[test]
    fn a_refusal_says_the_seconds_rounded_up_in_its_message_too() {
        let rate = RequestRate { requests: 1200, period: RatePeriod::Minute };
        let refusal = |millis| CeilingRefusal {
            ceiling: ReachedCeiling::Rate(rate),
            retry_after: Duration::from_millis(millis),
        };
        for (millis, seconds) in [(0, 1), (1, 1), (1000, 1), (1001, 2), (11_950, 12)] {
            assert_eq!(refusal(millis).retry_seconds(), seconds, "{millis}");
        }
        let failure = RequestFailure::from(&refusal(11_950));
        let told = "rate limit exceeded: 1200 requests per minute; retry in 12 s";
        assert_eq!((failure.code, failure.message.as_str()), (-31429, told));
        assert_eq!(
            failure.data.unwrap().to_string(),
            format!(
                r#"{{"gateway":{{"class":"limited","limit":"rate","reason":"{told}","retryAfterMs":11950,"retryable":true,"sent":false}}}}"#
            )
        );
    }
}
