//! Errors of model selection.

use std::io;

use super::MODEL_VARIABLE;
use super::well_known::{WELL_KNOWN, WellKnownProvider};
use crate::http::EndpointError;
use crate::scripted::ScriptError;

/// Reason no model could be selected.
#[derive(Debug, thiserror::Error)]
pub enum ModelSelectionError {
    /// No provider has this name.
    #[error("unknown model provider `{name}`")]
    UnknownProvider {
        /// As given.
        name: String,
        /// Similar names.
        near: Vec<String>,
    },
    /// A model name that more than one provider may have.
    #[error("`{0}` has no provider: expected `provider:name`")]
    MissingProvider(String),
    /// A provider without a default model.
    #[error("`{0}` has no model name: expected `provider:name`")]
    MissingModel(String),
    /// No model and no provider is configured.
    #[error("no model is selected, and no provider was found")]
    None {
        /// True if Ollama responds, but has no model.
        is_ollama_empty: bool,
    },
    /// The provider requires a key.
    #[error("missing API key for `{provider}`")]
    MissingKey {
        /// Name of the provider.
        provider: String,
        /// Environment variables that may hold the key.
        variables: Vec<String>,
    },
    /// A configured provider without a base URL.
    #[error("the provider `{0}` has no `base_url`")]
    MissingBaseUrl(String),
    /// The provider's endpoint is misconfigured.
    #[error("the provider `{provider}` cannot be used")]
    Endpoint {
        /// Name of the provider.
        provider: String,
        /// Cause of the error.
        source: EndpointError,
    },
    /// The script cannot be opened.
    #[error("cannot read the script `{path}`")]
    UnreadableScript {
        /// As given.
        path: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The script is invalid.
    #[error("cannot use the script `{path}`")]
    InvalidScript {
        /// As given.
        path: String,
        /// Cause of the error.
        source: ScriptError,
    },
}

impl ModelSelectionError {
    /// Returns advice for the user, if there is any.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::UnknownProvider { name, near } if near.is_empty() => {
                let names: Vec<&str> = WELL_KNOWN.iter().map(|known| known.name).collect();
                format!(
                    "known providers are {}, those of the config and `scripted`; for an Ollama model use \
                        `ollama:{name}:…`",
                    names.join(", ")
                )
            }
            Self::UnknownProvider { near, .. } => {
                format!("did you mean `{}`?", near.join("` or `"))
            }
            Self::MissingProvider(name) => match name.split_once('/') {
                Some((provider, model)) if WellKnownProvider::get(provider).is_some() => {
                    format!("use `{provider}:{model}`")
                }
                _ => format!("use `provider:{name}`, such as `ollama:{name}`"),
            },
            Self::MissingModel(provider) => format!("use `{provider}:` and the name of a model"),
            Self::None { is_ollama_empty: true } => {
                "Ollama is running but has no model: pull one, such as `ollama pull qwen3`, or select a \
                 model with `--model provider:name`"
                    .to_owned()
            }
            Self::None { .. } => format!(
                "set an API key, such as `ANTHROPIC_API_KEY`, `OPENAI_API_KEY` or `GEMINI_API_KEY`, start \
                 Ollama, or select a model with `--model provider:name` or `{MODEL_VARIABLE}`"
            ),
            Self::MissingKey { variables, .. } => format!("set `{}`", variables.join("` or `")),
            Self::MissingBaseUrl(name) => format!("set `base_url` in `[consort.providers.{name}]`"),
            Self::Endpoint { .. } | Self::UnreadableScript { .. } | Self::InvalidScript { .. } => {
                return None;
            }
        })
    }
}
