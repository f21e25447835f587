//! Durations as written in a config.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The shortest duration accepted by a key of a server, an agent or a provider.
const SHORTEST: Duration = Duration::from_millis(1);

/// The longest duration accepted by a key of a server, an agent or a provider.
const LONGEST: Duration = Duration::from_hours(24);

/// The units, from the longest, in milliseconds.
const UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// A duration from one millisecond to one day.
///
/// ```
/// use std::time::Duration;
///
/// use consort_config::ConfigDuration;
///
/// let period: ConfigDuration = "5m".parse()?;
/// assert_eq!(period.get(), Duration::from_secs(300));
/// assert_eq!("0.5".parse::<ConfigDuration>()?.to_string(), "500ms");
/// assert_eq!(
///     "2 weeks".parse::<ConfigDuration>().unwrap_err().to_string(),
///     "expected a number of seconds, or a number with `ms`, `s`, `m` or `h`, such as `30s`"
/// );
/// # Ok::<(), consort_config::InvalidDuration>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConfigDuration(Duration);

impl ConfigDuration {
    /// The duration, if it is in range.
    pub fn new(duration: Duration) -> Result<Self, InvalidDuration> {
        match duration {
            _ if duration < SHORTEST => Err(InvalidDuration::TooShort),
            _ if duration > LONGEST => Err(InvalidDuration::TooLong),
            _ => Ok(Self(duration)),
        }
    }

    /// A duration in seconds.
    pub fn from_seconds(seconds: f64) -> Result<Self, InvalidDuration> {
        match Duration::try_from_secs_f64(seconds) {
            Ok(duration) => Self::new(duration),
            Err(_) if seconds < 0.0 => Err(InvalidDuration::TooShort),
            Err(_) if seconds.is_nan() => Err(InvalidDuration::NotATime),
            Err(_) => Err(InvalidDuration::TooLong),
        }
    }

    /// Returns the duration.
    pub fn get(self) -> Duration {
        self.0
    }
}

impl FromStr for ConfigDuration {
    type Err = InvalidDuration;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::from_seconds(parse_seconds(text)?)
    }
}

/// The shortest and the longest duration of a credential.
const CREDENTIAL: [Duration; 2] = [Duration::from_secs(1), Duration::from_hours(3650 * 24)];

/// A duration from one second to ten years: the lifetime of a credential.
///
/// ```
/// use consort_config::LongDuration;
///
/// assert_eq!("30d".parse::<LongDuration>()?.to_string(), "30d");
/// assert_eq!("36h".parse::<LongDuration>()?.to_string(), "36h");
/// # Ok::<(), consort_config::InvalidDuration>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LongDuration(Duration);

impl LongDuration {
    /// Returns the duration.
    pub fn get(self) -> Duration {
        self.0
    }

    fn new(duration: Duration) -> Result<Self, InvalidDuration> {
        let [shortest, longest] = CREDENTIAL;
        match duration {
            _ if duration < shortest => Err(InvalidDuration::TooShortForCredential),
            _ if duration > longest => Err(InvalidDuration::TooLongForCredential),
            _ => Ok(Self(duration)),
        }
    }
}

impl FromStr for LongDuration {
    type Err = InvalidDuration;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::new(parse_duration(text)?)
    }
}

impl fmt::Display for LongDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let milliseconds = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        let fits = |(_, size): &(&str, u64)| milliseconds.is_multiple_of(*size);
        let (unit, size) = UNITS.into_iter().find(fits).unwrap_or(("ms", 1));
        write!(f, "{}{unit}", milliseconds / size)
    }
}

impl fmt::Debug for LongDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for LongDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for LongDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::Number(seconds) => seconds.to_string(),
            serde_json::Value::String(text) => text,
            _ => return Err(serde::de::Error::custom(InvalidDuration::NotATime)),
        };
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Parses a duration of any length.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, InvalidDuration> {
    Duration::try_from_secs_f64(parse_seconds(text)?).map_err(|_| InvalidDuration::NotATime)
}

/// Parses a duration to seconds.
fn parse_seconds(text: &str) -> Result<f64, InvalidDuration> {
    let text = text.trim();
    let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = (text[..end].trim_end(), &text[end..]);
    let plain = number.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-' | '+'));
    let number: f64 = number.parse().ok().filter(|_| plain).ok_or(InvalidDuration::NotATime)?;
    let milliseconds = match UNITS.iter().find(|(name, _)| *name == unit) {
        Some((_, milliseconds)) => *milliseconds,
        None if unit.is_empty() => 1_000,
        None => return Err(InvalidDuration::NotATime),
    };
    #[expect(clippy::cast_precision_loss, reason = "the units are far below 2^52")]
    Ok(number * milliseconds as f64 / 1_000.0)
}

impl fmt::Display for ConfigDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let milliseconds = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        let (unit, size) = UNITS
            .into_iter()
            // Nobody writes `1d` where a limit is meant.
            .skip(1)
            .find(|(_, size)| milliseconds.is_multiple_of(*size))
            .unwrap_or(("ms", 1));
        write!(f, "{}{unit}", milliseconds / size)
    }
}

impl fmt::Debug for ConfigDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for ConfigDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The reason why a duration is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDuration {
    /// It is not a duration.
    #[error("expected a number of seconds, or a number with `ms`, `s`, `m` or `h`, such as `30s`")]
    NotATime,
    /// It is below the minimum.
    #[error("expected at least `1ms`")]
    TooShort,
    /// It is above the maximum.
    #[error("expected at most `24h`")]
    TooLong,
    /// It is below the minimum of a credential's lifetime.
    #[error("expected at least `1s`")]
    TooShortForCredential,
    /// It is above the maximum of a credential's lifetime.
    #[error("expected at most `3650d`")]
    TooLongForCredential,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_by_the_largest_unit_that_fits() {
        for (written, shown) in [
            ("30", "30s"),
            ("30s", "30s"),
            ("90s", "90s"),
            ("300", "5m"),
            ("1.5s", "1500ms"),
            ("500ms", "500ms"),
            ("2h", "2h"),
            ("1d", "24h"),
            (" 3 m", "3m"),
        ] {
            assert_eq!(
                written.parse::<ConfigDuration>().map(|p| p.to_string()),
                Ok(shown.to_owned())
            );
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        use InvalidDuration::{NotATime, TooLong, TooShort};
        for (written, why) in [
            ("", NotATime),
            ("s", NotATime),
            ("5 minutes", NotATime),
            ("inf", NotATime),
            ("NaN", NotATime),
            ("1e3", NotATime),
            ("5µs", NotATime),
            ("0", TooShort),
            ("-5", TooShort),
            ("0.0001ms", TooShort),
            ("25h", TooLong),
            ("99999999999999999999999999999999999999999", TooLong),
        ] {
            assert_eq!(written.parse::<ConfigDuration>(), Err(why), "{written}");
        }
        assert_eq!(ConfigDuration::from_seconds(f64::NAN), Err(NotATime));
        assert_eq!(ConfigDuration::from_seconds(f64::NEG_INFINITY), Err(TooShort));
        assert_eq!(ConfigDuration::from_seconds(f64::INFINITY), Err(TooLong));
    }
}
