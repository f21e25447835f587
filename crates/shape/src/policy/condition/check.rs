//! One check of one value.

use std::cmp::Ordering;

use consort_core::NamePattern;
use serde_json::{Number, Value};

use super::{ArgumentPath, ConditionResult, ConditionSpec};
use crate::policy::arguments::kind;
use crate::policy::error::PolicyError;

/// The longest string that is matched with a pattern, in bytes: a pattern may take quadratic time.
const LONGEST: usize = 64 << 10;

/// A check of a value. A value of another type than the check expects leaves it unsure.
#[derive(Clone, Debug)]
pub(super) enum ValueCheck {
    OneOf(Vec<Value>),
    Glob(NamePattern),
    Prefix(String),
    Under(String),
    Contains(Value),
    Compare(&'static [Ordering], Number),
}

impl ValueCheck {
    pub(super) fn compile(place: &str, spec: &ConditionSpec) -> Result<Vec<Self>, PolicyError> {
        let mut checks = Vec::new();
        if let Some(value) = &spec.equals {
            checks.push(Self::OneOf(vec![scalar(place, "equals", value)?]));
        }
        if let Some(values) = &spec.one_of {
            if values.is_empty() {
                return Err(PolicyError::new(place, "`one_of` is empty: list at least one value"));
            }
            let values = values.iter().map(|value| scalar(place, "one_of", value));
            checks.push(Self::OneOf(values.collect::<Result<_, _>>()?));
        }
        if let Some(value) = &spec.contains {
            checks.push(Self::Contains(scalar(place, "contains", value)?));
        }
        checks.extend(spec.glob.as_ref().map(|glob| Self::Glob(NamePattern::new(glob))));
        checks.extend(spec.prefix.clone().map(Self::Prefix));
        if let Some(folder) = &spec.under {
            let Ok(parts) = parts(folder) else {
                let message =
                    format!("`under` requires an absolute path without `..`, not `{folder}`");
                return Err(PolicyError::new(place, message));
            };
            checks.push(Self::Under(parts.join("/")));
        }
        let comparisons: [(_, &'static [Ordering]); 4] = [
            (&spec.less, &[Ordering::Less]),
            (&spec.at_most, &[Ordering::Less, Ordering::Equal]),
            (&spec.greater, &[Ordering::Greater]),
            (&spec.at_least, &[Ordering::Greater, Ordering::Equal]),
        ];
        for (limit, orders) in comparisons {
            checks.extend(limit.clone().map(|limit| Self::Compare(orders, limit)));
        }
        Ok(checks)
    }

    pub(super) fn holds(&self, path: &ArgumentPath, value: &Value) -> ConditionResult {
        let unlike = |wanted: &str| {
            ConditionResult::Unsure(format!("`{path}` is {}, not {wanted}", kind(value)))
        };
        match (self, value) {
            (Self::OneOf(values), value) => {
                among(values, value).unwrap_or_else(|| unlike(kind(&values[0])))
            }
            (Self::Contains(Value::String(part)), Value::String(text)) => {
                ConditionResult::of(text.contains(part.as_str()))
            }
            (Self::Contains(wanted), Value::Array(items)) => {
                let like = |item| {
                    same(wanted, item).map_or_else(|| unlike_item(path), ConditionResult::of)
                };
                ConditionResult::any(items.iter().map(like))
            }
            (Self::Contains(_), _) => unlike("a string or an array"),
            (Self::Glob(_), Value::String(text)) if text.len() > LONGEST => {
                ConditionResult::Unsure(format!("`{path}` is longer than {LONGEST} bytes"))
            }
            (Self::Glob(pattern), Value::String(text)) => ConditionResult::of(pattern.fits(text)),
            (Self::Prefix(prefix), Value::String(text)) => {
                ConditionResult::of(text.starts_with(prefix))
            }
            (Self::Under(folder), Value::String(text)) => match parts(text) {
                Ok(parts) => ConditionResult::of(within(folder, &parts)),
                Err(why) => ConditionResult::Unsure(format!("`{path}` {why}")),
            },
            (Self::Compare(orders, limit), Value::Number(number)) => match compare(number, limit) {
                Some(order) => ConditionResult::of(orders.contains(&order)),
                None => ConditionResult::Unsure(format!("`{path}` cannot be compared")),
            },
            (Self::Compare(..), _) => unlike("a number"),
            (Self::Glob(_) | Self::Prefix(_) | Self::Under(_), _) => unlike("a string"),
        }
    }
}

fn unlike_item(path: &ArgumentPath) -> ConditionResult {
    ConditionResult::Unsure(format!("`{path}` has items of another type"))
}

fn scalar(place: &str, word: &str, value: &Value) -> Result<Value, PolicyError> {
    match value {
        Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(value.clone()),
        other => {
            let is = kind(other);
            let message = format!("`{word}` takes strings, numbers and booleans, not {is}");
            Err(PolicyError::new(place, message))
        }
    }
}

/// Tests membership in the list; `None` if no item has the value's type.
fn among(values: &[Value], value: &Value) -> Option<ConditionResult> {
    let mut comparable = values.iter().filter_map(|one| same(one, value)).peekable();
    comparable.peek()?;
    Some(ConditionResult::of(comparable.any(|same| same)))
}

/// Compares two values for equality; `None` if their types differ.
fn same(a: &Value, b: &Value) -> Option<bool> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => Some(compare(a, b) == Some(Ordering::Equal)),
        (Value::String(a), Value::String(b)) => Some(a == b),
        (Value::Bool(a), Value::Bool(b)) => Some(a == b),
        _ => None,
    }
}

fn compare(a: &Number, b: &Number) -> Option<Ordering> {
    let integer = |n: &Number| n.as_i64().map(i128::from).or_else(|| n.as_u64().map(i128::from));
    match (integer(a), integer(b)) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

/// Returns the segments of an absolute path, as written: links are not followed.
fn parts(path: &str) -> Result<Vec<&str>, &'static str> {
    if !path.starts_with('/') {
        return Err("is not an absolute path");
    }
    if path.contains(['\\', '\0']) {
        return Err("is a path with a backslash or NUL");
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    if parts.contains(&"..") { Err("is a path with `..`") } else { Ok(parts) }
}

/// Returns true if a path is a folder or in it.
fn within(folder: &str, path: &[&str]) -> bool {
    let folder: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    path.starts_with(&folder)
}
