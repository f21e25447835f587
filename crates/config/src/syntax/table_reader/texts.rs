//! Values with references.

use std::collections::BTreeMap;

use super::TableReader;
use crate::error::ConfigErrorKind;
use crate::syntax::names::shorten_name;
use crate::syntax::tree::{SyntaxEntry, SyntaxNode, SyntaxValue};
use crate::template::secret_reference::SecretReference;
use crate::template::secret_scheme;
use crate::template::{InvalidTemplate, SecretMasking, TemplateString};

impl<'a> TableReader<'a> {
    pub(crate) fn text(
        &self,
        keys: &[&'static str],
        secrecy: SecretMasking,
    ) -> Option<TemplateString> {
        let (key, node) = self.any_of(keys)?;
        match &node.value {
            SyntaxValue::Text(text) if secrecy == SecretMasking::Everything => {
                self.parse_secret(&self.path(key), text, node.at, secrecy)
            }
            SyntaxValue::Text(text) => self.parse(&self.path(key), text, node.at, secrecy),
            _ => self.report_wrong_type(key, node, "a string"),
        }
    }

    /// A list of arguments; one that follows `--token` is a secret.
    pub(crate) fn texts(&self, key: &'static str, node: &'a SyntaxNode) -> Vec<TemplateString> {
        let SyntaxValue::List(list) = &node.value else {
            return self.report_wrong_type(key, node, "a list of strings").unwrap_or_default();
        };
        let mut secrecy = SecretMasking::LikelySecrets;
        let mut texts = Vec::new();
        for (n, node) in list.iter().enumerate() {
            let key = format!("{key}[{n}]");
            let Some(text) = plain(&node.value) else {
                self.report_wrong_type::<()>(&key, node, "a string");
                continue;
            };
            let is_secret = secrecy == SecretMasking::Everything;
            let parse = if is_secret { Self::parse_secret } else { Self::parse };
            texts.extend(parse(self, &self.path(&key), &text, node.at, secrecy));
            let flag = text.starts_with('-') && !text.contains('=');
            secrecy = if flag { SecretMasking::of(&text) } else { SecretMasking::LikelySecrets };
        }
        texts
    }

    /// A map of strings. A value whose name looks like that of a secret is one.
    pub(crate) fn text_map(&self, keys: &[&'static str]) -> BTreeMap<String, TemplateString> {
        let Some((key, node)) = self.any_of(keys) else { return BTreeMap::new() };
        let SyntaxValue::Table(table) = &node.value else {
            return self.report_wrong_type(key, node, "a table of strings").unwrap_or_default();
        };
        let mut texts = BTreeMap::new();
        for SyntaxEntry { key: name, node, .. } in &table.0 {
            let key = format!("{key}.{}", shorten_name(name));
            if matches!(node.value, SyntaxValue::Null) {
                continue;
            }
            let Some(text) = plain(&node.value) else {
                self.report_wrong_type::<()>(&key, node, "a string");
                continue;
            };
            if let Some(text) =
                self.parse_secret(&self.path(&key), &text, node.at, SecretMasking::of(name))
            {
                texts.insert(name.clone(), text);
            }
        }
        texts
    }

    /// A secret of an option. One in the file itself is warned of.
    pub(crate) fn secret(&self, key: &str, node: &SyntaxNode) -> Option<SecretReference> {
        let expected = "a reference to a secret: `env:NAME`, `file:PATH`, `keyring:SERVICE/NAME` or \
                        `cmd:COMMAND`";
        let SyntaxValue::Text(text) = &node.value else {
            return self.report_wrong_type(key, node, expected);
        };
        if let Some(scheme) = secret_scheme::foreign(text) {
            let (key, reason) = (self.path(key), InvalidTemplate::ForeignScheme(scheme));
            self.error(node.at, ConfigErrorKind::Template { key, reason });
            return None;
        }
        let Some(parsed) = SecretReference::parse(text, self.findings.spot(node.at)) else {
            return self.report_wrong_type(key, node, expected);
        };
        let key = self.path(key);
        match parsed {
            Ok(secret) => {
                if secret.is_literal() {
                    let hint = "use a reference instead: `env:NAME`, `file:path`, \
                                `keyring:SERVICE/NAME` or `cmd:COMMAND`";
                    let message = format!("`{key}` contains a secret");
                    self.warn(node.at, &message, Some(hint.to_owned()));
                }
                Some(secret)
            }
            Err(reason) => {
                self.error(node.at, ConfigErrorKind::Template { key, reason });
                None
            }
        }
    }

    /// Parses a value where secrets are expected: references to unknown stores are refused.
    fn parse_secret(
        &self,
        key: &str,
        text: &str,
        at: usize,
        secrecy: SecretMasking,
    ) -> Option<TemplateString> {
        if let Some(scheme) = secret_scheme::foreign(text) {
            let reason = InvalidTemplate::ForeignScheme(scheme);
            self.error(at, ConfigErrorKind::Template { key: key.to_owned(), reason });
            return None;
        }
        if let Some(form) = self.findings.reference_syntax().overlooked(text)
            && !text.starts_with(secret_scheme::LITERAL)
        {
            let message =
                format!("`{key}` contains `{form}`, which reaches the server as it is written");
            let hint = "for an environment variable, write `${NAME}`; for the string itself, \
                        `literal:…`";
            self.warn(at, &message, Some(hint.to_owned()));
        }
        self.parse(key, text, at, secrecy)
    }

    pub(crate) fn parse(
        &self,
        key: &str,
        text: &str,
        at: usize,
        secrecy: SecretMasking,
    ) -> Option<TemplateString> {
        let failed =
            |reason| self.error(at, ConfigErrorKind::Template { key: key.to_owned(), reason });
        let syntax = self.findings.reference_syntax();
        TemplateString::parse_as(syntax, text, self.findings.spot(at), secrecy).map_err(failed).ok()
    }
}

/// The text of a string, number or boolean: environment variables are all strings.
fn plain(value: &SyntaxValue) -> Option<String> {
    match value {
        SyntaxValue::Text(text) | SyntaxValue::Number(text) => Some(text.clone()),
        SyntaxValue::Bool(value) => Some(value.to_string()),
        _ => None,
    }
}
