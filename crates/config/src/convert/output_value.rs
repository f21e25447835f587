//! Ordered output tree, independent of JSON, TOML or YAML.

use jsonc_parser::cst::CstInputValue;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// A value to be written.
pub(crate) enum OutputValue {
    /// No value; a table leaves the key out.
    Nothing,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<OutputValue>),
    Table(Vec<(String, OutputValue)>),
}

impl OutputValue {
    /// A table without absent or empty values.
    pub(crate) fn table<const N: usize>(entries: [(&str, Self); N]) -> Self {
        let given = entries.into_iter().filter(|(_, value)| !value.is_empty());
        Self::Table(given.map(|(key, value)| (key.to_owned(), value)).collect())
    }

    /// The keys of several tables, one after the other.
    pub(crate) fn join_tables<const N: usize>(tables: [Self; N]) -> Self {
        let entries = tables.into_iter().flat_map(|table| match table {
            Self::Table(entries) => entries,
            _ => Vec::new(),
        });
        Self::Table(entries.collect())
    }

    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// The value if the condition holds, else nothing.
    pub(super) fn value_if(condition: bool, value: Self) -> Self {
        if condition { value } else { Self::Nothing }
    }

    pub(crate) fn from_option<T>(value: Option<T>, write: impl FnOnce(T) -> Self) -> Self {
        value.map_or(Self::Nothing, write)
    }

    pub(crate) fn strings<'a>(texts: impl IntoIterator<Item = &'a String>) -> Self {
        Self::List(texts.into_iter().cloned().map(Self::Text).collect())
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Nothing => true,
            Self::List(list) => list.is_empty(),
            Self::Table(table) => table.is_empty(),
            Self::Bool(_) | Self::Number(_) | Self::Text(_) => false,
        }
    }

    /// Converts to a value for an existing JSON text.
    pub(crate) fn to_cst(&self) -> CstInputValue {
        match self {
            Self::Nothing => CstInputValue::Null,
            Self::Bool(value) => CstInputValue::Bool(*value),
            Self::Number(number) => CstInputValue::Number(number.to_string()),
            Self::Text(text) => CstInputValue::String(text.clone()),
            Self::List(list) => CstInputValue::Array(list.iter().map(Self::to_cst).collect()),
            Self::Table(table) => {
                let member = |(key, value): &(String, Self)| (key.clone(), value.to_cst());
                CstInputValue::Object(table.iter().map(member).collect())
            }
        }
    }

    /// Converts to a value for an existing TOML text; tables are written inline.
    pub(crate) fn to_value(&self) -> toml_edit::Value {
        match self {
            Self::Nothing => toml_edit::Value::from(""),
            Self::Bool(value) => (*value).into(),
            #[expect(
                clippy::cast_possible_truncation,
                reason = "whole numbers of seconds in a day are small"
            )]
            Self::Number(number) if number.fract() == 0.0 => (*number as i64).into(),
            Self::Number(number) => (*number).into(),
            Self::Text(text) => text.as_str().into(),
            Self::List(list) => list.iter().map(Self::to_value).collect(),
            Self::Table(table) => {
                let pair = |(key, value): &(String, Self)| (key.clone(), value.to_value());
                table.iter().map(pair).collect()
            }
        }
    }

    /// Converts to a table with its own header in a TOML text.
    pub(crate) fn to_table(&self) -> toml_edit::Table {
        let mut table = toml_edit::Table::new();
        if let Self::Table(entries) = self {
            for (key, value) in entries {
                table.insert(key, toml_edit::value(value.to_value()));
            }
        }
        table
    }

    /// Returns the string under a key.
    pub(crate) fn get(&self, wanted: &str) -> Option<&str> {
        let Self::Table(entries) = self else { return None };
        entries.iter().find_map(|(key, value)| match value {
            Self::Text(text) if key == wanted => Some(text.as_str()),
            _ => None,
        })
    }

    pub(super) fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("keys are strings");
        text.push('\n');
        text
    }

    pub(super) fn to_toml(&self) -> String {
        toml::to_string(self).expect("the root is a table and no value is null")
    }
}

impl Serialize for OutputValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Nothing => serializer.serialize_none(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            #[expect(
                clippy::cast_possible_truncation,
                reason = "whole numbers of seconds in a day are small"
            )]
            Self::Number(number) if number.fract() == 0.0 => {
                serializer.serialize_i64(*number as i64)
            }
            Self::Number(number) => serializer.serialize_f64(*number),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(list) => serializer.collect_seq(list),
            Self::Table(table) => {
                let mut map = serializer.serialize_map(Some(table.len()))?;
                for (key, value) in table {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}
