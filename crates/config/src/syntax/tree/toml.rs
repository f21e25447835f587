//! TOML.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{SyntaxEntry, SyntaxError, SyntaxNode, SyntaxTable, SyntaxValue};

pub(crate) fn parse(text: &str) -> Result<SyntaxNode, Vec<SyntaxError>> {
    let (document, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Ok(SyntaxNode { value: SyntaxValue::Table(table(document.into_inner())), at: 0 });
    }
    let errors = errors.into_iter().map(|error| SyntaxError {
        at: error.span().map_or(0, |span| span.start),
        message: error.message().to_owned(),
    });
    Err(errors.collect())
}

fn table(table: DeTable<'_>) -> SyntaxTable {
    let mut entries: Vec<SyntaxEntry> = table
        .into_iter()
        .map(|(key, value)| SyntaxEntry {
            at: key.span().start,
            key: key.into_inner().into_owned(),
            node: node(value),
        })
        .collect();
    // The parser sorts them by name; people expect their own order.
    entries.sort_by_key(|entry| entry.at);
    SyntaxTable(entries)
}

fn node(value: Spanned<DeValue<'_>>) -> SyntaxNode {
    let at = value.span().start;
    let value = match value.into_inner() {
        DeValue::String(text) => SyntaxValue::Text(text.into_owned()),
        DeValue::Boolean(value) => SyntaxValue::Bool(value),
        DeValue::Integer(number) => {
            // A number too large for this is too large for anything.
            SyntaxValue::Number(
                i128::from_str_radix(number.as_str(), number.radix())
                    .unwrap_or(i128::MAX)
                    .to_string(),
            )
        }
        DeValue::Float(number) => SyntaxValue::Number(number.as_str().to_owned()),
        DeValue::Datetime(_) => SyntaxValue::Date,
        DeValue::Array(array) => SyntaxValue::List(array.into_iter().map(node).collect()),
        DeValue::Table(inner) => SyntaxValue::Table(table(inner)),
    };
    SyntaxNode { value, at }
}
