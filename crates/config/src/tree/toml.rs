//! TOML.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Entry, Node, SyntaxError, Table, Value};

pub(crate) fn parse(text: &str) -> Result<Node, Vec<SyntaxError>> {
    let (document, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Ok(Node { value: Value::Table(table(document.into_inner())), at: 0 });
    }
    let errors = errors.into_iter().map(|error| SyntaxError {
        at: error.span().map_or(0, |span| span.start),
        message: error.message().to_owned(),
    });
    Err(errors.collect())
}

fn table(table: DeTable<'_>) -> Table {
    let mut entries: Vec<Entry> = table
        .into_iter()
        .map(|(key, value)| Entry {
            at: key.span().start,
            key: key.into_inner().into_owned(),
            node: node(value),
        })
        .collect();
    // The parser sorts them by name; people expect their own order.
    entries.sort_by_key(|entry| entry.at);
    Table(entries)
}

fn node(value: Spanned<DeValue<'_>>) -> Node {
    let at = value.span().start;
    let value = match value.into_inner() {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Boolean(value) => Value::Bool(value),
        DeValue::Integer(number) => {
            // A number too large for this is too large for anything.
            Value::Number(
                i128::from_str_radix(number.as_str(), number.radix())
                    .unwrap_or(i128::MAX)
                    .to_string(),
            )
        }
        DeValue::Float(number) => Value::Number(number.as_str().to_owned()),
        DeValue::Datetime(_) => Value::Date,
        DeValue::Array(array) => Value::List(array.into_iter().map(node).collect()),
        DeValue::Table(inner) => Value::Table(table(inner)),
    };
    Node { value, at }
}
