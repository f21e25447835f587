//! Consort's own keys of a server, each declared once: its field, its type, its default and its description. Reading,
//! writing, comparison, the JSON Schema and the reference follow.

use crate::duration::ConfigDuration;
use crate::server::keys::KeyType;
use crate::server::{ConnectTime, EraSetting, ValidationMode};
use crate::syntax::table_reader::TableReader;

/// The value of a key as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WrittenValue {
    Text(String),
    Texts(Vec<String>),
    Count(u64),
    Duration(ConfigDuration),
}

/// A type that a key can have. The default value is not written.
pub(crate) trait KeyValue: Default {
    const TYPE: KeyType;

    fn read(fields: &TableReader<'_>, key: &'static str) -> Self;

    /// Returns the value as it is written; `None` for the default.
    fn write(&self) -> Option<WrittenValue>;
}

/// Declares a struct of keys: `field: type, default, description;`, with the documentation of the field.
macro_rules! declare_keys {
    ($(#[doc = $doc:literal])+ $table:ident {
        $($(#[doc = $about:literal])+ $name:ident: $type:ty, $absent:literal, $says:literal;)+
    }) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
        pub struct $table {
            $(
                $(#[doc = $about])+
                #[serde(skip_serializing_if = "crate::server::is_default")]
                pub $name: $type,
            )+
        }

        impl $table {
            /// The keys, for the reference and the JSON Schema.
            pub(crate) const KEYS: &[$crate::server::keys::ServerKey] = &[
                $($crate::server::keys::key(
                    stringify!($name),
                    <$type as $crate::server::options::KeyValue>::TYPE,
                    $absent,
                    $says,
                ),)+
            ];

            pub(crate) fn read(fields: &$crate::syntax::table_reader::TableReader<'_>) -> Self {
                use $crate::server::options::KeyValue;
                Self { $($name: KeyValue::read(fields, stringify!($name)),)+ }
            }

            /// The keys that are set, with their values as they are written.
            pub(crate) fn written(
                &self,
            ) -> impl Iterator<Item = (&'static str, $crate::server::options::WrittenValue)> {
                use $crate::server::options::KeyValue;
                let all = [$((stringify!($name), KeyValue::write(&self.$name)),)+];
                all.into_iter().filter_map(|(key, value)| Some((key, value?)))
            }
        }
    };
}
pub(crate) use declare_keys;

declare_keys! {
    /// Settings of any server, whatever its transport; each has a key of the same name.
    ServerOptions {
        /// The user's description.
        description: Option<String>, "none",
            "description of the server; under the exposures `per-server` and `agent`, a model chooses a server by it";
        /// Protocol era to use.
        era: EraSetting, "`auto`", "protocol era: [eras.md](eras.md)";
        /// Time of the first connection.
        connect: ConnectTime, "`start`",
            "when to connect; `call` also connects once for the first listing, if none is cached";
        /// Idle time after which it is stopped.
        idle_stop: Option<ConfigDuration>, "never", "idle time after which the server is stopped";
        /// Check of arguments against the input schema of its tools, if it differs from `[consort]`'s.
        validate: Option<ValidationMode>, "that of `[consort]`",
            "validation of arguments against the input schema: refuse the call, or only explain a failed call";
        /// The tools to keep, as patterns; all if empty.
        keep: Vec<String>, "all", "tools to expose";
        /// The tools to drop, as patterns.
        drop: Vec<String>, "none", "tools to hide";
    }
}

impl KeyValue for Option<String> {
    const TYPE: KeyType = KeyType::Text;

    fn read(fields: &TableReader<'_>, key: &'static str) -> Self {
        fields.string(key).map(str::to_owned)
    }

    fn write(&self) -> Option<WrittenValue> {
        self.clone().map(WrittenValue::Text)
    }
}

impl KeyValue for Vec<String> {
    const TYPE: KeyType = KeyType::Patterns;

    fn read(fields: &TableReader<'_>, key: &'static str) -> Self {
        fields.strings(key)
    }

    fn write(&self) -> Option<WrittenValue> {
        (!self.is_empty()).then(|| WrittenValue::Texts(self.clone()))
    }
}

impl KeyValue for Option<u64> {
    const TYPE: KeyType = KeyType::Count;

    fn read(fields: &TableReader<'_>, key: &'static str) -> Self {
        fields.count(key)
    }

    fn write(&self) -> Option<WrittenValue> {
        self.map(WrittenValue::Count)
    }
}

impl KeyValue for Option<ConfigDuration> {
    const TYPE: KeyType = KeyType::Time;

    fn read(fields: &TableReader<'_>, key: &'static str) -> Self {
        fields.period(key)
    }

    fn write(&self) -> Option<WrittenValue> {
        self.map(WrittenValue::Duration)
    }
}

/// Declares an enum as the type of a key, with its words.
macro_rules! declare_words {
    ($type:ty, $value:ty, [$($word:literal => $variant:expr),+]) => {
        impl KeyValue for $type {
            const TYPE: KeyType = KeyType::Words(&[$($word),+], &[]);

            fn read(fields: &TableReader<'_>, key: &'static str) -> Self {
                fields.word(key, &[$(($word, $variant)),+], &[]).map(Into::into).unwrap_or_default()
            }

            fn write(&self) -> Option<WrittenValue> {
                let words: [($value, &str); _] = [$(($variant, $word)),+];
                let word = words.into_iter().find(|(value, _)| *self == Self::from(*value))?.1;
                (*self != Self::default()).then(|| WrittenValue::Text(word.to_owned()))
            }
        }
    };
}

declare_words!(EraSetting, EraSetting, [
    "auto" => EraSetting::Auto, "legacy" => EraSetting::Legacy, "modern" => EraSetting::Modern
]);
declare_words!(ConnectTime, ConnectTime, [
    "start" => ConnectTime::Start, "call" => ConnectTime::Call
]);
declare_words!(Option<ValidationMode>, ValidationMode, [
    "off" => ValidationMode::Off, "warn" => ValidationMode::Warn, "refuse" => ValidationMode::Refuse
]);
