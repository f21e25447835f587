//! Pins of definitions that the user has approved.
//!
//! A [`Pin`] is the digest of one definition, as its server wrote it. A [`PinLock`] holds the pins of
//! everything that was approved, with the definitions themselves, so that [`diff`] can show a change
//! and not only detect it.

mod canonical;
mod diff;
mod difference;
mod launch;
mod lock;
mod text;

use std::fmt;
use std::str::FromStr;

use consort_core::Json;
use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};

pub use canonical::canonical;
pub(crate) use canonical::code_units;
pub use diff::{DefinitionChange, DiffLine, DiffMark, diff, diff_lines, new_lines};
pub use difference::LockDifference;
pub use launch::ServerLaunch;
pub use lock::{LockedServer, PinLock, PinnedItem, PinnedKind, WithholdReason};
pub use text::LockError;

/// Prefix of a pin's textual form.
const ALGORITHM: &str = "sha256:";

/// The SHA-256 of the [`canonical`] form of a definition: any other value, name or order of items
/// makes another pin; the order of members, white space and spelling do not.
///
/// ```
/// use consort_core::Json;
/// use consort_shape::pin::Pin;
///
/// let pin = |text: &'static str| Json::parse(text).map(|json| Pin::of(&json));
/// assert_eq!(pin(r#"{"a": 1, "b": "x"}"#)?, pin(r#"{"b":"\u0078","a":1.0}"#)?);
/// assert_ne!(pin(r#"{"a": 1}"#)?, pin(r#"{"a": 2}"#)?);
/// # Ok::<(), consort_core::JsonError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pin([u8; 32]);

impl Pin {
    /// The pin of a definition.
    pub fn of(definition: &Json) -> Self {
        Self(Sha256::digest(canonical(definition)).into())
    }

    /// A short prefix for people to compare.
    pub fn short(&self) -> String {
        self.to_string().chars().skip(ALGORITHM.len()).take(12).collect()
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ALGORITHM)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Pin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for Pin {
    type Err = InvalidPin;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix(ALGORITHM).ok_or(InvalidPin)?.as_bytes();
        // One spelling: `from_str_radix` would take capitals and signs.
        if digits.len() != 64 || !digits.iter().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(InvalidPin);
        }
        let digit = |c: u8| if c.is_ascii_digit() { c - b'0' } else { c - b'a' + 10 };
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = digit(pair[0]) << 4 | digit(pair[1]);
        }
        Ok(Self(bytes))
    }
}

/// A string that is no pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a pin: expected `sha256:` and 64 lowercase hexadecimal digits")]
pub struct InvalidPin;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    fn pin(value: &Value) -> Pin {
        Pin::of(&Json::from(value.clone()))
    }

    /// Any value, a few levels deep.
    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_filter("JSON has no others", |n| n.is_finite()).prop_map(Value::from),
            "\\PC{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map("[a-d\u{e9}]{1,2}", inner, 0..5)
                    .prop_map(|map| Value::from(map.into_iter().collect::<Map<_, _>>())),
            ]
        })
    }

    /// Returns every value that results from one change at one place.
    fn changed(value: &Value) -> Vec<Value> {
        let mut all = match value {
            Value::String(text) => {
                vec![json!(format!("{text}\u{200b}")), json!(format!("x{text}"))]
            }
            Value::Number(number) => {
                let n = number.as_i64().unwrap_or(0);
                vec![json!(n.wrapping_add(1)), json!(number.to_string())]
            }
            Value::Bool(flag) => vec![json!(!flag)],
            _ => Vec::new(),
        };
        all.push(json!([value]));
        if let Value::Array(items) = value {
            for (n, item) in items.iter().enumerate() {
                for other in changed(item) {
                    let mut items = items.clone();
                    items[n] = other;
                    all.push(items.into());
                }
                let mut fewer = items.clone();
                fewer.remove(n);
                all.push(fewer.into());
            }
            if items.len() > 1 && items[0] != items[1] {
                let mut swapped = items.clone();
                swapped.swap(0, 1);
                all.push(swapped.into());
            }
        }
        if let Value::Object(members) = value {
            for (key, member) in members {
                for other in changed(member) {
                    let mut members = members.clone();
                    members.insert(key.clone(), other);
                    all.push(members.into());
                }
                let mut renamed = members.clone();
                let member = renamed.remove(key).unwrap();
                all.push(renamed.clone().into());
                renamed.insert(format!("{key}_"), member);
                all.push(renamed.into());
            }
        }
        all.retain(|other| other != value);
        all
    }

    /// Returns the value as text, with members reversed, white space, and the letters of keys escaped.
    fn respelled(value: &Value) -> String {
        let key = |key: &str| {
            let units: Vec<String> =
                key.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect();
            units.concat()
        };
        match value {
            Value::Object(members) => {
                let members: Vec<String> = members
                    .iter()
                    .rev()
                    .map(|(name, value)| format!(" \"{}\" :\n{}", key(name), respelled(value)))
                    .collect();
                format!("{{{} }}", members.join(" ,"))
            }
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(respelled).collect();
                format!("[ {} ]", items.join(",\t"))
            }
            other => other.to_string(),
        }
    }

    proptest! {
        #[test]
        fn any_change_anywhere_makes_another_pin(value in values()) {
            for other in changed(&value) {
                prop_assert_ne!(pin(&value), pin(&other), "{} {}", value, other);
            }
        }

        #[test]
        fn order_of_members_blanks_and_spelling_do_not(value in values()) {
            let other = Json::parse(respelled(&value)).unwrap();
            prop_assert_eq!(pin(&value), Pin::of(&other), "{}", other);
        }

        #[test]
        fn the_canonical_form_is_its_own(value in values()) {
            let once = canonical(&Json::from(value.clone()));
            prop_assert_eq!(canonical(&Json::parse(once.clone()).unwrap()), once.clone());
            prop_assert_eq!(serde_json::from_str::<Value>(&once).unwrap(), rounded(&value));
        }

        #[test]
        fn a_pin_is_read_back_from_its_text(value in values()) {
            prop_assert_eq!(pin(&value).to_string().parse(), Ok(pin(&value)));
        }
    }

    /// `1.0` is `1` in canonical form, which `Value` tells apart.
    fn rounded(value: &Value) -> Value {
        match value {
            Value::Number(n) if !(n.is_i64() || n.is_u64()) => {
                serde_json::from_str(&canonical(&Json::from(value.clone()))).unwrap()
            }
            Value::Array(items) => items.iter().map(rounded).collect(),
            Value::Object(members) => {
                Value::Object(members.iter().map(|(k, v)| (k.clone(), rounded(v))).collect())
            }
            other => other.clone(),
        }
    }

    #[test]
    fn a_pin_has_one_text() {
        // The SHA-256 of `{}`.
        let text = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
        assert_eq!(pin(&json!({})).to_string(), text);
        assert_eq!(pin(&json!({})).short(), "44136fa355b3");
        for wrong in ["", "44136f", &text.to_uppercase(), &text[..70], &format!("{text}0")] {
            assert_eq!(wrong.parse::<Pin>(), Err(InvalidPin), "{wrong}");
        }
    }
}
