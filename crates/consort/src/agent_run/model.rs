//! Selection of the model.

use std::path::PathBuf;

use consort::models::{DEMO, ModelError, ModelRegistry};
use consort_core::escape::escape_text;
use consort_models::Model;

use crate::exit::{CommandError, ExitStatus};

/// Prefix of the file of a script.
const SCRIPTED: &str = "scripted:";

/// The named model, or the default one.
pub(crate) async fn model(
    models: &ModelRegistry,
    said: Option<&str>,
) -> Result<Model, CommandError> {
    match said.map(str::trim).filter(|said| !said.is_empty() && *said != "ollama") {
        Some(said) => {
            let model = models.model(&resolve_typed_name(said))?;
            // It is called what it was called.
            let id = if said.starts_with(SCRIPTED) { said.to_owned() } else { model.id.clone() };
            Ok(Model { id, ..model })
        }
        None => Ok(models.providers().choose(said).await.map_err(ModelError::from)?),
    }
}

/// Resolves a typed name: the path of a script is relative to the current folder, not to the config.
pub(crate) fn resolve_typed_name(said: &str) -> String {
    match said.strip_prefix(SCRIPTED) {
        Some(path) if said != DEMO => {
            let path = std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path));
            format!("{SCRIPTED}{}", path.display())
        }
        _ => said.to_owned(),
    }
}

impl From<ModelError> for CommandError {
    fn from(error: ModelError) -> Self {
        let hint = error.hint();
        Self { message: escape_text(&error_chain(&error)), hint, exit: ExitStatus::Usage }
    }
}

/// Returns the message of an error with those of its causes.
pub(super) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        // One that shows its cause as its own says it once.
        if !message.ends_with(&text) {
            message = format!("{message}: {text}");
        }
        cause = error.source();
    }
    message
}
