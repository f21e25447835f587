//! JSON with comments and trailing commas.

use jsonc_parser::common::Ranged;
use jsonc_parser::errors::ParseErrorKind;
use jsonc_parser::{CollectOptions, ParseOptions, ParseStringErrorKind, ast, parse_to_ast};

use super::{Entry, Node, SyntaxError, Table, Value};

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

pub(crate) fn parse(text: &str) -> Result<Node, SyntaxError> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &OPTIONS)
        .map_err(|error| SyntaxError { at: error.range().start, message: explain(error.kind()) })?;
    // Nothing written is a table with nothing in it.
    Ok(parsed.value.map_or(Node { value: Value::Table(Table::default()), at: 0 }, node))
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

fn node(value: ast::Value<'_>) -> Node {
    let at = value.range().start;
    let value = match value {
        ast::Value::NullKeyword(_) => Value::Null,
        ast::Value::BooleanLit(literal) => Value::Bool(literal.value),
        ast::Value::NumberLit(literal) => Value::Number(literal.value.to_owned()),
        ast::Value::StringLit(literal) => Value::Text(literal.value.into_owned()),
        ast::Value::Array(array) => Value::List(array.elements.into_iter().map(node).collect()),
        ast::Value::Object(object) => {
            Value::Table(Table(object.properties.into_iter().map(entry).collect()))
        }
    };
    Node { value, at }
}

fn entry(property: ast::ObjectProp<'_>) -> Entry {
    let at = property.name.range().start;
    Entry { key: property.name.into_string(), at, node: node(property.value) }
}
