//! The declaration of a limit.

use std::time::Duration;

use super::LimitSettings;
use super::settings::READ_AT_START;

/// One limit: its key in `[consort.limits]`, its unit, its range and its field.
#[derive(Debug)]
pub struct LimitSpec {
    /// The key in `[consort.limits]`.
    pub key: &'static str,
    /// The key in `[consort.serve]` that sets it too.
    pub serve_key: Option<&'static str>,
    /// The unit of its value.
    pub unit: LimitUnit,
    /// The least value, in milliseconds, bytes or things.
    pub min: u64,
    /// The greatest value.
    pub max: u64,
    /// One sentence about it.
    pub about: &'static str,
    /// Effect of reaching it.
    pub reached: &'static str,
    /// The path of its field in [`LimitSettings`], after a dot.
    pub(super) field: &'static str,
    pub(super) get: fn(&LimitSettings) -> Option<u64>,
    pub(super) set: fn(&mut LimitSettings, u64),
}

/// The unit of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitUnit {
    /// A time: milliseconds here, seconds or a text such as `"30s"` in a config.
    Time,
    /// A number of bytes, or a text such as `"64KiB"`.
    Bytes,
    /// A number of things.
    Count,
}

pub(super) const SECOND: u64 = 1_000;
pub(super) const MINUTE: u64 = 60 * SECOND;
pub(super) const HOUR: u64 = 60 * MINUTE;
pub(super) const DAY: u64 = 24 * HOUR;
pub(super) const KIB: u64 = 1 << 10;
pub(super) const MIB: u64 = 1 << 20;
pub(super) const GIB: u64 = 1 << 30;

/// The units of bytes, from the largest.
pub(super) const BYTE_UNITS: [(&str, u64); 4] = [("GiB", GIB), ("MiB", MIB), ("KiB", KIB), ("", 1)];

/// The units of time, from the longest.
const TIME_UNITS: [(&str, u64); 4] = [("h", HOUR), ("m", MINUTE), ("s", SECOND), ("ms", 1)];

impl LimitSpec {
    /// The value that holds where a config says nothing; none if there is no limit then.
    pub fn default(&self) -> Option<u64> {
        self.value_in(&LimitSettings::default())
    }

    /// The value that holds by these settings; none if there is no limit.
    pub fn value_in(&self, settings: &LimitSettings) -> Option<u64> {
        (self.get)(settings)
    }

    /// True if a running gateway has read it at its start, so that another value takes effect after a restart.
    pub fn needs_restart(&self) -> bool {
        let path = &self.field[1..];
        READ_AT_START.iter().any(|read| {
            path.strip_prefix(read).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    }

    /// A value as it can be written in a config.
    pub fn format_value(&self, value: u64) -> String {
        let units: &[(&str, u64)] = match self.unit {
            LimitUnit::Time if value == 0 => return "0s".to_owned(),
            LimitUnit::Time => &TIME_UNITS,
            LimitUnit::Bytes if value > 0 => &BYTE_UNITS,
            LimitUnit::Bytes | LimitUnit::Count => &[],
        };
        let fitting = units.iter().find(|(_, size)| value.is_multiple_of(*size));
        let (name, size) = fitting.copied().unwrap_or(("", 1));
        format!("{}{name}", value / size)
    }

    /// The allowed values for people: `1s to 24h`.
    pub fn format_range(&self) -> String {
        format!("{} to {}", self.format_value(self.min), self.format_value(self.max))
    }
}

/// A field that a limit sets.
pub(super) trait LimitField {
    fn read(&self) -> Option<u64>;
    fn write(&mut self, value: u64);
}

macro_rules! integers {
    ($($type:ty),+) => {
        $(impl LimitField for $type {
            fn read(&self) -> Option<u64> {
                u64::try_from(*self).ok()
            }

            fn write(&mut self, value: u64) {
                *self = Self::try_from(value).unwrap_or(Self::MAX);
            }
        })+
    };
}

integers!(usize, u32, u64, i64);

impl LimitField for Duration {
    fn read(&self) -> Option<u64> {
        u64::try_from(self.as_millis()).ok()
    }

    fn write(&mut self, value: u64) {
        *self = Self::from_millis(value);
    }
}

impl<T: LimitField + Default> LimitField for Option<T> {
    fn read(&self) -> Option<u64> {
        self.as_ref().and_then(T::read)
    }

    fn write(&mut self, value: u64) {
        self.get_or_insert_default().write(value);
    }
}

/// Declares limits: a sentence, `key = field, Unit(range), "what happens when it is reached"`, and `serve "key"` for
/// those that `[consort.serve]` sets too.
macro_rules! limits {
    ($($(#[doc = $about:literal])+ $key:ident = $($field:ident).+, $unit:ident($range:expr), $reached:literal
        $(, serve $serve:literal)?;)+) => {
        &[$(LimitSpec {
            key: stringify!($key),
            serve_key: limits!(@serve $($serve)?),
            unit: LimitUnit::$unit,
            min: *$range.start(),
            max: *$range.end(),
            about: concat!($($about),+).trim_ascii(),
            reached: $reached,
            field: concat!($(".", stringify!($field)),+),
            get: |settings| LimitField::read(&settings.$($field).+),
            set: |settings, value| LimitField::write(&mut settings.$($field).+, value),
        },)+]
    };
    (@serve) => { None };
    (@serve $key:literal) => { Some($key) };
}
