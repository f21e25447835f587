//! `[consort.limits.per_user]`, `[consort.limits.roles]` and `[consort.limits.callers]`: ceilings of identities.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use consort_server::{IdentityCeilings, RatePeriod, RequestRate};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The greatest value of a ceiling.
const GREATEST: u32 = 1_000_000;

/// The letters that stand for a period in a rate.
const PERIODS: [(&str, RatePeriod); 3] =
    [("s", RatePeriod::Second), ("min", RatePeriod::Minute), ("h", RatePeriod::Hour)];

/// The tables `[consort.limits.per_user]`, `[consort.limits.roles.NAME]` and `[consort.limits.callers.NAME]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CeilingsConfig {
    /// Maximum requests in progress, streams of notifications excepted. Further ones get HTTP 429.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_concurrent_calls: Option<u32>,
    /// Maximum open streams of notifications. Further ones get HTTP 429.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_streams: Option<u32>,
    /// Maximum open sessions of legacy clients. A new one ends the session that was idle for longest; if none is idle, it gets
    /// HTTP 429.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_sessions: Option<u32>,
    /// Maximum suspended calls, instead of `suspended_calls_per_caller`. A further one cancels the oldest.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_suspended_calls: Option<u32>,
    /// Maximum requests in a second, minute or hour, as in `20/s`, `1200/min` or `5000/h`. Further ones get HTTP 429.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<CeilingRate>,
    /// Maximum requests at once after a pause; by default those of `rate`. The rest of `rate` is spread evenly.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub burst: Option<u32>,
}

/// A rate as a config writes it: `1200/min`.
///
/// ```
/// use consort_config::CeilingRate;
///
/// assert_eq!("1200 / min".parse::<CeilingRate>()?.to_string(), "1200/min");
/// assert!("0/s".parse::<CeilingRate>().is_err());
/// # Ok::<(), consort_config::InvalidRate>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CeilingRate(RequestRate);

/// A text that is no rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a rate such as `20/s`, `1200/min` or `5000/h`, of 1 to 1000000 requests")]
pub struct InvalidRate;

impl CeilingRate {
    /// Returns the rate.
    pub fn get(self) -> RequestRate {
        self.0
    }
}

impl FromStr for CeilingRate {
    type Err = InvalidRate;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (requests, period) = text.split_once('/').ok_or(InvalidRate)?;
        let (requests, period) = (requests.trim(), period.trim());
        let is_plain = requests.bytes().all(|byte| byte.is_ascii_digit());
        let requests = requests.parse().ok().filter(|it| is_plain && (1..=GREATEST).contains(it));
        let period = PERIODS.iter().find(|(unit, _)| *unit == period);
        let (requests, (_, period)) = requests.zip(period).ok_or(InvalidRate)?;
        Ok(Self(RequestRate { requests, period: *period }))
    }
}

impl fmt::Display for CeilingRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = PERIODS.iter().find(|(_, period)| *period == self.0.period);
        write!(f, "{}/{}", self.0.requests, unit.map_or("", |(unit, _)| unit))
    }
}

impl Serialize for CeilingRate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CeilingRate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = serde_json::Value::deserialize(deserializer)?;
        let text = text.as_str().ok_or(InvalidRate).map_err(serde::de::Error::custom)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for CeilingRate {
    fn schema_name() -> Cow<'static, str> {
        "CeilingRate".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "A rate: a number of requests and `s`, `min` or `h`, as in `1200/min`.",
            "pattern": "^\\s*[0-9]{1,7}\\s*/\\s*(s|min|h)\\s*$",
        })
    }
}

impl CeilingsConfig {
    /// Checks the values.
    pub(crate) fn check(&self) -> Result<(), String> {
        let counts = [
            ("max_concurrent_calls", self.max_concurrent_calls),
            ("max_streams", self.max_streams),
            ("max_sessions", self.max_sessions),
            ("max_suspended_calls", self.max_suspended_calls),
            ("burst", self.burst),
        ];
        for (key, value) in counts {
            if let Some(value) = value.filter(|value| !(1..=GREATEST).contains(value)) {
                return Err(format!("`{key}`: {value} is out of range: use 1 to {GREATEST}"));
            }
        }
        if self.burst.is_some() && self.rate.is_none() {
            return Err("`burst` needs `rate` in the same table".to_owned());
        }
        Ok(())
    }

    /// Returns the ceilings.
    pub(crate) fn ceilings(&self) -> IdentityCeilings {
        let count = |value: Option<u32>| value.and_then(|value| usize::try_from(value).ok());
        IdentityCeilings {
            max_concurrent_calls: count(self.max_concurrent_calls),
            max_streams: count(self.max_streams),
            max_sessions: count(self.max_sessions),
            max_suspended_calls: count(self.max_suspended_calls),
            rate: self.rate.map(CeilingRate::get),
            burst: self.burst,
        }
    }
}
