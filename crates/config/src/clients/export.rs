//! The gateway as an entry in the config of a client.

pub(crate) mod entries;
mod json;
mod link;
mod toml;
mod yaml;

use std::fmt;

use crate::clients::KnownClient;
use crate::convert::output_value::OutputValue;
use crate::syntax::ConfigLanguage;
pub(crate) use link::InstallLink;
pub use link::install_link;

/// Name of Consort's entry in the config of a client.
pub const ENTRY_NAME: &str = "consort";

/// Connection from a client to the gateway.
#[derive(Clone, PartialEq, Eq)]
pub enum ExportMode {
    /// The client starts a program and connects over stdio.
    Program {
        /// The program.
        command: String,
        /// Its arguments.
        arguments: Vec<String>,
    },
    /// The client connects to a running gateway.
    Url {
        /// Its URL.
        url: String,
        /// Bearer token, if one is needed.
        token: Option<String>,
    },
}

impl fmt::Debug for ExportMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program { command, arguments } => f
                .debug_struct("Program")
                .field("command", command)
                .field("arguments", arguments)
                .finish(),
            // The token is a secret.
            Self::Url { url, .. } => {
                f.debug_struct("Url").field("url", url).finish_non_exhaustive()
            }
        }
    }
}

/// The reason why a client's config cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// It cannot be parsed.
    #[error("line {line} is not {language}: {message}")]
    Syntax {
        /// Language of the config.
        language: &'static str,
        /// Line number.
        line: usize,
        /// The syntax error.
        message: String,
    },
    /// A value is not an object and must be one.
    #[error("{0} is not an object")]
    Shape(String),
    /// The rest of the config would not stay unchanged.
    #[error("{0}")]
    Manual(&'static str),
}

/// Returns the config snippet with which a client uses the gateway, for manual editing.
///
/// ```
/// use consort_config::{ExportMode, KnownClient, snippet};
///
/// let cursor = KnownClient::find("cursor").expect("Cursor is known");
/// let mode = ExportMode::Url { url: "http://127.0.0.1:8080/mcp".into(), token: None };
/// assert!(snippet(cursor, &mode).contains(r#""url": "http://127.0.0.1:8080/mcp""#));
/// ```
pub fn snippet(client: &KnownClient, mode: &ExportMode) -> String {
    export(client, mode, "").expect("an empty config can be added to")
}

/// Adds the gateway to a client's config. The rest stays unchanged, comments included. An existing entry of the gateway
/// is replaced, except in YAML.
pub fn export(client: &KnownClient, mode: &ExportMode, text: &str) -> Result<String, ExportError> {
    let (mark, body) = match text.strip_prefix('\u{feff}') {
        Some(body) => ("\u{feff}", body),
        None => ("", text),
    };
    let entry = (client.entry)(mode);
    let edited = match client.language {
        ConfigLanguage::Json => json::add(client, body, entry)?,
        ConfigLanguage::Toml => toml::add(client, body, &entry)?,
        ConfigLanguage::Yaml => yaml::add(client, body, &entry)?,
    };
    Ok(format!("{mark}{edited}"))
}

/// Returns the number of the line at an offset.
fn line_at(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or(text).matches('\n').count() + 1
}

fn shape(what: &str) -> ExportError {
    ExportError::Shape(what.to_owned())
}

/// The entry of an existing table, by its JSON value.
fn entry_value(entry: &OutputValue) -> serde_json::Value {
    serde_json::to_value(entry).expect("keys are strings")
}

#[cfg(test)]
mod tests;
