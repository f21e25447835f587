//! Value types of the keywords of JSON Schema.

use serde_json::Value;

/// The names of types.
pub(super) const TYPES: [&str; 7] =
    ["string", "number", "integer", "boolean", "object", "array", "null"];

/// The value type of a keyword.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum KeywordValue {
    Schema,
    Schemas,
    /// An object whose values are schemas.
    Named,
    Text,
    Texts,
    Count,
    Number,
    Positive,
    Flag,
    Values,
    Types,
    /// An object whose values are lists of names or, in old drafts, schemas.
    Dependencies,
    /// A value that only validators read.
    Plumbing,
}

impl KeywordValue {
    /// Returns the value type of a keyword; `None` if it may be anything.
    pub(super) fn of(keyword: &str) -> Option<Self> {
        Some(match keyword {
            "items"
            | "additionalItems"
            | "additionalProperties"
            | "contains"
            | "propertyNames"
            | "not"
            | "if"
            | "then"
            | "else"
            | "unevaluatedItems"
            | "unevaluatedProperties"
            | "contentSchema" => Self::Schema,
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => Self::Schemas,
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
                Self::Named
            }
            "$ref" | "$schema" | "$comment" | "title" | "description" | "format" | "pattern"
            | "contentEncoding" | "contentMediaType" => Self::Text,
            "required" => Self::Texts,
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties"
            | "maxProperties" | "minContains" | "maxContains" => Self::Count,
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => Self::Number,
            "multipleOf" => Self::Positive,
            "uniqueItems" | "readOnly" | "writeOnly" | "deprecated" => Self::Flag,
            "enum" | "examples" => Self::Values,
            "type" => Self::Types,
            "dependentRequired" | "dependencies" => Self::Dependencies,
            "$vocabulary" | "$dynamicRef" | "$dynamicAnchor" | "$recursiveRef"
            | "$recursiveAnchor" | "$anchor" | "$id" | "id" => Self::Plumbing,
            _ => return None,
        })
    }

    /// Returns true if a value has this type. Nested values are not checked.
    pub(super) fn fits(self, value: &Value) -> bool {
        let list = |is: fn(&Value) -> bool| {
            value.as_array().is_some_and(|items| !items.is_empty() && items.iter().all(is))
        };
        match self {
            Self::Schema => is_schema(value),
            Self::Schemas => list(is_schema),
            Self::Named => value.is_object(),
            Self::Text => value.is_string(),
            Self::Texts => value.as_array().is_some_and(|items| items.iter().all(Value::is_string)),
            Self::Count => value.is_u64(),
            Self::Number => value.is_number(),
            Self::Positive => value.as_f64().is_some_and(|number| number > 0.0),
            Self::Flag => value.is_boolean(),
            Self::Values => list(|_| true),
            Self::Types => is_type(value) || list(is_type),
            Self::Dependencies => value.as_object().is_some_and(|map| {
                map.values().all(|one| Self::Texts.fits(one) || one.is_object())
            }),
            Self::Plumbing => false,
        }
    }
}

pub(super) fn is_schema(value: &Value) -> bool {
    value.is_object() || value.is_boolean()
}

fn is_type(value: &Value) -> bool {
    value.as_str().is_some_and(|name| TYPES.contains(&name))
}
