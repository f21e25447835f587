//! Limits: every key of `[consort.limits]`, declared once.
//!
//! An entry of a table below has a key, the field it sets in [`LimitSettings`], its unit, the allowed values, a
//! description and the effect of reaching the limit. The default is that of the field. The reader, the JSON Schema,
//! `consort config limits`, `docs/config.md` and `docs/limits.md` come from it.

#[macro_use]
mod declare;
mod ceilings;
mod clients;
mod identity;
mod models;
mod servers;
mod settings;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use consort_shape::policy::PolicySpec;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::duration::parse_duration;
use crate::error::ConfigErrorKind;
use crate::syntax::names::shorten_name;
use crate::syntax::table_reader::TableReader;
use crate::syntax::tree::{SyntaxNode, SyntaxValue};
pub use ceilings::CeilingTables;
pub use declare::{LimitSpec, LimitUnit};
pub use settings::{
    AgentLimits, ConsoleLimits, FileLimits, FindingLimits, LimitSettings, RecordLimits,
    ReloadLimits,
};

/// Limits under one heading of `docs/limits.md`.
#[derive(Debug)]
pub struct LimitSection {
    /// The heading.
    pub heading: &'static str,
    /// The limits.
    pub limits: &'static [LimitSpec],
}

/// Every limit that `[consort.limits]` sets.
pub const LIMIT_SECTIONS: &[LimitSection] = &[
    LimitSection { heading: "Calls", limits: servers::CALLS },
    LimitSection { heading: "Server messages and listings", limits: servers::MESSAGES },
    LimitSection { heading: "Connections to servers", limits: servers::CONNECTIONS },
    LimitSection { heading: "OAuth logins", limits: servers::LOGINS },
    LimitSection { heading: "Validation of arguments", limits: servers::SCHEMAS },
    LimitSection { heading: "Gateway clients", limits: clients::CLIENTS },
    LimitSection { heading: "Users and sign-in", limits: identity::IDENTITY },
    LimitSection { heading: "Ledger, metrics and log", limits: clients::RECORDS },
    LimitSection { heading: "Console", limits: clients::CONSOLE },
    LimitSection { heading: "Reloading", limits: clients::RELOADING },
    LimitSection { heading: "Exposure and tool search", limits: models::EXPOSURE },
    LimitSection { heading: "Approvals and results", limits: models::PEOPLE },
    LimitSection { heading: "Agent runs", limits: models::RUNS },
    LimitSection { heading: "Model providers", limits: models::PROVIDERS },
];

/// Returns every limit that `[consort.limits]` sets, in the order of the sections.
///
/// ```
/// let limit = consort_config::limits().find(|limit| limit.key == "message_bytes").unwrap();
/// assert_eq!(limit.format_value(limit.default().unwrap()), "16MiB");
/// assert_eq!(limit.format_range(), "64KiB to 1GiB");
/// ```
pub fn limits() -> impl Iterator<Item = &'static LimitSpec> {
    LIMIT_SECTIONS.iter().flat_map(|section| section.limits)
}

/// A limit whose value takes effect after a restart of the gateway.
#[derive(Clone, Copy, Debug)]
pub struct PendingLimit {
    /// The limit.
    pub limit: &'static LimitSpec,
    /// Its value in the config; none if there is no limit.
    pub value: Option<u64>,
    /// The value in force.
    pub in_force: Option<u64>,
}

/// The table `[consort.limits]`: the limits that differ from the default, and the ceilings of identities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitsConfig {
    values: BTreeMap<&'static str, u64>,
    ceilings: CeilingTables,
}

impl LimitsConfig {
    /// True if every limit is the default, and there are no ceilings.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty() && self.ceilings.is_empty()
    }

    /// The value set in the config, in the limit's unit.
    pub fn get(&self, limit: &LimitSpec) -> Option<u64> {
        self.values.get(limit.key).copied()
    }

    /// True if the config sets the limit of this key.
    pub fn is_set(&self, key: &str) -> bool {
        self.values.contains_key(key)
    }

    /// The ceilings of identities.
    pub fn ceilings(&self) -> &CeilingTables {
        &self.ceilings
    }

    /// The limits whose values differ from those that a gateway was started with, and need a restart.
    pub fn pending<'a>(&'a self, started: &'a Self) -> impl Iterator<Item = PendingLimit> + 'a {
        let (now, before) = (self.settings(), started.settings());
        limits().filter(|limit| limit.needs_restart()).filter_map(move |limit| {
            let (value, in_force) = (limit.value_in(&now), limit.value_in(&before));
            (value != in_force).then_some(PendingLimit { limit, value, in_force })
        })
    }

    /// Every limit: those that are set, and the defaults of the others.
    pub fn settings(&self) -> LimitSettings {
        let mut settings = LimitSettings::default();
        for limit in limits() {
            if let Some(value) = self.get(limit) {
                (limit.set)(&mut settings, value);
            }
        }
        // One limit for both sides.
        settings.gateway.list_wait = settings.lists.wait;
        settings.transports.late = settings.times.late;
        settings
    }

    /// Reads `[consort.limits]`, with the roles and issuers that the config has.
    pub(crate) fn read(fields: &TableReader<'_>, policy: &PolicySpec) -> Self {
        let Some(table) = fields.table("limits") else { return Self::default() };
        let value = |limit: &LimitSpec| Some((limit.key, read(&table, limit.key, limit)?));
        let values = limits().filter_map(value).collect();
        let ceilings = CeilingTables::read(&table, policy);
        table.finish();
        Self { values, ceilings }
    }

    /// Reads the limits that `[consort.serve]` may set too.
    pub(crate) fn read_serve(&mut self, serve: &TableReader<'_>) {
        for limit in limits() {
            let Some(key) = limit.serve_key else { continue };
            let Some(value) = read(serve, key, limit) else { continue };
            if self.values.insert(limit.key, value).is_some() {
                let both = (format!("limits.{}", limit.key), serve.path(key));
                serve.error(serve.at_of(key), ConfigErrorKind::ConflictingKeys(both.0, both.1));
            }
        }
    }
}

impl Serialize for LimitsConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for limit in limits() {
            match self.get(limit) {
                Some(value) if limit.unit == LimitUnit::Time => {
                    map.serialize_entry(limit.key, &limit.format_value(value))?;
                }
                Some(value) => map.serialize_entry(limit.key, &value)?,
                None => {}
            }
        }
        let CeilingTables { per_user, roles, callers } = &self.ceilings;
        if let Some(per_user) = per_user {
            map.serialize_entry("per_user", per_user)?;
        }
        for (key, tables) in [("roles", roles), ("callers", callers)] {
            if !tables.is_empty() {
                map.serialize_entry(key, tables)?;
            }
        }
        map.end()
    }
}

/// Reads one limit, in its unit.
fn read(fields: &TableReader<'_>, key: &'static str, limit: &LimitSpec) -> Option<u64> {
    let node = fields.get(key)?;
    match parse(node, limit) {
        Ok(value) => Some(value),
        Err(InvalidLimit::Type(expected)) => fields.report_wrong_type(key, node, expected),
        Err(InvalidLimit::Range(written)) => {
            let reason = format!("{written} is out of range: use {}", limit.format_range());
            fields.error(node.at, ConfigErrorKind::InvalidValue { key: fields.path(key), reason });
            None
        }
    }
}

/// The reason why a value is refused.
enum InvalidLimit {
    Type(&'static str),
    Range(String),
}

fn parse(node: &SyntaxNode, limit: &LimitSpec) -> Result<u64, InvalidLimit> {
    let expected = match limit.unit {
        LimitUnit::Time => "a duration, such as `30` or `\"30s\"`",
        LimitUnit::Bytes => "a number of bytes, such as `65536` or `\"64KiB\"`",
        LimitUnit::Count => "an integer",
    };
    let wrong = || InvalidLimit::Type(expected);
    let (written, value) = match (&node.value, limit.unit) {
        (SyntaxValue::Number(number), LimitUnit::Time) => {
            let seconds: f64 = number.parse().map_err(|_| wrong())?;
            let time = Duration::try_from_secs_f64(seconds).ok();
            (number.clone(), time.and_then(milliseconds))
        }
        (SyntaxValue::Text(text), LimitUnit::Time) => {
            let time = parse_duration(text).map_err(|_| wrong())?;
            (shorten_name(text), milliseconds(time))
        }
        (SyntaxValue::Number(number), _) => {
            if !number
                .trim_start_matches(['+', '-'])
                .chars()
                .all(|c| c.is_ascii_digit() || c == '_')
            {
                return Err(wrong());
            }
            (number.clone(), number.parse().ok())
        }
        (SyntaxValue::Text(text), LimitUnit::Bytes) => {
            (shorten_name(text), Some(parse_bytes(text).ok_or_else(wrong)?))
        }
        _ => return Err(wrong()),
    };
    let allowed = limit.min..=limit.max;
    value.filter(|value| allowed.contains(value)).ok_or(InvalidLimit::Range(written))
}

/// Milliseconds, rounded up so that a duration never becomes zero.
fn milliseconds(time: Duration) -> Option<u64> {
    u64::try_from(time.as_nanos().div_ceil(1_000_000)).ok()
}

/// Parses `64KiB` and the like.
fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim_start());
    let (_, size) = declare::BYTE_UNITS.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*size)
}

impl fmt::Display for LimitUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Time => "time",
            Self::Bytes => "bytes",
            Self::Count => "count",
        })
    }
}

#[cfg(test)]
mod tests;
