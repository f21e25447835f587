//! JSON with comments and trailing commas.

use jsonc_parser::common::Ranged;
use jsonc_parser::errors::ParseErrorKind;
use jsonc_parser::{CollectOptions, ParseOptions, ParseStringErrorKind, ast, parse_to_ast};

use super::{SyntaxEntry, SyntaxError, SyntaxNode, SyntaxTable, SyntaxValue};

/// Syntax that editors accept in their settings; anything more is an error, not a dialect.
pub(crate) const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

pub(crate) fn parse(text: &str) -> Result<SyntaxNode, SyntaxError> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &OPTIONS)
        .map_err(|error| SyntaxError { at: error.range().start, message: explain(error.kind()) })?;
    // Nothing written is a table with nothing in it.
    Ok(parsed
        .value
        .map_or(SyntaxNode { value: SyntaxValue::Table(SyntaxTable::default()), at: 0 }, node))
}

pub(crate) fn explain(kind: &ParseErrorKind) -> String {
    // Its own text would quote what was written.
    if let ParseErrorKind::String(ParseStringErrorKind::InvalidUnicodeEscapeSequence(_)) = kind {
        return "invalid unicode escape".into();
    }
    let message = kind.to_string();
    let mut letters = message.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

fn node(value: ast::Value<'_>) -> SyntaxNode {
    let at = value.range().start;
    let value = match value {
        ast::Value::NullKeyword(_) => SyntaxValue::Null,
        ast::Value::BooleanLit(literal) => SyntaxValue::Bool(literal.value),
        ast::Value::NumberLit(literal) => SyntaxValue::Number(literal.value.to_owned()),
        ast::Value::StringLit(literal) => SyntaxValue::Text(literal.value.into_owned()),
        ast::Value::Array(array) => {
            SyntaxValue::List(array.elements.into_iter().map(node).collect())
        }
        ast::Value::Object(object) => {
            SyntaxValue::Table(SyntaxTable(object.properties.into_iter().map(entry).collect()))
        }
    };
    SyntaxNode { value, at }
}

fn entry(property: ast::ObjectProp<'_>) -> SyntaxEntry {
    let at = property.name.range().start;
    SyntaxEntry { key: property.name.into_string(), at, node: node(property.value) }
}
