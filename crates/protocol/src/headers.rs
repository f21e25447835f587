//! HTTP headers of a modern request, and their encoding.

use std::borrow::Cow;
use std::collections::HashSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderName, HeaderValue};

use crate::json::{Json, Object};

/// The largest integer a header may carry: every JSON parser keeps it exact.
const SAFE_INTEGER: i64 = (1 << 53) - 1;

/// Depth to which a schema is searched for annotations; a definition is small.
const SCHEMA_DEPTH: usize = 64;

/// The delimiters of base64.
const MARKS: (&str, &str) = ("=?base64?", "?=");

/// The arguments of a tool that are repeated in headers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParamHeaders(Vec<ParamHeader>);

/// An argument that is repeated in a header.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ParamHeader {
    header: HeaderName,
    path: Vec<String>,
}

/// Encodes a string as a header value: as it is if HTTP allows it, else as base64 between delimiters.
pub fn encode(text: &str) -> HeaderValue {
    HeaderValue::try_from(&*encode_text(text)).expect("printable ASCII is a header value")
}

/// Encodes a string as [`encode`] does, to the text of the header value.
pub fn encode_text(text: &str) -> Cow<'_, str> {
    let plain = text.bytes().all(|byte| matches!(byte, 0x20..=0x7e))
        && text.trim() == text
        && !text.is_empty()
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    if plain { text.into() } else { format!("=?base64?{}?=", STANDARD.encode(text)).into() }
}

/// Decodes a header value; `None` if it is invalid.
pub fn decode(value: &HeaderValue) -> Option<Cow<'_, str>> {
    let text = value.to_str().ok()?.trim_matches([' ', '\t']);
    match text.strip_prefix(MARKS.0).and_then(|text| text.strip_suffix(MARKS.1)) {
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok().map(Cow::Owned),
        None => Some(Cow::Borrowed(text)),
    }
}

impl ParamHeaders {
    /// Parses the `x-mcp-header` annotations of a schema, if they are all valid.
    pub fn of(schema: &Object) -> Result<Self, String> {
        mirrors(schema).map(Self)
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names of the headers.
    pub fn names(&self) -> impl Iterator<Item = &HeaderName> {
        self.0.iter().map(|mirror| &mirror.header)
    }

    /// Returns the headers that mirror these arguments, not yet encoded.
    pub fn values(&self, arguments: &Json) -> Vec<(HeaderName, String)> {
        let value = |mirror: &ParamHeader| {
            let mut value = arguments.clone();
            for name in &mirror.path {
                value = value.to_object()?.get(name)?;
            }
            let text = match value.as_bytes()[0] {
                b'"' => value.text()?.into_owned(),
                b't' | b'f' => value.as_str().to_owned(),
                _ => value.integer().filter(|number| number.abs() <= SAFE_INTEGER)?.to_string(),
            };
            Some((mirror.header.clone(), text))
        };
        self.0.iter().filter_map(value).collect()
    }
}

fn mirrors(schema: &Object) -> Result<Vec<ParamHeader>, String> {
    let mut found = Vec::new();
    // Most schemas have none, and then there is nothing to check.
    if memchr::memmem::find(schema.as_bytes(), b"x-mcp-header").is_none()
        && !schema.as_bytes().contains(&b'\\')
    {
        return Ok(found);
    }
    collect(schema, &mut Vec::new(), &mut found)?;
    let mut seen = HashSet::new();
    for mirror in &found {
        if !seen.insert(mirror.header.clone()) {
            return Err(format!("two properties map to the header `{}`", mirror.header));
        }
    }
    Ok(found)
}

/// Follows nested `properties`; an annotation anywhere else is an error.
fn collect(
    schema: &Object,
    path: &mut Vec<String>,
    found: &mut Vec<ParamHeader>,
) -> Result<(), String> {
    if path.len() > SCHEMA_DEPTH {
        return Err("the schema is nested too deeply".to_owned());
    }
    if let Some(annotation) = schema.get("x-mcp-header") {
        if path.is_empty() {
            return Err("`x-mcp-header` is not allowed at the root of the schema".to_owned());
        }
        found.push(ParamHeader { header: header_name(&annotation, schema)?, path: path.clone() });
    }
    for (name, value) in schema.members() {
        if name == "properties" {
            let Some(properties) = value.to_object() else {
                continue;
            };
            for (name, property) in properties.members() {
                if let Some(property) = property.to_object() {
                    let name = Json::parse(format!("\"{name}\""))
                        .ok()
                        .and_then(|name| name.text().map(Into::into));
                    path.push(name.ok_or("a property name is not a string")?);
                    collect(&property, path, found)?;
                    path.pop();
                }
            }
        } else if !matches!(name, "default" | "const" | "enum" | "examples") && annotated(&value, 0)
        {
            return Err(format!("`x-mcp-header` is not supported inside `{name}`"));
        }
    }
    Ok(())
}

/// Returns true if any nested schema has the annotation.
fn annotated(value: &Json, depth: usize) -> bool {
    if depth > SCHEMA_DEPTH {
        return true;
    }
    if let Some(object) = value.to_object() {
        return object.members().any(|(name, value)| match (name, value.to_object()) {
            ("x-mcp-header", _) => true,
            // Here the names are the server's own.
            ("properties", Some(properties)) => {
                properties.members().any(|(_, value)| annotated(&value, depth + 1))
            }
            _ => annotated(&value, depth + 1),
        });
    }
    value.to_items().is_some_and(|items| items.iter().any(|item| annotated(item, depth + 1)))
}

fn header_name(annotation: &Json, schema: &Object) -> Result<HeaderName, String> {
    let Some(name) = annotation.text() else {
        return Err("`x-mcp-header` is not a string".to_owned());
    };
    let kind = schema.text("type");
    if !matches!(kind.as_deref(), Some("string" | "integer" | "boolean")) {
        return Err(format!(
            "the header `{}` maps to a property that is not a string, integer or boolean",
            name.escape_debug()
        ));
    }
    let shown = name.escape_debug();
    HeaderName::try_from(format!("mcp-param-{name}"))
        .ok()
        .filter(|_| !name.is_empty())
        .ok_or_else(|| format!("`{shown}` is not a valid header name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_carries_any_text() {
        for (text, expected) in [
            ("us-west1", "us-west1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            ("=?base64?", "=?base64?"),
            ("", "=?base64??="),
        ] {
            assert_eq!(encode(text), expected, "{text:?}");
            assert_eq!(decode(&encode(text)).as_deref(), Some(text));
        }
        assert_eq!(decode(&HeaderValue::from_static("=?base64?!?=")), None);
        assert_eq!(decode(&HeaderValue::from_static("  padded ")).as_deref(), Some("padded"));
    }
}
