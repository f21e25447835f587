//! Why there is no model.

use std::io;

use super::super::EndpointError;
use super::super::known::{KNOWN, Known};
use super::MODEL_VARIABLE;
use crate::scripted::ScriptError;

/// Why there is no model.
#[derive(Debug, thiserror::Error)]
pub enum ChooseError {
    /// Nobody has that name.
    #[error("there is no provider `{name}`")]
    UnknownProvider {
        /// As given.
        name: String,
        /// Those with a name like it.
        near: Vec<String>,
    },
    /// A name that more than one may have.
    #[error("`{0}` does not say who runs it")]
    WhoseModel(String),
    /// A provider without a model.
    #[error("`{0}` does not say which model")]
    WhichModel(String),
    /// Nothing is set.
    #[error("no model is chosen, and none is found")]
    None {
        /// Ollama answers, but has no model.
        is_ollama_empty: bool,
    },
    /// The provider wants a key.
    #[error("`{provider}` needs a key, and there is none")]
    NoKey {
        /// Who.
        provider: String,
        /// Where it is looked for.
        variables: Vec<String>,
    },
    /// A configured provider without an address.
    #[error("the provider `{0}` has no `base_url`")]
    NoAddress(String),
    /// The provider cannot be asked as it is set up.
    #[error("the provider `{provider}` cannot be asked")]
    Endpoint {
        /// Who.
        provider: String,
        /// Why.
        source: EndpointError,
    },
    /// There is no such script.
    #[error("cannot read the script `{path}`")]
    NoScript {
        /// As given.
        path: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// The script is none.
    #[error("cannot use the script `{path}`")]
    Script {
        /// As given.
        path: String,
        /// What is wrong with it.
        source: ScriptError,
    },
}

impl ChooseError {
    /// What to do next, if that can be said.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::UnknownProvider { name, near } if near.is_empty() => {
                let names: Vec<&str> = KNOWN.iter().map(|known| known.name).collect();
                format!(
                    "there are {}, those of the config and `scripted`; for a model of Ollama write `ollama:{name}:…`",
                    names.join(", ")
                )
            }
            Self::UnknownProvider { near, .. } => {
                format!("did you mean `{}`?", near.join("` or `"))
            }
            Self::WhoseModel(name) => match name.split_once('/') {
                Some((provider, model)) if Known::get(provider).is_some() => {
                    format!("write `{provider}:{model}`")
                }
                _ => format!("write `provider:{name}`, such as `ollama:{name}`"),
            },
            Self::WhichModel(provider) => format!("write `{provider}:` and the name of a model"),
            Self::None { is_ollama_empty: true } => {
                "Ollama runs but has no model: pull one, such as `ollama pull qwen3`, or say which \
                 model with `--model provider:name`"
                    .to_owned()
            }
            Self::None { .. } => format!(
                "set a key, such as `ANTHROPIC_API_KEY`, `OPENAI_API_KEY` or `GEMINI_API_KEY`, or start \
                 Ollama, or say which model with `--model provider:name` or `{MODEL_VARIABLE}`"
            ),
            Self::NoKey { variables, .. } => format!("set `{}`", variables.join("` or `")),
            Self::NoAddress(name) => format!("set `base_url` in `[consort.providers.{name}]`"),
            Self::Endpoint { .. } | Self::NoScript { .. } | Self::Script { .. } => return None,
        })
    }
}
