//! Common tree of JSON, TOML and YAML, with the offset of every value.

pub(crate) mod json;
pub(crate) mod toml;
pub(crate) mod yaml;

use crate::syntax::names::shorten_name;

/// A value and its offset.
#[derive(Clone, Debug)]
pub(crate) struct SyntaxNode {
    pub(crate) value: SyntaxValue,
    pub(crate) at: usize,
}

/// A value, in any language.
#[derive(Clone, Debug)]
pub(crate) enum SyntaxValue {
    Null,
    Bool(bool),
    /// As decimal digits.
    Number(String),
    Text(String),
    Date,
    List(Vec<SyntaxNode>),
    Table(SyntaxTable),
}

/// Keys and values in written order. A key may occur twice.
#[derive(Clone, Debug, Default)]
pub(crate) struct SyntaxTable(pub(crate) Vec<SyntaxEntry>);

/// A key and its value.
#[derive(Clone, Debug)]
pub(crate) struct SyntaxEntry {
    pub(crate) key: String,
    pub(crate) at: usize,
    pub(crate) node: SyntaxNode,
}

/// A syntax error.
#[derive(Debug)]
pub(crate) struct SyntaxError {
    pub(crate) at: usize,
    pub(crate) message: String,
}

impl SyntaxValue {
    /// Converts the value to JSON.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Null | Self::Date => serde_json::Value::Null,
            Self::Bool(value) => (*value).into(),
            Self::Number(digits) => {
                let integer = digits.parse::<i64>().map(Into::into);
                let number = integer.or_else(|_| digits.parse::<u64>().map(Into::into));
                number.unwrap_or_else(|_| digits.parse::<f64>().ok().into())
            }
            Self::Text(text) => text.clone().into(),
            Self::List(items) => items.iter().map(|item| item.value.to_json()).collect(),
            Self::Table(table) => {
                let member = |entry: &SyntaxEntry| (entry.key.clone(), entry.node.value.to_json());
                table.0.iter().map(member).collect::<serde_json::Map<_, _>>().into()
            }
        }
    }

    /// Returns the type, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::Text(_) => "a string",
            Self::Date => "a date",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

impl SyntaxTable {
    /// Shifts all offsets in it.
    fn shift(&mut self, by: usize) {
        for entry in &mut self.0 {
            entry.at += by;
            entry.node.shift(by);
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&SyntaxNode> {
        self.0.iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|entry| entry.key.as_str())
    }
}

impl SyntaxNode {
    pub(crate) fn table(&self) -> Option<&SyntaxTable> {
        match &self.value {
            SyntaxValue::Table(table) => Some(table),
            _ => None,
        }
    }

    /// Shifts its offset and all offsets in it.
    pub(crate) fn shift(&mut self, by: usize) {
        self.at += by;
        match &mut self.value {
            SyntaxValue::List(items) => items.iter_mut().for_each(|item| item.shift(by)),
            SyntaxValue::Table(table) => table.shift(by),
            _ => {}
        }
    }

    /// Returns the path and the offset of the first key of this name, here or further inside.
    pub(crate) fn find(&self, path: &str, key: &str) -> Option<(String, usize)> {
        match &self.value {
            SyntaxValue::Table(table) => table.0.iter().find_map(|entry| {
                let path = format!("{path}.{}", shorten_name(&entry.key));
                if entry.key == key { Some((path, entry.at)) } else { entry.node.find(&path, key) }
            }),
            SyntaxValue::List(items) => items
                .iter()
                .enumerate()
                .find_map(|(n, item)| item.find(&format!("{path}[{n}]"), key)),
            _ => None,
        }
    }

    /// Returns true for an empty list or table.
    pub(crate) fn is_empty(&self) -> bool {
        match &self.value {
            SyntaxValue::List(list) => list.is_empty(),
            SyntaxValue::Table(table) => table.0.is_empty(),
            _ => false,
        }
    }

    pub(crate) fn list(&self) -> Option<&[SyntaxNode]> {
        match &self.value {
            SyntaxValue::List(list) => Some(list),
            _ => None,
        }
    }
}
