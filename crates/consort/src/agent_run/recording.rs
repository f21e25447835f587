//! Recording and replay of a run.

use std::sync::Arc;

use consort_agent::recording::{Recorder, RecordingError, Redactor, Replayer};
use consort_agent::run_tools::ASK_USER;
use consort_core::escape::escape_text;
use consort_core::{Toolbox, secret};
use consort_models::REPLAYED;
use consort_models::{Model, ModelFacts};

use crate::cli::AgentArguments;
use crate::exit::{CommandError, ExitStatus};

/// Recording of the traffic with the model and the tools, written to a file or read from one.
pub(crate) enum RunRecording {
    /// No recording.
    Absent,
    /// It is recorded.
    Recording(Recorder),
    /// It is replayed; no model is called, and no server is connected to.
    Replaying(Replayer),
}

impl RunRecording {
    pub(crate) fn new(agent_arguments: &AgentArguments) -> Result<Self, CommandError> {
        Ok(match (&agent_arguments.record, &agent_arguments.replay) {
            (Some(file), _) => Self::Recording(Recorder::create(file, redactor())?),
            (None, Some(file)) => Self::Replaying(Replayer::open(file, redactor())?),
            (None, None) => Self::Absent,
        })
    }

    /// Returns true for a replay.
    pub(crate) fn is_replay(&self) -> bool {
        matches!(self, Self::Replaying(_))
    }

    /// The replayed model, if this is a replay.
    pub(crate) fn replayed_model(&self) -> Option<Model> {
        let Self::Replaying(replayer) = self else { return None };
        let facts = ModelFacts { images: true, audio: true, ..ModelFacts::default() };
        let name = REPLAYED.to_owned();
        Some(Model { id: name.clone(), name, provider: replayer.provider(), facts })
    }

    /// Wraps a model to record it, if requested.
    pub(crate) fn model(&self, model: Model) -> Model {
        match self {
            Self::Recording(recorder) => {
                Model { provider: recorder.provider(Arc::clone(&model.provider)), ..model }
            }
            Self::Absent | Self::Replaying(_) => model,
        }
    }

    /// Wraps a toolbox to record it, or replaces it by the replayed one.
    pub(crate) fn toolbox(&self, toolbox: Arc<dyn Toolbox>) -> Arc<dyn Toolbox> {
        match self {
            Self::Absent => toolbox,
            Self::Recording(recorder) => recorder.toolbox(toolbox),
            Self::Replaying(replayer) => replayer.toolbox(),
        }
    }

    /// Returns true if the recorded model could ask a person; `None` without a replay.
    pub(crate) fn could_ask_user(&self) -> Option<bool> {
        match self {
            Self::Replaying(replayer) => Some(replayer.lists_tool(ASK_USER)),
            Self::Absent | Self::Recording(_) => None,
        }
    }

    /// Fails if the recording was not written or replayed completely.
    pub(crate) fn end(&self) -> Result<(), CommandError> {
        match self {
            Self::Absent => Ok(()),
            Self::Recording(recorder) => recorder.finish().map_err(|error| {
                CommandError::usage(format!("cannot write the recording: {error}"))
            }),
            Self::Replaying(replayer) => replayer.finish().map_err(|divergence| {
                let message = escape_text(&divergence.to_string());
                let hint = "if that is intended, record it again";
                CommandError {
                    exit: ExitStatus::Differs,
                    ..CommandError::usage(message).hint(hint)
                }
            }),
        }
    }
}

impl From<RecordingError> for CommandError {
    fn from(error: RecordingError) -> Self {
        Self::usage(escape_text(&super::model::error_chain(&error)))
    }
}

/// Returns the redactor of recordings: it removes the values of variables whose name is that of a secret.
fn redactor() -> Redactor {
    let secrets = std::env::vars().filter(|(name, _)| secret::is_secret_name(name));
    Redactor::new(secrets.map(|(_, value)| value.into()))
}
