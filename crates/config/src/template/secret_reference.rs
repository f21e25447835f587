//! References to secrets in options: API keys of providers and tokens of callers.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};

use crate::source_location::LineColumn;
use crate::template::{
    InvalidTemplate, SecretMasking, TemplatePart, TemplateString, ValueReference, secret_scheme,
};

/// A secret as written in an option: `env:NAME`, `file:PATH`, `keyring:SERVICE/NAME`, `cmd:COMMAND` or `literal:TEXT`.
/// The text of a literal is displayed as `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretReference(TemplateString);

impl SecretReference {
    /// Parses a reference; `None` for a text without one of its schemes.
    pub(crate) fn parse(text: &str, spot: LineColumn) -> Option<Result<Self, InvalidTemplate>> {
        let secrecy = SecretMasking::Everything;
        let (scheme, rest) = text.split_once(':')?;
        let parsed = match scheme {
            // Elsewhere `file://` starts an address.
            "file" if rest.starts_with("//") => {
                let reference = ValueReference::File(rest.to_owned());
                Ok(TemplateString::reference(reference, text, spot, secrecy))
            }
            "env" | "file" | "keyring" | "cmd" | "literal" => {
                TemplateString::parse(text, spot, secrecy)
            }
            _ => return None,
        };
        Some(parsed.map(Self))
    }

    /// Returns the name of the environment variable, if it refers to one.
    pub fn variable(&self) -> Option<&str> {
        match self.reference()? {
            ValueReference::Variable { name, .. } => Some(name),
            _ => None,
        }
    }

    /// Returns the path of the file as written, if it refers to one.
    pub fn file(&self) -> Option<&str> {
        match self.reference()? {
            ValueReference::File(path) => Some(path),
            _ => None,
        }
    }

    /// Returns true if a program must be run to resolve it.
    pub fn needs_program(&self) -> bool {
        self.0.needs_program()
    }

    /// Returns the command line that is run for it, if the config has one.
    pub fn command(&self) -> Option<String> {
        match self.reference()? {
            ValueReference::Program(words) => Some(secret_scheme::join_words(words)),
            _ => None,
        }
    }

    /// Returns true if the config itself contains the secret.
    pub fn is_literal(&self) -> bool {
        self.reference().is_none()
    }

    /// Returns the secret, if the config itself contains it.
    pub fn literal(&self) -> Option<Cow<'_, str>> {
        self.0.as_literal()
    }

    /// The text exactly as written, including the secret of a literal.
    pub(crate) fn to_plain_string(&self) -> String {
        match self.0.as_literal() {
            Some(text) => format!("{}{text}", secret_scheme::LITERAL),
            None => self.0.to_plain_string(),
        }
    }

    pub(crate) fn parts(&self) -> &[TemplatePart] {
        self.0.parts()
    }

    fn reference(&self) -> Option<&ValueReference> {
        match self.0.parts() {
            [TemplatePart::Reference(reference, _)] => Some(reference),
            _ => None,
        }
    }
}

impl fmt::Display for SecretReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_literal() { secret_scheme::LITERAL } else { "" };
        write!(f, "{scheme}{}", self.0)
    }
}

impl fmt::Debug for SecretReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

impl Serialize for SecretReference {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for SecretReference {
    fn schema_name() -> Cow<'static, str> {
        "SecretReference".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<Result<String, InvalidTemplate>> {
        let parsed = SecretReference::parse(text, LineColumn::default())?;
        Some(parsed.map(|parsed| {
            assert_eq!(parsed.to_plain_string(), text);
            parsed.to_string()
        }))
    }

    #[test]
    fn a_secret_is_a_reference_or_a_marked_literal() {
        for text in [
            "env:TOKEN",
            "file:token.txt",
            "file:///run/secrets/token",
            "keyring:work/token",
            "cmd:pass show work",
        ] {
            assert_eq!(parse(text), Some(Ok(text.to_owned())));
        }
        assert_eq!(parse("literal:s3cret"), Some(Ok("literal:***".to_owned())));
        for text in ["s3cret", "${TOKEN}", "op://a/b", "ENV:TOKEN"] {
            assert_eq!(parse(text), None, "{text}");
        }
        for (text, why) in [
            ("env:MY TOKEN", InvalidTemplate::Name),
            ("file:", InvalidTemplate::Empty),
            ("keyring:work", InvalidTemplate::Keyring),
            ("cmd:a 'b", InvalidTemplate::Quote),
        ] {
            assert_eq!(parse(text), Some(Err(why)), "{text}");
        }
    }
}
